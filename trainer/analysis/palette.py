"""The colors of runs and classes on light and dark ground, for the window and for files. Imports nothing but Python.

Hues follow Okabe and Ito, Color Universal Design, 2008; every color has a contrast of 3 or more to its grounds
(WCAG 2.2, 1.4.11), so the light ones are darker on white than theirs.
"""

from __future__ import annotations

import colorsys
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Final

LIGHT_GROUNDS: Final = ("#ffffff", "#f4f5f7")
DARK_GROUNDS: Final = ("#1c1f25", "#15171c")
"""What marks stand on: tables and plots, and what is around them."""

LEAST_MARK: Final = 3.05
"""Contrast of a mark to its ground; a little more than the 3 that is asked for, for pixels are rounded."""
LEAST_THIN: Final = 5.5
"""Of a thin line, which is still seen over the band of its hue."""
LEAST_TEXT: Final = 4.55
"""Of words, of which 4.5 is asked (1.4.3)."""

ON_LIGHT: Final = ("#0072b2", "#b86e00", "#0a6338", "#ad6b8e", "#048dff", "#a13c00", "#3b3505", "#4f5160")
ON_DARK: Final = ("#4ea8de", "#f2b63c", "#2fc79a", "#dd95bd", "#8fd0f5", "#f0803a", "#f0e442", "#c4c9d2")
"""Blue and orange are the first two arms; the others follow. Told apart by color-blind people, too."""

TONES: Final = 6
"""Lightnesses of a hue, for seeds; the next one repeats the first."""
_TONE_ENDS: Final = (0.21, 0.862)
"""Lightness of the darkest tone on light ground and the lightest on dark: beyond, a thin line looks black or white."""

DIVERGING: Final = (
    "#40004b", "#762a83", "#9970ab", "#c2a5cf", "#e7d4e8", "#f7f7f7",
    "#d9f0d3", "#a6dba0", "#5aae61", "#1b7837", "#00441b",
)  # fmt: skip
"""Purple below 0, white at 0, green above: a scale of differences within a run, without the colors of A and B.

PRGn of ColorBrewer (Brewer, Harrower and The Pennsylvania State University), safe for color-blind people.
"""


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


@cache
def run_shade(hue: int, tone: int, dark: bool = False) -> str:
    """Return the color of a hue of the cycle in one of `TONES` lightnesses, each with the contrast of a mark.

    Tone 0 is the hue's own color; every other is as far from those before it as the ground and the hue allow.
    """
    cycle = ON_DARK if dark else ON_LIGHT
    base, tone = cycle[hue % len(cycle)], tone % TONES
    if tone == 0:
        return base
    shades = [shade for shade in _same_hue(base) if _is_tone(shade, dark)]
    before = [_seen_lightness(run_shade(hue, other, dark), dark) for other in range(tone)]
    return max(shades, key=lambda shade: min(abs(_seen_lightness(shade, dark) - other) for other in before))


def side_color(index: int, sides: Sequence[tuple[int, int]], dark: bool = False) -> str:
    """Return the color of A (0), B (1) and of what is shown with them; each other place has a hue that no side has.

    Args:
        index: Place; those after the sides are no runs, or runs without a style.
        sides: Hue and tone of each run that is shown.
        dark: Whether the ground is dark.
    """
    if index < len(sides):
        return run_shade(*sides[index], dark)
    hue, taken = index % len(ON_LIGHT), sorted({hue % len(ON_LIGHT) for hue, _ in sides})
    free = [other for other in range(len(sides)) if other not in taken]
    return run_shade(dict(zip([other for other in taken if other >= len(sides)], free)).get(hue, hue), 0, dark)


def _same_hue(color: str) -> Iterator[str]:
    """Yield the lightnesses of a hue, none paler than the color itself while RGB allows."""
    hue, lightness, saturation = colorsys.rgb_to_hls(*_channels(color))
    chroma = saturation * (1 - abs(2 * lightness - 1))
    for step in range(1, 400):
        most = 1 - abs(step / 200 - 1)
        yield _hex(*colorsys.hls_to_rgb(hue, step / 400, min(1.0, max(saturation, chroma / most))))


def _is_tone(shade: str, dark: bool) -> bool:
    seen = min(contrast(shade, ground) for ground in (DARK_GROUNDS if dark else LIGHT_GROUNDS)) >= LEAST_MARK
    lightness = _seen_lightness(shade, dark)
    return seen and (lightness <= _TONE_ENDS[1] if dark else lightness >= _TONE_ENDS[0])


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


def _seen_lightness(color: str, dark: bool) -> float:
    """Return the lightness, 0 to 1, in which equal steps look equal on this ground (Bartleson and Breneman, 1967)."""
    return _luminance(color) ** (1 / 3 if dark else 1 / 2)


def _luminance(color: str) -> float:
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in _channels(color))
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
