"""Unit rows for the losses, in float64."""

from collections.abc import Callable

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
    """Return the 3 x 3 example of the source documents, raw (rows not unit)."""
    image = torch.tensor([[0.8, 0.2, 0.1], [0.1, 0.9, 0.2], [0.3, 0.1, 0.9]], dtype=torch.float64)
    text = torch.tensor([[0.9, 0.1, 0.0], [0.2, 0.8, 0.0], [0.1, 0.2, 0.9]], dtype=torch.float64)
    return image, text


@pytest.fixture
def over_views():
    """Return the double loop over pairs that SimCLR's three objectives share."""

    def naive(view_a: Tensor, view_b: Tensor, per_anchor: Callable[[float, list[float]], float]) -> float:
        """Return the mean over 2n views of `per_anchor(cosine with the partner, cosines with other images' views)`."""
        views = view_a.tolist() + view_b.tolist()
        n, total = len(view_a), 0.0
        for i, u in enumerate(views):
            cosines = [sum(p * q for p, q in zip(u, v, strict=True)) for v in views]
            partner = (i + n) % (2 * n)
            total += per_anchor(cosines[partner], [c for k, c in enumerate(cosines) if k not in (i, partner)])
        return total / (2 * n)

    return naive


@pytest.fixture
def four():
    """Return predictions of two views, then their targets; rows of any length."""
    generator = torch.Generator().manual_seed(0)
    return [torch.randn(5, 4, generator=generator, dtype=torch.float64) for _ in range(4)]
