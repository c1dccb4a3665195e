"""Labeled images: losses of distances on batches with several images of a class, and cross-entropy of the class."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from trainer import config
from trainer.data import Pairs
from trainer.data.order import class_batches
from trainer.device import sent
from trainer.errors import UserError
from trainer.losses import contrastive_margin, cross_entropy, margin, triplet
from trainer.methods.batch import Batch
from trainer.methods.method import Material, Method, generator_of, needed
from trainer.models import TwoTowers


class Labeled(Method):
    """An objective of unit image embeddings and their classes."""

    def __init__(self, choice: Any, material: Material | None) -> None:
        super().__init__()
        material = needed(material)
        self._choice = choice
        self._seed = material.run.seed
        self.classes, labels = classes_of(material.pairs)
        self._labels = torch.from_numpy(labels)

    def order(self, n: int, batch_size: int, seed: int, epoch: int) -> Sequence[Int[np.ndarray, " batch"]]:
        """Return batches with `per_class` images of each class drawn; images without a class are omitted."""
        return list(class_batches(self._labels.numpy(), batch_size, self._choice.per_class, seed, epoch))

    def embed(self, towers: TwoTowers, batch: Batch) -> tuple[Float[Tensor, "n d"]]:
        """Return unit embeddings of the images."""
        return (towers.encode_image(batch.images),)

    def labels_of(self, batch: Batch) -> Int[Tensor, " n"]:
        """Return the class of each image of the batch, on the CPU: its samplers read which pairs there are."""
        return self._labels[batch.rows]

    def generator(self, batch: Batch, where: torch.device) -> torch.Generator:
        """Return the generator for this update's sampler, on the device that draws."""
        return generator_of(self._seed, batch.step, where)


class ContrastiveMarginImages(Labeled):
    """Hadsell's contrastive loss over all pairs of the batch."""

    def compare(self, embedded: tuple[Float[Tensor, "n d"], ...], batch: Batch) -> Float[Tensor, ""]:
        """Return the loss: equal classes attract, others repel up to the margin."""
        choice = self._choice
        return contrastive_margin(
            *embedded, self.labels_of(batch), margin=choice.margin, matched_margin=choice.matched_margin
        )


class TripletImages(Labeled):
    """FaceNet's triplet loss with the configured sampler."""

    def compare(self, embedded: tuple[Float[Tensor, "n d"], ...], batch: Batch) -> Float[Tensor, ""]:
        """Return the loss of every anchor and positive against one negative."""
        choice = self._choice
        return triplet(
            *embedded, self.labels_of(batch), margin=choice.margin, sampler=choice.sampler, squared=choice.squared,
            generator=self.generator(batch, embedded[0].device),
        )  # fmt: skip


class MarginImages(Labeled):
    """The margin loss with a learned boundary per class."""

    def __init__(self, choice: config.Margin, material: Material | None) -> None:
        super().__init__(choice, material)
        start = torch.full((len(self.classes),), choice.beta)
        self.beta = nn.Parameter(start, requires_grad=choice.learn_beta)

    def compare(self, embedded: tuple[Float[Tensor, "n d"], ...], batch: Batch) -> Float[Tensor, ""]:
        """Return the loss of positives within the boundary, with one negative each beyond it."""
        choice = self._choice
        return margin(
            *embedded, self.labels_of(batch), beta=self.beta, alpha=choice.alpha, sampler=choice.sampler,
            generator=self.generator(batch, embedded[0].device),
        )  # fmt: skip


class SupervisedImages(Method):
    """Names the class of an image by a linear layer on its embedding.

    Attributes:
        classes: Those of the training pairs with at least two images; others do not count.
    """

    def __init__(self, choice: config.CrossEntropy, material: Material | None) -> None:
        super().__init__()
        material = needed(material)
        self._smoothing = choice.smoothing
        self.classes, labels = classes_of(material.pairs)
        self.scores = nn.Linear(material.sizes.embed_dim, len(self.classes))
        self._labels = torch.from_numpy(labels)

    def embed(self, towers: TwoTowers, batch: Batch) -> tuple[Float[Tensor, "n k"]]:
        """Return a logit for every class."""
        assert batch.images is not None
        return (self.scores(towers.features(batch.images)).float(),)

    def compare(self, embedded: tuple[Float[Tensor, "n k"], ...], batch: Batch) -> Float[Tensor, ""]:
        """Return the cross-entropy of the logits and the classes."""
        labels = sent(self._labels[batch.rows], embedded[0].device)
        return cross_entropy(embedded[0], labels, smoothing=self._smoothing)


def classes_of(pairs: Pairs) -> tuple[list[str], Int[np.ndarray, " n"]]:
    """Return the classes with at least two images, and each pair's class index, -1 for others.

    Raises:
        UserError: There are fewer than two such classes.
    """
    counts = Counter(pairs.labels)
    classes = sorted(label for label, count in counts.items() if label and count > 1)
    if len(classes) < 2:
        what = "no labels" if not any(pairs.labels) else "fewer than two classes with several images"
        raise UserError(
            f"{pairs.name} has {what}, and this objective learns from classes. Choose Scenes or a table with a "
            "column of labels, or an objective of image-text pairs or of two views."
        )
    indices = {label: number for number, label in enumerate(classes)}
    return classes, np.array([indices.get(label, -1) for label in pairs.labels], dtype=np.int64)
