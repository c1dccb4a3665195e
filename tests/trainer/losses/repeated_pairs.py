"""Batches in which pictures and captions repeat, with their right answers by a double loop."""

import numpy as np
import torch
from torch import Tensor

from trainer.analysis.answer_keys import answer_keys
from trainer.analysis.distinct import matching, numbered
from trainer.losses.right_answers import RightAnswers


def repeated_pairs(n: int, seed: int = 0) -> tuple[list[int], list[str]]:
    """Return pictures and captions of `5 n` pairs, of which the first n are the batch.

    A share of the captions are those that any picture may have, so that chains of pairs link most of the batch, and
    pairs outside the batch add right answers to it: the picture of pair 0, and the caption of pair 1, have no negative.
    """
    draw = np.random.default_rng(seed)
    pictures = draw.integers(max(n // 2, 1), size=3 * n).tolist()
    captions = [f"{'any' if draw.random() < 0.2 else picture} {draw.integers(3)}" for picture in pictures]
    return pictures + [pictures[0]] * n + pictures[:n], captions + captions[:n] + [captions[1]] * n


def right_by_loops(n: int, seed: int = 0) -> list[list[bool]]:
    """Return whether caption j of the batch is a right answer of its picture i."""
    pictures, captions = repeated_pairs(n, seed)
    pairs = set(zip(pictures, captions, strict=True))
    return [[(picture, caption) in pairs for caption in captions[:n]] for picture in pictures[:n]]


def answers_of_batch(n: int, seed: int = 0) -> RightAnswers:
    """Return the keys of the batch."""
    pictures, captions = repeated_pairs(n, seed)
    keys = answer_keys(matching(numbered(captions), np.array(pictures)), np.arange(n))
    return RightAnswers(torch.from_numpy(keys.pictures), torch.from_numpy(keys.captions))


def all_right(n: int) -> RightAnswers:
    """Return the answers of a batch of one caption."""
    same = torch.zeros((n, 1), dtype=torch.long)
    return RightAnswers(same, same)


def sums_by_loops(a: Tensor, b: Tensor, scale: float, right: list[list[bool]], *, match: bool) -> list[Tensor | None]:
    """Return the logsumexp over the negatives of each row, and the match if `match`; None of nothing."""
    found: list[Tensor | None] = []
    for i in range(len(a)):
        terms = [scale * a[i] @ b[j] for j in range(len(b)) if not right[i][j] or (match and i == j)]
        found.append(torch.stack(terms).logsumexp(0) if terms else None)
    return found
