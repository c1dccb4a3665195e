"""Layouts on disk, cached by vectors and parameters."""

from __future__ import annotations

import hashlib
import io
import json
import math
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np
from jaxtyping import Float

from trainer.analysis.map_quality import map_quality
from trainer.analysis.progress import Progress, silent
from trainer.analysis.tiles import exact, row_blocks
from trainer.charts.point_placement import CAUTION, PointPlacement
from trainer.projection import fitting
from trainer.projection.coordinates import read_coordinates
from trainer.projection.fitting import MOST_FITTED, ProjectError
from trainer.projection.layout_alignment import FEWEST_COMMON, common_points, start_at, turned_onto
from trainer.store import derived
from trainer.store.layout_files import FOLDER, facing, kept_layout, layout_name, made_of
from trainer.store.snapshot_files import Snapshot, read_snapshot
from trainer.untrusted import confined
from trainer.untrusted.bounded.arrays import load_npy, temporary_array

Show: TypeAlias = Callable[[Float[np.ndarray, "m 2"]], None]
"""Gets the points on the way to a layout."""

PCA: Final = PointPlacement()
_MOST_IN_MEMORY: Final = 2**27
"""Numbers of vectors that are held in memory: 262,144 x 512, half a gigabyte."""


@dataclass(frozen=True)
class Layout:
    """A projection on disk."""

    file: Path  # The `.npy` with one row a point: the images of the snapshot, then its texts.
    images: int  # How many rows are images.
    texts: int  # How many rows are texts.
    method: str  # `pca`, `umap`, `tsne`, `pacmap` or `file`.
    seconds: float  # How long it took to compute, the first time.
    note: str  # What a reader must know: method, parameters, sampling, what it was turned onto.
    fitted: int  # How many points the method itself has placed; the others stand among their nearest ones.


def layout(
    workspace_folder: Path, snapshot_folder: Path, placement: PointPlacement = PCA, **choices: Any
) -> Float[np.ndarray, "m 2"]:
    """Return the points of `layout_file`, which takes the same arguments: images first, then texts.

    Raises:
        ProjectError: As `layout_file`.
    """
    return load_npy(layout_file(workspace_folder, snapshot_folder, placement, **choices).file)


def layout_file(
    workspace_folder: Path,
    snapshot_folder: Path,
    placement: PointPlacement = PCA,
    *,
    onto: Sequence[Path] = (),
    most: int = MOST_FITTED,
    progress: Progress = silent,
    show: Show | None = None,
) -> Layout:
    """Return the projection of a snapshot, cached by vectors and parameters.

    Args:
        workspace_folder: Layouts are kept in its `layouts`; while it is look only, as long as this process lives.
        placement: How; neighbors are capped by the number of points, and a seed makes UMAP single-threaded.
        onto: Folders of other snapshots: this layout is to face that of the first (same parameters, computed if need
            be), which faces the second, and so on; nothing happens where two have too few items in common, and the
            note says so.
        most: Of more points, so many are fitted and the rest placed among them.
        progress: Called with a share in [0, 1] and a note; whatever it raises ends the computation.
        show: Called with the points on the way, where the method has any.

    Raises:
        ProjectError: An unknown method, too few points, or coordinates that do not fit.
        UserError: The method's library is not installed.
    """
    if placement.method not in fitting.METHODS:
        raise ProjectError(f"Unknown projection {placement.method!r}: choose one of {', '.join(fitting.METHODS)}.")
    snapshot = read_snapshot(snapshot_folder)
    if placement.method == "file":
        return _imported(workspace_folder, snapshot, placement)
    parameters = placement.parameters | ({"most": most} if most != MOST_FITTED and placement.method != "pca" else {})
    kept = kept_layout(workspace_folder, snapshot, parameters, onto)
    if kept is not None:
        return _layout_of(*kept)
    points_file = derived.root(workspace_folder) / FOLDER / layout_name(snapshot_folder, parameters, onto)
    other = None
    if onto:
        first = lambda share, note: progress(share / 2, f"reference map first: {note}")  # noqa: E731
        other = layout_file(workspace_folder, onto[0], placement, onto=onto[1:], most=most, progress=first)
    started = time.perf_counter()
    points, notes, fitted = _compute(snapshot, placement, onto[:1], other, most, progress, show)
    facts = _facts(snapshot, placement, notes, fitted) | {"seconds": round(time.perf_counter() - started, 3)}
    facts["of"] = made_of(workspace_folder, (snapshot_folder, *onto))
    _keep(points_file, points_file.with_suffix(".json"), points, facts)
    return _layout_of(points_file, facts)


def _layout_of(points_file: Path, facts: dict) -> Layout:
    return Layout(points_file, *(facts[name] for name in ("images", "texts", "method", "seconds", "note", "fitted")))


def series(
    workspace_folder: Path,
    snapshot_folders: Sequence[Path],
    placement: PointPlacement,
    *,
    onto: Path | None = None,
    progress: Progress = silent,
    show: Show | None = None,
) -> list[Layout]:
    """Return layouts of a run's snapshots, each aligned to the next later one.

    Args:
        workspace_folder: As `layout_file`.
        snapshot_folders: In the order of their steps.
        onto: What the last one is to face: the last snapshot of another run.
        progress: As `layout_file`.
        show: Called with the points of the last one on the way, where the method has any.

    Raises:
        ProjectError: As `layout_file`.
    """
    made: list[Layout] = []
    total = len(snapshot_folders)
    for index, (folder, chain) in enumerate(facing(snapshot_folders, onto)):
        report = partial(_part, progress, index, total) if total > 1 else progress
        seen = None if index else show
        made.insert(0, layout_file(workspace_folder, folder, placement, onto=chain, progress=report, show=seen))
    return made


def _part(progress: Progress, index: int, total: int, share: float, note: str) -> None:
    progress((index + share) / total, f"{index + 1} of {total}: {note}")


def unit_rows(snapshot: Snapshot) -> Float[np.ndarray, "m d"]:
    """Return images, then texts, normalized, in float32; very many stay in the file, or lie in a mapped temporary one.

    There those of half precision stay in it. The file has no name: it is gone with the last use of the rows.
    """
    parts = [part for part in (snapshot.image, snapshot.text) if part is not None]
    shape = sum(map(len, parts)), parts[0].shape[1]
    if math.prod(shape) <= _MOST_IN_MEMORY:
        return fitting.normalize(np.concatenate([np.asarray(part, np.float32) for part in parts]))
    if len(parts) == 1:
        return parts[0]
    dtype = np.float16 if all(part.dtype == np.float16 for part in parts) else np.float32
    rows, done = temporary_array(shape, dtype), 0
    for part in parts:
        for block in row_blocks(*part.shape):
            unit = fitting.normalize(np.array(exact(part[block])))
            rows[done : done + len(unit)] = unit
            done += len(unit)
    return rows


def _compute(
    snapshot: Snapshot,
    placement: PointPlacement,
    onto: Sequence[Path],
    other: Layout | None,
    most: int,
    progress: Progress,
    show: Show | None,
) -> tuple[Float[np.ndarray, "m 2"], list[str], int]:
    """Return positions, what is to be said of them, and how many points were fitted."""
    vectors = unit_rows(snapshot)
    start, alignment, turn = None, "", None
    if other is not None:
        reference = read_snapshot(onto[0])
        common, xy = common_points(snapshot, reference), load_npy(other.file)
        if len(common.here) < FEWEST_COMMON:
            alignment = f"not aligned: only {len(common.here)} points are also in the other map"
        else:
            start = None if placement.method == "pca" else start_at(vectors, xy, common)
            alignment = f"aligned to {reference.model or 'the other map'}, step {reference.step:,}"
            turn = partial(turned_onto, xy=xy, common=common)
    seen = show if show is None or turn is None else lambda points: show(turn(points))
    fitted = fitting.fit(vectors, placement, progress, start=start, most=most, show=seen)
    points = fitted.points if turn is None else turn(fitted.points)
    notes = [fitted.note, alignment, map_quality(vectors, points).words]
    return points, [note for note in notes if note], fitted.fitted


def _imported(workspace_folder: Path, snapshot: Snapshot, placement: PointPlacement) -> Layout:
    points = read_coordinates(Path(placement.coordinates))
    images, texts = _counts(snapshot)
    name = Path(placement.coordinates).name
    if len(points) == images and texts:
        # Coordinates of the images alone: each text stands at its image, which is better than nowhere.
        raise ProjectError(
            f"{name} has {len(points):,} rows, one an image; the snapshot has {images:,} images and {texts:,} texts. "
            "Give a row for each: first all images, then all texts."
        )
    if len(points) != images + texts:
        raise ProjectError(
            f"{name} has {len(points):,} rows and the snapshot {images + texts:,} points "
            f"({images:,} images, then {texts:,} texts): they do not belong together."
        )
    digest = hashlib.sha256(np.ascontiguousarray(points)).hexdigest()[:32]
    points_file = derived.root(workspace_folder) / FOLDER / f"{digest}.npy"
    facts = _facts(snapshot, placement, [f"coordinates of {name}, shown as they are"], len(points)) | {"seconds": 0.0}
    facts["of"] = made_of(workspace_folder, (snapshot.folder,))
    _keep(points_file, points_file.with_suffix(".json"), points, facts)
    return Layout(points_file, images, texts, "file", 0.0, facts["note"], len(points))


def _counts(snapshot: Snapshot) -> tuple[int, int]:
    return tuple(0 if part is None else len(part) for part in (snapshot.image, snapshot.text))  # type: ignore[return-value]


def _facts(snapshot: Snapshot, placement: PointPlacement, notes: Sequence[str], fitted: int) -> dict:
    images, texts = _counts(snapshot)
    m = images + texts
    parts = [] if placement.method == "file" else [placement.words]
    if placement.method == "pca":
        parts = ["PCA: first two principal components of images and texts together"]
    if fitted < m:
        parts.append(f"fitted on {fitted:,} of {m:,} points, the others placed at their nearest")
    parts += notes
    if placement.method not in ("pca", "file"):
        parts.append(CAUTION)
    return placement.parameters | {"images": images, "texts": texts, "fitted": fitted, "note": "; ".join(parts)}


def _keep(points_file: Path, facts_file: Path, points: np.ndarray, facts: dict) -> None:
    confined.make_folder(points_file.parents[1], points_file.parent.name)
    for file, write in (
        (points_file, lambda stream: np.save(stream, points)),
        (facts_file, lambda stream: stream.write(json.dumps(facts).encode())),
    ):
        # A name of its own, so that two processes that project the same thing never share a half-written file.
        half = file.with_name(f"{file.name}.{os.getpid()}.tmp")
        with io.BufferedWriter(confined.open_file(half.parent, half.name, "wb")) as stream:  # type: ignore[type-var]
            write(stream)
        confined.replace(file.parent, half.name, file.name)
