"""`trainer bench losses`: memory and time of a loss over the batch size, dense, tiled and open_clip's."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict

HELP = "dense against tiled against open_clip: memory and time over the batch size"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What to measure, and at which sizes."""
    parser.add_argument("--pairs", type=int, nargs="+", default=[1024, 4096, 16384, 32768], help="batch sizes")
    parser.add_argument("--dimension", type=int, default=512)
    parser.add_argument("--objectives", nargs="+", help="clip, open_clip, cloob, dhn_nce, sigmoid (default: all)")


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
