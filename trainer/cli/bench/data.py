"""`trainer bench data`: the loader against decoding each image again, with and without a training step."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict

_WIDTHS = (8, 10, 11, 7, 9, 11, 7)

HELP = "our loader against open_clip's way: pairs a second, alone and in training"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Which data, which model, how long."""
    parser.add_argument(
        "--data", nargs="+", metavar="PATH", default=[], help="folders, tables or tars (default: Scenes)"
    )
    parser.add_argument("--preset", default="clip-scenes", help="model and objective (clip-scenes)")
    parser.add_argument("--batch-size", type=int, default=128)
    parser.add_argument("--workers", type=int, default=2, help="processes that decode for open_clip's way (2)")
    parser.add_argument("--seconds", type=float, default=8.0, help="of each measurement (8)")


def run(args: argparse.Namespace) -> int:
    """Prints a row a data set."""
    from dataclasses import replace

    from trainer import catalog, config
    from trainer.bench.data import measure
    from trainer.proposal import recognise

    rows = []
    if not args.json:
        titles = ("pairs", "loader", "open_clip", "ratio", "train", "open_clip", "wait")
        print(f"{'data':<14}" + "".join(f"{title:>{width}}" for title, width in zip(titles, _WIDTHS, strict=True)))
    for path in args.data or [""]:
        chosen = config.replace(catalog.preset(args.preset), "optimiser.batch_size", str(args.batch_size))
        if path:
            chosen = replace(chosen, data=recognise(path))
        speed = measure(chosen, args.workspace.folder, workers=args.workers, seconds=args.seconds)
        rows.append(asdict(speed) | {"ratio": speed.ratio})
        if not args.json:
            print(
                f"{speed.name:<14}{speed.pairs:>8,}{speed.ours:>8,.0f}/s{speed.theirs:>9,.0f}/s{speed.ratio:>6.1f}x"
                f"{speed.train_ours:>7,.0f}/s{speed.train_theirs:>9,.0f}/s{speed.wait:>7.1%}",
                flush=True,
            )
    if args.json:
        print(json.dumps(rows, indent=2))
    return 0
