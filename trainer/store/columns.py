"""Columns kept in Arrow's memory: a million values need no Python objects until accessed.

Making a million of Python's strings keeps every other thread of a process waiting, the window's among them; Arrow
counts, compares and sorts them without Python.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from jaxtyping import Bool, Float, Int, Shaped

if TYPE_CHECKING:
    import pyarrow as pa

_AT_ONCE: Final = 8192
"""Values that become Python objects in one go: about a millisecond."""

_RARE_FIRST: Final = b"zqxjkvbpygfwmucldrhsnioate"
"""Letters of English by frequency; other signs count as rarer."""
_FOLDED: Final = "\u017f\u212a"
"""What else is an s or a k where upper and lower case are one."""


class StoredColumn(Sequence):
    """A column as read; behaves like the list of its values and equals it."""

    __slots__ = ("_array", "_coded")

    def __init__(self, array: pa.ChunkedArray | pa.Array) -> None:
        combined = array.combine_chunks() if hasattr(array, "chunks") else array
        if hasattr(combined, "chunks"):  # of no chunks, or of more than fit one array
            import pyarrow as pa

            combined = pa.concat_arrays(combined.chunks) if combined.chunks else pa.array([], combined.type)
        self._array = _one_zero(combined)
        self._coded: tuple[Int[np.ndarray, " n"], list[Any]] | None = None

    def __len__(self) -> int:
        return len(self._array)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            start, stop, step = index.indices(len(self))
            if step != 1:
                return [self[i] for i in range(start, stop, step)]
            return self._array.slice(start, max(stop - start, 0)).to_pylist()
        at = int(index)
        at += len(self) if at < 0 else 0
        if not 0 <= at < len(self):
            raise IndexError(f"{index} of {len(self)} values")
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
        """Return the values as numpy would convert their list, a few thousand at a time."""
        parts = [np.asarray(self[start : start + _AT_ONCE], dtype) for start in range(0, len(self), _AT_ONCE)]
        return np.concatenate(parts) if parts else np.asarray([], dtype)

    def __repr__(self) -> str:
        return f"StoredColumn({self[:8]}{', …' if len(self) > 8 else ''})"

    def __reduce__(self) -> tuple[Any, ...]:
        return StoredColumn, (self._array,)

    def take(self, rows: Int[np.ndarray, " k"]) -> StoredColumn:
        """Return the values of these rows."""
        return StoredColumn(self._array.take(integers(rows)))

    def coded(self) -> tuple[Int[np.ndarray, " n"], list[Any]] | None:
        """Return an integer code per row and the value of each code (None: missing); None for lists.

        The numbers follow the order in which values first occur; equal values have equal numbers.
        """
        import pyarrow as pa

        if self._coded is None:
            try:
                encoded = self._array.dictionary_encode(null_encoding="encode")
            except (pa.ArrowNotImplementedError, pa.ArrowInvalid):
                return None
            self._coded = (_numpy(encoded.indices), encoded.dictionary.to_pylist())
        return self._coded

    @property
    def is_numeric(self) -> bool:
        """Whether every value is a number (not bool) or missing, with at least one number."""
        import pyarrow.types as kinds

        kind = self._array.type
        return (kinds.is_integer(kind) or kinds.is_floating(kind)) and self._array.null_count < len(self)

    def count_different(self) -> int:
        """Return the number of distinct values without missing ones; -1 if not comparable."""
        import pyarrow as pa
        import pyarrow.compute as pc

        try:
            return int(pc.count_distinct(self._array, mode="only_valid").as_py())
        except (pa.ArrowNotImplementedError, pa.ArrowInvalid):
            return -1

    def differs_in_more_than(self, most: int) -> bool:
        """Return whether `count_different` exceeds `most`, stopping at the first rows if they suffice."""
        first = StoredColumn(self._array.slice(0, _AT_ONCE)) if len(self) > _AT_ONCE else self
        return first.count_different() > most or (first is not self and self.count_different() > most)

    @property
    def missing(self) -> int:
        """The number of missing values."""
        return int(self._array.null_count)

    def count_empty(self) -> int:
        """Return the number of values that are missing or empty strings."""
        import pyarrow.compute as pc
        import pyarrow.types as kinds

        kind = self._array.type
        worded = kinds.is_string(kind) or kinds.is_large_string(kind)
        empty = (_numpy(pc.binary_length(self._array.drop_null())) == 0).sum() if worded else 0
        return self._array.null_count + int(empty)

    def numbers(self) -> Float[np.ndarray, " n"]:
        """Return the values as numbers, NaN if missing."""
        import pyarrow as pa

        cast = self._array.cast(pa.float64())
        if not cast.null_count:
            return _numpy(cast)
        return np.array(cast.fill_null(float("nan")).to_numpy(zero_copy_only=False))

    def order(self, rows: Int[np.ndarray, " k"] | None = None) -> Int[np.ndarray, " k"]:
        """Return places in `rows` (None: all rows) by ascending value, stable, missing ones last."""
        import pyarrow.compute as pc

        values = self._array if rows is None else self._array.take(integers(rows))
        # Arrow's order is stable.
        return _numpy(pc.array_sort_indices(values)).astype(np.int64)


def taken(values: Sequence[Any], rows: Int[np.ndarray, " k"]) -> Sequence[Any]:
    """Return the values of these rows, from a list or a column."""
    if isinstance(values, StoredColumn):
        return values.take(rows)
    return [values[row] for row in np.asarray(rows).tolist()]


def equal_rows(values: Sequence[str], value: str, stop: int) -> Bool[np.ndarray, " stop"]:
    """Return which of the first rows of a list or a column have this value."""
    if not isinstance(values, StoredColumn):
        return np.array([other == value for other in values[:stop]], bool)
    import pyarrow.compute as pc

    return _numpy(pc.equal(values._array.slice(0, stop), value).fill_null(False).cast("int8")).astype(bool)


def containing(values: Sequence[str], text: str, *, repeated: bool = False) -> Bool[np.ndarray, " n"]:
    """Return which values of a list or a column contain the text, in upper or lower case.

    Args:
        repeated: Few values are different, as of classes: each is looked at once.
    """
    if not isinstance(values, StoredColumn):
        return np.array([text.casefold() in value.casefold() for value in values], bool)
    if repeated and (coded := values.coded()) is not None:
        codes, names = coded
        return containing([name or "" for name in names], text)[codes] if names else np.zeros(len(values), bool)
    import pyarrow.compute as pc

    if text.isascii() and text and not values.missing and (hits := _containing_bytes(values._array, text)) is not None:
        return hits
    matches = pc.match_substring(values._array, text, ignore_case=True).fill_null(False)
    return _numpy(matches.cast("int8")).astype(bool)


def _containing_bytes(array: pa.Array, text: str) -> Bool[np.ndarray, " n"] | None:
    """Return which strings contain an ASCII text; None where letters of `_FOLDED` may count as its own.

    Two bytes of the text, rare ones if it has some, are looked for in the joined strings, and the others behind them.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    lower = pc.ascii_lower(array)
    data = np.frombuffer(lower.buffers()[2] or b"", np.uint8)
    kind = np.int64 if pa.types.is_large_string(array.type) else np.int32
    ends = np.frombuffer(lower.buffers()[1], kind, len(lower) + 1, lower.offset * np.dtype(kind).itemsize)
    term = text.lower().encode()
    others = [letter.encode() for letter in _FOLDED if letter.casefold() in text.lower()]
    hits = np.zeros(len(array), bool)
    order = sorted(range(len(term)), key=lambda offset: _RARE_FIRST.find(term[offset : offset + 1]))
    for row in range(0, len(array), _AT_ONCE):
        begin = ends[row : row + _AT_ONCE + 1]
        part, size = data[begin[0] : begin[-1]], int(begin[-1] - begin[0]) - len(term) + 1
        if others and part.max(initial=0) > 127 and any(letter in part.tobytes() for letter in others):
            return None
        if size <= 0:
            continue
        equal = part[order[0] : order[0] + size] == term[order[0]]
        for offset in order[1:2]:
            equal &= part[offset : offset + size] == term[offset]
        at = np.flatnonzero(equal)
        for offset in order[2:]:
            at = at[part[at + offset] == term[offset]]
        if not len(at):
            continue
        # The first in each row, if one begins in it and ends in it.
        starts: np.ndarray = np.append(at + begin[0], begin[-1])
        hits[row : row + len(begin) - 1] = starts[np.searchsorted(starts, begin[:-1])] + len(term) <= begin[1:]
    return hits


def read_ids(column: StoredColumn) -> np.ndarray:
    """Return ids as an array of numbers or strings."""
    return _numpy(column._array) if _whole(column) else np.asarray(column)


def _whole(column: StoredColumn) -> bool:
    import pyarrow.types as kinds

    return bool(len(column)) and kinds.is_int64(column._array.type) and column._array.null_count == 0


def strings(values: Iterable[str | None]) -> pa.Array:
    """Return the values as an Arrow array; `pa.array` would import pandas where that is installed."""
    import pyarrow as pa

    if isinstance(values, list) and values and values[0] is not None and values.count(values[0]) == len(values):
        once = values[0].encode()
        if len(values) * len(once) < 2**31:
            ends = np.arange(len(values) + 1, dtype=np.int32) * np.int32(len(once))
            buffers = [None, pa.py_buffer(ends), pa.py_buffer(once * len(values))]
            return pa.Array.from_buffers(pa.string(), len(values), buffers)
    builder = pa.lib.StringBuilder()
    builder.append_values(values)
    return builder.finish()


def integers(rows: Int[np.ndarray, " k"]) -> pa.Array:
    """Return the rows as an Arrow array; `pa.array` would import pandas where that is installed."""
    import pyarrow as pa

    plain = np.ascontiguousarray(rows, np.int64)
    return pa.Array.from_buffers(pa.int64(), len(plain), [None, pa.py_buffer(plain)])


def _numpy(array: pa.Array) -> Shaped[np.ndarray, " n"]:
    """Return a copy of numbers without a missing one; `to_numpy` would import pandas where that is installed."""
    if array.null_count:
        return np.array(array)
    kind = np.dtype(array.type.to_pandas_dtype())
    if not len(array):
        return np.empty(0, kind)
    return np.frombuffer(array.buffers()[1], kind, len(array), array.offset * kind.itemsize).copy()


def _one_zero(array: pa.Array) -> pa.Array:
    """Replace -0.0 by 0.0, which would otherwise count as two classes."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not (pa.types.is_float32(array.type) or pa.types.is_float64(array.type)):
        return array
    # Only a zero equals its negative. `pa.scalar` would import pandas where that is installed, for a second.
    return pc.if_else(pc.equal(array, pc.negate(array)), pc.abs(array), array)
