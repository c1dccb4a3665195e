"""Clients in place of the model process: one answers at once, one when a test says so."""

from typing import Any

from PySide6.QtCore import QObject, QTimer, Signal

from trainer.messages import Failure


class AnsweringClient(QObject):
    """Answers each question by `answer_of` in the next turn of the event loop, unless it fails or keeps silent.

    An answer that is a `Failure` fails, and so does every question where `failing` is set.
    """

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

        def reply() -> None:
            answer = self.failing or self.answer_of(question)
            failed(answer) if isinstance(answer, Failure) else done(answer)

        if self.failing is not None or self.answering:
            QTimer.singleShot(0, owner or self, reply)
        elif progress is not None:
            QTimer.singleShot(0, self, lambda: progress(0.4, self.note))
        return len(self.asked)

    def cancel(self, number: int) -> None:
        self.cancelled.append(number)

    def answer_of(self, question: Any) -> Any:
        raise NotImplementedError

    def warm_up(self, *_: Any, **__: Any) -> None:
        """Do nothing, as on closing, because there is no process."""

    close = warm_up


class SilentClient:
    """Keeps requests open until the test answers them: each by its number, the newest by `done` and `failed`."""

    def __init__(self) -> None:
        self.asked: dict[int, dict[str, Any]] = {}
        self.cancelled: list[int] = []
        self.warmed = 0

    def ask(self, question: Any, **callbacks: Any) -> int:
        self.asked[len(self.asked) + 1] = {"question": question, **callbacks}
        self.done, self.failed, self.progress = (callbacks.get(name) for name in ("done", "failed", "progress"))
        return len(self.asked)

    @property
    def questions(self) -> list[Any]:
        return [request["question"] for request in self.asked.values()]

    def cancel(self, number: int) -> None:
        self.cancelled.append(number)
        self.asked[number]["failed"](Failure("cancelled", "Cancelled."))

    def warm_up(self, *_: Any, **__: Any) -> None:
        self.warmed += 1

    def close(self) -> None:
        """Do nothing, because there is no process."""
