"""Caption prediction: the cross-entropy of the next token of a caption, given its image and the tokens before."""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from trainer.losses.precision import full_precision


@full_precision
def caption_prediction(
    logits: Float[Tensor, "n length k"], tokens: Int[Tensor, "n length"], said: Bool[Tensor, "n length"]
) -> Float[Tensor, ""]:
    """Return the mean of -log p(token | tokens before, image) over the tokens of the batch that are said.

    The image caption baseline of Radford et al., Learning Transferable Visual Models From Natural Language
    Supervision, 2021, https://arxiv.org/abs/2103.00020, section 2.3; forward direction of Desai and Johnson, VirTex,
    2021, https://arxiv.org/abs/2006.06666, equation 1. Its value is ln k where all tokens are equally likely.

    Args:
        logits: Of every token at each place.
        tokens: What stands there.
        said: Whether it belongs to the caption, whose end counts; what follows does not.
    """
    log_probabilities = token_log_probabilities(logits, tokens)
    return -torch.where(said, log_probabilities, 0).sum() / said.sum().clamp(min=1)


def token_log_probabilities(
    logits: Float[Tensor, "n length k"], tokens: Int[Tensor, "n length"]
) -> Float[Tensor, "n length"]:
    """Return log p of what stands at each place."""
    return torch.log_softmax(logits, dim=2).gather(2, tokens[..., None])[..., 0]
