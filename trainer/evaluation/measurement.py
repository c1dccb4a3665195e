"""How a run is measured on held-out pairs while it trains, by what its method learns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final

import torch

from trainer.evaluation.caption_answers import prompt_likelihoods
from trainer.evaluation.decoder_metrics import MOST, decoder_metrics
from trainer.evaluation.decoder_metrics import question as decoder_question
from trainer.evaluation.heldout import Embedded, HeldOut
from trainer.evaluation.image_text_metrics import measure
from trainer.evaluation.questions import By, of_training, sparing
from trainer.evaluation.word_answers import class_numbers, word_logits, word_numbers
from trainer.inference.batches import Alive
from trainer.methods import BagOfWords, CaptionPrediction, DecoderPictures, ImageText, Method
from trainer.metrics import logged_name, metric
from trainer.models import TwoTowers
from trainer.store.question import Question


class Measurement:
    """Of a method that compares no images with texts: its number is that of its neighbors."""

    by: ClassVar[By] = "prompts"  # How it names classes.
    # Whether each evaluation seeks neighbors among training pairs; else the last one alone does, to compare the
    # run with others.
    by_neighbors: ClassVar[bool] = True
    makes_embeddings: ClassVar[bool] = True  # Whether the embeddings are its own; else another run keeps them.

    def __init__(self, method: Any, where: torch.device, *, batch_size: int) -> None:
        self.method, self.where, self.batch_size = method, where, batch_size

    def numbers(self, towers: TwoTowers, heldout: HeldOut, embedded: Embedded, *, alive: Alive) -> dict[str, float]:
        """Return the metrics of a split, by the names of `trainer.metrics` without their prefix.

        Args:
            towers: As they are measured.
            embedded: As `heldout.embed` gives it.
            alive: Called again and again.
        """
        return {}

    def questions(self, heldout: HeldOut) -> dict[str, Question]:
        """Return task -> question of these metrics."""
        return of_training(heldout, batch_size=self.batch_size, both=False, masks=False, by=self.by)

    def logged(self, numbers: Mapping[str, float]) -> Sequence[str]:
        """Return which of these metrics of all splits, named with their prefixes, stand in the text log."""
        return [name for name in numbers if name.endswith(("/knn_acc1", "/knn_words"))]

    def lines(self, numbers: Mapping[str, float], sizes: Mapping[str, int]) -> list[str]:
        """Return an evaluation for the text log: a metric in each line with its unit, values below each other.

        Args:
            numbers: Of all splits, with their prefixes.
            sizes: Pairs by prefix, and distinct questions by prefix and direction.
        """
        groups: dict[str, list[tuple[str, str]]] = {}
        for name in self.logged(numbers):
            label, of = logged_name(name, sizes.get(name.partition("_R@")[0])), ""
            if metric(name).is_recall:
                label, _, of = label.partition(", ")
            groups.setdefault(of, []).append((label, metric(name).text(numbers[name])))
        every = [row for rows in groups.values() for row in rows]
        label_width, width = (max((len(row[column]) for row in every), default=0) for column in (0, 1))
        lines: list[str] = []
        for of, rows in groups.items():
            lines += [of] * bool(of) + [f"{label:<{label_width}}  {text:>{width}}" for label, text in rows]
        return lines


class PairMeasurement(Measurement):
    """Of images against texts: judged by recall."""

    by_neighbors: ClassVar[bool] = False
    method: ImageText

    def numbers(self, towers: TwoTowers, heldout: HeldOut, embedded: Embedded, *, alive: Alive) -> dict[str, float]:
        """Return recall, loss, zero-shot accuracy and what describes the two modalities."""
        return measure(heldout, embedded, self.method, batch_size=self.batch_size, alive=alive)

    def questions(self, heldout: HeldOut) -> dict[str, Question]:
        """Return the questions of all of these."""
        return of_training(heldout, batch_size=self.batch_size, both=True, masks=self.method.masks, by=self.by)

    def logged(self, numbers: Mapping[str, float]) -> Sequence[str]:
        """Return the loss and recalls."""
        names = ["val/loss", "val/image_to_text_R@1", "val/image_to_text_R@5", "val/text_to_image_R@1"]
        return names + [name for name in numbers if name.endswith("/image_to_text_R@1") and not name.startswith("val/")]


class WordMeasurement(Measurement):
    """Of scores of words: classes are named by the words of their names."""

    by: ClassVar[By] = "words"
    method: BagOfWords

    def numbers(self, towers: TwoTowers, heldout: HeldOut, embedded: Embedded, *, alive: Alive) -> dict[str, float]:
        """Return zero-shot accuracy."""
        scores, classified = word_logits(towers, self.method, heldout.pairs.images, self.where), heldout.classified
        return word_numbers(scores[classified], self.method.words, heldout.classes, heldout.labels[classified])


class CaptionMeasurement(Measurement):
    """Of predicted captions: classes are named by the likelihood of their prompts."""

    by: ClassVar[By] = "captions"
    method: CaptionPrediction

    def numbers(self, towers: TwoTowers, heldout: HeldOut, embedded: Embedded, *, alive: Alive) -> dict[str, float]:
        """Return zero-shot accuracy, if the split has classes."""
        classified = heldout.classified
        if heldout.suite is None or not len(classified):
            return {}
        images = heldout.pairs.images[classified]
        likely = prompt_likelihoods(towers, self.method, images, sparing(heldout.suite), self.where)
        return class_numbers(likely, heldout.labels[classified])


class DecoderMeasurement(Measurement):
    """Of a decoder: its pictures and priors; the embeddings are those of the run it decodes."""

    makes_embeddings: ClassVar[bool] = False
    method: DecoderPictures

    def numbers(self, towers: TwoTowers, heldout: HeldOut, embedded: Embedded, *, alive: Alive) -> dict[str, float]:
        """Return errors of the mean picture and the denoiser, and cosines of the prior."""
        return decoder_metrics(heldout, embedded, self.method, alive=alive)

    def questions(self, heldout: HeldOut) -> dict[str, Question]:
        """Return the question about the pictures."""
        return {"decoder": decoder_question(len(heldout.pairs), self.method.size)}

    def logged(self, numbers: Mapping[str, float]) -> Sequence[str]:
        """Return errors and cosines on the first split."""
        names = ("mean_picture_r2", "denoising_loss", "denoising_loss_dropped", "prior_cosine", "text_cosine")
        return [f"val/{name}" for name in names if f"val/{name}" in numbers]

    def lines(self, numbers: Mapping[str, float], sizes: Mapping[str, int]) -> list[str]:
        """Return the evaluation with the number of pictures first."""
        return [f"n = {min(sizes.get('val', 0), MOST):,}", *super().lines(numbers, sizes)]


_MEASUREMENTS: Final[dict[type, type[Measurement]]] = {
    ImageText: PairMeasurement,
    BagOfWords: WordMeasurement,
    CaptionPrediction: CaptionMeasurement,
    DecoderPictures: DecoderMeasurement,
    Method: Measurement,
}


def measurement_of(method: Method, where: torch.device, *, batch_size: int) -> Measurement:
    """Return how a method is measured: as the nearest of its base classes in the table is."""
    kind = next(_MEASUREMENTS[base] for base in type(method).__mro__ if base in _MEASUREMENTS)
    return kind(method, where, batch_size=batch_size)
