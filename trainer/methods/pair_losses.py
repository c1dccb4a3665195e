"""Each pair's part in the loss of a batch: the rows over which image-text losses are a mean."""

from __future__ import annotations

from typing import Any

import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from trainer import config
from trainer.losses import hopfield_retrieval
from trainer.losses.streams import mask
from trainer.losses.tiles import both_logsumexps, group_sizes
from trainer.methods.image_text import ImageText, SigLipPairs

Groups = Int[Tensor, " n"] | None
Rows = Float[Tensor, " n"]


def pair_losses(method: ImageText, image: Float[Tensor, "n d"], text: Float[Tensor, "n d"], groups: Groups) -> Rows:
    """Return one number per pair, whose mean is `method.loss`: the loss of its image and its text.

    Args:
        method: At its present temperature.
        image: Unit rows.
        text: Unit rows; row k describes image k.
        groups: Rows of one group are no negatives of each other; None: every row is its own group.
    """
    choice, inv_tau = method.choice, method.inv_tau
    if isinstance(choice, config.Clip | config.ConVirt):
        to_text, to_image = _surprise(image, text, inv_tau, groups)
        share = 0.5 if isinstance(choice, config.Clip) else choice.image_weight
        return share * to_text + (1 - share) * to_image
    if isinstance(choice, config.InfoLoobPair):
        to_text, to_image = _surprise(image, text, inv_tau, groups, leave_out=True)
        return (to_text + to_image) / inv_tau
    if isinstance(choice, config.HopfieldInfoNce):
        images, texts = _retrieved(image, text, choice.scale_hopfield)
        return (_surprise(*images, inv_tau, groups)[0] + _surprise(*texts, inv_tau, groups)[0]) / 2
    if isinstance(choice, config.Cloob):
        return _cloob(choice, image, text, groups)
    if isinstance(method, SigLipPairs):
        logits = inv_tau * image @ text.T + float(method.bias.detach())
        matched = logits.diagonal().clone()
        mask(logits, 0, False, groups)
        return F.softplus(logits).sum(dim=1) - matched
    return _dhn_nce(choice, image, text, groups)


def _surprise(
    image: Tensor, text: Tensor, inv_tau: float, groups: Groups, *, leave_out: bool = False
) -> tuple[Rows, Rows]:
    """Return logsumexp minus the matched logit of every row, in both directions."""
    sums = both_logsumexps(image, text, inv_tau, leave_out_matched=leave_out, groups=groups)
    matched = inv_tau * (image * text).sum(dim=1)
    return sums[0] - matched, sums[1] - matched


def _retrieved(image: Tensor, text: Tensor, beta: float, *, residual: bool = False) -> list[tuple[Tensor, Tensor]]:
    """Return anchors and samples among the images, and among the texts."""
    pairs = []
    for own, other in ((image, text), (text, image)):
        rows = [(state, hopfield_retrieval(state, own, beta)) for state in (own, other)]
        anchor, sample = (F.normalize(state + found, dim=1) if residual else found for state, found in rows)
        pairs.append((anchor, sample))
    return pairs


def _cloob(choice: config.Cloob, image: Tensor, text: Tensor, groups: Groups) -> Rows:
    share, pairs = choice.retrieval_share, _retrieved(image, text, choice.scale_hopfield, residual=choice.residual)
    among = (_surprise(*pair, choice.inv_tau, groups, leave_out=True)[0] for pair in pairs)
    to_text, to_image = _surprise(image, text, choice.inv_tau, groups, leave_out=True)
    return (share * sum(among) + (1 - share) * (to_text + to_image)) / choice.inv_tau


def _dhn_nce(choice: Any, image: Tensor, text: Tensor, groups: Groups) -> Rows:
    hardness = choice.beta_image, choice.beta_text
    sharp, flat = (
        both_logsumexps(image, text, choice.inv_tau, factors=factors, leave_out_matched=True, groups=groups)
        for factors in ((1 + hardness[0], 1 + hardness[1]), hardness)
    )
    count = (len(image) - group_sizes(groups, len(image))).to(image)
    matched = choice.inv_tau * (image * text).sum(dim=1)
    return sharp[0] - flat[0] + sharp[1] - flat[1] - 2 * matched + 2 * count.log()
