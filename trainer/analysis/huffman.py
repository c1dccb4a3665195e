"""Huffman codes of words: frequent words have short paths."""

from __future__ import annotations

import heapq

import numpy as np
from jaxtyping import Bool, Float, Int
from msgspec import Struct


class HuffmanPaths(Struct, frozen=True):
    """The path of every word from the root of the tree; shorter ones are padded."""

    nodes: Int[np.ndarray, "v depth"]  # Numbers of inner nodes, 0 to words - 2.
    signs: Float[np.ndarray, "v depth"]  # 1 for left, -1 for right.
    used: Bool[np.ndarray, "v depth"]  # Whether the place is of the path.

    @property
    def lengths(self) -> Int[np.ndarray, " v"]:
        """Decisions of each word."""
        return self.used.sum(axis=1)


def huffman_paths(counts: Float[np.ndarray, " v"]) -> HuffmanPaths:
    """Return the Huffman code of words by their counts, of at least two; the mean length is the smallest there is.

    Huffman, A Method for the Construction of Minimum-Redundancy Codes, 1952, https://doi.org/10.1109/JRPROC.1952.273898
    """
    size = len(counts)
    waiting = [(float(count), word) for word, count in enumerate(counts)]
    heapq.heapify(waiting)
    above: dict[int, tuple[int, float]] = {}
    for node in range(size, 2 * size - 1):
        (first, left), (second, right) = heapq.heappop(waiting), heapq.heappop(waiting)
        above[left], above[right] = (node, 1.0), (node, -1.0)
        heapq.heappush(waiting, (first + second, node))
    paths = []
    for word in range(size):
        path, at = [], word
        while at in above:
            at, sign = above[at]
            path.append((at - size, sign))
        paths.append(path[::-1])
    depth = max(map(len, paths))
    nodes, signs = np.zeros((size, depth), np.int64), np.zeros((size, depth))
    used = np.zeros((size, depth), bool)
    for word, path in enumerate(paths):
        length = len(path)
        nodes[word, :length], signs[word, :length] = zip(*path, strict=True)
        used[word, :length] = True
    return HuffmanPaths(nodes, signs, used)
