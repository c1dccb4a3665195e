"""A small supervised network that reads attributes off pictures, to judge what decoders draw."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Final

import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

_GROUPS: Final = 8


class Judge(nn.Module):
    """Convolutions with one linear head an attribute; it has seen no embedding of any run."""

    def __init__(self, classes: Mapping[str, int], *, width: int = 24) -> None:
        """Create it.

        Args:
            classes: Attribute -> how many values it has.
            width: Channels of the first layer, a multiple of 8.
        """
        super().__init__()
        widths = (3, width, 2 * width, 3 * width, 4 * width)
        self.layers = nn.ModuleList(
            nn.Conv2d(before, after, 3, stride=1 if layer == 0 else 2, padding=1)
            for layer, (before, after) in enumerate(itertools.pairwise(widths))
        )
        self.norms = nn.ModuleList(nn.GroupNorm(_GROUPS, after) for after in widths[1:])
        # Where a thing is decides its relation, so cells are kept apart and not averaged.
        self.hidden = nn.Linear(widths[-1] * 16, 4 * width)
        self.heads = nn.ModuleDict({name: nn.Linear(4 * width, count) for name, count in classes.items()})

    def features(self, pictures: Float[Tensor, "n 3 s s"]) -> Float[Tensor, "n d"]:
        """Return what the heads read, of pictures with values from -1 to 1."""
        now = pictures
        for layer, norm in zip(self.layers, self.norms, strict=True):
            now = F.silu(norm(layer(now)))
        return F.silu(self.hidden(F.adaptive_avg_pool2d(now, 4).flatten(1)))

    def forward(self, pictures: Float[Tensor, "n 3 s s"]) -> dict[str, Float[Tensor, "n classes"]]:
        """Return attribute -> logits."""
        features = self.features(pictures)
        return {name: head(features) for name, head in self.heads.items()}
