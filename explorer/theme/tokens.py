"""Every color and every distance of the window; nothing else names one."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Final

SPACE: Final = 4
INSIDE: Final = 8
BETWEEN: Final = 16
AROUND: Final = 24
RADIUS: Final = 6
SMALL_PX: Final = 12
BODY_PX: Final = 13
TITLE_PX: Final = 16
CONTROL_PX: Final = 30
"""Height of buttons, inputs and pickers."""
ROW_PX: Final = 32
"""Height of a table row."""
TRANSITION_MS: Final = 200


@dataclass(frozen=True, kw_only=True)
class Tokens:
    """The colors of one theme, as `#rrggbb`, named by what they are for.

    Attributes:
        background: Behind everything: rail, bars, the space around a view.
        surface: What carries data: views, tables, plots, inputs.
        raised: What floats above a surface: menus, tooltips, the command palette.
        sunken: Wells and tracks inside a surface: slider grooves, progress tracks, quiet chips.
        hover: Under the pointer.
        line: Hairlines between parts; decoration only.
        outline: The edge of a control that a person must find (3:1 on a surface).
        text, secondary, disabled: Words, less important words, words of what cannot be used now.
        accent, accent_hover, accent_text: The one primary action, and the words on it.
        focus: The ring around what the keyboard acts on.
        selection, selection_text: Selected rows and words, and what is written there.
        run_a, run_b: The two runs as marks; `run_a_text`, `run_b_text` where words take their color.
        good, warn, bad: States, dark or light enough to write words with.
        good_soft, warn_soft, bad_soft: The ground of a chip or banner in that state.
        unselected: Points that are there but not selected.
        shade: Laid thinly over the window behind a panel.
    """

    background: str
    surface: str
    raised: str
    sunken: str
    hover: str
    line: str
    outline: str
    text: str
    secondary: str
    disabled: str
    accent: str
    accent_hover: str
    accent_text: str
    focus: str
    selection: str
    selection_text: str
    run_a: str
    run_b: str
    run_a_text: str
    run_b_text: str
    good: str
    warn: str
    bad: str
    good_soft: str
    warn_soft: str
    bad_soft: str
    unselected: str
    shade: str


LIGHT: Final = Tokens(
    background="#f4f5f7",
    surface="#ffffff",
    raised="#ffffff",
    sunken="#eceef2",
    hover="#e9ebf0",
    line="#e1e4ea",
    outline="#858d9b",
    text="#1b1e25",
    secondary="#5b6372",
    disabled="#a2a9b5",
    accent="#5f3dc4",
    accent_hover="#5033ab",
    accent_text="#ffffff",
    focus="#7c5ce6",
    selection="#e7e1fa",
    selection_text="#1b1e25",
    run_a="#0072b2",
    run_b="#e69f00",
    run_a_text="#00659e",
    run_b_text="#855c00",
    good="#0b7a4b",
    warn="#8a5a00",
    bad="#c02b35",
    good_soft="#e2f4eb",
    warn_soft="#fbf0d9",
    bad_soft="#fce8e9",
    unselected="#c3c8d1",
    shade="#1b1e25",
)

DARK: Final = Tokens(
    background="#15171c",
    surface="#1c1f25",
    raised="#262a32",
    sunken="#2a2e37",
    hover="#2b2f38",
    line="#2f343e",
    outline="#727b8b",
    text="#e7e9ee",
    secondary="#a2aab8",
    disabled="#626a78",
    accent="#a78bfa",
    accent_hover="#b9a3fb",
    accent_text="#17122b",
    focus="#a78bfa",
    selection="#3b3260",
    selection_text="#f1eefc",
    run_a="#4ea8de",
    run_b="#f2b63c",
    run_a_text="#6cb9e8",
    run_b_text="#f2b63c",
    good="#54c796",
    warn="#e9b949",
    bad="#ff8087",
    good_soft="#17352a",
    warn_soft="#3a2f16",
    bad_soft="#43222a",
    unselected="#4a515e",
    shade="#000000",
)

# Okabe & Ito 2008, https://jfly.uni-koeln.de/color/: told apart by color-blind people too. A and B come first.
_RUNS_LIGHT: Final = (LIGHT.run_a, LIGHT.run_b, "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#b8a600", "#4d4d4d")
_RUNS_DARK: Final = (DARK.run_a, DARK.run_b, "#2fc79a", "#dd95bd", "#8fd0f5", "#f0803a", "#f0e442", "#c4c9d2")
_OKABE_ITO_LIGHT: Final = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#d6c500", "#3a3f47")
_OKABE_ITO_DARK: Final = ("#4ea8de", "#f2b63c", "#2fc79a", "#dd95bd", "#8fd0f5", "#f0803a", "#f0e442", "#c4c9d2")


@cache
def run_colors(dark: bool) -> tuple[str, ...]:
    """The colors of runs in the order they are shown: A, B, then the further ones."""
    return _RUNS_DARK if dark else _RUNS_LIGHT


@cache
def class_colors(n: int, dark: bool) -> tuple[str, ...]:
    """`n` colors told apart: Okabe-Ito up to 8, Glasbey above (256 differ, then they repeat)."""
    if n <= 8:
        return (_OKABE_ITO_DARK if dark else _OKABE_ITO_LIGHT)[:n]
    import colorcet

    glasbey = colorcet.glasbey_bw_minc_20_minl_30 if dark else colorcet.glasbey_bw_minc_20_maxl_70
    return tuple(_hex(glasbey[i % len(glasbey)]) for i in range(n))


def contrast(first: str, second: str) -> float:
    """The contrast of two colors, 1 to 21, as WCAG 2 defines it (relative luminances + 0.05, lighter over darker)."""
    lighter, darker = sorted((_luminance(first), _luminance(second)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def _luminance(color: str) -> float:
    channels = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _hex(color: object) -> str:
    """Colorcet gives some palettes as `#rrggbb` and some as three floats."""
    if isinstance(color, str):
        return color
    return "#" + "".join(f"{round(255 * float(c)):02x}" for c in color)
