import math

import pytest
import torch

from trainer.losses import dhn_nce, info_loob


def naive(image, text, inv_tau, betas) -> float:
    """Compute the loss with its weights W_ij written out."""
    scores = (inv_tau * image @ text.T).tolist()
    n, total = len(scores), 0.0
    for rows, beta in ((scores, betas[0]), ([list(c) for c in zip(*scores, strict=True)], betas[1])):
        for i, row in enumerate(rows):
            normalizer = sum(math.exp(beta * s) for k, s in enumerate(row) if k != i)
            weighted = sum(math.exp(s) * (n - 1) * math.exp(beta * s) / normalizer for j, s in enumerate(row) if j != i)
            total += (math.log(weighted) - row[i]) / n
    return total


@pytest.mark.parametrize("betas", [(0.0, 0.0), (0.15, 0.15), (1.0, 0.3)])
@pytest.mark.parametrize("n", [2, 8])
def test_equals_double_loop(unit_rows, n, betas):
    image, text = unit_rows(n, 5, 0), unit_rows(n, 5, 1)
    expected = naive(image, text, 1 / 0.6, betas)
    assert dhn_nce(image, text, 1 / 0.6, *betas).item() == pytest.approx(expected, abs=1e-12)
    assert dhn_nce(image, text, 1 / 0.6, *betas, detach_weights=True).item() == pytest.approx(expected, abs=1e-12)


def test_without_hardness_it_is_info_loob(unit_rows):
    image, text = unit_rows(9, 5, 0), unit_rows(9, 5, 1)
    expected = 14.0 * (info_loob(image, text, 14.0) + info_loob(text, image, 14.0))
    assert dhn_nce(image, text, 14.0, 0.0, 0.0).item() == pytest.approx(expected.item(), abs=1e-12)


@pytest.mark.parametrize("detach", [False, True])
def test_pull_on_every_match_is_exactly_two_over_n(detach):
    """With texts the identity, image row i is row i of the logits: its diagonal gradient is dL/dS_ii."""
    logits = torch.randn(6, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(0)).requires_grad_()
    dhn_nce(logits, torch.eye(6, dtype=torch.float64), 1.0, 0.15, 0.4, detach_weights=detach).backward()
    assert torch.allclose(logits.grad.diagonal(), torch.full((6,), -2 / 6, dtype=torch.float64), atol=1e-12)


def test_detached_weights_attract_no_negative():
    logits = 20 * torch.randn(8, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    unmatched = ~torch.eye(8, dtype=torch.bool)
    attracted = {}
    for detach in (False, True):
        rows = logits.clone().requires_grad_()
        dhn_nce(rows, torch.eye(8, dtype=torch.float64), 1.0, 1.0, 1.0, detach_weights=detach).backward()
        attracted[detach] = int((rows.grad[unmatched] < -1e-12).sum())
    assert attracted[True] == 0
    assert attracted[False] > 0


def test_aligned_pairs_are_finite_and_a_single_pair_is_refused():
    rows = torch.eye(4, dtype=torch.float64)
    assert math.isfinite(dhn_nce(rows, rows, 1 / 0.07, 0.15, 0.15).item())
    with pytest.raises(ValueError, match="at least 2 pairs"):
        dhn_nce(rows[:1], rows[:1], 1.0, 0.15, 0.15)
