"""What each run says of each image: asked piece by piece, the image in sight first, and kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from jaxtyping import Float
from PySide6.QtCore import QObject, Signal

from explorer.asker import Asker
from trainer.messages import Classify, Failure

AT_ONCE: Final = 16
"""Images of one question after the first: few enough that a changed mind costs little."""


@dataclass(frozen=True)
class Prediction:
    """What one run says of one image.

    Attributes:
        labels: As they were asked.
        probabilities: One a label; they sum to 1.
        step: Updates the model had seen.
        milliseconds: The run's time for this image (the mean, if several were asked together).
    """

    labels: tuple[str, ...]
    probabilities: Float[np.ndarray, " labels"]
    step: int
    milliseconds: float

    @property
    def label(self) -> str:
        """The most probable label."""
        return self.labels[int(self.probabilities.argmax())]

    @property
    def share(self) -> float:
        """The probability of `label`."""
        return float(self.probabilities.max())


@dataclass(frozen=True)
class Wanted:
    """What is asked of every image."""

    runs: tuple[int, ...] = ()
    labels: tuple[str, ...] = ()
    templates: tuple[str, ...] = ()


class Asking(QObject):
    """Keeps asking the model process until every wanted image has the answer of every wanted run.

    Each run is asked on its own, so that one without a checkpoint does not keep the other from answering.

    Signals:
        answered: The images of which something new is known.
        changed: Waiting, trouble or staleness may be different now.
    """

    answered = Signal(list)
    changed = Signal()

    def __init__(self, asker: Asker, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._asker = asker
        self._wanted = Wanted()
        self._images: tuple[str, ...] = ()
        self._known: dict[tuple[str, int], Prediction] = {}
        self._old: dict[tuple[str, int], Prediction] = {}
        self._unreadable: dict[str, str] = {}
        self._trouble: dict[int, str] = {}
        self._open: dict[int, int] = {}
        self._prepared: set[int] = set()

    @property
    def wanted(self) -> Wanted:
        """What is asked now."""
        return self._wanted

    def want(self, images: Sequence[str], wanted: Wanted) -> None:
        """Asks for what is not known yet of `images`, in their order; what is no longer wanted is cancelled."""
        if wanted != self._wanted:
            self._cancel()
            self._old |= self._known
            self._known.clear()
            self._trouble.clear()
            self._prepared.clear()
            self._wanted = wanted
        self._images = tuple(images)
        self._old = {key: value for key, value in self._old.items() if key[0] in self._images}
        self._known = {key: value for key, value in self._known.items() if key[0] in self._images}
        self._unreadable = {path: why for path, why in self._unreadable.items() if path in self._images}
        for run in wanted.runs:
            self._next(run)
        self.changed.emit()

    def ask_again(self) -> None:
        """Asks everything anew: a run may have a newer checkpoint."""
        self._cancel()
        self._old |= self._known
        self._known.clear()
        self._unreadable.clear()
        self._trouble.clear()
        self.want(self._images, self._wanted)

    def prediction(self, path: str, run: int) -> Prediction | None:
        """What `run` says of an image; while a newer answer is on its way, the last one."""
        return self._known.get((path, run)) or self._old.get((path, run))

    def is_stale(self, path: str) -> bool:
        """Whether what is known of the image answers an older question."""
        return any((path, run) in self._old and (path, run) not in self._known for run in self._wanted.runs)

    def problem(self, path: str) -> str:
        """Why the image cannot be read; empty if it can, as far as known."""
        return self._unreadable.get(path, "")

    def trouble(self, run: int) -> str:
        """Why `run` does not answer; empty if it does, as far as known."""
        return self._trouble.get(run, "")

    @property
    def waiting(self) -> bool:
        """Whether answers are on their way."""
        return bool(self._open)

    def _missing(self, run: int) -> list[str]:
        return [path for path in self._images if (path, run) not in self._known and path not in self._unreadable]

    def _next(self, run: int) -> None:
        missing = self._missing(run)
        wanted = self._wanted
        if run in self._open or run in self._trouble or not (wanted.labels and wanted.templates):
            return
        if not missing and (self._images or run in self._prepared):
            return
        # The first image alone: its answer is what a person waits for. Before there is one, none: then the labels
        # are embedded already when it is dropped.
        chosen = missing[:1] if missing and missing[0] == self._images[0] else missing[:AT_ONCE]
        self._prepared.add(run)
        question = Classify(runs=(run,), images=tuple(chosen), labels=wanted.labels, templates=wanted.templates)
        self._open[run] = self._asker.ask(
            question,
            done=lambda answer: self._take(run, question, answer),
            failed=lambda failure: self._fail(run, question, failure),
            owner=self,
        )

    def _take(self, run: int, question: Classify, answer: dict[str, Any]) -> None:
        if not self._is_wanted(run, question):
            return
        del self._open[run]
        said = answer["runs"][str(run)]
        each = said["milliseconds"] / max(1, len(answer["images"]))
        for path, row in zip(answer["images"], said["probabilities"], strict=True):
            self._known[path, run] = Prediction(question.labels, np.array(row), said["step"], each)
            self._old.pop((path, run), None)
        self._unreadable |= answer["unreadable"]
        self._next(run)
        self.answered.emit(list(question.images))
        self.changed.emit()

    def _fail(self, run: int, question: Classify, failure: Failure) -> None:
        if failure.kind == "cancelled" or not self._is_wanted(run, question):
            return
        del self._open[run]
        if not question.images:
            # Nobody has asked anything yet; a drop will ask again, and then say what is wrong.
            return
        self._trouble[run] = f"{failure.message} {failure.next}".strip()
        for path in question.images:
            self._old.pop((path, run), None)
        self.answered.emit(list(question.images))
        self.changed.emit()

    def _is_wanted(self, run: int, question: Classify) -> bool:
        wanted = self._wanted
        same = (question.labels, question.templates) == (wanted.labels, wanted.templates)
        return run in self._open and run in wanted.runs and same

    def _cancel(self) -> None:
        for number in self._open.values():
            self._asker.cancel(number)
        self._open.clear()
