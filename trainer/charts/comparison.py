"""The newest evaluations of runs side by side: one row per metric, split and question, one column per run."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, Final

from trainer.analysis.progress import Progress
from trainer.charts import objective_label
from trainer.charts.marks import NumberRow, NumberTable, Panel, heading_row
from trainer.charts.measures.comparison import INTERVAL_NOTE, Comparison, comparison, sections, value_text
from trainer.charts.spec import Chart, Records, Request
from trainer.store import Workspace
from trainer.store.question import question_text


def compute(workspace: Workspace, request: Request, _settings: Any, _progress: Progress) -> Comparison:
    """Return `comparison` of the runs."""
    return comparison(workspace, [target.run for target in request.targets])


def draw(table: Comparison, _settings: Any) -> Panel:
    """Draw one table; the best value of each row is bold where it differs from the others."""
    kinds = tuple(f"{objective_label(run.objective)}, step {run.step:,}" for run in table.runs)
    lines = [NumberRow("Objective", "And the step of the newest evaluation.", kinds)]
    for title, rows in sections(table):
        lines.append(heading_row(title))
        for row in rows:
            cells = (" ".join(filter(None, value_text(row, index))) for index in range(len(row.values)))
            lines.append(NumberRow(row.label, row.name, tuple(cells), best=frozenset(row.best)))
    numbers = NumberTable("numbers", "Newest evaluations", tuple(run.name for run in table.runs), tuple(lines))
    head = (table.over_seeds,) if table.over_seeds else ()
    return Panel(title="Comparison", head=head, rows=((numbers,),), notes=(table.notes,), warnings=table.warnings)


def values(table: Comparison, _settings: Any) -> list[dict[str, Any]]:
    """Return one dictionary per run: its facts, and its value of each metric, split and question."""
    return [
        asdict(run) | {f"{title}: {row.name}": row.values[index] for title, rows in sections(table) for row in rows}
        for index, run in enumerate(table.runs)
    ]


def records(table: Comparison, _settings: Any) -> Records:
    """Return one row per metric, split, question and run; shares are in [0, 1]."""
    header = ("dataset", "split", "metric", "run", "name", "objective", "step", "n", "value", "low", "high", "best")
    lines = []
    for row in table.rows:
        for index, run in enumerate(table.runs):
            facts = (row.dataset, row.split, row.name, run.run, run.name, run.objective, run.step, row.n[index])
            ends = row.intervals[index] or (None, None)
            lines.append(
                (*facts, row.values[index], *ends, int(index in row.best), question_text(row.question, task=True))
            )
    return (*header, "question"), lines


CHART: Final = Chart(
    view="evaluate",
    label="Comparison",
    question="What are the newest evaluation results of each run on every split?",
    cost="Grows with the runs; numbers that are stored are read, so the size of the data does not matter.",
    method=INTERVAL_NOTE,
    needs="whole_runs",
    compute=compute,
    draw=draw,
    values=values,
    records=records,
)
