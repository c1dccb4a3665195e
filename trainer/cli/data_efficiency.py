"""`trainer data-efficiency`: an experiment over shares of the training pairs, and its figure."""

from __future__ import annotations

import argparse
from typing import Final

from trainer.cli.export import add_out_argument

GROUP = "Train"
HELP = "train on shares of the training pairs as an experiment: how few suffice?"
PRESETS: Final = ("clip-scenes", "cloob-scenes")
SHARES: Final = (0.125, 0.25, 0.5, 1.0)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add presets, shares and seeds."""
    parser.description = (
        "Every preset is trained on shares of its training pairs over seeds; held-out pairs stay the same. A smaller "
        "share is part of a larger one and is passed over more often, so that all arms take as many updates."
    )
    parser.add_argument(
        "--preset", action="append", default=[], metavar="NAME",
        help=f"repeatable; the first is the control (default: {' and '.join(PRESETS)})",
    )  # fmt: skip
    parser.add_argument(
        "--set", action="append", default=[], metavar="FIELD=VALUE", help="in all arms, e.g. data.path=DIR; repeatable"
    )
    parser.add_argument(
        "--shares", type=float, nargs="+", default=list(SHARES), metavar="S",
        help=f"of the training pairs, 0 to 1 (default: {' '.join(f'{share:g}' for share in SHARES)})",
    )  # fmt: skip
    parser.add_argument("--seeds", type=int, default=3, metavar="N", help="runs of each arm (3)")
    parser.add_argument(
        "--equal", choices=("updates", "epochs"), default="updates", help="what all arms have equal (updates)"
    )
    parser.add_argument("--queue", action="store_true", help="return immediately; the queue trains")
    add_out_argument(parser, "figure or page to write")


def run(args: argparse.Namespace) -> int:
    """Make the experiment, train it, and print the outcome by share."""
    from trainer.cli.experiment import SUFFIXES, train
    from trainer.config import presets
    from trainer.experiments.experiment import changed, data_efficiency
    from trainer.render_mpl.files import check_suffixes
    from trainer.scheduling import experiments

    check_suffixes(args.out, SUFFIXES)
    names = dict.fromkeys(args.preset or PRESETS)
    runs = [changed(presets.preset(name), args.set) for name in names]
    taken = [row.name for row in args.workspace.experiments.all()]
    made = data_efficiency(runs, args.shares, taken, seeds=args.seeds, updates=args.equal == "updates")
    args.what = made.name
    return train(args, experiments.begin(args.workspace, made))
