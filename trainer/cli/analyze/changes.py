"""`trainer analyze changes`: what changed between two runs, or two steps of one, in numbers."""

from __future__ import annotations

import argparse
from typing import Any

HELP = "what changed between two runs or two steps of one: medians, agreements, mispairs"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """One run or two, their steps, the data."""
    from trainer.cli.export.changes import add_pair_arguments

    parser.add_argument("runs", nargs="+", metavar="RUN", help="numbers, names or folders; A first")
    add_pair_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Prints a number a line, or with `--json` one object."""
    from trainer.cli.analyze import table
    from trainer.cli.export.changes import collect, options_of
    from trainer.render_mpl.files import json_text

    found = values(*collect(args.workspace, args.runs, **options_of(args)))
    print(json_text({"analysis": args.kind, "changes": found}) if args.json else table([found]))
    return 0


def values(chart: Any, found: Any) -> dict[str, Any]:
    """Facts, then of every measure its mean and median over the pairs, then how many are mispairs."""
    import numpy as np

    facts: dict[str, Any] = {}
    for letter, one in (("a", chart.a), ("b", chart.b)):
        facts |= {f"run_{letter}": one.run, f"name_{letter}": one.name, f"step_{letter}": one.step}
    facts |= {"dataset": chart.a.dataset, "split": chart.a.split, "n": chart.n, "pairs": chart.pairs}
    facts |= {"k": chart.k, "modality": chart.modality, "verdict_by": chart.verdict_by, "sampled": chart.sampled}
    for key, numbers in chart.values.items():
        known = numbers[np.isfinite(numbers)]
        nan = float("nan")
        facts[f"{key}_mean"] = float(known.mean()) if len(known) else nan
        facts[f"{key}_median"] = float(np.median(known)) if len(known) else nan
    if found is not None:
        facts |= {"bad_in_both": len(found.both), "bad_only_in_a": len(found.only_a)}
        facts |= {"bad_only_in_b": len(found.only_b), "bad_in_both_by_chance": found.expected}
    return facts
