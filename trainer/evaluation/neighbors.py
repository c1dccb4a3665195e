"""kNN accuracy: whether the training pairs nearest to a held-out one share its class, attributes and words."""

from __future__ import annotations

import re
from typing import Final

import numpy as np
import torch
from jaxtyping import Float, Int

from trainer.analysis.neighbors import NEIGHBORS, accuracy, nearest
from trainer.analysis.sampling import at_most
from trainer.data import Pairs
from trainer.data.published_tokenizers import AnyTokenizer
from trainer.evaluation.heldout import Embedded
from trainer.inference.batches import Alive, embed_images, embed_tokens
from trainer.models import TwoTowers

STORED: Final = 2_048
"""Training pairs among which neighbors are sought, drawn once and for all."""
_IMAGES_AT_ONCE: Final = 256
_MOST_VALUES: Final = 64
"""Columns with more values than this are no attributes but names."""


class ReferencePairs:
    """Training pairs to compare held-out ones with, the same for every run on the same data.

    Attributes:
        stored: How many they are.
        whole: How many they were drawn from.
    """

    def __init__(self, pairs: Pairs, *, tokenizer: AnyTokenizer, context_length: int, whole: int | None = None) -> None:
        """Draw them.

        Args:
            pairs: To draw from.
            tokenizer: Of the model.
            context_length: Of the model.
            whole: How many pairs `pairs` were drawn from in their turn; None where they are all.
        """
        self._rows = at_most(len(pairs), STORED)
        self._pairs = pairs
        self.stored, self.whole = len(self._rows), whole or len(pairs)
        self._tokens = tokenizer.encode([pairs.captions[row] for row in self._rows], context_length)
        columns = {"acc1": pairs.labels, **pairs.metadata}
        known = {name: [values[row] for row in self._rows] for name, values in columns.items()}
        self._known = {name: values for name, values in known.items() if 2 <= len(set(values) - {""}) <= _MOST_VALUES}
        self._words = [words_of(pairs.captions[row]) for row in self._rows]

    def embed(self, towers: TwoTowers, where: torch.device, *, alive: Alive = None) -> Float[np.ndarray, "m d"]:
        """Return unit embeddings by the image tower, or of captions without one; calls `alive` in between."""
        training = towers.training
        towers.eval()
        try:
            if towers.visual is None:
                return embed_tokens(towers, self._tokens, where, alive=alive)
            parts = [
                self._rows[start : start + _IMAGES_AT_ONCE] for start in range(0, len(self._rows), _IMAGES_AT_ONCE)
            ]
            return np.concatenate(
                [embed_images(towers, self._pairs.images[part], where, alive=alive) for part in parts]
            )
        finally:
            towers.train(training)

    def numbers(self, pairs: Pairs, embedded: Embedded, stored: Float[np.ndarray, "m d"]) -> dict[str, float]:
        """Return `knn_acc1` of the class, `knn_<attribute>` of every attribute, and `knn_words`.

        Captions are compared with other captions only. The last is the mean overlap (Jaccard) of a caption's words
        with those of its nearest neighbor: it needs no labels.

        Args:
            pairs: A held-out split.
            embedded: Its embeddings.
            stored: The reference's, by the same model.
        """
        if embedded.image is None:
            query, kept = embedded.text, self._others(pairs)
        else:
            query, kept = embedded.image, np.arange(len(stored))
        rows, cosines = nearest(query, stored[kept], NEIGHBORS)
        rows = kept[rows]
        asked = {"acc1": pairs.labels, **pairs.metadata}
        found = {
            f"knn_{name}": accuracy(asked[name], known, rows, cosines)
            for name, known in self._known.items()
            if name in asked and any(asked[name])
        }
        return found | {"knn_words": self._overlap(pairs, rows[:, 0])}

    def _others(self, pairs: Pairs) -> Int[np.ndarray, " k"]:
        """Return the stored pairs whose captions do not occur in `pairs`, since equal captions prove nothing."""
        captions = set(pairs.captions)
        others = [place for place, row in enumerate(self._rows) if self._pairs.captions[row] not in captions]
        return np.array(others or range(len(self._rows)))

    def _overlap(self, pairs: Pairs, neighbor: np.ndarray) -> float:
        shared = [
            len(own & self._words[row]) / max(1, len(own | self._words[row]))
            for own, row in zip(map(words_of, pairs.captions), neighbor, strict=True)
        ]
        return float(np.mean(shared))


def words_of(caption: str) -> frozenset[str]:
    """Return the distinct words of a caption, lower-cased."""
    return frozenset(re.findall(r"\w+", caption.lower()))
