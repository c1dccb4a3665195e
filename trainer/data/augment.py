"""Random crops on the training device, the same for a pair whatever batch it comes in."""

from __future__ import annotations

from typing import Final

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, Int, UInt8
from torch import Tensor

MEAN: Final = (0.48145466, 0.4578275, 0.40821073)
DEVIATION: Final = (0.26862954, 0.26130258, 0.27577711)
"""Of CLIP's training images per channel, as every CLIP model normalises them."""

_RATIO: Final = 1.05
"""Largest width to height of a crop; more would turn circles to ellipses. Never mirrored: left would become right."""


def normalised(images: UInt8[Tensor, "n h w 3"]) -> Float[Tensor, "n 3 h w"]:
    """Whole images as a tower takes them: channels first (in memory last), zero mean, unit deviation."""
    factor = torch.tensor([1 / (255 * d) for d in DEVIATION], device=images.device)
    offset = torch.tensor([-m / d for m, d in zip(MEAN, DEVIATION, strict=True)], device=images.device)
    return torch.addcmul(offset, images.float(), factor).permute(0, 3, 1, 2)


def random_crops(
    images: UInt8[Tensor, "n h w 3"],
    indices: Int[np.ndarray, " n"],
    seed: int,
    epoch: int,
    scale: float,
) -> Float[Tensor, "n 3 h w"]:
    """Each image cropped at random and resized back, normalised as by `normalised`.

    The crop of a pair depends on (seed, epoch, its index) only.

    Args:
        images: The batch, on the device that trains.
        indices: Row of each image in the training split.
        seed: Of the run.
        epoch: Counted from 0.
        scale: Smallest share of the area that a crop keeps, at most 1; 1 keeps the whole image.
    """
    whole = normalised(images)
    if scale >= 1:
        return whole
    theta = torch.from_numpy(_crops(np.asarray(indices), seed=seed, epoch=epoch, scale=scale)).to(whole.device)
    grid = F.affine_grid(theta, list(whole.shape), align_corners=False)
    return F.grid_sample(whole, grid, mode="bilinear", padding_mode="border", align_corners=False)


def _crops(indices: Int[np.ndarray, " n"], *, seed: int, epoch: int, scale: float) -> Float[np.ndarray, "n 2 3"]:
    """Affine map of each crop in the coordinates of `affine_grid`, where the image spans -1 to 1."""
    area, ratio, across, down = _uniform(indices, seed=seed, epoch=epoch)
    side = np.sqrt(scale + (1 - scale) * area)
    stretch = np.exp((ratio - 0.5) * np.log(_RATIO))
    width, height = np.minimum(side * stretch, 1), np.minimum(side / stretch, 1)
    theta = np.zeros((len(indices), 2, 3), np.float32)
    theta[:, 0, 0], theta[:, 0, 2] = width, (2 * across - 1) * (1 - width)
    theta[:, 1, 1], theta[:, 1, 2] = height, (2 * down - 1) * (1 - height)
    return theta


def _uniform(indices: Int[np.ndarray, " n"], *, seed: int, epoch: int) -> Float[np.ndarray, "4 n"]:
    """Four numbers in [0, 1) for each index: SplitMix64 of a counter, so no generator is made for a pair."""
    start = np.random.SeedSequence([seed, epoch]).generate_state(1, np.uint64)
    counter = (indices.astype(np.uint64)[None] * np.uint64(4) + np.arange(4, dtype=np.uint64)[:, None]) + start
    mixed = counter * np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return (mixed ^ (mixed >> np.uint64(31))) / 2.0**64
