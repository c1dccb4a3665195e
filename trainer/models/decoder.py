"""Networks that turn an embedding back into a picture, and a text's embedding into a picture's.

Pictures are (n 3 s s) with values from -1 to 1. The U-Net works on their blocks of 2 x 2 pixels as channels, so that a
picture of 64 pixels costs as much as one of 32.
"""

from __future__ import annotations

import itertools
import math
from typing import Final

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor, nn

BLOCK: Final = 2
"""Side of the blocks of pixels that the U-Net takes as channels."""
_CHANNELS: Final = 3 * BLOCK**2
_WAVES: Final = 32
"""Sines, and as many cosines, that tell the U-Net the noise level."""
_GROUPS: Final = 8
_SMALLEST: Final = 4
"""Side of the map that the mean picture begins with, in cells."""


class MeanPicture(nn.Module):
    """The picture that an embedding says on average: trained on squared error it becomes E[picture | embedding].

    Dosovitskiy and Brox, Inverting Visual Representations with Convolutional Networks, 2016,
    https://arxiv.org/abs/1506.02753
    """

    def __init__(self, embed_dim: int, size: int, width: int) -> None:
        """Create it.

        Args:
            size: Side of the pictures in pixels; 16, 32, 64, ...
            width: Channels of the finest layer; the coarsest has four times as many.
        """
        super().__init__()
        doublings = round(math.log2(size / BLOCK / _SMALLEST))
        widths = [width * min(4, doublings + 1 - level) for level in range(doublings + 1)]
        self._widest = widths[0]
        self.start = nn.Linear(embed_dim, widths[0] * _SMALLEST**2)
        self.layers = nn.ModuleList(
            nn.ConvTranspose2d(wide, narrow, 4, stride=2, padding=1) for wide, narrow in itertools.pairwise(widths)
        )
        self.norms = nn.ModuleList(nn.GroupNorm(_GROUPS, wide) for wide in widths)
        self.end = nn.Conv2d(widths[-1], _CHANNELS, 3, padding=1)

    def forward(self, embedding: Float[Tensor, "n d"]) -> Float[Tensor, "n 3 s s"]:
        """Return a picture for each embedding."""
        now = self.start(_scaled(embedding)).view(-1, self._widest, _SMALLEST, _SMALLEST)
        for norm, layer in zip(self.norms, self.layers, strict=False):
            now = layer(F.silu(norm(now)))
        return F.pixel_shuffle(self.end(F.silu(self.norms[-1](now))), BLOCK)


class Denoiser(nn.Module):
    """A U-Net that says the velocity of a noised picture, given its noise level and an embedding or none.

    The embedding, projected, is added to that of the time step, as in unCLIP (Ramesh et al., Hierarchical
    Text-Conditional Image Generation with CLIP Latents, 2022, https://arxiv.org/abs/2204.06125); both scale and shift
    the channels of every block (FiLM).
    """

    def __init__(self, embed_dim: int, width: int) -> None:
        """Create it.

        Args:
            width: Channels at full resolution; a multiple of 8. Twice and three times as many follow below.
        """
        super().__init__()
        condition_width = 4 * width
        wide = (width, 2 * width, 3 * width)
        self.time = nn.Sequential(
            nn.Linear(2 * _WAVES, condition_width), nn.SiLU(), nn.Linear(condition_width, condition_width)
        )
        self.condition = nn.Linear(embed_dim, condition_width)
        self.nothing = nn.Parameter(torch.zeros(condition_width))
        self.start = nn.Conv2d(_CHANNELS, width, 3, padding=1)
        self.down = nn.ModuleList(_Block(a, b, condition_width) for a, b in ((wide[0], wide[0]), (wide[0], wide[1])))
        self.shrink = nn.ModuleList(nn.Conv2d(w, w, 3, stride=2, padding=1) for w in wide[:2])
        self.middle = nn.ModuleList(
            (_Block(wide[1], wide[2], condition_width), _Block(wide[2], wide[2], condition_width))
        )
        self.attention = _Attention(wide[2])
        self.up = nn.ModuleList(
            _Block(a, b, condition_width) for a, b in ((wide[2] + wide[1], wide[1]), (wide[1] + wide[0], wide[0]))
        )
        self.norm = nn.GroupNorm(_GROUPS, width)
        self.end = _zero(nn.Conv2d(width, _CHANNELS, 3, padding=1))

    def forward(
        self,
        noisy: Float[Tensor, "n 3 s s"],
        level: Float[Tensor, " n"],
        embedding: Float[Tensor, "n d"],
        dropped: Bool[Tensor, " n"],
    ) -> Float[Tensor, "n 3 s s"]:
        """Return the velocity.

        Args:
            noisy: Noised pictures.
            level: Share of the schedule's steps, from 0 (no noise) to 1.
            embedding: Unit rows.
            dropped: Which pictures are to be denoised without their embedding.
        """
        condition = torch.where(dropped[:, None], self.nothing, self.condition(_scaled(embedding)))
        conditions = F.silu(self.time(_waves(level)) + condition)
        now, skipped = self._middle(noisy, conditions)
        for block in self.up:
            now = F.interpolate(now, scale_factor=2.0, mode="nearest")
            now = block(torch.cat((now, skipped.pop()), dim=1), conditions)
        return F.pixel_shuffle(self.end(F.silu(self.norm(now))), BLOCK)

    def features(self, noisy: Float[Tensor, "n 3 s s"], level: Float[Tensor, " n"]) -> Float[Tensor, "n d"]:
        """Return the mean over cells of the coarsest map, without any embedding.

        Xiang et al., Denoising Diffusion Autoencoders are Unified Self-supervised Learners, 2023,
        https://arxiv.org/abs/2303.09769, read classes off the middle of a U-Net in this way.
        """
        conditions = F.silu(self.time(_waves(level)) + self.nothing)
        return self._middle(noisy, conditions)[0].mean(dim=(2, 3))

    def _middle(
        self, noisy: Float[Tensor, "n 3 s s"], conditions: Float[Tensor, "n k"]
    ) -> tuple[Float[Tensor, "n c h w"], list[Float[Tensor, "n _ _ _"]]]:
        """Return the coarsest map, and what the finer ones keep for the way up."""
        now = self.start(F.pixel_unshuffle(noisy, BLOCK))
        skipped = []
        for block, shrink in zip(self.down, self.shrink, strict=True):
            now = block(now, conditions)
            skipped.append(now)
            now = shrink(now)
        return self.middle[1](self.attention(self.middle[0](now, conditions)), conditions), skipped


class ResidualPrior(nn.Module):
    """A residual MLP that foresees a picture's embedding from its caption's; trained on the squared error."""

    def __init__(self, embed_dim: int, width: int, *, condition_width: int = 0) -> None:
        """Create it.

        Args:
            width: Of the hidden layers.
            condition_width: Columns of what else is known; 0 for nothing.
        """
        super().__init__()
        self.start = nn.Linear(embed_dim + condition_width, width)
        self.blocks = nn.ModuleList(
            nn.Sequential(
                nn.LayerNorm(width), nn.Linear(width, 2 * width), nn.SiLU(), _zero(nn.Linear(2 * width, width))
            )
            for _ in range(4)
        )
        self.end = nn.Linear(width, embed_dim)

    def forward(self, rows: Float[Tensor, "n d"]) -> Float[Tensor, "n e"]:
        """Return what is foreseen, not normalized."""
        now = self.start(rows)
        for block in self.blocks:
            now = now + block(now)
        return self.end(F.silu(now))


class DiffusionPrior(nn.Module):
    """A small diffusion model of pictures' embeddings given their captions': says the embedding in a noised one.

    As in unCLIP it foresees the embedding itself rather than its noise (section 2.2 of Ramesh et al., 2022,
    https://arxiv.org/abs/2204.06125). Embeddings are scaled to unit variance per column before noise is added.
    """

    def __init__(self, embed_dim: int, width: int) -> None:
        super().__init__()
        self.net = ResidualPrior(embed_dim, width, condition_width=embed_dim + 2 * _WAVES)

    def forward(
        self, noisy: Float[Tensor, "n d"], level: Float[Tensor, " n"], text: Float[Tensor, "n d"]
    ) -> Float[Tensor, "n d"]:
        """Return the scaled embedding foreseen in the noised one."""
        return self.net(torch.cat((noisy, _scaled(text), _waves(level)), dim=1))


class _Block(nn.Module):
    """Two convolutions around a residual, whose channels are scaled and shifted by the condition."""

    def __init__(self, before: int, after: int, condition_width: int) -> None:
        super().__init__()
        self.first = nn.GroupNorm(_GROUPS, before)
        self.narrow = nn.Conv2d(before, after, 3, padding=1)
        self.film = nn.Linear(condition_width, 2 * after)
        self.second = nn.GroupNorm(_GROUPS, after)
        self.wide = _zero(nn.Conv2d(after, after, 3, padding=1))
        self.pass_by = nn.Conv2d(before, after, 1) if before != after else nn.Identity()

    def forward(self, now: Float[Tensor, "n c h w"], conditions: Float[Tensor, "n k"]) -> Float[Tensor, "n e h w"]:
        inside = self.second(self.narrow(F.silu(self.first(now))))
        scale, shift = self.film(conditions)[:, :, None, None].chunk(2, dim=1)
        return self.pass_by(now) + self.wide(F.silu(inside * (1 + scale) + shift))


class _Attention(nn.Module):
    """One head of self-attention over the cells of a coarse map."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.GroupNorm(_GROUPS, width)
        self.queries = nn.Conv2d(width, 3 * width, 1)
        self.out = _zero(nn.Conv2d(width, width, 1))

    def forward(self, now: Float[Tensor, "n c h w"]) -> Float[Tensor, "n c h w"]:
        query, key, value = self.queries(self.norm(now)).flatten(2).transpose(1, 2).chunk(3, dim=2)
        mixed = F.scaled_dot_product_attention(query, key, value)
        return now + self.out(mixed.transpose(1, 2).reshape(now.shape))


def _zero(layer: nn.Module) -> nn.Module:
    """Return the layer with zero weights, so that its block begins as the identity."""
    for parameter in layer.parameters():
        nn.init.zeros_(parameter)
    return layer


def _scaled(embedding: Float[Tensor, "n d"]) -> Float[Tensor, "n d"]:
    """Return unit rows with entries of about unit size, which layers begin well with."""
    return embedding * math.sqrt(embedding.shape[1])


def _waves(level: Float[Tensor, " n"]) -> Float[Tensor, "n waves"]:
    """Return sines and cosines of the level at wavelengths from 2 pi to a thousandth of it."""
    steps = torch.arange(_WAVES, device=level.device, dtype=torch.float32) / (_WAVES - 1)
    angles = level.float()[:, None] * torch.exp(steps * math.log(1_000.0))
    return torch.cat((angles.sin(), angles.cos()), dim=1)


def parameters_of(module: nn.Module) -> int:
    """Return how many numbers a module learns."""
    return sum(parameter.numel() for parameter in module.parameters())


__all__ = ["BLOCK", "Denoiser", "DiffusionPrior", "MeanPicture", "ResidualPrior", "parameters_of"]
