"""Towers of the CLOOB trained by crowsonkb and EleutherAI on LAION-400M, which differ from CLIP's.

Read off the public definitions (https://github.com/crowsonkb/cloob-training): a pre-norm transformer without a norm
before the projection, whose text tower looks both ways and answers at the first token. Its GELU is the tanh one, as in
the JAX code that trained the weights.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn


class _Positions(nn.Module):
    def __init__(self, length: int, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(length, width) / width**0.5)


class _Attention(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.query, self.key, self.value, self.out = (nn.Linear(width, width) for _ in range(4))
        self._heads = heads

    def forward(
        self, tokens: Float[Tensor, "n length w"], asks: Bool[Tensor, "n length"] | None
    ) -> Float[Tensor, "n length w"]:
        seen = self.norm(tokens)
        query, key, value = (self._split(part(seen)) for part in (self.query, self.key, self.value))
        if asks is not None:
            # The published mask blots out the rows of padding tokens and not their columns: these tokens are seen,
            # and themselves look at everything alike.
            query = query * asks[:, None, :, None]
        mixed = F.scaled_dot_product_attention(query, key, value)
        return self.out(mixed.transpose(1, 2).flatten(2))

    def _split(self, tokens: Float[Tensor, "n length w"]) -> Float[Tensor, "n heads length part"]:
        return tokens.unflatten(2, (self._heads, -1)).transpose(1, 2)


class _FeedForward(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.linear_0 = nn.Linear(width, 4 * width)
        self.linear_1 = nn.Linear(4 * width, width)

    def forward(self, tokens: Float[Tensor, "n length w"]) -> Float[Tensor, "n length w"]:
        return self.linear_1(F.gelu(self.linear_0(self.norm(tokens)), approximate="tanh"))


class _Layer(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.attn = _Attention(width, heads)
        self.ff = _FeedForward(width)

    def forward(
        self, tokens: Float[Tensor, "n length w"], asks: Bool[Tensor, "n length"] | None = None
    ) -> Float[Tensor, "n length w"]:
        tokens = tokens + self.attn(tokens, asks)
        return tokens + self.ff(tokens)


class CloobImageTower(nn.Module):
    """Patches and a class token, whose final state is projected."""

    def __init__(self, sizes: dict[str, Any], width: int) -> None:
        super().__init__()
        inside, patch = sizes["d_model"], sizes["patch_size"]
        self.embed = nn.Conv2d(sizes.get("input_channels", 3), inside, patch, patch, bias=False)
        self.class_embed = nn.Parameter(torch.randn(inside) / inside**0.5)
        self.pos_embed = _Positions((sizes["image_size"] // patch) ** 2 + 1, inside)
        self.layers = nn.ModuleList(_Layer(inside, sizes["n_heads"]) for _ in range(sizes["n_layers"]))
        self.proj = nn.Linear(inside, width)

    def forward(self, images: Float[Tensor, "n 3 s s"]) -> Float[Tensor, "n d"]:
        """Return unnormalized vectors of images."""
        patches = self.embed(images).flatten(2).transpose(1, 2)
        tokens = torch.cat((self.class_embed.to(patches.dtype).expand(len(patches), 1, -1), patches), dim=1)
        tokens = tokens + self.pos_embed.weight
        for layer in self.layers:
            tokens = layer(tokens)
        return self.proj(tokens[:, 0])


class CloobTextTower(nn.Module):
    """A bidirectional transformer; the final state of the first token is projected."""

    def __init__(self, sizes: dict[str, Any], width: int) -> None:
        super().__init__()
        inside, vocabulary = sizes["d_model"], sizes["vocab_size"]
        self._end = vocabulary - 1
        self.embed = nn.Embedding(vocabulary, inside)
        self.pos_embed = _Positions(sizes["text_size"], inside)
        self.layers = nn.ModuleList(_Layer(inside, sizes["n_heads"]) for _ in range(sizes["n_layers"]))
        self.proj = nn.Linear(inside, width)

    def forward(self, tokens: Int[Tensor, "n length"]) -> Float[Tensor, "n d"]:
        """Return unnormalized vectors of texts."""
        is_end = tokens == self._end
        ends = is_end.cumsum(dim=1)
        asks = (ends == 0) | (is_end & (ends == 1))
        states = self.embed(tokens) + self.pos_embed.weight
        for layer in self.layers:
            states = layer(states, asks)
        return self.proj(states[:, 0])
