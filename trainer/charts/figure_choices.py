"""What a person chooses of an exported figure: the parts of its panel, its width, its texts.

One declaration for the export dialog, `trainer export` and `trainer bundle`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, Final, Literal

import numpy as np

from trainer.charts import ChartError
from trainer.charts.marks import HeatMap, ImageRow, Mark, NumberTable, PairMap, Panel, ShadedTable
from trainer.config.fields import option
from trainer.store import run_label

EVERYTHING: Final = "all"
"""In place of the names of parts: also the tables."""
SMALLEST_PT: Final = 7.0
"""Size of the smallest regular text of a figure that is drawn as it is."""
_SLIDE: Final = 2
"""Texts of a slide are seen from farther away: twice as large."""
_WIDTHS_IN: Final = {"1": 3.5, "2": 7.2, "slide": 11.0}
_UNTOUCHED: Final = frozenset({"key", "tone", "tones", "path", "mark", "brushes", "ids_are"})


@dataclass(frozen=True)
class FigureChoices:
    """How a figure is drawn; none of it changes what is computed."""

    panels: tuple[str, ...] = option((), "Panels", "Parts of the figure by name, or all; none named: all but tables.")
    width: Literal["1", "2", "slide"] = option(
        "2",
        "Width",
        "Columns of a page (89 or 183 mm), or a slide (279 mm).",
        named={"1": "1 column", "2": "2 columns", "slide": "Slide"},
    )
    text_size: Literal["7", "8", "9"] = option(
        "7",
        "Text size",
        "Points of the smallest text; doubled on a slide.",
        named={"7": "7 pt", "8": "8 pt", "9": "9 pt"},
    )
    names: Literal["short", "seed", "letters"] = option(
        "short",
        "Labels",
        "Runs by what was trained, with the seed, or as A and B.",
        named={"short": "Short", "seed": "With seed", "letters": "A, B"},
    )
    title: Literal["none", "short"] = option(
        "none", "Title", "Titles over the figure and over its only panel.", named={"none": "None", "short": "Short"}
    )
    arrange: Literal["row", "column"] = option(
        "row", "Arrange", "Plots side by side, or one below the other.", named={"row": "Row", "column": "Column"}
    )
    notes: bool = option(True, "Notes", "Steps, counts and caveats below the figure.")

    @property
    def scale(self) -> float:
        """How many times larger than it is laid out the figure is written."""
        return float(self.text_size) * (_SLIDE if self.width == "slide" else 1) / SMALLEST_PT

    @property
    def layout_in(self) -> float:
        """The width in which the figure is laid out, in inches, before it is scaled."""
        return _WIDTHS_IN[self.width] / self.scale


WHOLE: Final = FigureChoices(panels=(EVERYTHING,), names="seed", title="short")
"""A page with everything that the window shows."""


@dataclass(frozen=True)
class FigurePart:
    """One part of a panel that a figure holds or leaves out."""

    name: str  # What `--panels` takes.
    title: str
    size: str  # How much it is: `2 plots`, `table, 6 rows`.
    is_table: bool  # Whether it is left out unless it is named.
    keys: tuple[str, ...]


def parts_of(panel: Panel) -> tuple[FigurePart, ...]:
    """Return the parts of a panel in order: marks that differ by their number alone are one."""
    marks: dict[str, list[Mark]] = {}
    for mark in panel.marks:
        marks.setdefault(re.sub(r"-\d+$", "", mark.key), []).append(mark)
    return tuple(_part(name, group) for name, group in marks.items())


def chosen_keys(panel: Panel, choices: FigureChoices) -> frozenset[str]:
    """Return the keys of the marks that are drawn.

    Raises:
        ChartError: The panel has no part of a name.
    """
    parts = parts_of(panel)
    names = {part.name for part in parts} | {EVERYTHING}
    if unknown := [name for name in choices.panels if name not in names]:
        raise ChartError(f"The figure has no part {unknown[0]!r}. Choose of: {', '.join(sorted(names))}.")
    if not choices.panels:
        taken = [part for part in parts if not part.is_table] or list(parts)
    else:
        taken = [part for part in parts if part.name in choices.panels or EVERYTHING in choices.panels]
    return frozenset(key for part in taken for key in part.keys)


def chosen_panel(panel: Panel, choices: FigureChoices, runs: Sequence[str] = ()) -> Panel:
    """Return the panel with the parts and texts that are chosen.

    Args:
        choices: Of the figure; its width and size do nothing here.
        runs: Labels of its runs, A first.

    Raises:
        ChartError: The panel has no part of a name.
    """
    keys = chosen_keys(panel, choices)
    rows = [tuple(mark for mark in row if mark.key in keys) for row in panel.rows]
    if choices.arrange == "column" and not panel.compact:
        rows = [(mark,) for row in rows for mark in row]
    has_title = choices.title != "none"
    if not has_title and len(keys) == 1:
        rows = [tuple(replace(mark, title="") for mark in row) for row in rows]
    # What explains the tables stands first, and goes with them.
    has_table = any(isinstance(mark, NumberTable | ShadedTable) for row in rows for mark in row)
    notes = panel.notes if has_table else panel.notes[panel.table_notes :]
    drawn = replace(
        panel,
        rows=tuple(row for row in rows if row),
        title=panel.title if has_title else "",
        head=panel.head if has_title else (),
        notes=(*(() if has_title else panel.head), *notes) if choices.notes else (),
    )
    names = run_names(runs, choices)
    return renamed(drawn, names | (_letter_names(runs, names) if panel.letters and choices.names != "letters" else {}))


def _letter_names(runs: Sequence[str], names: Mapping[str, str]) -> dict[str, str]:
    """Return the label for the letter of each run, alone and before the run; a reader of a paper knows no letters."""
    distinct = [*dict.fromkeys(runs)]
    letters = {chr(ord("A") + index): run for index, run in enumerate(distinct)} if len(distinct) > 1 else {}
    texts = {f"{letter}{sign}{run}": run for letter, run in letters.items() for sign in (": ", " · ", " ")} | letters
    return {text: names.get(run, run) for text, run in texts.items()}


def run_names(runs: Sequence[str], choices: FigureChoices) -> dict[str, str]:
    """Return the label of each run -> what the figure calls it, without those that stay."""
    distinct = [*dict.fromkeys(runs)]
    if choices.names == "letters":
        names = [chr(ord("A") + index) if index < 26 else run for index, run in enumerate(distinct)]
    elif choices.names == "short":
        names = [run_label.parts_of(run)[0] for run in distinct]
        # A seed that tells two runs apart stays at all of them.
        names = names if len({*names}) == len(distinct) else distinct
    else:
        names = distinct
    return {run: name for run, name in zip(distinct, names, strict=True) if run != name}


def renamed(value: Any, names: Mapping[str, str]) -> Any:
    """Return a panel, a mark or a text with the runs called by their new names."""
    if not names:
        return value
    # The longest first: `CLIP · s1` begins `CLIP · s10`.
    runs = sorted(names, key=len, reverse=True)
    pattern = re.compile("|".join(rf"(?<!\w){re.escape(run)}(?!\w)" for run in runs))
    return _renamed(value, lambda text: pattern.sub(lambda match: names[match[0]], text))


def _renamed(value: Any, change: Any) -> Any:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, tuple):
        return tuple(_renamed(part, change) for part in value)
    if is_dataclass(value) and not isinstance(value, type):
        old = {field.name: getattr(value, field.name) for field in fields(value) if field.name not in _UNTOUCHED}
        new = {name: _renamed(part, change) for name, part in old.items() if not isinstance(part, np.ndarray)}
        return replace(value, **{name: part for name, part in new.items() if part is not old[name]})
    return value


def _part(name: str, marks: Sequence[Mark]) -> FigurePart:
    first, several = marks[0], len(marks) > 1
    is_table = isinstance(first, NumberTable)
    title = name.replace("-", " ").replace("_", " ").capitalize() if several or not first.title else first.title
    return FigurePart(name, title, _size(first, len(marks)), is_table, tuple(mark.key for mark in marks))


def _size(mark: Mark, count: int) -> str:
    if isinstance(mark, NumberTable | ShadedTable):
        rows = len(mark.lines) if isinstance(mark, NumberTable) else len(mark.rows)
        return f"{count} tables" if count > 1 else f"table, {rows} row{'s' if rows != 1 else ''}"
    nouns = {ImageRow: "row of images", HeatMap: "heat map", PairMap: "map"}
    noun = nouns.get(type(mark), "plot")
    plural = "rows of images" if isinstance(mark, ImageRow) else f"{noun}s"
    return f"{count} {plural}" if count > 1 else noun
