"""Pictures of a snapshot in the plane: PCA at once, UMAP when one waits.

Images and texts are projected together, so that the gap between the two modalities stays in the picture.
umap-learn would spend half a minute compiling its neighbour search; exact neighbours are found here with plain
matrix products instead, and its other kernels keep their machine code in the user's cache folder.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Final

import numpy as np
from jaxtyping import Float, Int

from trainer.analysis.projection import pca
from trainer.problem import Problem
from trainer.store.snapshot_files import Snapshot, read_snapshot

METHODS: Final = ("pca", "umap")
TILE: Final = 1024
"""Rows of similarities held at once, so that memory grows with n and not with its square."""
NEIGHBOURS_SHARE: Final = 0.2
"""Share of the progress bar that finding neighbours takes; the rest is arranging the points."""

Progress = Callable[[float, str], None]


class ProjectError(Problem):
    """A projection that cannot be made, with what to choose instead."""


@dataclass(frozen=True)
class Layout:
    """A projection on disk.

    Attributes:
        file: The `.npy` with one row a point: the images of the snapshot, then its texts.
        images: How many rows are images.
        texts: How many rows are texts.
        method: `pca` or `umap`.
        seconds: How long it took to compute, the first time.
        note: What a reader should know: neighbours, whether it was found in the cache.
    """

    file: Path
    images: int
    texts: int
    method: str
    seconds: float
    note: str


def layout(
    workspace_folder: Path,
    snapshot_folder: Path,
    *,
    method: str = "pca",
    neighbours: int = 15,
    min_dist: float = 0.1,
    seed: int = 0,
    progress: Progress | None = None,
) -> Float[np.ndarray, "m 2"]:
    """The points of `layout_file`, images first, then texts.

    Raises:
        ProjectError: As `layout_file`.
    """
    found = layout_file(
        workspace_folder,
        snapshot_folder,
        method=method,
        neighbours=neighbours,
        min_dist=min_dist,
        seed=seed,
        progress=progress,
    )
    return np.load(found.file)


def layout_file(
    workspace_folder: Path,
    snapshot_folder: Path,
    *,
    method: str = "pca",
    neighbours: int = 15,
    min_dist: float = 0.1,
    seed: int = 0,
    progress: Progress | None = None,
) -> Layout:
    """The projection of a snapshot; computed once for the same vectors and parameters, then found again.

    Args:
        workspace_folder: Layouts are kept in its `layouts`.
        snapshot_folder: Folder of the snapshot.
        method: `pca` or `umap`.
        neighbours: UMAP's `n_neighbors`; capped at one less than the points.
        min_dist: UMAP's `min_dist`, how close points may lie in the picture.
        seed: Makes UMAP reproducible (and single-threaded).
        progress: Called with a share in [0, 1] and a note; whatever it raises ends the computation.

    Raises:
        ProjectError: An unknown method, or too few points.
    """
    if method not in METHODS:
        raise ProjectError(f"Unknown projection {method!r}: choose one of {', '.join(METHODS)}.")
    snapshot = read_snapshot(snapshot_folder)
    parts = [part for part in (snapshot.image, snapshot.text) if part is not None]
    parameters = {"method": method}
    if method == "umap":
        parameters |= {"neighbours": neighbours, "min_dist": min_dist, "seed": seed}
    stem = Path(workspace_folder) / "layouts" / _key(parts, parameters)
    points_file, facts_file = stem.with_suffix(".npy"), stem.with_suffix(".json")
    if not (points_file.exists() and facts_file.exists()):
        started = time.perf_counter()
        points = _project(parts, parameters, progress or _silent)
        facts = _facts(snapshot, parameters, time.perf_counter() - started)
        _keep(points_file, facts_file, points, facts)
    facts = json.loads(facts_file.read_text(encoding="utf-8"))
    return Layout(points_file, facts["images"], facts["texts"], method, facts["seconds"], facts["note"])


def umap_layout(
    vectors: Float[np.ndarray, "m d"],
    *,
    neighbours: int,
    min_dist: float,
    seed: int,
    progress: Progress,
) -> Float[np.ndarray, "m 2"]:
    """UMAP of unit rows by cosine, from exact neighbours, begun at the PCA so that both pictures face the same way.

    McInnes, Healy, Melville, UMAP: Uniform Manifold Approximation and Projection, 2018,
    https://arxiv.org/abs/1802.03426
    """
    neighbours = min(neighbours, len(vectors) - 1)
    indices, distances = nearest(vectors, neighbours, lambda share: progress(share * NEIGHBOURS_SHARE, "neighbours"))
    progress(NEIGHBOURS_SHARE, "loading UMAP")
    umap = load_umap()
    reporter = _EpochReporter(lambda share, note: progress(NEIGHBOURS_SHARE + (1 - NEIGHBOURS_SHARE) * share, note))
    model = umap.UMAP(
        n_neighbors=neighbours,
        min_dist=min_dist,
        metric="cosine",
        random_state=seed,
        n_jobs=1,
        init=pca(vectors, 2).astype(np.float32),  # umap scales it to a box of side 10
        precomputed_knn=(indices, distances, None),
        tqdm_kwds={"file": reporter, "disable": False, "bar_format": "{n_fmt}/{total_fmt}", "mininterval": 0.1},
    )
    with warnings.catch_warnings():
        # umap warns that `transform` will not work without a search index: nobody calls it here.
        warnings.simplefilter("ignore")
        return model.fit_transform(vectors).astype(np.float32)


def nearest(
    vectors: Float[np.ndarray, "m d"], k: int, progress: Callable[[float], None] | None = None
) -> tuple[Int[np.ndarray, "m k"], Float[np.ndarray, "m k"]]:
    """The `k` nearest rows by cosine distance, nearest first, each row its own first neighbour; exact.

    Args:
        vectors: Rows of unit length.
        k: Neighbours of each row, itself included.
        progress: Called with the share of rows done.
    """
    m = len(vectors)
    indices, distances = np.empty((m, k), np.int32), np.empty((m, k), np.float32)
    for start in range(0, m, TILE):
        rows = slice(start, min(start + TILE, m))
        cosine = vectors[rows] @ vectors.T
        # Twins may tie with the row itself; umap takes the first column to be the point.
        cosine[np.arange(len(cosine)), np.arange(rows.start, rows.stop)] = 2.0
        best = np.argpartition(cosine, m - k, axis=1)[:, m - k :]
        order = np.argsort(-np.take_along_axis(cosine, best, axis=1), axis=1, kind="stable")
        indices[rows] = np.take_along_axis(best, order, axis=1)
        distances[rows] = 1.0 - np.take_along_axis(cosine, indices[rows], axis=1)
        if progress:
            progress(rows.stop / m)
    return indices, np.maximum(distances, 0.0)


def load_umap() -> ModuleType:
    """umap-learn with the machine code of its kernels kept between processes (RENDERING 7: 32 s becomes 5 s)."""
    import platformdirs

    folder = Path(platformdirs.user_cache_dir("contrastive-explorer")) / "numba"
    os.environ.setdefault("NUMBA_CACHE_DIR", str(folder))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import umap
        import umap.layouts
        import umap.umap_
    from numba.core.registry import CPUDispatcher

    for module in (umap.umap_, umap.layouts):
        for kernel in vars(module).values():
            if isinstance(kernel, CPUDispatcher) and not kernel.stats.cache_path:
                kernel.enable_caching()
    return umap


def warm_up() -> None:
    """Compiles, or loads from the cache, everything a first UMAP needs, by projecting a few points."""
    vectors = np.random.default_rng(0).standard_normal((64, 8)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    umap_layout(vectors, neighbours=8, min_dist=0.1, seed=0, progress=_silent)


class _EpochReporter:
    """A file to tqdm, which writes "12/500" to it; whatever the progress function raises ends the fit."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress

    def write(self, text: str) -> int:
        if found := re.search(r"(\d+)/(\d+)", text):
            done, total = int(found[1]), int(found[2])
            self._progress(done / max(total, 1), f"epoch {done} of {total}")
        return len(text)

    def flush(self) -> None:
        """Nothing is held back."""


def _project(parts: list[np.ndarray], parameters: dict, progress: Progress) -> Float[np.ndarray, "m 2"]:
    vectors = np.concatenate([np.asarray(part, np.float32) for part in parts])
    if len(vectors) < 4:
        raise ProjectError(f"{len(vectors)} points are too few for a picture: at least 4 are needed.")
    vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    if parameters["method"] == "pca":
        return pca(vectors, 2).astype(np.float32)
    return umap_layout(
        vectors,
        neighbours=parameters["neighbours"],
        min_dist=parameters["min_dist"],
        seed=parameters["seed"],
        progress=progress,
    )


def _key(parts: list[np.ndarray], parameters: dict) -> str:
    digest = hashlib.sha256(json.dumps(parameters, sort_keys=True).encode())
    for part in parts:
        digest.update(f"{part.shape}{part.dtype}".encode())
        digest.update(np.ascontiguousarray(part))
    return digest.hexdigest()[:32]


def _facts(snapshot: Snapshot, parameters: dict, seconds: float) -> dict:
    counts = {
        "images": 0 if snapshot.image is None else len(snapshot.image),
        "texts": 0 if snapshot.text is None else len(snapshot.text),
    }
    note = "first two principal components of images and texts together"
    if parameters["method"] == "umap":
        note = (
            f"UMAP by cosine, {parameters['neighbours']} neighbours, min_dist {parameters['min_dist']:g}, "
            f"seed {parameters['seed']}; distances between clusters mean nothing"
        )
    return parameters | counts | {"seconds": round(seconds, 3), "note": note}


def _keep(points_file: Path, facts_file: Path, points: np.ndarray, facts: dict) -> None:
    points_file.parent.mkdir(parents=True, exist_ok=True)
    for file, write in (
        (points_file, lambda stream: np.save(stream, points)),
        (facts_file, lambda stream: stream.write(json.dumps(facts).encode())),
    ):
        # A name of its own, so that two processes that project the same thing never share a half-written file.
        half = file.with_name(f"{file.name}.{os.getpid()}.tmp")
        with half.open("wb") as stream:
            write(stream)
        os.replace(half, file)


def _silent(share: float, note: str) -> None:
    """Nobody waits."""
