"""The colors of points, the same in the window, in figures and in pages; a renderer brings its `Palette`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
from jaxtyping import Float, Int, UInt8
from msgspec import Struct

from trainer.charts.color_words import own_colors

SHADES: Final = 256


class Palette(Struct, frozen=True):
    """The colors of a figure, or of the window's theme."""

    classes: Callable[[int], Sequence[str]]  # Returns so many distinct colors.
    runs: tuple[str, str]  # Those of A and B.
    modalities: tuple[str, str]  # Those of images and texts: neither of a run, everywhere.
    gray: str  # Of what is not known, and of zero where a scale has a sign.
    missing: str  # Of what is not known where a scale has a sign.
    shades: UInt8[np.ndarray, "256 3"]  # From low to high.
    dark: bool = False


class ColoredPoints(Struct, frozen=True):
    """What the pairs of one map are colored by; a color has the same meaning in all maps unless `own_scale`."""

    by: str  # `modality`, `agreement`, `rank`, `cosine` or a column.
    # Of the classes; empty for a scale, and for `modality`, which does not tell pairs apart.
    names: tuple[str, ...] = ()
    # Index in `names` of each pair, -1 where it is not known; None without classes.
    place: Int[np.ndarray, " n"] | None = None
    # Each pair's number on a scale, NaN where it has none; None without a scale.
    numbers: Float[np.ndarray, " n"] | None = None
    # Least and greatest number of the scale, what is beyond has their colors; None without one.
    ends: tuple[float, float] | None = None
    ordered: bool = False  # The classes stand in an order: their colors do too.
    own_scale: bool = False  # This map's scale is not the other maps' (cosines are not comparable across runs).
    note: str = ""  # What else must be said about it; may be empty.
    # The classes of each data set: their colors are those that they have in it alone, and what has no class is
    # gray; empty: `names` are of one.
    data_sets: tuple[tuple[str, ...], ...] = ()
    better: int = 0  # The scale is around zero: 1 where great numbers speak for run B, -1 where small ones do; else 0.

    @property
    def is_plain(self) -> bool:
        """Whether pairs have no color of their own: images and texts have one each."""
        return self.place is None and self.numbers is None

    @property
    def has_missing(self) -> bool:
        """Whether there are pairs of which it is not known."""
        return not self.is_plain and bool((self.rows(-1) < 0).any())

    def table(self, palette: Palette) -> UInt8[np.ndarray, "k 3"]:
        """Return the colors of classes, of `SHADES` from low to high, or of modalities; last of what is not known."""
        missing = palette.missing if self.better else palette.gray
        return np.vstack([self._colors(palette), _rgb([missing])])

    def _colors(self, palette: Palette) -> UInt8[np.ndarray, "k 3"]:
        if self.numbers is not None and self.better:
            return _between(_rgb([palette.runs[0], palette.gray, palette.runs[1]])[:: self.better], SHADES)
        if self.numbers is not None:
            return palette.shades
        if self.is_plain:
            return _rgb(palette.modalities)
        if self.by == "agreement":  # figures write the runs into the names
            # Only A is right in A's color, only B in B's; both and neither are neither's.
            both, neither = palette.classes(8)[2:4]
            return _rgb([both, *palette.runs, neither])
        if self.ordered:
            # The ends that come too near to the ground are left away: black on dark, yellow on white.
            low, high = (0.3, 1.0) if palette.dark else (0.0, 0.88)
            # The dark end changes slowly: the first steps are longer.
            steps = low + (high - low) * np.linspace(0, 1, len(self.names)) ** 0.75
            return palette.shades[(steps * (SHADES - 1)).astype(int)]
        named: dict[str, str] = {}
        for classes in self.data_sets or (self.names,):
            colors = own_colors(classes, dark=palette.dark) or palette.classes(len(classes))
            named |= zip(classes, colors, strict=True)
        return _rgb([named.get(name, palette.gray) for name in self.names])

    def rows(self, missing: int) -> Int[np.ndarray, " n"]:
        """Return the row of `table` of every pair; `missing` where it is not known."""
        if self.place is not None:
            return np.where(self.place < 0, missing, self.place).astype(np.int32)
        low, high = self.ends or (0.0, 0.0)
        numbers = np.asarray(self.numbers, np.float32)
        share = (numbers - np.float32(low)) * np.float32((SHADES - 1) / (high - low if high > low else 1.0))
        is_number = np.isfinite(numbers)
        shade = np.rint(np.clip(np.where(is_number, share, 0), 0, SHADES - 1))
        return np.where(is_number, shade, missing).astype(np.int32)

    def value(self, pair: int) -> str | float:
        """Return the number or the class of a pair; empty where it is not known."""
        if self.numbers is not None:
            return "" if np.isnan(self.numbers[pair]) else float(self.numbers[pair])
        return self.names[self.place[pair]] if self.place is not None and self.place[pair] >= 0 else ""


def _between(stops: UInt8[np.ndarray, "k 3"], shades: int) -> UInt8[np.ndarray, "s 3"]:
    positions = np.linspace(0, len(stops) - 1, shades)
    channels = [np.interp(positions, np.arange(len(stops)), stops[:, part]) for part in range(3)]
    return np.rint(np.stack(channels, axis=1)).astype(np.uint8)


def _rgb(colors: Sequence[str]) -> UInt8[np.ndarray, "k 3"]:
    """Return `#rrggbb` as bytes."""
    return np.array([list(bytes.fromhex(name[1:])) for name in colors], np.uint8).reshape(-1, 3)
