"""Does a model bind words? A picture, its caption, and captions with the same words bound otherwise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from trainer.analysis.caption_swaps import swaps
from trainer.analysis.intervals import wilson

Measured = tuple[dict[str, float], dict[str, Any], dict[str, np.ndarray]]


@dataclass(frozen=True)
class Negatives:
    """The captions that are false of the pictures of a batch."""

    row: Int[np.ndarray, " m"]  # Of each the row of its picture and caption; ascending.
    kind: tuple[str, ...]  # What was changed.
    caption: tuple[str, ...]
    pair: tuple[str, ...] = ()  # Of each row of the batch the name of its pair (Winoground), or empty.

    def __len__(self) -> int:
        return len(self.caption)


def swapped(captions: Sequence[str], rows: Int[np.ndarray, " k"]) -> Negatives:
    """Return the minimal swaps of the captions of these rows."""
    made = [(row, swap.kind, swap.caption) for row in rows.tolist() for swap in swaps(captions[row])]
    row, kind, caption = zip(*made, strict=True) if made else ((), (), ())
    return Negatives(np.array(row, np.int64), kind, caption)


def choose(
    image: Float[np.ndarray, "n d"],
    text: Float[np.ndarray, "n d"],
    negatives: Negatives,
    false: Float[np.ndarray, "m d"],
) -> Measured:
    """Return how often a picture is nearer to its caption than to every false one of a kind.

    SugarCrepe (Hsieh et al., 2023, https://arxiv.org/abs/2306.14610, section 3): right where
    s(x, caption) > s(x, negative); ties are wrong. Winoground (Thrush et al., 2022, https://arxiv.org/abs/2204.03162,
    equations 1 to 3): the text score of a pair needs both captions chosen, the image score both pictures, the group
    score both scores.

    Args:
        image: Unit embeddings of pictures.
        text: Of their captions.
        false: Their unit embeddings.

    Returns:
        Metrics, intervals by kind (Wilson), and a row a question: the row of its picture, kind, margin, answer.
    """
    image, text, false = (np.asarray(rows, np.float64) for rows in (image, text, false))
    caption_cosine = np.einsum("nd,nd->n", image, text)
    margin = caption_cosine[negatives.row] - np.einsum("md,md->m", image[negatives.row], false)
    questions: dict[tuple[int, str], list[int]] = {}
    for index, key in enumerate(zip(negatives.row.tolist(), negatives.kind, strict=True)):
        questions.setdefault(key, []).append(index)
    hardest = np.array([min(of, key=lambda index: margin[index]) for of in questions.values()], np.int64)
    least = margin[hardest]
    row, kind = np.array([row for row, _ in questions]), np.array([kind for _, kind in questions], str)
    right = least > 0
    arrays = {"row": row, "kind": kind, "margin": least, "right": right}
    arrays["negative"] = np.array([negatives.caption[index] for index in hardest], str)
    kinds = {name: right[kind == name] for name in dict.fromkeys(kind.tolist())}
    metrics = {"caption_choice": float(right.mean())}
    metrics |= {f"caption_choice_{name}": float(rights.mean()) for name, rights in kinds.items()}
    metrics |= _of_pairs(image, text, negatives.pair)
    details: dict[str, Any] = {"kinds": {name: _told(rights, len(rights)) for name, rights in kinds.items()}}
    # Several questions about one picture are answered together: they are no more than the pictures are.
    details["all"] = _told(right, len(np.unique(row))) | {"questions": len(right)}
    return metrics, details, arrays


def _told(right: np.ndarray, independent: int) -> dict[str, Any]:
    share = float(right.mean())
    low, high = wilson(share, independent)
    return {"share": share, "n": independent, "low": low, "high": high}


def _of_pairs(image: np.ndarray, text: np.ndarray, pair: Sequence[str]) -> dict[str, float]:
    """Return Winoground's three scores over the pairs of which both halves are there."""
    halves: dict[str, list[int]] = {}
    for row, name in enumerate(pair):
        if name:
            halves.setdefault(name, []).append(row)
    scores = [image[rows] @ text[rows].T for rows in halves.values() if len(rows) == 2]
    if not scores:
        return {}
    of_text = np.array([s[0, 0] > s[0, 1] and s[1, 1] > s[1, 0] for s in scores])
    of_image = np.array([s[0, 0] > s[1, 0] and s[1, 1] > s[0, 1] for s in scores])
    shares = {"text": of_text, "image": of_image, "group": of_text & of_image}
    return {f"caption_choice_pair_{name}": float(right.mean()) for name, right in shares.items()}
