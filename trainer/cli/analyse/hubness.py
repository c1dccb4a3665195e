"""`trainer analyse hubness`: how unevenly images are found, and recall before and after CSLS."""

from __future__ import annotations

import argparse
from typing import Any

from trainer.cli.analyse import add_arguments_of_runs, print_values
from trainer.cli.export import tell, view_of

HELP = "how unevenly images are found by the texts, and recall before and after CSLS"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The runs, which of their embeddings, and how many hits."""
    add_arguments_of_runs(parser)
    parser.add_argument("--k", type=int, default=10, help="hits of each text (10)")


def run(args: argparse.Namespace) -> int:
    """Prints one column a run."""
    from trainer.charts.hubness import hubness
    from trainer.charts.snapshots import sides

    view = vars(view_of(args))
    shown = sides(args.runs, args.step, args.step_b)
    charts = [hubness(args.workspace, ref, **view | {"step": at}, k=args.k, progress=tell) for ref, at in shown]
    tell(1.0, "")
    print_values(args, [values(chart) for chart in charts])
    return 0


def values(chart: Any) -> dict[str, Any]:
    """Facts, skewness, the greatest hub, images that nobody finds, and recall, each by cosine and by CSLS."""
    facts = ("run", "name", "objective", "step", "dataset", "split", "k", "n", "texts", "images", "pairs")
    found: dict[str, Any] = {name: getattr(chart, name) for name in facts}
    for end in ("", "_csls"):
        counts = getattr(chart, f"occurrences{end}")
        found[f"skewness{end}"] = getattr(chart, f"skewness{end}")
        found[f"greatest_hub{end}"] = int(counts.max(initial=0))
        found[f"never_found{end}"] = int((counts == 0).sum())
        found |= {f"recall_at_{k}{end}": share for k, share in getattr(chart, f"recall{end}").items()}
    return found
