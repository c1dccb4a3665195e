"""Request each run's predictions of each image piece by piece, the current image first, and cache them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from jaxtyping import Float
from msgspec import Struct
from PySide6.QtCore import QObject, Signal

from explorer.model_client.client import ModelClient
from explorer.views.view import reason_of
from trainer.errors import reason_words
from trainer.messages import Classify, ClassifyAnswer, Failure, Shares

Model = tuple[int, int | None]
"""A run and the step of its checkpoint; None: the newest."""

AT_ONCE: Final = 16
"""Images of one question after the first: few enough that a changed mind costs little."""


class Prediction(Struct, frozen=True):
    """One run's prediction for one image."""

    labels: tuple[str, ...]  # As they were asked.
    probabilities: Float[np.ndarray, " labels"]  # One a label; NaN where `shares` is "none".
    cosines: Float[np.ndarray, " labels"]  # One a label.
    step: int  # Updates the model had seen: those asked for, or those of the newest checkpoint where that one is gone.
    shares: Shares = "softmax"  # Whether the probabilities sum to 1 or are each for itself.

    @property
    def label(self) -> str:
        """The most probable label."""
        return self.labels[int(self.cosines.argmax())]

    @property
    def share(self) -> str:
        """What stands behind the label: its probability, or its cosine where a single label has no probability."""
        if self.shares == "none":
            return f", cosine {self.cosines.max():.3f}"
        share = float(self.probabilities.max())
        return f" {'> 99' if 0.995 <= share < 1 else f'{100 * share:.0f}'} %"


class ClassifyRequest(Struct, frozen=True):
    """The request made for every image, and its models."""

    models: tuple[Model, ...] = ()
    labels: tuple[str, ...] = ()
    templates: tuple[str, ...] = ()


class ModelState(Struct):
    """How far one model is with the current request."""

    open_question: int | None = None  # Number of the question that it has not answered; None if there is none.
    trouble: str = ""  # Why it does not answer; empty if it does, as far as known.
    is_prepared: bool = False  # It has been sent the labels, with or without images.
    lacks_step: bool = False  # The checkpoint of its step is kept no longer: the newest one answers.


@dataclass(frozen=True)
class StoredPrediction:
    """A model's prediction for an image, and whether it answers an earlier request."""

    prediction: Prediction
    is_stale: bool = False


class ClassifyQuery(QObject):
    """Sends requests to the model process until every image has the predictions of every model.

    Each is asked on its own, so that one without a checkpoint does not keep the other from answering. Where the
    checkpoint of a step is kept no longer, the newest one of that run answers.
    """

    answered = Signal(list)  # The images of which something new is known.
    changed = Signal()  # Waiting, trouble or staleness may be different now.

    def __init__(self, client: ModelClient, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._client = client
        self.request = ClassifyRequest()
        self._images: tuple[str, ...] = ()
        self._models: defaultdict[Model, ModelState] = defaultdict(ModelState)
        self._predictions: dict[tuple[str, Model], StoredPrediction] = {}
        self._unreadable: dict[str, str] = {}

    def want(self, images: Sequence[str], request: ClassifyRequest) -> None:
        """Request what is not yet known of `images`, in order; cancel what is no longer needed."""
        if request != self.request:
            self._start_over()
            self._models.clear()
            self.request = request
        self._images = tuple(images)
        self._predictions = {key: stored for key, stored in self._predictions.items() if key[0] in self._images}
        self._unreadable = {path: why for path, why in self._unreadable.items() if path in self._images}
        for model in request.models:
            self._next(model)
        self.changed.emit()

    def ask_again(self) -> None:
        """Request everything again, because a run may have a newer checkpoint."""
        self._start_over()
        self._unreadable.clear()
        for model, state in self._models.items():
            self._models[model] = ModelState(is_prepared=state.is_prepared)
        self.want(self._images, self.request)

    def prediction(self, path: str, run: int, step: int | None = None) -> Prediction | None:
        """Return the run's prediction for an image; the previous one while a newer one is pending."""
        stored = self._predictions.get((path, (run, step)))
        return None if stored is None else stored.prediction

    def answering(self, run: int, step: int | None) -> int | None:
        """Return the checkpoint step that is requested for this one; None for the newest, as far as known."""
        return None if self._models[run, step].lacks_step else step

    def is_stale(self, path: str) -> bool:
        """Return whether the known prediction of the image belongs to an earlier request."""
        predictions = (self._predictions.get((path, model)) for model in self.request.models)
        return any(stored is not None and stored.is_stale for stored in predictions)

    def problem(self, path: str) -> str:
        """Return why the image cannot be read; empty if it can, as far as known."""
        return self._unreadable.get(path, "")

    def trouble(self, run: int, step: int | None = None) -> str:
        """Return why `run` does not respond; empty if it does, as far as known."""
        return self._models[run, step].trouble

    @property
    def waiting(self) -> bool:
        """Whether predictions are pending."""
        return any(state.open_question is not None for state in self._models.values())

    def _start_over(self) -> None:
        """Cancel what is pending; the predictions stay until there are newer ones."""
        for state in self._models.values():
            if state.open_question is not None:
                self._client.cancel(state.open_question)
                state.open_question = None
        self._predictions = {key: replace(stored, is_stale=True) for key, stored in self._predictions.items()}

    def _needs(self, path: str, model: Model) -> bool:
        stored = self._predictions.get((path, model))
        return path not in self._unreadable and (stored is None or stored.is_stale)

    def _next(self, model: Model) -> None:
        """Send the next question to a model, if it has answered the last one and there is something to ask."""
        state, request = self._models[model], self.request
        if state.open_question is not None or state.trouble or not (request.labels and request.templates):
            return
        missing = [path for path in self._images if self._needs(path, model)]
        if not missing and (self._images or state.is_prepared):
            return
        # The first image alone: its answer is what a person waits for. Before there is one, none: then the labels
        # are embedded already when it is dropped.
        images = missing[:1] if missing and missing[0] == self._images[0] else missing[:AT_ONCE]
        state.is_prepared = True
        question = Classify(
            runs=(model[0],),
            step=self.answering(*model),
            images=tuple(images),
            labels=request.labels,
            templates=request.templates,
        )
        state.open_question = self._client.ask(
            question,
            done=lambda answer: self._take(model, question, answer),
            failed=lambda failure: self._fail(model, question, failure),
            owner=self,
        )

    def _take(self, model: Model, question: Classify, answer: ClassifyAnswer) -> None:
        if not self._is_current(model, question):
            return
        self._models[model].open_question = None
        said = answer.runs[model[0]]
        shares = said.probabilities or [[np.nan] * len(question.labels)] * len(answer.images)
        for path, row, cosines in zip(answer.images, shares, said.cosines, strict=True):
            self._predictions[path, model] = StoredPrediction(
                Prediction(question.labels, np.array(row), np.array(cosines), said.step, said.shares)
            )
        self._unreadable |= answer.unreadable
        self._next(model)
        self.answered.emit(list(question.images))
        self.changed.emit()

    def _fail(self, model: Model, question: Classify, failure: Failure) -> None:
        if failure.kind == "cancelled" or not self._is_current(model, question):
            return
        state = self._models[model]
        state.open_question = None
        if failure.kind == "no_checkpoint" and question.step is not None:
            state.lacks_step, state.is_prepared = True, False
            self._next(model)
            return
        if not question.images:
            # Nobody has asked anything yet; a drop will ask again, and then say what is wrong.
            return
        state.trouble = reason_words(reason_of(failure))
        for path in question.images:
            self._predictions.pop((path, model), None)
        self.answered.emit(list(question.images))
        self.changed.emit()

    def _is_current(self, model: Model, question: Classify) -> bool:
        """Return whether the model is still asked this question; its answer may come after a cancellation."""
        request = self.request
        same = (question.labels, question.templates) == (request.labels, request.templates)
        return self._models[model].open_question is not None and model in request.models and same
