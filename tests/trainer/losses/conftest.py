"""Unit rows to feed the losses, in float64."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor


@pytest.fixture
def unit_rows():
    def make(n: int, d: int, seed: int) -> Tensor:
        generator = torch.Generator().manual_seed(seed)
        return F.normalize(torch.randn(n, d, generator=generator, dtype=torch.float64), dim=1)

    return make


@pytest.fixture
def toy():
    """The 3 x 3 example of the source documents, raw (rows not unit)."""
    image = torch.tensor([[0.8, 0.2, 0.1], [0.1, 0.9, 0.2], [0.3, 0.1, 0.9]], dtype=torch.float64)
    text = torch.tensor([[0.9, 0.1, 0.0], [0.2, 0.8, 0.0], [0.1, 0.2, 0.9]], dtype=torch.float64)
    return image, text
