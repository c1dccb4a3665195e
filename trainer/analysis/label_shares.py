"""Shares of labels: as a text, and stratified ones for learning from few labeled images."""

from __future__ import annotations

import numpy as np
from jaxtyping import Int


def percent(share: float) -> str:
    """Format a share of a softmax or sigmoid in percent; it is never 0 or 1, whatever a float rounds it to."""
    if share < 0.0005:
        return "< 0.1 %"
    if share >= 0.9995:
        return "> 99.9 %"
    return f"{100 * share:.1f} %"


def labels_of_share(
    targets: Int[np.ndarray, " n"], share: float, *, total: int | None = None
) -> Int[np.ndarray, " c"] | None:
    """Return the number of labels per class (0 to the largest) for a share, at least 1 for each that occurs.

    Args:
        targets: Classes of the labeled rows that are there.
        share: In (0, 1].
        total: Rows of the split that these were drawn from, all of them if None: the share is one of the whole.

    Returns:
        Counts; None where the rows that are there are fewer than the share asks for.
    """
    counts = np.bincount(targets)
    grown = (total or len(targets)) / max(len(targets), 1)
    numbers = np.where(counts > 0, np.maximum(1, np.round(share * grown * counts)), 0).astype(np.int64)
    # Rounding may ask for one row more of a class than a share of 1 has; a real lack is larger than that.
    return None if (numbers > counts + 1).any() else np.minimum(numbers, counts)


def stratified(targets: Int[np.ndarray, " n"], counts: Int[np.ndarray, " c"], *, seed: int) -> Int[np.ndarray, " k"]:
    """Draw `counts[c]` rows of each class c with the seed; ascending."""
    rng = np.random.default_rng(seed)
    drawn = [rng.permutation(np.flatnonzero(targets == value))[:count] for value, count in enumerate(counts.tolist())]
    return np.sort(np.concatenate(drawn)) if drawn else np.zeros(0, np.int64)
