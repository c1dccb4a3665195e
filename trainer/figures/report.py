"""A report as one HTML file that needs nothing else: figures, the comparison table, what differs between the runs."""

from __future__ import annotations

import base64
import html
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from trainer.charts import objective_label
from trainer.charts.comparison import Comparison, ComparisonRow
from trainer.figures.comparison import INTERVAL_NOTE, sections, value_text
from trainer.figures.style import HAIRLINE, INK, QUIET, run_colour


@dataclass(frozen=True)
class ReportFigure:
    """A figure of the report.

    Attributes:
        stem: Name of its files without ending; `.svg`, `.png` and `.csv` lie beside the report.
        title: Heading.
        text: What the figure shows and how it may be read.
        command: What draws it again.
    """

    stem: str
    title: str
    text: str
    command: str


@dataclass(frozen=True)
class Report:
    """Everything the page shows.

    Attributes:
        facts: One row a run: name, objective, data, steps, training time and whatever else, by heading.
        differences: Field of the configuration, then its value in each run.
        made: When and by which versions, a sentence.
    """

    title: str
    facts: Sequence[dict[str, str]]
    differences: Sequence[tuple[str, ...]]
    table: Comparison
    figures: Sequence[ReportFigure]
    made: str


_STYLE: Final = f"""
:root {{ color-scheme: light; }}
body {{ font: 15px/1.5 Inter, "DejaVu Sans", system-ui, sans-serif; color: {INK}; background: #fff;
  max-width: 1000px; margin: 48px auto; padding: 0 24px; }}
h1 {{ font-size: 26px; margin: 0 0 4px; }}
h2 {{ font-size: 18px; margin: 48px 0 8px; }}
p {{ margin: 4px 0 12px; }}
.quiet, footer {{ color: {QUIET}; font-size: 13px; }}
table {{ border-collapse: collapse; font-size: 14px; font-variant-numeric: tabular-nums; width: 100%; }}
th, td {{ padding: 5px 12px 5px 0; border-bottom: 1px solid {HAIRLINE}; text-align: right; vertical-align: top; }}
th:first-child, td:first-child {{ text-align: left; }}
th {{ font-weight: 600; }}
tr.split td {{ padding-top: 18px; font-weight: 600; text-align: left; }}
td.best {{ font-weight: 600; }}
td small {{ color: {QUIET}; font-weight: 400; }}
.swatch {{ display: inline-block; width: 10px; height: 10px; border-radius: 2px; margin-right: 6px; }}
img {{ width: 100%; }}
code {{ display: block; background: #f5f6f8; border-radius: 6px; padding: 8px 12px; font-size: 12.5px;
  overflow-wrap: anywhere; }}
a {{ color: {run_colour(0)}; }}
footer {{ margin: 48px 0 24px; border-top: 1px solid {HAIRLINE}; padding-top: 12px; }}
"""


def page(report: Report, folder: Path) -> str:
    """The page; figures are taken from their SVG files in `folder` and put into it."""
    parts = [f"<h1>{_text(report.title)}</h1>", f'<p class="quiet">{_text(report.made)}</p>']
    parts += ["<h2>Runs</h2>", _facts(report.facts)]
    if report.differences:
        names = [run.name for run in report.table.runs]
        parts += ["<h2>What differs</h2>", _plain_table(["Field", *names], report.differences)]
    parts += ["<h2>Held-out numbers</h2>", _comparison(report.table), f'<p class="quiet">{INTERVAL_NOTE}</p>']
    parts += [_figure(figure, folder) for figure in report.figures]
    links = ", ".join(f'<a href="{name}">{name}</a>' for name in ("metrics.json", "comparison.csv", "comparison.md"))
    parts.append(f"<footer>Numbers: {links}. Figures: SVG, PNG and CSV beside this page.</footer>")
    head = f'<meta charset="utf-8"><title>{_text(report.title)}</title><style>{_STYLE}</style>'
    viewport = '<meta name="viewport" content="width=device-width, initial-scale=1">'
    body = "\n".join(parts)
    return f'<!doctype html>\n<html lang="en"><head>{head}{viewport}</head>\n<body>\n{body}\n</body></html>\n'


def _facts(facts: Sequence[dict[str, str]]) -> str:
    headings = list(dict.fromkeys(name for row in facts for name in row))
    rows = []
    for index, row in enumerate(facts):
        cells = [_text(row.get(name, "")) for name in headings]
        cells[0] = f'<span class="swatch" style="background:{run_colour(index)}"></span>{cells[0]}'
        rows.append("".join(f"<td>{cell}</td>" for cell in cells))
    return _table([_text(name) for name in headings], rows)


def _comparison(table: Comparison) -> str:
    rows = []
    for title, members in sections(table):
        rows.append(f'<td colspan="{len(table.runs) + 1}">{_text(title)}</td>')
        rows += [f"<td>{_text(row.metric.label)}</td>" + _values(row) for row in members]
    headings = ["", *(f"{_text(run.name)}<br><small>{objective_label(run.objective)}</small>" for run in table.runs)]
    return _table(headings, rows).replace("<tr><td colspan", '<tr class="split"><td colspan')


def _values(row: ComparisonRow) -> str:
    cells = []
    for place in range(len(row.values)):
        value, interval = value_text(row, place)
        best = ' class="best"' if place in row.best else ""
        cells.append(f"<td{best}>{_text(value)} <small>{_text(interval)}</small></td>")
    return "".join(cells)


def _figure(figure: ReportFigure, folder: Path) -> str:
    # As an image and not inline: the ids inside two SVGs would clash, and nothing in one can run as a script.
    data = base64.b64encode((folder / f"{figure.stem}.svg").read_bytes()).decode()
    files = ", ".join(f'<a href="{figure.stem}.{kind}">{kind.upper()}</a>' for kind in ("svg", "png", "csv"))
    return (
        f"<h2>{_text(figure.title)}</h2><p>{_text(figure.text)}</p>"
        f'<img alt="{_text(figure.title)}" src="data:image/svg+xml;base64,{data}">'
        f'<p class="quiet">{files}. Drawn by:</p><code>{_text(figure.command)}</code>'
    )


def _plain_table(headings: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    return _table(
        [_text(name) for name in headings], ["".join(f"<td>{_text(str(cell))}</td>" for cell in row) for row in rows]
    )


def _table(headings: Sequence[str], rows: Sequence[str]) -> str:
    head = "".join(f"<th>{name}</th>" for name in headings)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(f'<tr>{row}</tr>' for row in rows)}</tbody></table>"


def _text(text: str) -> str:
    return html.escape(text)
