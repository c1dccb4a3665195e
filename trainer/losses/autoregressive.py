"""Bits per dimension of an autoregressive model of pixels."""

from __future__ import annotations

import math

import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from trainer.losses.precision import full_precision


@full_precision
def autoregressive(logits: Float[Tensor, "n 3 levels h w"], values: Int[Tensor, "n 3 h w"]) -> Float[Tensor, " n"]:
    """Return each picture's exact negative log-likelihood in bits a number (three a pixel).

    `log2 levels` when all values are equally likely. Equation 1 of van den Oord, Kalchbrenner and Kavukcuoglu, Pixel
    Recurrent Neural Networks, 2016, https://arxiv.org/abs/1601.06759

    Args:
        logits: For every number, of each value, given the numbers before it.
        values: The picture, from 0 to `levels` - 1.
    """
    nats = F.cross_entropy(logits.transpose(1, 2), values, reduction="none")
    return nats.flatten(1).mean(dim=1) / math.log(2)
