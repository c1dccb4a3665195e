"""How a run is measured on held-out pairs while it trains, by what its method learns."""

from __future__ import annotations

from collections.abc import Mapping
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

    def summary(self, numbers: Mapping[str, float], sizes: Mapping[str, int]) -> str:
        """Return an evaluation for the log.

        Args:
            numbers: Of all splits, with their prefixes.
            sizes: Pairs by prefix, and distinct questions by prefix and direction.
        """
        names = [name for name in numbers if name.endswith(("/knn_acc1", "/knn_words"))]
        return "  ".join(f"{metric(name).label} {numbers[name]:.3f}" for name in names)


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

    def summary(self, numbers: Mapping[str, float], sizes: Mapping[str, int]) -> str:
        """Return the loss and recalls, with how many asked."""
        names = ["val/image_to_text_R@1", "val/image_to_text_R@5", "val/text_to_image_R@1"]
        names += [name for name in numbers if name.endswith("/image_to_text_R@1") and not name.startswith("val/")]
        recalls = (f"{logged_name(name, sizes.get(name.partition('_R@')[0]))} {numbers[name]:.3f}" for name in names)
        return "  ".join((f"val loss {numbers['val/loss']:.4f}", *recalls))


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

    def summary(self, numbers: Mapping[str, float], sizes: Mapping[str, int]) -> str:
        """Return errors and cosines on the first split."""
        names = ("mean_picture_r2", "denoising_loss", "denoising_loss_dropped", "prior_cosine", "text_cosine")
        measured = [metric(f"val/{name}") for name in names if f"val/{name}" in numbers]
        values = "  ".join(f"{entry.label} {entry.text(numbers[entry.name])}" for entry in measured)
        return f"n = {min(sizes.get('val', 0), MOST):,}  {values}"


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
