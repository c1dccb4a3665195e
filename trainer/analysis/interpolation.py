"""Which mix of a model and its fine-tuning is the best, by a rule that is stated before anything is measured."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np
from jaxtyping import Bool

from trainer.analysis.significance import paired_shares

RULE: Final = (
    "Of the alphas whose recall at 1 on the reference set is in no direction below that of alpha 0 by a whole 95 % "
    "interval (paired by question), the one with the highest recall at 1 on the own held-out pairs, mean of both "
    "directions; of equal ones the smallest."
)
Answers = Mapping[str, Bool[np.ndarray, " q"]]
"""Direction of retrieval -> whether each distinct question found a right answer first."""


def best_percent(heldout: Mapping[int, Answers], reference: Mapping[int, Answers]) -> int:
    """Return the alpha, in percent, that `RULE` chooses.

    Args:
        heldout: Alpha in percent -> answers on the own held-out pairs; 0 is there.
        reference: The same of the reference set; empty without one, and then every alpha may be chosen.
    """
    allowed = [percent for percent in sorted(heldout) if not forgets(reference, percent)]
    return max(allowed, key=lambda percent: (recall(heldout[percent]), -percent))


def recall(answers: Answers) -> float:
    """Return R@1, mean of both directions."""
    return float(np.mean([np.mean(right) for right in answers.values()]))


def forgets(reference: Mapping[int, Answers], percent: int) -> bool:
    """Return whether R@1 of a direction is below that of alpha 0 by a whole 95 % interval."""
    if percent not in reference or 0 not in reference:
        return False
    first, now = reference[0], reference[percent]
    return any(paired_shares(first[name], now[name]).high < 0 for name in first)
