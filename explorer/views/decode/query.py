"""Decode one embedding at a time: a first look in few steps, then the same noises in all steps."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import replace
from typing import Any, Final

import numpy as np
from PySide6.QtCore import QObject, Signal

from explorer.model_client.client import Asker
from trainer.charts.decode import DecodedChart, DecodedRun, NearPicture
from trainer.messages import Decode, Failure
from trainer.untrusted.bounded.arrays import load_npy

KEPT: Final = 32
FIRST_STEPS: Final = 8


class DecodeQuery(QObject):
    """Requests decoded pictures and caches the latest ones.

    Signals:
        changed: There is a first look, the answer, progress, or nothing is under way any more.
        failed: Why there is no answer, a `Failure`.
    """

    changed = Signal()
    failed = Signal(object)

    def __init__(self, asker: Asker, parent: QObject) -> None:
        super().__init__(parent)
        self._asker = asker
        self._kept: OrderedDict[Decode, DecodedChart] = OrderedDict()
        self._number: int | None = None
        self.question: Decode | None = None
        self.progress, self.note = 0.0, ""

    @property
    def busy(self) -> bool:
        """Whether a result is pending."""
        return self._number is not None

    def known(self, question: Decode) -> DecodedChart | None:
        """Return the answer, or the first look at it, or None."""
        first = replace(question, steps=min(FIRST_STEPS, question.steps))
        return self._kept.get(question) or self._kept.get(first)

    def is_whole(self, question: Decode) -> bool:
        """Return whether the answer with all steps is there."""
        return question in self._kept

    def ask(self, question: Decode) -> None:
        """Start a request, replacing the one that is running."""
        self.cancel()
        self.question = question
        steps = [replace(question, steps=FIRST_STEPS), question] if question.steps > FIRST_STEPS else [question]
        self._ask([step for step in steps if step not in self._kept])

    def cancel(self) -> None:
        """Cancel the running request; a first look stays."""
        number, self._number = self._number, None
        if number is not None:
            self._asker.cancel(number)
            self.changed.emit()

    def forget(self, run: int) -> None:
        """Drop the results of this decoder, because it has new checkpoints."""
        for question in [one for one in self._kept if run in one.runs]:
            del self._kept[question]

    def _ask(self, questions: list[Decode]) -> None:
        if not questions:
            self._number = None
            self.changed.emit()
            return
        whole, (now, *then) = self.question, questions
        self.progress, self.note = 0.0, "starting"
        self._number = self._asker.ask(
            now,
            done=lambda answer: self._done(whole, now, then, answer),
            failed=lambda failure: self._failed(whole, failure),
            progress=self._progressed,
            owner=self,
        )
        self.changed.emit()

    def _progressed(self, share: float, note: str) -> None:
        self.progress, self.note = share, note
        self.changed.emit()

    def _done(self, whole: Decode | None, now: Decode, then: list[Decode], answer: dict[str, Any]) -> None:
        if whole is not self.question or self._number is None:
            return
        self._kept[now] = chart_of(answer)
        while len(self._kept) > KEPT:
            self._kept.popitem(last=False)
        self._ask(then)

    def _failed(self, whole: Decode | None, failure: Failure) -> None:
        if whole is not self.question or self._number is None:
            return
        self._number = None
        self.changed.emit()
        if failure.kind != "cancelled":
            self.failed.emit(failure)


def chart_of(answer: dict[str, Any]) -> DecodedChart:
    """Return the chart of an answer to `Decode`."""
    runs = []
    for index, told in enumerate(answer["runs"]):
        pictures = load_npy(told["pictures"])
        runs.append(
            DecodedRun(
                index=index,
                run=told["run"],
                name=told["name"],
                of_name=told["of_name"],
                of_step=told["of_step"],
                step=told["step"],
                mean=pictures[0],
                samples=pictures[1:],
                spread=load_npy(told["spread"]),
                nearest=tuple(NearPicture(**one) for one in told["nearest"]),
                nearest_of=told["nearest_of"],
                told=float("nan") if told["told"] is None else told["told"],
                told_of=told["told_of"],
            )
        )
    original = load_npy(answer["original"]) if answer["original"] else None
    seen = None if original is None else np.asarray(original)
    return DecodedChart(answer["title"], seen, answer["how"], tuple(answer["noises"]), tuple(runs))
