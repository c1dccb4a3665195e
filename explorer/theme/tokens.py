"""All colors and distances of the window."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Final

from explorer.theme import glasbey
from trainer.analysis import palette
from trainer.analysis.palette import contrast

__all__ = ["DARK", "LIGHT", "Tokens", "class_colors", "contrast", "run_colors"]

SPACE: Final = 4
INSIDE: Final = 8
BETWEEN: Final = 16
AROUND: Final = 24
RADIUS: Final = 6
SMALL_PX: Final = 12
BODY_PX: Final = 13
TITLE_PX: Final = 16
HEADLINE_PX: Final = 20
HERO_PX: Final = 24
CONTROL_PX: Final = 30
"""Height of buttons, inputs and pickers."""
ROW_PX: Final = 32
"""Height of a table row."""
TRANSITION_MS: Final = 200


@dataclass(frozen=True, kw_only=True)
class Tokens:
    """The colors of one theme, as `#rrggbb`, named by their purpose.

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
    outline="#7f8795",
    text="#1b1e25",
    secondary="#5b6372",
    disabled="#a2a9b5",
    accent="#5f3dc4",
    accent_hover="#5033ab",
    accent_text="#ffffff",
    focus="#7c5ce6",
    selection="#e7e1fa",
    selection_text="#1b1e25",
    good="#0a7345",
    warn="#8a5a00",
    bad="#c02b35",
    good_soft="#e2f4eb",
    warn_soft="#fbf0d9",
    bad_soft="#fce8e9",
    unselected="#b4bac5",
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
    selection="#362d5a",
    selection_text="#f1eefc",
    good="#54c796",
    warn="#e9b949",
    bad="#ff8087",
    good_soft="#17352a",
    warn_soft="#3a2f16",
    bad_soft="#43222a",
    unselected="#4a515e",
    shade="#000000",
)


@cache
def run_colors(dark: bool) -> tuple[str, ...]:
    """Return the colors of runs in display order: A, B, then further ones."""
    return palette.ON_DARK if dark else palette.ON_LIGHT


@cache
def class_colors(n: int, dark: bool) -> tuple[str, ...]:
    """Return `n` distinct colors: those of runs up to 8, Glasbey above (256 distinct ones, then repeated)."""
    if n <= 8:
        return run_colors(dark)[:n]
    many = palette.told_apart(glasbey.ON_DARK if dark else glasbey.ON_LIGHT, dark)
    return tuple(many[i % len(many)] for i in range(n))
