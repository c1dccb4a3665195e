"""`trainer generative`: a PixelCNN and a diffusion model of a run's pictures next to its contrastive tower."""

from __future__ import annotations

import argparse
import dataclasses

from trainer.cli._progress import report
from trainer.cli.export import add_step_argument
from trainer.untrusted.terminal import say, say_json

GROUP = "Look"
HELP = "train PixelCNNs and a diffusion model on a run's pictures, on the CPU: bits per dimension, probes, Bayes' rule"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the runs and how much is trained and measured."""
    parser.add_argument("runs", nargs="+", metavar="RUN", help="runs of the same data: numbers, names or folders")
    parser.add_argument("--updates", type=int, default=2_000, metavar="N", help="of each generative model (2,000)")
    parser.add_argument("--batch", type=int, default=32, metavar="N", help="pictures of an update (32)")
    parser.add_argument("--size", type=int, default=32, metavar="PIXELS", help="side of their pictures (32)")
    parser.add_argument(
        "--width", type=int, default=16, metavar="N", help="channels of the diffusion model (16); PixelCNN to match"
    )
    parser.add_argument("--draws", type=int, default=32, metavar="N", help="noise levels of the bound, a picture (32)")
    parser.add_argument("--most", type=int, default=256, metavar="N", help="held-out pictures for bits (256)")
    parser.add_argument("--split", default="", metavar="NAME", help="held-out split (the first)")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of weights, batches and noise (0)")
    parser.add_argument("--samples", type=int, default=2, metavar="N", help="pictures drawn given each class (2)")
    add_step_argument(parser, "checkpoints")


def run(args: argparse.Namespace) -> int:
    """Train, measure and print."""
    from trainer.charts.spec import targets_of
    from trainer.evaluation import generative
    from trainer.inference.model_cache import ModelCache
    from trainer.render_mpl.files import json_text
    from trainer.store.generative_results import write_comparison

    names = {field.name for field in dataclasses.fields(generative.GenerativeRequest)}
    request = generative.GenerativeRequest(**{k: v for k, v in vars(args).items() if k in names})
    targets = [(target.run, target.step) for target in targets_of(args.runs, args.step)]
    comparison = generative.compare_generative(ModelCache(args.workspace), targets, request, report)
    if not args.workspace.look_only:
        write_comparison(args.workspace.runs.get(targets[0][0]).folder, comparison)
    table = dataclasses.replace(comparison, by_class=None)
    say_json(json_text(dataclasses.asdict(table), indent=1)) if args.json else say(generative.as_text(table))
    return 0
