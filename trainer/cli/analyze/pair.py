"""`trainer analyze pair`: prints how each run sees one pair."""

from __future__ import annotations

import argparse
import dataclasses
from typing import TYPE_CHECKING, Any

from trainer.cli._progress import report
from trainer.cli.analyze import add_arguments_of_runs, print_values
from trainer.untrusted.terminal import say

if TYPE_CHECKING:
    from trainer.charts.one_pair import OnePair, PairInRun

HELP = "one pair in each run: ranks both ways, margin, nearest pairs, rank of its caption over the steps"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the runs, their embeddings and the pair."""
    add_arguments_of_runs(parser)
    parser.add_argument("--row", type=int, required=True, metavar="N", help="row of the pair in A's snapshot, from 0")
    parser.add_argument("--k", type=int, default=8, metavar="N", help="nearest pairs (8)")


def run(args: argparse.Namespace) -> int:
    """Print the pair and one column per run."""
    from trainer.charts import ChartError
    from trainer.charts.one_pair import one_pair, open_snapshots
    from trainer.charts.spec import Request, targets_of
    from trainer.untrusted.escaping import cell

    if args.k < 1:
        raise ChartError("The number of nearest pairs must be at least 1.")
    request = Request(targets_of(args.runs, args.step), args.dataset, args.split)
    opened = open_snapshots(args.workspace, request)
    pair = one_pair(args.workspace, opened, args.row, k=args.k, progress=report)
    report(1.0, "")
    if not args.json:
        say(f"pair {pair.row} of {pair.dataset}-{pair.split}, key {pair.key}")
        say(f"{cell(pair.path)}\n{cell(pair.caption)}\n")
        for problem in pair.problems:
            say(problem)
    print_values(args, [values(pair, pair_in_run) for pair_in_run in pair.runs])
    return 0


def values(pair: OnePair, pair_in_run: PairInRun) -> dict[str, Any]:
    """Return a run's numbers of the pair; neighbors by their rows, the course as `step: rank`."""
    facts = dataclasses.asdict(pair_in_run)
    for name in ("place", "near", "course", "modality"):
        del facts[name]
    facts = {"row": pair.row, "key": pair.key} | facts
    facts["nearest"] = " ".join(str(each.row) for each in pair_in_run.near)
    facts["caption_rank_at_step"] = ", ".join(f"{step}: {rank}" for step, rank in pair_in_run.course)
    return facts
