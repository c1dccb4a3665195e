"""Summarize the predictions for one image in words: above the bars and under each thumbnail."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from explorer.views.classify.query import Prediction

LETTERS = ("A", "B")


@dataclass(frozen=True)
class Verdict:
    """A text and its icon.

    Attributes:
        words: A short sentence.
        agree: Whether the runs name the same label; None if fewer than two have answered.
    """

    words: str
    agree: bool | None = None


def verdict(predictions: Sequence[Prediction | None], names: Sequence[str]) -> Verdict | None:
    """Return a summary of the runs' predictions for one image; None before the first prediction.

    Args:
        predictions: Of run A and run B, or of the only run; None where one has not answered.
        names: Of the runs.
    """
    said = [(index, p) for index, p in enumerate(predictions) if p is not None]
    if not said:
        return None
    if any(prediction.shares == "none" for _, prediction in said):
        each = "; ".join(f"{names[index]}: {prediction.words}" for index, prediction in said)
        return Verdict(f"{each}. A single label has no share: write another to compare it with")
    if len(said) < 2:
        index, prediction = said[0]
        return Verdict(f"{names[index]} predicts {prediction.label}")
    if len({prediction.label for _, prediction in said}) == 1:
        return Verdict(f"Both predict {said[0][1].label}", True)
    return Verdict(", ".join(f"{LETTERS[index]}: {prediction.label}" for index, prediction in said), False)


def ranking(predictions: Sequence[Prediction | None]) -> list[int]:
    """Return label indices by descending mean probability; empty if the labels differ."""
    said = [prediction for prediction in predictions if prediction is not None]
    if not said or any(prediction.labels != said[0].labels for prediction in said):
        return []
    mean = sum(prediction.probabilities for prediction in said) / len(said)
    return sorted(range(len(said[0].labels)), key=lambda index: -mean[index])
