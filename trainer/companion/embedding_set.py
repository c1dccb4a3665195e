"""The embeddings of one split at one step on their way from a training loop to a snapshot."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from jaxtyping import Float16

from trainer.analysis.unit_rows import is_vector, unit_rows
from trainer.companion.captured_values import COLUMNS, array_of, captured_items, captured_rows, size_of
from trainer.store.snapshot_files import Items

_NO_NAME: Final = re.compile(r"[^\w.+-]+")
_MOST_NAMED: Final = 3
"""Ids that a sentence lists."""


@dataclass(frozen=True, eq=False)
class EmbeddingSet:
    """What was captured in the loop; see `RunLogger.embeddings`.

    Attributes:
        image, text: Arrays, or tensors on the CPU; None for no such side.
        columns: Columns of the items; None for those of the step before, or numbers.
        sampled: Whether these are a part of the split.
    """

    step: int
    split: str
    image: Any
    text: Any
    columns: Mapping[str, Sequence[Any]] | None
    sampled: bool = False

    @property
    def size(self) -> int:
        """Bytes that it takes while it waits."""
        return sum(size_of(rows) for rows in (self.image, self.text) if rows is not None)

    @property
    def n(self) -> int:
        """The number of its rows."""
        return len(self.text if self.image is None else self.image)


@dataclass(frozen=True)
class PreparedSet:
    """What can be stored of a set."""

    arrays: dict[str, Float16[np.ndarray, "n d"]]  # Side -> unit rows.
    items: Items  # Of each row.
    dropped: list[Any]  # Ids of the rows that are left out because they have no direction.

    @property
    def width(self) -> int:
        """Numbers of a row."""
        return int(next(iter(self.arrays.values())).shape[1])


def captured_set(step: int, image: Any, text: Any, items: Any, split: str, *, sampled: bool) -> EmbeddingSet:
    """Copy the embeddings of a split.

    Raises:
        ValueError: They do not fit each other, or there are none.
    """
    sides = {name: captured_rows(rows, name) for name, rows in (("image", image), ("text", text)) if rows is not None}
    if not sides:
        raise ValueError("neither image nor text embeddings were given")
    shapes = {tuple(rows.shape) for rows in sides.values()}
    if len(shapes) > 1:
        raise ValueError(f"images are {tuple(sides['image'].shape)} and texts {tuple(sides['text'].shape)}")
    columns = captured_items(items, len(next(iter(sides.values()))))
    name = _NO_NAME.sub("-", split).strip(".-")[:60] or "val"
    return EmbeddingSet(step, name, sides.get("image"), sides.get("text"), columns, sampled)


def prepared(captured: EmbeddingSet, columns: Mapping[str, Sequence[Any]] | None) -> PreparedSet:
    """Return the rows with a direction, brought to unit length.

    Args:
        columns: Of its items; None: rows are known by number.

    Raises:
        ValueError: Ids are equal, or fewer than two rows have a direction.
    """
    sides = {
        name: array_of(rows) for name, rows in (("image", captured.image), ("text", captured.text)) if rows is not None
    }
    columns = columns or {}
    ids = _ids(columns.get("id", range(captured.n)))
    sound = np.logical_and.reduce([is_vector(rows) for rows in sides.values()])
    if sound.sum() < 2:
        raise ValueError(f"of {captured.n} rows {int(sound.sum())} have a direction: at least two are needed")
    rows = np.flatnonzero(sound).tolist()
    arrays = {name: unit_rows(side[sound]).astype(np.float16) for name, side in sides.items()}
    dropped = [ids[row] for row in np.flatnonzero(~sound).tolist()]
    return PreparedSet(arrays, _items(columns, [ids[row] for row in rows], rows, captured.split), dropped)


def with_columns_of(before: Mapping[str, Sequence[Any]], ids: Sequence[Any]) -> Mapping[str, Sequence[Any]]:
    """Return the columns of items of which ids alone are given, in any order: those of a step before, if it has all."""
    rows = {row_id: row for row, row_id in enumerate(before.get("id", ()))}
    if not rows.keys() >= {*ids}:
        return {"id": ids}
    return {name: [values[rows[row_id]] for row_id in ids] for name, values in before.items()}


def named_ids(ids: Sequence[Any]) -> str:
    """Return the first of some ids as words."""
    more = f" and {len(ids) - _MOST_NAMED:,} more" if len(ids) > _MOST_NAMED else ""
    return ", ".join(map(str, ids[:_MOST_NAMED])) + more


def _ids(ids: Sequence[Any]) -> list[Any]:
    """Return ids of one type.

    Raises:
        ValueError: Two are equal.
    """
    values = list(ids) if all(type(value) is int for value in ids) else [str(value) for value in ids]
    repeated = [value for value, count in Counter(values).items() if count > 1]
    if repeated:
        raise ValueError(f"{len(repeated):,} ids stand for several rows ({named_ids(repeated)})")
    return values


def _items(columns: Mapping[str, Sequence[Any]], ids: list[Any], rows: list[int], split: str) -> Items:
    texts = {
        name: [_text(columns[name][row]) for row in rows] if name in columns else [""] * len(rows)
        for name in COLUMNS[1:]
    }
    metadata = {
        name: _of_one_type([values[row] for row in rows]) for name, values in columns.items() if name not in COLUMNS
    }
    return Items(np.asarray(ids), split=[split] * len(rows), metadata=metadata, **texts)


def _text(value: Any) -> str:
    return "" if value is None else str(value)


def _of_one_type(values: list[Any]) -> list[Any]:
    is_number = all(value is None or isinstance(value, int | float) for value in values)
    return values if is_number else [_text(value) for value in values]
