"""Images and texts of one run as two clouds, moving while the gap is closed."""

from __future__ import annotations

import numpy as np
from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QPaintEvent, QPen, QPolygonF
from PySide6.QtWidgets import QWidget

from explorer import theme

PAD = 10


class Clouds(QWidget):
    """Images are discs in the run's color, texts are diamonds in gray; rings mark the two means."""

    def __init__(self, index: int, parent: QWidget | None = None) -> None:
        super().__init__(parent, objectName=f"gap-clouds-{'ab'[index]}")
        self.index = index
        self.image = self.text = np.zeros((0, 2))
        self._low = self._high = np.zeros(2)
        self.setMinimumSize(160, 140)
        self.setAccessibleName(f"Images and texts of run {'AB'[index]} on their two principal axes")
        theme.theme().changed.connect(self.update)

    def fit(self, image: np.ndarray, text: np.ndarray) -> None:
        """Chooses the frame from these points; it then stays, so that the eye sees what moves."""
        both = np.concatenate([image, text])
        self._low, self._high = both.min(0), both.max(0)
        self.show_points(image, text)

    def show_points(self, image: np.ndarray, text: np.ndarray) -> None:
        """Moves the points."""
        self.image, self.text = image, text
        self.update()

    def paintEvent(self, _event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(theme.color("background"))
        painter.drawRoundedRect(QRectF(self.rect()), theme.RADIUS, theme.RADIUS)
        if not len(self.image):
            return
        painter.setClipRect(self.rect())
        run = QColor(theme.run_color(self.index))
        gray = theme.color("secondary")
        for points, ink, diamond in ((self.text, gray, True), (self.image, run, False)):
            fill = QColor(ink)
            fill.setAlphaF(0.55)
            painter.setBrush(fill)
            painter.setPen(Qt.PenStyle.NoPen)
            for x, y in self._placed(points):
                if diamond:
                    corners = [QPointF(x, y - 3.2), QPointF(x + 3.2, y), QPointF(x, y + 3.2), QPointF(x - 3.2, y)]
                    painter.drawPolygon(QPolygonF(corners))
                else:
                    painter.drawEllipse(QPointF(x, y), 2.4, 2.4)
        means = self._placed(np.stack([self.image.mean(0), self.text.mean(0)]))
        painter.setPen(QPen(theme.color("text"), 2))
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.drawLine(QPointF(*means[0]), QPointF(*means[1]))
        for (x, y), ink in zip(means, (run, gray), strict=True):
            painter.setBrush(ink)
            painter.drawEllipse(QPointF(x, y), 5, 5)

    def _placed(self, points: np.ndarray) -> list[tuple[float, float]]:
        span = np.maximum(self._high - self._low, 1e-9)
        scale = min((self.width() - 2 * PAD) / span[0], (self.height() - 2 * PAD) / span[1])
        middle = (self._low + self._high) / 2
        x = self.width() / 2 + (points[:, 0] - middle[0]) * scale
        y = self.height() / 2 - (points[:, 1] - middle[1]) * scale
        return list(zip(x.tolist(), y.tolist(), strict=True))
