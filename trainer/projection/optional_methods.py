"""t-SNE and PaCMAP, which are optional because both need compiled libraries."""

from __future__ import annotations

import importlib
import warnings
from types import ModuleType
from typing import Final

import numpy as np
from jaxtyping import Float

from trainer.analysis.neighbor_cells import neighbors_of_all
from trainer.analysis.progress import Progress, between
from trainer.analysis.projection import pca
from trainer.errors import UserError
from trainer.projection.neighbors import distances_of

NEIGHBORS_SHARE: Final = 0.3
EXAGGERATED: Final = 250
"""Iterations of t-SNE with early exaggeration; 500 plain ones follow."""
ITERATIONS: Final = 750
_EVERY: Final = 10


def tsne_layout(
    vectors: Float[np.ndarray, "m d"],
    *,
    perplexity: float,
    seed: int,
    progress: Progress,
    metric: str = "cosine",
    start: Float[np.ndarray, "m 2"] | None = None,
    notes: list[str] | None = None,
) -> Float[np.ndarray, "m 2"]:
    """Return t-SNE of unit rows by openTSNE from `neighbors_of_all`, initialized by PCA or an earlier layout.

    van der Maaten & Hinton, Visualizing Data using t-SNE, JMLR 9, 2008; Policar, Strazar, Zupan, openTSNE, 2024,
    https://doi.org/10.18637/jss.v109.i03

    Args:
        notes: Gets how the neighbors were found where they are not exact.

    Raises:
        UserError: openTSNE is not installed.
    """
    tsne = _library("openTSNE", "t-SNE")
    # A perplexity needs three times as many neighbors; with few points it is as large as it can be.
    perplexity = min(perplexity, (len(vectors) - 1) / 3)
    k = max(2, min(int(3 * perplexity), len(vectors) - 1))
    near = neighbors_of_all(vectors, k, between(progress, 0, NEIGHBORS_SHARE), seed=seed)
    if notes is not None and near.asked:
        notes.append(near.words)
    precomputed = tsne.nearest_neighbors.PrecomputedNeighbors(near.rows, distances_of(near.cosines, metric))
    affinities = tsne.affinity.PerplexityBasedNN(knn_index=precomputed, perplexity=perplexity, n_jobs=-1)
    done = 0

    def count(iteration: int, _error: float, _embedding: np.ndarray) -> None:
        nonlocal done
        done += _EVERY
        share = NEIGHBORS_SHARE + (1 - NEIGHBORS_SHARE) * min(done / ITERATIONS, 1)
        progress(share, f"iteration {min(done, ITERATIONS)} of {ITERATIONS}")

    model = tsne.TSNE(
        early_exaggeration_iter=EXAGGERATED,
        n_iter=ITERATIONS - EXAGGERATED,
        n_jobs=-1,
        random_state=seed,
        callbacks=count,
        callbacks_every_iters=_EVERY,
    )
    begun = pca(vectors, 2) if start is None else start
    # So narrow that every pair attracts at first, as Kobak & Berens (2019) advise.
    begun = begun / max(float(np.std(begun[:, 0])), 1e-12) * 1e-4
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return np.asarray(model.fit(affinities=affinities, initialization=begun.astype(np.float64)), np.float32)


def pacmap_layout(
    vectors: Float[np.ndarray, "m d"],
    *,
    neighbors: int,
    seed: int,
    progress: Progress,
    start: Float[np.ndarray, "m 2"] | None = None,
) -> Float[np.ndarray, "m 2"]:
    """Return PaCMAP of unit rows by Euclidean distance, initialized by PCA or an earlier layout.

    Wang, Huang, Rudin, Shaposhnik, Understanding How Dimension Reduction Tools Work, JMLR 22, 2021. The library tells
    no progress.

    Raises:
        UserError: pacmap is not installed.
    """
    pacmap = _library("pacmap", "PaCMAP")
    progress(0.1, "PaCMAP tells no progress")
    neighbors = max(1, min(neighbors, len(vectors) - 2))
    model = pacmap.PaCMAP(n_neighbors=neighbors, random_state=seed, apply_pca=False)
    with warnings.catch_warnings():
        # pacmap warns of every seed, and of every small set of points.
        warnings.simplefilter("ignore")
        begun = pca(vectors, 2) if start is None else np.asarray(start, np.float32)
        return np.asarray(model.fit_transform(np.ascontiguousarray(vectors), init=begun), np.float32)


def _library(module: str, method: str) -> ModuleType:
    try:
        library = importlib.import_module(module)
        if module == "openTSNE":
            importlib.import_module("openTSNE.affinity")
            importlib.import_module("openTSNE.nearest_neighbors")
        return library
    except ImportError as error:
        raise UserError(
            f"{method} needs {module}, which is not installed: install it with "
            "`uv sync --extra projections` (or `pip install contrastive-explorer[projections]`), or choose UMAP."
        ) from error
