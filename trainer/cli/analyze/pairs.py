"""`trainer analyze pairs`: prints each run's numbers of a map's pairs, and the agreement of two runs."""

from __future__ import annotations

import argparse
from typing import Any

from trainer.cli._progress import report
from trainer.cli.analyze import add_arguments_of_runs, print_values
from trainer.cli.export import request_of

HELP = "cosine and rank of the pairs, as the map colors them, and where the first two runs agree"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the runs and their embeddings."""
    add_arguments_of_runs(parser)


def run(args: argparse.Namespace) -> int:
    """Print one column per run."""
    from trainer.charts.map import ranked_pairs

    runs = ranked_pairs(args.workspace, request_of(args), progress=report)
    report(1.0, "")
    print_values(args, [values(seen) for seen in runs])
    return 0


def values(seen: Any) -> dict[str, Any]:
    """Return facts, mean and median cosine, pairs per rank group, and for two runs, pairs per verdict."""
    import numpy as np

    from trainer.analysis.pair_ranks import AGREEMENTS, rank_groups, rank_names
    from trainer.charts.measure import facts_of

    numbers = facts_of(seen)
    cosine, rank = seen.numbers.cosine, seen.numbers.rank
    numbers |= {"n": len(rank), "captions_ranked": seen.numbers.among}
    numbers |= {"mean_cosine": float(np.mean(cosine)), "median_cosine": float(np.median(cosine))}
    counts = np.bincount(rank_groups(rank), minlength=len(rank_names()))
    numbers |= {f"rank_{name}": int(count) for name, count in zip(rank_names(), counts, strict=True)}
    if seen.agreement is not None:
        counts = np.bincount(seen.agreement, minlength=len(AGREEMENTS))
        numbers |= {name.replace(" ", "_"): int(count) for name, count in zip(AGREEMENTS, counts, strict=True)}
    return numbers
