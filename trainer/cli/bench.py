"""`trainer bench gpu`: what a card does with losses and steps, next to what was predicted of it."""

from __future__ import annotations

import argparse
import dataclasses
from pathlib import Path

from trainer.cli._progress import report
from trainer.untrusted.terminal import say, say_json

GROUP = "Maintain"
HELP = "measure a graphics card in 8 minutes: losses, waits and memory as predicted, steps, resume; one JSON document"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what is measured, and how much of it."""
    parser.add_argument("what", choices=("gpu",), help="what to measure")
    parser.add_argument("--device", default="auto", choices=("auto", "cuda", "mps", "cpu"), help="where (auto)")
    parser.add_argument("--pairs", type=int, nargs="+", default=[], metavar="N", help="batch sizes of the losses")
    parser.add_argument(
        "--towers", nargs="+", default=[], metavar="NAME", help="of the steps: tiny, or names of open_clip, e.g. RN50"
    )
    parser.add_argument("--batch", type=int, default=0, metavar="N", help="pairs of a step")
    parser.add_argument("--steps", type=int, default=0, metavar="N", help="steps of each")
    parser.add_argument("--minutes", type=float, default=8.0, metavar="M", help="at most; what is left out is told (8)")
    parser.add_argument("--out", type=Path, metavar="FILE", help="write the JSON document here too")


def run(args: argparse.Namespace) -> int:
    """Measure, write and print; 1 if a resumed training is another one.

    Raises:
        UserError: There is no card, and no other device was named.
    """
    import torch

    from trainer.errors import UserError
    from trainer.render_mpl.files import json_text
    from trainer.store.files import write_text
    from trainer.training import torch_alone

    absent = torch_alone.fill_in()
    from trainer import device
    from trainer.training import gpu_bench

    if args.device == "auto" and not torch.cuda.is_available():
        raise UserError(
            f"There is no graphics card that torch {torch.__version__} can use, so nothing can be measured. Start this "
            "on a computer with one; --device cpu runs everything in a small form, which says nothing about a card."
        )
    where = device.choose(args.device)
    size = gpu_bench.chosen_size(where, args.pairs, args.towers, args.batch, args.steps)
    measured = gpu_bench.bench(where, size, report, minutes=args.minutes, absent=absent)
    plain = dataclasses.asdict(measured)
    plain["steps"] = [dataclasses.asdict(step) | {"ratio": step.ratio} for step in measured.steps]
    document = json_text(plain, indent=1)
    if args.out:
        write_text(args.out.absolute(), document + "\n")
    say_json(document) if args.json else say(gpu_bench.as_text(measured))
    return 1 if measured.resume_equal is False else 0
