"""Simulated experiments: how often seeds added until decided end in a false verdict, and how often in any.

Two arms share seeds. An effect is the true mean difference in standard deviations of the paired differences, and the
margin of equality is given in the same unit. After each seed the confidence sequence is looked at, and the experiment
stops at its first decision. False: the arm is called better (worse) and is not, or equal and the effect is the margin
or more.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Final

import numpy as np
from jaxtyping import Float

from trainer.analysis.anytime_valid import confidence_sequence

HELP = "10,000 simulated experiments: false verdicts, power, seeds needed"
ALPHA: Final = 0.05
EFFECTS: Final = (0.0, 0.5, 1.0, 2.0, 3.0, 5.0)
MOST: Final = (3, 5, 10, 20)
QUESTIONS: Final = 1_024
"""Samples of the split in the worlds that count right answers."""

Draw = Callable[[np.random.Generator, int, int], Float[np.ndarray, "experiments seeds"]]


@dataclass(frozen=True)
class Outcome:
    """One world, effect and budget.

    Attributes:
        false: Share of experiments that ended in a false verdict.
        better, worse, equal, undecided: Shares of the verdicts.
        seeds: Median seeds of those that were decided; NaN if none was.
    """

    world: str
    effect: float
    margin: float
    most: int
    experiments: int
    false: float
    better: float
    worse: float
    equal: float
    undecided: float
    seeds: float


def _normal(rng: np.random.Generator, experiments: int, most: int) -> np.ndarray:
    return rng.normal(size=(experiments, most))


def _heavy(rng: np.random.Generator, experiments: int, most: int) -> np.ndarray:
    return rng.standard_t(3, size=(experiments, most)) / np.sqrt(3)


def _counted(rng: np.random.Generator, experiments: int, most: int) -> np.ndarray:
    """Difference of two shares of right answers; seeds vary in logits, and both arms share part of that."""
    shared = rng.normal(0, 0.2, (experiments, most))
    rates = [1 / (1 + np.exp(-(shared + rng.normal(0, 0.1, shared.shape)))) for _ in range(2)]
    counts = [rng.binomial(QUESTIONS, rate) / QUESTIONS for rate in rates]
    return (counts[1] - counts[0]) / 0.0415


def _collapsing(rng: np.random.Generator, experiments: int, most: int) -> np.ndarray:
    """A seed of three collapses, in each arm by itself."""
    values = [
        rng.normal(0, 0.1, (experiments, most)) - 1.5 * (rng.random((experiments, most)) < 1 / 3) for _ in range(2)
    ]
    return (values[1] - values[0]) / np.sqrt(2 * (0.1**2 + 1.5**2 * 2 / 9))


def _skewed(rng: np.random.Generator, experiments: int, most: int) -> np.ndarray:
    return rng.exponential(size=(experiments, most)) - 1


WORLDS: Final[dict[str, Draw]] = {
    "normal": _normal,
    "heavy": _heavy,
    "counted": _counted,
    "collapsing": _collapsing,
    "skewed": _skewed,
}
"""Name -> draws of paired differences with mean 0 and deviation 1.

`normal` is the model of the test. The others are not: t with 3 degrees of freedom, shares of 1,024 right answers,
arms in which one seed of three collapses, and exponential differences.
"""
SYMMETRIC: Final = ("normal", "heavy", "counted", "collapsing")
"""Those whose differences are symmetric at an effect of 0, as they are wherever two arms behave alike.

Of `skewed` ones, which need arms that differ in shape and not in mean, more verdicts are false than alpha."""


def simulate(world: str, effect: float, *, experiments: int, most: int, margin: float, seed: int = 0) -> Outcome:
    """Return what becomes of experiments that stop at their first decision or after `most` seeds."""
    differences = WORLDS[world](np.random.default_rng(seed), experiments, most) + effect
    low, high = confidence_sequence(differences, ALPHA)
    better, worse = low > 0, high < 0
    equal = ~better & ~worse & (low > -margin) & (high < margin)
    decided = better | worse | equal
    ends = np.where(decided.any(axis=1), decided.argmax(axis=1), most - 1)
    rows = np.arange(experiments)
    better, worse, equal = better[rows, ends], worse[rows, ends], equal[rows, ends]
    false = (better & (effect <= 0)) | (worse & (effect >= 0)) | (equal & (abs(effect) >= margin))
    came = better | worse | equal
    shares = (float(one.mean()) for one in (false, better, worse, equal, ~came))
    seeds = float(np.median(ends[came] + 1)) if came.any() else float("nan")
    return Outcome(world, effect, margin, most, experiments, *shares, seeds)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the number of experiments and the margin."""
    parser.add_argument("--experiments", type=int, default=10_000, metavar="N", help="of each line (10,000)")
    parser.add_argument("--margin", type=float, default=1.0, help="of equality, in standard deviations (1)")


def run(args: argparse.Namespace) -> int:
    """Print one table of false verdicts per world, and one of power."""
    found = [
        simulate(world, effect, experiments=args.experiments, most=most, margin=args.margin, seed=place)
        for place, world in enumerate(WORLDS)
        for effect in EFFECTS
        for most in MOST
    ]
    if args.json:
        json.dump([asdict(one) for one in found], sys.stdout, indent=1)
        return 0
    print("\n".join(table(found)))
    return 0


def table(found: Sequence[Outcome]) -> list[str]:
    """Return the results as Markdown: a row per world and effect, a column per budget."""
    lines = [
        "| differences | effect | " + " | ".join(f"at most {most} seeds" for most in MOST) + " |",
        "|---|---:|" + "---|" * len(MOST),
    ]
    for world in WORLDS:
        for effect in EFFECTS:
            row = [one for one in found if (one.world, one.effect) == (world, effect)]
            lines.append(f"| {world} | {effect:g} | " + " | ".join(map(_cell, row)) + " |")
    return lines


def _cell(one: Outcome) -> str:
    seeds = "" if np.isnan(one.seeds) else f", {one.seeds:g} seeds"
    right = one.equal if one.effect < one.margin and one.effect == 0 else one.better
    word = "equal" if one.effect == 0 else "better"
    return f"{100 * right:.1f} {word}{seeds}; false {100 * one.false:.2f}"
