"""The further augmentations of SimCLR's figure 4: quarter turns, Sobel edges, noise and cutout.

Chen et al., SimCLR, 2020, https://arxiv.org/abs/2002.05709. Numbers are drawn apart from those of the other
augmentations, by (seed, epoch, the image's index, view): views without these effects stay what they were.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from trainer import device
from trainer.data.augment import uniform

LUMA: Final = (0.299, 0.587, 0.114)
_PURPOSE: Final = 0xEFFE
_NOISE: Final = 0x01


@dataclass(frozen=True)
class ViewEffects:
    """Strength of the effects that are not crop, color or blur."""

    rotate: float = 0.0  # Share of the views that are turned by 90, 180 or 270 degrees.
    sobel: float = 0.0  # Share of the views of which the edges are seen alone.
    noise: float = 0.0  # Standard deviation of the Gaussian noise on pixels of 0 to 1.
    cutout: float = 0.0  # Side of the erased square as a share of the image's.

    def __bool__(self) -> bool:
        return any((self.rotate, self.sobel, self.noise, self.cutout))


@dataclass(frozen=True)
class ViewDraw:
    """Which view is drawn."""

    rows: Int[np.ndarray, " n"]  # Index of each image in the training split.
    seed: int
    epoch: int  # Counted from 0.
    view: int  # Which of the views of this epoch.

    def numbers(self, count: int, purpose: int = 0) -> Float[np.ndarray, "count n"]:
        """Return `count` numbers in [0, 1) for each image."""
        return uniform(self.rows, seed=self.seed, epoch=self.epoch, purpose=(_PURPOSE, self.view, purpose), count=count)


def changed(pixels: Float[Tensor, "n 3 h w"], effects: ViewEffects, drawn: ViewDraw) -> Float[Tensor, "n 3 h w"]:
    """Return pixels of 0 to 1 turned, as edges and with noise, in this order; each stays in 0 to 1."""
    numbers = device.sent(drawn.numbers(6).astype(np.float32), pixels.device)[..., None, None, None]
    if effects.rotate > 0:
        quarters = torch.where(numbers[0] < effects.rotate, 1 + (3 * numbers[1]).floor(), 0.0)
        pixels = rotated(pixels, quarters)
    if effects.sobel > 0:
        pixels = torch.where(numbers[2] < effects.sobel, sobel(pixels), pixels)
    if effects.noise > 0:
        pixels = (pixels + effects.noise * _normal(pixels, drawn)).clamp(0, 1)
    return pixels


def rotated(pixels: Float[Tensor, "n c h h"], quarters: Float[Tensor, "n 1 1 1"]) -> Float[Tensor, "n c h h"]:
    """Return each square image turned by its number of quarters, 0 to 3, against the clock."""
    turns = [pixels, *(torch.rot90(pixels, quarter, (2, 3)) for quarter in (1, 2, 3))]
    for quarter in (1, 2, 3):
        # No mask as an index: it would make a graphics card wait.
        pixels = torch.where(quarters == quarter, turns[quarter], pixels)
    return pixels


def sobel(pixels: Float[Tensor, "n 3 h w"]) -> Float[Tensor, "n 3 h w"]:
    """Return the length of the gradient of the luma by Sobel's kernels / 4, in each channel, at most 1."""
    weights = device.sent(torch.tensor(LUMA, dtype=pixels.dtype), pixels.device)[:, None, None]
    gray = F.pad((pixels * weights).sum(dim=1, keepdim=True), [1] * 4, mode="replicate")
    kernels = torch.tensor([[1.0, 2, 1], [-1, 0, 1]], dtype=pixels.dtype)
    smooth, difference = device.sent(kernels, pixels.device) / 4
    across = F.conv2d(gray, torch.outer(4 * smooth, difference)[None, None])
    down = F.conv2d(gray, torch.outer(difference, 4 * smooth)[None, None])
    return torch.hypot(across, down).clamp(max=1).expand_as(pixels)


def cut_out(normalized: Float[Tensor, "n 3 h w"], effects: ViewEffects, drawn: ViewDraw) -> Float[Tensor, "n 3 h w"]:
    """Return normalized images with a square of zeros, the mean color, around a uniform center.

    The square may lie partly outside: DeVries and Taylor, Cutout, 2017, https://arxiv.org/abs/1708.04552.
    """
    if effects.cutout <= 0:
        return normalized
    _, _, height, width = normalized.shape
    centers = device.sent(drawn.numbers(6)[4:].astype(np.float32), normalized.device)[..., None]
    rows = (torch.arange(height, device=normalized.device) - height * centers[0]).abs() < effects.cutout * height / 2
    columns = (torch.arange(width, device=normalized.device) - width * centers[1]).abs() < effects.cutout * width / 2
    erased = rows[:, None, :, None] & columns[:, None, None, :]
    return normalized.masked_fill(erased, 0.0)


def _normal(pixels: Float[Tensor, "n c h w"], drawn: ViewDraw) -> Float[Tensor, "n c h w"]:
    """Return standard normal numbers, by Box and Muller from two uniform ones each."""
    _, channels, height, width = pixels.shape
    first, second = np.split(drawn.numbers(2 * channels * height * width, _NOISE), 2)
    normal = np.sqrt(-2 * np.log1p(-first)) * np.cos(2 * math.pi * second)
    return device.sent(normal.T.astype(np.float32), pixels.device).view(pixels.shape)
