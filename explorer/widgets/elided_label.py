"""A one-line label that elides its text if necessary; the tool tip then has all of it."""

from __future__ import annotations

from PySide6.QtCore import QEvent, Qt
from PySide6.QtGui import QPainter, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QLabel, QSizePolicy, QStyle, QWidget

NARROWEST_PX = 48
"""Narrower than this a line says nothing, and is left empty."""


class ElidedLabel(QLabel):
    """A label that uses the available width and never asks for more."""

    def __init__(self, text: str = "", parent: QWidget | None = None) -> None:
        super().__init__(text, parent)
        self.setTextFormat(Qt.TextFormat.PlainText)
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)

    def setText(self, text: str) -> None:
        super().setText(text)
        self._explain()

    @property
    def elided(self) -> str:
        """The text painted."""
        if self.width() < NARROWEST_PX:
            return ""
        return self.fontMetrics().elidedText(self.text(), Qt.TextElideMode.ElideRight, self.contentsRect().width())

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._explain()

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        self._explain()

    def paintEvent(self, _event: QPaintEvent) -> None:
        painter = QPainter(self)
        side = QStyle.visualAlignment(self.layoutDirection(), self.alignment())
        self.style().drawItemText(
            painter, self.contentsRect(), side, self.palette(), self.isEnabled(), self.elided, self.foregroundRole()
        )

    def _explain(self) -> None:
        self.setToolTip("" if self.elided == self.text() else self.text())
