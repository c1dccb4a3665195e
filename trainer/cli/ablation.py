"""`trainer ablation`: an experiment of InfoNCE, InfoNCE + Hopfield, InfoLOOB and CLOOB with equal settings."""

from __future__ import annotations

import argparse

GROUP = "Train"
HELP = "train the four-way ablation as an experiment: InfoNCE, InfoNCE + Hopfield, InfoLOOB, CLOOB"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that the four arms share."""
    parser.add_argument(
        "--preset", default="clip-scenes", metavar="NAME", help="preset of everything but the objective (clip-scenes)"
    )
    parser.add_argument(
        "--set", action="append", default=[], metavar="FIELD=VALUE", help="e.g. data.cooccurrence=0.8; repeatable"
    )
    parser.add_argument("--seeds", type=int, default=1, metavar="N", help="runs of each objective (1)")
    parser.add_argument("--queue", action="store_true", help="return immediately; the queue trains")


def run(args: argparse.Namespace) -> int:
    """Make the experiment, train it, and print the verdict."""
    from trainer.cli.experiment import train
    from trainer.config import presets
    from trainer.experiments.experiment import ablation, changed
    from trainer.scheduling import experiments

    template = changed(presets.preset(args.preset), args.set)
    taken = [row.name for row in args.workspace.experiments.all()]
    args.what = (made := ablation(template, taken, seeds=args.seeds)).name
    return train(args, experiments.begin(args.workspace, made))
