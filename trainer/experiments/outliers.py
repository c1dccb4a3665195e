"""Seeds of an experiment that its interval should not be trusted with: outlying ones, and weak ones."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

import numpy as np
from jaxtyping import Float

from trainer.analysis.chance import chance_level
from trainer.metrics import Metric
from trainer.store import Question

FAR: Final = 3.0
"""Robust deviations from the median at which a difference is outlying.

Of normal differences the farthest of 5 is so in 26 of 100 experiments, of 8 in 21: a reason to look."""
_NORMAL: Final = 1.4826
"""Makes the median absolute deviation of normal values their standard deviation."""
FEWEST: Final = 5
"""Values of which a median deviation says something: that of 3 is small where two of them happen to be alike."""
_FEWEST_OF_MEDIAN: Final = 3
"""Values that have a median to be less than half of."""
AT_CHANCE: Final = "may be chance"
DEVIATIONS: Final = 3
"""Standard errors above the chance level within which a share is at chance: several seeds are looked at."""
BELOW_HALF: Final = "below half of the median"


def robust_deviations(values: Float[np.ndarray, " n"], *, resolution: float = 0.0) -> Float[np.ndarray, " n"]:
    """Return how far each value is from the median, in robust standard deviations, with its sign; 0 of fewer than 5.

    Args:
        values: Of the seeds.
        resolution: Smallest step of a value; the deviation counts as this at least.
    """
    x = np.asarray(values, np.float64)
    if len(x) < FEWEST:
        return np.zeros(len(x))
    away = x - np.median(x)
    scale = max(_NORMAL * float(np.median(np.abs(away))), resolution)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(away == 0, 0.0, away / scale)


def outlying(
    arms: tuple[str, str],
    pairs: Mapping[int, tuple[float, float]],
    measure: Metric,
    *,
    resolution: float = 0.0,
) -> Iterator[str]:
    """Yield a sentence for each seed whose difference is outlying, naming the arm that is farther from its own median.

    Args:
        arms: Names of the control and of the arm.
        pairs: Seed -> values of both.
        resolution: As of `robust_deviations`.
    """
    both = np.array(list(pairs.values()), np.float64).reshape(-1, 2)
    far = robust_deviations(both[:, 1] - both[:, 0], resolution=resolution)
    medians = np.median(both, axis=0) if len(both) else np.zeros(2)
    for seed, values, distance in zip(pairs, both, far.tolist(), strict=True):
        if abs(distance) > FAR:
            side = int(np.argmax(np.abs(values - medians)))
            many = f"{abs(distance):.1f}" if math.isfinite(distance) else "more than 100"
            yield (
                f"Seed {seed} is an outlier: {arms[side]} has {measure.text(float(values[side]))}, the median of its "
                f"seeds is {measure.text(float(medians[side]))}; the difference of {arms[1]} and {arms[0]} lies {many} "
                "robust deviations from the others. Check the points: the interval assumes normal differences."
            )


def weak(
    arm: str, seeds: Mapping[int, float], measure: Metric, name: str, question: Question | None
) -> Iterator[tuple[int, str, str]]:
    """Yield each seed that is at chance, or has less than half of its arm's median, what it is and a sentence.

    Neither says that its embeddings have collapsed: a run that has trained too little is weak, too. Of seeds at chance
    `chance_sentence` tells together.

    Args:
        seeds: Seed -> value.
        measure: The outcome; only shares of which more is better can be weak.
        name: Of the outcome, `image_to_text_R@1`.
        question: What the values answer.
    """
    if not measure.percent or measure.better != "up" or not seeds:
        return
    guess = _guessing(name, question)
    median = float(np.median(list(seeds.values())))
    for seed, value in seeds.items():
        if guess is not None and value <= guess:
            yield seed, AT_CHANCE, ""
        elif len(seeds) >= _FEWEST_OF_MEDIAN and value < median / 2:
            low = f"{measure.text(value)}, the median of its seeds is {measure.text(median)}"
            yield seed, BELOW_HALF, f"{arm} seed {seed} is {BELOW_HALF}: {low}"


def chance_sentence(
    values: Mapping[tuple[str, int], float], of: int, measure: Metric, name: str, question: Question
) -> str:
    """Return one sentence about all seeds at chance: the best of them, and what guessing gets.

    Args:
        values: Arm and number of each seed at chance -> value.
        of: Number of all seeds.
        measure, name, question: As of `weak`.
    """
    seeds = f"All {of} seeds" if len(values) == of > 1 else _named(values)
    drawing = question.drawing(name)
    share = math.nan if drawing is None else chance_level(*drawing)
    best = measure.text(max(values.values())) + " or less" * (len(values) > 1)
    return f"{seeds} {AT_CHANCE}: {best}, chance {measure.text(share)}."


def _named(seeds: Iterable[tuple[str, int]]) -> str:
    """Return `CLIP seed 0; CLOOB seeds 1, 2`."""
    by_arm: dict[str, list[int]] = {}
    for arm, seed in seeds:
        by_arm.setdefault(arm, []).append(seed)
    return "; ".join(f"{arm} seed{'s' * (len(each) > 1)} {', '.join(map(str, each))}" for arm, each in by_arm.items())


def _guessing(name: str, question: Question | None) -> float | None:
    """Return the share that guessing reaches with `DEVIATIONS` standard errors; None where it is not known."""
    if question is None or question.is_certain(name) or (drawing := question.drawing(name)) is None:
        return None
    share = chance_level(*drawing)
    return share + DEVIATIONS * math.sqrt(share * (1 - share) / max(question.asked(name), 1))
