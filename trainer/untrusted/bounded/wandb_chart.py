"""Tell which run and metric a column of a chart is of that Weights & Biases exported as CSV.

A column is called `RUN - METRIC`, and both may hold " - "; two runs may have one name. So a column is never looked up
by its name, and runs that cannot be told apart are not joined.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

from msgspec import Struct, field

SEPARATOR: Final = " - "
_TIMES: Final = ("Relative Time", "Wall Time")
BOUNDS: Final = ("__MIN", "__MAX")
"""How columns end that only bound the one before them."""
HISTORY_STEP: Final = "_step"
TRAINER_STEPS: Final = ("trainer/global_step", "train/global_step", "global_step")
"""Metrics over which the callbacks of Lightning and transformers have all others drawn; `_step` counts calls of log."""
OF_TRAINER: Final = "Steps are those of {!r}; Weights & Biases' own count calls of log."
STEPS: Final = (HISTORY_STEP, "Step", "step", *TRAINER_STEPS)
_OF_RUNS: Final = ("State", "Notes", "User", "Tags", "Created", "Runtime", "Sweep")
"""Columns of the table of runs on a project's page, besides `Name` and what runs were made by and ended with."""
OF_RUNS: Final = (
    "{} is a table of runs: a row is a run with its last numbers, and there is no curve in it. Export the numbers at "
    "each step: of Weights & Biases by the button of a chart, or by wandb.Api().run(PATH).history().to_csv(FILE)."
)


class WandbChartColumns(Struct):
    """What the columns of a table hold.

    Attributes:
        step, time, trainer: Place of the steps, of the times, and of a trainer's own steps in a history; -1 for none.
        curves: Place of a column -> its run, empty in a history of one run, and its metric.
        notes: What was guessed, in sentences.
    """

    step: int
    time: int = -1
    trainer: int = -1
    curves: dict[int, tuple[str, str]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def columns_of(header: Sequence[str]) -> WandbChartColumns | None:
    """Return what the columns hold; None where no column has steps."""
    step = next((header.index(name) for name in STEPS if name in header), None)
    if step is None or is_table_of_runs(header):
        return None
    columns = WandbChartColumns(step, header.index("_timestamp") if "_timestamp" in header else -1)
    trainer = next((name for name in TRAINER_STEPS if name in header), "")
    if trainer and header[step] == HISTORY_STEP:
        columns.trainer = header.index(trainer)
        columns.notes.append(OF_TRAINER.format(trainer))
    names = set(header)
    names_at = {
        position: name
        for position, name in enumerate(header)
        if position != step and name not in STEPS and not (name.endswith(BOUNDS) and name[: -len(BOUNDS[0])] in names)
    }
    pairs = _pairs(names_at, columns.notes, is_history=header[step] == HISTORY_STEP)
    numbers: Counter[tuple[str, str]] = Counter()
    several: dict[str, int] = {}
    for position, (run, metric) in pairs.items():
        if metric.startswith("_") or metric in STEPS:
            continue
        numbers[run, metric] += 1
        number = numbers[run, metric]
        several[run] = max(several.get(run, 0), number)
        again = f" ({number})" if number > 1 else ""
        columns.curves[position] = (run + again, metric) if run else ("", metric + again)
    for run, number in several.items():
        if number > 1:
            name = f"{number} runs are called {run[:80]!r}" if run else f"{number} columns have one name"
            columns.notes.append(f"{name}; the order of their columns tells them apart, which is a guess.")
    return columns


def is_table_of_runs(header: Sequence[str]) -> bool:
    """Return whether a row of a table is a run, as on the page of a project or by the example of its API."""
    names = {name.strip().strip('"') for name in header}
    return {"summary", "config", "name"} <= names or ("Name" in names and not names.isdisjoint(_OF_RUNS))


def _pairs(names_at: dict[int, str], notes: list[str], *, is_history: bool) -> dict[int, tuple[str, str]]:
    """Return run and metric of each column.

    A history is of one run, whatever its columns are called. In a chart, a column `RUN - _step` tells the name of its
    run; else the last separator counts, which is a guess where there are several and no other column has that metric.
    """
    if is_history or not any(SEPARATOR in name for name in names_at.values()):
        return {position: ("", name) for position, name in names_at.items()}
    runs = {
        name.rpartition(SEPARATOR)[0] for name in names_at.values() if name.rpartition(SEPARATOR)[2].startswith("_")
    }
    sure = {name.partition(SEPARATOR)[2] for name in names_at.values() if name.count(SEPARATOR) == 1}
    pairs: dict[int, tuple[str, str]] = {}
    guessed: list[str] = []
    for position, name in names_at.items():
        run = max((run_name for run_name in runs if name.startswith(run_name + SEPARATOR)), key=len, default=None)
        if run is not None:
            pairs[position] = (run, name[len(run) + len(SEPARATOR) :])
        elif SEPARATOR not in name:
            pairs[position] = ("", name)
        else:
            before, _, metric = name.rpartition(SEPARATOR)
            pairs[position] = (before, metric)
            if SEPARATOR in before and metric not in sure:
                guessed.append(before)
    if guessed:
        some = ", ".join(repr(name[:80]) for name in dict.fromkeys(guessed[:4]))
        notes.append(
            f"The names of columns hold {SEPARATOR!r} more than once; the last one was taken to part run and metric "
            f"(runs {some}), which is a guess."
        )
    return pairs


def axis_of(header: Sequence[str]) -> str:
    """Return over what a chart is drawn; empty where a header is of none."""
    has_runs = any(SEPARATOR in name for name in header)
    has_bounds = any(name.endswith(BOUNDS) and name[: -len(BOUNDS[0])] in header for name in header)
    axis = next((name for name in header if name in STEPS or name.startswith(_TIMES)), "")
    return (axis or (header[0] if has_bounds else "")) if has_runs else ""
