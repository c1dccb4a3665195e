"""Draw marks with numpy alone, like the compiled `kernels.stamp`.

Every mark is one of a few stamps: a disc or a diamond, its center at one of 8 x 8 places inside a pixel. A stamp is
a short list of pixels, each with the share the mark covers and the share its halo covers. All pixels of all marks
are then composited from the front to the back: in a round, each pixel takes the frontmost mark it has not taken
yet, and drops out once what it took hides the rest. A few rounds do, and each is a handful of array operations
that let other threads run.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

import numpy as np
from jaxtyping import Bool, Float, Int, UInt8
from msgspec import Struct

PLACES: Final = 8
"""Places of a mark inside a pixel, each way: at most a sixteenth of a pixel from where it belongs."""
HIDES: Final = 0.98
"""Opacity past which nothing behind is seen."""


class Stamp(Struct, frozen=True):
    """The pixels of one mark relative to the pixel of its center."""

    row: Int[np.ndarray, " p"]
    column: Int[np.ndarray, " p"]
    inside: Float[np.ndarray, " p"]  # Opacity of the mark itself.
    around: Float[np.ndarray, " p"]  # Opacity of what shows of its halo.


class StampList(Struct, frozen=True):
    """Marks to draw, back to front: centers in pixels, colors as bytes (blue, green, red), shapes."""

    x: Float[np.ndarray, " n"]
    y: Float[np.ndarray, " n"]
    color: UInt8[np.ndarray, "n 3"]
    diamond: Bool[np.ndarray, " n"]


class Brush(Struct, frozen=True):
    """Radius and halo width in pixels, opacity 0 to 1, and the halo's color as blue, green, red."""

    radius: float
    opacity: float
    halo: float
    halo_color: tuple[float, float, float]


def lay_over(picture: UInt8[np.ndarray, "height width 4"], marks: StampList, brush: Brush) -> None:
    """Draw the marks over a premultiplied BGRA image."""
    if not len(marks.x):
        return
    pixel, mark, inside, around = _pixels(picture.shape[:2], marks, brush)
    count = picture.shape[0] * picture.shape[1]
    seen, hidden = np.zeros((count, 3), np.float32), np.zeros(count, np.float32)
    front = np.empty(count, np.int32)
    colors, halo = marks.color.astype(np.float32), np.array(brush.halo_color, np.float32)
    while len(pixel):
        # They are in drawing order, and of equal indices the last assignment stays: the frontmost mark.
        front[pixel] = mark
        wins = front[pixel] == mark
        won = np.flatnonzero(wins)
        at = pixel[won]
        through = 1 - hidden[at]
        part, rim = inside[won] * through, around[won] * through
        seen[at] += part[:, None] * colors[mark[won]] + rim[:, None] * halo
        hidden[at] += part + rim
        left = np.flatnonzero(~wins & (hidden[pixel] < HIDES))
        pixel, mark, inside, around = pixel[left], mark[left], inside[left], around[left]
    drawn = np.flatnonzero(hidden)
    flat, opacity = picture.reshape(-1, 4), hidden[drawn, None]
    source = np.column_stack([seen[drawn], 255 * opacity])
    flat[drawn] = np.minimum(flat[drawn] * (1 - opacity) + source + 0.5, 255).astype(np.uint8)


def _pixels(size: tuple[int, int], marks: StampList, brush: Brush) -> tuple[np.ndarray, ...]:
    """Return every pixel of every mark in drawing order: pixel, mark, opacity of mark and of halo."""
    height, width = size
    row, column = np.floor(marks.y).astype(np.int32), np.floor(marks.x).astype(np.int32)
    across = ((marks.x - column) * PLACES).astype(np.int32)
    down = ((marks.y - row) * PLACES).astype(np.int32)
    kind = (marks.diamond * PLACES + down) * PLACES + across
    parts = []
    for number in np.unique(kind):
        chosen = np.flatnonzero(kind == number).astype(np.int32)
        stamp = stamp_of(int(number), brush.radius, brush.halo, brush.opacity)
        rows, columns = row[chosen, None] + stamp.row, column[chosen, None] + stamp.column
        inside = (rows >= 0) & (rows < height) & (columns >= 0) & (columns < width)
        shape = rows.shape
        values = (rows * width + columns, np.broadcast_to(chosen[:, None], shape))
        shares = (np.broadcast_to(stamp.inside, shape), np.broadcast_to(stamp.around, shape))
        parts.append([array[inside] for array in (*values, *shares)])
    pixel, mark, inside, around = (np.concatenate(column) for column in zip(*parts, strict=True))
    order = np.argsort(mark, kind="stable")
    return pixel[order], mark[order], inside[order], around[order]


@lru_cache(maxsize=4 * PLACES * PLACES)
def stamp_of(number: int, radius: float, halo: float, opacity: float) -> Stamp:
    """Return the stamp of a shape at a subpixel position; see `_pixels` for the number."""
    diamond, subpixel = divmod(number, PLACES * PLACES)
    down, across = ((part + 0.5) / PLACES for part in divmod(subpixel, PLACES))
    reach = int(np.ceil((radius + halo) * 1.2533 + 1))
    row, column = (axis.ravel() for axis in np.mgrid[-reach : reach + 1, -reach : reach + 1])
    dx, dy = column + 0.5 - across, row + 0.5 - down
    inside = opacity * covered(dx, dy, radius, bool(diamond))
    wide = opacity * covered(dx, dy, radius + halo, bool(diamond)) if halo > 0 else np.zeros_like(inside)
    around = wide * (1 - inside)
    hit = inside + around > 0
    pixels = (row[hit].astype(np.int32), column[hit].astype(np.int32))
    return Stamp(*pixels, inside[hit].astype(np.float32), around[hit].astype(np.float32))


def covered(dx: np.ndarray, dy: np.ndarray, radius: float, diamond: bool | np.ndarray) -> np.ndarray:
    """Return the share of the pixel at distance (dx, dy) covered by a disc, or by a diamond of the same area."""
    disc = radius - np.hypot(dx, dy)
    rhombus = (radius * 1.2533 - abs(dx) - abs(dy)) * 0.7071
    return np.clip(np.where(diamond, rhombus, disc) + 0.5, 0, 1)
