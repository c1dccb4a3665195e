"""Process rows in blocks, so that all-pairs analyses run in bounded memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
from jaxtyping import Float

from trainer.analysis.half_precision import widened

CELLS: Final = 4_000_000
"""Most cells of a similarity block: 16 MiB in float32, small enough to stay near the caches."""

DOUBLE_CELLS: Final = 2**24
"""Most products that are ranked in double precision; of more rows it would take twice as long."""

_GRID: Final = 2.0**36


def row_blocks(rows: int, columns: int, *, cells: int = CELLS) -> Iterator[slice]:
    """Yield consecutive slices of `rows`, short enough that a block with `columns` has at most `cells` cells."""
    height = max(1, cells // max(columns, 1))
    for start in range(0, rows, height):
        yield slice(start, min(start + height, rows))


def exact(vectors: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "n d"]:
    """Return the rows in float32 or float64, whatever a snapshot stored.

    Half precision would lose the third digit of a cosine, and numpy multiplies float16 matrices without BLAS.
    """
    if vectors.dtype == np.float16:
        return widened(vectors)
    return np.asarray(vectors, dtype=np.result_type(vectors.dtype, np.float32))


def ranked(vectors: Float[np.ndarray, "n d"], products: int) -> Float[np.ndarray, "n d"]:
    """Return the rows in the precision in which this many products of theirs are ranked: double up to `DOUBLE_CELLS`.

    In single precision equal rows may have products that differ in the last digit, by where they lie in a block, so
    that ties fall by accident. In double precision `inner_products` rounds that away.
    """
    return np.asarray(vectors, dtype=np.float64) if products <= DOUBLE_CELLS else exact(vectors)


def inner_products(query: Float[np.ndarray, "n d"], stored: Float[np.ndarray, "m d"]) -> Float[np.ndarray, "n m"]:
    """Return all inner products; those in double precision rounded to multiples of 2^-36, where equal ones are ties."""
    return on_grid(query @ stored.T)


def on_grid(products: Float[np.ndarray, " *shape"]) -> Float[np.ndarray, " *shape"]:
    """Round products in double precision to multiples of 2^-36 in place, and return them; others stay as they are."""
    if products.dtype == np.float64:
        np.multiply(products, _GRID, out=products)
        np.rint(products, out=products)
        np.divide(products, _GRID, out=products)
    return products
