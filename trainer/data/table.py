"""Tables with a column of images and one of captions: CSV and TSV here, JSON and Parquet in `table_formats`."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Final

from trainer import config
from trainer.analysis.progress import Progress, silent
from trainer.data.csv_lines import CsvLine, read_lines
from trainer.data.folder import TOLD_EVERY
from trainer.data.pairs import DataError, ImportLog, Source
from trainer.data.table_formats import (
    MOST_COLUMNS,
    at_root,
    check_columns,
    check_usable,
    encoding_for,
    pairs,
    record_sources,
)
from trainer.format_detection import form_of, separator_of
from trainer.format_detection.tables import SEPARATOR_LINE
from trainer.images import SUFFIXES
from trainer.untrusted import files as untrusted_files
from trainer.untrusted.texts import open_text

_NOTHING: Final = frozenset(("nan", "NaN", "-nan", "-NaN", "null", "NULL", "None", "<NA>", "#N/A", "N/A", "n/a"))
"""Cells that stand for none where a table is written; `NA` may be a caption."""


def table_sources(
    table: config.Table, progress: Progress = silent, log: ImportLog | None = None
) -> tuple[list[Source], list[tuple[str, str]]]:
    """Return a table's pairs in order, other columns as metadata; and (line, reason) for bad lines.

    `progress` is told how many rows have been read; it may raise to stop. `log` receives a note about the encoding
    where it is none of Unicode.

    Raises:
        DataError: The file cannot be read as a table, lacks a column, or has no usable line.
    """
    path = untrusted_files.expanded(table.path)
    try:
        if "*" in path.name or form_of(path) != "cells":
            return record_sources(table, progress, log)
        encoding = encoding_for(path, table.encoding, log)
        lines = read_lines(path, _separator(_first_line(path, encoding), table), encoding)
        header = next(lines, CsvLine(1))
        _check_header(path, header, table)
        sources: list[Source] = []
        problems: list[tuple[str, str]] = []
        for number, line in enumerate(lines):
            if number and number % TOLD_EVERY == 0:
                progress(0.0, f"Reading rows: {number:,}")
            try:
                sources += _sources(path, header.cells, line, table)
            except ValueError as reason:
                problems.append((f"line {line.number}", str(reason)))
                check_usable(path, problems)
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}. Choose another table.") from error
    if not sources:
        first = f" The first: {problems[0][0]}: {problems[0][1]}" if problems else ""
        raise DataError(f"{path.name} has no usable line below its header.{first}", problems)
    return at_root(sources, path, table, log), problems


def _first_line(path: Path, encoding: str) -> str:
    """Return the beginning of a table, to detect its separator."""
    with open_text(path, encoding) as file:
        text = file.read(1 << 16).decode("utf-8-sig", "replace")
    return next(itertools.dropwhile(SEPARATOR_LINE.fullmatch, text.splitlines()), "")


def _separator(header: str, table: config.Table) -> str:
    """Return the separator: as configured, else the one between the named columns or most frequent in the header."""
    if table.separator != "auto":
        return "\t" if table.separator == "tab" else table.separator
    return separator_of(header, (table.image_column, table.caption_column))


def _check_header(path: Path, header: CsvLine, table: config.Table) -> None:
    if header.reason:
        raise DataError(f"The header of {path.name} cannot be read. {header.reason} Save it as UTF-8 CSV or TSV.")
    if not header.cells:
        raise DataError(f"{path.name} is empty. Its first line must name the columns.")
    if len(header.cells) > MOST_COLUMNS:
        raise DataError(
            f"{path.name} has {len(header.cells):,} columns; at most {MOST_COLUMNS:,} are read. Save it without those "
            "that are not needed."
        )
    if picture := next((cell for cell in header.cells if Path(cell).suffix.lower() in SUFFIXES), ""):
        raise DataError(
            f"The first line of {path.name} names no columns but a picture, {picture[:60]!r}. Write a line of column "
            "names above it, such as image,caption."
        )
    check_columns(path, header.cells, table)
    for column in (table.image_column, table.caption_column):
        if header.cells.count(column) > 1:
            raise DataError(f"{path.name} has two columns {column!r}. Rename one of them in its first line.")


def _sources(path: Path, header: tuple[str, ...], line: CsvLine, table: config.Table) -> list[Source]:
    if line.reason:
        raise ValueError(line.reason)
    if len(line.cells) != len(header):
        raise ValueError(f"It has {len(line.cells)} cells where the header names {len(header)} columns.")
    row = dict(zip(header, line.cells, strict=True))
    if (caption := row.get(table.caption_column, "")) in _NOTHING:
        raise ValueError(f"Its caption is {caption!r}, which pandas and datasets read as none.")
    return pairs(path, row, table)
