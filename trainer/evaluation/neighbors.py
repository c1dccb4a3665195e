"""kNN accuracy: whether the training pairs nearest to a held-out one share its class, attributes and words."""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from typing import Final

import numpy as np
import torch
from jaxtyping import Float, Int

from trainer.analysis.distinct import in_order, numbered
from trainer.analysis.neighbors import NEIGHBORS, accuracy
from trainer.analysis.sampling import at_most
from trainer.analysis.tiled_neighbors import nearest
from trainer.data import Pairs
from trainer.data.content import pixel_digests
from trainer.data.streamed_images import readable
from trainer.data.tokenizers import AnyTokenizer
from trainer.evaluation.heldout import Embedded, HeldOut
from trainer.inference.batches import Alive, embed_images, embed_tokens
from trainer.models import TwoTowers

STORED: Final = 2_048
"""Training pairs among which neighbors are sought, drawn once and for all."""
_IMAGES_AT_ONCE: Final = 256
_MOST_VALUES: Final = 64
"""Columns with more values than this are no attributes but names."""


class NeighborReference:
    """Training pairs to compare held-out ones with, the same for every run on the same data.

    Each distinct picture is stored once (each caption for a model of texts alone): a copy is no second neighbor.

    They are drawn when they are first asked for: which of listed pictures can be read, only decoding them tells.

    Attributes:
        whole: How many they were drawn from.
    """

    def __init__(self, pairs: Pairs, *, tokenizer: AnyTokenizer, context_length: int, total: int | None = None) -> None:
        """Create it without drawing them.

        Args:
            context_length: Of the model.
            total: How many pairs `pairs` were drawn from in their turn; None where they are all.
        """
        self._pairs, self.whole = pairs, total or len(pairs)
        self._encode = functools.partial(tokenizer.encode, context_length=context_length)
        self._distinct: Int[np.ndarray, " m"] | None = None

    @functools.cached_property
    def _rows(self) -> Int[np.ndarray, " n"]:
        return readable(self._pairs.images, at_most(len(self._pairs), STORED))

    @functools.cached_property
    def _captions(self) -> list[str]:
        return [self._pairs.captions[row] for row in self._rows]

    @functools.cached_property
    def _known(self) -> dict[str, list[str]]:
        columns = {"acc1": self._pairs.labels, **self._pairs.metadata}
        attributes = {name: [values[row] for row in self._rows] for name, values in columns.items()}
        return {name: values for name, values in attributes.items() if 2 <= len(set(values) - {""}) <= _MOST_VALUES}

    @functools.cached_property
    def _words(self) -> list[frozenset[str]]:
        return [words_of(caption) for caption in self._captions]

    @property
    def drawn(self) -> int:
        """How many they are, copies among them."""
        return len(self._rows)

    def embed(self, towers: TwoTowers, where: torch.device, *, alive: Alive = None) -> Float[np.ndarray, "m d"]:
        """Return unit embeddings by the image tower, or of captions without one; calls `alive` in between.

        A row is a distinct picture or caption, the first of those drawn.
        """
        training = towers.training
        towers.eval()
        try:
            if towers.visual is None:
                content = self._captions
                rows = embed_tokens(towers, self._encode(content), where, alive=alive)
            else:
                content, parts = [], []
                for start in range(0, len(self._rows), _IMAGES_AT_ONCE):
                    images = self._pairs.images[self._rows[start : start + _IMAGES_AT_ONCE]]
                    content += pixel_digests(images) if self._distinct is None else []
                    parts.append(embed_images(towers, images, where, alive=alive))
                rows = np.concatenate(parts)
            if self._distinct is None:
                self._distinct = in_order(numbered(content))[1]
            return rows[self._distinct]
        finally:
            towers.train(training)

    @property
    def stored(self) -> int:
        """How many distinct ones there are, once they were embedded."""
        return self.drawn if self._distinct is None else len(self._distinct)

    def numbers(self, heldout: HeldOut, embedded: Embedded, stored: Float[np.ndarray, "m d"]) -> dict[str, float]:
        """Return `knn_acc1` of classes, `knn_<attribute>` of attributes, and `knn_words`, by neighbors in `stored`.

        Each distinct picture asks once. Captions are compared with other captions only. The last is the mean overlap
        (Jaccard) of a caption's words with those of its nearest neighbor: it needs no labels.
        """
        pairs, images = heldout.pairs, embedded.image is not None
        query = embedded.image if images else embedded.text
        assert query is not None
        asking = asking_rows(heldout, images=images)
        distinct = np.arange(self.drawn) if self._distinct is None else self._distinct
        others = np.arange(len(stored)) if images else self._others(pairs, distinct)
        rows, cosines = nearest(query[asking], stored[others], NEIGHBORS)
        rows = distinct[others[rows]]
        columns = {"acc1": pairs.labels, **pairs.metadata}
        measured = {
            f"knn_{name}": accuracy([columns[name][row] for row in asking], values, rows, cosines)
            for name, values in self._known.items()
            if name in columns and any(columns[name])
        }
        return measured | {"knn_words": self._overlap([pairs.captions[row] for row in asking], rows[:, 0])}

    def _others(self, pairs: Pairs, distinct: Int[np.ndarray, " m"]) -> Int[np.ndarray, " k"]:
        """Return the stored pairs whose captions do not occur in `pairs`, since equal captions prove nothing."""
        captions = set(pairs.captions)
        others = [number for number, row in enumerate(distinct) if self._captions[row] not in captions]
        return np.array(others or range(len(distinct)))

    def _overlap(self, captions: Sequence[str], neighbor: Int[np.ndarray, " n"]) -> float:
        shared = [
            len(caption_words & self._words[row]) / max(1, len(caption_words | self._words[row]))
            for caption_words, row in zip(map(words_of, captions), neighbor, strict=True)
        ]
        return float(np.mean(shared))


def asking_rows(heldout: HeldOut, *, images: bool) -> Int[np.ndarray, " q"]:
    """Return the first row of each distinct picture of a split, or of each distinct caption."""
    matching = heldout.matching
    return matching.images.rows if images else matching.texts.rows


def words_of(caption: str) -> frozenset[str]:
    """Return the distinct words of a caption, lower-cased."""
    return frozenset(re.findall(r"\w+", caption.lower()))
