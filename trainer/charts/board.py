"""A board: plots, heat maps, pictures and numbers of up to two runs, in rows. Window, figure and CSV show the same."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from trainer.charts.lab.pieces import Plot, Table, Tone

RUN_TONES: tuple[Tone, Tone] = ("run_a", "run_b")


@dataclass(frozen=True)
class Grid:
    """A heat map.

    Attributes:
        values: Row 0 is drawn on top.
        x_ticks, y_ticks: Place (column or row) and words.
        low, high: Ends of the colour scale; `log`: it moves in equal factors.
        unit: What a cell is, in words: `effective number`.
        cursor: Column in which a dashed line stands; NaN for none.
        rows: What each row stands for, told under the pointer; may be empty.
        columns: The same of the columns.
        row_ids: What a click on a row means to the view, such as a pair; may be empty.
    """

    key: str
    title: str
    values: Float[np.ndarray, "rows columns"]
    x_label: str
    y_label: str
    x_ticks: tuple[tuple[float, str], ...]
    y_ticks: tuple[tuple[float, str], ...]
    low: float
    high: float
    unit: str
    log: bool = False
    cursor: float = float("nan")
    note: str = ""
    rows: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    row_ids: tuple[int, ...] = ()


@dataclass(frozen=True)
class Cell:
    """One picture with its caption; `words` stand over it, `share` (0 to 1, NaN for none) is drawn as a bar.

    Attributes:
        row: Of the snapshot.
        strong: The query's own pair, or the matched one.
    """

    row: int
    path: str
    caption: str
    words: str
    share: float = float("nan")
    strong: bool = False


@dataclass(frozen=True)
class Strip:
    """Pictures in a row; `note` says what is not shown."""

    key: str
    title: str
    tone: Tone
    cells: tuple[Cell, ...]
    note: str = ""


@dataclass(frozen=True)
class Line:
    """One row of `Numbers`: words, what they mean, one value a column (NaN: none), and how it is written."""

    words: str
    hint: str
    values: tuple[float | str, ...]
    digits: int = 3
    strong: bool = False

    def text(self, place: int) -> str:
        """The value of a column as people read it, with a true minus sign; a dash where there is none."""
        value = self.values[place]
        if isinstance(value, str):
            return value
        if value != value:
            return "–"
        small = 0 < abs(value) < 0.5 * 10**-self.digits
        return (f"{value:.1e}" if small else f"{value:,.{self.digits}f}").replace("-", "−")


@dataclass(frozen=True)
class Numbers:
    """Measures in rows, a column for each run (or each thing compared); `badges`: columns are runs A and B."""

    key: str
    title: str
    columns: tuple[str, ...]
    lines: tuple[Line, ...]
    badges: bool = True
    note: str = ""


Piece = Plot | Table | Grid | Strip | Numbers


@dataclass(frozen=True)
class Board:
    """Everything a panel shows.

    Attributes:
        kind: Of the export, `hopfield` or `diagnosis`.
        panel: Which of its panels.
        title: Over an exported figure.
        head: Quiet lines under the title: runs, steps, n, settings.
        rows: The pieces, row by row.
        notes: What must be known to read it; shown under the panel.
        warnings: What is wrong with the embeddings, a sentence each.
    """

    kind: str
    panel: str
    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[Piece, ...], ...]
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    facts: Any = None

    @property
    def pieces(self) -> tuple[Piece, ...]:
        """All of them, in order."""
        return tuple(piece for row in self.rows for piece in row)

    def piece(self, key: str) -> Any:
        """The piece of this key."""
        return next(piece for piece in self.pieces if piece.key == key)
