"""The verdict on an experiment as files: one self-contained HTML page, Markdown, LaTeX, or the figures alone."""

from __future__ import annotations

import base64
import io
import math
from collections.abc import Sequence
from html import escape
from pathlib import Path

from trainer.charts import ChartError
from trainer.charts import experiment_curves as curves
from trainer.charts import experiment_verdict as chart
from trainer.charts.marks import NumberRow, NumberTable, Panel, XYPlot
from trainer.charts.spec import Request
from trainer.experiments.experiment import to_toml
from trainer.experiments.verdict import ExperimentVerdict
from trainer.metrics import Metric, metric
from trainer.render_html.report import POLICY, STYLE
from trainer.render_mpl import panel as figure
from trainer.render_mpl.files import NumberRows, write_figure
from trainer.store import Workspace
from trainer.store.files import write_for_user
from trainer.untrusted import shell


def write_verdict(workspace: Workspace, verdict: ExperimentVerdict, files: Sequence[Path]) -> None:
    """Write the verdict to every file in the format of its suffix.

    Raises:
        UserError: A file cannot be written.
    """
    settings = chart.ExperimentSettings(verdict.experiment.name)
    drawn = chart.CHART.panel(verdict, settings)
    command = shell.join(["trainer", "experiment", "verdict", verdict.experiment.name])
    plain = [file for file in files if file.suffix.lower() != ".html"]
    if plain:
        rows = chart.records(verdict, settings)
        write_figure(
            plain,
            figure=lambda: figure.draw(_without_tables(drawn)),
            rows=lambda: NumberRows(*rows),
            command=command,
            title=drawn.title,
            panel=lambda: drawn,
        )
    pages = [file for file in files if file.suffix.lower() == ".html"]
    content = page(workspace, verdict, command) if pages else ""
    for file in pages:
        write_for_user(file, lambda draft: draft.write_text(content, encoding="utf-8"))


def page(workspace: Workspace, verdict: ExperimentVerdict, command: str) -> str:
    """Return the page: question, verdict, figures, every table, and the definition that repeats it."""
    settings = chart.ExperimentSettings(verdict.experiment.name)
    drawn = chart.CHART.panel(verdict, settings)
    parts = ['<a class="skip" href="#main">Skip to the verdict</a>', '<main id="main">']
    parts += [
        f"<h1>{escape(verdict.experiment.name)}</h1>",
        f'<p class="quiet">{escape(verdict.experiment.question)}</p>',
    ]
    sentences = verdict.words.splitlines()
    parts += [f"<p><strong>{'<br>'.join(map(escape, sentences))}</strong></p>"]
    more = [line for line in drawn.head if line not in (verdict.experiment.question, *sentences)]
    parts += [f"<p>{escape(line)}</p>" for line in more]
    parts.append(_image(_without_tables(drawn), f"Differences and values: {' '.join(sentences)}"))
    parts += [_table(mark) for mark in drawn.marks if isinstance(mark, NumberTable)]
    parts += [f'<p class="quiet">{escape(line)}</p>' for line in (*drawn.warnings, *drawn.notes)]
    try:
        lines = curves.CHART.panel(
            curves.compute(workspace, Request(), curves.ArmCurveSettings(verdict.experiment.name), _quiet),
            curves.ArmCurveSettings(verdict.experiment.name),
        )
        parts += ["<h2>Training curves</h2>", _image(lines, "Mean and interval of each arm over seeds, runs thin")]
        parts += [f'<p class="quiet">{escape(line)}</p>' for line in lines.notes]
    except ChartError as problem:
        parts += ["<h2>Training curves</h2>", f"<p>{escape(str(problem))}</p>"]
    data = base64.b64encode(to_toml(verdict.experiment).encode()).decode()
    link = f'<a download="experiment.toml" href="data:text/plain;charset=utf-8;base64,{data}">definition as TOML</a>'
    parts.append(f"<h2>Again</h2><p>The {link} repeats it.</p><code>{escape(command)}</code></main>")
    head = f'<meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="{POLICY}">'
    head += '<meta name="viewport" content="width=device-width, initial-scale=1">'
    head += f"<title>{escape(drawn.title)}</title><style>{STYLE}</style>"
    body = "\n".join(parts)
    return f'<!doctype html>\n<html lang="en"><head>{head}</head>\n<body>\n{body}\n</body></html>\n'


def verdict_section(verdict: ExperimentVerdict) -> str:
    """Return what a report begins with: the verdict, its figure, and each arm as mean and range of its seeds."""
    drawn = chart.CHART.panel(verdict, chart.ExperimentSettings(verdict.experiment.name))
    outcomes = (verdict.experiment.outcome, *verdict.experiment.secondaries)
    arms = tuple(arm.name for arm in verdict.experiment.arms)
    lines = []
    for index, outcome in enumerate(outcomes):
        cells = [_mean_and_range(verdict, arm, index, metric(f"val/{outcome.metric}")) for arm in arms]
        lines.append(NumberRow(outcome.label, "Mean and range over the seeds.", tuple(cells)))
    table = NumberTable("arms", "Arms: mean and range over seeds", arms, tuple(lines), badges=False)
    sentences = [*verdict.words.splitlines(), *filter(None, (verdict.not_counted,))]
    figure = _image(_without_tables(drawn), f"Differences and values: {' '.join(sentences)}")
    warnings = "".join(f"<p>{escape(warning)}</p>" for warning in drawn.warnings)
    return f"<p><strong>{'<br>'.join(map(escape, sentences))}</strong></p>{warnings}{figure}{_table(table)}"


def _mean_and_range(verdict: ExperimentVerdict, arm: str, index: int, measure: Metric) -> str:
    # As in the differences: of seeds that one arm lacks the others are not compared.
    seeds = verdict.seeds or [run.seed for run in verdict.runs]
    runs = [run for run in verdict.runs if run.arm == arm and not run.note and run.seed in seeds]
    values = [value for run in runs if math.isfinite(value := run.values[index])]
    if len(values) < 2:
        return measure.text(values[0]) if values else "–"
    ends = f"{measure.text(min(values))} to {measure.text(max(values))}"
    return f"{measure.text(sum(values) / len(values))} ({ends}, {len(values)} seeds)"


def _without_tables(drawn: Panel) -> Panel:
    rows = tuple(row for row in drawn.rows if any(isinstance(mark, XYPlot) for mark in row))
    return Panel(title=drawn.title, rows=rows)


def _image(drawn: Panel, description: str) -> str:
    # As an image and not inline: the ids inside two SVGs would clash, and nothing in one can run as a script.
    content = io.BytesIO()
    figure.draw(drawn).savefig(content, format="svg")
    data = base64.b64encode(content.getvalue()).decode()
    return f'<figure><img alt="{escape(description)}" src="data:image/svg+xml;base64,{data}"></figure>'


def _table(table: NumberTable) -> str:
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in ("", *table.columns))
    rows = []
    for line in table.lines:
        if not line.values:
            span = len(table.columns) + 1
            rows.append(f'<tr class="split"><th scope="colgroup" colspan="{span}">{escape(line.words)}</th></tr>')
            continue
        mark = ' class="best"' if line.strong else ""
        cells = "".join(f"<td{mark}>{escape(line.text(column))}</td>" for column in range(len(table.columns)))
        rows.append(f'<tr><th scope="row">{escape(line.words)}</th>{cells}</tr>')
    body = f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"
    name = escape(table.title)
    return f'<h2>{name}</h2><div class="wide" role="region" tabindex="0" aria-label="{name}">{body}</div>'


def _quiet(_share: float, _note: str) -> None:
    """Say nothing."""
