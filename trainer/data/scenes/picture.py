"""Draw a scene: the positions of its shapes, and their appearance."""

from __future__ import annotations

import colorsys
from dataclasses import dataclass
from typing import Final

import numpy as np
from jaxtyping import Float
from PIL import Image

from trainer.data.scenes import grounds
from trainer.data.scenes.plan import Scene, Thing
from trainer.data.scenes.shapes import distance
from trainer.data.scenes.words import COLORS

SIZE: Final = 128
"""Side of a picture, in pixels. Every length below is in these pixels."""

_MARGIN: Final = 7
"""Free border, so that a random crop cuts no shape."""
_RIM: Final = 1.7
_SHADOW: Final = (3, 2)
"""Down and right."""
_REACH: Final = 9
"""How far shadow and rim spread around a shape."""
_TILT: Final = np.radians(14)
"""Largest rotation either way; with more, a cross or square would look like another shape."""


@dataclass(frozen=True)
class _Placed:
    thing: Thing
    x: float
    y: float
    radius: float


def draw(scene: Scene, generator: np.random.Generator) -> Image.Image:
    """Return the image of a scene; positions, sizes, tilts, colors and ground vary with `generator`."""
    canvas = grounds.piece(scene.ground, generator, SIZE)
    for placed in _layout(scene, generator):
        _put(canvas, placed, generator)
    pixels = np.clip(np.rint(canvas, out=canvas), 0, 255, out=canvas).astype(np.uint8)
    return Image.fromarray(np.ascontiguousarray(pixels.transpose(1, 2, 0)))


def _layout(scene: Scene, generator: np.random.Generator) -> tuple[_Placed, _Placed]:
    """Return subject and object, separated along the axis of the relation and nearly level across it."""
    large, small = generator.uniform(25, 30), generator.uniform(14.5, 18)
    span = 2 * (large + small) + generator.uniform(4, 11)
    start = generator.uniform(_MARGIN, SIZE - _MARGIN - span)
    subject_along, object_along = start + large, start + span - small
    if scene.relation in ("right of", "below"):
        subject_along, object_along = SIZE - subject_along, SIZE - object_along
    subject_across = generator.uniform(_MARGIN + large, SIZE - _MARGIN - large)
    object_across = np.clip(
        subject_across + generator.uniform(-0.36, 0.36) * (large + small), _MARGIN + small, SIZE - _MARGIN - small
    )
    if scene.relation in ("left of", "right of"):
        return (
            _Placed(scene.subject, subject_along, subject_across, large),
            _Placed(scene.object, object_along, object_across, small),
        )
    return (
        _Placed(scene.subject, subject_across, subject_along, large),
        _Placed(scene.object, object_across, object_along, small),
    )


def _put(canvas: Float[np.ndarray, "3 size size"], placed: _Placed, generator: np.random.Generator) -> None:
    """Draw shadow, rim and shape onto the canvas."""
    left, right = _window(placed.x, placed.radius)
    top, bottom = _window(placed.y, placed.radius)
    x = (np.arange(left, right, dtype=np.float32) + 0.5 - np.float32(placed.x))[None, :] / np.float32(placed.radius)
    y = (np.float32(placed.y) - np.arange(top, bottom, dtype=np.float32) - 0.5)[:, None] / np.float32(placed.radius)
    tilt = np.float32(generator.uniform(-_TILT, _TILT))
    cos, sin = np.cos(tilt), np.sin(tilt)
    away = distance(placed.thing.shape, x * cos - y * sin, x * sin + y * cos) * placed.radius

    fill = _varied(COLORS[placed.thing.color], generator)
    window = canvas[:, top:bottom, left:right]
    shaded = np.roll(away, _SHADOW, axis=(0, 1))
    _blend(window, np.zeros(3, np.float32), 0.42 * _share(1 - (shaded + 2) / 8) ** 2)
    _blend(window, _rim(placed.thing.color, fill), _share(0.5 + _RIM - away))
    gloss = 1 + 0.09 * (y - x)
    gloss = np.where(gloss > 1, 1 + (gloss - 1) * 0.8, gloss)
    _blend(window, fill[:, None, None] * gloss, _share(0.5 - away))


def _window(center: float, radius: float) -> tuple[int, int]:
    return max(int(center - radius) - _REACH, 0), min(int(center + radius) + _REACH, SIZE)


def _share(values: Float[np.ndarray, "h w"]) -> Float[np.ndarray, "h w"]:
    """Clip the values to 0..1 in place; calling `np.clip` takes longer than the work here."""
    return np.minimum(np.maximum(values, 0, out=values), 1, out=values)


def _blend(
    window: Float[np.ndarray, "c h w"], color: Float[np.ndarray, "*c_h_w"], cover: Float[np.ndarray, "h w"]
) -> None:
    for channel, paint in zip(window, color, strict=True):
        channel += cover * (paint - channel)


def _varied(color: tuple[int, int, int], generator: np.random.Generator) -> Float[np.ndarray, 3]:
    """Return the color with slightly varied hue, saturation and brightness, still far from other colors."""
    hue, saturation, value = colorsys.rgb_to_hsv(*(c / 255 for c in color))
    hue += generator.uniform(-0.011, 0.011)
    saturation = min(saturation * generator.uniform(0.92, 1.06), 1.0)
    value = min(value * generator.uniform(0.93, 1.05), 1.0)
    return np.array(colorsys.hsv_to_rgb(hue % 1.0, saturation, value), np.float32) * 255


def _rim(color: str, fill: Float[np.ndarray, 3]) -> Float[np.ndarray, 3]:
    """Return the edge color that separates a shape from a ground of its color: pale, gray around white."""
    if color == "white":
        return np.array([150, 156, 168], np.float32)
    return 0.18 * fill + 0.82 * np.array([252, 250, 244], np.float32)
