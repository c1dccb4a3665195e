"""The six grounds: painted on large sheets once per process; an image shows part of one."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Final

import numpy as np
from jaxtyping import Float
from PIL import Image, ImageDraw, ImageFilter

from trainer.data.scenes.plan import random

SHEET: Final = 320
"""Side of a sheet, in pixels; about twice a picture, so pieces of one sheet hardly resemble each other."""

SHEETS: Final = 3
"""Sheets a ground."""

Sheet = Float[np.ndarray, "sheet sheet 3"]


def piece(ground: str, generator: np.random.Generator, size: int) -> Float[np.ndarray, "3 size size"]:
    """Return a square of the ground, values 0 to 255, with random place, scale, reflection and lighting.

    Channels come first: numpy takes three times as long where its innermost axis has 3 values.
    """
    sheet = _sheet(ground, int(generator.integers(SHEETS)))
    side = size * generator.uniform(0.8, 1.15)
    left, top = generator.uniform(0, SHEET - side, 2)
    image = sheet.resize((size, size), Image.Resampling.BICUBIC, (left, top, left + side, top + side))
    pixels = np.asarray(image).transpose(2, 0, 1)
    if generator.random() < 0.5:
        pixels = pixels[..., ::-1]
    light = _light(generator, size)
    return np.multiply(light, pixels, out=light)


def _light(generator: np.random.Generator, size: int) -> Float[np.ndarray, "3 size size"]:
    """Return the brightness over the image: an overall level, a directional gradient, and a slight tint."""
    # Python floats, as NumPy's own would turn the whole picture to float64.
    angle, steep = generator.uniform(0, 2 * np.pi), generator.uniform(0, 0.09)
    ramp = np.linspace(-steep, steep, size, dtype=np.float32)
    slope = float(np.cos(angle)) * ramp[None, :] + float(np.sin(angle)) * ramp[:, None]
    tint = generator.uniform(0.975, 1.025, 3).astype(np.float32)
    return (generator.uniform(0.92, 1.06) + slope) * tint[:, None, None]


@cache
def _sheet(ground: str, number: int) -> Image.Image:
    generator = random(number, "ground", ground)
    return Image.fromarray(np.clip(_PAINTERS[ground](generator), 0, 255).astype(np.uint8))


def _noise(generator: np.random.Generator, across: int, down: int, octaves: int = 1) -> Float[np.ndarray, "s s"]:
    """Return smooth noise of about unit deviation with this many cells, plus finer ones at half strength."""
    total = np.zeros((SHEET, SHEET), np.float32)
    for octave in range(octaves):
        cells = generator.standard_normal((down * 2**octave + 1, across * 2**octave + 1)).astype(np.float32)
        total += np.asarray(Image.fromarray(cells).resize((SHEET, SHEET), Image.Resampling.BICUBIC)) * 1.5 / 2**octave
    return total


def _mixed(low: tuple[int, int, int], high: tuple[int, int, int], share: Float[np.ndarray, "s s"]) -> Sheet:
    """Return colors between `low` (share 0) and `high` (share 1)."""
    share = np.clip(share, 0, 1)[..., None].astype(np.float32)
    return np.array(low, np.float32) * (1 - share) + np.array(high, np.float32) * share


def _grass(generator: np.random.Generator) -> Sheet:
    base = _mixed((70, 118, 52), (112, 158, 76), 0.5 + 0.25 * _noise(generator, 5, 5, 2))
    canvas = Image.fromarray(base.astype(np.uint8)).resize((2 * SHEET, 2 * SHEET), Image.Resampling.BILINEAR)
    draw = ImageDraw.Draw(canvas)
    blades = 5200
    feet = generator.uniform(-10, 2 * SHEET + 20, (blades, 2))
    feet = feet[np.argsort(feet[:, 1])]
    length, lean = generator.uniform(12, 26, blades), generator.normal(0, 5, blades)
    shade = generator.random(blades)
    dark, light = np.array([58, 106, 46]), np.array([150, 186, 92])
    for (x, y), long, aside, s in zip(feet, length, lean, shade, strict=True):
        color = tuple(int(c) for c in dark + (light - dark) * s)
        draw.polygon([(x - 1.6, y), (x + 1.6, y), (x + aside, y - long)], fill=color)
    return np.asarray(canvas.resize((SHEET, SHEET), Image.Resampling.BOX), np.float32)


def _sand(generator: np.random.Generator) -> Sheet:
    rows = np.arange(SHEET, dtype=np.float32)[:, None]
    phase = rows * (2 * np.pi / 17) + 2.6 * _noise(generator, 3, 4) + 0.5 * _noise(generator, 9, 9)
    ripple = np.sin(phase) + 0.35 * np.sin(2 * phase + 0.8)
    share = 0.56 + 0.2 * ripple * (0.75 + 0.25 * _noise(generator, 4, 4)) + 0.06 * _noise(generator, 6, 6)
    pixels = _mixed((204, 172, 124), (240, 218, 174), share)
    grain = generator.standard_normal((SHEET, SHEET, 1)).astype(np.float32) * 4
    specks = (generator.random((SHEET, SHEET, 1)) < 0.006).astype(np.float32) * generator.choice([-38, 26])
    return pixels + grain + specks


def _water(generator: np.random.Generator) -> Sheet:
    bend = _noise(generator, 5, 9) * 0.9
    waves = [_noise(generator, 7, 16) + bend, _noise(generator, 11, 26) + bend * 0.6]
    crest = sum(weight * np.exp(-((wave / 0.33) ** 2)) for weight, wave in zip((0.6, 0.4), waves, strict=True))
    depth = 0.42 + 0.2 * _noise(generator, 3, 4, 2) * 0.7
    pixels = _mixed((38, 112, 150), (88, 168, 194), depth)
    return pixels + (np.array([218, 240, 244], np.float32) - pixels) * (0.62 * crest[..., None])


def _wood(generator: np.random.Generator) -> Sheet:
    pixels = np.zeros((SHEET, SHEET, 3), np.float32)
    grain = 0.13 * _noise(generator, 3, 70, 2) + 0.07 * _noise(generator, 6, 130)
    drift = _noise(generator, 2, 6)
    rows = np.arange(SHEET, dtype=np.float32)[:, None]
    rings = 0.11 * np.sin(rows * 0.55 + 4.5 * drift)
    # With its mirror image beside it the grain has no seam, wherever a plank begins.
    endless = np.hstack([grain + rings, (grain + rings)[:, ::-1]])
    top = -int(generator.integers(30))
    while top < SHEET:
        height = int(generator.integers(38, 50))
        plank = slice(max(top, 0), min(top + height, SHEET))
        shift = int(generator.integers(SHEET))
        tone = 0.5 + generator.uniform(-0.16, 0.16)
        share = tone + endless[plank, shift : shift + SHEET]
        pixels[plank] = _mixed((134, 88, 52), (206, 156, 104), share)
        for row, strength in ((top, 0.5), (top + 1, 0.72), (top + 2, 1.08)):
            if 0 <= row < SHEET:
                pixels[row] *= strength
        for joint in range(int(generator.integers(0, 90)), SHEET, 210):
            pixels[plank, joint : joint + 2] *= 0.55
        top += height
    return pixels


def _brick(generator: np.random.Generator) -> Sheet:
    wide, high, gap = 46, 21, 3
    mortar = _mixed((188, 180, 170), (206, 199, 190), 0.5 + 0.3 * _noise(generator, 60, 60))
    pixels = mortar.copy()
    rough = _noise(generator, 50, 50, 2)
    for row, top in enumerate(range(-int(generator.integers(high)), SHEET, high)):
        offset = (row % 2) * wide // 2 + int(generator.integers(-2, 3))
        for left in range(offset - wide - int(generator.integers(4)), SHEET, wide):
            tone, warm = generator.uniform(0, 1), generator.uniform(-6, 6)
            area = (slice(max(top + gap, 0), max(top + high, 0)), slice(max(left + gap, 0), max(left + wide, 0)))
            share = np.full((SHEET, SHEET), tone, np.float32)[area] + 0.16 * rough[area]
            brick = _mixed((146, 78, 62), (186, 112, 90), share) + np.array([warm, 0, -warm], np.float32)
            if brick.size:
                brick[:1] *= 1.1
                brick[-2:] *= 0.86
                pixels[area] = brick
    return np.asarray(
        Image.fromarray(np.clip(pixels, 0, 255).astype(np.uint8)).filter(ImageFilter.GaussianBlur(0.5)), np.float32
    )


def _night_sky(generator: np.random.Generator) -> Sheet:
    cloud = 0.45 + 0.26 * _noise(generator, 3, 3, 3)
    pixels = _mixed((16, 22, 54), (58, 52, 112), cloud)
    glow = np.zeros((SHEET, SHEET), np.uint8)
    stars = 520
    positions, power = generator.integers(0, SHEET, (stars, 2)), generator.pareto(2.2, stars)
    glow[positions[:, 0], positions[:, 1]] = np.clip(28 + 80 * power, 0, 255)
    blurred = np.asarray(Image.fromarray(glow).filter(ImageFilter.GaussianBlur(0.65)), np.float32)
    return pixels + np.clip(blurred / 44, 0, 1)[..., None] * (np.array([235, 238, 255], np.float32) - pixels)


_PAINTERS: Final[dict[str, Callable[[np.random.Generator], Sheet]]] = {
    "grass": _grass,
    "sand": _sand,
    "water": _water,
    "wood": _wood,
    "brick": _brick,
    "night sky": _night_sky,
}
