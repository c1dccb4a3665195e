"""Columns of the items that divide pairs into groups."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from jaxtyping import Shaped

from trainer.charts import ChartError
from trainer.store.columns import StoredColumn
from trainer.store.snapshot_files import Items

LABEL: Final = "label"
MOST_VALUES: Final = 60
"""A column of more different values tells single items apart, not groups."""


def facet_columns(items: Items) -> tuple[str, ...]:
    """Return the columns that divide the items into 2 to 60 groups, the class first."""
    candidates = {LABEL: items.label, **items.metadata}
    return tuple(name for name, values in candidates.items() if 2 <= _count_groups(values) <= MOST_VALUES)


def _count_groups(values: Sequence[Any]) -> int:
    """Return how many different values there are; of a column as stored, without making each one of a million."""
    if isinstance(values, StoredColumn):
        if values.differs_in_more_than(MOST_VALUES):
            return MOST_VALUES + 1
        if (count := values.count_different()) >= 0:
            return count + (values.missing > 0)
    return len({str(value) for value in values})


def column_values(items: Items, column: str) -> Shaped[np.ndarray, " n"]:
    """Return the value of every item in a column, as text.

    Raises:
        ChartError: There is no such column; names those there are.
    """
    values = items.label if column == LABEL else items.metadata.get(column)
    if values is None:
        columns = ", ".join(facet_columns(items)) or "none"
        raise ChartError(f"There is no column {column} in this snapshot; its columns are: {columns}.")
    return np.array([str(value) for value in values], dtype=str)
