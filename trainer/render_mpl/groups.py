"""Groups of runs as text, Markdown, LaTeX and CSV: mean ± deviation over seeds, bold where the difference is real."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from trainer.charts.groups import GroupLine, GroupTable
from trainer.render_mpl.files import NumberRows
from trainer.render_mpl.style import columns_of, footnote, heading, in_style, new_figure, run_color
from trainer.store.question import told
from trainer.untrusted.escaping import markdown

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NOTE: Final = (
    "Mean ± standard deviation over runs. Bold (or *): the better group where Welch's t-test over runs, adjusted for "
    "all lines (Holm), has p < 0.05. p (permutation) is unadjusted and cannot fall below its least value."
)
_ADJUSTED: Final = {"table": "all lines", "line": "the groups of a line"}


def note(table: GroupTable) -> str:
    """What the signs of the table mean."""
    words = NOTE.replace("all lines", _ADJUSTED[table.family])
    if len(table.groups) == 2:
        return words
    several = words.replace("the better group where", "better than the first group (the first: than all others) where")
    return several.partition(" p (permutation)")[0]


def as_text(table: GroupTable) -> str:
    """For a terminal."""
    lines = [["", *(f"{g.pattern} (n = {len(g.runs)})" for g in table.groups), *p_heads(table)]]
    for title, members in sections(table):
        lines.append([title])
        for line in members:
            cells = [f"{cell(line, i)} {'*' if i in line.better else ' '}" for i in range(len(table.groups))]
            lines.append([f"  {line.metric.label}", *cells, *p_cells(line)])
    widths = [max(len(line[i]) for line in lines if len(line) > 1) for i in range(len(lines[0]))]
    shown = [
        line[0]
        if len(line) == 1
        else line[0].ljust(widths[0]) + "".join("  " + part.rjust(width) for part, width in zip(line[1:], widths[1:]))
        for line in lines
    ]
    return "\n".join([*(line.rstrip() for line in shown), "", note(table)])


def as_markdown(table: GroupTable) -> str:
    """For GitHub."""
    heads = ["", *(f"{markdown(g.pattern)} (n = {len(g.runs)})" for g in table.groups)]
    heads += map(markdown, p_heads(table))
    lines = ["| " + " | ".join(heads) + " |", "|---|" + "---:|" * (len(heads) - 1)]
    for title, members in sections(table):
        lines.append(f"| **{markdown(title)}** |" + " |" * (len(heads) - 1))
        for line in members:
            cells = [f"**{cell(line, i)}**" if i in line.better else cell(line, i) for i in range(len(table.groups))]
            lines.append("| " + " | ".join([markdown(line.metric.label), *cells, *p_cells(line)]) + " |")
    return "\n".join([*lines, "", note(table).replace(" (or *)", ""), ""])


def as_latex(table: GroupTable) -> str:
    """A `tabular` of booktabs, to be pasted into a paper."""
    heads = ["", *(f"{latex(g.pattern)} ($n={len(g.runs)}$)" for g in table.groups)]
    heads += map(latex, p_heads(table))
    lines = [r"\begin{tabular}{l" + "r" * (len(heads) - 1) + "}", r"\toprule", " & ".join(heads) + r" \\"]
    for title, members in sections(table):
        lines += [r"\midrule", rf"\multicolumn{{{len(heads)}}}{{l}}{{\textit{{{latex(title)}}}}} \\"]
        for line in members:
            cells = [latex(cell(line, i)) for i in range(len(table.groups))]
            cells = [rf"\textbf{{{text}}}" if i in line.better else text for i, text in enumerate(cells)]
            lines.append(" & ".join([latex(line.metric.label), *cells, *map(latex, p_cells(line))]) + r" \\")
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", f"% {note(table)}", ""])


@in_style
def draw(table: GroupTable) -> Figure:
    """Every share of the table on one axis: a dot a run, mean and deviation of a group, a star where it is better."""
    shown = [line for line in table.lines if line.metric.percent]
    names = [f"{g.pattern} (n = {len(g.runs)})" for g in table.groups]
    columns = columns_of(names)
    of_lines = max(0.3, 0.12 * len(names)) * max(len(shown), 1)
    figure = new_figure(6.4, 1.5 + of_lines + 0.17 * -(-len(names) // columns))
    axes = figure.subplots()
    gap = 0.5 / len(table.groups)
    for place, line in enumerate(reversed(shown)):
        for number, values in enumerate(line.values):
            y = place + gap * ((len(table.groups) - 1) / 2 - number)
            numbers, color = 100 * np.array(values), run_color(number)
            if not len(numbers):
                continue
            axes.plot(numbers, [y] * len(numbers), "o", color=color, alpha=0.35, markersize=2.4, markeredgewidth=0)
            spread = float(numbers.std(ddof=1)) if len(numbers) > 1 else 0.0
            axes.errorbar(numbers.mean(), y, xerr=spread, fmt="D", color=color, markersize=3.2, linewidth=1)
            if number in line.better:
                axes.annotate("*", (numbers.mean() + spread, y), (5, -4), textcoords="offset points", color=color)
    several = len({(line.dataset, line.split) for line in shown}) > 1
    axes.set_yticks(range(len(shown)), _names(shown, several)[::-1])
    axes.set_xlabel("%")
    axes.grid(axis="x")
    from matplotlib.lines import Line2D

    handles = [Line2D([], [], color=run_color(i), marker="D", markersize=3.2) for i in range(len(table.groups))]
    figure.legend(handles, names, loc="outside upper left", ncols=columns, borderaxespad=0.7)
    if shown and not several:
        heading(axes, f"{shown[0].dataset} {shown[0].split}", "mean ± deviation over runs, dots: runs")
    footnote(figure, f"*: Welch's t-test over runs, adjusted for {_ADJUSTED[table.family]} (Holm), has p < 0.05.")
    return figure


def _names(shown: Sequence[GroupLine], several: bool) -> list[str]:
    """Of each line: its measure, the split where there are several, the question where others have the same name."""
    names = [f"{line.metric.label}, {line.dataset} {line.split}" if several else line.metric.label for line in shown]
    often = Counter(names)
    return [
        f"{name}, {told(line.question)}" if often[name] > 1 else name for name, line in zip(names, shown, strict=True)
    ]


def as_rows(table: GroupTable) -> NumberRows:
    """One row a metric, split, question and group."""
    header = ("dataset", "split", "metric", "group", "runs", "mean", "std", "difference", "low", "high")
    return NumberRows((*header, "p_welch", "p_welch_holm", "p_permutation", "best", "question"), _rows(table))


def as_values(table: GroupTable) -> dict[str, Any]:
    """For JSON: the groups, and one entry a metric and split with every run's value."""
    return {
        "groups": [{"pattern": g.pattern, "runs": list(g.runs)} for g in table.groups],
        "rows": [
            {
                "dataset": line.dataset,
                "split": line.split,
                "question": asdict(line.question) if line.question else None,
                "metric": line.name,
                "values": [list(group) for group in line.values],
                "tests": [vars(test) if test else None for test in line.tests],
                "p_holm": list(line.p),
                "better": sorted(line.better),
            }
            for line in table.lines
        ],
    }


def cell(line: GroupLine, place: int) -> str:
    """`12.3 ± 0.4 %`: mean and deviation as people read them; a dash without a value."""
    values = line.values[place]
    if not values:
        return "–"
    scale, digits = (100, 1) if line.metric.percent else (1, line.metric.digits)
    unit = " %" if line.metric.percent else ""
    mean = f"{scale * float(np.mean(values)):.{digits}f}"
    spread = f" ± {scale * float(np.std(values, ddof=1)):.{digits}f}" if len(values) > 1 else ""
    return f"{mean}{spread}{unit}"


def latex(text: str) -> str:
    """The text with LaTeX's own signs escaped."""
    signs = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "±": r"$\pm$"}
    signs |= {"–": "--", "−": "$-$", "<": "$<$", ">": "$>$"} | {sign: f"\\{sign}" for sign in "&%$#_{}"}
    return "".join(signs.get(sign, sign) for sign in text)


def p_text(p: float) -> str:
    """A p-value with two digits that count; a dash without a test."""
    if np.isnan(p):
        return "–"
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def p_heads(table: GroupTable) -> list[str]:
    """Heads of the columns that `p_cells` fills."""
    if len(table.groups) == 2:
        return ["p (Welch, Holm)", "p (permutation)"]
    return [f"p (Welch, Holm) {group.pattern}" for group in table.groups[1:]]


def p_cells(line: GroupLine) -> list[str]:
    """Of two groups both tests; of more Welch's of each against the first."""
    if len(line.tests) != 1:
        return [p_text(p) for p in line.p]
    return [p_text(line.p[0]), p_text(line.tests[0].permutation if line.tests[0] else float("nan"))]


def sections(table: GroupTable) -> Iterator[tuple[str, list[GroupLine]]]:
    """Title and lines of each question, in order; the title says data, split and what was asked."""
    for key in dict.fromkeys((line.dataset, line.split, line.question) for line in table.lines):
        members = [line for line in table.lines if (line.dataset, line.split, line.question) == key]
        yield f"{key[0]} {key[1]}, {told(key[2], task=True)}", members


def _rows(table: GroupTable) -> Iterator[tuple[Any, ...]]:
    for line in table.lines:
        for place, group in enumerate(table.groups):
            values = line.values[place]
            spread = float(np.std(values, ddof=1)) if len(values) > 1 else None
            mean = float(np.mean(values)) if values else None
            facts = (line.dataset, line.split, line.name, group.pattern, len(values), mean, spread)
            yield *facts, *_test_cells(line, place), int(place in line.better), told(line.question, task=True)


def _test_cells(line: GroupLine, place: int) -> tuple[float | None, ...]:
    """The test of this group against the first; of the first, where there are but two, the second's."""
    number = 0 if len(line.tests) == 1 else place - 1
    test = line.tests[number] if number >= 0 else None
    if test is None:
        return (None,) * 6
    return test.difference, test.low, test.high, test.welch, line.p[number], test.permutation
