"""`trainer bench`: the measurements that the READMEs quote."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict

GROUP = "Maintain"
HELP = "measure losses side by side: memory and time over the batch size"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What to measure, and at which sizes."""
    subjects = parser.add_subparsers(dest="subject", required=True, metavar="SUBJECT")
    losses = subjects.add_parser("losses", help="dense against tiled against open_clip")
    losses.add_argument("--pairs", type=int, nargs="+", default=[1024, 4096, 16384, 32768], help="batch sizes")
    losses.add_argument("--dimension", type=int, default=512)
    losses.add_argument("--objectives", nargs="+", help="clip, open_clip, cloob, dhn_nce, sigmoid (default: all)")
    losses.add_argument("--json", action="store_true", help="print the result as JSON")


def run(args: argparse.Namespace) -> int:
    """Prints a row as soon as it is measured."""
    from trainer.bench.losses import OBJECTIVES, measure

    results = []
    if not args.json:
        print(f"{'objective':<10} {'form':<6} {'pairs':>7} {'seconds':>9} {'peak MiB':>9}")
    for row in measure(args.pairs, dimension=args.dimension, objectives=tuple(args.objectives or OBJECTIVES)):
        results.append(asdict(row))
        if not args.json:
            measured = row.note or f"{row.seconds:9.3f} {row.peak_mib:9.0f}"
            print(f"{row.objective:<10} {row.form:<6} {row.pairs:>7} {measured}", flush=True)
    if args.json:
        print(json.dumps(results, indent=2))
    return 0
