"""What each deviation from the published protocol of retrieval costs: captions, repeats, gallery."""

from __future__ import annotations

from typing import Final, Literal

import numpy as np
from jaxtyping import Bool, Float, Int

from trainer.analysis.distinct import matching, numbered
from trainer.analysis.protocol_costs import ProtocolAnswers, of_rows
from trainer.analysis.retrieval import question_ranks
from trainer.evaluation.protocol_factors import Factor
from trainer.evaluation.task_data import TaskBatch

Direction = Literal["image_to_text", "text_to_image"]
DIRECTIONS: Final[tuple[Direction, ...]] = ("image_to_text", "text_to_image")
FOLD: Final = 1_000
"""Pictures of the small gallery: a fold of COCO's 5,000 (Karpathy and Fei-Fei, 2015, section 4.1)."""


class RetrievalProtocol:
    """A model's first answers in retrieval, under any set of deviations.

    The published protocol is CLIP_benchmark's: every caption of every picture is an item of its own, a picture finds
    any of its captions, a caption its own picture alone, and the whole split is the gallery.
    """

    def __init__(self, tried: TaskBatch, image: Float[np.ndarray, "n d"], text: Float[np.ndarray, "n d"]) -> None:
        """Create it from the unit embeddings of the pairs."""
        self._image, self._text = image, text
        self._captions: Int[np.ndarray, " n"] = numbered(tried.captions)
        self._files: Int[np.ndarray, " n"] = numbered(tried.paths)
        self.unit: Int[np.ndarray, " n"] = numbered(tried.content_of_pictures)

    def factors(self) -> tuple[Factor, ...]:
        """Return every factor in the order in which they are switched."""
        pictures, rows = len(np.unique(self._files)), len(self._files)
        distinct = len(np.unique(self._captions)) == rows and len(np.unique(self.unit)) == pictures
        gallery = self._gallery()
        return (
            Factor("captions", "Captions of a picture", f"all ({rows / pictures:.3g} on average)", "the first alone",
                   "" if rows > pictures else "Every picture has one caption."),
            Factor("distinct", "Equal captions and pictures", "items of their own", "one item",
                   "" if not distinct else "No two captions or pictures are equal."),
            Factor("gallery", "Gallery", f"{pictures:,} pictures", f"the first {gallery:,}",
                   "" if gallery < pictures else "It has no more pictures."),
        )  # fmt: skip

    def _gallery(self) -> int:
        pictures = len(np.unique(self._files))
        return FOLD if pictures > FOLD else max(2, pictures // 2)

    def answers(self, direction: Direction, changed: frozenset[str]) -> ProtocolAnswers:
        """Return whether each question's first answer is right, at the row where it is first asked."""
        present = self._rows(changed)
        rows = np.flatnonzero(present)
        if "distinct" in changed:
            items = matching(self._captions[rows], self.unit[rows])
        else:
            items = matching(np.arange(len(rows)), self._files[rows])
        of_images = direction == "image_to_text"
        queries, stored = (self._image, self._text) if of_images else (self._text, self._image)
        answering = items.texts if of_images else items.images
        right, counted = np.zeros(len(present), bool), np.zeros(len(present), bool)
        asking = rows[answering.asking()]
        counted[asking] = True
        right[asking] = question_ranks(queries[rows], stored[rows], answering) == 1
        return of_rows(right, counted)

    def _rows(self, changed: frozenset[str]) -> Bool[np.ndarray, " n"]:
        """Return which pairs are in the gallery."""
        present = np.ones(len(self._files), bool)
        if "gallery" in changed:
            present &= self._files < self._gallery()
        if "captions" in changed:
            first = np.zeros(len(present), bool)
            first[np.unique(self._files, return_index=True)[1]] = True
            present &= first
        return present
