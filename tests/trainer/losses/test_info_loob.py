import math

import pytest
import torch

from trainer.losses import info_loob


def naive(anchors, samples, inv_tau) -> float:
    """Loop over anchors, with the match left out of the sum."""
    n, total = len(anchors), 0.0
    for i in range(n):
        others = sum(math.exp(inv_tau * float(anchors[i] @ samples[j])) for j in range(n) if j != i)
        total += math.log(others) - inv_tau * float(anchors[i] @ samples[i])
    return total / n / inv_tau


@pytest.mark.parametrize(("n", "d", "inv_tau"), [(2, 3, 1.0), (7, 5, 30.0), (16, 8, 100.0)])
def test_equals_double_loop(unit_rows, n, d, inv_tau):
    anchors, samples = unit_rows(n, d, 0), unit_rows(n, d, 1)
    assert info_loob(anchors, samples, inv_tau).item() == pytest.approx(naive(anchors, samples, inv_tau), abs=1e-12)


def test_gradient(unit_rows):
    anchors, samples = unit_rows(5, 4, 0).requires_grad_(), unit_rows(5, 4, 1).requires_grad_()
    inv_tau = torch.tensor(5.0, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(info_loob, (anchors, samples, inv_tau))


def test_its_gradient_is_that_of_info_nce_without_the_saturation(unit_rows):
    """dInfoNCE/d anchor = (1 - p) dInfoLOOB/d anchor, p the probability of the match."""
    samples, inv_tau = unit_rows(9, 5, 1), 12.0
    anchor = unit_rows(9, 5, 0)[:1].clone().requires_grad_()
    scores = inv_tau * (anchor @ samples.T)
    (nce,) = torch.autograd.grad(torch.logsumexp(scores, 1)[0] - scores[0, 0], anchor, retain_graph=True)
    p = torch.softmax(scores, 1)[0, 0].item()
    rows = torch.cat([anchor, unit_rows(9, 5, 2)[1:]])
    (loob,) = torch.autograd.grad(info_loob(rows, samples, inv_tau) * 9 * inv_tau, anchor)
    assert torch.allclose(nce, (1 - p) * loob, atol=1e-12)


def test_is_negative_when_every_match_stands_out():
    rows = torch.eye(8, dtype=torch.float64)
    assert info_loob(rows, rows, 30.0).item() == pytest.approx(-1 + math.log(7) / 30, abs=1e-12)
