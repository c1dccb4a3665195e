"""Groups that one embedding separates and another merges, by the spectrum of the difference of their kernels.

SPEC: Jalali, Wu, Shaham and Farnia, Towards an Explainable Comparison and Alignment of Feature Embeddings, 2025
(ICML), https://arxiv.org/abs/2506.06231. With kernel matrices K_A and K_B of the same n rows, the eigenvectors of
D = (K_A - K_B) / n with large positive eigenvalues live on rows that A relates otherwise than B does.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from jaxtyping import Float, Int

from trainer.analysis.tiles import exact
from trainer.analysis.unit_rows import normalized

LANDMARKS: Final = 400
"""Rows by which kernels are approximated (Nyström); the cost is n · landmarks²."""
MOST_EIGENVECTORS: Final = 20
LEADERS: Final = 2_000
"""Rows at most among which the middle of a group is sought."""
_NEAR: Final = 0.8
"""Cosine of two rows in the space of the eigenvectors that are of one group."""
_HALF: Final = 0.5
_MOSTLY: Final = 0.8
_FLOOR: Final = 1e-10


@dataclass(frozen=True)
class SeparatedGroup:
    """Rows that A keeps apart from others that B mixes them with.

    Attributes:
        rows: Of the embeddings, ascending.
        partner: Number of the group that B mixes them with most; -1: no other group, A alone gathers them.
        within_a, within_b: Mean kernel between its rows.
        across_a, across_b: Mean kernel to its partner, or to all other rows without one.
    """

    rows: Int[np.ndarray, " k"]
    partner: int
    within_a: float
    within_b: float
    across_a: float
    across_b: float

    @property
    def gain(self) -> float:
        """By how much more A separates it: the margin (within - across) of A minus that of B."""
        return (self.within_a - self.across_a) - (self.within_b - self.across_b)


@dataclass(frozen=True)
class KernelDifference:
    """The spectrum of the difference of two kernels, and the groups of A."""

    eigenvalues: Float[np.ndarray, " m"]  # Of D, ascending; positive ones are of A.
    threshold: float  # Positive eigenvalues up to it were left out.
    groups: tuple[SeparatedGroup, ...]  # Those that A alone separates, the largest gain first.
    bandwidths: tuple[float, float]  # Of the Gaussian kernels of A and B.


def separated_groups(
    a: Float[np.ndarray, "n d"],
    b: Float[np.ndarray, "n e"],
    *,
    bandwidth: float = 0.5,
    least_share: float = 0.01,
    least_gain: float = 0.2,
    seed: int = 0,
) -> tuple[KernelDifference, KernelDifference]:
    """Return the groups that embedding A separates and B merges or scatters, and those that B separates.

    K_A - K_B and K_B - K_A have one spectrum but for its sign.

    K(x, y) = exp(-|x - y|² / (2 σ²)) of centered rows of unit length, σ being `bandwidth` times the median distance of
    each embedding, so that neither its dimension nor the width of its cone decides. A group of n s rows that B mixes
    with an equally large one has the eigenvalue s. Eigenvalues up to `least_share` are left out. The rows that weigh at
    least half of what a typical row of an eigenvector does are gathered by their direction in its space.

    Args:
        a: One row a picture.
        b: The same pictures by another model.
        bandwidth: In median distances.
        least_share: Of the rows, that a group has at least.
        least_gain: Of a group, which would be one of noise below it.
    """
    a, b = _centered(a), _centered(b)
    chosen = np.random.default_rng(seed).permutation(len(a))[:LANDMARKS]
    widths = [bandwidth * _median_distance(rows[chosen]) for rows in (a, b)]
    of_a, of_b = (_nystroem(rows, chosen, width) for rows, width in zip((a, b), widths, strict=True))
    spectrum, turns = _spectrum(of_a, of_b)
    both = np.concatenate([of_a, of_b], axis=1)

    def side(
        values: np.ndarray, turns: np.ndarray, ours: np.ndarray, other: np.ndarray, of_each: tuple[float, float]
    ) -> KernelDifference:
        top = np.flatnonzero(values > max(least_share, _FLOOR))[::-1][:MOST_EIGENVECTORS]
        parts = _gathered(both @ (turns[:, top] * np.sqrt(values[top])), max(3, round(least_share * len(a))))
        groups = [_described(number, parts, ours, other) for number in range(len(parts))]
        order = sorted(
            (at for at, group in enumerate(groups) if group.gain >= least_gain), key=lambda at: -groups[at].gain
        )
        renamed = {number: index for index, number in enumerate(order)}
        return KernelDifference(values, least_share, tuple(_with_partner(groups[at], renamed) for at in order), of_each)

    back = -spectrum[::-1], turns[:, ::-1]
    return side(spectrum, turns, of_a, of_b, (widths[0], widths[1])), side(*back, of_b, of_a, (widths[1], widths[0]))


def compared_groups(
    a: Float[np.ndarray, "n d"], b: Float[np.ndarray, "n e"], **how: float
) -> tuple[KernelDifference, KernelDifference]:
    """Return the groups that A alone separates, and those that B alone does; arguments are those of `separated_groups`.

    What B merges is one group of B that A has not: it is told once, as the groups of A that are mixed.
    """
    of_a, of_b = separated_groups(a, b, **how)  # type: ignore[arg-type]
    return _without_unions(of_a, of_b, len(a)), _without_unions(of_b, of_a, len(a))


def _without_unions(difference: KernelDifference, other: KernelDifference, n: int) -> KernelDifference:
    """Return the difference without groups of which most rows are of groups that it merges."""
    mixed = np.zeros(n, bool)
    for group in other.groups:
        if group.partner >= 0:
            mixed[group.rows] = True
    numbers = [number for number, group in enumerate(difference.groups) if mixed[group.rows].mean() < _MOSTLY]
    renamed = {number: index for index, number in enumerate(numbers)}
    groups = tuple(_with_partner(difference.groups[number], renamed) for number in numbers)
    return replace(difference, groups=groups)


def _centered(rows: np.ndarray) -> Float[np.ndarray, "n d"]:
    rows = exact(rows).astype(np.float64)
    return normalized(rows - rows.mean(axis=0))


def _median_distance(rows: Float[np.ndarray, "m d"]) -> float:
    squared = np.maximum(2.0 - 2.0 * rows @ rows.T, 0.0)
    return float(np.sqrt(np.median(squared[np.triu_indices(len(rows), 1)]))) if len(rows) > 1 else 1.0


def _gaussian(rows: np.ndarray, others: np.ndarray, width: float) -> Float[np.ndarray, "n m"]:
    return np.exp(-np.maximum(2.0 - 2.0 * rows @ others.T, 0.0) / (2.0 * max(width, 1e-6) ** 2))


def _nystroem(rows: np.ndarray, chosen: Int[np.ndarray, " m"], width: float) -> Float[np.ndarray, "n m"]:
    """Return features whose products approximate the kernel (Williams and Seeger, 2001)."""
    landmarks = rows[chosen]
    values, vectors = np.linalg.eigh(_gaussian(landmarks, landmarks, width))
    good = values > 1e-8 * values.max()
    return _gaussian(rows, landmarks, width) @ (vectors[:, good] / np.sqrt(values[good]))


def _spectrum(
    of_a: Float[np.ndarray, "n p"], of_b: Float[np.ndarray, "n q"]
) -> tuple[Float[np.ndarray, " m"], Float[np.ndarray, "pq m"]]:
    """Return eigenvalues of (Φ_A Φ_Aᵀ - Φ_B Φ_Bᵀ) / n, and what [Φ_A, Φ_B] times it are its unit eigenvectors.

    With X = [Φ_A, Φ_B] = Q R and J = diag(1, -1) it is Q (R J Rᵀ) Qᵀ / n; R and Q come from XᵀX.
    """
    both = np.concatenate([of_a, of_b], axis=1)
    signs = np.concatenate([np.ones(of_a.shape[1]), -np.ones(of_b.shape[1])])
    squares, directions = np.linalg.eigh(both.T @ both)
    good = squares > 1e-10 * squares.max()
    scale, directions = np.sqrt(squares[good]), directions[:, good]
    middle = (scale[:, None] * directions.T * signs) @ (directions * scale) / len(both)
    values, turns = np.linalg.eigh(middle)
    return values, (directions / scale) @ turns


def _gathered(space: Float[np.ndarray, "n k"], least: int) -> list[Int[np.ndarray, " g"]]:
    """Return groups of rows with one direction in the space, the first ones around the densest row."""
    if not space.shape[1]:
        return []
    length = np.linalg.norm(space, axis=1)
    typical = float((length**3).sum() / max((length**2).sum(), 1e-300))
    free = length > _HALF * typical
    direction = space / np.maximum(length, 1e-300)[:, None]
    groups = []
    while free.sum() >= least:
        rows = np.flatnonzero(free)
        some = rows[:: -(-len(rows) // LEADERS)]
        near = direction[some] @ direction[some].T > _NEAR
        leader = direction[some[near.sum(axis=1).argmax()]]
        # Once more around the mean: the first leader lies at an edge of its group as likely as in its middle.
        middle = direction[rows[direction[rows] @ leader > _NEAR]].mean(axis=0)
        members = rows[direction[rows] @ middle > _NEAR * np.linalg.norm(middle)]
        if len(members) < least:
            break
        groups.append(members)
        free[members] = False
    return groups


def _described(number: int, parts: list[np.ndarray], of_a: np.ndarray, of_b: np.ndarray) -> SeparatedGroup:
    """Return the group with its partner: the one to which B's mean kernel exceeds A's most."""
    rows = parts[number]
    mean_a, mean_b = of_a[rows].mean(axis=0), of_b[rows].mean(axis=0)
    means = [(float(mean_a @ of_a[part].mean(axis=0)), float(mean_b @ of_b[part].mean(axis=0))) for part in parts]
    mixed = [-np.inf if other == number else b - a for other, (a, b) in enumerate(means)]
    partner = int(np.argmax(mixed)) if len(parts) > 1 else -1
    # B is said to mix two groups where it relates them more than A does by a part of what holds this one together.
    if partner >= 0 and mixed[partner] > 0.2 * max(means[number]):
        across = means[partner]
    else:
        partner = -1
        others = np.ones(len(of_a), bool)
        others[rows] = False
        across = float(mean_a @ of_a[others].mean(axis=0)), float(mean_b @ of_b[others].mean(axis=0))
    return SeparatedGroup(rows, partner, *means[number], *across)


def _with_partner(group: SeparatedGroup, renamed: dict[int, int]) -> SeparatedGroup:
    return replace(group, partner=renamed.get(group.partner, -1))
