"""Right answers of a batch in the form that losses read: `Units.right` as a few keys of each pair.

A cell (picture i, caption j) is a right answer exactly where some pair has that picture and that caption. The
transitive closure is another relation: through one generic caption ("a weapon") it links a sword with the caption of
an axe.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Int

from trainer.analysis.distinct import Matching


@dataclass(frozen=True)
class AnswerKeys:
    """Keys of the pictures and captions of a batch; cell (i, j) is a right answer where any of their keys agree.

    Keys take O(b k) memory where the cells take O(b^2), and any block of the table can be masked from them.
    """

    pictures: Int[np.ndarray, "b k"]  # Of the picture of each pair.
    captions: Int[np.ndarray, "b k"]  # Of the caption of each pair; key k is compared with key k of the pictures.

    def cells(self) -> Bool[np.ndarray, "b b"]:
        """Return whether caption j (column) is a right answer of picture i (row); the diagonal is true."""
        right = np.eye(len(self.pictures), dtype=bool)
        for image_key, caption_key in zip(self.pictures.T, self.captions.T, strict=True):
            right |= image_key[:, None] == caption_key[None, :]
        return right


def answer_keys(matching: Matching, rows: Int[np.ndarray, " b"]) -> AnswerKeys:
    """Return the keys of the pairs of a batch; no columns where only the matches are right answers.

    Args:
        matching: Of all pairs of the split: a pair outside of the batch makes its caption right, too.
        rows: Of the batch.
    """
    texts = matching.texts
    picture, caption = texts.question[rows], texts.place[rows]
    pairs = [(key, key) for key in (picture, caption) if len(np.unique(key)) < len(key)]
    further = _further_captions(matching, picture, caption)
    pairs += [(column, caption) for column in further.T]
    if not pairs:
        return AnswerKeys(np.zeros((len(rows), 0), np.int64), np.zeros((len(rows), 0), np.int64))
    image_keys, caption_keys = (np.stack(side, axis=1) for side in zip(*pairs, strict=True))
    return AnswerKeys(image_keys, caption_keys)


def _further_captions(
    matching: Matching, picture: Int[np.ndarray, " b"], caption: Int[np.ndarray, " b"]
) -> Int[np.ndarray, "b w"]:
    """Return the captions in the batch, of each pair's picture, that neither picture nor caption of the pair tell.

    Caption c of picture i is told by the picture where all pairs of the batch that have c show i. Filled up with -1.
    """
    texts = matching.texts
    present, group = np.unique(picture, return_inverse=True)
    line, right, _ = texts.cells(present)
    edges = np.unique(picture * max(len(texts), 1) + caption)
    pictures_of = np.bincount(edges % max(len(texts), 1), minlength=len(texts))
    alone = np.isin(present[line] * max(len(texts), 1) + right, edges) & (pictures_of[right] == 1)
    counted = (pictures_of[right] > 0) & ~alone
    line, right = line[counted], right[counted]
    sizes = np.bincount(line, minlength=len(present))
    first = np.cumsum(sizes) - sizes
    group_size = sizes[group]
    row = np.repeat(np.arange(len(picture)), group_size)
    begin = np.cumsum(group_size) - group_size
    captions = right[np.repeat(first[group], group_size) + np.arange(len(row)) - np.repeat(begin, group_size)]
    other = captions != caption[row]
    row, captions = row[other], captions[other]
    counts = np.bincount(row, minlength=len(picture))
    column = np.arange(len(row)) - np.repeat(np.cumsum(counts) - counts, counts)
    further = np.full((len(picture), int(counts.max(initial=0))), -1, np.int64)
    further[row, column] = captions
    return further
