"""A temperature slider with an exact spin box and buttons for the trained and the best value."""

from __future__ import annotations

import math
from typing import Final

from PySide6.QtCore import QSignalBlocker, Qt, Signal
from PySide6.QtWidgets import QLabel, QPushButton, QWidget

from explorer import theme
from explorer.widgets import layouts
from explorer.widgets.number_box import NumberBox
from explorer.widgets.refusal import set_refusal
from explorer.widgets.still import StillSlider

LOW, HIGH = 0.001, 1.0
STEPS: Final = 600
BOX_PX: Final = 92


class TauControl(QWidget):
    """The temperature of one run."""

    changed = Signal()  # The person chose another temperature.

    def __init__(self, index: int, parent: QWidget | None = None) -> None:
        letter = "AB"[index]
        super().__init__(parent, objectName=f"prompts-tau-{letter.lower()}")
        self.index = index
        self.tau, self._trained, self._best = 0.07, 0.07, 0.07
        self.name = layouts.elided(role="strong")
        self.slider = StillSlider(Qt.Orientation.Horizontal, objectName=f"prompts-slider-{letter.lower()}")
        self.slider.setAccessibleName(f"Temperature of run {letter}")
        self.slider.setRange(0, STEPS)
        self.slider.setPageStep(STEPS // 20)
        self.box = NumberBox(integer=False, low=LOW, high=HIGH)
        self.box.setObjectName(f"prompts-box-{letter.lower()}")
        self.box.setAccessibleName(f"Temperature of run {letter}, number")
        self.box.setFixedWidth(BOX_PX)
        self.box.setKeyboardTracking(True)
        self.to_trained = QPushButton("Use trained", objectName=f"prompts-trained-{letter.lower()}")
        self.to_best = QPushButton("Use optimal", objectName=f"prompts-best-{letter.lower()}")
        self._swatch = QLabel("●")
        self._lay_out()
        self.slider.valueChanged.connect(self._slid)
        self.box.edited.connect(self._typed)
        self.to_trained.clicked.connect(lambda: self._jump(self._trained))
        self.to_best.clicked.connect(lambda: self._jump(self._best))
        theme.theme().follow(self._recolor)
        self._recolor()

    def show_run(self, name: str, *, trained: float, best: float, tau: float | None = None) -> None:
        """Show a run's temperatures, at `tau` or the trained one, without emitting `changed`."""
        self._trained, self._best = trained, best
        self._recolor()
        self.name.setText(name)
        self.to_trained.setToolTip(f"Temperature {trained:.4g}, that of the run's training")
        self.to_best.setToolTip(f"Temperature {best:.4g}, the smallest negative log-likelihood")
        set_refusal(
            self.to_best, "" if LOW <= best <= HIGH else f"The best temperature, {best:.4g}, is beyond the slider."
        )
        self._show(trained if tau is None else tau)

    def _slid(self, position: int) -> None:
        self.tau = to_tau(position)
        with QSignalBlocker(self.box):
            self.box.set_value(self.tau)
        self.changed.emit()

    def _typed(self) -> None:
        typed = self.box.value()
        fits = isinstance(typed, int | float) and LOW <= typed <= HIGH
        self.box.setProperty("state", "" if fits else "bad")
        self.box.style().polish(self.box)
        self.box.setToolTip("" if fits else f"A number from {LOW:g} to {HIGH:g}; {self.tau:.4g} is kept.")
        if fits and typed != self.tau:
            self.tau = float(typed)
            with QSignalBlocker(self.slider):
                self.slider.setValue(to_place(self.tau))
            self.changed.emit()

    def _jump(self, tau: float) -> None:
        self._show(tau)
        self.changed.emit()

    def _show(self, tau: float) -> None:
        self.tau = tau
        with QSignalBlocker(self.slider), QSignalBlocker(self.box):
            self.slider.setValue(to_place(tau))
            self.box.set_value(float(f"{tau:.4g}"))

    def _recolor(self) -> None:
        self._swatch.setStyleSheet(f"color: {theme.run_color(self.index, self)}")

    def _lay_out(self) -> None:
        grid = layouts.grid(theme.INSIDE, theme.SPACE, of=self)
        tau = layouts.text("Temperature", "secondary")
        grid.addLayout(layouts.row(self._swatch, (self.name, 1), tau, self.box), 0, 0)
        grid.addLayout(layouts.row((self.slider, 1), self.to_trained, self.to_best), 1, 0)


def to_tau(position: int) -> float:
    """Return the temperature at a slider position; the scale is logarithmic."""
    return float(f"{LOW * (HIGH / LOW) ** (position / STEPS):.3g}")


def to_place(tau: float) -> int:
    """Return the slider position nearest to a temperature."""
    return round(STEPS * min(max(math.log(tau / LOW) / math.log(HIGH / LOW), 0.0), 1.0))
