"""Read x and y of a table written by another program; runs in the helper process."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import csv

from trainer.untrusted import files as untrusted_files
from trainer.untrusted.bounded import Unreadable
from trainer.untrusted.bounded.parquet import Answer, check_footer

_AT_ONCE: Final = 100_000
"""Rows."""
_BLOCK: Final = 1 << 20
"""Bytes of a CSV that are parsed at a time; no line may be longer."""
_WANTED: Final = pa.schema([("x", pa.float32()), ("y", pa.float32())])


def points(path: Path, options: dict[str, Any]) -> Answer:
    """Return the columns named x and y, in any case, in float32.

    Args:
        path: A Parquet file, or one of cells parted by commas, or by tabs where its name ends in `.tsv`.
        options: `most`: rows that it may have.

    Raises:
        Unreadable: It has more, or no such columns.
    """
    untrusted_files.check_ordinary(path)
    rows = _of_parquet(path, options["most"]) if path.suffix.lower() == ".parquet" else _of_cells(path)
    return {}, _WANTED, _counted(path, rows, options["most"])


def _of_parquet(path: Path, most: int) -> Iterator[pa.RecordBatch]:
    check_footer(path)
    opened = pq.ParquetFile(path, buffer_size=_BLOCK, pre_buffer=False)
    if opened.metadata.num_rows > most:
        raise Unreadable(_too_many(path, opened.metadata.num_rows, most))
    axes = _axes(path, opened.schema_arrow.names)
    batches = opened.iter_batches(_AT_ONCE, columns=axes, use_threads=False)
    return (batch.select(axes) for batch in batches)


def _of_cells(path: Path) -> Iterator[pa.RecordBatch]:
    parsing = csv.ParseOptions(delimiter="\t" if path.suffix.lower() == ".tsv" else ",")
    reading = csv.ReadOptions(use_threads=False, block_size=_BLOCK)
    names = csv.open_csv(path, reading, parsing).schema.names
    axes = _axes(path, names)
    kinds = csv.ConvertOptions(include_columns=axes, column_types=dict.fromkeys(axes, pa.float64()))
    return iter(csv.open_csv(path, reading, parsing, kinds))


def _counted(path: Path, batches: Iterator[pa.RecordBatch], most: int) -> Iterator[pa.RecordBatch]:
    count = 0
    for batch in batches:
        count += batch.num_rows
        if count > most:
            raise Unreadable(_too_many(path, count, most))
        # Numbers may become less exact.
        columns = [column.cast(pa.float32(), safe=False) for column in batch.columns]
        yield pa.record_batch(columns, schema=_WANTED)


def _too_many(path: Path, count: int, most: int) -> str:
    return f"{path.name} has {count:,} rows; more than {most:,} are not shown."


def _axes(path: Path, columns: list[str]) -> list[str]:
    """Return the names of the columns x and y."""
    names = {name.strip().lower(): name for name in columns}
    if not {"x", "y"} <= set(names):
        column_names = ", ".join(untrusted_files.spelled(name[:60]) for name in columns[:8])
        raise Unreadable(f"{path.name} has no columns x and y; its columns are {column_names}.")
    return [names["x"], names["y"]]
