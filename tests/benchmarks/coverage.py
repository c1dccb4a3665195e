"""Coverage of the confidence intervals shown, on samples with a known true value."""

import argparse
import json
import math
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Final

import numpy as np

from trainer.analysis import separation as counting
from trainer.analysis.calibration import error_range
from trainer.analysis.intervals import wilson
from trainer.analysis.shuffled import shuffled_level
from trainer.analysis.significance import Paired, paired_bootstrap, paired_shares
from trainer.analysis.similarity import hardest_texts, matched_cosines
from trainer.analysis.units import bootstrap_groups

SIZES: Final = (50, 200, 1000)
APART: Final = 1.5
"""Standard deviations between matched and unmatched cosines."""
OTHERS: Final = 10
"""Unmatched cosines of each image; the half of an image's deviation is common to all of its cosines."""
CEILINGS: Final = ((30, 0.97, 0.99), (50, 0.90, 0.93), (200, 0.60, 0.70), (1000, 0.97, 0.99))
"""Images, and the share that each of two models has right."""
GAPS: Final = (0.0, 0.05, 0.15)
"""By how much confidences are too large: the true calibration error."""


@dataclass(frozen=True)
class Coverage:
    """One interval in one setting.

    Attributes:
        number: What the interval is of, and how it is made.
        case: The truth.
        n: Images of a sample.
        samples: How many were drawn.
        held: Share of them whose interval holds the truth; .95 is promised.
    """

    number: str
    case: str
    n: int
    samples: int
    held: float


@dataclass(frozen=True)
class Level:
    """The measures of `n` unrelated pairs against their 10 most similar unmatched ones."""

    n: int
    auc: float
    d_prime: float
    overlap: float
    ks: float


def measure(samples: int, seed: int = 0) -> Iterator[Coverage]:
    """Yield each setting as soon as it is measured."""
    for n in SIZES:
        yield from _separations(n, samples, np.random.default_rng(seed))
    for n, *shares in CEILINGS:
        for name, way in (("Newcombe", paired_shares), ("resampled", paired_bootstrap)):
            yield _paired(n, (shares[0], shares[1]), f"difference, {name}", way, samples, np.random.default_rng(seed))
    for n in SIZES:
        for gap in GAPS:
            yield _calibration(n, gap, samples, np.random.default_rng(seed))
    for n in SIZES:
        rng = np.random.default_rng(seed)
        held = [_inside(0.9, wilson(rng.binomial(n, 0.9) / n, n)) for _ in range(samples)]
        yield Coverage("share (Wilson)", "share .9", n, samples, float(np.mean(held)))


def levels(seed: int = 0) -> Iterator[Level]:
    """Yield the level of shuffled pairs of independent images and texts in 32 dimensions."""
    for n in (100, 500, 1000):
        rows = np.random.default_rng(seed).standard_normal((2, n, 32))
        image, text = rows / np.linalg.norm(rows, axis=2, keepdims=True)

        def shuffled(order: np.ndarray, image: np.ndarray = image, text: np.ndarray = text) -> tuple:
            return matched_cosines(image, text[order]), hardest_texts(image, text[order]).cosines

        yield Level(n, **shuffled_level(n, shuffled, seed=seed))


def _separations(n: int, samples: int, rng: np.random.Generator) -> Iterator[Coverage]:
    group_of, held = bootstrap_groups(n), dict.fromkeys(counting.SURE, 0)
    truth = {"auc": 0.5 * (1 + math.erf(APART / 2)), "d_prime": APART}
    for seed in range(samples):
        own = rng.standard_normal((n, 1)) * math.sqrt(0.5)
        cosines = own + rng.standard_normal((n, OTHERS + 1)) * math.sqrt(0.5)
        matched, unmatched = cosines[:, 0] + APART, cosines[:, 1:]
        bins = counting.spanning(matched, unmatched)
        first, second = (counting.fine_counts(part, group_of, bins) for part in (matched, unmatched))
        found = counting.intervals(first, second, bins, draws=200, seed=seed)
        for name in held:
            held[name] += _inside(truth[name], found[name])
    for name, number in held.items():
        words = {"auc": "AUC", "d_prime": "d'"}[name]
        yield Coverage(f"{words} (grouped bootstrap)", f"{words} {truth[name]:.3f}", n, samples, number / samples)


def _paired(
    n: int,
    shares: tuple[float, float],
    number: str,
    way: Callable[..., Paired],
    samples: int,
    rng: np.random.Generator,
) -> Coverage:
    held = 0
    for _ in range(samples):
        luck, other = rng.random(n), rng.random(n)
        # Half of the images are as hard for one model as for the other.
        found = way(luck < shares[0], np.where(rng.random(n) < 0.5, luck, other) < shares[1])
        held += _inside(shares[1] - shares[0], (found.low, found.high))
    return Coverage(number, f"{shares[0]:.2f} against {shares[1]:.2f}", n, samples, held / samples)


def _calibration(n: int, gap: float, samples: int, rng: np.random.Generator) -> Coverage:
    held = 0
    for seed in range(samples):
        confidence = rng.choice(np.array([0.45, 0.55, 0.65, 0.75, 0.85, 0.95]), n)
        found = error_range(confidence, rng.random(n) < confidence - gap, draws=200, seed=seed)
        held += _inside(gap, (found.low, found.high))
    return Coverage("calibration error", f"error {gap:.2f}", n, samples, held / samples)


def _inside(truth: float, ends: tuple[float, float]) -> bool:
    return ends[0] - 1e-12 <= truth <= ends[1] + 1e-12


HELP = "samples of a known truth: how often each 95 %% interval holds it, and what shuffled pairs show"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the number of samples per setting."""
    parser.add_argument("--samples", type=int, default=400, help="of each setting (400)")


def run(args: argparse.Namespace) -> int:
    """Print the tables of the page of intervals, each row as soon as it is measured."""
    results: dict[str, list[dict[str, object]]] = {"coverage": [], "shuffled": []}
    if not args.json:
        print("| interval of 95 % | truth | n | samples | holds it (%) |\n|---|---|---:|---:|---:|")
    for row in measure(args.samples):
        results["coverage"].append(asdict(row))
        if not args.json:
            print(f"| {row.number} | {row.case} | {row.n:,} | {row.samples:,} | {100 * row.held:.1f} |", flush=True)
    if not args.json:
        print("\n| shuffled pairs, n | AUC | d' | overlap | KS |\n|---:|---:|---:|---:|---:|")
    for level in levels():
        results["shuffled"].append(asdict(level))
        if not args.json:
            print(f"| {level.n:,} | {level.auc:.3f} | {level.d_prime:.2f} | {level.overlap:.3f} | {level.ks:.3f} |")
    if args.json:
        print(json.dumps(results, indent=2))
    return 0
