"""SigLIP: every image-text pair of the batch is a yes-no question of its own."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from trainer.losses.precision import full_precision


@full_precision
def sigmoid(
    image: Float[Tensor, "n d"],
    text: Float[Tensor, "n d"],
    scale: float | Float[Tensor, ""],
    bias: float | Float[Tensor, ""],
) -> Float[Tensor, ""]:
    """Sum over all pairs of the sigmoid loss, divided by the number of images.

    Zhai et al., Sigmoid Loss for Language Image Pre-Training, 2023, https://arxiv.org/abs/2303.15343

    Args:
        image: Unit-length image embeddings.
        text: Unit-length text embeddings; row k describes image k, all others are negatives.
        scale: Positive factor on the cosine.
        bias: Added to every logit; about `-ln(n - 1) - scale * mean cosine` starts small batches well.
    """
    logits = scale * (image @ text.T) + bias
    sign = 2 * torch.eye(len(image), dtype=logits.dtype, device=logits.device) - 1
    return -F.logsigmoid(sign * logits).sum() / len(image)
