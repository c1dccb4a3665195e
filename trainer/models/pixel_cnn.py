"""A PixelCNN: every number of a picture given those above it, to its left, and the colors before it."""

from __future__ import annotations

from typing import Final

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

LEVELS: Final = 256
COLORS: Final = 3


class PixelCnn(nn.Module):
    """Masked convolutions in residual blocks; the value of a number is one of 256.

    Section 3 of van den Oord, Kalchbrenner and Kavukcuoglu, Pixel Recurrent Neural Networks, 2016,
    https://arxiv.org/abs/1601.06759. Channels are in three groups, for red, green and blue: green may see red of the
    same pixel, blue both.
    """

    def __init__(self, width: int, *, blocks: int = 6, levels: int = LEVELS) -> None:
        """Create it.

        Args:
            width: Channels outside of the blocks, a multiple of 6.
            blocks: How many; each sees one pixel further.
            levels: Values of a number.
        """
        super().__init__()
        self._levels = levels
        self.start = MaskedConv2d(COLORS, width, 7, sees_itself=False)
        self.blocks = nn.ModuleList(
            nn.Sequential(
                nn.SiLU(), MaskedConv2d(width, width // 2, 1), nn.SiLU(), MaskedConv2d(width // 2, width // 2, 3),
                nn.SiLU(), MaskedConv2d(width // 2, width, 1),
            )
            for _ in range(blocks)
        )  # fmt: skip
        self.end = nn.Sequential(
            nn.SiLU(), MaskedConv2d(width, width, 1), nn.SiLU(), MaskedConv2d(width, COLORS * levels, 1)
        )

    def forward(self, values: Int[Tensor, "n 3 h w"]) -> Float[Tensor, "n 3 levels h w"]:
        """Return for every number the logits of its values, given the numbers before it."""
        now = self.end(self._hidden(values)[-1])
        return now.unflatten(1, (COLORS, self._levels))

    def features(self, values: Int[Tensor, "n 3 h w"]) -> list[Float[Tensor, "n d"]]:
        """Return the mean over pixels of the channels after each block."""
        return [F.silu(hidden).mean(dim=(2, 3)) for hidden in self._hidden(values)[1:]]

    def _hidden(self, values: Int[Tensor, "n 3 h w"]) -> list[Float[Tensor, "n c h w"]]:
        maps = [self.start(values.float() * (2 / (self._levels - 1)) - 1)]
        for block in self.blocks:
            maps.append(maps[-1] + block(maps[-1]))
        return maps


class MaskedConv2d(nn.Conv2d):
    """A convolution that sees the pixels before, and of the pixel itself the colors before or up to its own."""

    mask: Tensor

    def __init__(
        self, before: int, after: int, side: int, *, rows: int | None = None, sees_itself: bool = True
    ) -> None:
        """Create it.

        Args:
            before: Channels that come in; three groups, for red, green and blue.
            after: Channels that go out, likewise.
            side: Of the square that it sees the first half of.
            rows: Of the kernel, odd; None: `side`.
            sees_itself: Whether a color sees its own of the same pixel.
        """
        high = side if rows is None else rows
        super().__init__(before, after, (high, side), padding=(high // 2, side // 2))
        row, middle = high // 2, side // 2
        mask = torch.zeros_like(self.weight)
        mask[:, :, :row] = 1
        mask[:, :, row, :middle] = 1
        giver, taker = (torch.arange(count) * COLORS // count for count in (before, after))
        seen = giver[None, :] <= taker[:, None] if sees_itself else giver[None, :] < taker[:, None]
        mask[:, :, row, middle] = seen.float()
        self.register_buffer("mask", mask, persistent=False)

    def forward(self, now: Float[Tensor, "n c h w"]) -> Float[Tensor, "n d h w"]:
        """Return the convolution with the masked weights."""
        return F.conv2d(now, self.weight * self.mask, self.bias, padding=self.padding)
