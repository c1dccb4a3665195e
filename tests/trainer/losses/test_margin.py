import math

import pytest
import torch

from trainer.losses import margin


def naive(rows, labels, beta, alpha) -> float:
    """Loop over hardest negatives; the mean over nonzero terms."""
    rows, terms = rows.tolist(), []
    for a in range(len(rows)):
        for p in range(len(rows)):
            if a == p or labels[a] != labels[p]:
                continue
            boundary = beta[int(labels[a])]
            nearest = min(math.dist(rows[a], rows[k]) for k in range(len(rows)) if labels[k] != labels[a])
            terms += [max(alpha + math.dist(rows[a], rows[p]) - boundary, 0), max(alpha + boundary - nearest, 0)]
    active = [t for t in terms if t > 0]
    return sum(active) / max(len(active), 1)


@pytest.mark.parametrize("beta", [[1.2, 1.2, 1.2], [0.3, 1.0, 1.6]])
def test_equals_double_loop(unit_rows, beta):
    rows, labels = unit_rows(9, 4, 0), torch.arange(9) % 3
    per_class = torch.tensor(beta, dtype=torch.float64)
    loss = margin(rows, labels, beta=per_class, alpha=0.2, sampler="hard")
    assert loss.item() == pytest.approx(naive(rows, labels, beta, 0.2), abs=1e-12)
    if len(set(beta)) == 1:
        same = margin(rows, labels, beta=beta[0], alpha=0.2, sampler="hard")
        assert same.item() == pytest.approx(loss.item(), abs=1e-12)


def test_gradient_reaches_the_boundary_of_each_class(unit_rows):
    rows, labels = unit_rows(6, 4, 0).requires_grad_(), torch.tensor([0, 0, 1, 1, 2, 2])
    beta = torch.tensor([1.1, 1.2, 1.3], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda r, b: margin(r, labels, beta=b, sampler="hard"), (rows, beta))


def test_never_nan_with_distance_weighting_at_the_antipode():
    rows = torch.tensor([[1.0, 0.0], [1.0, 0.0], [-1.0, 0.0], [-1.0, 0.0]], requires_grad=True)
    loss = margin(rows, torch.tensor([0, 0, 1, 1]), generator=torch.Generator().manual_seed(0))
    loss.backward()
    assert math.isfinite(loss.item())
    assert torch.isfinite(rows.grad).all()
