"""The colors of runs and classes on light and dark ground, for the window and for files. Imports nothing but Python.

Hues follow Okabe and Ito, Color Universal Design, 2008; every color has a contrast of 3 or more to its grounds
(WCAG 2.2, 1.4.11), so the light ones are darker on white than theirs.
"""

from __future__ import annotations

import colorsys
from collections.abc import Sequence
from functools import cache
from typing import Final

LIGHT_GROUNDS: Final = ("#ffffff", "#f4f5f7")
DARK_GROUNDS: Final = ("#1c1f25", "#15171c")
"""What marks stand on: tables and plots, and what is around them."""

LEAST_MARK: Final = 3.05
"""Contrast of a mark to its ground; a little more than the 3 that is asked for, for pixels are rounded."""
LEAST_THIN: Final = 5.5
"""Of a thin line, which is still seen over the band of its hue."""
MOST_THIN: Final = 6.5
"""Of one on light ground, whose hue is still seen."""
LEAST_TEXT: Final = 4.55
"""Of words, of which 4.5 is asked (1.4.3)."""

_TONES_ON_LIGHT: Final = (
    "#0072b2 #193f7f #6072b9 #4277bc #0581c2 #0593d1",
    "#b86e00 #7c4100 #a98300 #995d02 #c27c2d #b25c00",
    "#0a6338 #4e9b6c #0b8342 #46865e #2c754b #279058",
    "#ad6b8e #733758 #a4427a #86506d #9e5a7e #bb769b",
    "#048dff #1759c4 #6b81fe #1161f4 #4b88fa #3853bb",
    "#a13c00 #db6c33 #c84c2e #8f2400 #d25929 #bf3e05",
    "#3b3505 #7f7543 #605729 #978c59 #6f6635 #534c1c",
    "#4f5160 #898b9a #6c6e83 #7a7d95 #5e606f #777986",
)
_TONES_ON_DARK: Final = (
    "#4ea8de #19719d #2f87d8 #4abdfe #3c73a5 #0c9fe1",
    "#f2b63c #a37302 #d08e18 #d5a023 #b68606 #c6920f",
    "#2fc79a #04855b #0aa568 #57e3b5 #0db086 #0b9873",
    "#dd95bd #97557b #b57198 #ffb7de #c983aa #a56288",
    "#8fd0f5 #508ba8 #1ab4da #6adafe #a7d0f8 #91d3ec",
    "#f0803a #b04d02 #da5c32 #d46820 #c25c19 #ff9657",
    "#f0e442 #a09902 #b0c005 #d2c821 #b7af01 #cbb702",
    "#c4c9d2 #666b73 #8c9199 #a7abb4 #757d8a #959eae",
)
"""The tones of each hue: its own color, then one for each further seed.

Blue and orange are the first two arms; the others follow. Told apart by color-blind people, too. A search in CIELAB
gave the tones: each has the chroma of its hue, is far from those before it and from other hues, and is not near black.
"""
ON_LIGHT: Final = tuple(tones[:7] for tones in _TONES_ON_LIGHT)
ON_DARK: Final = tuple(tones[:7] for tones in _TONES_ON_DARK)

TONES: Final = 6
"""Tones of a hue, for seeds; the next one repeats the first."""

DIVERGING: Final = (
    "#40004b", "#762a83", "#9970ab", "#c2a5cf", "#e7d4e8", "#f7f7f7",
    "#d9f0d3", "#a6dba0", "#5aae61", "#1b7837", "#00441b",
)  # fmt: skip
"""Purple below 0, white at 0, green above: a scale of differences within a run, without the colors of A and B.

PRGn of ColorBrewer (Brewer, Harrower and The Pennsylvania State University), safe for color-blind people.
"""


def fading(low: str, high: str) -> tuple[str, ...]:
    """Return the colors of a scale from one color to another as `#rrggbbaa`, clear in the middle."""
    opacities = [f"{round(share * 0.23):02x}" for share in range(0, 1001, 125)]
    return (*(low + opacity for opacity in reversed(opacities)), *(high + opacity for opacity in opacities[1:]))


def contrast(first: str, second: str) -> float:
    """Return the WCAG 2 contrast of two colors, 1 to 21: relative luminances + 0.05, lighter over darker."""
    lighter, darker = sorted((_luminance(first), _luminance(second)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


@cache
def readable(color: str, dark: bool = False, least: float = LEAST_MARK) -> str:
    """Return the color, darker on light ground or lighter on dark ground until its contrast is at least `least`."""
    grounds = DARK_GROUNDS if dark else LIGHT_GROUNDS
    hue, lightness, saturation = colorsys.rgb_to_hls(*_channels(color))
    for step in range(101):
        share = step / 100
        moved = lightness + share * (1 - lightness) if dark else lightness * (1 - share)
        adjusted = color if step == 0 else _hex(*colorsys.hls_to_rgb(hue, moved, saturation))
        if min(contrast(adjusted, ground) for ground in grounds) >= least:
            return adjusted
    return color


def thin(color: str, dark: bool = False) -> str:
    """Return the color of a thin line: readable over its band, and on light ground not nearly black."""
    seen = readable(color, dark, LEAST_THIN)
    hue, lightness, saturation = colorsys.rgb_to_hls(*_channels(seen))
    while not dark and min(contrast(seen, ground) for ground in LIGHT_GROUNDS) > MOST_THIN:
        lightness += 0.01
        seen = _hex(*colorsys.hls_to_rgb(hue, lightness, saturation))
    return seen


def run_shade(hue: int, tone: int, dark: bool = False) -> str:
    """Return the color of a hue of the cycle in one of `TONES` tones, each with the contrast of a mark."""
    tones = _TONES_ON_DARK if dark else _TONES_ON_LIGHT
    return tones[hue % len(tones)].split()[tone % TONES]


def side_color(index: int, sides: Sequence[tuple[int, ...]], dark: bool = False) -> str:
    """Return the color of A (0), B (1) and of what is shown with them; each other place has a hue that no side has.

    Args:
        index: Place; those after the sides are no runs, or runs without a style.
        sides: Hue and tone of each run that is shown come first.
        dark: Whether the ground is dark.
    """
    if index < len(sides):
        hue, tone = sides[index][:2]
        return run_shade(hue, tone, dark)
    hue, taken = index % len(ON_LIGHT), sorted({hue % len(ON_LIGHT) for hue, *_ in sides})
    free = [other for other in range(len(sides)) if other not in taken]
    return run_shade(dict(zip([other for other in taken if other >= len(sides)], free)).get(hue, hue), 0, dark)


def told_apart(colors: Sequence[str], dark: bool = False) -> tuple[str, ...]:
    """Return the colors, each `readable` and unlike those before it."""
    chosen: list[str] = []
    for color in colors:
        least, seen = LEAST_MARK, readable(color, dark)
        while seen in chosen and least < 12:
            least += 0.2
            seen = readable(color, dark, least)
        chosen.append(seen)
    return tuple(chosen)


def _channels(color: str) -> tuple[float, float, float]:
    red, green, blue = (int(color[i : i + 2], 16) / 255 for i in (1, 3, 5))
    return red, green, blue


def _hex(red: float, green: float, blue: float) -> str:
    return "#" + "".join(f"{round(255 * part):02x}" for part in (red, green, blue))


def _luminance(color: str) -> float:
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in _channels(color))
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
