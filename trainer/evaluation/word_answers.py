"""Class prediction with bag-of-words models: an image tower and a score for every word."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import torch
from jaxtyping import Float, Int, UInt8

from trainer.analysis.retrieval import recall_at
from trainer.analysis.word_scores import class_scores, class_words
from trainer.data.augment import normalized
from trainer.data.streamed_images import StreamedImages
from trainer.device import measuring, memory_format, sent
from trainer.methods import BagOfWords
from trainer.models import TwoTowers

AT_ONCE: Final = 256
NEVER: Final = 1_000_000_000
"""Place of a class that cannot be answered."""


@torch.inference_mode()
def word_logits(
    towers: TwoTowers, method: BagOfWords, images: UInt8[np.ndarray, "n s s 3"] | StreamedImages, where: torch.device
) -> Float[np.ndarray, "n k"]:
    """Return the score of every word for every image, then restore the modules' modes."""
    modes = towers.training, method.training
    towers.eval()
    method.eval()
    rows = []
    try:
        with measuring(where):
            for start in range(0, len(images), AT_ONCE):
                part = sent(np.array(images[start : start + AT_ONCE]), where)
                pixels = normalized(part).contiguous(memory_format=memory_format(where))
                rows.append(method.scores(towers.features(pixels)).float().cpu())
    finally:
        towers.train(modes[0])
        method.train(modes[1])
    return torch.cat(rows).numpy() if rows else np.zeros((0, len(method.words)), np.float32)


def places_of(scores: Float[np.ndarray, "n c"], label: Int[np.ndarray, " n"]) -> Int[np.ndarray, " n"]:
    """Return the rank (1 = best) of each image's class; ties count against it, as in `trainer.analysis.zero_shot`.

    A class without a score (minus infinity) is never answered, not even among few classes.
    """
    label_score = scores[np.arange(len(label)), label]
    return np.where(np.isneginf(label_score), NEVER, (~(scores < label_score[:, None])).sum(axis=1))


def word_numbers(
    logits: Float[np.ndarray, "n k"], vocabulary: Sequence[str], classes: Sequence[str], label: Int[np.ndarray, " n"]
) -> dict[str, float]:
    """Return zero-shot accuracy by the words of class names, on images with a known class; else nothing.

    Args:
        logits: As `word_logits` gives them.
        vocabulary: The word of each column of `logits`.
        label: Place of each image's class, -1 where it has none.
    """
    labeled = label >= 0
    weights = class_words(classes, vocabulary)
    if not labeled.any() or not weights.any():
        return {}
    return class_numbers(class_scores(logits[labeled], weights), label[labeled])


def class_numbers(scores: Float[np.ndarray, "n c"], label: Int[np.ndarray, " n"]) -> dict[str, float]:
    """Return zero-shot accuracy by the scores of classes."""
    ranks = places_of(scores, label)
    return {"zero_shot_acc1": recall_at(ranks, 1), "zero_shot_acc5": recall_at(ranks, 5)}
