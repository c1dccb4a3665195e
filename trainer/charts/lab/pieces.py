"""What a panel of the Loss lab consists of; the window and `trainer.render_mpl.lab` draw the same pieces."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from jaxtyping import Float

Tone = Literal["first", "second", "third", "fourth", "quiet", "bad", "run_a", "run_b"]
"""What colours a series: the blue and orange of runs A and B only for a run's own. `bad` is what must not be done."""


@dataclass(frozen=True)
class Axis:
    """A range that does not follow the data, so that a slider moves the curve and not the axis."""

    label: str
    low: float
    high: float
    log: bool = False

    def ticks(self) -> list[tuple[float, str]]:
        """Powers of ten and their words, at most seven; for logarithmic axes."""
        first, last = math.ceil(math.log10(self.low) - 1e-9), math.floor(math.log10(self.high) + 1e-9)
        step = -(-(last - first + 1) // 7)
        powers = range(last, first - 1, -step)
        plain = first >= -3 and last <= 5
        return [(10.0**power, f"{10.0**power:,g}" if plain else _raised(power)) for power in sorted(powers)]


@dataclass(frozen=True)
class Curve:
    """One series. `stepped`: `x` are the edges of bins, one more than `y`. Without a name it is in no legend."""

    name: str
    tone: Tone
    x: Float[np.ndarray, " n"]
    y: Float[np.ndarray, " m"]
    dashed: bool = False
    stepped: bool = False
    width: float = 2.0


@dataclass(frozen=True)
class Dot:
    """One marked point; `size` is its diameter in pixels."""

    name: str
    tone: Tone
    x: float
    y: float
    size: float = 8.0
    mark: Literal["disc", "diamond", "ring"] = "disc"
    label: str = ""


@dataclass(frozen=True)
class Region:
    """A range of x that is shaded and named."""

    name: str
    low: float
    high: float


@dataclass(frozen=True)
class Plot:
    """Curves, or bars of named categories, over fixed axes.

    Attributes:
        cursor: Where a dashed line stands on x; NaN for none. Usually the value of a slider.
        bars: Heights of the categories `names`; empty in a plot of curves.
        equal: Both axes have one scale.
        note: A quiet remark beside the title.
        cloud: Many small quiet points behind everything; None for none.
    """

    key: str
    title: str
    x: Axis
    y: Axis
    curves: tuple[Curve, ...] = ()
    regions: tuple[Region, ...] = ()
    dots: tuple[Dot, ...] = ()
    cursor: float = math.nan
    bars: tuple[float, ...] = ()
    names: tuple[str, ...] = ()
    equal: bool = False
    note: str = ""
    cloud: Float[np.ndarray, "n 2"] | None = None


@dataclass(frozen=True)
class Table:
    """A matrix of numbers, its cells shaded by value.

    Attributes:
        right: Heading and numbers of an extra column, unshaded.
        below: Heading and numbers of an extra row, unshaded.
        marked: Cells in a frame: the matched ones.
        top: The value of the deepest shade; the cells are not shaded where it is 0.
    """

    key: str
    title: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    values: Float[np.ndarray, "rows columns"]
    digits: int
    top: float = 1.0
    right: tuple[str, Float[np.ndarray, " rows"]] | None = None
    below: tuple[str, Float[np.ndarray, " columns"]] | None = None
    marked: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True)
class Fact:
    """One number with its words; NaN is shown as such."""

    words: str
    value: float
    digits: int
    hint: str = ""
    strong: bool = False

    @property
    def text(self) -> str:
        """The number with a true minus sign; very small ones as a power of ten."""
        if not math.isfinite(self.value):
            return "NaN"
        small = 0 < abs(self.value) < 0.5 * 10**-self.digits
        return (f"{self.value:.1e}" if small else f"{self.value:,.{self.digits}f}").replace("-", "−")


@dataclass(frozen=True)
class LabChart:
    """Everything a panel shows for its settings; `source` cites paper and equation."""

    panel: str
    title: str
    source: str
    settings: Any
    plots: tuple[Plot, ...] = ()
    tables: tuple[Table, ...] = ()
    facts: tuple[Fact, ...] = ()

    def plot(self, key: str) -> Plot:
        """The plot of this key."""
        return next(plot for plot in self.plots if plot.key == key)

    def table(self, key: str) -> Table:
        """The table of this key."""
        return next(table for table in self.tables if table.key == key)


def _raised(power: int) -> str:
    return "10" + str(power).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")) if power else "1"
