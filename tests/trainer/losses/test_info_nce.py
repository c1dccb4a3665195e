import math

import pytest
import torch
import torch.nn.functional as F
from open_clip.loss import ClipLoss

from trainer.losses import info_nce, info_nce_one_way


def naive(image, text, inv_tau) -> float:
    """Compute both cross-entropies, one exponential at a time."""
    n, total = len(image), 0.0
    for i in range(n):
        forward = sum(math.exp(inv_tau * float(image[i] @ text[j])) for j in range(n))
        backward = sum(math.exp(inv_tau * float(image[j] @ text[i])) for j in range(n))
        match = inv_tau * float(image[i] @ text[i])
        total += math.log(forward) - match + math.log(backward) - match
    return total / (2 * n)


@pytest.mark.parametrize(("n", "d", "inv_tau"), [(1, 4, 10.0), (2, 3, 1.0), (7, 5, 14.3), (16, 8, 100.0)])
def test_equals_double_loop(unit_rows, n, d, inv_tau):
    image, text = unit_rows(n, d, 0), unit_rows(n, d, 1)
    assert info_nce(image, text, inv_tau).item() == pytest.approx(naive(image, text, inv_tau), abs=1e-12)


def test_gradient(unit_rows):
    image, text = unit_rows(5, 4, 0).requires_grad_(), unit_rows(5, 4, 1).requires_grad_()
    inv_tau = torch.tensor(5.0, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(info_nce, (image, text, inv_tau))


def test_golden_values_of_the_toy_batch(toy):
    image, text = toy
    assert info_nce_one_way(image, text, 1.0).item() == pytest.approx(0.780475, abs=1e-6)
    assert info_nce_one_way(text, image, 1.0).item() == pytest.approx(0.779673, abs=1e-6)
    assert info_nce(image, text, 1.0).item() == pytest.approx(0.780074, abs=1e-6)
    cosine_image, cosine_text = F.normalize(image, dim=1), F.normalize(text, dim=1)
    assert info_nce(cosine_image, cosine_text, 1.0).item() == pytest.approx(0.712431, abs=1e-6)
    assert info_nce(cosine_image, cosine_text, 1 / 0.07).item() == pytest.approx(0.000438, abs=1e-6)


@pytest.mark.parametrize("n", [2, 64, 512])
def test_is_ln_n_when_all_cosines_are_equal(n):
    rows = torch.tensor([[1.0, 0.0]], dtype=torch.float64).repeat(n, 1)
    assert info_nce(rows, rows, 14.3).item() == pytest.approx(math.log(n), abs=1e-12)


@pytest.mark.parametrize("n", [1, 7, 64])
def test_equals_open_clip(unit_rows, n):
    image, text = unit_rows(n, 16, 2), unit_rows(n, 16, 3)
    theirs = ClipLoss()(image, text, logit_scale=torch.tensor(14.3, dtype=torch.float64))
    assert info_nce(image, text, 14.3).item() == pytest.approx(theirs.item(), abs=1e-14)
