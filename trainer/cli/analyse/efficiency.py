"""`trainer analyse efficiency`: what groups of runs score over the pairs they have seen."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from trainer.cli.export.efficiency import add_group_arguments

if TYPE_CHECKING:
    from trainer.store import Workspace

HELP = "what groups of runs score over the pairs seen, and how many pairs the same score costs"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The groups, the measure and the data."""
    add_group_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Prints a column a group, or with `--json` everything."""
    from trainer.charts.efficiency import efficiency
    from trainer.render_mpl import efficiency as figure
    from trainer.render_mpl.files import json_text

    chart = efficiency(args.workspace, args.group, measure=args.metric, dataset=args.dataset, split=args.split)
    print(json_text({"analysis": args.kind, **figure.values(chart)}) if args.json else figure.as_text(chart))
    return 0


def values(
    workspace: Workspace, groups: Sequence[str], *, metric: str = "zero_shot_acc1", **where: str | None
) -> dict[str, Any]:
    """What `--json` prints."""
    from trainer.charts.efficiency import efficiency
    from trainer.render_mpl import efficiency as figure

    return figure.values(efficiency(workspace, groups, measure=metric, **where))
