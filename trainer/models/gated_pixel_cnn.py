"""A gated PixelCNN: two stacks without a blind spot, and conditions such as a class or an embedding."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from trainer.models.pixel_cnn import COLORS, LEVELS, MaskedConv2d


class GatedPixelCnn(nn.Module):
    """Gated layers of a vertical and a horizontal stack; the value of a number is one of 256.

    Van den Oord et al., Conditional Image Generation with PixelCNN Decoders, 2016, https://arxiv.org/abs/1606.05328.
    Each layer is equation 2 with the condition of section 2.3,
    `y = tanh(W_f * x + V_f h) . sigmoid(W_g * x + V_g h)`. The vertical stack sees all rows above, the horizontal
    one those by it and the pixels to the left, so that no pixel before is left out, as the plain PixelCNN leaves
    out a cone to the right (figure 1).
    """

    def __init__(self, width: int, *, blocks: int = 6, levels: int = LEVELS, condition: int = 0) -> None:
        """Create it.

        Args:
            width: Channels of each stack, a multiple of 3.
            blocks: Layers.
            levels: Values of a number.
            condition: Width of the condition; 0 for none.
        """
        super().__init__()
        self._levels, self._reach = levels, 3 + blocks - 1
        sides = [7, *[3] * (blocks - 1)]
        self.layers = nn.ModuleList(
            _GatedLayer(width if index else COLORS, width, side, condition, first=not index)
            for index, side in enumerate(sides)
        )
        self.end = nn.Sequential(
            nn.SiLU(), MaskedConv2d(width, width, 1), nn.SiLU(), MaskedConv2d(width, COLORS * levels, 1)
        )

    def forward(
        self, values: Int[Tensor, "n 3 h w"], condition: Float[Tensor, "n c"] | None = None
    ) -> Float[Tensor, "n 3 levels h w"]:
        """Return for every number the logits of its values, given the numbers before it and the condition."""
        vertical = horizontal = values.float() * (2 / (self._levels - 1)) - 1
        for layer in self.layers:
            vertical, horizontal = layer(vertical, horizontal, condition)
        return self.end(horizontal).unflatten(1, (COLORS, self._levels))

    @torch.inference_mode()
    def sample(
        self, condition: Float[Tensor, "n c"] | None, size: int, *, count: int, generator: torch.Generator
    ) -> Int[Tensor, "n 3 h w"]:
        """Return pictures drawn number by number, `p(x) = prod_i p(x_i | x_1 .. x_i-1, h)` (equation 1 with h).

        Only the rows that a row can see are computed anew for it.

        Args:
            condition: Of each picture; None where the model has none.
        """
        values = torch.zeros((count, COLORS, size, size), dtype=torch.long)
        for row in range(size):
            top = max(0, row - self._reach)
            for column in range(size):
                for color in range(COLORS):
                    logits = self(values[:, :, top : row + 1], condition)[:, color, :, -1, column]
                    drawn = torch.multinomial(logits.softmax(dim=1), 1, generator=generator)
                    values[:, color, row, column] = drawn[:, 0]
        return values


class _GatedLayer(nn.Module):
    """One layer of both stacks (figure 2 of the paper)."""

    def __init__(self, before: int, width: int, side: int, condition: int, *, first: bool) -> None:
        super().__init__()
        self._reach, self._first = side // 2, first
        # Rows up to the own one: the horizontal stack takes those above by a shift of one row.
        self.vertical = nn.Conv2d(before, 2 * width, (self._reach + 1, side))
        self.down = nn.Conv2d(2 * width, 2 * width, 1)
        self.filters, self.gates = (MaskedConv2d(before, width, side, rows=1, sees_itself=not first) for _ in range(2))
        self.out = MaskedConv2d(width, width, 1)
        self.given = nn.Linear(condition, 4 * width, bias=False) if condition else None

    def forward(
        self, vertical: Float[Tensor, "n c h w"], horizontal: Float[Tensor, "n c h w"], condition: Tensor | None
    ) -> tuple[Float[Tensor, "n d h w"], Float[Tensor, "n d h w"]]:
        reach = self._reach
        rows = self.vertical(F.pad(vertical, (reach, reach, reach, 0)))
        above = self.down(F.pad(rows, (0, 0, 1, 0))[:, :, :-1])
        across = torch.cat([self.filters(horizontal), self.gates(horizontal)], dim=1) + above
        if self.given is not None:
            if condition is None:
                raise ValueError("this PixelCNN is conditional: give a condition for each picture")
            of_rows, of_across = self.given(condition)[..., None, None].chunk(2, dim=1)
            rows, across = rows + of_rows, across + of_across
        out = self.out(_gated(across))
        return _gated(rows), out if self._first else out + horizontal


def _gated(both: Float[Tensor, "n d2 h w"]) -> Float[Tensor, "n d h w"]:
    filters, gates = both.chunk(2, dim=1)
    return filters.tanh() * gates.sigmoid()
