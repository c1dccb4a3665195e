"""Where a picture lies: in a file of its own, in a tar, or in a cell of a Parquet table; one line of text for all."""

from __future__ import annotations

import functools
import io
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final

if TYPE_CHECKING:
    import pyarrow.parquet

_MEMBER: Final = re.compile(r"(?P<file>.+)::(?P<offset>\d+)\+(?P<size>\d+)::(?P<name>.*)", re.DOTALL)
_CELL: Final = re.compile(r"(?P<file>.+)::(?P<column>[^:]*)\[(?P<row>\d+)\]", re.DOTALL)


@dataclass(frozen=True)
class Member:
    """A file inside an uncompressed tar; read without unpacking anything."""

    file: Path
    offset: int
    size: int
    name: str

    def __str__(self) -> str:
        return f"{self.file}::{self.offset}+{self.size}::{self.name}"


@dataclass(frozen=True)
class Cell:
    """The bytes in a row of a column of a Parquet table."""

    file: Path
    column: str
    row: int

    def __str__(self) -> str:
        return f"{self.file}::{self.column}[{self.row}]"


Location = Path | Member | Cell


def location(text: str) -> Location:
    """The place that `str` of a location names."""
    if "::" in text:
        if found := _MEMBER.fullmatch(text):
            return Member(Path(found["file"]), int(found["offset"]), int(found["size"]), found["name"])
        if found := _CELL.fullmatch(text):
            return Cell(Path(found["file"]), found["column"], int(found["row"]))
    return Path(text)


def file_of(place: Location) -> Path:
    """The file on the disk that holds the picture."""
    return place if isinstance(place, Path) else place.file


def opened(place: Location) -> Path | BinaryIO:
    """What Pillow can open: the path of a file, or the bytes of a member or cell.

    Raises:
        OSError: The file cannot be read.
        ValueError: It is not the file that it was when it was listed.
    """
    if isinstance(place, Path):
        return place
    return io.BytesIO(_member_bytes(place) if isinstance(place, Member) else _cell_bytes(place))


def _member_bytes(place: Member) -> bytes:
    with place.file.open("rb") as file:
        file.seek(place.offset)
        data = file.read(place.size)
    if len(data) < place.size:
        raise ValueError(f"{place.file.name} ends within {place.name}")
    return data


def _cell_bytes(place: Cell) -> bytes:
    values, first = _column_part(place.file, place.file.stat().st_mtime_ns, place.column, place.row)
    value = values[place.row - first].as_py()
    # Hugging Face keeps images as {"bytes", "path"}.
    data = value.get("bytes") if isinstance(value, dict) else value
    if not isinstance(data, bytes):
        raise ValueError(f"row {place.row} of {place.file.name} holds no image bytes")
    return data


def _column_part(file: Path, changed: int, column: str, row: int) -> tuple[pyarrow.ChunkedArray, int]:
    """The values of the row group that holds a row, and the number of its first row."""
    _, firsts = _parquet(file, changed)
    group = max(number for number, first in enumerate(firsts) if first <= row)
    return _group(file, changed, column, group), firsts[group]


@functools.lru_cache(maxsize=2)
def _parquet(file: Path, _changed: int) -> tuple[pyarrow.parquet.ParquetFile, list[int]]:
    import pyarrow.parquet

    table = pyarrow.parquet.ParquetFile(file)
    sizes = [table.metadata.row_group(group).num_rows for group in range(table.metadata.num_row_groups)]
    return table, [sum(sizes[:group]) for group in range(len(sizes))]


@functools.lru_cache(maxsize=2)
def _group(file: Path, changed: int, column: str, group: int) -> pyarrow.ChunkedArray:
    return _parquet(file, changed)[0].read_row_group(group, columns=[column]).column(column)
