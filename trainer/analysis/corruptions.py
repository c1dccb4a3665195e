"""Corrupt images in five ways at five severities, identically for every model.

Kinds and, where it has them, severities are those of Hendrycks and Dietterich, Benchmarking Neural Network Robustness
to Common Corruptions and Perturbations, 2019, https://arxiv.org/abs/1903.12261; blur is scaled to the image's side.
Occlusion (a square of the image's mean color) is our own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
from jaxtyping import UInt8

SEVERITIES: Final = (1, 2, 3, 4, 5)
NOISE: Final = (0.08, 0.12, 0.18, 0.26, 0.38)
"""Standard deviation of the Gaussian noise, of a range of 1."""
BLUR: Final = (1, 2, 3, 4, 6)
"""Standard deviation of the Gaussian blur, in pixels of an image of 224."""
CONTRAST: Final = (0.4, 0.3, 0.2, 0.1, 0.05)
"""What is left of each pixel's distance from the image's mean."""
JPEG: Final = (25, 18, 15, 10, 7)
"""Quality of the compression."""
OCCLUSION: Final = (0.05, 0.1, 0.2, 0.3, 0.45)
"""Share of the area that is covered."""


def corrupt(
    images: UInt8[np.ndarray, "n s s 3"], kind: str, severity: int, *, first: int = 0
) -> UInt8[np.ndarray, "n s s 3"]:
    """Corrupt images; noise and places of image i depend on first + i only, so that parts give the same as the whole.

    Args:
        images: Left as they are.
        kind: One of `KINDS`.
        severity: 1 to 5.
        first: Place of the first image among all.

    Raises:
        ValueError: No such kind or severity.
    """
    if kind not in _WAYS or severity not in SEVERITIES:
        raise ValueError(f"no corruption {kind!r} at severity {severity}; there are {', '.join(KINDS)} at 1 to 5")
    worse = _WAYS[kind]
    made = np.empty_like(images)
    for i, image in enumerate(images):
        made[i] = worse(image, severity - 1, np.random.default_rng((0, first + i)))
    return made


def _noise(image: np.ndarray, level: int, rng: np.random.Generator) -> np.ndarray:
    return _bytes(image + 255 * NOISE[level] * rng.standard_normal(image.shape))


def _blur(image: np.ndarray, level: int, _rng: np.random.Generator) -> np.ndarray:
    from scipy.ndimage import gaussian_filter

    sigma = BLUR[level] * len(image) / 224
    return _bytes(gaussian_filter(image.astype(np.float32), (sigma, sigma, 0)))


def _contrast(image: np.ndarray, level: int, _rng: np.random.Generator) -> np.ndarray:
    mean = image.mean(axis=(0, 1), keepdims=True)
    return _bytes(mean + CONTRAST[level] * (image - mean))


def _jpeg(image: np.ndarray, level: int, _rng: np.random.Generator) -> np.ndarray:
    import io

    from PIL import Image

    stream = io.BytesIO()
    Image.fromarray(image).save(stream, "JPEG", quality=JPEG[level])
    with Image.open(stream) as packed:
        return np.asarray(packed.convert("RGB"))


def _occlusion(image: np.ndarray, level: int, rng: np.random.Generator) -> np.ndarray:
    side = len(image)
    edge = max(1, round(side * OCCLUSION[level] ** 0.5))
    top, left = rng.integers(0, side - edge + 1, 2)
    covered = image.copy()
    covered[top : top + edge, left : left + edge] = image.mean(axis=(0, 1)).round()
    return covered


def _bytes(values: np.ndarray) -> np.ndarray:
    return np.clip(np.rint(values), 0, 255).astype(np.uint8)


_WAYS: Final[dict[str, Callable[[np.ndarray, int, np.random.Generator], np.ndarray]]] = {
    "noise": _noise,
    "blur": _blur,
    "contrast": _contrast,
    "jpeg": _jpeg,
    "occlusion": _occlusion,
}
KINDS: Final = tuple(_WAYS)
