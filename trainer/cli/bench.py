"""`trainer bench gpu`: loss rates, steps next to open_clip's loop, resume, gauges and memory of a device."""

from __future__ import annotations

import argparse
import dataclasses

from trainer.cli.export import report
from trainer.untrusted.terminal import say, say_json

GROUP = "Maintain"
HELP = "measure a GPU: losses, steps next to open_clip's loop, resume, memory; on a CPU in a small form"


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


def run(args: argparse.Namespace) -> int:
    """Measure and print; 1 if a resumed training is another one."""
    from trainer import device
    from trainer.render_mpl.files import json_text
    from trainer.training import gpu_bench

    where = device.choose(args.device)
    size = gpu_bench.chosen_size(where, args.pairs, args.towers, args.batch, args.steps)
    measured = gpu_bench.bench(where, size, report)
    if args.json:
        plain = dataclasses.asdict(measured)
        plain["steps"] = [dataclasses.asdict(step) | {"ratio": step.ratio} for step in measured.steps]
        say_json(json_text(plain, indent=1))
    else:
        say(gpu_bench.as_text(measured))
    return 0 if measured.resume_equal else 1
