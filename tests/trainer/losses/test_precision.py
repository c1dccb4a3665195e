"""The limits of float32 for the gradient of CLOOB, as `full_precision` documents."""

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from trainer.losses import cloob, info_nce

PAIRS, WIDTH = 128, 64


def cones(cosine: float) -> tuple[Tensor, Tensor]:
    """Return matched unit rows of two modalities, each with this mean cosine within itself."""
    generator = torch.Generator().manual_seed(0)

    def draw(*shape: int) -> Tensor:
        return F.normalize(torch.randn(*shape, generator=generator, dtype=torch.float64), dim=-1)

    shared = draw(PAIRS, WIDTH)
    rows = []
    for _ in range(2):
        axis, own = draw(WIDTH), F.normalize(shared + draw(PAIRS, WIDTH), dim=1)
        rows.append(F.normalize(cosine**0.5 * axis + (1 - cosine) ** 0.5 * own, dim=1).float())
    return rows[0], rows[1]


def tangential(loss: Callable[..., Tensor], image: Tensor, text: Tensor) -> Tensor:
    leaves = tuple(rows.clone().requires_grad_() for rows in (image, text))
    found = torch.autograd.grad(loss(*leaves), leaves)
    parts = [g - (g * rows).sum(dim=1, keepdim=True) * rows for g, rows in zip(found, (image, text), strict=True)]
    return torch.cat(parts).double()


def error(loss: Callable[..., Tensor], cosine: float) -> float:
    """Return the error of the float32 gradient, relative to float64."""
    rows = cones(cosine)
    exact = tangential(loss, *(part.double() for part in rows))
    return ((tangential(loss, *rows) - exact).norm() / exact.norm()).item()


@pytest.mark.parametrize(("cosine", "low", "high"), [(0.0, 0, 2e-6), (0.918, 1e-5, 3e-4), (0.99, 0.005, 0.2)])
def test_the_gradient_of_cloob_is_exact_until_the_cones_are_narrow(cosine: float, low: float, high: float) -> None:
    assert low <= error(lambda image, text: cloob(image, text, 30.0, 8.0), cosine) <= high


def test_in_the_narrowest_cones_nothing_of_it_is_left_and_that_of_clip_is_exact() -> None:
    assert error(lambda image, text: cloob(image, text, 30.0, 8.0), 0.9975) > 0.3
    assert error(lambda image, text: info_nce(image, text, 14.0), 0.9975) < 1e-5
