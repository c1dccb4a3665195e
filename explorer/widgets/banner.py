"""A banner that reports an error with its cause and next step, or the completion of something."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Literal

import shiboken6
from PySide6.QtCore import Qt, QTimer
from PySide6.QtGui import QGuiApplication, QHideEvent, QKeySequence, QMouseEvent, QShortcut
from PySide6.QtWidgets import (
    QApplication,
    QFrame,
    QLabel,
    QPushButton,
    QToolButton,
    QWidget,
)

from explorer import theme
from explorer.widgets import layouts
from explorer.widgets.accessible import announce

Tone = Literal["bad", "warn", "good", "info"]

_ICONS: Final[dict[str, tuple[str, str]]] = {
    "bad": ("circle-alert", "Error"),
    "warn": ("triangle-alert", "Warning"),
    "good": ("circle-check", "Done"),
    "info": ("info", "Note"),
}
"""By tone: the icon, and what screen readers call it."""
SHORT_MS: Final = 8_000
"""How long good news stays; bad news stays until it is closed or followed by other news."""
UNDO_MS: Final = 30_000
"""The same where it can be undone: time to decide and to reach the button."""
BRIEF: Final = 96
"""Letters of a message that one line holds, with its next step."""
KEY: Final = "F6"
"""Brings the keys to a message's buttons and back; by itself a message never takes them from what is typed."""

Act = tuple[str, Callable[[], object]]
"""Words and function of a button, e.g. `("Open folder", ...)`."""


class Banner(QFrame):
    """A message; the newest replaces the previous one. Brief good news leaves an open failure where it is.

    It is a strip below the page, which gives it room at its lower end: it hides nothing, and no control moves from
    under the pointer but at the foot. A click dismisses good news. Screen readers hear the text.
    """

    def __init__(self, parent: QWidget | None = None, show_brief: Callable[[str, int], object] | None = None) -> None:
        """Create a banner; `show_brief` shows a short message without buttons in its place for some milliseconds."""
        super().__init__(parent, objectName="banner")
        self._show_brief = show_brief
        self._tone: Tone = "info"
        self._details = ""
        self._acts: dict[QPushButton, Callable[[], object]] = {}
        self._came_from: QWidget | None = None
        self._icon = QLabel()
        self.message = layouts.text(role="strong", name="bannerMessage", wrap=True)
        self.next = layouts.text(name="bannerNext", wrap=True)
        self.action = QPushButton(objectName="bannerAction")
        self.other = QPushButton(objectName="bannerOther")
        self.copy = QPushButton("Copy details", objectName="bannerCopy", accessibleName="Copy details")
        theme.set_role(self.copy, "quiet")
        self.dismiss = QToolButton(objectName="bannerClose", accessibleName="Close this message", toolTip="Close (Esc)")
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
        application = QApplication.instance()
        assert isinstance(application, QApplication)
        application.focusChanged.connect(self._on_focus)
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
        ms: int = SHORT_MS,
    ) -> None:
        """Show a message.

        Args:
            message: The cause, a sentence.
            next_step: What the person can do.
            tone: Bad and warn stay; good and info go by themselves.
            details: What "Copy details" puts on the clipboard; empty: no such button.
            action: What can be done about it.
            other: What can be done instead.
            ms: How long good news stays.
        """
        passes, line = tone in ("good", "info"), f"{message} {next_step}".strip()
        announce(self, line)
        if tone == "warn" and self._is_on_page(next_step):
            return
        brief = passes and len(line) <= BRIEF and not (details or action or other)
        if brief and self.is_grave and self._show_brief is not None:
            self._show_brief(line, SHORT_MS)
            return
        self._tone, self._details = tone, details
        held = self._held()
        self.message.setText(message)
        self.next.setText(next_step)
        self.setAccessibleName(line)
        flags = Qt.TextInteractionFlag
        for label in (self.message, self.next):
            label.setTextInteractionFlags(flags.NoTextInteraction if passes else flags.TextSelectableByMouse)
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
        if self._show_brief is not None:
            self._show_brief(line if brief else "", SHORT_MS)
        # A few words need nothing that has to be closed.
        self.setVisible(not (brief and self._show_brief is not None))
        if passes:
            self._timer.start(ms)
        else:
            self._timer.stop()

    def amend(self, message: str, next_step: str) -> bool:
        """Update the next step of `message` if it is still shown, as in a countdown; return whether it is."""
        is_current = self.isVisible() and self.message.text() == message
        if is_current and self.next.text() != next_step:
            self.next.setText(next_step)
        return is_current

    def withdraw(self, message: str) -> None:
        """Hide `message` if it is still shown: what it told has been answered."""
        if self.message.text() == message:
            self.hide()

    def _is_on_page(self, text: str) -> bool:
        """Return whether the open page says this already, be it behind a fold of it."""
        pages = (label for label in self.window().findChildren(QLabel) if not self.isAncestorOf(label))
        return bool(text) and any(
            text in label.text() and (page := label.parentWidget()) and page.isVisible() for label in pages
        )

    @property
    def is_grave(self) -> bool:
        """Whether the message must be dismissed by the user, not by a timeout."""
        return self.isVisible() and self._tone in ("bad", "warn")

    def hideEvent(self, event: QHideEvent) -> None:
        came_from, self._came_from = self._came_from, None
        if came_from is not None and shiboken6.isValid(came_from) and self._has_keys():
            came_from.setFocus()
        super().hideEvent(event)

    def _on_focus(self, before: QWidget | None, now: QWidget | None) -> None:
        if before is not None and now is not None and self.isAncestorOf(now) and not self.isAncestorOf(before):
            self._came_from = before

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
        buttons = [button for button in (self.other, self.action) if button in self._acts]
        (buttons[0] if buttons else self.dismiss).setFocus(Qt.FocusReason.ShortcutFocusReason)

    def _do(self, button: QPushButton) -> None:
        act = self._acts.get(button)
        self.hide()
        if act is not None:
            act()

    def _draw_icon(self) -> None:
        role = "accent" if self._tone == "info" else self._tone
        icon, name = _ICONS[self._tone]
        self._icon.setPixmap(theme.icon(icon, 20, role).pixmap(20, 20))
        self._icon.setAccessibleName(name)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        super().mouseReleaseEvent(event)
        if not self.is_grave:
            self.hide()

    def _lay_out(self) -> None:
        texts = layouts.column(self.message, self.next, gap=2)
        acts = (self.action, self.other, self.copy, self.dismiss)
        layouts.row(self._icon, (texts, 1), *acts, margins=(theme.BETWEEN, *3 * (theme.SPACE,)), of=self)
