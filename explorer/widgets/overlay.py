"""A panel over the window that dims the rest, closes on Esc or a click outside, and returns the focus."""

from __future__ import annotations

import shiboken6
from PySide6.QtCore import QEvent, QObject, Qt, Signal
from PySide6.QtGui import QKeyEvent, QMouseEvent, QPainter, QPaintEvent, QShowEvent
from PySide6.QtWidgets import QApplication, QFrame, QToolButton, QVBoxLayout, QWidget

from explorer import theme


class Shade(QWidget):
    """Dims its parent while something in front of it is to be answered first."""

    def __init__(self, parent: QWidget, name: str = "") -> None:
        super().__init__(parent, objectName=name)
        parent.installEventFilter(self)
        self.hide()

    def dim(self, on: bool) -> None:
        """Cover the parent, or show it as it is."""
        self.setVisible(on)
        if on:
            self.raise_()

    def showEvent(self, event: QShowEvent) -> None:
        # Also when the parent is shown again: a zoom hides the window, and resizes it meanwhile.
        super().showEvent(event)
        self._cover()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.Resize and self.isVisible():
            self._cover()
        return super().eventFilter(watched, event)

    def paintEvent(self, _event: QPaintEvent) -> None:
        shade = theme.color("shade")
        shade.setAlphaF(0.45 if theme.theme().dark else 0.25)
        QPainter(self).fillRect(self.rect(), shade)

    def _cover(self) -> None:
        self.setGeometry(self.parentWidget().rect())


class Overlay(Shade):
    """Covers its parent and shows `panel` in it."""

    closed = Signal()  # The panel is gone and the focus is back where it was.

    def __init__(self, parent: QWidget, *, name: str, width: int, height: int = 0, top: bool = False) -> None:
        """Create the panel hidden.

        Args:
            parent: What it covers.
            name: Object name of the panel.
            width: Of the panel, in pixels, where there is room.
            height: The same; 0: what its content asks for.
            top: It is placed near the upper edge instead of the center.
        """
        super().__init__(parent)
        self.panel = QFrame(self, objectName=name, maximumWidth=width)
        self.panel.setMinimumWidth(min(width, 360))
        self.body = QVBoxLayout(self.panel)
        self.body.setContentsMargins(theme.BETWEEN, theme.BETWEEN, theme.BETWEEN, theme.BETWEEN)
        self.body.setSpacing(theme.INSIDE)
        self._width, self._height, self._top = width, height, top
        self._focus_before: QWidget | None = None
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)

    def open(self, focus: QWidget | None = None) -> None:
        """Show the panel over everything and focus `focus`, or the panel itself."""
        if self.isHidden():
            self._focus_before = QApplication.focusWidget()
        self.show()
        self.raise_()
        (focus or self).setFocus(Qt.FocusReason.PopupFocusReason)

    def close_panel(self) -> None:
        """Hide the panel and return the focus."""
        if self.isHidden():
            return
        self.hide()
        # What had it may have gone meanwhile: a table that was filled anew, a closed menu.
        if self._focus_before is not None and shiboken6.isValid(self._focus_before):
            self._focus_before.setFocus(Qt.FocusReason.PopupFocusReason)
        self.closed.emit()

    def close_button(self, name: str) -> QToolButton:
        """Return a button that closes the panel."""
        button = QToolButton(objectName=name, accessibleName="Close", toolTip="Close (Esc)")
        theme.keep_icon(button, "x", 16, "secondary")
        button.clicked.connect(self.close_panel)
        return button

    def event(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.ShortcutOverride:
            # The window's shortcuts rest while the panel is open: keys come here as keys.
            event.accept()
            return True
        return super().event(event)

    def focusNextPrevChild(self, forward: bool) -> bool:
        """Keep Tab inside the panel while it is open."""
        inside = [w for w in self.panel.findChildren(QWidget) if w.focusPolicy() & Qt.FocusPolicy.TabFocus]
        inside = [w for w in inside if w.isVisible() and w.isEnabled()]
        if inside:
            now = QApplication.focusWidget()
            index = inside.index(now) if now in inside else (-1 if forward else 0)
            inside[(index + (1 if forward else -1)) % len(inside)].setFocus(Qt.FocusReason.TabFocusReason)
        return True

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Escape:
            self.close_panel()
        # Every other key ends here, too: it must not reach the view behind.
        event.accept()

    def mousePressEvent(self, event: QMouseEvent) -> None:
        if not self.panel.geometry().contains(event.position().toPoint()):
            self.close_panel()

    def _cover(self) -> None:
        super()._cover()
        room = self.rect()
        width = min(self._width, room.width() - 2 * theme.AROUND)
        self.panel.setFixedWidth(max(200, width))
        self.body.activate()
        wrapped = self.body.totalHeightForWidth(self.panel.width()) if self.body.hasHeightForWidth() else 0
        height = min(self._height or wrapped or self.panel.sizeHint().height(), room.height() - 2 * theme.AROUND)
        y = min(72, room.height() // 8) if self._top else (room.height() - height) // 2
        self.panel.setGeometry((room.width() - self.panel.width()) // 2, y, self.panel.width(), height)
