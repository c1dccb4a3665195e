"""Handle files dragged over the window: the overlay that accepts them, and widgets that must not."""

from __future__ import annotations

import functools

from PySide6.QtCore import QEvent, QMimeData, QObject, QRectF, Qt, QTimer, Signal
from PySide6.QtGui import (
    QColor,
    QDragEnterEvent,
    QDragLeaveEvent,
    QDragMoveEvent,
    QDropEvent,
    QGuiApplication,
    QKeyEvent,
    QKeySequence,
    QPaintEvent,
    QPen,
)
from PySide6.QtWidgets import (
    QAbstractScrollArea,
    QApplication,
    QGraphicsView,
    QLineEdit,
    QPlainTextEdit,
    QTextEdit,
    QWidget,
)

from explorer import theme


class DropOverlay(QWidget):
    """Covers the window during a drag and accepts the drop, whatever widget is below."""

    dropped = Signal(QMimeData)  # What was dropped, as a `QMimeData` that is valid during the call only.

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent, objectName="dropOverlay")
        self.words = self.details = ""
        self.icon, self._tone = "image-plus", "accent"
        self.setAcceptDrops(True)
        # The drag may leave before Qt has told this widget of it; then nobody else would hide it.
        self._unvisited = QTimer(self, singleShot=True, interval=1_000, timeout=self.hide)
        parent.installEventFilter(self)
        self.hide()

    def open(self, text: str, icon: str = "image-plus", details: str = "", *, tone: str = "accent") -> None:
        """Cover the parent and show `text`, with `details` in small letters and an icon in the color of a tone."""
        self.words, self.icon, self.details, self._tone = text, icon, details, tone
        self.setGeometry(self.parentWidget().rect())
        self.show()
        self.raise_()
        self._unvisited.start()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.Resize and self.isVisible():
            self.setGeometry(self.parentWidget().rect())
        return super().eventFilter(watched, event)

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        self._unvisited.stop()
        event.acceptProposedAction()

    def dragMoveEvent(self, event: QDragMoveEvent) -> None:
        event.acceptProposedAction()

    def dragLeaveEvent(self, _event: QDragLeaveEvent) -> None:
        self.hide()

    def dropEvent(self, event: QDropEvent) -> None:
        self.hide()
        event.setDropAction(Qt.DropAction.CopyAction)
        event.accept()
        self.dropped.emit(event.mimeData())

    def paintEvent(self, _event: QPaintEvent) -> None:
        painter = theme.smooth_painter(self)
        veil = QColor(theme.color("background"))
        veil.setAlpha(240)
        painter.fillRect(self.rect(), veil)
        painter.setPen(QPen(theme.color(self._tone), 2, Qt.PenStyle.DashLine))
        painter.drawRoundedRect(QRectF(self.rect()).adjusted(24, 24, -24, -24), 12, 12)
        center = self.rect().center()
        sign = theme.icon(self.icon, 48, self._tone).pixmap(48, 48)
        painter.drawPixmap(center.x() - 24, center.y() - 56, sign)
        font = theme.pixel_font(theme.TITLE_PX)
        font.setWeight(font.Weight.DemiBold)
        painter.setFont(font)
        painter.setPen(theme.color("text"))
        painter.drawText(self.rect().translated(0, 24), Qt.AlignmentFlag.AlignCenter, self.words)
        room = self.rect().adjusted(64, self.height() // 2 + 48, -64, -32)
        theme.text_pen(painter, theme.BODY_PX, "secondary")
        centered = Qt.AlignmentFlag.AlignHCenter | Qt.AlignmentFlag.AlignTop
        painter.drawText(room, centered | Qt.TextFlag.TextWordWrap, self.details)


class _PicturesPass(QObject):
    """Passes pasted images to the window's *Paste*, because text fields would consume the shortcut."""

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if (
            event.type() == QEvent.Type.ShortcutOverride
            and isinstance(event, QKeyEvent)
            and event.matches(QKeySequence.StandardKey.Paste)
        ):
            copied = QGuiApplication.clipboard().mimeData()
            if copied is not None and copied.hasImage() and not copied.hasText():
                event.ignore()
                return True
        return super().eventFilter(watched, event)


@functools.cache
def _pictures_pass() -> _PicturesPass:
    return _PicturesPass(QApplication.instance())


def refuse_drops(root: QWidget) -> None:
    """Pass dropped files and pasted images to the window.

    Plots would swallow the drag, inputs would take the path as words.
    """
    for child in root.findChildren(QWidget):
        if isinstance(child, QLineEdit | QPlainTextEdit | QTextEdit):
            child.installEventFilter(_pictures_pass())
        if isinstance(child, QGraphicsView | QLineEdit | QPlainTextEdit | QTextEdit):
            child.setAcceptDrops(False)
            if isinstance(child, QAbstractScrollArea):
                child.viewport().setAcceptDrops(False)
