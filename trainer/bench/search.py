"""Search among many vectors: the exact answer against the bare product, and two index libraries against the exact one.

The vectors are made up, because nobody ships a million embeddings with a program: unit rows around centres of a
space of 64 directions with falling variance, plus noise, which is about what embeddings of pictures look like to an
index. Rows drawn evenly from the sphere would have no neighbours worth finding.
"""

from __future__ import annotations

import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from jaxtyping import Float, Int

from trainer.analysis.search import nearest_rows
from trainer.store import index_files

Progress = Callable[[float, str], None]
LIBRARIES: Final = ("usearch", "hnswlib")
DIRECTIONS: Final = 64
CENTRES: Final = 1_000
K: Final = 10


@dataclass(frozen=True)
class Measurement:
    """One way to search.

    Attributes:
        way: `bare product`, `exact`, `usearch` or `hnswlib`.
        rows: Vectors searched.
        dimension: Of the vectors.
        milliseconds: Median of one question, one question at a time.
        p95_ms: The slowest twentieth takes longer.
        recall_at_10: Share of the ten nearest that were found.
        times_bare: Median over the median of the bare matrix-vector product, measured in turns with it.
        build_s: Time to build the index; 0 without one.
        index_mib: The index in a file; 0 without one.
        note: Why it was not measured; empty if it was.
    """

    way: str
    rows: int
    dimension: int
    milliseconds: float = 0.0
    p95_ms: float = 0.0
    recall_at_10: float = 0.0
    times_bare: float = 0.0
    build_s: float = 0.0
    index_mib: float = 0.0
    note: str = ""


def measure(
    rows: int,
    *,
    dimension: int = 512,
    questions: int = 100,
    libraries: tuple[str, ...] = LIBRARIES,
    seed: int = 0,
    keep: Path | None = None,
    progress: Progress | None = None,
) -> Iterator[Measurement]:
    """The bare product and the exact answer in turns, then each index library on the same vectors.

    In the folder `keep` indices stay, with the time they took, and are not built again. `progress` is told how far
    a build is, and raises to cancel.
    """
    vectors, asked = made_up(rows, dimension, seed=seed), made_up(questions, dimension, seed=seed, draw=1)
    bare, exact, truth = [], [], []
    for query in (asked[0], *asked):
        bare.append(_seconds(lambda query=query: vectors @ query)[0])
        seconds, found = _seconds(lambda query=query: nearest_rows(vectors, query, K)[0])
        exact.append(seconds)
        truth.append(found)
    # The first of each only warms the caches.
    bare, exact, truth = bare[1:], exact[1:], np.array(truth[1:])
    base = statistics.median(bare)
    yield _summary("bare product", vectors, bare, base, recall_at_10=1.0)
    yield _summary("exact", vectors, exact, base, recall_at_10=1.0)
    for library in libraries:
        try:
            yield _index(library, vectors, asked, truth, base, keep if seed == 0 else None, progress)
        except ImportError:
            yield Measurement(library, rows, dimension, note=f"{library} is not installed")


def made_up(n: int, d: int, *, seed: int, draw: int = 0) -> Float[np.ndarray, "n d"]:
    """Unit rows that have neighbours; another `draw` of one seed gives other rows of the same kind."""
    rng = np.random.default_rng(seed)
    spread = 1 / np.sqrt(np.arange(1, DIRECTIONS + 1, dtype=np.float32))
    basis = rng.standard_normal((DIRECTIONS, d), dtype=np.float32) * spread[:, None]
    centres = rng.standard_normal((CENTRES, DIRECTIONS), dtype=np.float32)
    rng = np.random.default_rng((seed, draw))
    vectors = np.empty((n, d), np.float32)
    for start in range(0, n, 50_000):
        piece = vectors[start : start + 50_000]
        place = centres[rng.integers(CENTRES, size=len(piece))]
        place = place + 0.7 * rng.standard_normal((len(piece), DIRECTIONS), dtype=np.float32)
        piece[:] = place @ basis + 0.05 * rng.standard_normal(piece.shape, dtype=np.float32)
        piece /= np.linalg.norm(piece, axis=1, keepdims=True)
    return vectors


def recall(found: Int[np.ndarray, "q k"], truth: Int[np.ndarray, "q k"]) -> float:
    """Share of the true neighbours among those found."""
    return float(np.mean([len(set(f) & set(t)) / len(t) for f, t in zip(found.tolist(), truth.tolist())]))


def _index(
    library: str,
    vectors: Float[np.ndarray, "n d"],
    asked: Float[np.ndarray, "q d"],
    truth: Int[np.ndarray, "q k"],
    base: float,
    keep: Path | None,
    progress: Progress | None,
) -> Measurement:
    with tempfile.TemporaryDirectory() as folder:
        file = (keep or Path(folder)) / f"{library}-{len(vectors)}x{vectors.shape[1]}.index"
        file.parent.mkdir(parents=True, exist_ok=True)
        build_s, ask = (_usearch if library == "usearch" else _hnswlib)(vectors, file, progress or _silent)
        size = file.stat().st_size / 2**20
        timed = [_seconds(lambda query=query: ask(query)) for query in (asked[0], *asked)][1:]
        found = np.array([rows for _, rows in timed])
        return _summary(
            library,
            vectors,
            [seconds for seconds, _ in timed],
            base,
            recall_at_10=recall(found, truth),
            build_s=build_s,
            index_mib=size,
        )


def _usearch(
    vectors: Float[np.ndarray, "n d"], file: Path, progress: Progress
) -> tuple[float, Callable[[np.ndarray], np.ndarray]]:
    """As the application does it: 8-bit vectors in a memory-mapped file, candidates ranked again exactly."""
    import usearch.index  # noqa: F401  (missing: said before anything is built)

    build_s = _built(file, lambda: index_files.build_index(vectors, file, progress))
    index = index_files.open_index(file)
    return build_s, lambda query: index_files.search_index(index, vectors, query, K)[0]


def _hnswlib(
    vectors: Float[np.ndarray, "n d"], file: Path, progress: Progress
) -> tuple[float, Callable[[np.ndarray], np.ndarray]]:
    """The same graph (connections, expansions) over float32 vectors, in memory: hnswlib has no other."""
    import hnswlib

    index = hnswlib.Index(space="ip", dim=vectors.shape[1])

    def build() -> None:
        index.init_index(
            len(vectors), M=index_files.CONNECTIVITY, ef_construction=index_files.EXPANSION_ADD, random_seed=0
        )
        index.set_num_threads(max(1, os.cpu_count() or 1))
        for start in range(0, len(vectors), index_files.BATCH):
            progress(start / len(vectors), f"hnswlib: indexing {start:,} of {len(vectors):,}")
            index.add_items(vectors[start : start + index_files.BATCH])
        index.save_index(str(file))

    build_s = _built(file, build)
    # Read anew as a kept one is; loading into the one just built would warn.
    index = hnswlib.Index(space="ip", dim=vectors.shape[1])
    index.load_index(str(file))
    index.set_num_threads(1)
    index.set_ef(index_files.EXPANSION_SEARCH)
    return build_s, lambda query: index.knn_query(query, K)[0][0]


def _built(file: Path, build: Callable[[], None]) -> float:
    """Builds the index unless it is kept; the seconds that it took, now or then."""
    noted = file.with_suffix(".json")
    if not (file.is_file() and noted.is_file()):
        noted.write_text(json.dumps({"build_s": _seconds(build)[0]}))
    return float(json.loads(noted.read_text())["build_s"])


def _silent(share: float, note: str) -> None:
    """Nobody waits."""


def _summary(
    way: str, vectors: Float[np.ndarray, "n d"], seconds: list[float], base: float, **more: Any
) -> Measurement:
    middle = statistics.median(seconds)
    p95 = 1000 * float(np.percentile(seconds, 95))
    rows, dimension = vectors.shape
    return Measurement(way, rows, dimension, 1000 * middle, p95, times_bare=middle / base, **more)


def _seconds(call: Callable[[], Any]) -> tuple[float, Any]:
    start = time.perf_counter()
    answer = call()
    return time.perf_counter() - start, answer
