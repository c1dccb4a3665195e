import numpy as np
import pytest
import torch

from trainer.analysis.view_losses import nt_logistic_push, nt_xent_push, semi_hard, triplet_push
from trainer.losses.two_views import semi_hard_cosines

RNG = np.random.default_rng(3)
OTHERS = RNG.uniform(-0.5, 0.7, 6)


@pytest.mark.parametrize("cosine", [-0.6, 0.1, 0.45, 0.9])
def test_pushes_are_the_gradients_of_the_losses(cosine: float):
    own = torch.tensor(cosine, dtype=torch.float64, requires_grad=True)
    match, rest = torch.tensor(0.5, dtype=torch.float64), torch.from_numpy(OTHERS)
    logits = 5.0 * torch.cat([match[None], rest, own[None]])
    losses = {
        nt_xent_push(np.array([cosine]), 0.5, OTHERS, 5.0)[0]: logits.logsumexp(0) - logits[0],
        nt_logistic_push(np.array([cosine]), 5.0)[0]: -torch.nn.functional.logsigmoid(-5.0 * own),
        triplet_push(np.array([cosine]), 0.5, 0.2)[0]: (own - match + 0.2).clamp(min=0),
    }
    for push, loss in losses.items():
        (gradient,) = torch.autograd.grad(loss, own)
        assert push == pytest.approx(gradient.item(), abs=1e-12)


def test_semi_hard_negatives_are_those_that_train():
    unmatched = RNG.uniform(-1, 1, (50, 4))
    trained = semi_hard_cosines(torch.full((50,), 0.2, dtype=torch.float64), torch.from_numpy(unmatched))
    np.testing.assert_array_equal(semi_hard(0.2, unmatched), trained[:, 0].numpy())
    assert (semi_hard(0.2, unmatched) >= 0.2).any(), "some anchors have no negative below the match"
