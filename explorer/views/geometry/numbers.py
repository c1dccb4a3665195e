"""The tests of uniformity in rows, modalities of both runs in columns, the paper's values beside them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFrame, QGridLayout, QLabel, QVBoxLayout, QWidget

from explorer import theme
from explorer.widgets.combo_boxes import Badge
from trainer.analysis.uniformity import mean_angle
from trainer.charts.uniformity import REFERENCE_N, REFERENCES, SOURCE, Spread, UniformityRun


@dataclass(frozen=True)
class Measure:
    """One row."""

    words: str
    hint: str
    read: Callable[[Spread], float]
    digits: int


MEASURES: Final = (
    Measure("Mean angle (°)", "Between two rows; 90 if uniform. Does not depend on n.", lambda s: s.mean_angle, 2),
    Measure("Mean resultant length", "Length of the mean row: 0 balanced, 1 all equal.", lambda s: s.resultant, 3),
    Measure("Uniformity", "Wang and Isola, t = 2: lower is more uniform, 0 is collapsed.", lambda s: s.uniformity, 3),
    Measure("Ajne A", ".25 if uniform, n/4 if all are equal: grows with n.", lambda s: s.ajne, 3),
    Measure("Ajne A / n", "From 0 (uniform) to .25 (all equal): comparable between sizes.", lambda s: s.ajne_per_n, 5),
    Measure("p (Ajne)", "Chance of as large an A under uniformity, at the n tested.", lambda s: s.p_ajne, 3),
    Measure("Giné G", ".5 if uniform, n/2 if all are equal: grows with n.", lambda s: s.gine, 3),
    Measure("Giné G / n", "From 0 (uniform) to .5 (all equal): comparable between sizes.", lambda s: s.gine_per_n, 5),
    Measure("p (Giné)", "Chance of as large a G under uniformity, at the n tested.", lambda s: s.p_gine, 3),
    Measure("n, all pairs of", "Rows whose pairs were all compared.", lambda s: s.n, 0),
    Measure("n tested", "Rows the p-values are of; the null is simulated at this n.", lambda s: s.n_tested, 0),
)
MODALITIES: Final = ("image", "text")


class GeometryNumbers(QFrame):
    """Eleven measures of images and texts of A and B, alignment of the pairs, and the paper's Ajne values."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent, objectName="geometry-numbers", accessibleName="Tests of uniformity of both runs")
        self._cells: dict[tuple[str, int, str], QLabel] = {}
        grid = QGridLayout()
        grid.setContentsMargins(0, 0, 0, 0)
        grid.setHorizontalSpacing(theme.INSIDE + theme.SPACE)
        grid.setVerticalSpacing(theme.SPACE + 2)
        grid.setColumnStretch(0, 1)
        right = Qt.AlignmentFlag.AlignRight
        for index in (0, 1):
            grid.addWidget(Badge("AB"[index], index), 0, 1 + 2 * index, 1, 2, right)
            for place, modality in enumerate(MODALITIES):
                grid.addWidget(_label(f"{modality}s", "small"), 1, 1 + 2 * index + place, right)
        for row, measure in enumerate(MEASURES, start=2):
            name = _label(measure.words, "")
            name.setToolTip(measure.hint)
            grid.addWidget(name, row, 0)
            for index in (0, 1):
                for place, modality in enumerate(MODALITIES):
                    cell = _label("–", "")
                    cell.setToolTip(measure.hint)
                    self._cells[measure.words, index, modality] = cell
                    grid.addWidget(cell, row, 1 + 2 * index + place, right)
        row = len(MEASURES) + 2
        name = _label("Alignment", "")
        name.setToolTip("Mean squared distance of an image to its text: 0 is best (Wang and Isola).")
        grid.addWidget(name, row, 0)
        for index in (0, 1):
            self._cells["Alignment", index, "both"] = cell = _label("–", "")
            grid.addWidget(cell, row, 1 + 2 * index, 1, 2, right)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(theme.BETWEEN)
        column.addLayout(grid)
        column.addLayout(self._references())

    def show_run(self, index: int, run: UniformityRun | None) -> None:
        """Shows a run's numbers; dashes without any."""
        for measure in MEASURES:
            for modality in MODALITIES:
                spread = getattr(run, modality) if run is not None else None
                value = None if spread is None else measure.read(spread)
                self._cells[measure.words, index, modality].setText(_written(value, measure.digits))
        self._cells["Alignment", index, "both"].setText(_written(run.alignment if run else None, 3))

    def text(self, measure: str, index: int, modality: str) -> str:
        """What a cell says."""
        return self._cells[measure, index, modality].text()

    def _references(self) -> QVBoxLayout:
        column = QVBoxLayout()
        column.setSpacing(2)
        column.addWidget(
            _label(f"In the paper, n ≈ {REFERENCE_N:,}: Ajne A of images and texts (mean angles)", "small")
        )
        for reference in REFERENCES:
            angles = (mean_angle(a, REFERENCE_N) for a in (reference.ajne_image, reference.ajne_text))
            values = f"{reference.ajne_image:g}, {reference.ajne_text:g} ({', '.join(f'{a:.2f}°' for a in angles)})"
            line = _label(f"{reference.what}: {values}", "small")
            line.setWordWrap(True)
            column.addWidget(line)
        source = _label(SOURCE, "small")
        source.setWordWrap(True)
        column.addWidget(source)
        return column


def _written(value: float | None, digits: int) -> str:
    if value is None or math.isnan(value):
        return "–"
    return f"{value:,.{digits}f}".replace("-", "−")


def _label(words: str, role: str) -> QLabel:
    label = QLabel(words)
    label.setTextFormat(Qt.TextFormat.PlainText)
    if role:
        theme.set_role(label, role)
    return label
