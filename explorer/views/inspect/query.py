"""Compute one saliency map at a time, in its own process, and cache the results."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Final

from PySide6.QtCore import QObject, Signal

from explorer.model_client.client import Asker
from trainer.charts.saliency import SaliencyChart, SaliencyRun
from trainer.messages import Failure, Saliency
from trainer.untrusted.bounded.arrays import load_npy

KEPT: Final = 64

Named = Callable[[int], tuple[str, str]]
"""Name and objective of a run."""


class SaliencyQuery(QObject):
    """Requests saliency maps and caches the latest ones.

    Signals:
        changed: There is an answer, progress, or nothing is under way any more.
        failed: Why there is no answer, a `Failure`.
    """

    changed = Signal()
    failed = Signal(object)

    def __init__(self, asker: Asker, named: Named, parent: QObject) -> None:
        super().__init__(parent)
        self._asker, self._named = asker, named
        self._kept: OrderedDict[Saliency, SaliencyChart] = OrderedDict()
        self._number: int | None = None
        self.question: Saliency | None = None
        self.progress = 0.0
        self.note = ""

    @property
    def busy(self) -> bool:
        """Whether a result is pending."""
        return self._number is not None

    def known(self, question: Saliency) -> SaliencyChart | None:
        """Return the cached result, or None."""
        return self._kept.get(question)

    def ask(self, question: Saliency) -> None:
        """Start a request, replacing the one that is running."""
        self.cancel()
        self.question, self.progress, self.note = question, 0.0, "starting"
        self._number = self._asker.ask(
            question,
            done=lambda answer: self._done(question, answer),
            failed=lambda failure: self._failed(question, failure),
            progress=self._progressed,
            owner=self,
        )
        self.changed.emit()

    def cancel(self) -> None:
        """Cancel the running request and its process."""
        number, self._number = self._number, None
        if number is not None:
            self._asker.cancel(number)
            self.changed.emit()

    def forget(self, run: int) -> None:
        """Drop the results of this run, because it has new checkpoints."""
        for question in [one for one in self._kept if run in one.runs]:
            del self._kept[question]

    def _progressed(self, share: float, note: str) -> None:
        self.progress, self.note = share, note
        self.changed.emit()

    def _done(self, question: Saliency, answer: dict[str, Any]) -> None:
        if question is not self.question:
            return
        self._number = None
        maps = load_npy(answer["array"])
        runs = []
        for index, run in enumerate(question.runs):
            name, objective = self._named(run)
            step, cosine = answer["steps"][index], answer["cosines"][index]
            found = SaliencyRun(
                index=index, run=run, name=name, objective=objective, step=step, cells=maps[index], cosine=cosine
            )
            runs.append(found)
        image = load_npy(answer["image"])
        self._kept[question] = SaliencyChart(question.image, image, question.caption, question.method, tuple(runs))
        while len(self._kept) > KEPT:
            self._kept.popitem(last=False)
        self.changed.emit()

    def _failed(self, question: Saliency, failure: Failure) -> None:
        if question is not self.question or self._number is None:
            return
        self._number = None
        self.changed.emit()
        if failure.kind != "cancelled":
            self.failed.emit(failure)
