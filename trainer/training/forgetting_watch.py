"""Says when a fine-tuning has forgotten more of its reference set than chance explains."""

from __future__ import annotations

from pathlib import Path
from typing import Final, Literal, get_args

import numpy as np
from jaxtyping import Bool

from trainer.alerts import Change
from trainer.analysis.distinct import Matching
from trainer.analysis.retrieval import right_answers
from trainer.analysis.significance import paired_shares
from trainer.charts.matching import matching_of
from trainer.errors import UserError
from trainer.evaluation import Embedded, HeldOut
from trainer.metrics import recall_name
from trainer.store import read_snapshot, snapshot_name

KIND: Final = "forgetting"
Direction = Literal["image_to_text", "text_to_image"]
_DIRECTIONS: Final[tuple[Direction, ...]] = get_args(Direction)


class ForgettingWatch:
    """Compares the right answers on a reference set with those at step 0, question by question.

    Args:
        run_folder: Whose snapshot of step 0 is read where a session continues.
    """

    def __init__(self, run_folder: Path) -> None:
        self._folder = run_folder
        self._first: dict[str, Bool[np.ndarray, " q"]] | None = None
        self._raised = False

    def measured(self, step: int, heldout: HeldOut, embedded: Embedded) -> list[Change]:
        """Return the changes of the alert after an evaluation of the reference set.

        It is raised where the 95 % interval of a fall since step 0, paired by question, lies below 0 as a whole.
        """
        if embedded.image is None or embedded.text is None:
            return []
        answers = right_answers(embedded.image, embedded.text, heldout.matching)
        if step == 0:
            self._first = answers
        first = self._first_of(heldout)
        if first is None or any(len(first[name]) != len(answers[name]) for name in answers):
            return []
        sentences = [_fallen(name, first[name], answers[name], heldout) for name in _DIRECTIONS]
        text = " ".join(filter(None, sentences))
        if bool(text) == self._raised:
            return []
        self._raised = bool(text)
        advice = (
            "Stop earlier, lower the learning rate, train LoRA (tuning.lora_rank), or go back part of the way: trainer "
            "evaluate RUN --interpolate 0 .25 .5 .75 1."
        )
        return [Change(KIND, f"{text} {advice}" if text else "")]

    def _first_of(self, heldout: HeldOut) -> dict[str, Bool[np.ndarray, " q"]] | None:
        """Return the answers at step 0, from its snapshot where another session measured it; None without one."""
        if self._first is None:
            name = snapshot_name(dataset=heldout.pairs.name, split=heldout.pairs.split, step=0)
            try:
                snapshot = read_snapshot(self._folder / "snapshots" / name)
            except (OSError, UserError):
                return None
            matching: Matching = matching_of(snapshot)
            if snapshot.image is not None and snapshot.text is not None:
                self._first = right_answers(snapshot.image, snapshot.text, matching)
        return self._first


def _fallen(name: Direction, before: Bool[np.ndarray, " q"], now: Bool[np.ndarray, " q"], heldout: HeldOut) -> str:
    """Return the sentence on a recall that has fallen; empty where it may not have."""
    change = paired_shares(before, now)
    if not change.high < 0:
        return ""
    recall = recall_name(name, split=heldout.pairs.split, n=change.n)
    return (
        f"Forgotten: {recall}, of {heldout.pairs.name} is {100 * now.mean():.1f} %, at step 0 it was "
        f"{100 * before.mean():.1f} % (change {100 * change.difference:.1f} points, 95 % {100 * change.low:.1f} to "
        f"{100 * change.high:.1f})."
    )
