"""A search index beside a large snapshot: a graph of 8-bit vectors in one file, read as a memory map.

Usearch (Vardanian, 2023, https://github.com/unum-cloud/usearch) and not hnswlib: measured side by side
(`trainer bench search`), both answer in about a millisecond, but an index of usearch keeps 8-bit vectors, is a third
as large, is built in half the time, and is searched where it lies on the disk. What the coarse vectors lose is won
back by ranking the candidates again with the snapshot's own vectors.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from jaxtyping import Float, Int

from trainer.errors import Problem
from trainer.store.files import write_atomically
from trainer.untrusted import confined

if TYPE_CHECKING:
    from usearch.index import Index

WORTH_IT: Final = 1_000_000
"""Rows from which an index is used; below, comparing with every vector takes a tenth of a second at most."""
CANDIDATES: Final = 8
"""Candidates a wanted hit: what the coarse vectors find before the exact ones decide."""
CONNECTIVITY, EXPANSION_ADD, EXPANSION_SEARCH = 16, 64, 384
BATCH: Final = 5_000
INSTALL: Final = "uv pip install 'contrastive-explorer[search]'"
EDGES_BYTES: Final = 149
"""Of one vector's connections in the file, measured."""
VECTORS_A_SECOND: Final = 3_000
"""Added by one core at a million vectors of 512 dimensions, measured (`trainer bench search`)."""


class SearchIndexError(Problem):
    """The index cannot be used, and how to mend that."""


def build_index(
    vectors: Float[np.ndarray, "n d"], file: Path, progress: Callable[[float, str], None] | None = None
) -> None:
    """Writes the index of these unit vectors; `cost` says about how long that takes.

    Args:
        vectors: Read in batches; may be a memory map.
        file: Appears whole or not at all.
        progress: Told after each batch; raises to cancel.

    Raises:
        SearchIndexError: usearch is not installed.
    """
    index = _empty(vectors.shape[1])
    for start in range(0, len(vectors), BATCH):
        if progress is not None:
            progress(start / len(vectors), f"indexing {start:,} of {len(vectors):,}")
        batch = np.ascontiguousarray(vectors[start : start + BATCH], np.float32)
        index.add(np.arange(start, start + len(batch)), batch, threads=max(1, os.cpu_count() or 1))
    confined.make_folder(file.parents[1], file.parent.name)
    write_atomically(file, lambda draft: index.save(str(draft)), private=True)


def cost(n: int, d: int) -> tuple[int, float]:
    """About how many bytes the index of n vectors takes, and how many seconds it takes to build on this machine."""
    work = (d + 128) / (512 + 128) * np.log2(max(n, 2)) / np.log2(1_000_000)
    return n * (d + EDGES_BYTES), float(n * work / (VECTORS_A_SECOND * max(1, os.cpu_count() or 1)))


def open_index(file: Path) -> Index:
    """The index in `file`, as a memory map.

    Raises:
        SearchIndexError: It is missing or damaged, or usearch is not installed.
    """
    try:
        index = _usearch().Index.restore(str(file), view=True)
    except (RuntimeError, ValueError) as error:
        raise SearchIndexError(
            f"The search index {file} cannot be read: {error}. Delete it; it is built again."
        ) from error
    if index is None:
        raise SearchIndexError(f"The search index {file} is missing or damaged. Delete it; it is built again.")
    index.expansion_search = EXPANSION_SEARCH
    return index


def search_index(
    index: Index, vectors: Float[np.ndarray, "n d"], query: Float[np.ndarray, " d"], k: int
) -> tuple[Int[np.ndarray, " k"], Float[np.ndarray, " k"]]:
    """About the `k` nearest rows, best first, with their exact cosines; now and then one of them is missed."""
    query = np.asarray(query, np.float32)
    rows = np.sort(index.search(query, min(CANDIDATES * k, len(vectors))).keys.astype(np.int64))
    scores = np.asarray(vectors[rows], np.float32) @ query
    order = np.argsort(-scores, kind="stable")[:k]
    return rows[order], scores[order]


def index_file(folder: Path, vectors_file: Path) -> Path:
    """Where the index of these vectors is kept in the workspace `folder`; other contents, another file."""
    stat = vectors_file.stat()
    key = f"{vectors_file.absolute()}:{stat.st_size}:{stat.st_mtime_ns}:{CONNECTIVITY}:{EXPANSION_ADD}"
    return folder / "cache" / "indices" / f"{hashlib.sha256(key.encode()).hexdigest()[:20]}.usearch"


def has_usearch() -> bool:
    """Whether the optional library is there."""
    import importlib.util

    return importlib.util.find_spec("usearch") is not None


def _empty(d: int) -> Index:
    return _usearch().Index(ndim=d, metric="ip", dtype="i8", connectivity=CONNECTIVITY, expansion_add=EXPANSION_ADD)


def _usearch() -> Any:
    try:
        import usearch.index
    except ImportError as error:
        raise SearchIndexError(f"Searching a million vectors by an index needs usearch: {INSTALL}.") from error
    return usearch.index
