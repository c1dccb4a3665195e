"""The fields in which many runs differ, with one outcome of each: for charts over configurations."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from jaxtyping import Float

from trainer.charts import ChartError
from trainer.charts.spec import Target
from trainer.experiments.counted import standing
from trainer.metrics import headline_name, metric
from trainer.store import Workspace
from trainer.store.run_values import configurations, plain, read_values

MOST_RUNS: Final = 2_000
_NO_CAUSE: Final = ("name", "device", "loading", "workers")
"""Fields, and `watching`, that change how a run is watched and not what it learns."""


@dataclass(frozen=True)
class RunFields:
    """Runs, the fields in which they differ, and their outcomes."""

    runs: tuple[tuple[int, str], ...]  # Id and name of each.
    # Field -> a number of each run; NaN where it has no such field. Words are numbered in their order.
    fields: dict[str, Float[np.ndarray, " n"]]
    # Field -> its words in the order of their numbers; of fields that hold numbers none.
    words: dict[str, tuple[str, ...]]
    outcome: str  # Name of the number that is explained.
    label: str  # Its label for people; of a recall with direction, split and n.
    percent: bool  # It is a share, to be shown times 100.
    better: str  # Which way is good: `up`, `down` or `none`.
    values: Float[np.ndarray, " n"]  # Of the outcome; NaN where a run has none.
    unfinished: int  # Runs with an outcome that did not end their training: it is that of an earlier step.
    counted: tuple[bool, ...]  # Of each run whether it finished, and so counts in a mean.
    data: tuple[str, ...] = ()  # On which the runs with an outcome were trained.

    @property
    def warnings(self) -> tuple[str, ...]:
        """What makes the outcomes not comparable."""
        n = int(np.isfinite(self.values).sum())
        sentence = f"{self.unfinished:,} of {n:,} runs did not finish: their {self.label} is of an earlier step."
        unfinished = (f"{sentence} The filter is:finished leaves them out.",) if self.unfinished else ()
        return (*self.data_warnings, *unfinished)

    @property
    def data_warnings(self) -> tuple[str, ...]:
        """That the outcomes are of different data, if they are."""
        sentence = f"Different data: {', '.join(self.data)}; their outcomes do not compare."
        return (f"{sentence} The filter data:{self.data[0]} leaves the others out.",) if len(self.data) > 1 else ()


def run_fields(workspace: Workspace, targets: Sequence[Target], outcome: str) -> RunFields:
    """Read configurations and outcomes.

    Args:
        outcome: A logged or evaluated number, with or without split; empty: the main metric of the first run.

    Raises:
        ChartError: There are too many runs, or their outcomes are losses of different objectives.
    """
    rows = list({row.id: row for row in (workspace.runs.get(target.run) for target in targets)}.values())
    if len(rows) > MOST_RUNS:
        raise ChartError(f"{len(rows):,} runs are too many; choose at most {MOST_RUNS:,}.")
    outcome = outcome or rows[0].metric or "val/image_to_text_R@1"
    known_name = outcome if "/" in outcome else f"val/{outcome}"
    outcome_metric = metric(known_name)
    if not outcome_metric.shared_axis and len({row.objective for row in rows}) > 1:
        raise ChartError(
            f"{outcome_metric.label} of different objectives are different quantities. "
            "Choose a recall, or one objective."
        )
    configs = configurations(workspace, [row.id for row in rows])
    rows = [row for row in rows if row.id in configs]
    if not rows:
        raise ChartError("No configuration of these runs can be read. trainer doctor says what is wrong with them.")
    read = read_values(workspace, (outcome,), rows)
    values = np.array([read[row.id].get(outcome, math.nan) for row in rows], np.float64)
    flat = [configs[row.id] for row in rows]
    fields: dict[str, np.ndarray] = {}
    texts: dict[str, tuple[str, ...]] = {}
    for name in dict.fromkeys(name for values_of in flat for name in values_of):
        column = [values_of.get(name) for values_of in flat]
        if (
            name in _NO_CAUSE
            or name.startswith("watching.")
            or len({plain(value) for value in column if value is not None}) < 2
        ):
            continue
        fields[name], texts[name] = _numbered(column)
    return RunFields(
        tuple((row.id, row.short_name) for row in rows),
        fields,
        texts,
        outcome,
        headline_name(known_name, *(row.facts for row, value in zip(rows, values, strict=True) if np.isfinite(value))),
        outcome_metric.percent,
        outcome_metric.better,
        values,
        sum(bool(standing(row)) for row, value in zip(rows, values, strict=True) if np.isfinite(value)),
        tuple(not standing(row) for row in rows),
        tuple(dict.fromkeys(row.data for row, value in zip(rows, values, strict=True) if np.isfinite(value))),
    )


def _numbered(column: Sequence[Any]) -> tuple[np.ndarray, tuple[str, ...]]:
    present = [value for value in column if value is not None]
    if all(isinstance(value, int | float) and not isinstance(value, bool) for value in present):
        return np.array([math.nan if value is None else float(value) for value in column]), ()
    texts = [None if value is None else plain(value) for value in column]
    names = tuple(sorted({text for text in texts if text is not None}))
    return np.array([math.nan if text is None else float(names.index(text)) for text in texts]), names
