"""Units of a snapshot: rows with equal pictures or captions, so that whatever is counted or drawn counts each once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float, Int

from trainer.analysis.distinct import Matching, apart
from trainer.analysis.units import Equality, Units, equal_vectors, pictures_by_path, units_of_numbers
from trainer.store.columns import StoredColumn
from trainer.store.snapshot_files import BY_PATH, Items, Snapshot


def units_of(snapshot: Snapshot, rows: Int[np.ndarray, " k"] | None = None) -> Units:
    """Return which of these rows (None: all) are one picture, one caption, or linked."""
    pictures, equality = image_numbers(snapshot.items, snapshot.image)
    units = units_of_numbers(pictures, caption_numbers(snapshot.items.caption), equality)
    return units if rows is None else units.taken(rows)


def matching_of(snapshot: Snapshot, rows: Int[np.ndarray, " k"] | None = None) -> Matching:
    """Return which of these pairs (None: all) are correct for which; equal captions and images count once."""
    return units_of(snapshot, rows).matching


def caption_numbers(captions: Sequence[str]) -> Int[np.ndarray, " n"]:
    """Return integers that are equal exactly for equal captions; an empty caption equals no other."""
    numbers, values = _coded(captions)
    return apart(numbers, np.array([not value for value in values], bool)[numbers])


def image_numbers(items: Items, image: Float[np.ndarray, "n d"] | None) -> tuple[Int[np.ndarray, " n"], Equality]:
    """Return integers that are equal exactly for equal pictures, as far as known, and how most of it is known.

    By pixels as the snapshot says them, else by the path as text, which need not be a file, else by the embedding.
    """
    n = len(items.id)
    content, values = _coded(items.content) if len(items.content) else (np.zeros(n, np.int64), [""])
    has_content = np.array([bool(value) for value in values], bool)[content]
    by_path = np.array([(value or "").startswith(BY_PATH) for value in values], np.bool_)[content]
    pixels = has_content & ~by_path
    paths, names = _coded(items.path)
    named = (np.array([bool(name) for name in names], bool)[paths] & ~has_content) | by_path
    numbers = np.full(n, -1, np.int64)
    numbers[pixels] = content[pixels]
    used: Equality = "pixels" if pixels.any() else "paths" if named.any() else "none"
    if named.any():
        at = np.flatnonzero(named)
        by_file = np.where(by_path, content + len(names), paths)[at]
        numbers[at] = numbers.max() + 1 + pictures_by_path(by_file, image, at)
    at = np.flatnonzero(numbers < 0)
    if len(at) and image is not None:
        numbers[at] = numbers.max() + 1 + equal_vectors(image, at)
        return numbers, "vectors" if used == "none" else used
    return apart(numbers, numbers < 0), used


def _coded(column: Sequence[str]) -> tuple[Int[np.ndarray, " n"], Sequence[str | None]]:
    """Return an integer for each row and the value of each; what repeats is numbered once.

    Of a column as stored Arrow finds them: Python would stop other threads for a million.
    """
    if isinstance(column, StoredColumn) and (coded := column.coded()) is not None:
        return coded
    seen: dict[str, int] = {}
    numbers = np.fromiter((seen.setdefault(value, len(seen)) for value in column), np.int64, len(column))
    return numbers, list(seen)
