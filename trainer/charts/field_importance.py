"""How much each field of the configurations explains of an outcome: permutation importance of a random forest."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from jaxtyping import Float
from msgspec import Struct

from trainer.analysis.progress import Progress
from trainer.charts.marks import Bars, NumberRow, NumberTable, Panel, XYPlot, axis_over, categories
from trainer.charts.run_fields import RunFields, run_fields
from trainer.charts.spec import Chart, Request
from trainer.config.fields import option
from trainer.store import Workspace

METHOD: Final = """\
A random forest (scikit-learn, 300 trees) predicts the outcome from the fields in which the runs differ. In runs that \
it has not learned from (five parts, each predicted by the others) one field at a time is shuffled among the runs, 20 \
times; its importance is how much worse the forest then predicts, as a share of the outcome's variance (Breiman 2001). \
Bars: mean and deviation over parts and shuffles.

Where the forest does not predict held-out runs (R^2 near 0 or below), no importance means anything. Fields that vary \
together share their importance, which proves no effect: runs that were chosen by hand differ in more than one field. \
The seed counts as a field: what it explains is noise."""
LEAST_RUNS: Final = 10
PARTS: Final = 5
SHUFFLES: Final = 20
MOST_SHOWN: Final = 15


@dataclass(frozen=True)
class ImportanceSettings:
    """What is explained."""

    outcome: str = option("", "Outcome", "Logged or evaluated number; empty: the runs' main metric.")


class FieldImportance(Struct, frozen=True):
    """The importance of fields.

    Attributes:
        n: Runs with an outcome.
        r2: Share of the variance of held-out runs that the forest predicts; NaN with too few runs.
        fields: By importance, most first; empty with too few runs.
        mean, std: Of the fall of R^2 when a field is shuffled.
    """

    about: RunFields
    n: int
    r2: float
    fields: tuple[str, ...]
    mean: Float[np.ndarray, " f"]
    std: Float[np.ndarray, " f"]


def compute(
    workspace: Workspace, request: Request, settings: ImportanceSettings, progress: Progress
) -> FieldImportance:
    """Fit the forest."""
    return importance(run_fields(workspace, request.targets, settings.outcome), progress)


def importance(about: RunFields, progress: Progress) -> FieldImportance:
    """Return the importance of each field; nothing of fewer than `LEAST_RUNS` runs or of outcomes that are equal."""
    finite = np.isfinite(about.values)
    n, nothing = int(finite.sum()), np.zeros(0)
    outcome = about.values[finite]
    if n < LEAST_RUNS or not about.fields or not np.ptp(outcome) > 0:
        return FieldImportance(about, n, math.nan, (), nothing, nothing)
    from sklearn.ensemble import RandomForestRegressor
    from sklearn.model_selection import KFold

    # A field that a run's objective does not have is a value of its own, below all others.
    columns = [column[finite] for column in about.fields.values()]
    table = np.stack(
        [np.where(np.isnan(c), np.nanmin(c) - 1.0 if np.isfinite(c).any() else 0.0, c) for c in columns], 1
    )
    rng = np.random.default_rng(0)
    total = float(((outcome - outcome.mean()) ** 2).mean())
    falls: list[list[float]] = [[] for _ in columns]
    missed = np.zeros(n)
    for part, (learned, held) in enumerate(KFold(PARTS, shuffle=True, random_state=0).split(table)):
        progress(part / PARTS, f"part {part + 1} of {PARTS}")
        forest = RandomForestRegressor(300, random_state=0, min_samples_leaf=2).fit(table[learned], outcome[learned])
        missed[held] = (forest.predict(table[held]) - outcome[held]) ** 2
        plain = float(missed[held].mean())
        shuffled = np.repeat(table[held][None], SHUFFLES, axis=0)
        for column_index in range(len(columns)):
            moved = shuffled.copy()
            for at in range(SHUFFLES):
                moved[at, :, column_index] = rng.permutation(moved[at, :, column_index])
            predicted = forest.predict(moved.reshape(-1, table.shape[1])).reshape(SHUFFLES, -1)
            falls[column_index] += (((predicted - outcome[held]) ** 2).mean(1) - plain).tolist()
    mean = np.array([np.mean(fall) for fall in falls]) / total
    std = np.array([np.std(fall) for fall in falls]) / total
    order = np.argsort(-mean, kind="stable")
    names = list(about.fields)
    return FieldImportance(
        about, n, 1.0 - float(missed.mean()) / total, tuple(names[at] for at in order), mean[order], std[order]
    )


def draw(data: FieldImportance, _settings: ImportanceSettings) -> Panel:
    """Draw a bar per field, most important first."""
    about = data.about
    title = f"Importance for {about.label}"
    if not data.fields:
        why = f"{data.n} of {len(about.runs)} runs have {about.label}; at least {LEAST_RUNS} are needed."
        count = NumberRow(f"Runs with {about.label}", "", (float(data.n),), 0)
        empty = NumberTable("importance", title, ("Runs",), (count,), badges=False, note=why)
        return Panel(title=title, rows=((empty,),), notes=(why,))
    names, heights = data.fields[:MOST_SHOWN], 100 * data.mean[:MOST_SHOWN]
    spread = 100 * data.std[:MOST_SHOWN]
    low, high = heights - spread, heights + spread
    bars = Bars("", "first", tuple(heights), tuple(low), tuple(high))
    y = axis_over("share of the variance in points", [low, high], include=(0.0,))
    plot = XYPlot(
        "importance", title, categories("", names), y, bars=(bars,), names=names, lying=True,
        note=f"{data.n} runs, R² {data.r2:.2f}",
    )  # fmt: skip
    lines = tuple(
        NumberRow(name, "", (f"{100 * mean:.1f} ± {100 * std:.1f}",))
        for name, mean, std in zip(data.fields, data.mean, data.std, strict=True)
    )
    table = NumberTable("fields", "All fields", ("Importance, points of variance",), lines, badges=False)
    warnings = about.warnings
    if data.r2 < 0.1:
        warnings += (
            f"The forest does not predict held-out runs (R² {data.r2:.2f}): these importances mean nothing. More runs "
            "that differ in these fields would.",
        )
    notes = (f"{about.label} ({about.outcome}), the last value of each of {data.n} runs; random forest, 5 parts.",)
    return Panel(title=title, rows=((plot,), (table,)), notes=notes, warnings=warnings)


def values(data: FieldImportance, _settings: ImportanceSettings) -> list[dict[str, Any]]:
    """Return one dictionary per field."""
    return [
        {"field": name, "importance": float(mean), "std": float(std), "r2": data.r2, "n": data.n}
        for name, mean, std in zip(data.fields, data.mean, data.std, strict=True)
    ]


CHART: Final = Chart(
    view="run_comparison",
    label="Importance",
    question="Which settings explain how good a run is?",
    cost="Grows with the runs; numbers that are stored are read, so the size of the data does not matter.",
    method=METHOD,
    settings=ImportanceSettings,
    needs="whole_runs",
    compute=compute,
    draw=draw,
    values=values,
)
