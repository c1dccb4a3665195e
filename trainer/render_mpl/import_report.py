"""The import report as a table: what an import skips or remarks on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from trainer.errors import UserError
from trainer.render_mpl.files import NUMBERS, NumberRows, write_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

HEADER = ("item", "what", "reason")


def write_report(file: Path, lines: Iterable[tuple[str, str, str]]) -> None:
    """Write (item, outcome, reason) of every line to a `.csv` or `.parquet` file.

    Raises:
        UserError: Another ending, or a place that cannot be written.
    """
    write_table(file, HEADER, lines)


def write_table(file: Path, header: Sequence[str], lines: Iterable[Sequence[str]]) -> None:
    """Write lines of text to a `.csv` or `.parquet` file.

    Raises:
        UserError: Another ending, or a place that cannot be written.
    """
    if file.suffix.lower() not in NUMBERS:
        raise UserError(f"{file.name}: this is a table; choose a name that ends in {' or '.join(NUMBERS)}.")
    # A file may bear a name that is no text; its odd bytes become question marks.
    readable = ([cell.encode("utf-8", "replace").decode() for cell in line] for line in lines)
    write_figure((file,), figure=_no_figure, rows=lambda: NumberRows(tuple(header), readable), command="")


def _no_figure() -> Figure:
    raise AssertionError("the ending was checked")
