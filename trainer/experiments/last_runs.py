"""The last finished runs outside of experiments: what Home says of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from trainer.config import ConfigError
from trainer.experiments.counted import standing
from trainer.experiments.seed_truth import seed_truth
from trainer.metrics import HEADLINE, headline_name, measured_on, metric
from trainer.store import RunRow, StoreError, Workspace

MOST_TRIED: Final = 8
"""Of the newest runs, whose settings are read to find two that compare."""


@dataclass(frozen=True)
class LastRuns:
    """The newest two runs that were measured alike and differ in their settings, else the newest one.

    Attributes:
        runs: The older one first.
        headline: Their values in a sentence.
        about: Of what data, on how many pairs, after how many steps, and what seeds know.
    """

    runs: tuple[RunRow, ...]
    headline: str
    about: str


def last_runs(workspace: Workspace) -> LastRuns | None:
    """Return what to say of the last finished runs; None where no run has finished. For a thread."""
    counted = [row for row in workspace.runs.all() if not standing(row) and row.last is not None]
    counted = [row for row in counted if row.deleted_at is None and row.archived_at is None][-MOST_TRIED:]
    if not counted:
        return None
    older = ((row, other) for row in reversed(counted) for other in reversed(counted) if other.id < row.id)
    pairs = ((other, row, fields) for row, other in older if (fields := _differing(workspace, row, other)))
    *runs, fields = next(pairs, (counted[-1], ()))
    measured = headline_name(runs[0].metric, *(row.facts for row in runs))
    steps = f"{' and '.join(dict.fromkeys(f'{row.step:,}' for row in runs))} steps"
    seeds = seed_truth(workspace, runs[0].id, runs[-1].id).text
    names = ", ".join(field.rpartition(".")[2].replace("_", " ") for field in fields)
    differ = f"they differ in {names}" if len(fields) > 1 else ""
    about = " · ".join(filter(None, (runs[0].data, measured, steps, differ, seeds)))
    return LastRuns(tuple(runs), _headline(runs), about)


def _differing(workspace: Workspace, row: RunRow, other: RunRow) -> tuple[str, ...]:
    """Return in which fields two runs differ that were measured on the same pairs; empty where they do not compare."""
    from trainer.experiments.experiment import Arm, differing

    keys = [(each.data, each.metric, *measured_on(each.metric, each.facts)) for each in (row, other)]
    if keys[0] != keys[1]:
        return ()
    try:
        arms = [Arm(str(each.id), workspace.runs.config_of(each.id)) for each in (other, row)]
    except (StoreError, ConfigError):
        return ()
    fields = differing(arms)
    others = any(field.partition(".")[0] == "data" and not field.startswith("data.train_") for field in fields)
    return () if others else fields


def _headline(runs: Sequence[RunRow]) -> str:
    measure = metric(runs[0].metric)
    best = sorted(runs, key=lambda row: row.last or 0.0, reverse=measure.better != "down")
    values = [(row.short_name, measure.text(row.last)) for row in best]
    if runs[0].metric != HEADLINE:
        return f"{measure.label}: {', '.join(f'{name} {value}' for name, value in values)}"
    rest = "".join(f", {name} of {value}" for name, value in values[1:])
    return f"{values[0][0]} finds the caption of {values[0][1]} of the images{rest}"
