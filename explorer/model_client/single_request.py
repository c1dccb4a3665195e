"""One request to the model process at a time: its progress, its answer, and the latest answers."""

from __future__ import annotations

from typing import Any, ClassVar

from PySide6.QtCore import QObject, Signal

from explorer.model_client.client import ModelClient
from trainer.analysis.lru_cache import LruCache
from trainer.messages import Failure


class SingleRequest(QObject):
    """Sends one request after the other; a new one replaces the one that is running."""

    changed = Signal()  # There is an answer, progress, or nothing is running any more.
    done = Signal(object)  # The answer of the last request, as its message documents it.
    failed = Signal(object)  # Why there is no answer, a `Failure`; not for a request that was cancelled.

    def __init__(self, client: ModelClient, parent: QObject) -> None:
        super().__init__(parent)
        self._client = client
        self._number: int | None = None
        self.question: Any = None
        self.progress, self.note = 0.0, ""

    @property
    def busy(self) -> bool:
        """Whether an answer is pending."""
        return self._number is not None

    def ask(self, question: Any) -> None:
        """Send a request, replacing the one that is running."""
        self.cancel()
        self.question = question
        self.send(self.stages_of(question))

    def cancel(self) -> None:
        """Cancel the running request and its process; what has arrived stays."""
        number, self._number = self._number, None
        if number is not None:
            self._client.cancel(number)
            self.changed.emit()

    def stages_of(self, question: Any) -> list[Any]:
        """Return the messages that answer the question, sent one after the other."""
        return [question]

    def take(self, message: Any, answer: Any) -> None:
        """Handle the answer to a message."""

    def send(self, messages: list[Any]) -> None:
        """Send the first of the messages, and the others after its answer."""
        if not messages:
            self._number = None
            self.changed.emit()
            return
        question, (now, *later) = self.question, messages
        self.progress, self.note = 0.0, "starting"
        self._number = self._client.ask(
            now,
            done=lambda answer: self._done(question, now, later, answer),
            failed=lambda failure: self._failed(question, failure),
            progress=self._progressed,
            owner=self,
        )
        self.changed.emit()

    def _progressed(self, share: float, note: str) -> None:
        if self.busy:
            self.progress, self.note = share, note
            self.changed.emit()

    def _done(self, question: Any, message: Any, later: list[Any], answer: Any) -> None:
        if question is not self.question or not self.busy:
            return
        self.take(message, answer)
        self.send(later)
        if not later:
            self.done.emit(answer)

    def _failed(self, question: Any, failure: Failure) -> None:
        if question is not self.question or not self.busy:
            return
        self._number = None
        self.changed.emit()
        if failure.kind != "cancelled":
            self.failed.emit(failure)


class CachedRequest(SingleRequest):
    """Keeps what was made of the latest answers, for questions that name their `runs`."""

    most: ClassVar[int] = 64

    def __init__(self, client: ModelClient, parent: QObject) -> None:
        super().__init__(client, parent)
        self._kept: LruCache[Any, Any] = LruCache(self.most)

    def known(self, question: Any) -> Any:
        """Return what was made of the answer; None if there is none."""
        return self._kept.get(question)

    def is_kept(self, question: Any) -> bool:
        """Return whether the answer to exactly this question is there."""
        return question in self._kept

    def read(self, message: Any, answer: Any) -> Any:
        """Return what is kept of an answer."""
        raise NotImplementedError

    def take(self, message: Any, answer: Any) -> None:
        self._kept[message] = self.read(message, answer)

    def forget(self, run: int) -> None:
        """Drop the answers about this run, because it has new checkpoints."""
        for question in [entry for entry in self._kept if run in entry.runs]:
            del self._kept[question]
