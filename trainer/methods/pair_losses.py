"""Each pair's part in the loss of a batch: the rows over which image-text losses are a mean."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from trainer.losses import hopfield_retrieval
from trainer.losses.right_answers import Answers
from trainer.losses.streamed import mask
from trainer.losses.tiles import above_match, both_logsumexps, negatives
from trainer.methods.image_text import (
    ClipPairs,
    CloobPairs,
    ConVirtPairs,
    DhnNcePairs,
    HopfieldInfoNcePairs,
    ImageText,
    InfoLoobPairs,
    SigLipPairs,
)

Rows = Float[Tensor, " n"]


def pair_losses(method: ImageText, image: Float[Tensor, "n d"], text: Float[Tensor, "n d"], answers: Answers) -> Rows:
    """Return one number per pair, whose mean is `method.loss`: the loss of its image and its text.

    Args:
        method: At its present temperature.
        image: Unit rows.
        text: Unit rows; row k describes image k.
        answers: Which texts of the batch are right answers of which images, and so no negatives; None: the match alone.
    """
    return _ROWS[type(method)](method, image, text, answers)


def _surprise(
    image: Tensor, text: Tensor, inv_tau: float, answers: Answers, *, leave_out: bool = False
) -> tuple[Rows, Rows]:
    """Return logsumexp minus the matched logit of every row, in both directions."""
    sums = both_logsumexps(image, text, inv_tau, leave_out_matched=leave_out, answers=answers)
    matched = inv_tau * (image * text).sum(dim=1)
    return above_match(sums[0], matched), above_match(sums[1], matched)


def _of_texts(answers: Answers) -> Answers:
    return None if answers is None else answers.transposed


def _retrieved(image: Tensor, text: Tensor, beta: float, *, residual: bool = False) -> list[tuple[Tensor, Tensor]]:
    """Return anchors and samples among the images, and among the texts."""
    pairs = []
    for stored, other in ((image, text), (text, image)):
        rows = [(state, hopfield_retrieval(state, stored, beta)) for state in (stored, other)]
        anchor, sample = (F.normalize(state + retrieved, dim=1) if residual else retrieved for state, retrieved in rows)
        pairs.append((anchor, sample))
    return pairs


def _clip(method: ImageText, image: Tensor, text: Tensor, answers: Answers) -> Rows:
    to_text, to_image = _surprise(image, text, method.inv_tau, answers)
    return (to_text + to_image) / 2


def _convirt(method: ImageText, image: Tensor, text: Tensor, answers: Answers) -> Rows:
    to_text, to_image = _surprise(image, text, method.inv_tau, answers)
    share = method.choice.image_weight
    return share * to_text + (1 - share) * to_image


def _info_loob(method: ImageText, image: Tensor, text: Tensor, answers: Answers) -> Rows:
    to_text, to_image = _surprise(image, text, method.inv_tau, answers, leave_out=True)
    return (to_text + to_image) / method.inv_tau


def _hopfield_info_nce(method: ImageText, image: Tensor, text: Tensor, answers: Answers) -> Rows:
    images, texts = _retrieved(image, text, method.choice.scale_hopfield)
    of_images = _surprise(*images, method.inv_tau, answers)[0]
    return (of_images + _surprise(*texts, method.inv_tau, _of_texts(answers))[0]) / 2


def _siglip(method: Any, image: Tensor, text: Tensor, answers: Answers) -> Rows:
    logits = method.inv_tau * image @ text.T + float(method.bias.detach())
    matched = logits.diagonal().clone()
    mask(logits, 0, False, answers)
    return F.softplus(logits).sum(dim=1) - matched


def _cloob(method: ImageText, image: Tensor, text: Tensor, answers: Answers) -> Rows:
    choice = method.choice
    share, pairs = choice.retrieval_share, _retrieved(image, text, choice.scale_hopfield, residual=choice.residual)
    among = (
        _surprise(*pair, choice.inv_tau, right, leave_out=True)[0]
        for pair, right in zip(pairs, (answers, _of_texts(answers)), strict=True)
    )
    to_text, to_image = _surprise(image, text, choice.inv_tau, answers, leave_out=True)
    return (share * sum(among) + (1 - share) * (to_text + to_image)) / choice.inv_tau


def _dhn_nce(method: ImageText, image: Tensor, text: Tensor, answers: Answers) -> Rows:
    choice = method.choice
    hardness = choice.beta_image, choice.beta_text
    sharp, flat = (
        both_logsumexps(image, text, choice.inv_tau, factors=factors, leave_out_matched=True, answers=answers)
        for factors in ((1 + hardness[0], 1 + hardness[1]), hardness)
    )
    counts = negatives(answers, len(image), image.device).to(image).clamp(min=1).log()
    matched = choice.inv_tau * (image * text).sum(dim=1)
    directions = (torch.where(low.isneginf(), low, high - low) for high, low in zip(sharp, flat, strict=True))
    return torch.stack([above_match(direction, matched) for direction in directions]).sum(0) + counts.sum(0)


_ROWS: Final[dict[type[ImageText], Callable[[Any, Tensor, Tensor, Answers], Rows]]] = {
    ClipPairs: _clip,
    ConVirtPairs: _convirt,
    InfoLoobPairs: _info_loob,
    HopfieldInfoNcePairs: _hopfield_info_nce,
    CloobPairs: _cloob,
    SigLipPairs: _siglip,
    DhnNcePairs: _dhn_nce,
}
