"""Request each run's predictions of each image piece by piece, the current image first, and cache them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from jaxtyping import Float
from PySide6.QtCore import QObject, Signal

from explorer.model_client.client import ModelClient
from explorer.views.view import reason_of
from explorer.widgets.state_area import reason_words
from trainer.messages import Classify, Failure, Shares

Model = tuple[int, int | None]
"""A run and the step of its checkpoint; None: the newest."""

AT_ONCE: Final = 16
"""Images of one question after the first: few enough that a changed mind costs little."""


@dataclass(frozen=True)
class Prediction:
    """One run's prediction for one image.

    Attributes:
        labels: As they were asked.
        probabilities: One a label; NaN where `shares` is "none".
        cosines: One a label.
        shares: Whether the probabilities sum to 1 or are each for itself.
        step: Updates the model had seen: those asked for, or those of the newest checkpoint where that one is gone.
        milliseconds: The run's time for this image (the mean, if several were asked together).
    """

    labels: tuple[str, ...]
    probabilities: Float[np.ndarray, " labels"]
    cosines: Float[np.ndarray, " labels"]
    step: int
    milliseconds: float
    shares: Shares = "softmax"

    @property
    def label(self) -> str:
        """The most probable label."""
        return self.labels[int(self.cosines.argmax())]

    @property
    def words(self) -> str:
        """`label` and its probability, or its cosine where a single label has no probability."""
        if self.shares == "none":
            return f"{self.label}, cosine {self.cosines.max():.3f}"
        return f"{self.label} {100 * self.probabilities.max():.0f} %"


@dataclass(frozen=True)
class ClassifyRequest:
    """The request made for every image, and its models."""

    models: tuple[Model, ...] = ()
    labels: tuple[str, ...] = ()
    templates: tuple[str, ...] = ()


class ClassifyQuery(QObject):
    """Sends requests to the model process until every image has the predictions of every model.

    Each is asked on its own, so that one without a checkpoint does not keep the other from answering. Where the
    checkpoint of a step is kept no longer, the newest one of that run answers.

    Signals:
        answered: The images of which something new is known.
        changed: Waiting, trouble or staleness may be different now.
    """

    answered = Signal(list)
    changed = Signal()

    def __init__(self, client: ModelClient, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._client = client
        self._wanted = ClassifyRequest()
        self._images: tuple[str, ...] = ()
        self._known: dict[tuple[str, Model], Prediction] = {}
        self._old: dict[tuple[str, Model], Prediction] = {}
        self._unreadable: dict[str, str] = {}
        self._trouble: dict[Model, str] = {}
        self._open: dict[Model, int] = {}
        self._prepared: set[Model] = set()
        self._gone: set[Model] = set()

    @property
    def wanted(self) -> ClassifyRequest:
        """The current request."""
        return self._wanted

    def want(self, images: Sequence[str], request: ClassifyRequest) -> None:
        """Request what is not yet known of `images`, in order; cancel what is no longer needed."""
        if request != self._wanted:
            self._cancel()
            self._old |= self._known
            self._known.clear()
            self._trouble.clear()
            self._prepared.clear()
            self._gone.clear()
            self._wanted = request
        self._images = tuple(images)
        self._old = {key: value for key, value in self._old.items() if key[0] in self._images}
        self._known = {key: value for key, value in self._known.items() if key[0] in self._images}
        self._unreadable = {path: why for path, why in self._unreadable.items() if path in self._images}
        for model in request.models:
            self._next(model)
        self.changed.emit()

    def ask_again(self) -> None:
        """Request everything again, because a run may have a newer checkpoint."""
        self._cancel()
        self._old |= self._known
        self._known.clear()
        self._unreadable.clear()
        self._trouble.clear()
        self._gone.clear()
        self.want(self._images, self._wanted)

    def prediction(self, path: str, run: int, step: int | None = None) -> Prediction | None:
        """Return the run's prediction for an image; the previous one while a newer one is pending."""
        key = path, (run, step)
        return self._known.get(key) or self._old.get(key)

    def answering(self, run: int, step: int | None) -> int | None:
        """Return the checkpoint step that is requested for this one; None for the newest, as far as known."""
        return None if (run, step) in self._gone else step

    def is_stale(self, path: str) -> bool:
        """Return whether the known prediction of the image belongs to an earlier request."""
        return any((path, model) in self._old and (path, model) not in self._known for model in self._wanted.models)

    def problem(self, path: str) -> str:
        """Return why the image cannot be read; empty if it can, as far as known."""
        return self._unreadable.get(path, "")

    def trouble(self, run: int, step: int | None = None) -> str:
        """Return why `run` does not respond; empty if it does, as far as known."""
        return self._trouble.get((run, step), "")

    @property
    def waiting(self) -> bool:
        """Whether predictions are pending."""
        return bool(self._open)

    def _missing(self, model: Model) -> list[str]:
        return [path for path in self._images if (path, model) not in self._known and path not in self._unreadable]

    def _next(self, model: Model) -> None:
        missing = self._missing(model)
        request = self._wanted
        if model in self._open or model in self._trouble or not (request.labels and request.templates):
            return
        if not missing and (self._images or model in self._prepared):
            return
        # The first image alone: its answer is what a person waits for. Before there is one, none: then the labels
        # are embedded already when it is dropped.
        chosen = missing[:1] if missing and missing[0] == self._images[0] else missing[:AT_ONCE]
        self._prepared.add(model)
        about = {"images": tuple(chosen), "labels": request.labels, "templates": request.templates}
        question = Classify(runs=(model[0],), step=self.answering(*model), **about)
        self._open[model] = self._client.ask(
            question,
            done=lambda answer: self._take(model, question, answer),
            failed=lambda failure: self._fail(model, question, failure),
            owner=self,
        )

    def _take(self, model: Model, question: Classify, answer: dict[str, Any]) -> None:
        if not self._is_wanted(model, question):
            return
        del self._open[model]
        said = answer["runs"][str(model[0])]
        each = said["milliseconds"] / max(1, len(answer["images"]))
        shares = said["probabilities"] or [[np.nan] * len(question.labels)] * len(answer["images"])
        for path, row, cosines in zip(answer["images"], shares, said["cosines"], strict=True):
            self._known[path, model] = Prediction(
                question.labels, np.array(row), np.array(cosines), said["step"], each, said["shares"]
            )
            self._old.pop((path, model), None)
        self._unreadable |= answer["unreadable"]
        self._next(model)
        self.answered.emit(list(question.images))
        self.changed.emit()

    def _fail(self, model: Model, question: Classify, failure: Failure) -> None:
        if failure.kind == "cancelled" or not self._is_wanted(model, question):
            return
        del self._open[model]
        if failure.kind == "no_checkpoint" and question.step is not None:
            self._gone.add(model)
            self._prepared.discard(model)
            self._next(model)
            return
        if not question.images:
            # Nobody has asked anything yet; a drop will ask again, and then say what is wrong.
            return
        self._trouble[model] = reason_words(reason_of(failure))
        for path in question.images:
            self._old.pop((path, model), None)
        self.answered.emit(list(question.images))
        self.changed.emit()

    def _is_wanted(self, model: Model, question: Classify) -> bool:
        request = self._wanted
        same = (question.labels, question.templates) == (request.labels, request.templates)
        return model in self._open and model in request.models and same

    def _cancel(self) -> None:
        for number in self._open.values():
            self._client.cancel(number)
        self._open.clear()
