"""A banner that reports an error with its cause and next step, or the completion of something."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Literal

import shiboken6
from msgspec import Struct
from PySide6.QtCore import Qt, QTimer
from PySide6.QtGui import QGuiApplication, QHideEvent, QKeySequence, QMouseEvent, QResizeEvent, QShortcut
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
from explorer.widgets.elided_label import ElidedLabel, heading

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
LINE_PX: Final = 30
"""Of the strip, without its edge."""
MOST: Final = 5
"""Open failures that the strip counts; the oldest makes room for the newest."""
BRIEF: Final = 96
"""Letters of a message that one line holds, with its next step."""
KEY: Final = "F6"
"""Brings the keys to a message's buttons and back; by itself a message never takes them from what is typed."""

Act = tuple[str, Callable[[], object]]
"""Words and function of a button, e.g. `("Open folder", ...)`."""


class _Notice(Struct):
    """A message that is open."""

    message: str
    next_step: str
    tone: Tone
    details: str
    acts: tuple[Act | None, Act | None]
    ms: int
    is_brief: bool  # The status bar shows it.

    @property
    def passes(self) -> bool:
        """Whether it closes by itself."""
        return self.tone in ("good", "info")


class Banner(QFrame):
    """The newest message in one line, and a count of the failures that are open; brief good news leaves these.

    It is a strip below the page, which gives it room at its lower end: it hides nothing, and no control moves from
    under the pointer but at the foot. What the line has no room for is in its tool tip and behind *More*. A click
    dismisses good news. Screen readers hear the text.
    """

    def __init__(self, parent: QWidget | None = None, show_brief: Callable[[str, int], object] | None = None) -> None:
        """Create a banner; `show_brief` shows a short message without buttons in its place for some milliseconds."""
        super().__init__(parent, objectName="banner")
        self._show_brief = show_brief
        self._notices: list[_Notice] = []  # The last one is shown.
        self._acts: dict[QPushButton, Callable[[], object]] = {}
        self._came_from: QWidget | None = None
        self._icon = QLabel()
        self.message, self.next = heading(), ElidedLabel()
        self.whole = layouts.text(name="bannerWhole", wrap=True)
        # What to do stands at the end: the middle is cut.
        self.next.mode = Qt.TextElideMode.ElideMiddle
        self.more = QToolButton(text="More", checkable=True, objectName="bannerMore", toolTip="Show the whole message")
        self.more.setAccessibleName("More of this message")
        self.count = QToolButton(objectName="bannerCount", toolTip="Show the next message")
        self.count.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        self.count.setLayoutDirection(Qt.LayoutDirection.RightToLeft)  # the arrow is behind the words
        theme.keep_icon(self.count, "chevron-right", 16, "text")
        self._index = 0  # Of the message shown among those that can be gone through.
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
        self.more.toggled.connect(self._unfold)
        self.count.clicked.connect(self._show_next)
        self.copy.clicked.connect(lambda: QGuiApplication.clipboard().setText(self._notices[-1].details))
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
        replaces: str = "",
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
            replaces: An open message that this one follows.
        """
        passes, line = tone in ("good", "info"), f"{message} {next_step}".strip()
        announce(self, line)
        if tone == "warn" and self._is_on_page(next_step):
            return
        brief = passes and len(line) <= BRIEF and not (details or action or other)
        if brief and self.is_grave and self._show_brief is not None:
            self._show_brief(line, SHORT_MS)
            return
        others = [each for each in self._notices if not each.passes and each.message not in (message, replaces)]
        is_brief = brief and self._show_brief is not None
        newest = _Notice(message, next_step, tone, details, (action, other), ms, is_brief)
        self._notices, self._index = [*others[1 - MOST :], newest], 0
        self._show_newest()
        if self._show_brief is not None:
            self._show_brief(line if brief else "", SHORT_MS)

    def _show_newest(self) -> None:
        notice, held = self._notices[-1], self._held()
        self.setAccessibleName(f"{notice.message} {notice.next_step}".strip())
        self._write(notice)
        flags = Qt.TextInteractionFlag
        for label in (self.message, self.next, self.whole):
            label.setTextInteractionFlags(flags.NoTextInteraction if notice.passes else flags.TextSelectableByMouse)
        self.copy.setVisible(bool(notice.details))
        count = f"{self._index + 1} of {len(self._notices)}"
        self.count.setText(count)
        self.count.setAccessibleName(f"Message {count}, show the next")
        self.count.setVisible(len(self._notices) > 1)
        self.more.setChecked(False)
        self._acts = {}
        for button, act in zip((self.action, self.other), notice.acts, strict=True):
            button.setVisible(act is not None)
            if act is not None:
                button.setText(act[0])
                button.setAccessibleName(act[0])
                self._acts[button] = act[1]
        if held is not None and self._held() != held:
            # Space was to do what the button said before: it must not end a run.
            (self.other if self.other in self._acts else self.dismiss).setFocus()
        self.setProperty("tone", notice.tone)
        self.style().unpolish(self)
        self.style().polish(self)
        self._draw_icon()
        # A few words need nothing that has to be closed.
        self.setVisible(not notice.is_brief)
        self._fit()
        if notice.passes:
            self._timer.start(notice.ms)
        else:
            self._timer.stop()

    def _write(self, notice: _Notice) -> None:
        self.message.setText(notice.message)
        self.next.setText(notice.next_step)
        self.whole.setText(f"{notice.message} {notice.next_step}".strip())

    def hide(self) -> None:
        """Close the message; the failure before it, if one is open, shows again."""
        self._notices, self._index = self._notices[:-1], 0
        if self._notices:
            self._show_newest()
        else:
            super().hide()

    def _show_next(self) -> None:
        self._notices = [self._notices[-1], *self._notices[:-1]]
        self._index = (self._index + 1) % len(self._notices)
        self._show_newest()
        announce(self, self.accessibleName())

    def _unfold(self, unfolded: bool) -> None:
        self.more.setText("Less" if unfolded else "More")
        self.whole.setVisible(unfolded)

    def _fit(self) -> None:
        """Offer *More* where the line has no room for all."""
        self.more.hide()
        self._line.activate()
        labels = (self.message, self.next)
        self.more.setVisible(self.more.isChecked() or any(each.elided != each.text() for each in labels))

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    def amend(self, message: str, next_step: str) -> bool:
        """Update the next step of `message` if it is still open, as in a countdown; return whether it is."""
        notice = next((each for each in self._notices if each.message == message), None)
        if notice is not None and notice.next_step != next_step:
            notice.next_step = next_step
            self._write(self._notices[-1])
            self._fit()
        return notice is not None

    def withdraw(self, message: str) -> None:
        """Close `message` if it is still open: what it told has been answered."""
        if self._notices and self._notices[-1].message == message:
            self.hide()
        elif len(others := [each for each in self._notices if each.message != message]) < len(self._notices):
            self._notices, self._index = others, 0
            self._show_newest()

    def _is_on_page(self, text: str) -> bool:
        """Return whether the open page says this already, be it behind a fold of it."""
        pages = (label for label in self.window().findChildren(QLabel) if not self.isAncestorOf(label))
        return bool(text) and any(
            text in label.text() and (page := label.parentWidget()) and page.isVisible() for label in pages
        )

    @property
    def is_grave(self) -> bool:
        """Whether the message must be dismissed by the user, not by a timeout."""
        return self.isVisible() and not self._notices[-1].passes

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
        tone = self._notices[-1].tone if self._notices else "info"
        role = "accent" if tone == "info" else tone
        icon, name = _ICONS[tone]
        self._icon.setPixmap(theme.icon(icon, 16, role).pixmap(16, 16))
        self._icon.setAccessibleName(name)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        super().mouseReleaseEvent(event)
        if not self.is_grave:
            self.hide()

    def _lay_out(self) -> None:
        self.whole.hide()
        texts = (self.message, (self.next, 1), self.more, self.count)
        acts = (self.action, self.other, self.copy, self.dismiss)
        sides = (theme.BETWEEN, 0, theme.SPACE, 0)
        self._line = layouts.row(self._icon, *texts, *acts, margins=sides)
        line = layouts.panel(self._line)
        line.setFixedHeight(LINE_PX)
        folded = layouts.row(self.whole, margins=(theme.BETWEEN + 24, 0, theme.BETWEEN, 0))
        layouts.column(line, folded, gap=0, of=self)
