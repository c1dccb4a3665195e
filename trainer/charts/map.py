"""The picture of an embedding space: images and texts of one snapshot as points in the plane."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from jaxtyping import Float, Int

from trainer.charts import ChartError
from trainer.charts.shown import Shown, shown
from trainer.store import Workspace
from trainer.store.snapshot_files import Items, Snapshot, read_snapshot

MODALITY: Final = "modality"
"""The colouring by which images have one colour and texts another."""

_BUILT_IN: Final = ("label", "split", "caption")
_MOST_CLASSES: Final = 256
_MOST_WHOLE_NUMBERS: Final = 12
"""A column of more different numbers is coloured along a scale."""


@dataclass(frozen=True, kw_only=True)
class MapChart(Shown):
    """Point i of `images` and point i of `texts` are pair i.

    Attributes:
        method: How the points were placed: `pca` or `umap`.
        parameters: What else decided their places, for the note under the map.
        colour: `modality`, or the column of the items whose values colour the pairs.
        classes: Values of that column in sorted order; empty for `modality` and for a column of numbers.
        class_of: Place in `classes` of each pair's value; zeros without classes.
        numbers: Each pair's number where the column is coloured along a scale, NaN where it has none; else None.
        sampled: The snapshot holds a sample of its split.
    """

    n: int
    sampled: bool
    method: str
    parameters: str
    images: Float[np.ndarray, "n 2"] | None
    texts: Float[np.ndarray, "n 2"] | None
    captions: tuple[str, ...]
    paths: tuple[str, ...]
    colour: str
    classes: tuple[str, ...]
    class_of: Int[np.ndarray, " n"]
    numbers: Float[np.ndarray, " n"] | None = None


def embedding_map(
    workspace: Workspace,
    snapshot_folder: Path,
    layout: Float[np.ndarray, "m 2"],
    *,
    method: str = "pca",
    parameters: str = "",
    colour: str = MODALITY,
) -> MapChart:
    """The map of a snapshot whose points were placed by `layout`: rows of its images first, then of its texts.

    Args:
        workspace: Where the run is.
        snapshot_folder: Folder of the snapshot, inside the run's folder.
        layout: Places of all points, as `trainer.project.layout` returns them.
        method: How the points were placed.
        parameters: What else decided their places, for people.
        colour: `modality`, or a column of the snapshot's items (see `colour_columns`).

    Raises:
        ChartError: The layout is of another snapshot, or there is no such column.
    """
    snapshot = read_snapshot(snapshot_folder)
    run = workspace.run(Path(snapshot_folder).parent.parent)
    images, texts = _points(snapshot, layout)
    numbers = _numbers(snapshot.items, colour)
    classes, class_of = _classes(snapshot.items, colour if numbers is None else MODALITY, snapshot.n)
    return MapChart(
        **shown(run, snapshot),
        n=snapshot.n,
        sampled=snapshot.sampled,
        method=method,
        parameters=parameters,
        images=images,
        texts=texts,
        captions=tuple(snapshot.items.caption),
        paths=tuple(snapshot.items.path),
        colour=colour,
        classes=classes,
        class_of=class_of,
        numbers=numbers,
    )


def colour_columns(items: Items) -> tuple[str, ...]:
    """Columns that may colour a map: numbers, and those with 2 up to 256 different values; captions last."""
    columns = dict.fromkeys((*_BUILT_IN[:2], *items.metadata, _BUILT_IN[2]))
    return tuple(name for name in columns if is_scale(values := _column(items, name)) or _tells_apart(values))


def is_scale(values: Sequence[Any]) -> bool:
    """Whether a column is coloured along a scale: more than a dozen different numbers; None is a missing one."""
    numbers = [value for value in values if value is not None]
    numeric = all(isinstance(v, int | float | np.number) and not isinstance(v, bool) for v in numbers)
    return bool(numbers) and numeric and len(set(numbers)) > _MOST_WHOLE_NUMBERS


def as_numbers(values: Sequence[Any]) -> Float[np.ndarray, " n"]:
    """The numbers of a column, NaN where it has none."""
    return np.array([np.nan if value is None else float(value) for value in values], dtype=np.float64)


def _tells_apart(values: Sequence[Any]) -> bool:
    return 2 <= len(set(map(str, values))) <= _MOST_CLASSES


def _numbers(items: Items, colour: str) -> np.ndarray | None:
    if colour not in items.metadata or not is_scale(items.metadata[colour]):
        return None
    return as_numbers(items.metadata[colour])


def _points(snapshot: Snapshot, layout: np.ndarray) -> tuple[np.ndarray | None, np.ndarray | None]:
    counts = [0 if part is None else len(part) for part in (snapshot.image, snapshot.text)]
    if layout.shape != (sum(counts), 2):
        raise ChartError(
            f"The layout has {len(layout)} points and the snapshot {sum(counts)}: they do not belong together. "
            "Project the snapshot again."
        )
    images, texts = layout[: counts[0]], layout[counts[0] :]
    return (images if counts[0] else None), (texts if counts[1] else None)


def _classes(items: Items, colour: str, n: int) -> tuple[tuple[str, ...], np.ndarray]:
    if colour == MODALITY:
        return (), np.zeros(n, dtype=np.int64)
    if colour not in (*_BUILT_IN, *items.metadata):
        raise ChartError(f"There is no column {colour!r} to colour by; choose one of {_choices(items)}.")
    values, class_of = np.unique(np.asarray([str(v) for v in _column(items, colour)]), return_inverse=True)
    if len(values) > _MOST_CLASSES:
        raise ChartError(
            f"Column {colour!r} has {len(values)} different values, too many for colours; "
            f"choose one of {_choices(items)}."
        )
    return tuple(map(str, values)), class_of.astype(np.int64).reshape(-1)


def _choices(items: Items) -> str:
    return ", ".join((MODALITY, *colour_columns(items)))


def _column(items: Items, name: str) -> list:
    return items.metadata[name] if name in items.metadata else list(getattr(items, name))
