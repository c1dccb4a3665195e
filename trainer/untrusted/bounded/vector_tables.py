"""Read vectors and descriptions from Parquet, Arrow, CSV, JSON Lines and files of words in the helper process.

A column of lists is a column of vectors, also where cells hold them as texts. Where a table has none, so are columns of
numbers that are numbered from 0 or 1 (`embedding_0`, `embedding_1`, ...), and in a CSV or TSV without a header, all of
numbers. Only the wanted rows leave the helper, a few megabytes at a time; Arrow files are read and not mapped, because
a map of a large one would count as memory taken.
"""

from __future__ import annotations

import itertools
import json
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.ipc
import pyarrow.json
import pyarrow.parquet as pq
import pyarrow.types as types

from trainer.untrusted import files as untrusted_files
from trainer.untrusted.bounded import Unreadable, word_vectors
from trainer.untrusted.bounded.arrays import MOST_WIDTH
from trainer.untrusted.bounded.parquet import Answer, check_footer, class_names

SUFFIXES: Final = (
    *(".parquet", ".arrow", ".feather", ".ipc", ".csv", ".tsv", ".jsonl", ".ndjson"),
    *word_vectors.WORDS,
)
_AT_ONCE: Final = 1_024
_MOST_WORDS: Final = 10_000
"""Characters of a text that are kept."""
_MOST_COLUMNS: Final = 200
_MOST_ROWS: Final = 2_000_000_000
_MOST_LINE: Final = 4 << 20
_LEAST_WIDE: Final = 4
_HEADERLESS: Final = "value_"
"""How the columns of a table without a header are called."""
_NUMBERED: Final = re.compile(r"(.*?)(\d{1,6})[\])]?")
_NUMBER: Final = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?|nan|[+-]?inf", re.IGNORECASE)
_LIST: Final = re.compile(r"\s*\[[-+\d.,e\s]+\]\s*")
QUOTED, PLAIN, BARE = "quoted", "plain", "bare"
"""Forms of a table of cells: with quotes; without them; of one column without quotes and without a header."""
_CLASSES: Final = b"classes"
"""Of a field: the names of its classes."""


def describe(path: Path, options: dict[str, Any]) -> Answer:
    """Return the facts `rows`, `vectors` (column -> width), `wide`, `plain` and `other` (names of columns); no rows.

    `wide` are the columns of each vector that is no column of lists.

    Plain are texts, lists of texts, numbers and dates. Of whole numbers are vectors only where none are of fractions.

    Raises:
        Unreadable: It is none of these files, or claims what cannot be.
    """
    schema, batches, rows = _opened(path, options)
    first = next(batches, None)
    lists = [field.name for field in schema if _is_list(field.type)]
    widths = {} if first is None else {name: _width(first.column(name)) for name in lists[:_MOST_COLUMNS]}
    if rows is None:
        rows = (0 if first is None else first.num_rows) + sum(batch.num_rows for batch in batches)
    wide = {} if any(widths.values()) else _wide(schema)
    vectors = {name: width for name, width in widths.items() if width} | {name: len(wide[name]) for name in wide}
    fractions = {name: width for name, width in vectors.items() if name in wide or _has_fractions(schema, name)}
    taken = {name for names in wide.values() for name in names}
    plain = [field.name for field in schema if _is_plain(field.type) and field.name not in taken][:_MOST_COLUMNS]
    other = [field.name for field in schema if not _is_plain(field.type) and field.name not in vectors][:_MOST_COLUMNS]
    facts = {"rows": rows, "vectors": fractions or vectors, "wide": wide, "plain": plain, "other": other}
    return facts, pa.schema([]), iter(())


def rows(path: Path, options: dict[str, Any]) -> Answer:
    """Return the chosen rows of one column of vectors, or of plain columns, in ascending order.

    Args:
        options: `rows`: ascending row numbers by absolute path; `vector`: a column and `width`, with `wide` where its
            numbers are columns, or `columns`: names of plain columns; `cells` and `forms`: encoding and separator, and
            the form, of a CSV or TSV, by absolute path.

    Raises:
        Unreadable: It claims what cannot be.
    """
    chosen = np.asarray(options["rows"][str(path)], np.int64)
    vector, columns = options.get("vector"), list(options.get("columns", ()))
    wide = list(options.get("wide", ()))
    schema, batches, _ = _opened(path, options, wide or ([vector] if vector else columns))
    if vector:
        fields = [pa.field(vector, pa.list_(pa.float32(), int(options["width"])))]
    else:
        fields = [_field(schema, name) for name in columns]
    return {}, pa.schema(fields), _chosen(batches, chosen, pa.schema(fields), bool(vector), wide)


def _field(schema: pa.Schema, name: str) -> pa.Field:
    """Return what a plain column is sent as; one of classes as their names, which are its metadata."""
    names = class_names(schema, name) if types.is_integer(schema.field(name).type) else []
    if not names:
        return pa.field(name, _sent(schema.field(name).type))
    return pa.field(
        name,
        pa.large_string(),
        metadata={_CLASSES: json.dumps([name_of_class[:_MOST_WORDS] for name_of_class in names])},
    )


def _chosen(
    batches: Iterator[pa.RecordBatch], chosen: np.ndarray, schema: pa.Schema, is_vector: bool, wide: list[str]
) -> Iterator[pa.RecordBatch]:
    start = 0
    for batch in batches:
        first, last = np.searchsorted(chosen, [start, start + batch.num_rows])
        indices = pa.array(chosen[first:last] - start)
        start += batch.num_rows
        if not len(indices):
            continue
        taken = batch.select(wide or schema.names).take(indices)
        if wide:
            yield pa.record_batch([_side_by_side(taken)], schema=schema)
            continue
        arrays = [
            _vectors(column, field.type.list_size) if is_vector else _named(column, field)
            for column, field in zip(taken.columns, schema)
        ]
        yield pa.record_batch(arrays, schema=schema)


def _opened(
    path: Path, options: dict[str, Any], columns: list[str] | None = None
) -> tuple[pa.Schema, Iterator[pa.RecordBatch], int | None]:
    """Return schema, batches of at most 1,024 rows, and the number of rows if the file has it."""
    if path.is_dir():
        return _of_lance(path, columns)
    untrusted_files.check_ordinary(path)
    suffix = word_vectors.ending(path)
    if suffix == ".parquet":
        check_footer(path)
        table = pq.ParquetFile(path, buffer_size=1 << 20, pre_buffer=False)
        if table.metadata.num_rows > _MOST_ROWS:
            raise Unreadable(f"{path.name} claims {table.metadata.num_rows:,} rows.")
        batches = table.iter_batches(_AT_ONCE, columns=columns, use_threads=False)
        return table.schema_arrow, batches, table.metadata.num_rows
    if suffix in (".arrow", ".feather", ".ipc"):
        return _of_arrow(path)
    if suffix in (".csv", ".tsv") or (suffix == ".txt" and _names_without_header(path, "utf-8", ",")):
        encoding, separator = options.get("cells", {}).get(str(path), ("utf-8", "\t" if suffix == ".tsv" else ","))
        form = options.get("forms", {}).get(str(path), QUOTED)
        names = ["label"] if form == BARE else _names_without_header(path, encoding, separator)
        # A quote in a table of TensorBoard's projector is a sign like any other.
        is_plain = bool(names) or form != QUOTED
        parsing = pa.csv.ParseOptions(
            delimiter=separator, quote_char=False if is_plain else '"', newlines_in_values=not is_plain
        )
        read = pa.csv.ReadOptions(use_threads=False, block_size=1 << 20, encoding=encoding, column_names=names)
        table = pa.csv.open_csv(path, read_options=read, parse_options=parsing)
        return _with_lists(table.schema, _small(table))
    if suffix in word_vectors.WORDS:
        return word_vectors.opened(path, _HEADERLESS, columns)
    if suffix in (".jsonl", ".ndjson"):
        lines = pa.json.read_json(path, read_options=pa.json.ReadOptions(use_threads=False, block_size=4 << 20))
        return lines.schema, iter(lines.to_batches(max_chunksize=_AT_ONCE)), lines.num_rows
    raise Unreadable(f"{path.name} cannot be read as a table of vectors; use {', '.join(SUFFIXES)}.")


def _with_lists(
    schema: pa.Schema, batches: Iterator[pa.RecordBatch]
) -> tuple[pa.Schema, Iterator[pa.RecordBatch], int | None]:
    """Return texts such as `[0.1, 0.2]`, as pandas writes lists and arrays into cells, as lists of numbers."""
    first = next(batches, None)
    if first is None:
        return schema, batches, None
    for name in (field.name for field in schema if _is_text(field.type)):
        cells = pc.drop_null(first.column(name))
        if len(cells) and _LIST.fullmatch(cells[0].as_py()):
            schema = schema.set(schema.get_field_index(name), pa.field(name, pa.list_(pa.float32())))
    return schema, (_cast(batch, schema) for batch in itertools.chain([first], batches)), None


def _cast(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    columns = []
    for field, column in zip(schema, batch.columns):
        if field.type != column.type:
            lists = pc.match_substring_regex(column, f"^{_LIST.pattern}$")
            numbers = pc.replace_substring_regex(column, r"^\s*\[[\s,]*|[\s,]*\]\s*$", "")
            column = pc.split_pattern_regex(pc.if_else(lists, numbers, None), r"[\s,]+").cast(field.type)
        columns.append(column)
    return pa.record_batch(columns, schema=schema)


def _names_without_header(path: Path, encoding: str, separator: str) -> list[str] | None:
    """Return names for the columns of a table of numbers whose first line is one of them; None where it is a header.

    The first cell may be a label, as TensorBoard's projector allows it. Whole numbers in a row are names that pandas
    gives to columns.
    """
    with path.open("rb") as file:
        first = file.readline(_MOST_LINE).decode(encoding, "replace").strip("\ufeff\r\n")
    cells = [cell.strip() for cell in first.split(separator)]
    labels = ["label"] if len(cells) > 2 and not _NUMBER.fullmatch(cells[0]) else []
    numbers = cells[len(labels) :]
    if len(numbers) < 2 or not all(_NUMBER.fullmatch(cell) for cell in numbers):
        return None
    if all(cell.isdecimal() for cell in numbers) and [int(cell[:9]) - int(numbers[0][:9]) for cell in numbers] == list(
        range(len(numbers))
    ):
        return None
    return [*labels, *(f"{_HEADERLESS}{number}" for number in range(len(numbers)))]


def _of_lance(path: Path, columns: list[str] | None) -> tuple[pa.Schema, Iterator[pa.RecordBatch], int | None]:
    """Read a data set of Lance, which is a folder."""
    # Each thread's stack counts as memory taken.
    os.environ |= {"LANCE_CPU_THREADS": "1", "LANCE_IO_THREADS": "1", "TOKIO_WORKER_THREADS": "1"}
    try:
        import lance
    except ImportError as error:
        raise Unreadable(
            f"{path.name} is a Lance data set, which the package pylance reads; it is not installed. "
            "Install it: pip install 'contrastive-explorer[lance]', or write the table as Parquet."
        ) from error
    table = lance.dataset(str(path))
    names = columns if columns is not None else table.schema.names
    batches = table.to_batches(columns=names, batch_size=_AT_ONCE, batch_readahead=1)
    return table.schema, _small(batches), table.count_rows()


def _of_arrow(path: Path) -> tuple[pa.Schema, Iterator[pa.RecordBatch], int | None]:
    file = pa.OSFile(str(path), "rb")
    if file.read(6) == b"ARROW1":
        opened = pa.ipc.open_file(file)
        batches = (opened.get_batch(number) for number in range(opened.num_record_batches))
        return opened.schema, _small(_valid(batches)), None
    file.seek(0)
    stream = pa.ipc.open_stream(file)
    return stream.schema, _small(_valid(stream)), None


def _valid(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the batches; Arrow itself believes what their offsets say, and reads other memory."""
    for batch in batches:
        batch.validate(full=True)
        yield batch


def _small(batches: Any) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for start in range(0, batch.num_rows, _AT_ONCE):
            yield batch.slice(start, _AT_ONCE)


def _wide(schema: pa.Schema) -> dict[str, list[str]]:
    """Return name -> columns of the vectors whose numbers are columns: at least four, numbered from 0 or 1."""
    groups: dict[str, dict[int, str]] = {}
    for field in schema:
        match = _NUMBERED.fullmatch(field.name)
        if match and (types.is_floating(field.type) or types.is_integer(field.type)):
            groups.setdefault(match[1], {}).setdefault(int(match[2]), field.name)
    return {
        begin.rstrip("_-. [(") or "vectors": [columns[number] for number in sorted(columns)]
        for begin, columns in groups.items()
        if (2 if begin == _HEADERLESS else _LEAST_WIDE) <= len(columns) <= MOST_WIDTH
        and min(columns) in (0, 1)
        and max(columns) - min(columns) == len(columns) - 1
    }


def _side_by_side(batch: pa.RecordBatch) -> pa.Array:
    """Return the numbers of the columns as vectors; one that is missing is not-a-number."""
    columns = [np.asarray(pc.fill_null(column.cast(pa.float32(), safe=False), np.nan)) for column in batch.columns]
    flat = np.stack(columns, axis=1).reshape(-1)
    return pa.FixedSizeListArray.from_arrays(pa.array(flat, pa.float32()), len(columns))


def _has_fractions(schema: pa.Schema, name: str) -> bool:
    return bool(types.is_floating(schema.field(name).type.value_type))


def _is_list(kind: pa.DataType) -> bool:
    return _is_listed(kind) and bool(types.is_floating(kind.value_type) or types.is_integer(kind.value_type))


def _is_listed(kind: pa.DataType) -> bool:
    return bool(types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind))


def _width(column: pa.Array) -> int:
    """Return the length of the first list; 0 if there is none, or it is longer than a vector."""
    lengths = (n.as_py() for n in itertools.islice(pc.list_value_length(column), 100))
    width = next((n for n in lengths if n), 0)
    return width if 2 <= width <= MOST_WIDTH else 0


def _vectors(column: pa.Array, width: int) -> pa.Array:
    """Return the lists as float32 vectors; one that is missing or of another length is not-a-number."""
    lengths = np.asarray(pc.fill_null(pc.list_value_length(column), -1))
    vectors = np.full((len(column), width), np.nan, np.float32)
    right = lengths == width
    if right.any():
        fitting = column.filter(pa.array(right))
        flat = np.asarray(pc.fill_null(fitting.flatten().cast(pa.float32()), np.nan), np.float32)
        vectors[right] = flat.reshape(-1, width)
    return pa.FixedSizeListArray.from_arrays(pa.array(vectors.reshape(-1)), width)


def _named(column: pa.Array, field: pa.Field) -> pa.Array:
    """Return a plain column as what it is sent as."""
    if _CLASSES not in (field.metadata or {}):
        return _plain(column, field.type)
    names = json.loads(field.metadata[_CLASSES])
    numbers = np.asarray(pc.fill_null(column.cast(pa.int64()), -1))
    valid = (numbers >= 0) & (numbers < len(names))
    return pa.array(names, field.type).take(pa.array(np.where(valid, numbers, 0), mask=~valid))


def _plain(column: pa.Array, kind: pa.DataType) -> pa.Array:
    if types.is_list(kind):
        ends = np.cumsum([0, *np.asarray(pc.fill_null(pc.list_value_length(column), 0))])
        return pa.ListArray.from_arrays(pa.array(ends, pa.int32()), _plain(column.flatten(), kind.value_type))
    if types.is_large_string(kind):
        return pc.utf8_slice_codeunits(column.cast(kind), 0, _MOST_WORDS)
    return column.cast(kind)


def _sent(kind: pa.DataType) -> pa.DataType:
    if _is_listed(kind):
        return pa.list_(pa.large_string())
    if types.is_boolean(kind) or types.is_integer(kind):
        return pa.int64()
    return pa.float64() if types.is_floating(kind) else pa.large_string()


def _is_plain(kind: pa.DataType) -> bool:
    number = types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind)
    dated = types.is_temporal(kind) or types.is_decimal(kind)
    coded = types.is_dictionary(kind) and types.is_string(kind.value_type)
    return bool(number or dated or coded or _is_text(kind) or (_is_listed(kind) and _is_text(kind.value_type)))


def _is_text(kind: pa.DataType) -> bool:
    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind))
