"""Compiled: UMAP's weights of neighbors, and one step of its arranging. Imported by `compiled` alone."""

import numba
import numpy as np

compiled = numba.njit(nogil=True, cache=True)
quick = numba.njit(nogil=True, cache=True, fastmath=True)


@compiled
def weigh(distances, weights, target):
    """Fill in exp(-(d - nearest) / sigma), with sigma so that the weights of a row sum to `target`."""
    n, k = distances.shape
    for i in range(n):
        nearest, low, high, sigma = distances[i, 0], 0.0, np.inf, 1.0
        for _ in range(64):
            total = 0.0
            for j in range(k):
                beyond = distances[i, j] - nearest
                total += np.exp(-beyond / sigma) if beyond > 0 else 1.0
            if abs(total - target) < 1e-5:
                break
            if total > target:
                high = sigma
                sigma = (low + high) / 2
            else:
                low = sigma
                sigma = sigma * 2 if high == np.inf else (low + high) / 2
        sigma = max(sigma, distances[i].mean() * 1e-3, 1e-12)
        for j in range(k):
            beyond = distances[i, j] - nearest
            weights[i, j] = np.exp(-beyond / sigma) if beyond > 0 else 1.0


@compiled
def mixed(bits):
    """Return other bits, each of which depends on all of these."""
    bits ^= bits >> np.uint64(33)
    bits *= np.uint64(0xFF51AFD7ED558CCD)
    bits ^= bits >> np.uint64(33)
    bits *= np.uint64(0xC4CEB9FE1A85EC53)
    bits ^= bits >> np.uint64(33)
    return bits


@compiled
def clipped(step):
    """Return the step, at most 4 in either direction."""
    return min(np.float32(4), max(np.float32(-4), step))


_LOWEST, _OCTAVES, _PARTS = -40, 80, 128
"""Of squared distances in tables: the first is 2 to the power of this, then so many octaves, each in so many parts."""


def curve_table(a, b):
    """Return how an edge pulls and how a point pushes along 1 / (1 + a d^2b), by squared distance, as `read_off` does.

    Powers and quotients took half of the time of arranging; between its lines the table is off by 5e-5 at most.
    """
    line = np.arange(_OCTAVES * _PARTS + 1)
    square = 2.0 ** (_LOWEST + line // _PARTS) * (1 + line % _PARTS / _PARTS)
    power = square**b
    pull = -2 * a * b * power / (square * (a * power + 1))
    push = 2 * b / ((0.001 + square) * (a * power + 1))
    return np.stack([pull, push], axis=1).astype(np.float32)


@numba.njit(nogil=True, cache=True, inline="always")
def read_off(table, bits, column):
    """Return the value for a squared distance in single precision, of which these are the bits; of others the ends'."""
    # Exponent and first seven digits of the fraction are the line, the other sixteen how far it is to the next.
    offset = min(max(bits - np.int32((127 + _LOWEST) << 23), np.int32(0)), np.int32((_OCTAVES << 23) - 1))
    line, rest = offset >> np.int32(16), np.float32(offset & np.int32(0xFFFF)) * np.float32(1 / 65_536)
    return table[line, column] + rest * (table[line + 1, column] - table[line, column])


@quick
def move(points, moved, block, first, last, starts, neighbor, period, table, rate, epoch, seed, repelling):
    """Move the vertices from `first` to `last`: along their edges that are due, and away from some random others.

    Each moves itself alone and reads where all stood at the beginning of the block, so nothing depends on who does
    which part. An edge of umap-learn moves its two ends in each direction in which it is stored; here it moves its
    own end twice.

    Args:
        points: Where all are.
        moved: Filled in: where those of the block will be.
        block: The first vertex of it.
        first: The first that is moved here.
        last: The one after the last that is.
        starts: Where the edges of each vertex begin.
        neighbor: The other end of each edge.
        period: Epochs between two uses of each edge.
        table: Of `curve_table`.
        rate: How far a step goes.
        epoch: The number of this one.
        seed: Of the others.
        repelling: How many others for each use of an edge.
    """
    n = len(points)
    dx, dy = np.empty(repelling, np.float32), np.empty(repelling, np.float32)
    single = np.empty(max(1, repelling), np.float32)
    bits = single.view(np.int32)
    for i in range(first, last):
        x, y = points[i, 0], points[i, 1]
        state = mixed(np.uint64(seed) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(epoch) * np.uint64(n) + np.uint64(i))
        state |= np.uint64(1)
        for edge in range(starts[i], starts[i + 1]):
            if np.int32(np.float32(epoch + 1) / period[edge]) == np.int32(np.float32(epoch) / period[edge]):
                continue
            j = neighbor[edge]
            for _ in range(2):
                across, along = x - points[j, 0], y - points[j, 1]
                single[0] = across * across + along * along
                if single[0] > 0:
                    pull = read_off(table, bits[0], 0)
                    x += rate * clipped(pull * across)
                    y += rate * clipped(pull * along)
            # All others push from where it stands now, so that the processor reads them at once and not in turn.
            for other in range(repelling):
                state ^= state << np.uint64(13)
                state ^= state >> np.uint64(7)
                state ^= state << np.uint64(17)
                j = np.int64(((state >> np.uint64(32)) * np.uint64(n)) >> np.uint64(32))
                dx[other], dy[other] = x - points[j, 0], y - points[j, 1]
                single[other] = dx[other] * dx[other] + dy[other] * dy[other]
            pushed_x, pushed_y = np.float32(0), np.float32(0)
            for other in range(repelling):
                push = read_off(table, bits[other], 1)
                pushed_x += clipped(push * dx[other])
                pushed_y += clipped(push * dy[other])
            x += rate * pushed_x
            y += rate * pushed_y
        moved[i - block, 0] = x
        moved[i - block, 1] = y
