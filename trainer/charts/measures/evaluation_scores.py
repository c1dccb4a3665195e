"""What the evaluated scores of two runs say: the better run of a score, and the answer in a sentence."""

from __future__ import annotations

import math

from trainer.charts.evaluation import EvaluationChart, EvaluationLine
from trainer.charts.measures.groups import p_text


def answer_of(chart: EvaluationChart) -> str:
    """Return in a sentence which of two runs is ahead by the primary outcome of their experiment, else by R@1.

    By the clearest score where that was not tested; `Scores` of one run.
    """
    tested = [line for line in chart.lines if line.difference is not None]
    if not tested:
        measured = [run.name for run in chart.runs if run.records]
        return f"Scores of {measured[0]}" if len(measured) == 1 < len(chart.runs) else "Scores"
    real = sorted((line for line in tested if winner_of(line) >= 0), key=_p)
    if not real:
        return "No score differs significantly between A and B on these pairs (p ≥ 0.05, Holm)"
    first = next((line for line in tested if line.name.rpartition("/")[2] == chart.primary), real[0])
    gap, others = first.difference, len(real) - (first in real)
    assert gap is not None
    name = first.metric.label[:1].lower() + first.metric.label[1:]
    size = f"{100 * abs(gap.paired.difference):.1f} points"
    p = "" if math.isnan(gap.p) else f" (p {'' if gap.p < 0.001 else '= '}{p_text(gap.p)}, Holm)"
    also = f"; {others} more score{'s differ' if others > 1 else ' differs'}" if others else ""
    begin = f"Undecided {chart.undecided}; on" if chart.undecided else "On"
    if first not in real:
        other = also.replace("more", "other")
        return f"{begin} these pairs A and B do not differ significantly in {name}{p}{other}"
    winner = chart.runs[winner_of(first)].label
    return f"{begin} these pairs {winner} is ahead in {name} by {size}{p}{also}"


def _p(line: EvaluationLine) -> float:
    return line.difference.p if line.difference is not None and not math.isnan(line.difference.p) else 1.0


def winner_of(line: EvaluationLine) -> int:
    """Return the index of the better run if the difference is significant, else -1."""
    if line.difference is None or not line.difference.real or line.metric.better == "none":
        return -1
    return int((line.difference.paired.difference > 0) == (line.metric.better == "up"))
