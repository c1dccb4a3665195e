"""A report as one self-contained HTML file: figures, the comparison table, and differences of the runs."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any, Final

from trainer.charts import objective_label
from trainer.charts.measures.comparison import Comparison, ComparisonRow, sections, value_text
from trainer.render_mpl.style import HAIRLINE, INK, QUIET, run_color


@dataclass(frozen=True)
class ReportFigure:
    """A figure of the report."""

    stem: str  # Name of its files without ending.
    title: str
    text: str  # What the figure shows and how it may be read.
    command: str


@dataclass(frozen=True)
class LiveSection:
    """A part of the page that a script draws."""

    body: str  # Its HTML, with the script.
    style: str  # More of the style sheet.
    policy: str  # What the page may run, as its Content-Security-Policy says it.


@dataclass(frozen=True)
class Report:
    """Everything the page shows."""

    title: str
    # One row a run: name, objective, data, steps, training time and whatever else, by heading.
    facts: Sequence[dict[str, str]]
    # A heading, then a field of the configuration and its value in each run or arm; empty where none differs.
    differences: Sequence[tuple[str, ...]]
    table: Comparison
    figures: Sequence[ReportFigure]
    made: str  # When and by which versions, a sentence.
    left_out: Sequence[tuple[str, str]] = ()  # Figures that could not be drawn, and why.
    live: LiveSection | None = None  # Maps to zoom into; None: the page runs nothing.
    verdict: str = ""  # HTML of the verdict on the experiment that the runs are of; empty where there is none.


MOST_CARRIED: Final = 4_000_000
"""Bytes of a table up to which the page carries it along."""

STYLE: Final = f"""
:root {{ color-scheme: light dark; --ink: {INK}; --quiet: {QUIET}; --line: {HAIRLINE}; --ground: #fff; --well: #f5f6f8;
  --link: #00659e; }}
@media (prefers-color-scheme: dark) {{ :root {{ --ink: #e7e9ee; --quiet: #a2aab8; --line: #3a404b; --ground: #15171c;
  --well: #22262e; --link: #6cb9e8; }} }}
body {{ font: 15px/1.5 Inter, "DejaVu Sans", system-ui, sans-serif; color: var(--ink); background: var(--ground);
  max-width: 1000px; margin: 48px auto; padding: 0 24px; }}
h1 {{ font-size: 26px; margin: 0 0 4px; overflow-wrap: anywhere; }}
h2 {{ font-size: 18px; margin: 48px 0 8px; }}
p {{ margin: 4px 0 12px; }}
.quiet, footer, figcaption.quiet {{ color: var(--quiet); font-size: 13px; }}
.wide {{ overflow-x: auto; }}
table {{ border-collapse: collapse; font-size: 14px; font-variant-numeric: tabular-nums; width: 100%; }}
th, td {{ padding: 5px 12px 5px 0; border-bottom: 1px solid var(--line); text-align: right; vertical-align: top; }}
th:first-child, td:first-child {{ text-align: left; }}
th {{ font-weight: 600; }}
tbody th {{ font-weight: 400; }}
tr.split th {{ padding-top: 18px; font-weight: 600; text-align: left; }}
td.best {{ font-weight: 600; }}
td small {{ color: var(--quiet); font-weight: 400; }}
.swatch {{ display: inline-block; width: 10px; height: 10px; border-radius: 2px; margin-right: 6px; }}
figure {{ margin: 0; }}
img {{ width: 100%; box-sizing: border-box; background: #fff; border-radius: 6px; }}
@media (prefers-color-scheme: dark) {{ img {{ padding: 16px; }} }}
code {{ display: block; background: var(--well); border-radius: 6px; padding: 8px 12px; font-size: 12.5px;
  overflow-wrap: anywhere; }}
a {{ color: var(--link); }}
a:focus-visible, .wide:focus-visible {{ outline: 2px solid var(--link); outline-offset: 2px; }}
.skip {{ position: absolute; left: -999px; }}
.skip:focus {{ left: 24px; top: 8px; }}
footer {{ margin: 48px 0 24px; border-top: 1px solid var(--line); padding-top: 12px; }}
@media print {{
  :root {{ color-scheme: light; --ink: {INK}; --quiet: {QUIET}; --line: {HAIRLINE}; --ground: #fff; --well: #f5f6f8; }}
  body {{ margin: 0; max-width: none; font-size: 11pt; }}
  figure, tr {{ break-inside: avoid; }} h2 {{ break-after: avoid; }} img {{ padding: 0; }}
  a {{ color: inherit; text-decoration: none; }} .skip {{ display: none; }}
}}
"""

POLICY: Final = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
"""The page may load nothing and run nothing, wherever it is opened."""


def page(report: Report, folder: Path) -> str:
    """Return the page as one file, with figures and numbers embedded from their files in `folder`."""
    parts = ['<a class="skip" href="#main">Skip to the numbers</a>', '<main id="main">']
    parts += [f"<h1>{escape(report.title)}</h1>", f'<p class="quiet">{escape(report.made)}</p>']
    parts += [report.verdict, "<h2>Runs</h2>", _facts(report.facts)]
    if report.live:
        parts.append(report.live.body)
    if report.differences:
        heading, *lines = report.differences
        parts += ["<h2>What differs</h2>", _plain_table("What differs", heading, lines)]
    numbers = _comparison(report.table)
    if report.verdict:  # each arm as mean and range stands above
        numbers = f"<details><summary>Every run</summary>{numbers}</details>"
    over_seeds = "" if report.verdict else report.table.over_seeds
    parts += [
        "<h2>Held-out numbers</h2>",
        *([f"<p>{escape(over_seeds)}</p>"] if over_seeds else []),
        numbers,
        *(f"<p>{escape(warning)}</p>" for warning in report.table.warnings),
        f'<p class="quiet">{escape(report.table.notes)}</p>',
    ]
    parts += [_figure(figure, folder) for figure in report.figures]
    if report.left_out:
        rows = [(name, why) for name, why in report.left_out]
        parts += ["<h2>Left out</h2>", _plain_table("Left out", ["Figure", "Why"], rows)]
    links = [_download(folder / name, name) for name in ("metrics.json", "comparison.csv", "comparison.md")]
    parts.append(f"</main><footer>All numbers: {', '.join(link for link in links if link)}.</footer>")
    policy = f"{POLICY}; {report.live.policy}" if report.live else POLICY
    head = f'<meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="{policy}">'
    head += '<meta name="viewport" content="width=device-width, initial-scale=1">'
    head += f"<title>{escape(report.title)}</title><style>{STYLE}{report.live.style if report.live else ''}</style>"
    body = "\n".join(parts)
    return f'<!doctype html>\n<html lang="en"><head>{head}</head>\n<body>\n{body}\n</body></html>\n'


def _facts(facts: Sequence[dict[str, str]]) -> str:
    headings = list(dict.fromkeys(name for row in facts for name in row))
    rows = []
    for index, row in enumerate(facts):
        first, *cells = [escape(row.get(name, "")) for name in headings]
        swatch = f'<span class="swatch" style="background:{run_color(index)}"></span>'
        rows.append(_heading_cell(f"{swatch}{first}") + "".join(f"<td>{cell}</td>" for cell in cells))
    return _table("Runs", [escape(name) for name in headings], rows)


def _comparison(table: Comparison) -> str:
    rows = []
    for title, members in sections(table):
        rows.append(f'<th scope="colgroup" colspan="{len(table.runs) + 1}">{escape(title)}</th>')
        rows += [_heading_cell(escape(row.label)) + _values(row) for row in members]
    labels = ((run.name, objective_label(run.objective)) for run in table.runs)
    names = [
        escape(name) if name.startswith(label) else f"{escape(name)} <br><small>{escape(label)}</small>"
        for name, label in labels
    ]
    html = _table("Held-out numbers", ["Metric", *names], rows)
    return html.replace('<tr><th scope="colgroup"', '<tr class="split"><th scope="colgroup"')


def _values(row: ComparisonRow) -> str:
    cells = []
    for index in range(len(row.values)):
        value, interval = value_text(row, index)
        best = ' class="best"' if index in row.best else ""
        cells.append(f"<td{best}>{escape(value)} <small>{escape(interval)}</small></td>")
    return "".join(cells)


def _figure(figure: ReportFigure, folder: Path) -> str:
    # As an image and not inline: the ids inside two SVGs would clash, and nothing in one can run as a script.
    data = base64.b64encode((folder / f"{figure.stem}.svg").read_bytes()).decode()
    numbers = _download(folder / f"{figure.stem}.csv", "numbers as CSV")
    alt = escape(f"{figure.title}. {figure.text}")
    return (
        f"<h2>{escape(figure.title)}</h2><figure><p>{escape(figure.text)}</p>"
        f'<img alt="{alt}" src="data:image/svg+xml;base64,{data}">'
        f'<figcaption class="quiet">{f"Its {numbers}. " if numbers else ""}Drawn by:</figcaption></figure>'
        f"<code>{escape(figure.command)}</code>"
    )


def _download(file: Path, label: str) -> str:
    """Return a link that embeds the file; nothing if it is too large."""
    if not file.is_file() or file.stat().st_size > MOST_CARRIED:
        return ""
    data = base64.b64encode(file.read_bytes()).decode()
    kind = {".csv": "text/csv", ".json": "application/json"}.get(file.suffix, "text/plain")
    return f'<a download="{escape(file.name)}" href="data:{kind};charset=utf-8;base64,{data}">{escape(label)}</a>'


def _plain_table(name: str, headings: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    cells = [
        _heading_cell(escape(str(row[0]))) + "".join(f"<td>{escape(str(cell))}</td>" for cell in row[1:])
        for row in rows
    ]
    return _table(name, [escape(heading) for heading in headings], cells)


def _heading_cell(html: str) -> str:
    return f'<th scope="row">{html}</th>'


def _table(name: str, headings: Sequence[str], rows: Sequence[str]) -> str:
    head = "".join(f'<th scope="col">{heading}</th>' for heading in headings)
    body = "".join(f"<tr>{row}</tr>" for row in rows)
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    return f'<div class="wide" role="region" tabindex="0" aria-label="{escape(name)}">{table}</div>'
