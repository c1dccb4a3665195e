"""The tables of a panel as text for a terminal, Markdown and LaTeX, followed by its notes."""

from __future__ import annotations

import textwrap
import unicodedata
from collections.abc import Callable, Iterator
from typing import Final

from trainer.charts import ChartError
from trainer.charts.marks import NumberTable, Panel
from trainer.untrusted.escaping import markdown

WIDE: Final = 100


def as_text(panel: Panel) -> str:
    """Format the tables for a terminal; `*` marks what is better."""
    comments = ["\n".join(textwrap.wrap(line, WIDE)) for line in (*panel.warnings, *panel.commands, *panel.notes)]
    return "\n\n".join([*panel.head, *_titled(panel, _text, "{}"), *comments])


def as_markdown(panel: Panel) -> str:
    """Format the tables as Markdown for GitHub; what is better is bold."""
    comments = [markdown(line) for line in (*panel.warnings, *panel.commands, *panel.notes)]
    tables = _titled(panel, _markdown, "**{}**", markdown)
    return "\n\n".join([*map(markdown, panel.head), *tables, *comments]) + "\n"


def as_latex(panel: Panel) -> str:
    """Format each table as a booktabs `tabular` for a paper; what is better is bold."""
    comments = [f"% {line}" for line in (*panel.head, *panel.warnings, *panel.notes)]
    return "\n".join([*_titled(panel, _latex, "% {}"), *comments, ""])


def latex(text: str) -> str:
    """Escape LaTeX's special characters."""
    signs = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "±": r"$\pm$"}
    signs |= {"–": "--", "−": "$-$", "<": "$<$", ">": "$>$", "×": r"$\times$", "≥": r"$\geq$"}
    signs |= {sign: f"\\{sign}" for sign in "&%$#_{}"} | {
        "[": "{[}"
    }  # at the start of a row it belongs to the line break
    return "".join(signs.get(sign, sign) for sign in text)


def _titled(
    panel: Panel, formatted: Callable[[NumberTable], str], title: str, escaped: Callable[[str], str] = str
) -> Iterator[str]:
    """Yield the tables, each after its title where there are several."""
    tables = _tables(panel)
    for table in tables:
        if len(tables) > 1 and table.title:
            yield title.format(escaped(table.title))
        yield formatted(table)


def _tables(panel: Panel) -> list[NumberTable]:
    tables = [mark for mark in panel.marks if isinstance(mark, NumberTable)]
    if not tables:
        raise ChartError(f"{panel.title} has no table. Choose a name that ends in .csv or .svg.")
    return tables


def _text(table: NumberTable) -> str:
    columns = range(len(table.columns))
    lines = [["", *(f"{name}  " for name in table.columns)]]
    for line in table.lines:
        marks = ["*" if index in line.best else " " for index in columns]
        cells = [f"{line.text(index)} {marks[index]}" for index in columns] if line.values else []
        lines.append([f"  {line.words}" if cells else line.words, *cells])
    full_lines = [line for line in lines if len(line) > 1]
    widths = [max(_width(line[index]) for line in full_lines) for index in range(len(table.columns) + 1)]
    return "\n".join(_padded(line, widths).rstrip() for line in lines)


def _padded(line: list[str], widths: list[int]) -> str:
    if len(line) == 1:
        return f"\n{line[0]}"
    numbers = "".join("  " + " " * (width - _width(cell)) + cell for cell, width in zip(line[1:], widths[1:]))
    return line[0] + " " * (widths[0] - _width(line[0])) + numbers


def _markdown(table: NumberTable) -> str:
    n = len(table.columns)
    lines = [f"| | {' | '.join(map(markdown, table.columns))} |", "|---|" + "---:|" * n]
    for line in table.lines:
        if not line.values:
            lines.append(f"| **{markdown(line.words)}** |" + " |" * n)
            continue
        cells = [markdown(line.text(index)) for index in range(n)]
        cells = [f"**{cell}**" if index in line.best else cell for index, cell in enumerate(cells)]
        lines.append("| " + " | ".join([markdown(line.words), *cells]) + " |")
    return "\n".join(lines)


def _latex(table: NumberTable) -> str:
    n = len(table.columns)
    lines = [r"\begin{tabular}{l" + "r" * n + "}", r"\toprule", " & ".join(["", *map(latex, table.columns)]) + r" \\"]
    lines += [r"\midrule"] if table.lines and table.lines[0].values else []  # a group draws its own
    for line in table.lines:
        if not line.values:
            lines += [r"\midrule", rf"\multicolumn{{{n + 1}}}{{l}}{{\textit{{{latex(line.words)}}}}} \\"]
            continue
        cells = [latex(line.text(index)) for index in range(n)]
        cells = [rf"\textbf{{{cell}}}" if index in line.best else cell for index, cell in enumerate(cells)]
        lines.append(" & ".join([latex(line.words), *cells]) + r" \\")
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}"])


def _width(text: str) -> int:
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)
