"""Whose classes the verdicts are about: means of the captions, or a prompt suite that both models embed."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QObject, Signal

from trainer import catalog
from trainer.charts.changes import Changes
from trainer.charts.class_task import ClassTexts, read_class_texts
from trainer.messages import EmbedClasses, Failure

if TYPE_CHECKING:
    from explorer.model_client.client import Asker


class AskingClasses(QObject):
    """Asks both runs' models for the classes of a suite; answers when both have.

    Signals:
        embedded: The suite's name, and the files of A's and of B's class vectors.
        progressed: A note.
        ended: Nothing is under way any more.
        failed: The `Failure`, when it is no cancelling.
    """

    embedded = Signal(str, object)
    progressed = Signal(str)
    ended = Signal()
    failed = Signal(object)

    def __init__(self, asker: Asker, parent: QObject) -> None:
        super().__init__(parent)
        self._asker = asker
        self._open: dict[str, int] = {}
        self._files: dict[str, str] = {}
        self._round = 0

    def ask(self, suite: str, found: Changes) -> None:
        """Asks; an open question is given up."""
        self.cancel()
        self._files = {}
        about = catalog.prompt_suites()[suite]
        words = {"labels": tuple(dict.fromkeys(about.classes)), "templates": tuple(dict.fromkeys(about.templates))}
        for letter, side in (("a", found.a), ("b", found.b)):
            self._open[letter] = self._asker.ask(
                EmbedClasses(run=side.run, step=side.step, **words),
                done=partial(self._done, self._round, letter, suite),
                failed=partial(self._fail, self._round),
                owner=self,
            )
        self.progressed.emit(f"asking both models for the classes of {suite}…")

    def cancel(self) -> None:
        """Gives up what is under way."""
        self._round += 1
        numbers, self._open = list(self._open.values()), {}
        for number in reversed(numbers):
            self._asker.cancel(number)
        if numbers:
            self.ended.emit()

    def _done(self, round_: int, letter: str, suite: str, answer: dict[str, Any]) -> None:
        if round_ != self._round:
            return
        self._open.pop(letter, None)
        self._files[letter] = answer["file"]
        if not self._open:
            self.ended.emit()
            self.embedded.emit(suite, (self._files["a"], self._files["b"]))

    def _fail(self, round_: int, failure: Failure) -> None:
        if round_ == self._round:
            self.cancel()
            if failure.kind != "cancelled":
                self.failed.emit(failure)


def texts_of(files: tuple[str, str]) -> tuple[ClassTexts, ClassTexts]:
    """Both runs' class vectors.

    Raises:
        ChartError: A file is gone or damaged.
    """
    return read_class_texts(Path(files[0])), read_class_texts(Path(files[1]))
