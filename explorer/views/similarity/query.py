"""Sentences embedded by both runs' models, through the trainer process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from PySide6.QtCore import QObject

from explorer.state.selection import Side
from explorer.views.view import Context
from trainer.charts.snapshots import step_that_embeds
from trainer.errors import UserError
from trainer.messages import EmbedTexts, Failure
from trainer.store import SplitKey, Workspace, of_split
from trainer.untrusted import confined
from trainer.untrusted.bounded.arrays import load_npy

Taken = Callable[[Side, str], None]


class Sentences(QObject):
    """Asks each run for the vectors of some sentences; a newer question replaces the one before.

    The model that answers is that of the snapshot shown: by another one, words would not stand where its pairs do.
    """

    def __init__(self, context: Context, parent: QObject) -> None:
        super().__init__(parent)
        self._context = context
        self._open: dict[int, int] = {}
        self._choosing: set[int] = set()

    @property
    def waiting(self) -> bool:
        """Whether answers are on their way."""
        return bool(self._open or self._choosing)

    def ask(self, side: Side, texts: Sequence[str], done: Taken, failed: Callable[[str], None]) -> None:
        """Asks A or B; `done` gets it at its snapshot's own step and the file of the vectors, `failed` a sentence."""
        self.cancel(side.place)
        self._choosing.add(side.place)

        def refuse(error: Exception) -> None:
            self._choosing.discard(side.place)
            if not isinstance(error, UserError):
                self._context.background.failed.emit(error)
            failed(str(error))

        self._context.background.run(
            self,
            at_its_step,
            self._context.workspace,
            side,
            self._context.selection.dataset,
            done=partial(self._ask, tuple(texts), done, failed),
            failed=refuse,
            key=f"step {side.place}",
        )

    def _ask(self, texts: tuple[str, ...], done: Taken, failed: Callable[[str], None], side: Side) -> None:
        index = side.place
        self._choosing.discard(index)

        def take(answer: dict[str, Any]) -> None:
            self._open.pop(index, None)
            done(side, answer["array"])

        def fail(failure: Failure) -> None:
            if failure.kind != "cancelled":
                self._open.pop(index, None)
                failed(f"{failure.message} {failure.next}".strip())

        question = EmbedTexts(run=side.run, texts=texts, step=side.step)
        self._open[index] = self._context.asker.ask(question, done=take, failed=fail, owner=self)

    def cancel(self, index: int) -> None:
        """Nobody waits for this run's answer any more."""
        self._choosing.discard(index)
        self._context.background.forget(self, f"step {index}")
        number = self._open.pop(index, None)
        if number is not None:
            self._context.asker.cancel(number)


def at_its_step(workspace: Workspace, side: Side, data: SplitKey | None) -> Side:
    """The side at the step of its snapshot, whose checkpoint is kept. Pure, for a thread.

    Raises:
        ChartError: There is no such snapshot, or its checkpoint is gone.
    """
    return replace(side, step=step_that_embeds(workspace, side.run, step=side.step, **of_split(data)))


def take_vectors(file: str) -> np.ndarray:
    """The vectors of an answer; its file is taken away. For a background thread."""
    vectors, place = load_npy(file), Path(file)
    confined.remove(place.parent, place.name)
    return vectors
