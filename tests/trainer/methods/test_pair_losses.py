"""The loss of every pair: their mean is the loss, and each equals a double loop's."""

import math

import pytest
import torch
import torch.nn.functional as F

from tests.tolerances import rounding
from tests.trainer.losses.repeated_pairs import all_right, answers_of_batch
from trainer import config
from trainer.methods import build
from trainer.methods.pair_losses import pair_losses

OBJECTIVES = [
    config.Clip(),
    config.ConVirt(image_weight=0.7),
    config.InfoLoobPair(),
    config.HopfieldInfoNce(),
    config.Cloob(),
    config.Cloob(retrieval_share=0.25, residual=True),
    config.SigLip(),
    config.DhnNce(beta_image=0.2, beta_text=0.4),
]


@pytest.fixture
def pairs():
    generator = torch.Generator().manual_seed(0)
    return list(F.normalize(torch.randn(2, 9, 5, generator=generator, dtype=torch.float64), dim=2))


@pytest.mark.parametrize("objective", OBJECTIVES, ids=lambda one: one.kind)
@pytest.mark.parametrize("answers", [None, answers_of_batch(9), all_right(9)], ids=["", "masked", "all right"])
def test_the_mean_is_the_loss(pairs, objective, answers):
    method = build(objective)
    found = pair_losses(method, *pairs, answers)
    assert found.shape == (9,)
    assert found.mean().item() == pytest.approx(method.loss(*pairs, answers=answers).item(), abs=1e-7)


def test_every_objective_of_pairs_has_its_own():
    with_loss = {type(one) for one in OBJECTIVES}
    assert with_loss == {one for one in config.choices(config.Objective) if issubclass(one, config.ImageText)}


def test_of_clip_each_is_what_a_double_loop_gives(pairs):
    method = build(config.Clip(inv_tau=7.0, learn_inv_tau=False))
    x, y = (rows.tolist() for rows in pairs)
    cosines = [[sum(a * b for a, b in zip(u, v, strict=True)) for v in y] for u in x]
    for i, found in enumerate(pair_losses(method, *pairs, None).tolist()):
        row = math.log(sum(math.exp(7 * c) for c in cosines[i]))
        column = math.log(sum(math.exp(7 * line[i]) for line in cosines))
        # The scale is kept in float32, as its logarithm.
        assert found == pytest.approx((row + column) / 2 - 7 * cosines[i][i], abs=rounding(torch.float32, 1, 2 * 7.0))
