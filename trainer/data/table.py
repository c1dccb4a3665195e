"""A table with a column of images and one of captions: CSV and TSV here, JSONL and Parquet in `records`."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from trainer import config
from trainer.data.pairs import DataError, Source
from trainer.data.records import pair, record_sources

_SEPARATORS: Final = (",", "\t", ";")
_RECORDS: Final = (".jsonl", ".ndjson", ".parquet")


def table_sources(table: config.Table) -> tuple[list[Source], list[tuple[str, str]]]:
    """The pairs of a table in its order, columns beyond path and caption as metadata; and (line, reason) for bad lines.

    Raises:
        DataError: The file cannot be read as a table, lacks a column, or has no usable line.
    """
    path = Path(table.path).expanduser()
    if path.suffix.lower() in _RECORDS:
        return record_sources(table)
    lines = _lines(path, table)
    _, header = next(lines, (1, []))
    _check_header(path, header, table)
    found: list[Source] = []
    problems: list[tuple[str, str]] = []
    for number, cells in lines:
        try:
            found.append(_source(path, header, cells, table))
        except ValueError as reason:
            problems.append((f"line {number}", str(reason)))
    if not found:
        first = f" The first: {problems[0][0]}: {problems[0][1]}" if problems else ""
        raise DataError(f"{path.name} has no usable line below its header.{first}", problems)
    return found, problems


def _lines(path: Path, table: config.Table) -> Iterator[tuple[int, list[str]]]:
    """(number of its last line, cells) of every row that is not empty."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            separator = _separator(file.readline(), table)
            file.seek(0)
            rows = csv.reader(file, delimiter=separator)
            try:
                yield from ((rows.line_num, [cell.strip() for cell in cells]) for cells in rows if any(cells))
            except (csv.Error, UnicodeDecodeError) as error:
                raise DataError(
                    f"{path.name} cannot be read beyond line {rows.line_num}: {error}. Save it as UTF-8 CSV or TSV."
                ) from error
    except UnicodeDecodeError as error:
        raise DataError(f"{path.name} is not UTF-8 text: {error}. Save it as UTF-8 CSV or TSV.") from error
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}. Choose a CSV or TSV file.") from error


def _separator(header: str, table: config.Table) -> str:
    """As configured; else what parts the two named columns in the header, or is most frequent in it."""
    if table.separator != "auto":
        return "\t" if table.separator == "tab" else table.separator

    def fitness(separator: str) -> tuple[int, int]:
        cells = [cell.strip() for cell in next(csv.reader([header], delimiter=separator), [])]
        return (table.image_column in cells) + (table.caption_column in cells), len(cells)

    return max(_SEPARATORS, key=fitness)


def _check_header(path: Path, header: list[str], table: config.Table) -> None:
    if not header:
        raise DataError(f"{path.name} is empty. Its first line must name the columns.")
    wanted = {"data.image_column": table.image_column, "data.caption_column": table.caption_column}
    for name, column in wanted.items():
        if column not in header:
            present = ", ".join(repr(cell) for cell in header[:20])
            raise DataError(f"{path.name} has no column {column!r}; it has {present}. Set {name} to one of them.")


def _source(path: Path, header: list[str], cells: list[str], table: config.Table) -> Source:
    if len(cells) != len(header):
        raise ValueError(f"It has {len(cells)} cells where the header names {len(header)} columns.")
    row = dict(zip(header, cells, strict=True))
    return pair(path, row, table)
