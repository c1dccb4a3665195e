"""`trainer bench coverage`: how often the intervals that are shown hold the true value."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict

HELP = "samples of a known truth: how often each 95 %% interval holds it, and what shuffled pairs show"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """How many samples of each setting."""
    parser.add_argument("--samples", type=int, default=400, help="of each setting (400)")


def run(args: argparse.Namespace) -> int:
    """Prints the tables of trainer/README.md, a row as soon as it is measured."""
    from trainer.bench.coverage import levels, measure

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
