"""`trainer demo`: trains CLIP, CLOOB, InfoLOOB and half CLOOB on the built-in pairs, and reports on all four."""

from __future__ import annotations

import argparse
import contextlib
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from trainer.analysis.quantities import duration
from trainer.cli.report import write_report
from trainer.errors import UserError
from trainer.untrusted.terminal import say, say_json

if TYPE_CHECKING:
    from trainer import config
    from trainer.store import Workspace

GROUP = "Train"
HELP = "train CLIP, CLOOB, InfoLOOB and half CLOOB on the built-in pairs and compare them, without a window"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the output folder and the training length."""
    parser.add_argument("--out", type=Path, metavar="DIR", help="folder of the report (default: in the workspace)")
    parser.add_argument("--quick", action="store_true", help="smoke test: a few seconds on few pairs")
    parser.add_argument("--seed", type=int, help="seed of weights, order and crops (default: the presets')")
    parser.add_argument("--epochs", type=int, help="epochs (default: the presets')")


def run(args: argparse.Namespace) -> int:
    """Train the presets one after the other, write the report and print the numbers."""
    from trainer.charts.comparison import CHART as COMPARISON
    from trainer.charts.measures.comparison import comparison
    from trainer.charts.panel_tables import as_text
    from trainer.config import presets
    from trainer.render_mpl.files import json_text

    configured = {name: _configured(run, args) for name, run in presets.demo_runs().items()}
    # What the trainings say goes to standard error, so that standard output is the numbers and nothing else.
    with contextlib.redirect_stdout(sys.stderr):
        runs = [_train(args.workspace, name, run) for name, run in configured.items()]
    folder = args.out or args.workspace.folder / "reports" / ("demo-" + "-".join(map(str, runs)))
    say("Drawing the report ...", error=True)
    values = write_report(args.workspace, runs, folder, title="CLIP, CLOOB and InfoLOOB on Scenes")
    if args.json:
        say_json(json_text(values))
    else:
        drawn = COMPARISON.panel(comparison(args.workspace, runs), COMPARISON.settings())
        say(f"{as_text(drawn)}\n\nReport: {values['report']}")
    return 0


def _configured(run: config.Run, args: argparse.Namespace) -> config.Run:
    from trainer import config

    if args.quick:
        run = replace(
            run,
            data=replace(run.data, train_pairs=256, heldout_pairs=64),
            model=replace(
                run.model, image_size=32, image_width=16, text_width=64, text_layers=1, text_heads=4, embed_dim=64
            ),
            optimizer=replace(run.optimizer, batch_size=32, epochs=2, warmup_steps=4),
            watching=replace(run.watching, evaluate_every=8, snapshots=2),
        )
    if args.seed is not None:
        run = config.replace(run, "seed", str(args.seed))
    if args.epochs is not None:
        run = config.replace(run, "optimizer.epochs", str(args.epochs))
    return run


def _train(workspace: Workspace, preset: str, run: config.Run) -> int:
    from trainer.training.fit import fit

    number = workspace.runs.create(run, preset=preset)
    row = workspace.runs.get(number)
    say(f"Training {row.name} ...", flush=True)
    fit(workspace, number)
    row = workspace.runs.get(number)
    if row.status != "finished":
        raise UserError(
            f"{row.name} {row.status} at step {row.step} of {row.total_steps}"
            f"{': ' + row.reason if row.reason else '.'} Continue with: trainer resume {number}"
        )
    say(f"{row.name}: {row.step} steps in {duration(row.duration_s or 0)}", flush=True)
    return number
