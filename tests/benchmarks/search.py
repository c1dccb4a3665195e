"""Search among many vectors: exact search against the bare product.

The vectors are made up, because nobody ships a million embeddings with a program: unit rows around centers of a
space of 64 directions with falling variance, plus noise, which is about what embeddings of pictures look like.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Final

import numpy as np
from jaxtyping import Float

from trainer.analysis.search import best_of, products

HELP = "a million vectors: the exact answer against the bare product"
DIRECTIONS: Final = 64
CENTERS: Final = 1_000
K: Final = 10


@dataclass(frozen=True)
class Measurement:
    """One search method.

    Attributes:
        way: `bare product` or `exact`.
        rows: Vectors searched.
        dimension: Of the vectors.
        milliseconds: Median of one question, one question at a time.
        p95_ms: The slowest twentieth takes longer.
        times_bare: Median over the median of the bare matrix-vector product, measured in turns with it.
    """

    way: str
    rows: int
    dimension: int
    milliseconds: float
    p95_ms: float
    times_bare: float


def measure(rows: int, *, dimension: int = 512, questions: int = 100, seed: int = 0) -> Iterator[Measurement]:
    """Yield the bare product and the exact search, in turns."""
    vectors, asked = made_up(rows, dimension, seed=seed), made_up(questions, dimension, seed=seed, draw=1)
    bare, exact = [], []
    for query in (asked[0], *asked):
        bare.append(_seconds(lambda query=query: vectors @ query))
        exact.append(_seconds(lambda query=query: best_of(products(vectors, query), K)))
    # The first of each only warms the caches.
    base = statistics.median(bare[1:])
    for way, seconds in (("bare product", bare[1:]), ("exact", exact[1:])):
        middle, p95 = statistics.median(seconds), float(np.percentile(seconds, 95))
        yield Measurement(way, rows, dimension, 1000 * middle, 1000 * p95, middle / base)


def made_up(n: int, d: int, *, seed: int, draw: int = 0) -> Float[np.ndarray, "n d"]:
    """Return unit rows with close neighbors; another `draw` of a seed gives other rows of the same distribution."""
    rng = np.random.default_rng(seed)
    spread = 1 / np.sqrt(np.arange(1, DIRECTIONS + 1, dtype=np.float32))
    basis = rng.standard_normal((DIRECTIONS, d), dtype=np.float32) * spread[:, None]
    centers = rng.standard_normal((CENTERS, DIRECTIONS), dtype=np.float32)
    rng = np.random.default_rng((seed, draw))
    vectors = np.empty((n, d), np.float32)
    for start in range(0, n, 50_000):
        piece = vectors[start : start + 50_000]
        place = centers[rng.integers(CENTERS, size=len(piece))]
        place = place + 0.7 * rng.standard_normal((len(piece), DIRECTIONS), dtype=np.float32)
        piece[:] = place @ basis + 0.05 * rng.standard_normal(piece.shape, dtype=np.float32)
        piece /= np.linalg.norm(piece, axis=1, keepdims=True)
    return vectors


def _seconds(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the number of vectors, and their width."""
    parser.add_argument("--rows", type=int, default=1_000_000, help="vectors to search (1000000)")
    parser.add_argument("--dimension", type=int, default=512)
    parser.add_argument("--questions", type=int, default=100, help="one after the other (100)")


def run(args: argparse.Namespace) -> int:
    """Print one row per method."""
    rows = list(measure(args.rows, dimension=args.dimension, questions=args.questions))
    if args.json:
        print(json.dumps([asdict(row) for row in rows], indent=2))
        return 0
    print(f"{'way':<13} {'rows':>9} {'median ms':>9} {'p95 ms':>8} {'times bare':>10}")
    for row in rows:
        print(f"{row.way:<13} {row.rows:>9,} {row.milliseconds:>9.2f} {row.p95_ms:>8.2f} {row.times_bare:>10.3f}")
    return 0
