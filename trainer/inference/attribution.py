"""Attribution of a caption's score to parts of an image: by occlusion, and by the gradient."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Final

import numpy as np
import torch
from jaxtyping import Float, UInt8
from torch import Tensor

from trainer.analysis.progress import Progress, silent

Score = Callable[[UInt8[np.ndarray, "n s s 3"]], Float[np.ndarray, " n"]]
"""How well each of some images fits what is asked: its cosine with the caption."""

COVER: Final = 2
"""Grid size of the patch that covers the image: it moves by one cell, so each cell is covered up to four times."""
AT_ONCE: Final = 64


def edges(size: int, grid: int) -> list[int]:
    """Return the pixel boundaries of `grid` cells in an image of `size` pixels."""
    return np.linspace(0, size, grid + 1).round().astype(int).tolist()


def occlusion(
    image: UInt8[np.ndarray, "s s 3"], score: Score, *, grid: int, progress: Progress = silent
) -> Float[np.ndarray, "grid grid"]:
    """Return the decrease of the score when a part is covered, in its unit; positive: the part helps.

    A patch of `COVER` x `COVER` cells, cut at the border, in the image's mean color is laid over every place; a cell
    has the mean fall of all patches that cover it (Zeiler and Fergus, 2014, https://arxiv.org/abs/1311.2901).
    """
    at = edges(len(image), grid)
    corners = [(row, column) for row in range(1 - COVER, grid) for column in range(1 - COVER, grid)]
    uncovered = float(score(image[None])[0])
    total, times = np.zeros((grid, grid)), np.zeros((grid, grid))
    mean = np.rint(image.reshape(-1, 3).mean(axis=0)).astype(np.uint8)
    for start in range(0, len(corners), AT_ONCE):
        spans = [tuple(_span(cell, grid) for cell in pair) for pair in corners[start : start + AT_ONCE]]
        covered = np.repeat(image[None], len(spans), axis=0)
        for picture, (down, across) in zip(covered, spans):
            picture[at[down.start] : at[down.stop], at[across.start] : at[across.stop]] = mean
        for (down, across), fitting in zip(spans, score(covered).tolist()):
            total[down, across] += uncovered - fitting
            times[down, across] += 1
        progress(min(1.0, (start + AT_ONCE) / len(corners)), "covering parts of the image")
    return total / times


def pixel_gradient(
    pixels: Float[Tensor, "3 s s"], score: Callable[[Float[Tensor, "1 3 s s"]], Float[Tensor, " 1"]]
) -> Float[Tensor, "3 s s"]:
    """Return the derivative of the score by every pixel value."""
    with torch.enable_grad():
        leaf = pixels.detach().clone()[None].requires_grad_(True)
        return torch.autograd.grad(score(leaf).sum(), leaf)[0][0]


def gradient(
    pixels: Float[Tensor, "3 s s"],
    score: Callable[[Float[Tensor, "1 3 s s"]], Float[Tensor, " 1"]],
    *,
    grid: int,
    steps: int = 24,
    progress: Progress = silent,
) -> Float[np.ndarray, "grid grid"]:
    """Return integrated gradients from the mean color, summed over each cell, in the score's unit.

    The cells add up to the score of the image minus that of its mean color, but for the rule's error (midpoint,
    `steps` points): Sundararajan, Taly, Yan, 2017, https://arxiv.org/abs/1703.01365.
    """
    start = pixels.mean(dim=(1, 2), keepdim=True).expand_as(pixels)
    total = torch.zeros_like(pixels)
    for step in range(steps):
        total += pixel_gradient(start + (step + 0.5) / steps * (pixels - start), score)
        progress((step + 1) / steps, "following the gradient")
    parts = ((pixels - start) * total / steps).sum(dim=0).double().cpu().numpy()
    return np.array([[parts[down, across].sum() for across in _cells(pixels, grid)] for down in _cells(pixels, grid)])


def _cells(pixels: Tensor, grid: int) -> Iterator[slice]:
    at = edges(pixels.shape[-1], grid)
    return (slice(*pair) for pair in itertools.pairwise(at))


def _span(cell: int, grid: int) -> slice:
    return slice(max(cell, 0), min(cell + COVER, grid))
