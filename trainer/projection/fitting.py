"""Place unit rows in the plane by any method; of very many, a sample is fitted and the rest placed in it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
from jaxtyping import Float

from trainer.analysis.camera_3d import components
from trainer.analysis.neighbor_cells import neighbors_of_all
from trainer.analysis.out_of_sample_placement import place
from trainer.analysis.progress import Progress, between
from trainer.analysis.projection import pca
from trainer.charts.point_placement import METHODS, PointPlacement
from trainer.errors import UserError
from trainer.projection.neighbors import distances_of, nearest_among
from trainer.projection.optional_methods import pacmap_layout, tsne_layout
from trainer.projection.umap import arranged, epochs_of, fuzzy_graph, in_square
from trainer.projection.umap_learn import BEGUN_RATE, separated, umap_layout

MOST_FITTED: Final = 200_000
"""Of more points, this many are fitted and the rest are placed among them; the layout's note says so. The own UMAP fits
all."""
BY_UMAP_LEARN: Final = 20_000
"""Points up to which UMAP is umap-learn's; more are arranged on all cores (`umap`)."""
MOST_DOUBLE: Final = 2**27
"""Numbers up to which principal components come from products in double precision, which take twice as long."""
FEWEST: Final = 4
PLACED_BY: Final = 15
"""Neighbors that decide where a point that was not fitted stands."""
_REST_SHARE: Final = 0.3
_NEIGHBORS_SHARE: Final = 0.5


class ProjectError(UserError):
    """A projection that cannot be computed, with advice on what to choose instead."""


@dataclass(frozen=True)
class Fitted:
    """Positions of all rows, how many of them the method itself has placed, and what more there is to say."""

    points: Float[np.ndarray, "m 2"]
    fitted: int
    note: str = ""


def placed(
    vectors: Float[np.ndarray, "m d"], placement: PointPlacement, progress: Progress
) -> Float[np.ndarray, "m 2"]:
    """Return the positions of a few vectors of any length that no snapshot holds, as `fit` returns them.

    Raises:
        ProjectError: As `fit`.
        UserError: The method's library is not installed.
    """
    return fit(normalize(np.array(vectors, np.float32)), placement, progress).points


def normalize(rows: Float[np.ndarray, "m d"]) -> Float[np.ndarray, "m d"]:
    """Return the same array, its rows normalized in place."""
    rows /= np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)
    return rows


def fit(
    vectors: Float[np.ndarray, "m d"],
    placement: PointPlacement,
    progress: Progress,
    *,
    start: Float[np.ndarray, "m 2"] | None = None,
    most: int = MOST_FITTED,
    show: Callable[[Float[np.ndarray, "m 2"]], None] | None = None,
) -> Fitted:
    """Return the positions of unit rows.

    Args:
        vectors: Rows of unit length.
        placement: Any method but `file`.
        progress: Told a share in [0, 1] and a note; what it raises ends the computation.
        start: Where to begin; None: the method's own beginning.
        most: Fit at most so many rows, drawn by the placement's seed. PCA and the own UMAP are computed from all.
        show: Called with positions on the way, from the first epochs on, where the method has any.

    Raises:
        ProjectError: An unknown method, or too few rows.
        UserError: The method's library is not installed.
    """
    if placement.method not in METHODS or placement.method == "file":
        raise ProjectError(f"Unknown projection {placement.method!r}: choose one of {', '.join(METHODS[:-1])}.")
    m = len(vectors)
    if m < FEWEST:
        raise ProjectError(f"{m} points are too few for a map: at least {FEWEST} are needed.")
    if placement.method == "pca":
        return Fitted(pca(vectors, 2) if vectors.size < MOST_DOUBLE else components([vectors], 2), m)
    if placement.method == "umap" and m > BY_UMAP_LEARN:
        return _arranged(vectors, placement, progress, start, show)
    notes: list[str] = []
    if m <= most:
        return Fitted(_fit(vectors, placement, progress, start, notes), m, *notes)
    rows = np.sort(np.random.default_rng(placement.seed).choice(m, most, replace=False))
    part = lambda share, note: progress(share * (1 - _REST_SHARE), note)  # noqa: E731
    fitted_vectors = np.asarray(vectors[rows], np.float32)
    some = _fit(fitted_vectors, placement, part, None if start is None else start[rows], notes)
    points = np.empty((m, 2), np.float32)
    points[rows] = some
    rest = np.setdiff1d(np.arange(m), rows, assume_unique=True)
    report = lambda share, _note: progress(1 - _REST_SHARE * (1 - share), f"placing {len(rest):,} more points")  # noqa: E731
    neighbors, distances = nearest_among(vectors[rest], PLACED_BY, fitted_vectors, report)
    points[rest] = place(neighbors, distances, some)
    return Fitted(points, most, *notes)


def _arranged(
    vectors: Float[np.ndarray, "m d"],
    placement: PointPlacement,
    progress: Progress,
    start: Float[np.ndarray, "m 2"] | None,
    show: Callable[[Float[np.ndarray, "m 2"]], None] | None,
) -> Fitted:
    """Return the own UMAP of all rows, and how their neighbors were found."""
    neighbors = min(placement.neighbors, len(vectors) - 1)
    finding = between(progress, 0, _NEIGHBORS_SHARE)
    near = neighbors_of_all(vectors, neighbors - 1, finding, seed=placement.seed, quick=True)
    progress(_NEIGHBORS_SHARE, "weighing neighbors")
    graph = fuzzy_graph(near.rows, distances_of(near.cosines, placement.metric))
    epochs = epochs_of(len(vectors))
    points = arranged(
        graph,
        in_square(separated(components((vectors,), 2))) if start is None else separated(start),
        min_dist=placement.min_dist,
        seed=placement.seed,
        progress=between(progress, _NEIGHBORS_SHARE, 1),
        epochs=epochs,
        rate=1.0 if start is None else BEGUN_RATE,
        show=show,
    )
    return Fitted(points, len(vectors), f"arranged by this program in {epochs} epochs, {near.words}")


def _fit(
    vectors: np.ndarray, placement: PointPlacement, progress: Progress, start: np.ndarray | None, notes: list[str]
) -> Float[np.ndarray, "m 2"]:
    """Return the positions by a library; `notes` gets how neighbors were found where they are not exact."""
    seed, metric, neighbors = placement.seed, placement.metric, placement.neighbors
    if placement.method == "tsne":
        return tsne_layout(
            vectors, perplexity=neighbors, seed=seed, progress=progress, metric=metric, start=start, notes=notes
        )
    if placement.method == "pacmap":
        return pacmap_layout(vectors, neighbors=neighbors, seed=seed, progress=progress, start=start)
    return umap_layout(
        vectors,
        neighbors=neighbors,
        min_dist=placement.min_dist,
        seed=seed,
        progress=progress,
        metric=metric,
        start=start,
        notes=notes,
    )
