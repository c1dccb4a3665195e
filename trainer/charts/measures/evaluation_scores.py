"""What the evaluated scores of two runs say: the better run of a score, and the answer in a sentence."""

from __future__ import annotations

import math

from trainer.charts.evaluation import EvaluationChart, EvaluationLine
from trainer.charts.measures.groups import p_text


def answer_of(chart: EvaluationChart) -> str:
    """Return which of two runs is ahead by the primary outcome of their experiment, else by R@1, and by another score.

    The other one, or the first where the outcome was not tested, is the clearest; `Scores` of one run.
    """
    tested = [line for line in chart.lines if line.difference is not None]
    if not tested:
        measured = [run.name for run in chart.runs if run.records]
        return f"Scores of {measured[0]}" if len(measured) == 1 < len(chart.runs) else "Scores"
    real = sorted((line for line in tested if winner_of(line) >= 0), key=_p)
    if not real:
        return "No score differs significantly between A and B on these pairs (p ≥ 0.05, Holm)"
    first = next((line for line in tested if line.name.rpartition("/")[2] == chart.primary), real[0])
    others = [line for line in real if line is not first]
    said = [_result_of(chart, line) for line in (first, *others[:1])]
    if more := len(others) - 1 if others else 0:
        said.append(f"{more} more score{'s differ' if more > 1 else ' differs'}")
    return f"{'. '.join(said)}."


def _result_of(chart: EvaluationChart, line: EvaluationLine) -> str:
    gap, name, winner = line.difference, line.metric.label, winner_of(line)
    assert gap is not None
    p = "" if math.isnan(gap.p) else f" (p {'' if gap.p < 0.001 else '= '}{p_text(gap.p)}, Holm)"
    if winner < 0:
        return f"{name}: no significant difference{p}"
    return f"{name}: {chart.runs[winner].label} ahead by {100 * abs(gap.paired.difference):.1f} points{p}"


def _p(line: EvaluationLine) -> float:
    return line.difference.p if line.difference is not None and not math.isnan(line.difference.p) else 1.0


def winner_of(line: EvaluationLine) -> int:
    """Return the index of the better run if the difference is significant, else -1."""
    if line.difference is None or not line.difference.real or line.metric.better == "none":
        return -1
    return int((line.difference.paired.difference > 0) == (line.metric.better == "up"))
