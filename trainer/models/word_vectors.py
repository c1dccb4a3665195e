"""A vector for every token: the text side of models that learn from captions alone."""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn


class WordVectors(nn.Module):
    """Texts as the mean of their tokens' vectors.

    Attributes:
        vectors: One row a token id.
    """

    def __init__(self, vocabulary: int, width: int) -> None:
        super().__init__()
        self.vectors = nn.Embedding(vocabulary, width)
        # As in word2vec.c: small input vectors, so that the first logits are near zero.
        nn.init.uniform_(self.vectors.weight, -0.5 / width, 0.5 / width)

    def forward(self, tokens: Int[Tensor, "n length"]) -> Float[Tensor, "n d"]:
        """Return the mean vector of the tokens between start and end; zero for an empty text."""
        spoken = self.spoken(tokens)
        total = (self.vectors(tokens) * spoken[..., None]).sum(dim=1)
        return total / spoken.sum(dim=1, keepdim=True).clamp(min=1)

    def spoken(self, tokens: Int[Tensor, "n length"]) -> Bool[Tensor, "n length"]:
        """Return which tokens are part of the text: neither padding (0) nor start (1) nor the end (the largest id)."""
        return torch.logical_and(tokens > 1, tokens < self.vectors.num_embeddings - 1)
