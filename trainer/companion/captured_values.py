"""Copies of what a training loop hands over, made without torch: a tensor's own methods do it.

What is taken in the loop costs it time, what is not taken may change under it: running sums are updated in place, and a
loss with its graph would keep the memory of the whole forward pass.
"""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np
from jaxtyping import Float

from trainer.store.rows import MOST_STEP

COLUMNS: Final = ("id", "path", "caption", "label")
"""Columns of items with a meaning; others color maps."""


def captured_step(step: Any) -> int:
    """Return a step as a whole number.

    Raises:
        ValueError: It is none, or out of range.
    """
    if type(step) is int and 0 <= step <= MOST_STEP:  # nearly always
        return step
    if isinstance(step, bool | np.bool_):
        raise ValueError(f"the step {step} is a truth value")
    if isinstance(step, float | np.floating) and float(step).is_integer():
        step = int(step)
    try:
        number = operator.index(step)
    except TypeError:
        raise ValueError(f"the step {step!r:.40} is not a whole number") from None
    if not 0 <= number <= MOST_STEP:
        raise ValueError(f"the step {number} is out of range: 0 to 2^53")
    return number


def captured_number(value: Any) -> float | Callable[[], float]:
    """Return a number, or what gives it later, in the thread that writes: a tensor is copied now and read then.

    Raises:
        TypeError: It is a text, None, or a tensor of several numbers.
    """
    if type(value) is float:  # nearly always
        return value
    if isinstance(value, str | bytes | None):
        raise TypeError(f"{value!r:.40} is not a number")
    if not hasattr(value, "detach"):
        return float(value)
    if value.numel() != 1:
        raise TypeError(f"a tensor of shape {tuple(value.shape)} is not one number")
    taken = value.detach().clone()
    return _waiting(taken) if getattr(taken, "is_cuda", False) else taken.item


def _waiting(taken: Any) -> Callable[[], float]:
    """Return what waits for the stream that the loop computes on: the thread that asks has another one."""
    cuda = sys.modules["torch"].cuda
    event = cuda.current_stream(taken.device).record_event()

    def number() -> float:
        event.synchronize()
        return float(taken.item())

    return number


def captured_rows(rows: Any, name: str) -> Float[np.ndarray, "n d"] | Any:
    """Return a copy of a matrix in the memory of this computer: an array, or a tensor of a type that numpy lacks.

    Raises:
        ValueError: It is no matrix of fractions.
    """
    if hasattr(rows, "detach"):
        tensor = rows.detach()
        copy = tensor.clone() if tensor.device.type == "cpu" else tensor.cpu()
        is_matrix = copy.ndim == 2 and copy.is_floating_point()
        shape = tuple(copy.shape)
    else:
        copy = np.array(rows)
        is_matrix, shape = copy.ndim == 2 and copy.dtype.kind == "f", copy.shape
    if not is_matrix:
        raise ValueError(f"{name} is {copy.dtype} {shape}, not rows of embeddings (n, d)")
    return copy


def array_of(rows: Any) -> Float[np.ndarray, "n d"]:
    """Return captured rows as float32."""
    return np.asarray(rows.float().numpy() if hasattr(rows, "detach") else rows, np.float32)


def size_of(rows: Any) -> int:
    """Return the bytes of captured rows."""
    return int(rows.element_size() * rows.nelement()) if hasattr(rows, "detach") else int(rows.nbytes)


def captured_items(items: Any, n: int) -> dict[str, list[Any]] | None:
    """Return the columns of items as lists: of a table of pandas or Arrow, a dictionary, dictionaries, or ids alone.

    Raises:
        ValueError: They are not n, or nothing of the kind.
    """
    if items is None:
        return None
    columns = {str(name): [_plain(value) for value in values] for name, values in _columns_of(items).items()}
    lengths = {len(values) for values in columns.values()}
    if lengths != {n}:
        raise ValueError(f"there are {n} rows of embeddings and {', '.join(map(str, sorted(lengths)))} items")
    return columns


def _columns_of(items: Any) -> Mapping[Any, Sequence[Any]]:
    if hasattr(items, "to_pydict"):
        return items.to_pydict()
    if isinstance(items, Mapping):
        return items
    if hasattr(items, "columns") and hasattr(items, "to_dict"):
        return {name: items[name].tolist() for name in items.columns}
    rows = list(items)
    if rows and all(isinstance(row, Mapping) for row in rows):
        return {name: [row.get(name) for row in rows] for name in dict.fromkeys(name for row in rows for name in row)}
    return {"id": rows}


def _plain(value: Any) -> Any:
    if hasattr(value, "item") and getattr(value, "ndim", 1) == 0:
        value = value.item()
    return value if value is None or isinstance(value, str | int | float | bool) else str(value)
