"""The augmentations of SimCLR's figure 4, each on one picture, with its strength given.

Chen et al., SimCLR, 2020, https://arxiv.org/abs/2002.05709, figure 4 and appendix A. Pixels are 0 to 1.
SciPy is imported when a picture is changed: the window lists these charts as it starts.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from jaxtyping import Float

Picture = Float[np.ndarray, "h w 3"]
LUMA: Final = np.array([0.299, 0.587, 0.114])


def crop_and_resize(picture: Picture, left: float, top: float, width: float, height: float) -> Picture:
    """Return a part of the picture, given in shares of its sides, in the picture's size, by straight lines."""
    from scipy import ndimage

    rows, columns, _ = picture.shape
    down = (top + height * (np.arange(rows) + 0.5) / rows) * rows - 0.5
    across = (left + width * (np.arange(columns) + 0.5) / columns) * columns - 0.5
    grid = np.meshgrid(down, across, indexing="ij")
    channels = [ndimage.map_coordinates(picture[..., k], grid, order=1, mode="nearest") for k in range(3)]
    return np.stack(channels, axis=-1)


def mirrored(picture: Picture) -> Picture:
    """Return the picture with left and right exchanged."""
    return picture[:, ::-1]


def without_color(picture: Picture) -> Picture:
    """Return the luma of each pixel in all channels."""
    return np.repeat((picture @ LUMA)[..., None], 3, axis=-1)


def jittered(picture: Picture, brightness: float, contrast: float, saturation: float, hue: float) -> Picture:
    """Return the picture with brightness, contrast and saturation multiplied and the hue turned.

    Contrast is about the mean luma, saturation about that of each pixel; the hue is a share of the circle of hues.
    """
    picture = np.clip(picture * brightness, 0, 1)
    middle = (picture @ LUMA).mean()
    picture = np.clip(middle + contrast * (picture - middle), 0, 1)
    gray = (picture @ LUMA)[..., None]
    return np.clip(gray + saturation * (picture - gray) @ _hue_turn(hue).T, 0, 1)


def cut_out(picture: Picture, side: float, down: float, across: float, color: Float[np.ndarray, 3]) -> Picture:
    """Return the picture with a square of a color; side and center are shares of the picture's sides."""
    rows, columns, _ = picture.shape
    erased = np.abs(np.arange(rows) - rows * down)[:, None] < side * rows / 2
    erased = erased & (np.abs(np.arange(columns) - columns * across) < side * columns / 2)
    return np.where(erased[..., None], color, picture)


def noisy(picture: Picture, deviation: float, generator: np.random.Generator) -> Picture:
    """Return the picture with Gaussian noise, clipped to 0 to 1."""
    return np.clip(picture + deviation * generator.standard_normal(picture.shape), 0, 1)


def blurred(picture: Picture, sigma: float) -> Picture:
    """Return the picture blurred with a Gaussian of `sigma` pixels; the kernel is a tenth of the side."""
    from scipy import ndimage

    reach = max(1, round(min(picture.shape[:2]) / 20))
    return ndimage.gaussian_filter(picture, (max(sigma, 1e-2),) * 2 + (0,), radius=(reach, reach, 0), mode="nearest")


def edges(picture: Picture) -> Picture:
    """Return the length of the luma's gradient by Sobel's kernels / 4 in all channels, at most 1."""
    from scipy import ndimage

    gray = picture @ LUMA
    length = np.hypot(*(ndimage.sobel(gray, axis, mode="nearest") for axis in (0, 1))) / 4
    return np.repeat(np.minimum(length, 1)[..., None], 3, axis=-1)


def _hue_turn(share: float) -> Float[np.ndarray, "3 3"]:
    """Return the rotation about the axis of grays by a share of the circle."""
    angle, axis = 2 * math.pi * share, np.full(3, 1 / math.sqrt(3))
    cross = np.array([[0, -1, 1], [1, 0, -1], [-1, 1, 0]]) / math.sqrt(3)
    return math.cos(angle) * np.eye(3) + math.sin(angle) * cross + (1 - math.cos(angle)) * np.outer(axis, axis)
