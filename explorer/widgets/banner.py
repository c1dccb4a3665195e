"""A quiet strip that says what went wrong, why, and what to do next; or that something is done."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Literal

from PySide6.QtCore import QEvent, QObject, Qt, QTimer
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QPushButton, QSizePolicy, QToolButton, QVBoxLayout, QWidget

from explorer import theme

Tone = Literal["bad", "warn", "good", "info"]

_ICONS: Final[dict[str, str]] = {
    "bad": "circle-alert",
    "warn": "triangle-alert",
    "good": "circle-check",
    "info": "info",
}
SHORT_MS: Final = 8_000
"""How long good news stays; bad news stays until it is closed or followed by other news."""


class Banner(QFrame):
    """Lies over the lower edge of its parent; the newest message replaces the one before."""

    WIDTH: Final = 680

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent, objectName="banner")
        self._tone: Tone = "info"
        self._details = ""
        self._act: Callable[[], object] | None = None
        self._icon = QLabel()
        self.message = QLabel(wordWrap=True, objectName="bannerMessage")
        theme.set_role(self.message, "strong")
        self.next = QLabel(wordWrap=True, objectName="bannerNext")
        for label in (self.message, self.next):
            label.setTextFormat(Qt.TextFormat.PlainText)
            label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
            label.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.MinimumExpanding)
        self.action = QPushButton(objectName="bannerAction")
        self.copy = QPushButton("Copy details", objectName="bannerCopy", accessibleName="Copy details")
        theme.set_role(self.copy, "quiet")
        self.dismiss = QToolButton(objectName="bannerClose", accessibleName="Close this message", toolTip="Close")
        theme.keep_icon(self.dismiss, "x", 16, "text")
        self._timer = QTimer(self, singleShot=True, timeout=self.hide)
        self._lay_out()
        self.action.clicked.connect(self._do)
        self.copy.clicked.connect(lambda: QGuiApplication.clipboard().setText(self._details))
        self.dismiss.clicked.connect(self.hide)
        theme.theme().follow(self._draw_icon)
        parent.installEventFilter(self)
        self.hide()

    def tell(
        self,
        message: str,
        next_step: str = "",
        *,
        tone: Tone = "bad",
        details: str = "",
        action: tuple[str, Callable[[], object]] | None = None,
    ) -> None:
        """Shows a message.

        Args:
            message: The cause, a sentence.
            next_step: What the person can do.
            tone: Bad and warn stay; good and info go by themselves.
            details: What "Copy details" puts on the clipboard; empty: no such button.
            action: Words and function of a button, e.g. `("Open folder", ...)`.
        """
        self._tone, self._details = tone, details
        self._act = action[1] if action else None
        self.message.setText(message)
        self.next.setText(next_step)
        self.next.setVisible(bool(next_step))
        self.copy.setVisible(bool(details))
        self.action.setVisible(action is not None)
        if action:
            self.action.setText(action[0])
            self.action.setAccessibleName(action[0])
        self.setProperty("tone", tone)
        self.style().unpolish(self)
        self.style().polish(self)
        self._draw_icon()
        self.show()
        self.raise_()
        self._place()
        if tone in ("good", "info"):
            self._timer.start(SHORT_MS)
        else:
            self._timer.stop()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.Resize and self.isVisible():
            self._place()
        return super().eventFilter(watched, event)

    def _do(self) -> None:
        self.hide()
        if self._act is not None:
            self._act()

    def _draw_icon(self) -> None:
        role = "accent" if self._tone == "info" else self._tone
        self._icon.setPixmap(theme.icon(_ICONS[self._tone], 20, role).pixmap(20, 20))

    def _place(self) -> None:
        room = self.parentWidget().rect()
        width = max(240, min(self.WIDTH, room.width() - 2 * theme.BETWEEN))
        self.setFixedWidth(width)
        self.layout().activate()
        height = self.layout().heightForWidth(width)
        self.setGeometry((room.width() - width) // 2, room.height() - height - theme.BETWEEN, width, height)

    def _lay_out(self) -> None:
        words = QVBoxLayout()
        words.setSpacing(2)
        words.addStretch()
        words.addWidget(self.message)
        words.addWidget(self.next)
        words.addStretch()
        row = QHBoxLayout(self)
        row.setContentsMargins(theme.BETWEEN, theme.INSIDE + 2, theme.INSIDE, theme.INSIDE + 2)
        row.setSpacing(theme.INSIDE)
        row.addWidget(self._icon)
        row.addSpacing(theme.SPACE)
        row.addLayout(words, 1)
        for button in (self.action, self.copy, self.dismiss):
            row.addWidget(button)
