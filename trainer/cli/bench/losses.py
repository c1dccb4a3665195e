"""`trainer bench losses`: memory and time of a loss over the batch size, dense, tiled and open_clip's."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict

HELP = "dense against tiled against open_clip: memory and time over the batch size"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What to measure, where, and at which sizes."""
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu", help="cuda: bfloat16 inputs (default: cpu)")
    parser.add_argument("--pairs", type=int, nargs="+", help="batch sizes (default: 1k to 32k, on a GPU 64k and 256k)")
    parser.add_argument("--dimension", type=int, help="of the embeddings (default: 512, on a GPU 1024)")
    parser.add_argument("--objectives", nargs="+", help="clip, open_clip, cloob, dhn_nce, sigmoid (default: all)")


def run(args: argparse.Namespace) -> int:
    """Prints a row as soon as it is measured."""
    from trainer.bench.losses import DIMENSIONS, OBJECTIVES, ON_GPU, SIZES, measure

    results = []
    if not args.json:
        print(f"{'objective':<10} {'form':<6} {'pairs':>7} {'seconds':>9} {'peak MiB':>9}  share of matrix rate")
    sizes, dimension = args.pairs or SIZES[args.device], args.dimension or DIMENSIONS[args.device]
    chosen = args.objectives or (ON_GPU if args.device == "cuda" else OBJECTIVES)
    for row in measure(sizes, dimension=dimension, objectives=chosen, device=args.device):
        results.append(asdict(row))
        if not args.json:
            measured = row.note or f"{row.seconds:9.3f} {row.peak_mib:9.0f}"
            share = "" if row.share is None else f"  {row.share:.0%}"
            print(f"{row.objective:<10} {row.form:<6} {row.pairs:>7} {measured}{share}", flush=True)
    if args.json:
        print(json.dumps(results, indent=2))
    return 0
