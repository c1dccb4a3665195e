"""A published model's preprocessing: resizing, then cropping or padding, as in open_clip."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final, Literal, get_args

import numpy as np
from jaxtyping import UInt8
from PIL import Image, ImageOps

ResizeMode = Literal["shortest", "squash", "longest"]
Interpolation = Literal["bicubic", "bilinear", "lanczos"]

RESIZE_MODES: Final[tuple[str, ...]] = get_args(ResizeMode)
INTERPOLATIONS: Final[tuple[str, ...]] = get_args(Interpolation)

_MOST_PIXELS: Final = 64_000_000
"""Of a picture that is resized as a whole: one a pixel high would take gigabytes by its shorter side."""


@dataclass(frozen=True)
class Preprocessing:
    """A published model's steps from a decoded image to image tower input."""

    size: int  # Side of the square, in pixels.
    # "shortest": the shorter side becomes `size` and the middle is cut out; "squash": both sides become `size`;
    # "longest": the longer side becomes `size` and the rest is filled.
    resize_mode: ResizeMode
    interpolation: Interpolation  # Pillow's filter; with "squash" likewise.
    mean: tuple[float, float, float]  # Of each channel of pixels between 0 and 1, which the tower subtracts.
    std: tuple[float, float, float]  # What it divides by then.
    fill_color: int = 0  # Gray level around a picture with "longest".
    # Of the shorter side with "shortest", before the middle is cut out, in pixels; None: `size`.
    resize_size: int | None = None

    @property
    def name(self) -> str:
        """The cache name of its pixels; color normalization happens later."""
        fill = f"-{self.fill_color}" if self.resize_mode == "longest" else f"-{self.resize_size or ''}".rstrip("-")
        return f"{self.resize_mode}-{self.interpolation}{fill}"

    def pixels(self, image: Image.Image) -> UInt8[np.ndarray, "size size 3"]:
        """Return the square of a decoded image, bitwise equal to open_clip's transform before `ToTensor`.

        Colors become RGB at the end, as there: print colors and palettes are resized as they are. Of a picture so
        long and thin that it cannot be resized as a whole the middle is resized alone, which differs by rounding.
        """
        side, resample = self.size, Image.Resampling[self.interpolation.upper()]
        if self.resize_mode == "squash":
            return _in_rgb(_resized(image, side, side, resample))
        width, height = image.size
        if self.resize_mode == "longest":
            ratio = max(width / side, height / side)
            # Python rounds halves to even as open_clip does; Pillow makes nothing of no pixels.
            within = _resized(image, max(1, round(width / ratio)), max(1, round(height / ratio)), resample)
            across, down = ((side - length) // 2 for length in within.size)
            filled = ImageOps.expand(
                within,
                (across, down, side - within.width - across, side - within.height - down),
                self.fill_color if len(within.getbands()) == 1 else (self.fill_color,) * len(within.getbands()),
            )
            return _in_rgb(filled)
        short, resized = min(width, height), self.resize_size or side
        wide, high = (resized if length == short else int(resized * length / short) for length in (width, height))
        if wide * high > _MOST_PIXELS:
            return _in_rgb(image.resize((side, side), resample, _middle(image, side / resized)))
        left, top = round((wide - side) / 2.0), round((high - side) / 2.0)
        return _in_rgb(_resized(image, wide, high, resample).crop((left, top, left + side, top + side)))

    def to_json(self) -> dict[str, Any]:
        """Return the input of `from_json`, in JSON types."""
        return asdict(self)

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Preprocessing:
        """Return the preprocessing saved by `to_json`."""
        return cls(**{**values, "mean": tuple(values["mean"]), "std": tuple(values["std"])})


def _resized(image: Image.Image, width: int, height: int, resample: Image.Resampling) -> Image.Image:
    return image if image.size == (width, height) else image.resize((width, height), resample)


def _in_rgb(image: Image.Image) -> UInt8[np.ndarray, "size size 3"]:
    return np.array(image.convert("RGB"))


def _middle(image: Image.Image, share: float) -> tuple[float, float, float, float]:
    side = share * min(image.size)
    left, top = (image.width - side) / 2, (image.height - side) / 2
    return left, top, left + side, top + side
