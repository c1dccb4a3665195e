"""Sentences embedded by both runs' models, through the trainer process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from PySide6.QtCore import QObject

from explorer.views.view import Context
from trainer.messages import EmbedTexts, Failure


class Sentences(QObject):
    """Asks each run for the vectors of some sentences; a newer question replaces the one before."""

    def __init__(self, context: Context, parent: QObject) -> None:
        super().__init__(parent)
        self._context = context
        self._open: dict[int, int] = {}

    @property
    def waiting(self) -> bool:
        """Whether answers are on their way."""
        return bool(self._open)

    def ask(
        self,
        index: int,
        run: int,
        texts: Sequence[str],
        done: Callable[[str], None],
        failed: Callable[[str], None],
    ) -> None:
        """Asks run A (index 0) or B; `done` gets the file of the vectors, `failed` a sentence."""
        self.cancel(index)

        def take(answer: dict[str, Any]) -> None:
            self._open.pop(index, None)
            done(answer["array"])

        def fail(failure: Failure) -> None:
            if failure.kind != "cancelled":
                self._open.pop(index, None)
                failed(f"{failure.message} {failure.next}".strip())

        question = EmbedTexts(run=run, texts=tuple(texts), step=self._context.selection.step_of(index))
        self._open[index] = self._context.asker.ask(question, done=take, failed=fail, owner=self)

    def cancel(self, index: int) -> None:
        """Nobody waits for this run's answer any more."""
        number = self._open.pop(index, None)
        if number is not None:
            self._context.asker.cancel(number)


def take_vectors(file: str) -> np.ndarray:
    """The vectors of an answer; its file is taken away. For a background thread."""
    vectors = np.load(file, allow_pickle=False)
    Path(file).unlink(missing_ok=True)
    return vectors
