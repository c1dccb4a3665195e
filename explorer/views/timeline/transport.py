"""A play button and a slider over the steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from PySide6.QtCore import QSignalBlocker, Qt, QTimer, Signal
from PySide6.QtGui import QMouseEvent
from PySide6.QtWidgets import QLabel, QSlider, QStyle, QStyleOptionSlider, QToolButton, QWidget

from explorer import theme
from explorer.widgets import layouts
from explorer.widgets.still import StillSlider

SLOWEST_MS: Final = 700
FASTEST_MS: Final = 240
"""A step lasts at least as long as its 200 ms of motion."""
WHOLE_MS: Final = 12_000
LABEL_PX: Final = 168


class _Track(StillSlider):
    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Move to the step at the pointer; Qt moves by a page."""
        option, style = QStyleOptionSlider(), self.style()
        self.initStyleOption(option)
        kind, part = QStyle.ComplexControl.CC_Slider, QStyle.SubControl.SC_SliderHandle
        handle = style.subControlRect(kind, option, part, self)
        if event.button() is not Qt.MouseButton.LeftButton or handle.contains(event.position().toPoint()):
            super().mousePressEvent(event)
            return
        x, span = round(event.position().x()) - handle.width() // 2, self.width() - handle.width()
        self.setValue(QStyle.sliderValueFromPosition(self.minimum(), self.maximum(), x, span))


class Transport(QWidget):
    """The current position in time."""

    moved = Signal(int)  # Another step is looked at; its place among the steps.

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._steps: tuple[int, ...] = ()
        self.play = QToolButton(objectName="timeline-play", checkable=True)
        self.slider = _Track(Qt.Orientation.Horizontal, objectName="timeline-slider", accessibleName="Step")
        self.slider.setPageStep(1)
        self.slider.setTickPosition(QSlider.TickPosition.TicksBelow)
        self.label = QLabel(minimumWidth=LABEL_PX)
        self.label.setFont(theme.pixel_font(theme.BODY_PX))
        self._timer = QTimer(self, timeout=self._tick)
        layouts.row(self.play, (self.slider, 1), self.label, of=self)
        self.play.toggled.connect(self._on_play)
        self.slider.valueChanged.connect(self._on_value)
        self._on_play(False)

    @property
    def step(self) -> int | None:
        """The current step; None if there is none."""
        return self._steps[self.slider.value()] if self._steps else None

    def set_steps(self, steps: Sequence[int], at: int | None = None) -> None:
        """Set the ascending steps and move to `at` (or the nearest before it), or to the last."""
        self.play.setChecked(False)
        self._steps = tuple(steps)
        with QSignalBlocker(self.slider):
            self.slider.setRange(0, max(len(steps) - 1, 0))
            self.slider.setValue(len(steps) - 1 if at is None else self.place_of(at))
        self.setEnabled(len(steps) > 1)
        self._show_step()

    def place_of(self, step: float) -> int:
        """Return the index of the step nearest to `step`."""
        return int(np.abs(np.asarray(self._steps, np.float64) - step).argmin()) if self._steps else 0

    def go(self, by: int) -> None:
        """Move by this many steps; backward if negative."""
        self.slider.setValue(self.slider.value() + by)

    def jump(self, step: float) -> None:
        """Move to the step nearest to this one."""
        self.slider.setValue(self.place_of(step))

    def _on_value(self, frame: int) -> None:
        self._show_step()
        self.moved.emit(frame)

    def _on_play(self, on: bool) -> None:
        theme.keep_icon(self.play, "pause" if on else "play", 16, "text")
        label = "Pause (Space)" if on else "Play (Space)"
        self.play.setToolTip(label)
        self.play.setAccessibleName(label)
        if not on:
            self._timer.stop()
            return
        if self.slider.value() == self.slider.maximum():
            self.slider.setValue(0)
        self._timer.start(int(np.clip(WHOLE_MS / max(len(self._steps), 1), FASTEST_MS, SLOWEST_MS)))

    def _tick(self) -> None:
        if self.slider.value() >= self.slider.maximum():
            self.play.setChecked(False)
            return
        self.go(1)
        if self.slider.value() == self.slider.maximum():
            self.play.setChecked(False)

    def _show_step(self) -> None:
        position = f"{self.slider.value() + 1} of {len(self._steps)}"
        self.label.setText(f"Step {self.step:,}  ·  {position}" if self._steps else "")
