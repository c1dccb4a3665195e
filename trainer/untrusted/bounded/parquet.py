"""Read texts and numbers of a Parquet file of pairs in the helper process, safe from decompression bombs.

A file of 2 kB can stand for gigabytes: a value is stored once for all rows that repeat it, and compressed. So values
stay where they are stored once until it is known how long they are, long ones are cut, and rows are handed on a few
megabytes at a time.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pyarrow.types as types

from trainer.untrusted import files as untrusted_files
from trainer.untrusted.bounded import Unreadable

_ROWS: Final = 10_000
"""Rows that are handed on together at most."""
_MANY_ROWS: Final = 100_000
"""The same of a table without long values: each portion costs the words that all rows share once more."""
_BATCH_BYTES: Final = 16 * 2**20
"""The same in bytes, and of what is read at a time as far as the file tells the truth."""
_FEW_ROWS: Final = 1_000_000
"""Rows that are read whatever the size of their file."""
_MOST_COLUMNS: Final = 1_000
_MOST_FOOTER: Final = 64 * 2**20
_TIMES: Final = 64
"""How many times its size the words of a table may have, beyond 256 MiB: no text is compressed so well."""
_FREE: Final = 256 * 2**20

Answer = tuple[dict[str, Any], pa.Schema, Iterator[pa.RecordBatch]]


def parts(path: Path, options: dict[str, Any]) -> Answer:
    """Return the plain columns of a file of pairs.

    With them come `names`: all columns, `inside`: whether images lie in the table, `classes`: column -> what its
    numbers are called, `plain`: those that are sent.

    Args:
        options: `image` and `caption`: the columns of pairs; `most`: characters of a value, one more of which
            are kept of a longer one.

    Raises:
        Unreadable: It claims what cannot be.
    """
    untrusted_files.check_ordinary(path)
    check_footer(path)
    opened = pq.ParquetFile(path)
    schema = opened.schema_arrow
    _check_rows(path, opened.metadata.num_rows)
    facts: dict[str, Any] = {"names": schema.names, "inside": False, "classes": {}, "plain": []}
    image, caption, most = options["image"], options["caption"], int(options["most"])
    if not {image, caption} <= set(schema.names):
        return facts, pa.schema([]), iter(())
    facts["inside"] = not _is_words(schema.field(image).type)
    plain = [name for name in schema.names if _is_plain(schema.field(name).type, name == caption)]
    columns = [name for name in plain if not (facts["inside"] and name == image)]
    facts["plain"] = columns
    facts["classes"] = {column: names for column in columns if (names := class_names(schema, column))}
    text_columns = [name for name in columns if _is_words(schema.field(name).type)]
    claimed = _claimed(opened.metadata, set(columns))
    _check_bytes(path, claimed)
    stored_once = [] if _is_plausible(path, opened.metadata, text_columns, claimed) else text_columns
    rows = max(1, min(_ROWS, _BATCH_BYTES * max(opened.metadata.num_rows, 1) // max(claimed, 1)))
    again = pq.ParquetFile(path, read_dictionary=stored_once, buffer_size=1 << 20, pre_buffer=False)
    sent_schema = pa.schema([pa.field(name, _sent(schema.field(name).type)) for name in columns])
    batches = again.iter_batches(rows, columns=columns, use_threads=False)
    return facts, sent_schema, _bounded(path, batches, sent_schema, most)


def head(path: Path, options: dict[str, Any]) -> Answer:
    """Return the first rows of the text columns.

    Args:
        options: `rows`: how many at most; `most` as in `parts`.

    Raises:
        Unreadable: It claims what cannot be.
    """
    untrusted_files.check_ordinary(path)
    check_footer(path)
    schema = pq.read_schema(path)
    columns = [name for name in schema.names if _is_words(schema.field(name).type)]
    sent_schema = pa.schema([pa.field(name, pa.large_string()) for name in columns])
    opened = pq.ParquetFile(path, read_dictionary=columns, buffer_size=1 << 20, pre_buffer=False)
    first = itertools.islice(opened.iter_batches(options["rows"], columns=columns, use_threads=False), 1)
    classes = next((name for name in schema.names if class_names(schema, name)), "")
    return (
        {"names": schema.names, "classes": classes},
        sent_schema,
        _bounded(path, first, sent_schema, int(options["most"])),
    )


def table(path: Path, options: dict[str, Any]) -> Answer:
    """Return all columns of a table, without truncation.

    Args:
        options: `rows`: how many it must have.

    Raises:
        Unreadable: It has others, or claims what cannot be.
    """
    about, claimed = _checked(path, options["rows"])
    schema = about.schema_arrow
    text_columns = [field.name for field in schema if _is_words(field.type)]
    rows = max(1, min(_MANY_ROWS, _BATCH_BYTES * max(about.metadata.num_rows, 1) // max(claimed, 1)))
    stored_once = [] if _is_plausible(path, about.metadata, text_columns, claimed) else text_columns
    again = pq.ParquetFile(path, read_dictionary=stored_once, buffer_size=1 << 20, pre_buffer=False)
    sent_schema = pa.schema([pa.field(field.name, _stored(field.type)) for field in schema])
    return {}, sent_schema, _bounded(path, again.iter_batches(rows, use_threads=False), sent_schema, None)


def numbers(path: Path, options: dict[str, Any]) -> Answer:
    """Return the columns of numbers of a table of any number of rows.

    Raises:
        Unreadable: It claims what cannot be.
    """
    about, _ = _checked(path, None)
    sent_schema = pa.schema(
        [field for field in about.schema_arrow if types.is_integer(field.type) or types.is_floating(field.type)]
    )
    batches = about.iter_batches(_ROWS, columns=sent_schema.names, use_threads=False)
    return {}, sent_schema, _bounded(path, batches, sent_schema, None)


def whole(path: Path, *, rows: int | None, leave_out: Collection[str] = ()) -> pa.Table:
    """Read a table written by this computer in this process, which is faster for small ones.

    Its description is checked, but what a page of it unfolds to is known only when that is done: a stranger's table is
    read by `table`, in a helper.

    Args:
        rows: How many it must have; None for as many as it says.
        leave_out: Columns that are not wanted.

    Raises:
        Unreadable: It has others, or claims what cannot be.
    """
    about, claimed = _checked(path, rows)
    names = [name for name in about.schema_arrow.names if name not in leave_out]
    text_columns = [field.name for field in about.schema_arrow if _is_words(field.type) and field.name not in leave_out]
    most = _FREE + _TIMES * path.stat().st_size
    if _is_plausible(path, about.metadata, text_columns, claimed):
        # Not `read_table`: it imports pyarrow.dataset, which imports pandas where that is installed, for 0.7 s.
        return pq.ParquetFile(path).read(names)
    table = pq.ParquetFile(path, read_dictionary=text_columns).read(names)
    if sum(int(_lengths(chunk).sum()) for name in text_columns for chunk in table.column(name).chunks) > most:
        raise Unreadable(
            f"{path.name} has {path.stat().st_size:,} bytes and many times more once it is unpacked: its words "
            "repeat themselves."
        )
    return table.cast(pa.schema([about.schema_arrow.field(name) for name in names]))


def _checked(path: Path, rows: int | None) -> tuple[pq.ParquetFile, int]:
    """Return metadata of a table with this many rows, and the claimed bytes of its columns."""
    untrusted_files.check_ordinary(path)
    check_footer(path)
    about = pq.ParquetFile(path)
    rows = about.metadata.num_rows if rows is None else rows
    if about.metadata.num_rows != rows or about.metadata.num_columns > _MOST_COLUMNS:
        raise Unreadable(
            f"{path.name} claims {about.metadata.num_rows:,} rows and {about.metadata.num_columns:,} columns, "
            f"where {rows:,} rows and at most {_MOST_COLUMNS:,} columns are expected."
        )
    _check_rows(path, rows)
    claimed = _claimed(about.metadata, set(about.schema_arrow.names))
    _check_bytes(path, claimed)
    return about, claimed


def _is_plausible(path: Path, about: pq.FileMetaData, text_columns: list[str], claimed: int) -> bool:
    """Return whether a table stays small though every row may repeat the longest value that is stored once.

    Then no dictionary is needed: that of a million different paths takes hundreds of megabytes.
    """
    repeated = about.num_rows * len(text_columns) * _longest_repeated(path, about, text_columns)
    return repeated + claimed <= _FREE + _TIMES * path.stat().st_size


def _longest_repeated(path: Path, about: pq.FileMetaData, text_columns: list[str]) -> int:
    """Return the size of the longest dictionary value, which the first row of a group decodes."""
    opened, longest = pq.ParquetFile(path, read_dictionary=text_columns, buffer_size=1 << 20, pre_buffer=False), 0
    for group in range(about.num_row_groups if text_columns else 0):
        for batch in opened.iter_batches(1, row_groups=[group], columns=text_columns, use_threads=False):
            lengths = (pc.max(pc.binary_length(column.dictionary)).as_py() or 0 for column in batch.columns)
            longest = max(longest, *lengths)
            break
    return longest


def check_footer(path: Path) -> None:
    """Check that the footer of a Parquet file has a usual length; reads eight bytes.

    Raises:
        Unreadable: It is longer.
    """
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - 8))
        length = int.from_bytes(file.read(4), "little")
    if length > _MOST_FOOTER and path.stat().st_size > _MOST_FOOTER:
        raise Unreadable(
            f"{path.name} has {length:,} bytes that describe it, more than a table of pairs. Write it again."
        )


def class_names(schema: pa.Schema, column: str) -> list[str]:
    """Return what `datasets` says that the numbers of a column of classes mean; empty for another column."""
    try:
        features = json.loads((schema.metadata or {}).get(b"huggingface", b"{}")).get("info", {}).get("features", {})
        return list(map(str, features.get(column, {}).get("names", ())))
    except (ValueError, AttributeError, TypeError, RecursionError):
        return []


def _check_rows(path: Path, rows: int) -> None:
    """Check the number of rows, because a few kilobytes can contain billions of equal rows."""
    size = path.stat().st_size
    if rows > max(_FEW_ROWS, size):
        raise Unreadable(
            f"{path.name} has {size:,} bytes and claims {rows:,} rows, more than one per byte; refusing a "
            "file that expands this much. Write it again without repeated rows."
        )


def _check_bytes(path: Path, claimed: int) -> None:
    size = path.stat().st_size
    if claimed > _FREE + _TIMES * size:
        raise Unreadable(
            f"{path.name} has {size:,} bytes and its words have {claimed:,} once it is unpacked: no table of pairs is "
            "compressed so well. Write it again without values that repeat themselves."
        )


def _claimed(about: pq.FileMetaData, columns: set[str]) -> int:
    """Return the claimed decompressed size of these columns in bytes."""
    total = 0
    for group in range(about.num_row_groups):
        facts = about.row_group(group)
        chunks = (facts.column(number) for number in range(facts.num_columns))
        total += sum(
            chunk.total_uncompressed_size for chunk in chunks if chunk.path_in_schema.partition(".")[0] in columns
        )
    return total


def _bounded(
    path: Path, batches: Iterator[pa.RecordBatch], schema: pa.Schema, most: int | None
) -> Iterator[pa.RecordBatch]:
    """Yield rows in batches of a few megabytes, with long values truncated unless `most` is None."""
    left = _FREE + _TIMES * path.stat().st_size
    for batch in batches:
        columns = batch.columns if most is None else [_cut(column, most) for column in batch.columns]
        sizes = np.full(batch.num_rows, 8 * max(len(columns), 1), np.int64)
        for column in columns:
            if types.is_dictionary(column.type):
                sizes += _lengths(column)
            elif _is_words(column.type):
                sizes += np.asarray(pc.fill_null(pc.binary_length(column), 0), np.int64)
            elif types.is_nested(column.type):
                sizes += column.nbytes // batch.num_rows
        left -= int(sizes.sum())
        if left < 0:
            raise Unreadable(
                f"{path.name} has {path.stat().st_size:,} bytes and many times more once it is unpacked: its words "
                "repeat themselves. Write it again without repetitions."
            )
        ends = np.cumsum(sizes)
        start = 0
        while start < batch.num_rows:
            before = int(ends[start - 1]) if start else 0
            end = max(start + 1, int(np.searchsorted(ends, before + _BATCH_BYTES)))
            arrays = [column.slice(start, end - start).cast(schema[i].type) for i, column in enumerate(columns)]
            yield pa.record_batch(arrays, schema=schema)
            start = end


def _cut(column: pa.Array, most: int) -> pa.Array:
    """Truncate long texts to one character more than `most`, those of lists too."""
    if types.is_list(column.type) or types.is_large_list(column.type):
        texts = _cut(column.values.dictionary_encode(), most).cast(pa.large_string())
        offsets = pa.array(np.asarray(column.offsets), pa.int64())
        return pa.LargeListArray.from_arrays(offsets, texts, mask=column.is_null())
    if types.is_dictionary(column.type):
        return pa.DictionaryArray.from_arrays(column.indices, _cut(column.dictionary, most))
    if not _is_words(column.type):
        return column
    long = pc.greater(pc.fill_null(pc.binary_length(column), 0), 4 * most)
    return pc.if_else(long, pc.utf8_slice_codeunits(column, 0, most + 1), column) if pc.any(long).as_py() else column


def _lengths(column: pa.DictionaryArray) -> np.ndarray:
    """Return the size of each value in bytes."""
    lengths = np.asarray(pc.fill_null(pc.binary_length(column.dictionary), 0), np.int64)
    indices = np.asarray(pc.fill_null(column.indices, 0), np.int64)
    return lengths[indices] if len(lengths) else np.zeros(len(column), np.int64)


def _sent(kind: pa.DataType) -> pa.DataType:
    if types.is_list(kind) or types.is_large_list(kind):
        return pa.large_list(pa.large_string())
    return pa.large_string() if _is_words(kind) else kind


def _stored(kind: pa.DataType) -> pa.DataType:
    return pa.large_string() if _is_words(kind) and not types.is_string(kind) else kind


def _is_plain(kind: pa.DataType, caption: bool) -> bool:
    """Return whether a column contains texts or numbers; captions may be lists."""
    listed = caption and (types.is_list(kind) or types.is_large_list(kind)) and _is_words(kind.value_type)
    return _is_words(kind) or listed or types.is_integer(kind) or types.is_floating(kind)


def _is_words(kind: pa.DataType) -> bool:
    """Return whether values are texts, including dictionary-encoded ones (categories)."""
    if types.is_dictionary(kind):
        return _is_words(kind.value_type)
    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind))
