"""Augmented views of images: crop, flip, color, blur and further effects, in batches on the training device.

Chen et al., SimCLR, 2020, https://arxiv.org/abs/2002.05709, appendix A. A view depends on (seed, epoch, the
image's index, view) only, so a resumed run sees what it would have seen.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, Int, UInt8
from torch import Tensor

from trainer import device
from trainer.data.augment import DEVIATION, MEAN, placed, sampling_grid, uniform
from trainer.data.view_effects import LUMA, ViewDraw, ViewEffects, changed, cut_out

_PURPOSE: Final = 0x71E5
_TURN: Final = 0x70
"""Purpose of the numbers of rotations, which are drawn apart: views without rotation stay what they were."""
_RATIO: Final = 4 / 3
_SIGMA: Final = (0.1, 2.0)
"""Widths of the blur in pixels, as in the paper."""
JITTER: Final = 0.8
"""Change of brightness, contrast and saturation at a strength of 1."""
_SHIFT: Final = 0.1
_SCALE: Final = 0.05
"""Of a turned view: by up to which share of a side it is moved, and of its size it is scaled."""


@dataclass(frozen=True)
class ViewStrength:
    """The strength of the augmentation."""

    smallest_crop: float  # Smallest share of the area a crop keeps.
    color: float  # Strength of the jitter, 0 to 1; at 1 brightness, contrast and saturation change by up to 80 %.
    gray: float  # Share of the views without color.
    blur: float  # Share of the views that are blurred.
    flip: bool  # Whether half of the views are mirrored.
    # Largest rotation in degrees; a turned view is also moved by up to a tenth and scaled by up to 5 %.
    turn: float = 0.0
    tint: bool = True  # Whether the jitter changes saturation and hue, not brightness and contrast alone.
    effects: ViewEffects = field(default_factory=ViewEffects)  # Quarter turns, edges, noise and cutout.


def augmented_view(
    images: UInt8[Tensor, "n h w 3"],
    rows: Int[np.ndarray, " n"],
    look: ViewStrength,
    *,
    seed: int,
    epoch: int,
    view: int,
) -> Float[Tensor, "n 3 h w"]:
    """Return one view of each image, normalized like all images.

    Args:
        images: The batch, on the device that trains.
        rows: Place of each image in the training split.
        look: How strongly views differ.
        epoch: Counted from 0.
        view: Which of the views of this epoch.
    """
    drawn = uniform(rows, seed=seed, epoch=epoch, purpose=(_PURPOSE, view), count=12)
    numbers = device.sent(drawn[4:].astype(np.float32), images.device)
    pixels = images.permute(0, 3, 1, 2).contiguous().float() / 255
    crops = placed(drawn[:4], scale=look.smallest_crop, ratio=_RATIO)
    if look.flip:
        crops[0] *= np.where(drawn[4] < 0.5, -1, 1)
    grid = sampling_grid(crops, pixels)
    if look.turn > 0:
        grid = _turned(grid, uniform(rows, seed=seed, epoch=epoch, purpose=(_PURPOSE, view, _TURN)), look.turn)
    pixels = F.grid_sample(pixels, grid, mode="bilinear", padding_mode="border", align_corners=False)
    pixels = _colored(pixels, numbers[1:6], look)
    if look.blur > 0:
        low, high = _SIGMA
        sigma = torch.where(numbers[6] < look.blur, low + (high - low) * numbers[7], 1e-2)
        pixels = _blurred(pixels, sigma)
    further = ViewDraw(rows, seed, epoch, view)
    if look.effects:
        pixels = changed(pixels, look.effects, further)
    mean, deviation = (
        device.sent(torch.tensor(statistic), pixels.device)[:, None, None] for statistic in (MEAN, DEVIATION)
    )
    return cut_out((pixels - mean) / deviation, look.effects, further)


def _turned(
    grid: Float[Tensor, "n h w 2"], drawn: Float[np.ndarray, "4 n"], degrees: float
) -> Float[Tensor, "n h w 2"]:
    """Rotate, scale and shift the sampling grid of each image.

    The affine transformation of Zhang et al., ConVIRT, 2020, https://arxiv.org/abs/2010.00747, section 4: rotation in
    [-20, 20] degrees, translation in [-0.1, 0.1] of a side, scale in [0.95, 1.05].
    """
    signed = device.sent((2 * drawn - 1).astype(np.float32), grid.device)
    angle, scale = math.radians(degrees) * signed[0], 1 + _SCALE * signed[3]
    cosine, sine = angle.cos() * scale, angle.sin() * scale
    turn = torch.stack([cosine, sine, -sine, cosine], dim=1).view(-1, 2, 2)
    # An image spans 2, from -1 to 1.
    return torch.einsum("nhwk,nkl->nhwl", grid, turn) + 2 * _SHIFT * signed[1:3].T[:, None, None, :]


def _colored(
    pixels: Float[Tensor, "n 3 h w"], numbers: Float[Tensor, "5 n"], look: ViewStrength
) -> Float[Tensor, "n 3 h w"]:
    """Change brightness, contrast, saturation and hue by up to `look.color`, then make some images gray."""
    bright, contrast, saturation = (1 + JITTER * look.color * (2 * numbers[:3] - 1))[:, :, None, None, None]
    luma = device.sent(torch.tensor(LUMA), pixels.device)[:, None, None]
    pixels = (pixels * bright).clamp(0, 1)
    middle = (pixels * luma).sum(dim=1, keepdim=True).mean(dim=(2, 3), keepdim=True)
    pixels = (middle + contrast * (pixels - middle)).clamp(0, 1)
    if not look.tint and look.gray == 0:
        return pixels
    gray = (pixels * luma).sum(dim=1, keepdim=True)
    turned = torch.einsum("nij,njhw->nihw", _hue_turns(0.2 * look.color * (2 * numbers[3] - 1)), pixels - gray)
    # A gray view is one of saturation 0.
    saturation = saturation * (numbers[4] >= look.gray)[:, None, None, None]
    return (gray + saturation * turned).clamp(0, 1)


def _hue_turns(turns: Float[Tensor, " n"]) -> Float[Tensor, "n 3 3"]:
    """Return color rotations about the gray axis by a share of the circle."""
    angle = 2 * math.pi * turns
    cosine, sine = angle.cos()[:, None, None], angle.sin()[:, None, None]
    axis = torch.full((3,), 1 / math.sqrt(3), device=turns.device)
    cross = device.sent(torch.tensor([[0.0, -1, 1], [1, 0, -1], [-1, 1, 0]]), turns.device) / math.sqrt(3)
    return cosine * torch.eye(3, device=turns.device) + sine * cross + (1 - cosine) * torch.outer(axis, axis)


def _blurred(pixels: Float[Tensor, "n 3 h w"], sigma: Float[Tensor, " n"]) -> Float[Tensor, "n 3 h w"]:
    """Blur each image with its own Gaussian; as in the paper, the kernel is a tenth of the side."""
    n, _, height, width = pixels.shape
    reach = max(1, round(min(height, width) / 20))
    offsets = torch.arange(-reach, reach + 1, device=pixels.device)
    kernel = torch.exp(-0.5 * (offsets / sigma[:, None]) ** 2)
    kernel = (kernel / kernel.sum(dim=1, keepdim=True)).repeat_interleave(3, dim=0)
    flat = F.pad(pixels.reshape(1, 3 * n, height, width), [reach] * 4, mode="replicate")
    flat = F.conv2d(flat, kernel[:, None, None, :], groups=3 * n)
    return F.conv2d(flat, kernel[:, None, :, None], groups=3 * n).view(n, 3, height, width)
