"""The comparison table as text, Markdown, CSV and plain values for JSON."""

from __future__ import annotations

import textwrap
import unicodedata
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from trainer.charts import objective_label
from trainer.charts.comparison import Comparison, ComparisonRow
from trainer.render_mpl.files import NumberRows
from trainer.store.question import told
from trainer.untrusted.escaping import markdown

INTERVAL_NOTE = (
    "In brackets: 95 % interval of the share (Wilson) over the pairs of the split; in retrieval over the distinct "
    "pictures or captions that ask. "
    "Where the intervals overlap, the difference may be chance."
)


def as_text(table: Comparison) -> str:
    """The table for a terminal; `*` marks the best."""
    lines = [["", *(run.name for run in table.runs)], ["", *_subtitles(table)]]
    for title, rows in sections(table):
        lines += [[], [title]]
        for row in rows:
            marks = ["*" if i in row.best else " " for i in range(len(row.values))]
            lines.append([f"  {row.metric.label}", *(f"{_cell(row, i)} {marks[i]}" for i in range(len(row.values)))])
    full = [line for line in lines if len(line) > 1]
    widths = [max(_width(line[i]) for line in full) for i in range(len(table.runs) + 1)]
    printed = [
        line[0].ljust(widths[0]) + "".join("  " + _right(cell, width) for cell, width in zip(line[1:], widths[1:]))
        if len(line) > 1
        else "".join(line)
        for line in lines
    ]
    return "\n".join(line.rstrip() for line in [*printed, "", *textwrap.wrap(f"* best. {INTERVAL_NOTE}", 100)])


def as_markdown(table: Comparison) -> str:
    """The table in GitHub's Markdown; the best is bold."""
    names = " | ".join(markdown(run.name) for run in table.runs)
    lines = [f"| | {names} |", "|---|" + "---:|" * len(table.runs)]
    lines.append("| " + " | ".join(["", *_subtitles(table)]) + " |")
    for title, rows in sections(table):
        lines.append(f"| **{markdown(title)}** |" + " |" * len(table.runs))
        for row in rows:
            cells = [f"**{_cell(row, i)}**" if i in row.best else _cell(row, i) for i in range(len(row.values))]
            lines.append(f"| {markdown(row.metric.label)} | " + " | ".join(cells) + " |")
    return "\n".join([*lines, "", f"Bold: best. {INTERVAL_NOTE}", ""])


def as_latex(table: Comparison) -> str:
    """A `tabular` of booktabs, to be pasted into a paper; the best is bold."""
    from trainer.render_mpl.groups import latex

    heads = " & ".join(["", *(latex(run.name) for run in table.runs)])
    lines = [r"\begin{tabular}{l" + "r" * len(table.runs) + "}", r"\toprule", heads + r" \\"]
    lines.append(" & ".join(["", *(latex(text) for text in _subtitles(table))]) + r" \\")
    for title, rows in sections(table):
        lines += [r"\midrule", rf"\multicolumn{{{len(table.runs) + 1}}}{{l}}{{\textit{{{latex(title)}}}}} \\"]
        for row in rows:
            cells = [latex(_cell(row, i)) for i in range(len(row.values))]
            cells = [rf"\textbf{{{text}}}" if i in row.best else text for i, text in enumerate(cells)]
            lines.append(" & ".join([latex(row.metric.label), *cells]) + r" \\")
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", f"% Bold: best. {INTERVAL_NOTE}", ""])


def as_rows(table: Comparison) -> NumberRows:
    """One row a metric, split, question and run; shares are in [0, 1]."""
    header = ("dataset", "split", "metric", "run", "name", "objective", "step", "n", "value", "low", "high", "best")
    return NumberRows((*header, "question"), _rows(table))


def as_values(table: Comparison) -> dict[str, Any]:
    """The table for JSON: the runs, and one entry a metric and split with a value for each run."""
    return {
        "runs": [{"run": r.run, "name": r.name, "objective": r.objective, "step": r.step} for r in table.runs],
        "rows": [
            {
                "dataset": row.dataset,
                "split": row.split,
                "question": asdict(row.question) if row.question else None,
                "metric": row.name,
                "better": row.metric.better,
                "n": list(row.n),
                "values": list(row.values),
                "intervals": [None if i is None else list(i) for i in row.intervals],
                "best": [table.runs[i].run for i in row.best],
            }
            for row in table.rows
        ],
    }


def _rows(table: Comparison) -> Iterator[tuple[Any, ...]]:
    for row in table.rows:
        for place, run in enumerate(table.runs):
            low, high = row.intervals[place] or (None, None)
            facts = (row.dataset, row.split, row.name, run.run, run.name, run.objective, run.step)
            yield (
                *facts,
                row.n[place],
                row.values[place],
                low,
                high,
                int(place in row.best),
                told(row.question, task=True),
            )


def sections(table: Comparison) -> Iterator[tuple[str, list[ComparisonRow]]]:
    """Title and rows of each question, in order; the title says data, split and what was asked."""
    for key in dict.fromkeys((row.dataset, row.split, row.question) for row in table.rows):
        rows = [row for row in table.rows if (row.dataset, row.split, row.question) == key]
        sizes = sorted({n for row in rows for n in row.n if n is not None})
        counted = f", n = {' / '.join(f'{n:,}' for n in sizes)} pairs" if sizes and key[2] is None else ""
        yield f"{key[0]} {key[1]}{counted}, {told(key[2], task=True)}", rows


def _subtitles(table: Comparison) -> list[str]:
    return [f"{objective_label(run.objective)}, step {run.step:,}" for run in table.runs]


def value_text(row: ComparisonRow, place: int) -> tuple[str, str]:
    """The value of the run at `place` as people read it, and its interval in brackets, or empty."""
    interval = row.intervals[place]
    bracket = "" if interval is None else f"[{100 * interval[0]:.1f}, {100 * interval[1]:.1f}]"
    return row.metric.text(row.values[place]), bracket


def _cell(row: ComparisonRow, place: int) -> str:
    return " ".join(part for part in value_text(row, place) if part)


def _width(text: str) -> int:
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def _right(text: str, width: int) -> str:
    return " " * (width - _width(text)) + text
