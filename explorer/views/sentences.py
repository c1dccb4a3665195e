"""Embed sentences and image files with the models of the selected runs, in the trainer process."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from msgspec import Struct
from PySide6.QtCore import QObject

from explorer.state.selection import Side
from explorer.views.view import Context
from trainer.charts.point_placement import PointPlacement
from trainer.charts.snapshots import step_that_embeds
from trainer.charts.spec import Request, Rows
from trainer.errors import UserError, reason_words
from trainer.messages import EmbedAnswer, EmbedImages, EmbedTexts, Failure, PlaceRows, Question
from trainer.store import Workspace
from trainer.untrusted import confined
from trainer.untrusted.bounded.arrays import load_npy

Taken = Callable[[Side, str], None]


class EmbeddedSentences(Struct, frozen=True):
    """For each target the rows that its model embeds and, where they are placed, their points; or why not."""

    vectors: tuple[Rows | str, ...]
    places: tuple[Rows | str, ...] = ()


class Sentences(QObject):
    """Requests the vectors of sentences, or of image files, from each run; a new request replaces the previous one.

    The model that answers is that of the snapshot shown: by another one, words would not stand where its pairs do.
    """

    def __init__(self, context: Context, parent: QObject, *, files: bool = False) -> None:
        super().__init__(parent)
        self._context, self._files = context, files
        self._open: dict[int, int] = {}
        self._choosing: set[int] = set()
        self._cached: tuple[object, EmbeddedSentences] | None = None

    @property
    def waiting(self) -> bool:
        """Whether results are pending."""
        return bool(self._open or self._choosing)

    def embed(
        self,
        request: Request,
        texts: tuple[str, ...],
        done: Callable[[EmbeddedSentences], None],
        placement: PointPlacement | None = None,
        progress: Callable[[float, str], None] | None = None,
    ) -> None:
        """Request vectors from every target's model; `done` receives each result or error. The last is cached.

        With `placement` the process of projections places them in the plane; it tells `progress` how far it is.
        """
        key, where = (request, texts, placement), {"dataset": request.dataset, "split": request.split}
        if self._cached is not None and self._cached[0] == key:
            done(self._cached[1])
            return
        arrays_of: dict[int, tuple[Rows, ...] | str] = {}

        def take(index: int, arrays: tuple[Rows, ...] | str) -> None:
            arrays_of[index] = arrays
            if len(arrays_of) < len(request.targets):
                return
            each = [arrays_of[number] for number in range(len(arrays_of))]
            parts = (tuple(rows if isinstance(rows, str) else rows[part] for rows in each) for part in (0, 1))
            every = EmbeddedSentences(next(parts), next(parts) if placement else ())
            self._cached = None if any(isinstance(rows, str) for rows in each) else (key, every)
            done(every)

        def read(index: int, *files: str) -> None:
            # Never skipped in favor of a newer one: reading takes the answer's file away.
            self._context.background.run(
                self,
                lambda: tuple(tuple(map(tuple, take_vectors(file).tolist())) for file in files),
                done=partial(take, index),
                failed=lambda error: take(index, reason_words(error)),
                key=f"vectors {files[0]}",
            )

        def embedded(side: Side, file: str) -> None:
            if placement is None:
                read(side.place, file)
                return
            question = PlaceRows(run=side.run, vectors=file, placement=placement)
            self._put(
                side.place,
                question,
                lambda answer: read(side.place, file, answer.array),
                partial(take, side.place),
                progress,
            )

        for index, target in enumerate(request.targets):
            self.ask(Side(index, int(target.run), target.step), where, texts, embedded, partial(take, index))

    def forget(self) -> None:
        """Invalidate the cache, because there may be a new checkpoint."""
        self._cached = None

    def ask(
        self,
        side: Side,
        where: Mapping[str, str | None],
        texts: Sequence[str],
        done: Taken,
        failed: Callable[[str], None],
    ) -> None:
        """Request vectors for one side's snapshot of the dataset and split in `where`.

        `done` gets the side at its snapshot's own step and the file of the vectors, `failed` a sentence.
        """
        self.cancel(side.place)
        self._choosing.add(side.place)

        def refuse(error: Exception) -> None:
            self._choosing.discard(side.place)
            if not isinstance(error, UserError):
                self._context.background.failed.emit(error)
            failed(reason_words(error))

        self._context.background.run(
            self,
            at_its_step,
            self._context.workspace,
            side,
            where,
            done=partial(self._ask, tuple(texts), done, failed),
            failed=refuse,
            key=f"step {side.place}",
        )

    def _ask(self, texts: tuple[str, ...], done: Taken, failed: Callable[[str], None], side: Side) -> None:
        self._choosing.discard(side.place)

        def take(answer: EmbedAnswer) -> None:
            for file, reason in answer.unreadable.items():
                failed(f"Could not read {file}: {reason}")
                return
            done(side, answer.array)

        question: EmbedImages | EmbedTexts = EmbedTexts(run=side.run, texts=texts, step=side.step)
        if self._files:
            question = EmbedImages(run=side.run, images=texts, step=side.step)
        self._put(side.place, question, take, failed)

    def _put(
        self,
        index: int,
        question: Question,
        done: Callable[[Any], None],
        failed: Callable[[str], None],
        progress: Callable[[float, str], None] | None = None,
    ) -> None:
        """Ask the one question that is open for a side."""

        def take(answer: Any) -> None:
            self._open.pop(index, None)
            done(answer)

        def fail(failure: Failure) -> None:
            if failure.kind != "cancelled":
                self._open.pop(index, None)
                failed(failure.words)

        ask = partial(self._context.client.ask, question, done=take, failed=fail, owner=self)
        self._open[index] = ask(progress=progress) if progress else ask()

    def cancel_all(self) -> None:
        """Drop all pending results."""
        for index in {*self._open, *self._choosing}:
            self.cancel(index)

    def cancel(self, index: int) -> None:
        """Drop this run's pending result."""
        self._choosing.discard(index)
        self._context.background.forget(self, f"step {index}")
        number = self._open.pop(index, None)
        if number is not None:
            self._context.client.cancel(number)


def at_its_step(workspace: Workspace, side: Side, where: Mapping[str, str | None]) -> Side:
    """Return the side at the step of its snapshot, whose checkpoint is kept. Pure, for a thread.

    Raises:
        ChartError: There is no such snapshot, or its checkpoint is gone.
    """
    return replace(side, step=step_that_embeds(workspace, side.run, step=side.step, **where))


def take_vectors(file: str) -> np.ndarray:
    """Read a result's vectors and delete its file. For a background thread."""
    vectors, path = load_npy(file), Path(file)
    confined.remove(path.parent, path.name)
    return vectors
