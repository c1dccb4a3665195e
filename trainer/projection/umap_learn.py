"""Fast UMAP, in seconds instead of half a minute: with exact neighbors and cached machine code.

umap-learn spends most of a fresh process compiling its neighbor search. With neighbors from plain matrix products
it is never needed and not loaded, and its other kernels keep their machine code in the user's cache folder.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import re
import sys
import warnings
from collections.abc import Iterator, Mapping
from types import ModuleType
from typing import Any, Final

import numpy as np
from jaxtyping import Float

from trainer.analysis.compiled import cache_folder
from trainer.analysis.neighbor_cells import neighbors_of_all
from trainer.analysis.progress import Progress, between, silent
from trainer.analysis.projection import pca
from trainer.analysis.tiled_neighbors import compile_kernels
from trainer.projection.neighbors import distances_of, with_itself
from trainer.projection.umap import arranged, fuzzy_graph, in_square

NEIGHBORS_SHARE: Final = 0.3
"""Share of the progress bar that finding neighbors takes; the rest is arranging the points."""
BEGUN_EPOCHS: Final = 200
BEGUN_RATE: Final = 0.1
"""Epochs and learning rate where the points begin at another layout, which is to be changed and not found anew."""


def umap_layout(
    vectors: Float[np.ndarray, "m d"],
    *,
    neighbors: int,
    min_dist: float,
    seed: int,
    progress: Progress,
    metric: str = "cosine",
    start: Float[np.ndarray, "m 2"] | None = None,
    notes: list[str] | None = None,
) -> Float[np.ndarray, "m 2"]:
    """Return UMAP of unit rows from `neighbors_of_all`, initialized by PCA or an earlier layout of the same rows.

    McInnes, Healy, Melville, UMAP: Uniform Manifold Approximation and Projection, 2018,
    https://arxiv.org/abs/1802.03426

    Args:
        notes: Gets how the neighbors were found where they are not exact.
    """
    neighbors = min(neighbors, len(vectors) - 1)
    near = neighbors_of_all(vectors, neighbors - 1, between(progress, 0, NEIGHBORS_SHARE), seed=seed)
    if notes is not None and near.asked:
        notes.append(near.words)
    progress(NEIGHBORS_SHARE, "loading UMAP")
    umap = load_umap()
    reporter = _EpochReporter(lambda share, note: progress(NEIGHBORS_SHARE + (1 - NEIGHBORS_SHARE) * share, note))
    bar = {"file": reporter, "disable": False, "bar_format": "{n_fmt}/{total_fmt}", "mininterval": 0.1}
    model = umap.UMAP(
        n_neighbors=neighbors,
        min_dist=min_dist,
        metric=metric,
        random_state=seed,
        n_jobs=1,
        init=separated(pca(vectors, 2)) if start is None else "random",  # umap scales it to a box of side 10
        precomputed_knn=(*with_itself(near, metric=metric), None),
        transform_mode="embedding" if start is None else "graph",
        tqdm_kwds=bar,
    )
    with warnings.catch_warnings():
        # umap warns that `transform` will not work without a search index: nobody calls it here.
        warnings.simplefilter("ignore")
        if start is None:
            return model.fit_transform(vectors).astype(np.float32)
        return _arranged(umap, model.fit(vectors), separated(start), seed, bar)


def _arranged(umap: ModuleType, model: Any, start: np.ndarray, seed: int, bar: dict) -> Float[np.ndarray, "m 2"]:
    """Return the layout of a fitted graph, initialized with `start`.

    umap-learn itself would first stretch each axis of `start` to a length of 10, and then find the old shape again:
    a copy of the same vectors moved by .44 of the picture's radius.
    """
    graph = model.graph_.tocoo()
    graph.sum_duplicates()
    weights = np.where(graph.data < graph.data.max() / BEGUN_EPOCHS, 0, graph.data)
    heavy = weights > 0
    a, b = umap.umap_.find_ab_params(model.spread, model.min_dist)
    limits = np.iinfo(np.int32)
    state = np.random.RandomState(seed).randint(limits.min + 1, limits.max - 1, 3).astype(np.int64)
    points = np.ascontiguousarray(start, np.float32)
    return umap.layouts.optimize_layout_euclidean(
        points,
        points,
        graph.row[heavy].astype(np.int32),
        graph.col[heavy].astype(np.int32),
        BEGUN_EPOCHS,
        len(points),
        umap.umap_.make_epochs_per_sample(weights[heavy], BEGUN_EPOCHS),
        a,
        b,
        state,
        initial_alpha=BEGUN_RATE,
        tqdm_kwds=bar,
        move_other=True,
    ).astype(np.float32)


def load_umap() -> ModuleType:
    """Import umap-learn without its neighbor search, with machine code cached between processes.

    pynndescent compiles when it is imported: with it, the first import took 26 s of processor time instead of 3.
    """
    os.environ.setdefault("NUMBA_CACHE_DIR", str(cache_folder()))
    with warnings.catch_warnings(), _neighbor_search_on_demand():
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


@contextlib.contextmanager
def _neighbor_search_on_demand() -> Iterator[None]:
    """Let umap be imported with stand-ins for pynndescent, which load it when something uses them."""
    if not {"umap", "pynndescent"}.isdisjoint(sys.modules):
        yield
        return
    stand_ins: dict[str, dict[str, Any]] = {
        "pynndescent": {"NNDescent": _NeighborSearch, "__path__": []},
        "pynndescent.distances": {"named_distances": _Distances("pynndescent.distances", "named_distances")},
        "pynndescent.sparse": {"sparse_named_distances": _Distances("pynndescent.sparse", "sparse_named_distances")},
    }
    for name, values in stand_ins.items():
        sys.modules[name] = ModuleType(name)
        vars(sys.modules[name]).update(values)
    try:
        yield
    finally:
        for name in stand_ins:
            del sys.modules[name]


class _NeighborSearch:
    """Making one makes pynndescent's own, which umap uses from then on."""

    def __new__(cls, *arguments: Any, **options: Any) -> Any:
        umap: Any = importlib.import_module("umap.umap_")
        library = importlib.import_module("pynndescent")
        umap.NNDescent = library.NNDescent
        return library.NNDescent(*arguments, **options)


class _Distances:
    """Distances of pynndescent by name; whether it has the usual ones is known without loading it."""

    def __init__(self, module: str, names: str) -> None:
        self._module, self._names = module, names

    def __contains__(self, name: object) -> bool:
        return name in ("cosine", "euclidean") or name in self._whole()

    def __getitem__(self, name: str) -> Any:
        return self._whole()[name]

    def _whole(self) -> Mapping[str, Any]:
        return getattr(importlib.import_module(self._module), self._names)


def warm_up() -> None:
    """Compile, or load from the cache, everything a first UMAP needs, by projecting a few points."""
    vectors = np.random.default_rng(0).standard_normal((64, 8)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    umap_layout(vectors, neighbors=8, min_dist=0.1, seed=0, progress=silent)
    compile_kernels()
    near = neighbors_of_all(vectors, 7)
    graph = fuzzy_graph(near.rows, distances_of(near.cosines))
    arranged(graph, in_square(pca(vectors, 2)), min_dist=0.1, seed=0, progress=silent, epochs=1)


class _EpochReporter:
    """A file for tqdm, which writes "12/500" to it; an exception from the progress function ends the fit."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress

    def write(self, text: str) -> int:
        if match := re.search(r"(\d+)/(\d+)", text):
            done, total = int(match[1]), int(match[2])
            self._progress(done / max(total, 1), f"epoch {done} of {total}")
        return len(text)

    def flush(self) -> None:
        """Do nothing, because nothing is buffered."""


def separated(start: Float[np.ndarray, "m 2"]) -> Float[np.ndarray, "m 2"]:
    """Return finite positions with nonzero extent, because UMAP divides by it and never separates equal ones."""
    start = np.nan_to_num(np.asarray(start, np.float32))
    extent = float(np.ptp(start, axis=0).max()) if len(start) else 0.0
    noise = np.random.default_rng(0).normal(scale=max(extent, 1.0) * 1e-4, size=start.shape)
    return (start + noise).astype(np.float32)
