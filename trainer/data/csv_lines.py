"""A line-by-line CSV reader that keeps valid lines when others are malformed."""

from __future__ import annotations

import codecs
import csv
import io
import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

from trainer.format_detection.tables import SEPARATOR_LINE
from trainer.untrusted.texts import open_text, with_line_ends

MOST_LINE: Final = 4 << 20
"""Bytes of a line; a longer one is passed over."""
_MOST_SKIPPED: Final = 256 << 20
"""Bytes after which a line that does not end is taken for the end of the table."""
_MOST_CELL: Final = 100_000
"""Characters of a cell over several lines; an opening quote that nothing closes would swallow all rows below it."""
_LOOKED_AT_AGAIN: Final = 4
"""How many times its length a table may be looked at again for the ends of cells: every line may open a quote."""
_NOT_CLOSED: Final = "A quote is opened in it and not closed."


@dataclass(frozen=True)
class CsvLine:
    """A row, or the reason why there is none."""

    number: int  # Of the line it begins on, from 1.
    cells: tuple[str, ...] = ()  # Empty if it cannot be read.
    reason: str = ""  # Why; empty if it can.


def numbered(file: BinaryIO) -> Iterator[tuple[int, bytes | str]]:
    """Yield (number, line without its end), or (number, reason) for a skipped line that is too long.

    Holds one line at a time. A line that does not end within 256 MiB is the last. Lines may end by CR alone.
    """
    start = file.peek(1) if isinstance(file, io.BufferedReader) else b""
    if b"\r" in start and b"\n" not in start:
        file = with_line_ends(file)
    number = 0
    while raw := file.readline(MOST_LINE + 1):
        number += 1
        if len(raw) <= MOST_LINE or raw.endswith(b"\n"):
            yield number, raw.rstrip(b"\r\n")
            continue
        skipped = len(raw)
        while not raw.endswith(b"\n") and skipped < _MOST_SKIPPED and (raw := file.readline(MOST_LINE)):
            skipped += len(raw)
        yield number, f"It is longer than {MOST_LINE:,} bytes."
        if skipped >= _MOST_SKIPPED:
            yield number + 1, f"Line {number} has no end within {_MOST_SKIPPED >> 20} MiB; nothing below it is read."
            return


def read_lines(path: Path, separator: str, encoding: str = "utf-8") -> Iterator[CsvLine]:
    """Yield every nonblank row of a CSV or TSV, including the header.

    UTF-8, or UTF-16. A quoted cell may go over several lines. Where a quote is wrong,
    its line alone is reported and reading goes on with the next.

    Raises:
        OSError: It cannot be read, or is no ordinary file.
    """
    with open_text(path, encoding) as file:
        texts = itertools.dropwhile(lambda line: SEPARATOR_LINE.fullmatch(line[1]), _texts(file))
        rows = _Rows(texts, separator)
        while (line := rows.next()) is not None:
            yield line


def _texts(file: BinaryIO) -> Iterator[tuple[int, str, str]]:
    """Yield (number, text, why it is invalid)."""
    for number, raw in numbered(file):
        if isinstance(raw, str):
            yield number, "", raw
            continue
        if number == 1:
            raw = raw.removeprefix(codecs.BOM_UTF8)
        try:
            text = raw.decode("utf-8")
        except UnicodeDecodeError as error:
            yield number, "", f"It is not UTF-8 text (byte {error.start})."
            continue
        if "\0" in text:
            yield number, "", "It holds a NUL."
        elif "\ufffd" in text:
            yield number, "", "It contains damaged characters."
        else:
            yield number, text, ""


class _Rows:
    """Rows assembled from lines; lines consumed by a wrong quote are restored."""

    def __init__(self, texts: Iterator[tuple[int, str, str]], separator: str) -> None:
        self._texts, self._separator = texts, separator
        self._back: list[tuple[int, str, str]] = []
        self._width = 0
        self._read, self._again = 1 << 20, 0
        """Characters that were read (and a few more), and those that were looked at beyond the line of a row."""

    def next(self) -> CsvLine | None:
        while (taken := self._take()) is not None:
            number, text, reason = taken
            if reason:
                return CsvLine(number, reason=reason)
            if text.strip():
                return self._row(number, text)
        return None

    def _take(self) -> tuple[int, str, str] | None:
        return self._back.pop() if self._back else next(self._texts, None)

    def _row(self, number: int, text: str) -> CsvLine:
        below: list[tuple[int, str, str]] = []
        length, is_open = len(text), _is_open(text, self._separator)
        self._read += length
        while is_open:
            following = self._take() if self._again <= _LOOKED_AT_AGAIN * self._read else None
            self._again += len(following[1]) + 1 if following else 0
            length += len(following[1]) if following else 0
            if following is None or following[2] or length > _MOST_CELL:
                self._back += [following] * (following is not None) + below[::-1]
                return CsvLine(number, reason=_NOT_CLOSED)
            below.append(following)
            is_open = _is_open(following[1], self._separator, quoted=True)
        record = "\n".join([text, *(line for _, line, _ in below)])
        try:
            row = next(csv.reader(io.StringIO(record, newline=""), delimiter=self._separator, strict=True), [])
        except csv.Error as error:
            self._back += below[::-1]
            return CsvLine(number, reason=f"It could not be split into columns: {error}.")
        if below and self._width and len(row) != self._width:
            self._back += below[::-1]
            return CsvLine(number, reason=_NOT_CLOSED)
        self._width = self._width or len(row)
        return CsvLine(number, tuple(cell.strip() for cell in row))


def _is_open(text: str, separator: str, *, quoted: bool = False) -> bool:
    """Return whether a quoted cell continues on the next line; quotes count only at its start or inside quotes."""
    start = 0
    if not quoted and text.startswith('"'):
        quoted, start = True, 1
    while True:
        if quoted:
            quote = text.find('"', start)
            if quote < 0:
                return True
            start, quoted = (quote + 2, True) if text.startswith('""', quote) else (quote + 1, False)
        else:
            quote = text.find(f'{separator}"', start)
            if quote < 0:
                return False
            start, quoted = quote + 2, True
