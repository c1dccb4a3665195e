import math

import pytest
import torch

from trainer.losses import dcl, info_loob_pair


def per_anchor(partner: float, others: list[float]) -> float:
    """Compute the loss of one anchor at 1/tau = 2."""
    return math.log(sum(math.exp(2 * c) for c in others)) - 2 * partner


def weighted(view_a, view_b, inv_tau, sigma) -> float:
    """Compute DCLW by a double loop, with weights over the n pairs and their mean in a separate loop."""
    a, b = view_a.tolist(), view_b.tolist()
    n, views, total = len(a), a + b, 0.0
    agree = [math.exp(sum(p * q for p, q in zip(u, v, strict=True)) / sigma) for u, v in zip(a, b, strict=True)]
    for i, u in enumerate(views):
        weight = 2 - agree[i % n] / (sum(agree) / n)
        cosines = [inv_tau * sum(p * q for p, q in zip(u, v, strict=True)) for v in views]
        others = [math.exp(c) for k, c in enumerate(cosines) if k % n != i % n]
        total += math.log(sum(others)) - weight * cosines[(i + n) % (2 * n)]
    return total / (2 * n)


@pytest.mark.parametrize("n", [2, 6])
def test_equals_double_loops(unit_rows, over_views, n):
    views = unit_rows(n, 5, 0), unit_rows(n, 5, 1)
    assert dcl(*views, 2.0).item() == pytest.approx(over_views(*views, per_anchor), abs=1e-12)
    assert dcl(*views, 10.0, sigma=0.5).item() == pytest.approx(weighted(*views, 10.0, 0.5), abs=1e-12)


def test_gradient_of_dclw_is_that_at_constant_weights(unit_rows):
    views = unit_rows(4, 3, 0).requires_grad_(), unit_rows(4, 3, 1).requires_grad_()
    # On a matched cosine it is minus the weight, over n.
    cosines = (views[0] * views[1]).sum(1).detach()
    weights = 2 - 4 * torch.softmax(cosines / 0.5, dim=0)
    assert weights.mean().item() == pytest.approx(1)
    plain = torch.autograd.grad(dcl(*views, 2.0), views[0])[0]
    moved = torch.autograd.grad(dcl(*views, 2.0, sigma=0.5), views[0])[0]
    assert torch.allclose(moved - plain, 2.0 * (1 - weights)[:, None] * views[1] / 4, atol=1e-12)


def test_pairs_that_agree_alike_weigh_alike(unit_rows):
    rows = unit_rows(5, 4, 0)
    assert dcl(rows, rows, 5.0, sigma=0.5).item() == pytest.approx(dcl(rows, rows, 5.0).item(), abs=1e-12)


def test_it_is_infoloob_where_views_of_one_side_do_not_meet(unit_rows):
    """With orthogonal views per side, half of the 2n - 2 negatives are InfoLOOB's and half have cosine 0."""
    n = 4
    rows = torch.eye(n, dtype=torch.float64)
    turned = rows[[1, 2, 3, 0]]
    inside = math.log(sum(math.exp(2.0 * c) for c in (1.0, 0.0, 0.0)))
    both = math.log(math.exp(inside) + n - 1)
    assert info_loob_pair(rows, turned, 2.0).item() == pytest.approx(inside, abs=1e-12)
    assert dcl(rows, turned, 2.0).item() == pytest.approx(both, abs=1e-12)
