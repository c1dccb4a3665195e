import math

import pytest
import torch
from open_clip.loss import SigLipLoss

from trainer.losses import siglip


def naive(image, text, scale, bias) -> float:
    total = 0.0
    for i, x in enumerate(image.tolist()):
        for j, y in enumerate(text.tolist()):
            logit = scale * sum(a * b for a, b in zip(x, y, strict=True)) + bias
            total += math.log1p(math.exp(-logit if i == j else logit))
    return total / len(image)


@pytest.mark.parametrize("n", [1, 2, 8])
def test_equals_double_loop(unit_rows, n):
    image, text = unit_rows(n, 5, 0), unit_rows(n, 5, 1)
    assert siglip(image, text, 10.0, -2.7).item() == pytest.approx(naive(image, text, 10.0, -2.7), abs=1e-12)


@pytest.mark.parametrize("n", [1, 7, 64])
def test_equals_open_clip(unit_rows, n):
    image, text = unit_rows(n, 16, 0), unit_rows(n, 16, 1)
    theirs = SigLipLoss()(image, text, torch.tensor(10.0), torch.tensor(-10.0))
    assert siglip(image, text, 10.0, -10.0).item() == pytest.approx(theirs.item(), rel=1e-12)


def test_gradient_reaches_scale_and_bias(unit_rows):
    arguments = [unit_rows(4, 3, 0), unit_rows(4, 3, 1), torch.tensor(5.0).double(), torch.tensor(-2.0).double()]
    assert torch.autograd.gradcheck(siglip, [a.requires_grad_() for a in arguments])
