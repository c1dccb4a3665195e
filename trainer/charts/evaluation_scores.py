"""Evaluation results of the runs on a data set: every number with its interval, and significance tests."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, Final

from trainer.analysis.chance import chance_level
from trainer.analysis.number_text import signed, signed_ends
from trainer.analysis.progress import Progress
from trainer.charts.evaluation import (
    LETTERS,
    TASK_WORDS,
    EvaluationChart,
    EvaluationLine,
    about,
    curves,
    diagrams,
    evaluation_at,
    unmeasured_text,
)
from trainer.charts.marks import (
    Axis,
    Mark,
    Marker,
    NumberRow,
    NumberTable,
    Panel,
    XYPlot,
    axis_over,
    categories,
    heading_row,
    run_tone,
)
from trainer.charts.measures.comparison import CERTAIN_NOTE, label_of
from trainer.charts.measures.evaluation_scores import answer_of, winner_of
from trainer.charts.measures.groups import p_text
from trainer.charts.published_numbers import published_table
from trainer.charts.spec import Chart, Records, Request
from trainer.metrics import split_label
from trainer.store import Question, Workspace
from trainer.store.question import question_text

ZOOMED_BELOW: Final = 0.2
"""Share of an axis with the chance levels: intervals that fill less have an axis without them."""
NOTE: Final = (
    "B against A in points, with Newcombe's 95 % interval over shared samples, each counted once; "
    "p: exact McNemar test of the questions that one run alone answers, corrected for several scores (Holm). "
    "Bold (or *): better run, p < 0.05, these two runs only."
)


def compute(workspace: Workspace, request: Request, _settings: Any, _progress: Progress) -> EvaluationChart:
    """Return the runs' stored evaluations on the requested data set or the one measured last."""
    return evaluation_at(workspace, request)


def draw(chart: EvaluationChart, _settings: Any) -> Panel:
    """Draw shares with their intervals; A, B, their difference with its interval, and p; published results."""
    shares = [line for line in chart.lines if line.metric.percent and any(line.intervals)]
    # Rows in which every run reaches 100 % say nothing beside each other; the table has them.
    perfect = [line for line in shares if all(value == 1 for value in line.values)]
    drawn = [line for line in shares if line not in perfect] or shares
    rows: list[tuple[Mark, ...]] = [(_plot(chart, drawn),)] if shares else []
    rows.append((_table(chart),))
    if chart.published:
        rows.append((published_table(chart.published),))
    certain = any(line.question is not None and line.question.is_certain(line.name) for line in chart.lines)
    notes = (NOTE, *([CERTAIN_NOTE] if certain else [])) if len(chart.runs) > 1 else ()
    names = ", ".join(line.metric.label for line in perfect)
    every = " in every run" if len(chart.runs) > 1 else ""
    return Panel(
        title="Scores",
        head=tuple(filter(None, (about(chart), unmeasured_text(chart)))),
        rows=tuple(rows),
        notes=(*notes, *([f"Not drawn, 100 %{every}: {names}."] if len(drawn) < len(shares) else [])),
        table_notes=len(notes),
    )


def _table(chart: EvaluationChart) -> NumberTable:
    both = len(chart.runs) > 1
    names = [f"{LETTERS[run.index]} · {run.label}" for run in chart.runs]
    heads = ["n", *names, *(["B against A", "95 % interval (per row)", "p (Holm)"] if both else ["95 % interval"])]
    lines: list[NumberRow] = []
    for task, question in dict.fromkeys((line.task, line.question) for line in chart.lines):
        lines.append(heading_row(_heading(chart, task, question)))
        for line in (member for member in chart.lines if (member.task, member.question) == (task, question)):
            cells = [f"{max(line.n):,}", *(line.metric.text(value) for value in line.values)]
            cells += _difference(line) if both else [_interval(line.intervals[0])]
            winner = winner_of(line)
            best = frozenset({1 + winner} if winner >= 0 else ())
            label = label_of(_label(chart, line), line.name, question)
            lines.append(NumberRow(label, _tip(line), tuple(cells), best=best))
    return NumberTable("numbers", "Scores", tuple(heads), tuple(lines), badges=False)


def _label(chart: EvaluationChart, line: EvaluationLine) -> str:
    return line.metric.on(chart.split, max(line.n))


def _plot(chart: EvaluationChart, lines: list[EvaluationLine]) -> XYPlot:
    gap, middle, dots = 0.5 / len(chart.runs), (len(chart.runs) - 1) / 2, []
    for run in chart.runs:
        for index, line in enumerate(lines):
            value, ends = line.values[run.index], line.intervals[run.index]
            if value is not None and ends is not None:
                at = index + gap * (run.index - middle)
                low, high = (100 * end for end in ends)
                dots.append(Marker(run.label, run_tone(run.index), at, 100 * value, low=low, high=high))
    drawings = [line.question.drawing(line.name) if line.question is not None else None for line in lines]
    chances = [
        Marker("chance", "quiet", index, 100 * chance_level(*drawing), mark="diamond")
        for index, drawing in enumerate(drawings)
        if drawing is not None
    ]
    y, with_chance = _axis_over(dots), _axis_over([*dots, *chances])
    is_zoomed = bool(dots) and y.high - y.low < ZOOMED_BELOW * (with_chance.high - with_chance.low)
    if not is_zoomed:
        y, dots = with_chance, [*dots, *chances]
    sizes = {max(line.n) for line in lines}
    # One number of pairs stands above the plot, and only several at the scores.
    labels = [line.metric.label if len(sizes) == 1 else _label(chart, line) for line in lines]
    if is_zoomed:
        labels = [label_of(label, line.name, line.question) for label, line in zip(labels, lines, strict=True)]
    often, questions = Counter(labels), (question_text(line.question) for line in lines)
    names = tuple(
        f"{name}, {question}" if often[name] > 1 else name for name, question in zip(labels, questions, strict=True)
    )
    of = f"{split_label(chart.split)}, n = {sizes.pop():,} · " if len(sizes) == 1 else ""
    note = f"{of}95 % CI (Wilson)"
    marks: dict[str, Any] = {"dots": tuple(dots), "names": names, "lying": True, "note": note}
    return XYPlot("shares", answer_of(chart), categories("", names), y, **marks)


def _axis_over(dots: Sequence[Marker]) -> Axis:
    return axis_over("%", [[end for dot in dots for end in (dot.y, dot.low, dot.high)]], percent=True)


def _heading(chart: EvaluationChart, task: str, question: Question | None) -> str:
    """Return the task, its question about the split, how many pairs were trained on, and what was left out."""
    records = [record for run in chart.runs if (record := run.record(task, question)) is not None]
    left_out = [" ".join(record.details["left_out"].values()) for record in records if task == "fine_tune"]
    seen = max((record.details.get("trained_on", 0) for record in records), default=0)
    trained = f", {seen:,} of the pairs trained on" if seen else ""
    title = f"{TASK_WORDS[task]}, {split_label(chart.split)}, {question_text(question)}{trained}"
    return ". ".join([title, *dict.fromkeys(filter(None, left_out))])


def _difference(line: EvaluationLine) -> list[str]:
    if line.difference is None:
        return ["–", "", ""]
    gap = line.difference.paired
    return [signed(100 * gap.difference), signed_ends(100 * gap.low, 100 * gap.high), p_text(line.difference.p)]


def _interval(ends: tuple[float, float] | None) -> str:
    return "" if ends is None else f"{100 * ends[0]:.1f} to {100 * ends[1]:.1f}"


def _tip(line: EvaluationLine) -> str:
    sentences = [
        f"{'AB'[index]}: 95 % interval {_interval(ends)} %" for index, ends in enumerate(line.intervals[:2]) if ends
    ]
    if line.difference is not None and line.difference.mcnemar is not None:
        test = line.difference.mcnemar
        sentences.append(
            f"Right in A alone: {test.only_a:,}; in B alone: {test.only_b:,}. McNemar p = {p_text(test.p)}"
        )
    return "\n".join(sentences)


def values(chart: EvaluationChart, _settings: Any) -> list[dict[str, Any]]:
    """Return one dictionary per run: its facts, and its value of each metric for each question."""
    facts = {"dataset": chart.dataset, "split": chart.split}
    return [
        {"run": run.run, "name": run.name, "objective": run.objective, "step": run.step}
        | facts
        | {f"{_heading(chart, line.task, line.question)}: {line.name}": line.values[run.index] for line in chart.lines}
        for run in chart.runs
    ]


def records(chart: EvaluationChart, _settings: Any) -> Records:
    """Return one row per metric and run, with B minus A; then corruption curves, reliability and published numbers."""
    header = ("dataset", "split", "what", "task", "metric", "x", "run", "name", "step", "n", "value", "low", "high")
    more = ("b_minus_a", "b_minus_a_low", "b_minus_a_high", "p_mcnemar_holm", "source", "question")
    return (*header, *more), list(_rows(chart))


def _rows(chart: EvaluationChart) -> Iterator[tuple[Any, ...]]:
    facts, none = (chart.dataset, chart.split), (None,) * 5
    for line in chart.lines:
        gap = line.difference
        p = gap.p if gap and not math.isnan(gap.p) else None
        tested = (gap.paired.difference, gap.paired.low, gap.paired.high, p) if gap else (None,) * 4
        for run in chart.runs:
            low, high = line.intervals[run.index] or (None, None)
            measured = (run.run, run.name, run.step, line.n[run.index], line.values[run.index], low, high)
            yield *facts, "metric", line.task, line.name, None, *measured, *tested, None, question_text(line.question)
    for run, kind, values in curves(chart):
        record = run.tasks["robustness"]
        question = question_text(record.question)
        for severity, value in enumerate(values):
            measured = (run.run, run.name, run.step, record.n, value, None, None)
            yield *facts, "robustness", "robustness", kind, severity, *measured, *none, question
    for run, name, diagram in diagrams(chart):
        question = question_text(run.tasks["zero_shot"].question)
        for count, x, y in zip(diagram["counts"], diagram["confidence"], diagram["accuracy"], strict=True):
            measured = (run.run, run.name, run.step, count, y, None, None)
            yield *facts, "reliability", "zero_shot", name, x, *measured, *none, question
    for result in chart.published:
        facts_of = (None, result.model, result.trained, None, result.value, None, None)
        yield result.dataset, "", "published", result.task, result.metric, None, *facts_of, *none[:4], result.source, ""


CHART: Final = Chart(
    view="evaluate",
    label="Scores",
    question="How good are the runs at each task, and is the difference significant?",
    cost="Grows with the runs; numbers that are stored are read, so the size of the data does not matter.",
    method=NOTE,
    compute=compute,
    draw=draw,
    values=values,
    records=records,
)
