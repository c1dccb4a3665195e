"""Compiled: UMAP's weights of neighbors, and one step of its arranging. Imported by `compiled` alone."""

from __future__ import annotations

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


@quick
def move(points, moved, block, first, last, starts, neighbor, period, a, b, rate, epoch, seed, repelling):
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
        a: Of the curve 1 / (1 + a d^2b).
        b: Of the same.
        rate: How far a step goes.
        epoch: The number of this one.
        seed: Of the others.
        repelling: How many others for each use of an edge.
    """
    n = len(points)
    for i in range(first, last):
        x, y = points[i, 0], points[i, 1]
        state = mixed(np.uint64(seed) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(epoch) * np.uint64(n) + np.uint64(i))
        state |= np.uint64(1)
        for edge in range(starts[i], starts[i + 1]):
            if np.int64((epoch + 1) / period[edge]) == np.int64(epoch / period[edge]):
                continue
            j = neighbor[edge]
            for _ in range(2):
                dx, dy = x - points[j, 0], y - points[j, 1]
                square = dx * dx + dy * dy
                if square > 0:
                    power = square**b
                    pull = np.float32(-2.0) * a * b * power / (square * (a * power + np.float32(1)))
                    x += rate * clipped(pull * dx)
                    y += rate * clipped(pull * dy)
            for _ in range(repelling):
                state ^= state << np.uint64(13)
                state ^= state >> np.uint64(7)
                state ^= state << np.uint64(17)
                j = np.int64(((state >> np.uint64(32)) * np.uint64(n)) >> np.uint64(32))
                if j == i:
                    continue
                dx, dy = x - points[j, 0], y - points[j, 1]
                square = dx * dx + dy * dy
                if square > 0:
                    push = np.float32(2.0) * b / ((np.float32(0.001) + square) * (a * square**b + np.float32(1)))
                    x += rate * clipped(push * dx)
                    y += rate * clipped(push * dy)
        moved[i - block, 0] = x
        moved[i - block, 1] = y
