"""Compiled: count the cells of a tile that are ahead of their line's and their column's right answer.

Imported by `compiled` alone.
"""

import numba
import numpy as np


@numba.njit(nogil=True, cache=True)
def count(
    tile, low, high, low_of, high_of, ahead, ahead_of, hardest, hardest_column, first_column, width, cells, used, most
):
    """Count what is certain, list what is not, and return how many are listed; -1 and nothing is done if too many are.

    NaN is ahead of everything.

    Args:
        tile: Cosines; those of right answers are -inf.
        low: Of each line: below it a cell is certainly behind.
        high: Of each line: above it a cell is certainly ahead.
        low_of: The same of each column; inf for no columns.
        high_of: The same of each column.
        ahead: Of each line: what is certainly ahead is added.
        ahead_of: The same of each column.
        hardest: The largest cosine of each line so far; inf where it is not wanted.
        hardest_column: Where it is.
        first_column: Of the tile among all.
        width: Number of all columns.
        cells: Filled in from `used` on: 4 * (line * width + column), plus 1 if it is doubtful along the line, plus 2 if
            it is down the column.
        used: How many are listed already.
        most: How many more may be.
    """
    lines, columns = tile.shape
    along = np.zeros(lines, np.int32)
    down = np.zeros(columns, np.int32)
    begin = used
    for i in range(lines):
        row = tile[i]
        low_i, high_i, hard = low[i], high[i], hardest[i]
        certain, possible, harder = np.int32(0), np.int32(0), np.int32(0)
        for j in range(columns):
            cosine = row[j]
            certain += np.int32(not (cosine <= high_i))
            up = np.int32(not (cosine <= high_of[j]))
            down[j] += up
            possible += np.int32(not (cosine < low_i)) + np.int32(not (cosine < low_of[j])) - up
            harder += np.int32(cosine > hard)
        along[i] = certain
        if possible != certain:
            for j in range(columns):
                cosine = row[j]
                kind = 1 if cosine <= high_i and not (cosine < low_i) else 0
                kind += 2 if cosine <= high_of[j] and not (cosine < low_of[j]) else 0
                if kind:
                    if used - begin == most:
                        return -1
                    cells[used] = 4 * (i * width + first_column + j) + kind
                    used += 1
        if harder:
            for j in range(columns):
                if row[j] > hardest[i]:
                    hardest[i] = row[j]
                    hardest_column[i] = first_column + j
    for i in range(lines):
        ahead[i] += along[i]
    for j in range(columns):
        ahead_of[j] += down[j]
    return used
