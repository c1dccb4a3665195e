"""Hopfield retrieval: the weight of each stored pattern, and the effective number of patterns."""

from __future__ import annotations

import math
from typing import Final, Literal

import numpy as np
from jaxtyping import Float, Int
from msgspec import Struct

from trainer.analysis.losses import hopfield_retrieval
from trainer.analysis.progress import Progress, silent
from trainer.analysis.tiles import CELLS, exact, row_blocks
from trainer.analysis.worker_threads import share_out

Kind = Literal["single pattern", "metastable", "global average"]

SINGLE_MOST: Final = 1.5
"""A fixed point that averages at most so many patterns is one pattern."""

GLOBAL_SHARE: Final = 0.5
"""A fixed point that averages more than this share of all patterns is their global average."""


_COSINES: Final = 2**26
"""Cosines that are in memory at once: 256 MiB, so that of a million patterns each is read for 67 states."""


def circle_patterns(n: int, seed: int) -> Float[np.ndarray, "n 2"]:
    """Return `n` points on the unit circle by angle, one at a random place in each n-th of it."""
    angles = 2 * math.pi * (np.arange(n) + np.random.default_rng(seed).uniform(0, 0.8, n)) / n
    return np.stack([np.cos(angles), np.sin(angles)], axis=1)


def retrieval_shares(
    state: Float[np.ndarray, " d"], stored: Float[np.ndarray, "n d"], beta: float
) -> Float[np.ndarray, " n"]:
    """Return each stored pattern's weight in the retrieval: `softmax(beta stored state)`.

    Ramsauer et al., Hopfield Networks is All You Need, 2020, https://arxiv.org/abs/2008.02217, equation 3.
    """
    # Block by block: a state in float64 would otherwise be multiplied with a copy of all patterns in float64.
    logits = np.empty(len(stored), np.result_type(stored.dtype, np.asarray(state).dtype))
    for rows in row_blocks(len(stored), stored.shape[1]):
        logits[rows] = beta * (exact(stored[rows]) @ state)
    weights = np.exp(logits - logits.max())
    return weights / weights.sum()


def entropy(shares: Float[np.ndarray, " n"]) -> float:
    """Return the entropy of the shares in nats: 0 if one pattern has all, `ln n` if all are equal."""
    some = shares[shares > 0]
    return float(-(some * np.log(some)).sum()) + 0.0  # -0 would be shown as such


def effective_number(shares: Float[np.ndarray, " n"]) -> float:
    """Return the effective number of patterns averaged: the exponential of the entropy, from 1 to n."""
    return math.exp(entropy(shares))


def effective_numbers(
    state: Float[np.ndarray, " d"], stored: Float[np.ndarray, "n d"], betas: Float[np.ndarray, " m"]
) -> Float[np.ndarray, " m"]:
    """Return `effective_number` of the retrieval for each beta."""
    logits = betas[:, None] * (stored @ state)
    logits -= logits.max(axis=1, keepdims=True)
    weights = np.exp(logits)
    total = weights.sum(axis=1)
    # H = ln Z - sum p l: finite also where a share underflows.
    return np.exp(np.log(total) - (weights * logits).sum(axis=1) / total)


def self_weight(
    n: Float[np.ndarray, " m"] | int, beta: Float[np.ndarray, " m"] | float, cosine: float = 0.0
) -> Float[np.ndarray, " m"]:
    """Return a stored pattern's weight in its own retrieval if the `n - 1` others have this `cosine` to it.

    `e^beta / (e^beta + n - 1)` at cosine 0; otherwise with beta (1 - cosine) in place of beta.
    """
    return 1 / (1 + (np.asarray(n, np.float64) - 1) * np.exp(-np.asarray(beta) * (1 - cosine)))


def equal_self_weight_beta(n: Float[np.ndarray, " m"] | int) -> Float[np.ndarray, " m"]:
    """Return the beta that keeps, at cosine 0, the self-weight of CLOOB's beta 8 at n = 512.

    `8 + ln((n - 1) / 511)`. Derived here; neither in the paper nor tried in a long training yet.
    """
    return 8 + np.log((np.asarray(n, np.float64) - 1) / 511)


class Trail(Struct, frozen=True):
    """The iterations of a state under repeated updates: `states[0]` is the query."""

    states: Float[np.ndarray, "t d"]  # Before the first and after each update; not normalized.
    energies: Float[np.ndarray, " t"]  # Of each state; never rises (Ramsauer et al., 2020, theorem 1).
    numbers: Float[np.ndarray, " t"]  # Effective number of patterns of each state's retrieval.
    converged: bool  # Whether the last state is nearer to its limit than the tolerance.


def updates(
    state: Float[np.ndarray, " d"],
    stored: Float[np.ndarray, "n d"],
    beta: float,
    *,
    most: int = 200,
    tolerance: float = 1e-5,
    progress: Progress = silent,
) -> Trail:
    """Iterate `xi <- X^T softmax(beta X xi)` to a fixed point and return all states.

    Each update lowers the energy `-lse(beta, X xi) + xi.xi / 2 + ln(n) / beta + max |x|^2 / 2`, which is at least 0.
    Ramsauer et al., Hopfield Networks is All You Need, 2020, https://arxiv.org/abs/2008.02217, equation 1.

    Near a fixed point every update moves the state by a share q of the one before, so that all the further ones
    together move it by q / (1 - q) of the last: that is compared with the tolerance, not the last one, which says
    little where q is near 1.

    CLOOB makes one such update and normalizes its result; here nothing is normalized, because only then the energy
    falls. Each update reads the patterns once, block by block, and keeps nothing of them.
    """
    xi = np.asarray(state, np.float64)
    largest = max(float(_squares(exact(stored[rows])).max()) for rows in _blocks(stored))
    states, energies, numbers, converged = [], [], [], False
    before, rounding = math.inf, 8 * float(np.finfo(np.result_type(stored.dtype, np.float32)).eps)
    for step in range(most + 1):
        if step:
            progress((step - 1) / most, "Updating the query")
        after, log_sum, number = _retrieved(xi, stored, beta)
        states.append(xi)
        energies.append(-log_sum / beta + xi @ xi / 2 + math.log(len(stored)) / beta + largest / 2)
        numbers.append(number)
        if converged or step == most:
            break
        moved = float(np.linalg.norm(after - xi))
        share = moved / before if before > 0 else 0.0
        left = moved * share / (1 - share) if share < 1 else math.inf
        converged = moved < rounding or max(moved, left) < tolerance
        xi, before = after, moved
    return Trail(np.array(states), np.array(energies), np.array(numbers), converged)


def _blocks(stored: Float[np.ndarray, "n d"]) -> list[slice]:
    return [*row_blocks(len(stored), stored.shape[1])]


def _squares(rows: Float[np.ndarray, "n d"]) -> Float[np.ndarray, " n"]:
    return np.einsum("nd,nd->n", rows, rows)


def _retrieved(
    state: Float[np.ndarray, " d"], stored: Float[np.ndarray, "n d"], beta: float
) -> tuple[Float[np.ndarray, " d"], float, float]:
    """Return the weighted mean of the patterns, the logarithm of the weights' sum, and their effective number."""
    blocks = _blocks(stored)
    tops, sums = np.empty(len(blocks)), np.empty((len(blocks), stored.shape[1] + 2))

    def retrieve(block: int, _: None) -> None:
        rows = exact(stored[blocks[block]])
        logits = beta * (rows @ state.astype(rows.dtype)).astype(np.float64)
        tops[block] = logits.max()
        weights = np.exp(logits - tops[block])
        sums[block] = weights.sum(), weights @ logits, *(weights.astype(rows.dtype) @ rows)

    share_out([*range(len(blocks))], retrieve, lambda: None)
    # Blocks are added in their order, whichever thread was first.
    total, logits, *mean = np.exp(tops - tops.max()) @ sums
    log_sum = float(tops.max() + math.log(total))
    return np.array(mean) / total, log_sum, math.exp(log_sum - float(logits) / total)


def fixed_point_kind(number: float, n: int) -> Kind:
    """Classify a fixed point by the effective number of patterns that it averages.

    At most 1.5 of them: a single pattern. More than half of all: the global average. Between: metastable, the average
    of a group. The three kinds are those of Ramsauer et al., 2020; the two bounds are ours.
    """
    if number <= SINGLE_MOST:
        return "single pattern"
    return "global average" if number > GLOBAL_SHARE * n else "metastable"


def top_shares(shares: Float[np.ndarray, " n"], k: int) -> tuple[Int[np.ndarray, " k"], Float[np.ndarray, " k"], float]:
    """Return the places of the `k` largest shares, largest first, these shares, and the sum of the others."""
    k = min(k, len(shares))
    indices = np.argpartition(shares, len(shares) - k)[len(shares) - k :]
    indices = indices[np.lexsort((indices, -shares[indices]))]
    return indices, shares[indices], max(float(1 - shares[indices].sum(dtype=np.float64)), 0.0)


def effective_grid(
    states: Float[np.ndarray, "m d"],
    stored: Float[np.ndarray, "n d"],
    betas: Float[np.ndarray, " b"],
    progress: Progress = silent,
) -> Float[np.ndarray, "m b"]:
    """Return `effective_number` for each state and beta; block by block, the patterns are read once for many states."""
    states = exact(states)
    grid = np.empty((len(states), len(betas)))
    for asking in row_blocks(len(states), len(stored), cells=_COSINES):
        cosines = np.empty((asking.stop - asking.start, len(stored)), np.result_type(states, stored))
        for columns in _blocks(stored):
            cosines[:, columns] = states[asking] @ exact(stored[columns]).T
        for rows in row_blocks(len(cosines), len(stored), cells=CELLS // 4):
            grid[asking][rows] = _numbers(cosines[rows] - cosines[rows].max(1, keepdims=True), betas)
            progress((asking.start + rows.stop) / len(states), "Retrieving at every beta")
    return grid


def _numbers(below_top: Float[np.ndarray, "m n"], betas: Float[np.ndarray, " b"]) -> Float[np.ndarray, "m b"]:
    """Return the effective number of each line of cosines, less the largest of the line, at each beta."""
    numbers = np.empty((len(below_top), len(betas)))
    for cell, beta in enumerate(betas):
        logits = float(beta) * below_top
        weights = np.exp(logits)
        total = weights.sum(1, dtype=np.float64)
        numbers[:, cell] = np.exp(np.log(total) - np.einsum("mn,mn->m", weights, logits, dtype=np.float64) / total)
    return numbers


class FourRetrievals(Struct, frozen=True):
    """The retrievals of one pair as unit rows, and the cosines of its partners before and after."""

    # The image among the images. `u_y`: the text among the images. `v_x`: the image among the texts. `v_y`: the
    # text among the texts.
    u_x: Float[np.ndarray, " d"]
    u_y: Float[np.ndarray, " d"]
    v_x: Float[np.ndarray, " d"]
    v_y: Float[np.ndarray, " d"]
    before: float  # Cosine of image and text.
    images: float  # Cosine of `u_x` and `u_y`: what CLOOB's first InfoLOOB sees.
    texts: float  # Cosine of `v_y` and `v_x`: what its second sees.
    own: tuple[float, float, float, float]  # Share of the pair's own pattern in `u_x`, `u_y`, `v_x`, `v_y`.
    numbers: tuple[float, float, float, float]  # Effective number of patterns of the same four.


def four_retrievals(
    image: Float[np.ndarray, "n d"], text: Float[np.ndarray, "n d"], row: int, beta: float
) -> FourRetrievals:
    """Return U_x, U_y, V_x and V_y of pair `row` among all pairs, without masking, as in training.

    Fuerst et al., CLOOB, 2022, https://arxiv.org/abs/2110.11316, equations 4 to 7.
    """
    x, y = exact(image[row]).astype(np.float64), exact(text[row]).astype(np.float64)
    ways = ((x, image), (y, image), (x, text), (y, text))
    retrieved = [hopfield_retrieval(state[None], stored, beta)[0].astype(np.float64) for state, stored in ways]
    shares = [retrieval_shares(state, exact(stored), beta) for state, stored in ways]
    u_x, u_y, v_x, v_y = retrieved
    return FourRetrievals(
        *retrieved,
        before=float(x @ y / max(np.linalg.norm(x) * np.linalg.norm(y), 1e-12)),
        images=float(u_x @ u_y),
        texts=float(v_y @ v_x),
        own=tuple(float(s[row]) for s in shares),
        numbers=tuple(effective_number(s) for s in shares),
    )


def matched_after_retrieval(
    image: Float[np.ndarray, "n d"], text: Float[np.ndarray, "n d"], beta: float
) -> tuple[Float[np.ndarray, " n"], Float[np.ndarray, " n"], Float[np.ndarray, " n"]]:
    """Return matched cosines: before, among retrieved images (U_x, U_y), among retrieved texts (V_y, V_x)."""
    image, text = exact(image), exact(text)
    among = [
        np.einsum("nd,nd->n", hopfield_retrieval(image, stored, beta), hopfield_retrieval(text, stored, beta))
        for stored in (image, text)
    ]
    return np.einsum("nd,nd->n", image, text), among[0], among[1]


def own_weight(state: Float[np.ndarray, "n d"], stored: Float[np.ndarray, "n d"], beta: float, size: int) -> float:
    """Return the mean weight of row k of `stored` in row k's retrieval by `state`, in whole batches of `size` rows.

    The batches are consecutive rows; an incomplete last one is left out. `1 / size` where all cosines are equal.
    """
    size = min(size, len(state))
    weights_by_batch = []
    for start in range(0, len(state) - size + 1, size):
        rows = slice(start, start + size)
        logits = beta * (exact(state[rows]).astype(np.float64) @ exact(stored[rows]).astype(np.float64).T)
        weights = np.exp(logits - logits.max(1, keepdims=True))
        weights_by_batch.append(np.diag(weights) / weights.sum(1))
    return float(np.concatenate(weights_by_batch).mean())


def measured_self_weights(
    vectors: Float[np.ndarray, "n d"],
    sizes: Int[np.ndarray, " m"],
    betas: Float[np.ndarray, " m"],
    *,
    anchors: int = 256,
) -> Float[np.ndarray, " m"]:
    """Return a pattern's mean weight in its own retrieval among random batches of each size.

    Args:
        vectors: Unit rows to draw from.
        sizes: Of the batches, at least 1 and at most n.
        betas: One for each size: a constant, or a rule.
        anchors: How many patterns are averaged over.
    """
    order = np.random.default_rng(0).permutation(len(vectors))
    queries = exact(vectors[order[:anchors]])
    cosines = np.empty((len(queries), len(order)), queries.dtype)
    for rows in row_blocks(len(order), max(vectors.shape[1], len(queries))):
        cosines[:, rows] = queries @ exact(vectors[order[rows]]).T
    shares = np.zeros(len(sizes))
    for anchor in range(len(queries)):
        # An anchor's companions are the rows after it in the shuffled order, so every anchor meets others.
        beyond = np.roll(cosines[anchor], -anchor).astype(np.float64) - float(cosines[anchor, anchor])
        for index, (size, beta) in enumerate(zip(sizes.tolist(), betas.tolist(), strict=True)):
            shares[index] += 1 / (1 + float(np.exp(beta * beyond[1:size]).sum()))
    return shares / max(len(queries), 1)
