"""Random crops on the training device, independent of the batch a pair is in."""

from __future__ import annotations

from typing import Final

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, Int, UInt8
from torch import Tensor

from trainer import device

MEAN: Final = (0.48145466, 0.4578275, 0.40821073)
DEVIATION: Final = (0.26862954, 0.26130258, 0.27577711)
"""Of CLIP's training images per channel, as every CLIP model normalizes them."""

_RATIO: Final = 1.05
"""Largest width to height of a crop; more would turn circles to ellipses. Never mirrored: left would become right."""


def normalized(images: UInt8[Tensor, "n h w 3"]) -> Float[Tensor, "n 3 h w"]:
    """Return whole images as tower input: channels first, zero mean, unit standard deviation."""
    channels = images.permute(0, 3, 1, 2).contiguous().float()
    # In place on contiguous channels: ten times as fast as broadcasting over an innermost axis of 3.
    for channel, (mean, deviation) in enumerate(zip(MEAN, DEVIATION, strict=True)):
        channels[:, channel].mul_(1 / (255 * deviation)).sub_(mean / deviation)
    return channels


def random_crops(
    images: UInt8[Tensor, "n h w 3"],
    indices: Int[np.ndarray, " n"],
    seed: int,
    epoch: int,
    scale: float,
) -> Float[Tensor, "n 3 h w"]:
    """Return each image randomly cropped, resized back and normalized as by `normalized`.

    The crop of a pair depends on (seed, epoch, its index) only.

    Args:
        images: The batch, on the device that trains.
        indices: Row of each image in the training split.
        epoch: Counted from 0.
        scale: Smallest share of the area that a crop keeps, at most 1; 1 keeps the whole image.
    """
    uncropped = normalized(images)
    if scale >= 1:
        return uncropped
    grid = sampling_grid(_crops(np.asarray(indices), seed=seed, epoch=epoch, scale=scale), uncropped)
    return F.grid_sample(uncropped, grid, mode="bilinear", padding_mode="border", align_corners=False)


def sampling_grid(crops: Float[np.ndarray, "4 n"], images: Float[Tensor, "n 3 h w"]) -> Float[Tensor, "n h w 2"]:
    """Return the `grid_sample` coordinates of each crop's pixels; `affine_grid` takes three times as long."""
    n, _, height, width = images.shape
    across_size, across_middle, down_size, down_middle = device.sent(crops, images.device)[..., None]
    grid = torch.empty((n, height, width, 2), device=images.device)
    grid[..., 0] = (_centers(width, images.device) * across_size + across_middle)[:, None, :]
    grid[..., 1] = (_centers(height, images.device) * down_size + down_middle)[:, :, None]
    return grid


def _centers(count: int, where: torch.device) -> Float[Tensor, " count"]:
    """Return the centers of `count` pixels that together span -1 to 1."""
    return (2 * torch.arange(count, device=where) + 1) / count - 1


def _crops(indices: Int[np.ndarray, " n"], *, seed: int, epoch: int, scale: float) -> Float[np.ndarray, "4 n"]:
    """Return width, horizontal center, height and vertical center of each crop, in an image spanning -1 to 1."""
    return placed(uniform(indices, seed=seed, epoch=epoch), scale=scale, ratio=_RATIO)


def placed(drawn: Float[np.ndarray, "4 n"], *, scale: float, ratio: float) -> Float[np.ndarray, "4 n"]:
    """Return the crops given by four numbers each in [0, 1)."""
    area, shape, across, down = drawn
    side = np.sqrt(scale + (1 - scale) * area)
    stretch = np.exp((shape - 0.5) * np.log(ratio))
    width, height = np.minimum(side * stretch, 1), np.minimum(side / stretch, 1)
    crops = [width, (2 * across - 1) * (1 - width), height, (2 * down - 1) * (1 - height)]
    return np.stack(crops).astype(np.float32)


def uniform(
    indices: Int[np.ndarray, " n"], *, seed: int, epoch: int, purpose: tuple[int, ...] = (), count: int = 4
) -> Float[np.ndarray, "count n"]:
    """Return `count` numbers in [0, 1) per index: SplitMix64 of a counter, without a generator per pair."""
    start = np.random.SeedSequence([seed, epoch, *purpose]).generate_state(1, np.uint64)
    offsets = np.arange(count, dtype=np.uint64)[:, None]
    counter = (np.asarray(indices).astype(np.uint64)[None] * np.uint64(count) + offsets) + start
    mixed = counter * np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return (mixed ^ (mixed >> np.uint64(31))) / 2.0**64
