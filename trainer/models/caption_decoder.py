"""A causal transformer that predicts a caption token by token from an image's embedding."""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from open_clip.transformer import Transformer
from torch import Tensor, nn


class CaptionDecoder(nn.Module):
    """The image stands where the start token would: a linear layer makes its embedding the first input.

    Captioners such as VirTex read a grid of image vectors; this one reads what the towers embed and nothing else, so
    that the embedding is what it teaches, and is compared with CLIP's on equal terms.
    """

    mask: Tensor

    def __init__(self, embed_dim: int, vocabulary: int, length: int, *, width: int, layers: int, heads: int) -> None:
        super().__init__()
        self.image = nn.Linear(embed_dim, width)
        self.tokens = nn.Embedding(vocabulary, width)
        self.places = nn.Parameter(torch.randn(length - 1, width) * 0.01)
        nn.init.normal_(self.tokens.weight, std=0.02)
        self.transformer = Transformer(width, layers, heads, batch_first=True)
        self.norm = nn.LayerNorm(width)
        self.scores = nn.Linear(width, vocabulary)
        self.register_buffer("mask", torch.full((length - 1, length - 1), -torch.inf).triu(1), persistent=False)

    def forward(
        self, image: Float[Tensor, "n d"], tokens: Int[Tensor, "n length"]
    ) -> Float[Tensor, "n length-1 vocabulary"]:
        """Return the logits of `tokens[:, 1:]`, each from the image and the tokens before it; `tokens[:, 0]` starts."""
        count = tokens.shape[1] - 1
        before = torch.cat([self.image(image)[:, None], self.tokens(tokens[:, 1:-1])], dim=1)
        read = self.transformer(before + self.places[:count], attn_mask=self.mask[:count, :count])
        return self.scores(self.norm(read))
