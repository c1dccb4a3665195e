"""The numbers of an evaluation as a table: what the window shows, and the same as Markdown and LaTeX."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from trainer.charts.evaluation import EvaluatedRun, EvaluationChart, EvaluationLine
from trainer.render_mpl.groups import latex, p_text
from trainer.store import Question
from trainer.store.question import told
from trainer.untrusted.escaping import markdown

TASK_WORDS: Final = {
    "zero_shot": "Zero-shot",
    "retrieval": "Retrieval",
    "linear_probe": "Linear probe",
    "few_shot": "Few-shot",
    "fine_tune": "Fine-tuning",
    "knn": "Neighbors",
    "robustness": "Robustness",
}
NOTE: Final = (
    "B - A in points, with Newcombe's 95 % interval over the questions both answered, each counted once; "
    "p is McNemar's, adjusted for the rows of the table (Holm). Bold: the better run where the difference is real."
)


@dataclass(frozen=True)
class EvaluationTable:
    """Cells as people read them.

    Attributes:
        heads: Of the columns.
        rows: Cells; a row of one cell is a heading.
        tips: Of each row, what there is no room for.
        strong: Row and column of the better value, where the difference is real.
    """

    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    tips: tuple[str, ...]
    strong: frozenset[tuple[int, int]]


def table(chart: EvaluationChart) -> EvaluationTable:
    """A, B, their difference with its interval, and p; of a single run its own interval."""
    both = len(chart.runs) > 1
    heads = ["Measure", "n", *("ABCDEFGH"[run.index] for run in chart.runs)]
    heads += ["B − A", "95 % interval", "p"] if both else ["95 % interval"]
    rows: list[tuple[str, ...]] = []
    tips: list[str] = []
    strong: set[tuple[int, int]] = set()
    for task, question in dict.fromkeys((line.task, line.question) for line in chart.lines):
        rows.append((_heading(chart, task, question),))
        tips.append("")
        for line in (one for one in chart.lines if (one.task, one.question) == (task, question)):
            cells = [line.metric.label, f"{max(line.n):,}", *(line.metric.text(value) for value in line.values)]
            cells += _difference(line) if both else [_interval(line.intervals[0])]
            if (winner := _winner(line)) >= 0:
                strong.add((len(rows), 2 + winner))
            rows.append(tuple(cells))
            tips.append(_tip(line))
    return EvaluationTable(tuple(heads), tuple(rows), tuple(tips), frozenset(strong))


def as_markdown(chart: EvaluationChart) -> str:
    """For GitHub."""
    made = table(chart)
    lines = ["| " + " | ".join(["", *made.heads[1:]]) + " |", "|---|" + "---:|" * (len(made.heads) - 1)]
    for place, row in enumerate(made.rows):
        if len(row) == 1:
            lines.append(f"| **{markdown(row[0])}** |" + " |" * (len(made.heads) - 1))
            continue
        cells = [markdown(cell) for cell in row]
        cells = [f"**{cell}**" if (place, column) in made.strong else cell for column, cell in enumerate(cells)]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join([f"{markdown(about(chart))}", "", *lines, "", *([NOTE, ""] if len(chart.runs) > 1 else [])])


def as_latex(chart: EvaluationChart) -> str:
    """A `tabular` of booktabs, to be pasted into a paper."""
    made = table(chart)
    lines = [r"\begin{tabular}{l" + "r" * (len(made.heads) - 1) + "}", r"\toprule"]
    lines.append(" & ".join(["", *(_latex(head) for head in made.heads[1:])]) + r" \\")
    for place, row in enumerate(made.rows):
        if len(row) == 1:
            lines += [r"\midrule", rf"\multicolumn{{{len(made.heads)}}}{{l}}{{\textit{{{_latex(row[0])}}}}} \\"]
            continue
        cells = [_latex(cell) for cell in row]
        cells = [rf"\textbf{{{cell}}}" if (place, column) in made.strong else cell for column, cell in enumerate(cells)]
        lines.append(" & ".join(cells) + r" \\")
    told = [f"% {words}" for words in (about(chart), NOTE)]
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", *told, ""])


def about(chart: EvaluationChart) -> str:
    """Which runs answered, on what data, and what they were asked."""
    runs = ", ".join(f"{'ABCDEFGH'[run.index]} {run.name} (step {run.step:,})" for run in chart.runs)
    return f"{runs}. {asked(chart)}"


def asked(chart: EvaluationChart, *, place: bool = True) -> str:
    """Data and split (unless `place` is false), samples and the suite of classes, of all runs alike or of each."""
    suites = list(dict.fromkeys(words for run in chart.runs if (words := _suite(run))))
    sizes = list(dict.fromkeys(words for run in chart.runs if (words := _size(run))))
    where = [f"{chart.dataset}, split {chart.split}"] if place else []
    words = [*where, *([" / ".join(sizes)] if sizes else []), *suites]
    return ". ".join(words) + "." if words else ""


def _suite(run: EvaluatedRun) -> str:
    """Of the task that asked for classes, whichever of them it was."""
    record = next((run.tasks[task] for task in ("zero_shot", "linear_probe", "knn") if task in run.tasks), None)
    if record is None or not record.details.get("suite"):
        return ""
    details = record.details
    templates = f" × {len(details['templates'])} templates" if details.get("templates") else ""
    by = ", by the words of their names" if details.get("by") == "words" else ""
    return f"Suite {details['suite']}: {len(details['classes'])} classes{templates}{by}"


def _size(run: EvaluatedRun) -> str:
    record = next(iter(run.tasks.values()), None)
    if record is None:
        return ""
    seen = record.details.get("trained_on", 0)
    told = f", {seen:,} of them trained on" if seen else ""
    return f"n = {record.n:,}" + (f" of {record.whole:,}" if record.n < record.whole else "") + told


def _heading(chart: EvaluationChart, task: str, question: Question | None) -> str:
    """The task, what was asked of the split, and what of it was left out."""
    records = [record for run in chart.runs if (record := run.record(task, question)) is not None]
    left_out = [" ".join(record.details["left_out"].values()) for record in records if task == "fine_tune"]
    words = f"{TASK_WORDS[task]}, {chart.split}, {told(question)}"
    return ". ".join([words, *dict.fromkeys(filter(None, left_out))])


def _difference(line: EvaluationLine) -> list[str]:
    if line.difference is None:
        return ["–", "", ""]
    gap = line.difference.paired
    points = f"{100 * gap.difference:+.1f}".replace("-", "−")
    return [points, _interval((gap.low, gap.high)), p_text(line.difference.p)]


def _interval(ends: tuple[float, float] | None) -> str:
    return "" if ends is None else f"{100 * ends[0]:.1f} to {100 * ends[1]:.1f}".replace("-", "−")


def _winner(line: EvaluationLine) -> int:
    """Place of the better run where the difference is real, else -1."""
    if line.difference is None or not line.difference.real or line.metric.better == "none":
        return -1
    return int((line.difference.paired.difference > 0) == (line.metric.better == "up"))


def _tip(line: EvaluationLine) -> str:
    words = [
        f"{'AB'[place]}: 95 % interval {_interval(ends)} %" for place, ends in enumerate(line.intervals[:2]) if ends
    ]
    if line.difference is not None and line.difference.mcnemar is not None:
        test = line.difference.mcnemar
        words.append(f"Right in A alone: {test.only_a:,}; in B alone: {test.only_b:,}. McNemar p = {p_text(test.p)}")
    return "\n".join(words)


def _latex(text: str) -> str:
    return latex(text).replace("×", r"$\times$")
