import math

import pytest
import torch
import torch.nn.functional as F

from trainer import config
from trainer.losses import cloob, info_nce
from trainer.methods import METHODS, build


@pytest.fixture
def pairs():
    torch.manual_seed(0)
    return F.normalize(torch.randn(8, 5), dim=1), F.normalize(torch.randn(8, 5), dim=1)


def test_every_objective_has_a_method():
    assert set(METHODS) == set(config.choices(config.Objective))


def test_clip_is_info_nce_at_a_learned_temperature(pairs):
    method = build(config.Clip())
    assert method.inv_tau == pytest.approx(1 / 0.07)
    loss = method.loss(*pairs)
    assert loss.item() == pytest.approx(info_nce(*pairs, 1 / 0.07).item(), abs=1e-6)
    loss.backward()
    assert method.log_inv_tau.grad.abs() > 0


def test_the_learned_temperature_is_clamped_after_a_step():
    method = build(config.Clip(inv_tau_max=50.0))
    with torch.no_grad():
        method.log_inv_tau.fill_(math.log(80))
    method.after_step()
    assert method.inv_tau == pytest.approx(50.0)


def test_the_scale_of_siglip_stays_at_least_1_as_in_open_clip():
    method = build(config.SigLip(inv_tau_max=50.0))
    for before, after in ((0.2, 1.0), (80.0, 50.0), (7.0, 7.0)):
        with torch.no_grad():
            method.log_scale.fill_(math.log(before))
        method.after_step()
        assert method.inv_tau == pytest.approx(after)


def test_cloob_has_nothing_to_learn(pairs):
    method = build(config.Cloob(inv_tau=20.0, scale_hopfield=6.0))
    assert list(method.parameters()) == []
    assert method.inv_tau == 20.0
    assert torch.equal(method.loss(*pairs), cloob(*pairs, 20.0, 6.0))


def test_cloob_takes_its_share_of_retrieval_from_the_configuration(pairs):
    method = build(config.Cloob(retrieval_share=0.25, residual=True))
    expected = cloob(*pairs, 30.0, 8.0, retrieval_share=0.25, residual=True)
    assert torch.equal(method.loss(*pairs), expected)
