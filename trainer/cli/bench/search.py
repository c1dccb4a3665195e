"""`trainer bench search`: exact search against the bare product, and two index libraries against exact search."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from pathlib import Path

HELP = "a million vectors: the exact answer against the bare product, usearch and hnswlib against the exact answer"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """How many vectors, how wide, and which libraries."""
    parser.add_argument("--rows", type=int, default=1_000_000, help="vectors to search (1000000)")
    parser.add_argument("--dimension", type=int, default=512)
    parser.add_argument("--questions", type=int, default=100, help="one after the other (100)")
    parser.add_argument(
        "--keep", type=Path, metavar="FOLDER", help="keep the indices there, and use those that are there already"
    )
    parser.add_argument("--libraries", nargs="*", help="usearch, hnswlib (both; none: only the exact answer)")


def run(args: argparse.Namespace) -> int:
    """Prints a row as soon as it is measured."""
    from trainer.bench.search import LIBRARIES, measure
    from trainer.cli.export import tell

    libraries = LIBRARIES if args.libraries is None else tuple(args.libraries)
    results = []
    if not args.json:
        print(
            f"{'way':<13} {'rows':>9} {'median ms':>9} {'p95 ms':>8} {'times bare':>10} {'recall@10':>9} "
            f"{'build s':>8} {'MiB':>6}"
        )
    options = {"dimension": args.dimension, "questions": args.questions, "libraries": libraries}
    options |= {"keep": args.keep, "progress": tell}
    for row in measure(args.rows, **options):
        results.append(asdict(row))
        if not args.json:
            numbers = (
                f"{row.milliseconds:>9.2f} {row.p95_ms:>8.2f} {row.times_bare:>10.3f} {row.recall_at_10:>9.4f} "
                f"{row.build_s:>8.1f} {row.index_mib:>6.0f}"
            )
            print(f"{row.way:<13} {row.rows:>9,} {row.note or numbers}", flush=True)
    if args.json:
        print(json.dumps(results, indent=2))
    return 0
