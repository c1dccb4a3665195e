"""Metrics of a held-out split of pairs, by the names of `trainer.metrics` without their prefix."""

from __future__ import annotations

from typing import Final

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from trainer.analysis.distinct import DistinctItems
from trainer.analysis.geometry import modality_gap
from trainer.analysis.hopfield import own_weight
from trainer.analysis.progress import Progress
from trainer.analysis.retrieval import both_question_ranks, recall_at, retrieval_numbers
from trainer.analysis.similarity import auc, hardest_texts, matched_cosines
from trainer.analysis.spectra import covariance_spectrum, effective_rank, share_along_first
from trainer.analysis.zero_shot import class_ranks, class_weights
from trainer.evaluation.heldout import Embedded, HeldOut
from trainer.inference.batches import Alive
from trainer.methods import ImageText, Method

HARDEST: Final = 10
"""Distinct unmatched texts an image is compared with: its most similar ones, as in the window's histograms; fewer, for
all images alike, where an image has fewer."""
MAIN_DIRECTIONS: Final = 3
GRADIENT_BATCHES: Final = 4
"""Of how many batches the gradient is measured; more would say the same to the second digit."""


def measure(
    heldout: HeldOut, embedded: Embedded, method: Method | None, *, batch_size: int, alive: Alive = None
) -> dict[str, float]:
    """Return recall both ways, zero-shot accuracy, cosines, AUC, gap, directions; loss and gradient in batches.

    Nothing for a model of images alone or of texts alone: its number is that of its neighbors.

    Args:
        embedded: As `heldout.embed` gives it.
        method: What the run is trained with.
        alive: Called again and again: each with each takes minutes for 50,000 pairs.
    """
    if embedded.image is None or embedded.text is None or not isinstance(method, ImageText):
        return {}
    pair = embedded.image, embedded.text

    def progress(_share: float, _note: str) -> None:
        if alive is not None:
            alive()

    texts, images = heldout.matching.texts, heldout.matching.images
    # A pair that stands twice is one, as a picture of several captions is one picture.
    pairs = np.sort(np.unique(texts.question * len(texts) + texts.place, return_index=True)[1])
    matched = matched_cosines(embedded.image, embedded.text)[pairs]
    return {
        "loss": _loss(method, *pair, heldout, batch_size),
        **_retrieval(*pair, heldout, progress),
        **_zero_shot(heldout, embedded),
        "matched_cosine": float(matched.mean()),
        **_separation(heldout, *pair, matched, progress),
        "modality_gap": modality_gap(embedded.image, embedded.text, heldout.matching)[1],
        "effective_rank_image": effective_rank(covariance_spectrum(images.gallery(embedded.image))),
        "effective_rank_text": effective_rank(covariance_spectrum(texts.gallery(embedded.text))),
        "own_image_weight": own_weight(embedded.text, embedded.image, method.beta, batch_size),
        f"text_gradient_main{MAIN_DIRECTIONS}": _text_gradient_share(method, *pair, heldout, batch_size),
    }


def hardest_of(answers: DistinctItems) -> int:
    """Return how many hardest unmatched texts every image has, at most `HARDEST`."""
    return min(HARDEST, answers.fewest_wrong())


def _separation(
    heldout: HeldOut,
    image: Float[np.ndarray, "n d"],
    text: Float[np.ndarray, "n d"],
    matched: Float[np.ndarray, " n"],
    progress: Progress,
) -> dict[str, float]:
    """Return mean cosine and AUC against the hardest unmatched texts, named by their number; nothing without any.

    Each picture asks once, as in the chart of similarity.
    """
    k = hardest_of(heldout.matching.texts)
    if not k:
        return {}
    texts = heldout.matching.texts
    unmatched = hardest_texts(image, text, k, texts, progress=progress).cosines[texts.asking()]
    mean = float(np.nanmean(unmatched)) if np.isfinite(unmatched).any() else float("nan")
    return {f"unmatched_cosine_hard{k}": mean, f"auc_hard{k}": auc(matched, unmatched)}


def _retrieval(
    image: Float[np.ndarray, "n d"], text: Float[np.ndarray, "n d"], heldout: HeldOut, progress: Progress
) -> dict[str, float]:
    forward, back = both_question_ranks(image, text, heldout.matching, progress=progress)
    return retrieval_numbers("image_to_text", forward) | retrieval_numbers("text_to_image", back)


def _zero_shot(heldout: HeldOut, embedded: Embedded) -> dict[str, float]:
    if embedded.prompts is None or embedded.image is None:
        return {}
    classified = heldout.classified
    ranks = class_ranks(embedded.image[classified], class_weights(embedded.prompts), heldout.labels[classified])
    return {"zero_shot_acc1": recall_at(ranks, 1), "zero_shot_acc5": recall_at(ranks, 5)}


def _text_gradient_share(
    method: ImageText,
    images: Float[np.ndarray, "n d"],
    texts: Float[np.ndarray, "n d"],
    heldout: HeldOut,
    batch_size: int,
) -> float:
    """Return the share of the gradient on unit texts along the main directions of their batch's images; batch mean.

    What stretches a text, which no unit row follows, is left out; float64, for in a narrow cone float32 is not enough.
    """
    shares, device = [], _device(method)
    # Published models are measured in inference mode, whose tensors have no gradients.
    with torch.inference_mode(mode=False), torch.enable_grad():
        for part in _batches(len(images), batch_size)[:GRADIENT_BATCHES]:
            image, text = (torch.from_numpy(rows[part].astype(np.float64)) for rows in (images, texts))
            image, text = image.to(device), text.to(device).requires_grad_()
            (gradient,) = torch.autograd.grad(_masked_loss(method, image, text, heldout, part), text)
            text = text.detach()
            tangential = gradient - (gradient * text).sum(1, keepdim=True) * text
            shares.append(share_along_first(tangential.cpu().numpy(), images[part], MAIN_DIRECTIONS))
    return float(np.mean(shares))


def _batches(n: int, batch_size: int) -> list[slice]:
    """Return whole batches; the incomplete last one is omitted because its different ln n would bias the mean."""
    size = min(batch_size, n)
    return [slice(start, start + size) for start in range(0, n - size + 1, size)]


def _device(method: Method) -> torch.device:
    return next((p.device for p in method.parameters()), torch.device("cpu"))


@torch.inference_mode()
def _loss(
    method: ImageText,
    images: Float[np.ndarray, "n d"],
    texts: Float[np.ndarray, "n d"],
    heldout: HeldOut,
    batch_size: int,
) -> float:
    device, parts = _device(method), _batches(len(images), batch_size)
    image, text = (torch.from_numpy(rows).to(device) for rows in (images, texts))
    losses = [_masked_loss(method, image[part], text[part], heldout, part).item() for part in parts]
    return float(np.mean(losses))


def _masked_loss(
    method: ImageText, image: Float[Tensor, "b d"], text: Float[Tensor, "b d"], heldout: HeldOut, part: slice
) -> Float[Tensor, ""]:
    """Return the loss of some rows of the split with the mask of the training: none, or right answers of others."""
    if not method.masks:
        return method.loss(image, text)
    rows = np.arange(part.start, part.stop)
    return method.loss(image, text, answers=method.answers_among(heldout.matching, rows, image.device))
