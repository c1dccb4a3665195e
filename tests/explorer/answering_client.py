"""A client of the model process that answers at once, in place of the process."""

from typing import Any

from PySide6.QtCore import QObject, QTimer, Signal

from trainer.messages import Failure


class AnsweringClient(QObject):
    """Answers each question by `answer_of` in the next turn of the event loop, unless it fails or keeps silent."""

    state_changed = Signal(str, str)
    note = "working"

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[Any] = []
        self.cancelled: list[int] = []
        self.answering = True
        self.failing: Failure | None = None

    def ask(self, question: Any, *, done: Any, failed: Any, progress: Any = None, owner: Any = None) -> int:
        self.asked.append(question)
        if self.failing is not None:
            QTimer.singleShot(0, self, lambda: failed(self.failing))
        elif self.answering:
            QTimer.singleShot(0, self, lambda: done(self.answer_of(question)))
        elif progress is not None:
            QTimer.singleShot(0, self, lambda: progress(0.4, self.note))
        return len(self.asked)

    def cancel(self, number: int) -> None:
        self.cancelled.append(number)

    def answer_of(self, question: Any) -> Any:
        raise NotImplementedError

    def close(self) -> None:
        """Do nothing, because there is no process."""
