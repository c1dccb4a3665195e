"""Named selections: pairs saved by item id, so that they apply to any step and run."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from jaxtyping import Int
from msgspec import Struct
from sqlalchemy import delete, insert, select

from trainer.analysis.progress import Progress, silent
from trainer.store import cells
from trainer.store.columns import taken
from trainer.store.database import fetch
from trainer.store.rows import StoreError
from trainer.store.schema import selection as table
from trainer.untrusted import files as untrusted_files

if TYPE_CHECKING:
    from pathlib import Path

    from trainer.store.database import Database
    from trainer.store.snapshot_files import Items

_AT_ONCE: Final = 32_768
"""Pairs that are Python's values at a time: those of a million take half a gigabyte."""


class NamedSelection(Struct, frozen=True):
    """Pairs under a name."""

    id: int  # Row of the store.
    name: str  # Unique among the selections of one dataset.
    dataset: str  # `dataset-split` that the items are of.
    items: tuple[int | str, ...]  # Item ids, as the snapshot's `items.parquet` has them.
    created_at: float  # Unix seconds.

    @property
    def n(self) -> int:
        """The number of pairs."""
        return len(self.items)


class Selections:
    """The table of named selections; changes raise `LookOnly` if `check_kept` does."""

    def __init__(self, database: Database, check_kept: Callable[[], None]) -> None:
        self._database = database
        self._check_kept = check_kept

    def all(self, dataset: str | None = None) -> list[NamedSelection]:
        """Return the selections of one dataset (`scenes-renderings`), or all, by name, without invalid ones."""
        query = select(table).order_by(table.c.name, table.c.id)
        if dataset is not None:
            query = query.where(table.c.dataset == dataset)
        with self._database.read() as connection:
            rows = fetch(connection, query)
        return [selection for row in rows if (selection := _read(row._mapping)) is not None]

    def get(self, ref: int | str, dataset: str | None = None) -> NamedSelection:
        """Return the selection with this number or name.

        Raises:
            StoreError: There is none, or the name is used with several datasets and none is given.
        """
        everything = self.all(dataset)
        matches = [s for s in everything if s.name == str(ref)] or [s for s in everything if str(s.id) == str(ref)]
        if len(matches) == 1:
            return matches[0]
        if matches:
            data = ", ".join(s.dataset for s in matches)
            raise StoreError(
                f"Selections named {ref!r} exist for {data}. Name the data, or use the selection's number."
            )
        names = ", ".join(repr(s.name) for s in everything) or "none are kept yet"
        raise StoreError(f"There is no selection {ref!r}; there are: {names}.")

    def keep(self, name: str, dataset: str, items: Sequence[int | str]) -> NamedSelection:
        """Save these item ids under a name, replacing one with the same name and dataset.

        Args:
            name: Not empty; spaces around it do not count.
            dataset: `dataset-split` of the items.
            items: Item ids, at least one.

        Raises:
            StoreError: There is no name or no item.
        """
        return self._put(name, dataset, items, {"created_at": time.time()})

    def restore(self, dropped: NamedSelection) -> None:
        """Restore a deleted selection under its old number."""
        self._put(dropped.name, dropped.dataset, dropped.items, {"created_at": dropped.created_at, "id": dropped.id})

    def drop(self, selection: NamedSelection) -> None:
        """Delete a selection; no error if it does not exist."""
        self._check_kept()
        with self._database.write() as connection:
            connection.execute(delete(table).where(table.c.id == selection.id))

    def _put(self, name: str, dataset: str, items: Sequence[int | str], values: dict[str, Any]) -> NamedSelection:
        self._check_kept()
        name = " ".join(name.split())
        if not name:
            raise StoreError("A selection needs a name.")
        if not len(items):
            raise StoreError("Nothing is selected. Select pairs first, then keep them under a name.")
        plain = [item.item() if isinstance(item, np.generic) else item for item in items]
        values = values | {"name": name, "dataset": dataset, "items": json.dumps(plain, ensure_ascii=False)}
        replaced = (table.c.name == name) & (table.c.dataset == dataset) | (table.c.id == values.get("id"))
        with self._database.write() as connection:
            connection.execute(delete(table).where(replaced))
            number = connection.execute(insert(table).values(**values)).inserted_primary_key[0]
        return NamedSelection(int(number), name, dataset, tuple(plain), values["created_at"])


def rows_of(selection: NamedSelection, items: Items) -> Int[np.ndarray, " k"]:
    """Return the ascending rows of the selection's items in a snapshot, without missing ones."""
    if not selection.n or not len(items):
        return np.empty(0, np.int64)
    ids = np.asarray(selection.items, dtype=items.id.dtype if items.id.dtype.kind != "O" else object)
    return np.flatnonzero(np.isin(items.id, ids)).astype(np.int64)


def write_selection(items: Items, rows: Int[np.ndarray, " k"], file: Path, progress: Progress = silent) -> None:
    """Write the pairs: `.parquet` or `.csv` with all metadata, `.txt` as a list of image paths.

    Raises:
        StoreError: Another ending, or the file cannot be written.
    """
    from trainer.store.files import told_if_unwritable, write_atomically

    ways = {".parquet": _write_parquet, ".csv": _write_csv, ".txt": _write_paths}
    writer = ways.get(file.suffix.casefold())
    if writer is None:
        raise StoreError(f"{file.name} needs the ending .parquet, .csv, or .txt (image paths, one per line).")
    with told_if_unwritable(file, "Choose another folder.", StoreError):
        write_atomically(file, lambda draft: writer(items, rows, draft, progress))


def _table(items: Items, rows: Int[np.ndarray, " k"]) -> Any:
    import pyarrow as pa

    columns: dict[str, Any] = {"row": rows, "id": np.asarray(items.id)[rows].tolist()}
    named = {"filepath": items.path, "title": items.caption, "label": items.label, "split": items.split}
    columns |= {name: list(taken(values, rows)) for name, values in (named | items.metadata).items()}
    return pa.table(columns)


def _parts(items: Items, rows: Int[np.ndarray, " k"]) -> Iterator[tuple[float, Any]]:
    """Yield the table part by part, each with the share that is before it."""
    for start in range(0, max(len(rows), 1), _AT_ONCE):
        yield start / max(len(rows), 1), _table(items, rows[start : start + _AT_ONCE])


def _write_parquet(items: Items, rows: Int[np.ndarray, " k"], file: Path, progress: Progress) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    schemas = []
    for share, part in _parts(items, rows):
        progress(share / 2, "reading columns")
        schemas.append(part.schema)
    # Numbers of one part may be whole, and all values of another missing.
    schema = pa.unify_schemas(schemas, promote_options="permissive")
    with pq.ParquetWriter(file, schema) as writer:
        for share, part in _parts(items, rows):
            progress((1 + share) / 2, "writing pairs")
            writer.write_table(part.cast(schema))


def _write_csv(items: Items, rows: Int[np.ndarray, " k"], draft: Path, progress: Progress) -> None:
    import csv

    from trainer.untrusted.escaping import cell

    with draft.open("w", encoding="utf-8", newline="") as out:
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow([cell(name) for name in _table(items, rows[:0]).column_names])
        for share, part in _parts(items, rows):
            progress(share, "writing pairs")
            columns = [column.to_pylist() for column in part.columns]
            writer.writerows([cell(value) for value in row] for row in zip(*columns, strict=True))


def _write_paths(items: Items, rows: Int[np.ndarray, " k"], draft: Path, _progress: Progress) -> None:
    # One of two lines would be two others.
    paths = [path for path in taken(items.path, rows) if path and "\n" not in path]
    if not paths:
        raise StoreError("None of these pairs names a file of an image. Choose .csv or .parquet.")
    draft.write_text("".join(f"{path}\n" for path in paths), encoding="utf-8")


def _read(row: Mapping[Any, Any]) -> NamedSelection | None:
    if cells.faults("selection", row):
        return None
    try:
        items = untrusted_files.parse_json(row["items"])
    except ValueError:
        return None
    # One kind of whole numbers or words, as ids are: numpy has to hold them in one array.
    if not isinstance(items, list) or not items or {type(item) for item in items} not in ({int}, {str}):
        return None
    if isinstance(items[0], int) and not -(2**63) <= min(items) <= max(items) < 2**63:
        return None
    return NamedSelection(row["id"], row["name"], row["dataset"], tuple(items), row["created_at"])
