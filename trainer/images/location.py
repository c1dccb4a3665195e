"""The location of an image as one line of text: a file, a tar member, or a Parquet cell."""

from __future__ import annotations

import functools
import io
import os
import re
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final

from msgspec import Struct

if TYPE_CHECKING:
    import pyarrow.parquet

_MEMBER: Final = re.compile(r"(?P<file>.+)::(?P<offset>\d+)\+(?P<size>\d+)::(?P<name>.*)", re.DOTALL)
_WHOLE: Final = 128 * 2**20
"""Bytes of a column in a row group up to which it is held in memory, so that any row is quick to reach."""
_AT_ONCE: Final = 16
_CELL: Final = re.compile(r"(?P<file>.+)::(?P<column>[^:]*)\[(?P<row>\d+)\]", re.DOTALL)


class Member(Struct, frozen=True):
    """A file inside an uncompressed tar, read without unpacking."""

    file: Path
    offset: int
    size: int
    name: str

    def __str__(self) -> str:
        return f"{self.file}::{self.offset}+{self.size}::{self.name}"


class Cell(Struct, frozen=True):
    """The bytes in a row and column of a Parquet table."""

    file: Path
    column: str
    row: int

    def __str__(self) -> str:
        return f"{self.file}::{self.column}[{self.row}]"


Location = Path | Member | Cell


class NoFile(Exception):
    """The location exists but is not a file."""


def location(text: str) -> Location:
    """Parse the `str` of a location."""
    if "::" in text and not os.path.lexists(text):  # a file may be called so, too
        if match := _MEMBER.fullmatch(text):
            return Member(Path(match["file"]), int(match["offset"]), int(match["size"]), match["name"])
        if match := _CELL.fullmatch(text):
            return Cell(Path(match["file"]), match["column"], int(match["row"]))
    return Path(text)


def file_of(image_location: Location) -> Path:
    """Return the file on disk that contains the image."""
    return image_location if isinstance(image_location, Path) else image_location.file


def size_of(image_location: Location) -> int | None:
    """Return an image's size in bytes; None if unknown without reading it."""
    if isinstance(image_location, Member):
        return image_location.size
    try:
        return None if isinstance(image_location, Cell) else image_location.stat().st_size
    except OSError:
        return None


def opened(image_location: Location) -> Path | BinaryIO:
    """Return what Pillow can open: a file's path, or the bytes of a member or cell.

    Raises:
        OSError: The file cannot be read.
        NoFile: It is a folder, a pipe or a device.
        ValueError: It is not the file that it was when it was listed.
    """
    if not stat.S_ISREG(os.stat(file_of(image_location)).st_mode):
        raise NoFile("It is not a file but a folder, a pipe or a device.")  # whose reading may never end
    if isinstance(image_location, Path):
        return image_location
    return io.BytesIO(
        _member_bytes(image_location) if isinstance(image_location, Member) else _cell_bytes(image_location)
    )


def _member_bytes(member: Member) -> bytes:
    with member.file.open("rb") as file:
        file.seek(member.offset)
        data = file.read(member.size)
    if len(data) < member.size:
        raise ValueError(f"{member.file.name} ends within {member.name}")
    return data


def _cell_bytes(cell: Cell) -> bytes:
    value = _cell(cell.file, cell.file.stat().st_mtime_ns, cell.column, cell.row)
    # Hugging Face keeps images as {"bytes", "path"}.
    data = value.get("bytes") if isinstance(value, dict) else value
    if not isinstance(data, bytes):
        raise ValueError(f"row {cell.row} of {cell.file.name} holds no image bytes")
    return data


def _cell(file: Path, changed: int, column: str, row: int) -> Any:
    table, firsts = _parquet(file, changed)
    group = max(number for number, first in enumerate(firsts) if first <= row)
    if _size(table, column, group) <= _WHOLE:
        return _group(file, changed, column, group)[row - firsts[group]].as_py()
    return _reader(file, changed, column, group).at(row - firsts[group])


@functools.lru_cache(maxsize=2)
def _parquet(file: Path, _changed: int) -> tuple[pyarrow.parquet.ParquetFile, list[int]]:
    import pyarrow.parquet

    table = pyarrow.parquet.ParquetFile(file, buffer_size=1 << 20, pre_buffer=False)
    sizes = [table.metadata.row_group(group).num_rows for group in range(table.metadata.num_row_groups)]
    return table, [sum(sizes[:group]) for group in range(len(sizes))]


def _size(table: pyarrow.parquet.ParquetFile, column: str, group: int) -> int:
    """Return the decompressed size of a column in a row group, in bytes."""
    group_facts = table.metadata.row_group(group)
    parts = [group_facts.column(number) for number in range(group_facts.num_columns)]
    return sum(part.total_uncompressed_size for part in parts if part.path_in_schema.partition(".")[0] == column)


@functools.lru_cache(maxsize=2)
def _group(file: Path, changed: int, column: str, group: int) -> pyarrow.ChunkedArray:
    return _parquet(file, changed)[0].read_row_group(group, columns=[column], use_threads=False).column(column)


@functools.lru_cache(maxsize=1)
def _reader(file: Path, changed: int, column: str, group: int) -> _Reader:
    return _Reader(_parquet(file, changed)[0], column, group)


class _Reader:
    """Reads rows of a large row group a few at a time; fastest in order."""

    def __init__(self, table: pyarrow.parquet.ParquetFile, column: str, group: int) -> None:
        self._table, self._column, self._group = table, column, group
        self._first, self._held = 0, None
        self._batches = iter(())

    def at(self, row: int) -> Any:
        """Return the value of a row of the group."""
        if self._held is None or row < self._first:
            self._first, self._held = 0, []
            self._batches = self._table.iter_batches(
                _AT_ONCE, row_groups=[self._group], columns=[self._column], use_threads=False
            )
        while row >= self._first + len(self._held):
            self._first += len(self._held)
            self._held = next(self._batches).column(0)
        return self._held[row - self._first].as_py()
