"""What a comparison of single runs leaves open, and what is known over the seeds of their experiment: one sentence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from trainer import config
from trainer.experiments.counted import flaw_of, standing
from trainer.store import RunRow, StoreError, Workspace

if TYPE_CHECKING:
    from trainer.experiments.verdict import ExperimentVerdict


def over_seeds(workspace: Workspace, rows: Sequence[RunRow]) -> str:
    """Return which seeds the runs have, what their experiment says over its seeds, which did not finish or collapsed.

    Empty for a single run, or for steps of one: they are not compared over seeds.
    """
    rows = list({row.id: row for row in rows}.values())
    if len(rows) < 2:
        return ""
    parts = [_seeds(workspace, rows), _verdict(workspace, rows)]
    parts += [f"{row.short_name} has not finished: {why}." for row in rows if (why := standing(row))]
    parts += [f"{row.short_name} {flaw}." for row in rows if (flaw := flaw_of(row))]
    return " ".join(filter(None, parts))


def _seeds(workspace: Workspace, rows: Sequence[RunRow]) -> str:
    seeds: list[int] = []
    by_arm: dict[tuple[str, str | int], set[int]] = {}
    for row in rows:
        try:
            seeds.append(workspace.runs.config_of(row.id).seed)
        except (StoreError, config.ConfigError):
            return "One run each: how much another seed would change is not in these numbers."
        by_arm.setdefault((row.experiment, row.arm or row.id), set()).add(seeds[-1])
    every = {*map(frozenset, by_arm.values())}
    if any(len(each) > 1 for each in every):
        several = f"{len({*seeds})} seeds" + (" each" if len(every) == 1 else " in all, not every arm with each")
        return f"{several} ({', '.join(map(str, sorted({*seeds})))})."
    listed = f"seed {seeds[0]}" if len({*seeds}) == 1 else f"seeds {', '.join(map(str, seeds))}"
    return f"One seed each ({listed}): how much another seed would change is not in these numbers."


def verdict_of(workspace: Workspace, rows: Sequence[RunRow]) -> ExperimentVerdict | None:
    """Return the verdict on the experiment of several arms that all runs are of; None where there is no such."""
    from trainer.experiments.verdict import judge

    names = {row.experiment for row in rows}
    if len(names) != 1 or not (name := names.pop()) or len({row.arm for row in rows}) < 2:
        return None
    try:
        return judge(workspace, name)
    except (StoreError, config.ConfigError):
        return None


def _verdict(workspace: Workspace, rows: Sequence[RunRow]) -> str:
    """Return what is decided over the seeds of the runs' experiment; empty where they are not of one."""
    if (verdict := verdict_of(workspace, rows)) is None:
        return ""
    arms = {row.arm for row in rows}
    compared = [comparison for comparison in verdict.primary if comparison.arm in arms and comparison.differences]
    said = " ".join(map(verdict.sentence, compared)) or "no seed has been measured in two arms yet."
    line = f"Over the seeds of the experiment {rows[0].experiment}, by {verdict.experiment.outcome.label}: {said}"
    return " ".join(filter(None, (line, verdict.not_counted)))
