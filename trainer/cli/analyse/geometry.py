"""`trainer analyse geometry`: where embeddings lie."""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from trainer.charts import SAME
from trainer.cli.analyse import add_arguments_of_runs, print_values
from trainer.cli.export import View, step_of_b, view_of

if TYPE_CHECKING:
    from trainer.store import Workspace

HELP = "where embeddings lie: gap, alignment, uniformity, spread, Ajne's statistic"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The runs, and which of their embeddings."""
    add_arguments_of_runs(parser)


def run(args: argparse.Namespace) -> int:
    """Prints one column a run."""
    print_values(args, values(args.workspace, args.runs, view=view_of(args), **step_of_b(args)))
    return 0


def values(
    workspace: Workspace, runs: Sequence[int | str], *, view: View, step_b: int | None = SAME
) -> list[dict[str, Any]]:
    """Facts and geometry of each run; measures of one modality are named after it."""
    from trainer.charts.geometry import geometry

    measured = geometry(workspace, runs, step=view.step, dataset=view.dataset, split=view.split, step_b=step_b)
    return [_flat(dataclasses.asdict(run)) for run in measured]


def _flat(values: dict[str, Any]) -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in values.items():
        flat |= {f"{name}_image": value[0], f"{name}_text": value[1]} if isinstance(value, tuple) else {name: value}
    return flat
