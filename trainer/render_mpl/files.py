"""Figures and their numbers as files: SVG, PDF, PNG, CSV and Parquet, written atomically, with their command.

A CSV is inert in spreadsheets: a text (headings too) that begins with `=`, `+`, `-`, `@` or a tab, half or full width,
gets an apostrophe before it. Parquet keeps texts as they are: its columns have types, nothing in them is a formula.
"""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from trainer.charts.panel_tables import as_latex, as_markdown
from trainer.distribution import private_paths
from trainer.errors import UserError
from trainer.render_mpl.style import in_style
from trainer.store.files import write_for_user
from trainer.untrusted.escaping import cell
from trainer.untrusted.files import encodable, is_text

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from trainer.charts.marks import Panel

DPI: Final = 300
"""Of a PNG, and of pictures within a figure."""
SUFFIXES: Final = (".svg", ".pdf", ".png", ".csv", ".parquet")
TABLES: Final = (".md", ".tex")
"""Endings of files that hold the tables of a panel."""
NUMBERS: Final = (".csv", ".parquet")
"""Endings of files that hold a figure's numbers."""


@dataclass(frozen=True)
class NumberRows:
    """The numbers behind a figure: a header and rows of str, int, float or None."""

    header: tuple[str, ...]
    rows: Iterable[Sequence[Any]]


def check_suffixes(files: Iterable[Path], suffixes: Sequence[str] = SUFFIXES) -> None:
    """Check that every file has one of the suffixes; to be called before anything slow.

    Raises:
        UserError: Names the file and the endings there are.
    """
    for file in files:
        if file.suffix.lower() not in suffixes:
            raise UserError(f"{file.name}: choose a name that ends in {', '.join(suffixes)}.")


def write_figure(
    files: Sequence[Path],
    *,
    figure: Callable[[], Figure],
    rows: Callable[[], NumberRows],
    command: str,
    title: str = "",
    panel: Callable[[], Panel] | None = None,
) -> FigureSize | None:
    """Write the figure, and for `.csv` its numbers, to every file in the format of its suffix.

    Args:
        files: Where to; folders that are missing are made.
        figure: Draws; called only if a file needs it.
        rows: Gives the numbers; called only if a file needs them.
        command: What makes this figure; kept in the metadata of SVG, PDF and PNG (a CSV has no place for it).
        title: Kept in the metadata.
        panel: Gives the panel whose tables `.md` and `.tex` hold.

    Returns:
        The size of the figure; None where no file holds one.

    Raises:
        UserError: An ending we do not write, or a place that cannot be written.
    """
    check_suffixes(file for file in files if panel is None or file.suffix.lower() not in TABLES)
    if (shortener := private_paths.current()) is not None:
        command, numbers, shorten = shortener.sentence(command), rows, shortener.value

        def rows() -> NumberRows:
            table = numbers()
            texts = ([shorten(cell) if isinstance(cell, str) else cell for cell in row] for row in table.rows)
            return NumberRows(table.header, texts)

    drawn = figure() if any(file.suffix.lower() not in (*NUMBERS, *TABLES) for file in files) else None
    for file in files:
        if file.suffix.lower() == ".csv":
            write_for_user(file, lambda draft: write_csv(draft, rows()))
        elif file.suffix.lower() == ".parquet":
            write_for_user(file, lambda draft: write_parquet(draft, rows(), command=command))
        elif panel is not None and file.suffix.lower() in TABLES:
            made = (as_latex if file.suffix.lower() == ".tex" else as_markdown)(panel())
            write_for_user(file, partial(_write_text, made))
        else:
            write_for_user(file, lambda draft: _save(drawn, draft, command=command, title=title))
    return None if drawn is None else FigureSize.of(drawn)


def write_csv(draft: Path, table: NumberRows) -> None:
    """Write a UTF-8 CSV; texts that spreadsheets would run as formulas get an apostrophe, numbers do not."""
    with draft.open("w", encoding="utf-8", errors="backslashreplace", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([cell(name) for name in table.header])
        writer.writerows([cell(value) for value in row] for row in table.rows)


def write_parquet(path: Path, table: NumberRows, *, command: str = "") -> None:
    """Write the rows with typed columns of integers, floats or texts, and the command in the metadata.

    A column with both has its numbers under its own name and its texts under `NAME_text` (`NAME_text_text` and so on
    where that is a column of its own).
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = list(zip(*table.rows)) or [()] * len(table.header)
    arrays: dict[str, Any] = {}
    for name, values in zip(table.header, columns, strict=True):
        texts = [value if isinstance(value, str) else None for value in values]
        numbers = [None if isinstance(value, str) else value for value in values]
        mixed = any(text is not None for text in texts) and any(number is not None for number in numbers)
        arrays[name] = _typed(numbers if mixed else values)
        if mixed:
            arrays[_name_of_texts(name, {*table.header, *arrays})] = _typed(texts)
    pq.write_table(pa.table(arrays).replace_schema_metadata({"command": command}), path)


def _name_of_texts(column: str, taken: Collection[str]) -> str:
    name = f"{column}_text"
    return _name_of_texts(name, taken) if name in taken else name


def _typed(values: Sequence[Any]) -> Any:
    import pyarrow as pa

    plain = [value.item() if hasattr(value, "item") else value for value in values]
    kinds = {type(value) for value in plain if value is not None}
    if kinds <= {bool}:
        return pa.array(plain, pa.bool_())
    if kinds <= {int, bool}:
        return pa.array(plain, pa.int64())
    if kinds <= {int, float, bool}:
        return pa.array([None if value is None else float(value) for value in plain], pa.float64())
    return pa.array([None if value is None else encodable(str(value)) for value in plain], pa.string())


def json_text(values: Any, *, indent: int | None = None) -> str:
    """Return `values` as strict JSON; non-finite numbers become null."""
    text = json.dumps(_strict(values), ensure_ascii=False, indent=indent, allow_nan=False)
    # Names of files may hold bytes that are no UTF-8; JSON can spell them.
    return text if is_text(text) else json.dumps(_strict(values), indent=indent, allow_nan=False)


def _strict(values: Any) -> Any:
    if isinstance(values, dict):
        return {str(key): _strict(value) for key, value in values.items()}
    if isinstance(values, list | tuple):
        return [_strict(value) for value in values]
    return None if isinstance(values, float) and not math.isfinite(values) else values


@in_style
def _save(figure: Figure, draft: Path, *, command: str, title: str) -> None:
    suffix = draft.suffix.lower()
    maker = "Contrastive Explorer"
    metadata: dict[str, Any] = {
        ".svg": {"Title": title, "Creator": maker, "Description": command, "Date": None},
        ".pdf": {"Title": title, "Creator": maker, "Subject": command, "CreationDate": None},
        ".png": {"Title": title, "Software": maker, "Description": command},
    }[suffix]
    scale = float(getattr(figure, "written_scale", 1.0))
    more: dict[str, Any] = {".pdf": {"backend": "module://trainer.render_mpl.scaled_pdf"}} if scale != 1 else {}
    picture = io.BytesIO()
    figure.savefig(picture, format=suffix[1:], metadata=metadata, dpi=scale * DPI, **more.get(suffix, {}))
    content = picture.getvalue()
    draft.write_bytes(_scaled_svg(content, scale) if suffix == ".svg" and scale != 1 else content)


def _scaled_svg(content: bytes, scale: float) -> bytes:
    """Return the picture enlarged; its coordinates stay."""
    head, tag, rest = content.decode().partition("<svg ")
    opening, end, shapes = rest.partition(">")
    opening = re.sub(r'(?<=\bwidth=")[\d.]+|(?<=\bheight=")[\d.]+', lambda m: f"{float(m[0]) * scale:g}", opening)
    return (head + tag + opening + end + shapes).encode()


@dataclass(frozen=True)
class FigureSize:
    """How large a figure is on paper."""

    width_mm: float
    height_mm: float
    smallest_pt: float

    @classmethod
    def of(cls, figure: Figure) -> FigureSize:
        """Measure a drawn figure."""
        from matplotlib.text import Text

        scale = float(getattr(figure, "written_scale", 1.0))
        width, height = (round(25.4 * scale * inches, 1) for inches in figure.get_size_inches().tolist())
        texts = (text for text in figure.findobj(Text) if text.get_visible() and text.get_text().strip())
        smallest = min((float(text.get_fontsize()) for text in texts), default=0.0)
        return cls(width, height, round(scale * smallest, 1))


def _write_text(text: str, draft: Path) -> None:
    draft.write_text(text, encoding="utf-8")
