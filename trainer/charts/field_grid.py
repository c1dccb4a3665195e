"""How two fields of the configurations work together: the mean outcome of runs for each pair of values, as a grid."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import permutations
from typing import Any, Final

import numpy as np
from jaxtyping import Float, Int
from msgspec import Struct

from trainer.analysis.progress import Progress
from trainer.charts import ChartError
from trainer.charts.marks import NumberRow, NumberTable, Panel, named_map
from trainer.charts.run_fields import RunFields, run_fields
from trainer.charts.spec import Chart, Request
from trainer.config.fields import option
from trainer.experiments.counted import MOST_NAMED
from trainer.store import Workspace

METHOD: Final = """\
Each cell is the mean outcome of the runs with these two values that finished, over seeds and all other fields; n is \
their number. \
It is the form in which SimCLR shows its augmentations (Chen et al. 2020, figure 5).

Cells are comparable only where the runs of each differ in nothing else but the seed: an experiment sees to that. A \
cell with one run proves little about its neighbors, because seeds differ too. Empty cells have no run."""
MOST_VALUES: Final = 24


@dataclass(frozen=True)
class FieldGridSettings:
    """Which fields."""

    rows: str = option("", "Rows", "A field in which the runs differ; empty: the one that fills most cells.")
    columns: str = option("", "Columns", "Another such field; empty: the one that fills most cells.")
    outcome: str = option("", "Outcome", "Logged or evaluated number; empty: the runs' main metric.")


class FieldGrid(Struct, frozen=True):
    """The outcome by the values of two fields.

    Attributes:
        names: The field of the rows, and that of the columns.
        row_values, column_values: Their values in order, as text.
        mean: Of the outcome; NaN where no run has these values.
        count: Runs with an outcome in each cell.
        low, high: Smallest and largest outcome of a cell; NaN where it is empty.
    """

    about: RunFields
    names: tuple[str, str]
    row_values: tuple[str, ...]
    column_values: tuple[str, ...]
    mean: Float[np.ndarray, "r c"]
    count: Int[np.ndarray, "r c"]
    low: Float[np.ndarray, "r c"]
    high: Float[np.ndarray, "r c"]


def compute(workspace: Workspace, request: Request, settings: FieldGridSettings, _progress: Progress) -> FieldGrid:
    """Sort the runs into cells.

    Raises:
        ChartError: The runs do not differ in the chosen fields, or in too many values of one.
    """
    return grid(run_fields(workspace, request.targets, settings.outcome), settings.rows, settings.columns)


def grid(about: RunFields, rows: str = "", columns: str = "") -> FieldGrid:
    """Return the outcome by two fields; where one is not given, that with most cells filled, most runs, then the first.

    Empty if the runs do not differ in two fields.
    """
    if len(about.fields) < 2 and not rows and not columns:
        nothing = np.zeros((0, 0))
        return FieldGrid(about, ("", ""), (), (), nothing, nothing.astype(np.int64), nothing, nothing)
    fixed = [_named(about, name) if name else "" for name in (rows, columns)]
    pairs = [pair for pair in permutations(about.fields, 2) if all(g in ("", name) for g, name in zip(fixed, pair))]
    if not pairs:
        raise ChartError("A grid needs two fields in which the runs differ, such as an experiment over both.")
    chosen = max(pairs, key=lambda pair: _filled(about, pair))
    levels = [_levels(about, name) for name in chosen]
    shape = (len(levels[0][1]), len(levels[1][1]))
    members: list[list[list[float]]] = [[[] for _ in range(shape[1])] for _ in range(shape[0])]
    for row, column, value, counts in zip(levels[0][0], levels[1][0], about.values, about.counted, strict=True):
        if row >= 0 and column >= 0 and np.isfinite(value) and counts:
            members[row][column].append(float(value))

    def each(measure: Any) -> np.ndarray:
        return np.array([[measure(cell) if cell else np.nan for cell in line] for line in members]).reshape(shape)

    count = np.array([[len(cell) for cell in line] for line in members], np.int64).reshape(shape)
    return FieldGrid(
        about, (chosen[0], chosen[1]), levels[0][1], levels[1][1], each(np.mean), count, each(min), each(max)
    )


def _left_out(about: RunFields) -> tuple[str, ...]:
    """Return which runs the means leave out."""
    names = [name for (_, name), counts in zip(about.runs, about.counted, strict=True) if not counts]
    single = len(names) == 1
    many = f"{len(names)} run{'' if single else 's'} not counted, because {'it' if single else 'they'} did not finish"
    return (
        (f"{many}: {', '.join(names[:MOST_NAMED])}{' and more' if len(names) > MOST_NAMED else ''}.",) if names else ()
    )


def _named(about: RunFields, name: str) -> str:
    """Return the field with this name, or with this last part."""
    fits = [field for field in about.fields if name in (field, field.rpartition(".")[2])]
    if len(fits) != 1 and name not in fits:
        names = ", ".join(about.fields) or "nothing"
        raise ChartError(f"The runs do not differ in {name!r}. They differ in {names}.")
    return name if name in fits else fits[0]


def _filled(about: RunFields, pair: tuple[str, str]) -> tuple[float, int]:
    """Return the share of cells that have runs, and how many runs those are; 0 where there are too many cells."""
    finite = np.isfinite([about.fields[name] for name in pair]).all(axis=0) & np.isfinite(about.values)
    sizes = [len(np.unique(about.fields[name][finite])) for name in pair]
    cells = len({*zip(*(about.fields[name][finite].tolist() for name in pair), strict=True)})
    fits = min(sizes) > 1 and max(sizes) <= MOST_VALUES
    return (cells / (sizes[0] * sizes[1]) if fits else 0.0), int(finite.sum())


def _levels(about: RunFields, name: str) -> tuple[list[int], tuple[str, ...]]:
    """Return the place of each run among the values of a field, -1 where it has none, and the values as text."""
    column = about.fields[name]
    values = np.unique(column[np.isfinite(column)])
    if len(values) > MOST_VALUES:
        raise ChartError(f"{name} has {len(values)} values; a grid shows at most {MOST_VALUES}. Choose another field.")
    level_texts = about.words[name]
    texts = tuple(level_texts[int(value)] if level_texts else f"{value:g}" for value in values)
    return [int(np.searchsorted(values, value)) if np.isfinite(value) else -1 for value in column], texts


def draw(data: FieldGrid, _settings: FieldGridSettings) -> Panel:
    """Draw the grid, and a table with the number and range of each cell."""
    about, scale = data.about, 100.0 if data.about.percent else 1.0
    if not data.row_values:
        why = f"The {len(about.runs)} runs differ in fewer than two fields. An experiment over two makes a grid."
        count = NumberRow("Fields that differ", "", (float(len(about.fields)),), 0)
        return Panel(title="Grid", rows=((NumberTable("grid", "Grid", ("Runs",), (count,), badges=False, note=why),),))
    unit, title = "%" if about.percent else "", f"{about.label} by {data.names[0]} and {data.names[1]}"
    means = scale * data.mean
    finite = means[np.isfinite(means)]
    low, high = (float(finite.min()), float(finite.max())) if len(finite) else (0.0, 1.0)
    names: dict[str, Any] = {"x_label": data.names[1], "y_label": data.names[0]}
    names |= {"unit": f"mean {about.label}{', %' if unit else ''}", "low": low, "high": high if high > low else low + 1}
    heat = named_map("grid", title, means, data.row_values, data.column_values, **names)
    lines = tuple(
        NumberRow(row, "", tuple(_cell(data, r, c, scale) for c in range(len(data.column_values))))
        for r, row in enumerate(data.row_values)
    )
    table = NumberTable("cells", f"Mean (range; n){', %' if unit else ''}", data.column_values, lines, badges=False)
    n = int(data.count.sum())
    note = f"{about.label} ({about.outcome}), the last value of each of {n} runs; mean of each cell."
    return Panel(
        title=title, rows=((heat,), (table,)), notes=(note,), warnings=(*about.data_warnings, *_left_out(about))
    )


def _cell(data: FieldGrid, row: int, column: int, scale: float) -> str:
    n = int(data.count[row, column])
    if n == 0:
        return "–"
    mean, low, high = (scale * float(part[row, column]) for part in (data.mean, data.low, data.high))
    return f"{mean:.3g} (n 1)" if n == 1 else f"{mean:.3g} ({low:.3g}–{high:.3g}; n {n})"


def values(data: FieldGrid, _settings: FieldGridSettings) -> list[dict[str, Any]]:
    """Return one dictionary per cell with runs."""
    return [
        {data.names[0]: row, data.names[1]: column, "mean": float(data.mean[r, c]), "low": float(data.low[r, c]),
         "high": float(data.high[r, c]), "n": int(data.count[r, c])}
        for r, row in enumerate(data.row_values) for c, column in enumerate(data.column_values) if data.count[r, c]
    ]  # fmt: skip


CHART: Final = Chart(
    view="run_comparison",
    label="Grid",
    question="How do two settings interact?",
    cost="Grows with the runs; numbers that are stored are read, so the size of the data does not matter.",
    method=METHOD,
    settings=FieldGridSettings,
    needs="whole_runs",
    compute=compute,
    draw=draw,
    values=values,
)
