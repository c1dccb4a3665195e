"""Simulated experiments: how often the intervals of a budget of seeds hold at every look, and how often they decide.

Two arms share seeds. An effect is the true mean difference in standard deviations of the paired differences (of
collapsing ones: of those that did not collapse). After each seed from the least to the most the interval is looked at.
Coverage is the share of experiments in which none of its intervals excludes the true mean, and therefore that of a
stop at any look; power is the share in which one of them excludes 0 on the right side.
"""

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Final

import numpy as np
from jaxtyping import Float

from trainer.analysis.repeated_intervals import OPEN, critical_t

HELP = "60,000 simulated experiments a cell: coverage and power of the verdict, seeds needed"
ALPHA: Final = 0.05
EFFECTS: Final = (1.0, 2.0, 4.0)
BUDGETS: Final = ((3, 3), (3, 5), (3, 8), (5, 5), (5, 8), (8, 8), (3, OPEN))
LOOKED: Final = 20
"""Seeds of a budget without an end that are simulated."""
AT_ONCE: Final = 20_000

Draw = Callable[[np.random.Generator, int, int], Float[np.ndarray, "experiments seeds"]]


def _collapsing(rng: np.random.Generator, experiments: int, most: int) -> np.ndarray:
    """Every tenth seed of one arm is 10 deviations worse."""
    return rng.normal(size=(experiments, most)) - 10 * (rng.random((experiments, most)) < 0.1) + 1


WORLDS: Final[dict[str, Draw]] = {
    "normal": lambda rng, experiments, most: rng.normal(size=(experiments, most)),
    "t3": lambda rng, experiments, most: rng.standard_t(3, size=(experiments, most)),
    "exponential": lambda rng, experiments, most: rng.exponential(size=(experiments, most)) - 1,
    "collapses": _collapsing,
}
"""Name -> draws of paired differences with mean 0: `normal` is the model of the interval, the others are not."""


@dataclass(frozen=True)
class Outcome:
    """One budget in one world at one effect.

    Attributes:
        most: 0 of a budget without an end, of which `LOOKED` seeds are simulated.
        coverage: Share of experiments whose intervals all hold the true mean.
        power: Share in which one excludes 0 on the right side.
        wrong: Share in which one excludes 0 on the wrong side, or at an effect of 0 on any.
        seeds: Mean number at the first that excludes 0, or the most.
    """

    world: str
    effect: float
    least: int
    most: int
    experiments: int
    coverage: float
    power: float
    wrong: float
    seeds: float


def simulate(world: str, effect: float, least: int, most: int, *, experiments: int, seed: int = 0) -> Outcome:
    """Return what becomes of experiments with this budget."""
    rng, looks = np.random.default_rng(seed), most or LOOKED
    reach = np.array([critical_t(n, ALPHA, least, most) for n in range(1, looks + 1)])
    held = better = worse = seeds = 0.0
    for start in range(0, experiments, AT_ONCE):
        x = WORLDS[world](rng, min(AT_ONCE, experiments - start), looks) + effect
        n = np.arange(1, looks + 1)
        mean = np.cumsum(x, axis=1) / n
        spread = np.sqrt(np.maximum(np.cumsum(x * x, axis=1) - n * mean**2, 0) / np.maximum(n - 1, 1))
        with np.errstate(invalid="ignore"):
            half = np.where(np.isinf(reach), np.inf, reach * spread / np.sqrt(n))
        low, high = mean - half, mean + half
        held += ((low <= effect) & (effect <= high)).all(axis=1).sum()
        decided = (low > 0) | (high < 0)
        first = np.where(decided.any(axis=1), decided.argmax(axis=1), looks - 1)
        rows = np.arange(len(x))
        better += (low[rows, first] > 0).sum()
        worse += (high[rows, first] < 0).sum()
        seeds += (first + 1).sum()
    wrong, right = (better + worse, 0.0) if effect == 0 else (worse, better) if effect > 0 else (better, worse)
    shares = (float(one) / experiments for one in (held, right, wrong, seeds))
    return Outcome(world, effect, least, most, experiments, *shares)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the number of experiments."""
    parser.add_argument("--experiments", type=int, default=60_000, metavar="N", help="of each cell (60,000)")


def run(args: argparse.Namespace) -> int:
    """Print a row for each budget: coverage in every world, then power and seeds at each effect."""
    found = [
        simulate(world, effect, least, most, experiments=args.experiments, seed=place)
        for least, most in BUDGETS
        for place, (world, effect) in enumerate(
            [*((world, 0.0) for world in WORLDS), *(("normal", effect) for effect in EFFECTS)]
        )
    ]
    if args.json:
        json.dump([asdict(one) for one in found], sys.stdout, indent=1)
        return 0
    print("\n".join(table(found)))
    return 0


def table(found: Sequence[Outcome]) -> list[str]:
    """Return the results as Markdown: a row per budget."""
    effects = ", ".join(f"{effect:g}" for effect in EFFECTS)
    lines = [
        f"| seeds | t of each look | {' | '.join(f'{world}: coverage, %' for world in WORLDS)} | power at {effects} "
        "deviations, % | mean seeds |",
        "|---|---|" + "---:|" * len(WORLDS) + "---|---|",
    ]
    for least, most in BUDGETS:
        cells = [one for one in found if (one.least, one.most) == (least, most)]
        words = f"{least}" if least == most else f"{least} to {most}" if most else f"{least} and more ({LOOKED} seen)"
        looks = [f"{critical_t(n, ALPHA, least, most):.2f}" for n in range(least, (most or LOOKED) + 1)]
        shown = " ".join(looks if len(looks) < 8 else [*looks[:6], "…", looks[-1]])
        coverage = " | ".join(f"{100 * one.coverage:.1f}" for one in cells if one.effect == 0)
        power = " ".join(f"{100 * one.power:.0f}" for one in cells if one.effect)
        seeds = " ".join(f"{one.seeds:.1f}" for one in cells if one.effect)
        lines.append(f"| {words} | {shown} | {coverage} | {power} | {seeds} |")
    return lines
