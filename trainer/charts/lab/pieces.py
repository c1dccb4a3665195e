"""What a panel of the Loss lab consists of."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from trainer.charts.marks import ShadedTable, XYPlot


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
    plots: tuple[XYPlot, ...] = ()
    tables: tuple[ShadedTable, ...] = ()
    facts: tuple[Fact, ...] = ()

    def plot(self, key: str) -> XYPlot:
        """The plot of this key."""
        return next(plot for plot in self.plots if plot.key == key)

    def table(self, key: str) -> ShadedTable:
        """The table of this key."""
        return next(table for table in self.tables if table.key == key)
