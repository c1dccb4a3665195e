"""Run one evaluation at a time, in its own process."""

from __future__ import annotations

from typing import Any

from PySide6.QtCore import QObject, Signal

from explorer.model_client.client import Asker
from trainer.messages import Evaluate, Failure


class EvaluateQuery(QObject):
    """Requests evaluations; their results are in the store when it reports completion.

    Signals:
        changed: There is progress, or nothing is under way any more.
        done: The answer, as `Evaluate` documents it.
        failed: Why there is none, a sentence.
    """

    changed = Signal()
    done = Signal(object)
    failed = Signal(str)

    def __init__(self, asker: Asker, parent: QObject) -> None:
        super().__init__(parent)
        self._asker = asker
        self._number: int | None = None
        self.progress = 0.0
        self.note = ""

    @property
    def busy(self) -> bool:
        """Whether an evaluation is running."""
        return self._number is not None

    def ask(self, question: Evaluate) -> None:
        """Start an evaluation, replacing the one that is running."""
        self.cancel()
        self.progress, self.note = 0.0, "starting"
        self._number = self._asker.ask(
            question, done=self._answered, failed=self._failed, progress=self._progressed, owner=self
        )
        self.changed.emit()

    def cancel(self) -> None:
        """Cancel the evaluation and its process; completed tasks are kept."""
        number, self._number = self._number, None
        if number is not None:
            self._asker.cancel(number)
            self.changed.emit()

    def _progressed(self, share: float, note: str) -> None:
        if self.busy:
            self.progress, self.note = share, note
            self.changed.emit()

    def _answered(self, answer: dict[str, Any]) -> None:
        if self.busy:
            self._number = None
            self.changed.emit()
            self.done.emit(answer)

    def _failed(self, failure: Failure) -> None:
        if not self.busy:
            return
        self._number = None
        self.changed.emit()
        if failure.kind != "cancelled":
            self.failed.emit(f"{failure.message} {failure.next}".strip())
