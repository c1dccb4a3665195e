"""A scroll area that prevents content from shrinking below its minimum size."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject, QSize, Qt, QTimer
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QFrame, QScrollArea, QWidget


class MinSizeScroll(QScrollArea):
    """A scroll area whose content fills it, but never shrinks below its minimum size.

    `QScrollArea.setWidgetResizable` would scroll as soon as words that wrap have less than they prefer.
    """

    def __init__(self, content: QWidget, parent: QWidget | None = None) -> None:
        super().__init__(parent, frameShape=QFrame.Shape.NoFrame, focusPolicy=Qt.FocusPolicy.NoFocus)
        self.setWidget(content)
        content.setAutoFillBackground(False)
        self.viewport().setAutoFillBackground(False)
        self._again = QTimer(self, singleShot=True, interval=0, timeout=self._fit)
        content.installEventFilter(self)

    def sizeHint(self) -> QSize:
        return self.widget().sizeHint()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.LayoutRequest and watched is self.widget():
            self._fit()
            # Parts of the content that are laid out after it may need more than they said.
            self._again.start()
        return super().eventFilter(watched, event)

    def _fit(self) -> None:
        if (content := self.widget()) is None:
            return
        room = self.maximumViewportSize()
        across, down = (bar.sizeHint() for bar in (self.horizontalScrollBar(), self.verticalScrollBar()))
        least = least_size(content, room.width())
        if least.width() > room.width():
            room.setHeight(room.height() - across.height())
        if least.height() > room.height():
            room.setWidth(room.width() - down.width())
            least = least_size(content, room.width())
        content.resize(room.expandedTo(least))


class SidewaysScroll(MinSizeScroll):
    """As high as its content; one that is too wide is scrolled sideways."""

    def __init__(self, content: QWidget, parent: QWidget | None = None) -> None:
        super().__init__(content, parent)
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)

    def _fit(self) -> None:
        width = self.width()
        if (content := self.widget()) is None:
            return
        least = least_size(content, width)
        bar = self.horizontalScrollBar().sizeHint().height() if least.width() > width else 0
        self.setFixedHeight(least.height() + bar)
        content.resize(max(width, least.width()), least.height())


def least_size(widget: QWidget, width: int) -> QSize:
    """Return the minimum size of a widget that is at least `width` wide."""
    layout = widget.layout()
    if layout is None:
        return widget.minimumSizeHint().expandedTo(widget.minimumSize())
    least = layout.totalMinimumSize()
    if layout.hasHeightForWidth():
        least.setHeight(layout.totalMinimumHeightForWidth(max(width, least.width())))
    return least
