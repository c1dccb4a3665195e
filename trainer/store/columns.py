"""Columns of a table that stay in Arrow's memory: a million values cost no Python objects until they are asked for.

Making a million of Python's strings keeps every other thread of a process waiting, the window's among them; Arrow
counts, compares and sorts them without Python.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from jaxtyping import Float, Int

if TYPE_CHECKING:
    import pyarrow as pa

_AT_ONCE: Final = 8192
"""Values that become Python objects in one go: about a millisecond."""


class StoredColumn(Sequence):
    """A column as read; behaves like the list of its values and is equal to it."""

    __slots__ = ("_array", "_coded")

    def __init__(self, array: pa.ChunkedArray | pa.Array) -> None:
        whole = array.combine_chunks() if hasattr(array, "chunks") else array
        if hasattr(whole, "chunks"):  # of no chunks, or of more than fit one array
            import pyarrow as pa

            whole = pa.concat_arrays(whole.chunks) if whole.chunks else pa.array([], whole.type)
        self._array = _one_zero(whole)
        self._coded: tuple[Int[np.ndarray, " n"], list[Any]] | None = None

    def __len__(self) -> int:
        return len(self._array)

    def __getitem__(self, place: Any) -> Any:
        if isinstance(place, slice):
            start, stop, step = place.indices(len(self))
            if step != 1:
                return [self[i] for i in range(start, stop, step)]
            return self._array.slice(start, max(stop - start, 0)).to_pylist()
        at = int(place)
        at += len(self) if at < 0 else 0
        if not 0 <= at < len(self):
            raise IndexError(f"{place} of {len(self)} values")
        return self._array[at].as_py()

    def __iter__(self) -> Iterator[Any]:
        for start in range(0, len(self), _AT_ONCE):
            yield from self._array.slice(start, _AT_ONCE).to_pylist()

    def __eq__(self, other: object) -> bool:
        if isinstance(other, StoredColumn):
            return bool(self._array.equals(other._array))
        return list(self) == other if isinstance(other, list) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        """The values as numpy would make them of a list, a few thousand at a time."""
        parts = [np.asarray(self[start : start + _AT_ONCE], dtype) for start in range(0, len(self), _AT_ONCE)]
        return np.concatenate(parts) if parts else np.asarray([], dtype)

    def __repr__(self) -> str:
        return f"StoredColumn({self[:8]}{', …' if len(self) > 8 else ''})"

    def __reduce__(self) -> tuple[Any, ...]:
        return StoredColumn, (self._array,)

    def take(self, rows: Int[np.ndarray, " k"]) -> StoredColumn:
        """The values of these rows."""
        import pyarrow as pa

        return StoredColumn(self._array.take(pa.array(np.asarray(rows, np.int64))))

    def coded(self) -> tuple[Int[np.ndarray, " n"], list[Any]] | None:
        """A whole number for every row and what each number stands for (None: a missing value); None for lists.

        The numbers follow the order in which values first occur; equal values have equal numbers.
        """
        import pyarrow as pa

        if self._coded is None:
            try:
                encoded = self._array.dictionary_encode(null_encoding="encode")
            except (pa.ArrowNotImplementedError, pa.ArrowInvalid):
                return None
            self._coded = (np.asarray(encoded.indices), encoded.dictionary.to_pylist())
        return self._coded

    @property
    def is_numeric(self) -> bool:
        """Whether every value is a number (no truth value) or missing, and one is there."""
        import pyarrow.types as kinds

        kind = self._array.type
        return (kinds.is_integer(kind) or kinds.is_floating(kind)) and self._array.null_count < len(self)

    def count_different(self) -> int:
        """Different values, missing ones left out; -1 where they cannot be compared."""
        import pyarrow as pa
        import pyarrow.compute as pc

        try:
            return int(pc.count_distinct(self._array, mode="only_valid").as_py())
        except (pa.ArrowNotImplementedError, pa.ArrowInvalid):
            return -1

    def differs_in_more_than(self, most: int) -> bool:
        """Whether `count_different` is more; where the first rows tell, the others are not looked at."""
        first = StoredColumn(self._array.slice(0, _AT_ONCE)) if len(self) > _AT_ONCE else self
        return first.count_different() > most or (first is not self and self.count_different() > most)

    @property
    def missing(self) -> int:
        """Missing values."""
        return int(self._array.null_count)

    def count_empty(self) -> int:
        """Values that are missing or the empty word."""
        import pyarrow.compute as pc
        import pyarrow.types as kinds

        kind = self._array.type
        worded = kinds.is_string(kind) or kinds.is_large_string(kind)
        empty = pc.sum(pc.equal(self._array, "")).as_py() if worded else 0
        return self._array.null_count + int(empty or 0)

    def numbers(self) -> Float[np.ndarray, " n"]:
        """The values as numbers, NaN where they are missing."""
        import pyarrow as pa

        cast = self._array.cast(pa.float64())
        return np.array(cast.fill_null(float("nan")).to_numpy(zero_copy_only=False))

    def order(self, rows: Int[np.ndarray, " k"] | None = None) -> Int[np.ndarray, " k"]:
        """Places in `rows` (None: all rows) by ascending value, equal ones in their order; missing ones last."""
        import pyarrow as pa
        import pyarrow.compute as pc

        values = self._array if rows is None else self._array.take(pa.array(np.asarray(rows, np.int64)))
        # Arrow's order is stable.
        return np.asarray(pc.array_sort_indices(values)).astype(np.int64)


def taken(values: Sequence[Any], rows: Int[np.ndarray, " k"]) -> Sequence[Any]:
    """The values of these rows, from a list or a column."""
    if isinstance(values, StoredColumn):
        return values.take(rows)
    return [values[row] for row in np.asarray(rows).tolist()]


def read_ids(column: StoredColumn) -> np.ndarray:
    """Ids as an array of numbers or of words."""
    return np.array(column._array.to_numpy()) if _whole(column) else np.asarray(column)


def _whole(column: StoredColumn) -> bool:
    import pyarrow.types as kinds

    return bool(len(column)) and kinds.is_int64(column._array.type) and column._array.null_count == 0


def _one_zero(array: pa.Array) -> pa.Array:
    """The column with 0.0 for -0.0: two names of one number would be two classes."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not (pa.types.is_float32(array.type) or pa.types.is_float64(array.type)):
        return array
    return pc.add(array, pa.scalar(0.0, array.type))
