"""`trainer ablation`: trains InfoNCE, InfoNCE + Hopfield, InfoLOOB and CLOOB with equal settings, one by one."""

from __future__ import annotations

import argparse
import contextlib
import sys

from trainer.errors import UserError

GROUP = "Train"
HELP = "train the four-way ablation: InfoNCE, InfoNCE + Hopfield, InfoLOOB, CLOOB"


class AblationError(UserError):
    """A run of the ablation did not finish; the message says why."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that the four runs share."""
    parser.add_argument(
        "--preset", default="clip-scenes", metavar="NAME", help="preset of everything but the objective (clip-scenes)"
    )
    parser.add_argument(
        "--set", action="append", default=[], metavar="FIELD=VALUE", help="e.g. data.cooccurrence=0.8; repeatable"
    )
    parser.add_argument("--queue", action="store_true", help="add them to the queue and return immediately")


def run(args: argparse.Namespace) -> int:
    """Train the four runs and print the accuracy of linear probes on each."""
    from trainer import catalog, config
    from trainer.config.ablation import PRESET, four_way
    from trainer.render_mpl.files import json_text

    template = catalog.preset(args.preset)
    for change in args.set:
        field, equals, value = change.partition("=")
        if not equals:
            raise config.ConfigError(f"--set {change}: write FIELD=VALUE, e.g. data.cooccurrence=0.8.")
        template = config.replace(template, field.strip(), value.strip())
    status = "queued" if args.queue else "starting"
    runs = []
    for each in four_way(template):
        number = args.workspace.runs.create(each, preset=PRESET, status=status)
        runs.append(number)
        if not args.queue:
            # What the training says goes to standard error, so that standard output is the numbers and nothing else.
            with contextlib.redirect_stdout(sys.stderr):
                _train(args, number)
    rows = [args.workspace.runs.get(number) for number in runs]
    if args.queue:
        answer = {"runs": runs, "names": [row.name for row in rows]}
        print(json_text(answer) if args.json else "Queued: " + ", ".join(row.name for row in rows))
        return 0
    from trainer.charts.attribute_probes import CHART
    from trainer.charts.probed_runs import ProbeSettings
    from trainer.charts.spec import Request, targets_of
    from trainer.cli.export import tell

    settings = ProbeSettings(ablation=False)
    found = CHART.numbers(CHART.result(args.workspace, Request(targets_of(runs)), settings, tell), settings)
    if args.json:
        print(json_text({"runs": runs, "columns": found}))
        return 0
    for column in found:
        values = (f"{k} {v:.1f}" if isinstance(v, float) else f"{k} {v}" for k, v in list(column.items())[2:])
        print(f"{column['table']} · {column['column']}: {', '.join(values)}")
    print(f"\nFigure: trainer export attribute-probes --runs {' '.join(map(str, runs))} --out ablation.pdf")
    return 0


def _train(args: argparse.Namespace, number: int) -> None:
    from trainer.training.fit import fit

    print(f"Training {args.workspace.runs.get(number).name} ...", flush=True)
    fit(args.workspace, number)
    row = args.workspace.runs.get(number)
    if row.status != "finished":
        raise AblationError(
            f"{row.name} {row.status} at step {row.step} of {row.total_steps}"
            f"{': ' + row.reason if row.reason else '.'} Continue with: trainer resume {number}"
        )
