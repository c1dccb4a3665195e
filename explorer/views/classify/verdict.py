"""Summarize the predictions for one image in words: above the bars and under each thumbnail."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from explorer.views.classify.query import Prediction

LETTERS = ("A", "B")


class Verdict(Struct, frozen=True):
    """A text and its icon."""

    words: str  # A short sentence.
    agree: bool | None = None  # Whether the runs name the same label; None if fewer than two have answered.
    # Whether each run that has answered names the right label; empty where that is not known.
    right: tuple[bool, ...] = ()
    is_guess: bool = False  # Whether they agree on a label that one of them was not trained on.

    @property
    def mark(self) -> str:
        """An icon: a check mark or a cross only where the truth is known and holds for all runs; empty for none.

        That two runs agree on words that one was never trained on is no evidence: it has a question mark.
        """
        if self.right and len(set(self.right)) == 1:
            return "check" if self.right[0] else "x"
        if self.is_guess:
            return "circle-help"
        return {True: "equal", False: "equal-not", None: ""}[self.agree]


def verdict(
    predictions: Sequence[Prediction | None],
    names: Sequence[str],
    truth: str = "",
    *,
    apart: bool = False,
    untrained: Mapping[str, Sequence[str]] | None = None,
    why: str = "",
) -> Verdict | None:
    """Return a summary of the runs' predictions for one image; None before the first prediction.

    Args:
        predictions: Of run A and run B, or of the only run; None where one has not answered.
        truth: The right label; empty where it is not known.
        apart: Whether each is told by itself: runs of different data are not compared.
        untrained: Label -> names of the runs whose training captions lack words of it.
        why: What makes the label the right one, where the caption names others, too.
    """
    said = [(index, p) for index, p in enumerate(predictions) if p is not None]
    if not said:
        return None
    if any(prediction.shares == "none" for _, prediction in said):
        each = "; ".join(f"{names[index]}: {prediction.label}{prediction.share}" for index, prediction in said)
        return Verdict(f"{each}. A single label has no share: write another to compare it with")
    right = tuple(prediction.label == truth for _, prediction in said) if truth else ()
    judged = "" if not right else ", which is right" if all(right) else f"; true: {truth}{f' ({why})' if why else ''}"
    for label in dict.fromkeys([*(prediction.label for _, prediction in said), truth]):
        if label and (lacking := (untrained or {}).get(label)):
            judged += f". Not in the training captions of {' and '.join(lacking)}: {label}"
    if apart or len(said) < 2:
        each = "; ".join(f"{names[index]} predicts {prediction.label}" for index, prediction in said)
        return Verdict(f"{each}{judged}", right=right)
    if len({prediction.label for _, prediction in said}) == 1:
        label = said[0][1].label
        return Verdict(f"Both predict {label}{judged}", True, right, is_guess=bool((untrained or {}).get(label)))
    return Verdict(", ".join(f"{LETTERS[index]}: {p.label}" for index, p in said) + judged, False, right)


def ranking(predictions: Sequence[Prediction | None]) -> list[int]:
    """Return label indices by descending mean probability; empty if the labels differ."""
    said = [prediction for prediction in predictions if prediction is not None]
    if not said or any(prediction.labels != said[0].labels for prediction in said):
        return []
    mean = sum(prediction.probabilities for prediction in said) / len(said)
    return sorted(range(len(said[0].labels)), key=lambda index: -mean[index])
