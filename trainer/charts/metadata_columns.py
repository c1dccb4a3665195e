"""Item columns as arrays for fast color lookup with a million pairs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from jaxtyping import Float, Int

from trainer.store.columns import StoredColumn

NO_VALUE: Final = "no value"
"""What a missing value of a class is called."""

_MOST_WHOLE_NUMBERS: Final = 12
"""A column of more different numbers is colored along a scale."""


@dataclass(frozen=True)
class MetadataColumn:
    """One column: classes, or numbers on a scale."""

    names: tuple[str, ...] = ()  # Different values in sorted order, as words; empty for numbers.
    place: Int[np.ndarray, " n"] | None = None  # Place in `names` of each pair's value; None for numbers.
    numbers: Float[np.ndarray, " n"] | None = None  # Each pair's number, NaN where it has none; None for classes.


def column(values: Sequence[Any]) -> MetadataColumn | None:
    """Return a column prepared for coloring; None if its values cannot be distinguished (such as lists)."""
    if is_scale(values):
        return MetadataColumn(numbers=as_numbers(values))
    coded = values.coded() if isinstance(values, StoredColumn) else _coded(values)
    if coded is None:
        return None
    codes, different = coded
    named = [NO_VALUE if value in (None, "") else str(value) for value in different]
    names = tuple(sorted(set(named)))
    where = {name: i for i, name in enumerate(names)}
    return MetadataColumn(names, np.array([where[name] for name in named] or [0], np.int64)[codes])


def _coded(values: Sequence[Any]) -> tuple[Int[np.ndarray, " n"], list[Any]] | None:
    """Return the code of each value and the value of each code; None if there is no telling."""
    try:
        code_of = {value: code for code, value in enumerate(dict.fromkeys(values))}
    except TypeError:
        return None
    return np.fromiter(map(code_of.__getitem__, values), np.int64, len(values)), list(code_of)


def is_class(values: Sequence[Any], most: int) -> bool:
    """Return whether a column has classes: up to `most` values besides missing ones, and not all unique."""
    if isinstance(values, StoredColumn):
        if values.differs_in_more_than(most + 1):  # one may be the empty word
            return False
        different = values.count_different() - (1 if values.count_empty() > values.missing else 0)
    else:
        try:
            different = len({v for v in values if v not in (None, "")})
        except TypeError:  # lists and the like are no classes
            return False
    return 0 < different <= most and different < max(len(values), 2)


def is_scale(values: Sequence[Any]) -> bool:
    """Return whether a column needs a color scale: more than a dozen different numbers; None means missing."""
    if isinstance(values, StoredColumn):
        return values.is_numeric and values.differs_in_more_than(_MOST_WHOLE_NUMBERS)
    numbers = [value for value in values if value is not None]
    numeric = all(isinstance(v, int | float | np.number) and not isinstance(v, bool) for v in numbers)
    return bool(numbers) and numeric and len(set(numbers)) > _MOST_WHOLE_NUMBERS


def as_numbers(values: Sequence[Any]) -> Float[np.ndarray, " n"]:
    """Return the numbers of a column, NaN if missing."""
    if isinstance(values, StoredColumn):
        return values.numbers()
    return np.array([np.nan if value is None else float(value) for value in values], dtype=np.float64)
