"""A banner that reports an error with its cause and next step, or the completion of something."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Literal

import shiboken6
from PySide6.QtCore import QEvent, QObject, QPoint, QRect, Qt, QTimer
from PySide6.QtGui import QGuiApplication, QHideEvent, QKeySequence, QShortcut
from PySide6.QtWidgets import (
    QFrame,
    QLabel,
    QPushButton,
    QSizePolicy,
    QToolButton,
    QWidget,
)

from explorer import theme
from explorer.widgets import layouts

Tone = Literal["bad", "warn", "good", "info"]

_ICONS: Final[dict[str, str]] = {
    "bad": "circle-alert",
    "warn": "triangle-alert",
    "good": "circle-check",
    "info": "info",
}
SHORT_MS: Final = 8_000
"""How long good news stays; bad news stays until it is closed or followed by other news."""
KEY: Final = "F6"
"""Brings the keys to a message's buttons and back; by itself a message never takes them from what is typed."""

Act = tuple[str, Callable[[], object]]
"""Words and function of a button, e.g. `("Open folder", ...)`."""


class Banner(QFrame):
    """A message over the lower edge of its parent; the newest replaces the previous one."""

    WIDTH: Final = 680

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent, objectName="banner")
        self._tone: Tone = "info"
        self._details = ""
        self._acts: dict[QPushButton, Callable[[], object]] = {}
        self._came_from: QWidget | None = None
        self._panels: list[QWidget] = []
        self._icon = QLabel()
        self.message = layouts.text(role="strong", name="bannerMessage", wrap=True)
        self.next = QLabel(wordWrap=True, objectName="bannerNext")
        for label in (self.message, self.next):
            label.setTextFormat(Qt.TextFormat.PlainText)
            label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
            label.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.MinimumExpanding)
        self.action = QPushButton(objectName="bannerAction")
        self.other = QPushButton(objectName="bannerOther")
        self.copy = QPushButton("Copy details", objectName="bannerCopy", accessibleName="Copy details")
        theme.set_role(self.copy, "quiet")
        self.dismiss = QToolButton(objectName="bannerClose", accessibleName="Close this message", toolTip="Close")
        theme.keep_icon(self.dismiss, "x", 16, "text")
        self._timer = QTimer(self, singleShot=True, timeout=self.hide)
        self._lay_out()
        for button in (self.action, self.other):
            button.setToolTip(f"{KEY} moves the keyboard focus here and back")
            button.clicked.connect(lambda _=False, button=button: self._do(button))
        QShortcut(QKeySequence(KEY), self, activated=self._take_keys)
        self.copy.clicked.connect(lambda: QGuiApplication.clipboard().setText(self._details))
        self.dismiss.clicked.connect(self.hide)
        theme.theme().follow(self._draw_icon)
        parent.installEventFilter(self)
        self.hide()

    def show_message(
        self,
        message: str,
        next_step: str = "",
        *,
        tone: Tone = "bad",
        details: str = "",
        action: Act | None = None,
        other: Act | None = None,
        stays: bool = False,
    ) -> None:
        """Show a message.

        Args:
            message: The cause, a sentence.
            next_step: What the person can do.
            tone: Bad and warn stay; good and info go by themselves.
            details: What "Copy details" puts on the clipboard; empty: no such button.
            action: What can be done about it.
            other: What can be done instead.
            stays: It tells what goes on, and stays until the next message.
        """
        self._tone, self._details = tone, details
        held = self._held()
        self.message.setText(message)
        self.next.setText(next_step)
        self.next.setVisible(bool(next_step))
        self.copy.setVisible(bool(details))
        self._acts = {}
        for button, act in ((self.action, action), (self.other, other)):
            button.setVisible(act is not None)
            if act is not None:
                button.setText(act[0])
                button.setAccessibleName(act[0])
                self._acts[button] = act[1]
        if held is not None and self._held() != held:
            # Space was to do what the button said before: it must not end a run.
            (self.other if self.other in self._acts else self.dismiss).setFocus()
        self.setProperty("tone", tone)
        self.style().unpolish(self)
        self.style().polish(self)
        self._draw_icon()
        self.show()
        self.raise_()
        self._place()
        if tone in ("good", "info") and not stays:
            self._timer.start(SHORT_MS)
        else:
            self._timer.stop()

    @property
    def goes_by_itself(self) -> bool:
        """Whether the message will be hidden after a while."""
        return self._timer.isActive()

    def stand_above(self, panel: QWidget) -> None:
        """Keep off this panel while it is seen: what opens over the same edge, or the answer of a view."""
        self._panels.append(panel)
        panel.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        moved = event.type() in (QEvent.Type.Resize, QEvent.Type.Move, QEvent.Type.Show, QEvent.Type.Hide)
        if moved and self.isVisible():
            self._place()
        return super().eventFilter(watched, event)

    def amend(self, message: str, next_step: str) -> bool:
        """Update the next step of `message` if it is still shown, as in a countdown; return whether it is."""
        is_current = self.isVisible() and self.message.text() == message
        if is_current and self.next.text() != next_step:
            self.next.setText(next_step)
            self._place()
        return is_current

    @property
    def is_grave(self) -> bool:
        """Whether the message must be dismissed by the user, not by a timeout."""
        return self.isVisible() and self._tone in ("bad", "warn")

    def hideEvent(self, event: QHideEvent) -> None:
        came_from, self._came_from = self._came_from, None
        if came_from is not None and shiboken6.isValid(came_from) and self._has_keys():
            came_from.setFocus()
        super().hideEvent(event)

    def _has_keys(self) -> bool:
        widget = self.window().focusWidget()
        return widget is not None and self.isAncestorOf(widget)

    def _held(self) -> tuple[QPushButton, str] | None:
        """Return the button with keyboard focus, and its label."""
        return next(((button, button.text()) for button in self._acts if button is self.window().focusWidget()), None)

    def _take_keys(self) -> None:
        """Focus the last button, which is the safest; a second call returns the focus."""
        if self._has_keys():
            if self._came_from is not None and shiboken6.isValid(self._came_from):
                self._came_from.setFocus()
            return
        self._came_from = self.window().focusWidget()
        buttons = [button for button in (self.other, self.action) if button in self._acts]
        (buttons[0] if buttons else self.dismiss).setFocus(Qt.FocusReason.ShortcutFocusReason)

    def _do(self, button: QPushButton) -> None:
        act = self._acts.get(button)
        self.hide()
        if act is not None:
            act()

    def _draw_icon(self) -> None:
        role = "accent" if self._tone == "info" else self._tone
        self._icon.setPixmap(theme.icon(_ICONS[self._tone], 20, role).pixmap(20, 20))

    def _place(self) -> None:
        below = self.parentWidget()
        assert below is not None
        room = below.rect()
        width = max(240, min(self.WIDTH, room.width() - 2 * theme.BETWEEN))
        self.setFixedWidth(width)
        self.layout().activate()
        height = self.layout().totalHeightForWidth(width)
        rect = QRect((room.width() - width) // 2, room.height() - height - theme.BETWEEN, width, height)
        self._panels = [panel for panel in self._panels if shiboken6.isValid(panel)]
        seen = [panel for panel in self._panels if panel.isVisible()]
        corners = [(panel, below.mapFromGlobal(panel.mapToGlobal(QPoint()))) for panel in seen]
        # The lowest first: what the banner gives way to may bring it over the next one.
        for panel, corner in sorted(corners, key=lambda entry: -entry[1].y()):
            if rect.intersects(QRect(corner, panel.size())):
                rect.moveBottom(corner.y() - theme.INSIDE)
        rect.moveTop(max(0, rect.top()))
        self.setGeometry(rect)

    def _lay_out(self) -> None:
        texts = layouts.column(layouts.STRETCH, self.message, self.next, layouts.STRETCH, gap=2)
        buttons = (self.action, self.other, self.copy, self.dismiss)
        margins = (theme.BETWEEN, theme.INSIDE + 2, theme.INSIDE, theme.INSIDE + 2)
        layouts.row(self._icon, theme.SPACE, (texts, 1), *buttons, margins=margins, of=self)
