"""A line in a map's corner: how many points are drawn while it moves or they are sorted, and how far that is."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QObject, QRectF, Qt, QTimer
from PySide6.QtGui import QFont, QPainter

from explorer.theme import INSIDE, SMALL_PX, SPACE, color
from explorer.widgets.point_map.layer import PointLayer
from explorer.widgets.point_map.scene import MapScene

PATIENCE_MS: Final = 500
"""Sorting is not spoken of before this: a million points take less."""


class Note(QObject):
    """Reports that the image is incomplete or pending.

    Attributes:
        words: What it says; empty when every point is drawn.
    """

    def __init__(self, layer: PointLayer, parent: QObject) -> None:
        super().__init__(parent)
        self._layer = layer
        self._share = 0.0
        self.words = ""
        self._patience = QTimer(self, singleShot=True, interval=PATIENCE_MS, timeout=self._say_sorting)
        layer.add_overlay(self.paint)
        layer.framed.connect(self._on_frame)
        layer.indexed.connect(self._on_indexed)
        layer.sorting.connect(self._on_sorting)

    def expect(self, points: int) -> None:
        """Note how many points were set; if they are not sorted soon, a note says that sorting is in progress."""
        self._points, self._share = points, 0.0
        self._patience.start()

    def paint(self, painter: QPainter, scene: MapScene) -> None:
        """Write the text into the lower left corner, on a background chip."""
        if not self.words:
            return
        font = QFont(painter.font())
        font.setPixelSize(SMALL_PX)
        painter.setFont(font)
        wide = painter.fontMetrics().horizontalAdvance(self.words)
        tall = painter.fontMetrics().height()
        x, y = scene.corner[0] + INSIDE, scene.corner[1] + scene.height - INSIDE - tall - SPACE
        chip = QRectF(x, y, wide + 2 * INSIDE, tall + SPACE)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(color("raised"))
        painter.drawRoundedRect(chip, SPACE, SPACE)
        painter.setPen(color("secondary"))
        painter.drawText(chip, Qt.AlignmentFlag.AlignCenter, self.words)

    def _on_frame(self) -> None:
        frame = self._layer.frame
        if self._layer.is_sample:
            self._say_sorting()
        elif frame is None or frame.drawn == frame.visible:
            self._say("Half the resolution while the map moves" if self._layer.is_coarse else "")
        else:
            does = "turns" if self._layer.is_preview else "moves"
            self._say(f"{frame.drawn:,} of {frame.visible:,} points drawn while the map {does}")

    def _on_sorting(self, share: float) -> None:
        self._share = share
        if self.words and (self._layer.is_sample or (not self._patience.isActive() and self._layer.frame is None)):
            self._say_sorting()

    def _on_indexed(self) -> None:
        self._patience.stop()
        if not self._layer.is_sample:
            self._say("")

    def _say_sorting(self) -> None:
        frame, share = self._layer.frame, f"{100 * self._share:.0f} %"
        if self._layer.is_sample and frame is not None:
            self._say(f"A sample of {frame.drawn:,} of {frame.visible:,} points until they are sorted: {share}")
        else:
            self._say(f"Sorting {self._points:,} points: {share}")

    def _say(self, text: str) -> None:
        if text != self.words:
            self.words = text
            self._layer.update()
