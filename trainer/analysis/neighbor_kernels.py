"""Compiled: keep the largest cosines of each line of a tile, and of each column. Imported by `compiled` alone.

The kept ones of a line are those that come first by cosine, then by number: whatever the order of the tiles, they are
the same. No `prange`: each thread of `worker_threads` has a tile of its own.
"""

import numba
import numpy as np

STRIDE = 32
"""Cells that are looked at together: most have none that is kept."""

compiled = numba.njit(nogil=True, cache=True)


@compiled
def put(best, number, cosine, candidate):
    """Insert a candidate in one line of kept cosines, unless the last one comes before it."""
    last = len(best) - 1
    if cosine < best[last] or (cosine == best[last] and candidate >= number[last]):
        return
    slot = last
    while slot > 0 and (best[slot - 1] < cosine or (best[slot - 1] == cosine and number[slot - 1] > candidate)):
        best[slot] = best[slot - 1]
        number[slot] = number[slot - 1]
        slot -= 1
    best[slot] = cosine
    number[slot] = candidate


@compiled
def keep(tile, best, number, first_line, first_column, self_rows):
    """Keep what is near to each line of a tile.

    Args:
        tile: Cosines.
        best: The kept cosines of all lines, largest first.
        number: The columns that they are of.
        first_line: Of the tile among all.
        first_column: Of the tile among all.
        self_rows: Of each line of all, the column that is itself; -1 for none.
    """
    lines, columns = tile.shape
    last = best.shape[1] - 1
    for i in range(lines):
        line = first_line + i
        row = tile[i]
        least = best[line, last]
        for start in range(0, columns, STRIDE):
            stop = min(start + STRIDE, columns)
            candidates = np.int32(0)
            for j in range(start, stop):
                candidates += np.int32(row[j] >= least)
            if candidates:
                for j in range(start, stop):
                    column = first_column + j
                    if row[j] >= least and column != self_rows[line]:
                        put(best[line], number[line], row[j], column)
                        least = best[line, last]


@compiled
def keep_both(tile, best, number, first_line, first_column):
    """Keep what is near to each line and to each column of a tile of rows with other rows of the same set."""
    lines, columns = tile.shape
    last = best.shape[1] - 1
    least_of = best[first_column : first_column + columns, last].copy()
    for i in range(lines):
        line = first_line + i
        row = tile[i]
        least = best[line, last]
        for start in range(0, columns, STRIDE):
            stop = min(start + STRIDE, columns)
            candidates = np.int32(0)
            for j in range(start, stop):
                candidates += np.int32(row[j] >= least) + np.int32(row[j] >= least_of[j])
            if candidates:
                for j in range(start, stop):
                    column = first_column + j
                    if row[j] >= least:
                        put(best[line], number[line], row[j], column)
                        least = best[line, last]
                    if row[j] >= least_of[j]:
                        put(best[column], number[column], row[j], line)
                        least_of[j] = best[column, last]
