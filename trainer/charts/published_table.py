"""One's own runs in the form of a published table: models in columns, data sets in rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from msgspec import Struct

from trainer.charts import ChartError
from trainer.charts.marks import NumberRow, NumberTable, Panel
from trainer.charts.matching_splits import same_splits
from trainer.charts.measures.comparison import newest_answers
from trainer.charts.measures.groups import runs_of_groups
from trainer.charts.published_numbers import PublishedNumber, references
from trainer.charts.spec import Chart, Progress, Request
from trainer.config.fields import option
from trainer.prompt_suites import plain_name
from trainer.store import RunRow, Workspace

METHOD: Final = """\
Accuracies in percent, as the paper prints them: mean ± standard deviation over runs (n − 1), of one run the number \
alone. Columns with a star are runs of this workspace, their newest stored evaluation on the data set of that name, \
whatever its split; the other columns are published (Fürst et al., CLOOB, 2022, https://arxiv.org/abs/2110.11316). \
Bold is the largest number of a line, which tests nothing: published runs are not here to be tested with. A \
published number compares with an own one only under the same class names, templates and split."""

TABLES: Final = {
    "cc": ("CC3M", "zero_shot"),
    "yfcc": ("YFCC15M", "zero_shot"),
    "linear_probe": ("YFCC15M", "linear_probe"),
}
"""Of the paper: on what its models were pretrained, and the task."""


@dataclass(frozen=True)
class PublishedTableSettings:
    """The table, and the own groups."""

    table: Literal["cc", "yfcc", "linear_probe"] = option(
        "cc",
        "Table",
        "Of the CLOOB paper.",
        named={"cc": "CC zero-shot", "yfcc": "YFCC zero-shot", "linear_probe": "YFCC linear probe"},
    )
    group: tuple[str, ...] = option(
        (), "Groups", "Runs over seeds by name, a pattern each; empty: each chosen run alone.", control=False
    )


class TableCell(Struct, frozen=True):
    """Mean, deviation and number of runs behind a cell; shares in [0, 1]."""

    mean: float
    std: float | None
    runs: int

    @property
    def text(self) -> str:
        """As in the paper: `20.33 ± 0.28`."""
        spread = "" if self.std is None else f" ± {100 * self.std:.2f}"
        return f"{100 * self.mean:.2f}{spread}"


class PublishedTable(Struct, frozen=True):
    """The table."""

    columns: tuple[str, ...]  # Published models, then one's own runs with a star.
    rows: dict[str, tuple[TableCell | None, ...]]  # Data set -> cell of each column; None where there is no number.


def compute(
    workspace: Workspace, request: Request, settings: PublishedTableSettings, _progress: Progress
) -> PublishedTable:
    """Return the published numbers with those of one's own runs.

    Raises:
        ChartError: None of the runs was evaluated on a data set of the table.
    """
    pretraining, task = TABLES[settings.table]
    numbers = [n for n in references() if (n.pretraining, n.task) == (pretraining, task)]
    models = list(dict.fromkeys(_model(number) for number in numbers))
    published = {(of.dataset, _model(of)): TableCell(of.value, of.std, of.runs) for of in numbers}
    groups = _groups(workspace, request, settings.group)
    measured = [_accuracies(workspace, rows, f"{task}_acc1") for _, rows in groups]
    sets = list(dict.fromkeys(number.dataset for number in numbers))
    if not any(plain_name(name) in accuracies for name in sets for accuracies in measured):
        raise ChartError(
            f"None of these runs was evaluated by {task} on {', '.join(sets)}. Measure one: trainer evaluate RUN "
            f"--data {sets[0]} --task {task}."
        )
    rows = {
        name: (*(published.get((name, model)) for model in models), *(of.get(plain_name(name)) for of in measured))
        for name in sets
    }
    return PublishedTable((*models, *(f"{name}*" for name, _ in groups)), rows)


def _model(number: PublishedNumber) -> str:
    return f"{number.model}, {number.epochs} epochs" if number.epochs else number.model


def _groups(workspace: Workspace, request: Request, patterns: tuple[str, ...]) -> list[tuple[str, list[RunRow]]]:
    if patterns:
        return [(group.name, list(group.counted)) for group in runs_of_groups(workspace, patterns)]
    rows = [workspace.runs.get(target.run) for target in request.targets]
    return [(row.short_name, [row]) for row in rows]


def _accuracies(workspace: Workspace, rows: list[RunRow], name: str) -> dict[str, TableCell]:
    """Return the accuracy by data set; a run without a number on it does not count there."""
    same = same_splits(workspace, rows)
    values: dict[str, list[float]] = {}
    for row in rows:
        newest = {
            plain_name(key[0]): float(evaluation.metrics[name])
            for key, evaluation in newest_answers(workspace, row, same).items()
            if name in evaluation.metrics
        }
        for data, value in newest.items():
            values.setdefault(data, []).append(value)
    return {
        data: TableCell(float(np.mean(of)), float(np.std(of, ddof=1)) if len(of) > 1 else None, len(of))
        for data, of in values.items()
    }


def draw(data: PublishedTable, settings: PublishedTableSettings) -> Panel:
    """Draw the table."""
    lines = []
    for name, cells in data.rows.items():
        means = [-1.0 if cell is None else cell.mean for cell in cells]
        best = frozenset({int(np.argmax(means))})
        hint = "; ".join(f"{column}: n = {cell.runs}" for column, cell in zip(data.columns, cells, strict=True) if cell)
        lines.append(NumberRow(name, hint, tuple("–" if cell is None else cell.text for cell in cells), best=best))
    table = NumberTable("published", "Accuracy (%)", data.columns, tuple(lines), badges=False)
    return Panel(title="Published table", head=("* runs of this workspace",), rows=((table,),))


CHART: Final = Chart(
    view="run_comparison",
    label="Published table",
    question="How do these runs stand in the table of the paper?",
    cost="Grows with the runs; numbers that are stored are read, so the size of the data does not matter.",
    method=METHOD,
    settings=PublishedTableSettings,
    needs="whole_runs",
    compute=compute,
    draw=draw,
)
