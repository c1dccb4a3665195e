"""The numbers of a held-out split, by the names of `trainer.metrics` without their prefix."""

from __future__ import annotations

from typing import Final

import numpy as np
import torch
from jaxtyping import Float

from trainer.analysis.distinct import DistinctItems
from trainer.analysis.geometry import modality_gap
from trainer.analysis.progress import Progress
from trainer.analysis.retrieval import median_rank, ranks, recall_at
from trainer.analysis.similarity import auc, hardest_unmatched, matched_cosines
from trainer.analysis.zero_shot import class_ranks, class_weights
from trainer.evaluation.heldout import Embedded, HeldOut
from trainer.inference.batches import Alive
from trainer.methods import ImageText, Method

RECALLS: Final = (1, 5, 10)
HARDEST: Final = 10
"""Distinct unmatched texts an image is compared with: its most similar ones, as in the window's histograms."""


def measure(
    heldout: HeldOut, embedded: Embedded, method: Method | None, *, batch_size: int, alive: Alive = None
) -> dict[str, float]:
    """Recall both ways, zero-shot accuracy, cosines, AUC, gap, and the loss in batches as large as in training.

    Nothing for a model of images alone or of texts alone: its number is that of its neighbors.

    Args:
        heldout: The split.
        embedded: As `heldout.embed` gives it.
        method: What the run is trained with.
        batch_size: Of the training.
        alive: Called again and again: each with each takes minutes for 50,000 pairs.
    """
    if embedded.image is None or embedded.text is None or not isinstance(method, ImageText):
        return {}
    progress = None if alive is None else lambda share, note: alive()
    matched = matched_cosines(embedded.image, embedded.text)
    unmatched = hardest_unmatched(embedded.image, embedded.text, HARDEST, heldout.matching.texts, progress=progress)
    return {
        "loss": _loss(method, embedded, heldout, batch_size),
        **_retrieval("image_to_text", embedded.image, embedded.text, heldout.matching.texts, progress),
        **_retrieval("text_to_image", embedded.text, embedded.image, heldout.matching.images, progress),
        **_zero_shot(heldout, embedded),
        "matched_cosine": float(matched.mean()),
        f"unmatched_cosine_hard{HARDEST}": float(np.nanmean(unmatched))
        if np.isfinite(unmatched).any()
        else float("nan"),
        f"auc_hard{HARDEST}": auc(matched, unmatched),
        "modality_gap": modality_gap(embedded.image, embedded.text)[1],
    }


def _retrieval(
    direction: str,
    query: Float[np.ndarray, "n d"],
    stored: Float[np.ndarray, "n d"],
    answers: DistinctItems,
    progress: Progress | None,
) -> dict[str, float]:
    places = ranks(query, stored, answers, progress=progress)
    recalls = {f"{direction}_R@{k}": recall_at(places, k) for k in RECALLS}
    return recalls | {f"{direction}_median_rank": median_rank(places)}


def _zero_shot(heldout: HeldOut, embedded: Embedded) -> dict[str, float]:
    if embedded.prompts is None:
        return {}
    known = heldout.labels >= 0
    places = class_ranks(embedded.image[known], class_weights(embedded.prompts), heldout.labels[known])
    return {"zero_shot_acc1": recall_at(places, 1), "zero_shot_acc5": recall_at(places, 5)}


@torch.inference_mode()
def _loss(method: ImageText, embedded: Embedded, heldout: HeldOut, batch_size: int) -> float:
    # A batch of its own size has its own ln n: the incomplete last one would bend the mean.
    n = len(embedded.image)
    size = min(batch_size, n)
    where = next((p.device for p in method.parameters()), torch.device("cpu"))
    parts = [slice(start, start + size) for start in range(0, n - size + 1, size)]
    image, text = (torch.from_numpy(rows).to(where) for rows in (embedded.image, embedded.text))
    if not method.masks:
        return float(np.mean([method.loss(image[part], text[part]).item() for part in parts]))
    groups = torch.from_numpy(heldout.groups).to(where)
    return float(np.mean([method.loss(image[part], text[part], groups=groups[part]).item() for part in parts]))
