"""A banner that reports an error with its cause and next step, or the completion of something."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final, Literal

import shiboken6
from PySide6.QtCore import QEvent, QMargins, QObject, QPoint, QRect, Qt, QTimer
from PySide6.QtGui import QGuiApplication, QHideEvent, QKeySequence, QMouseEvent, QShortcut, QShowEvent
from PySide6.QtWidgets import (
    QAbstractItemView,
    QApplication,
    QFrame,
    QHeaderView,
    QLabel,
    QListView,
    QPushButton,
    QScrollArea,
    QStackedWidget,
    QToolButton,
    QWidget,
)

from explorer import theme
from explorer.widgets import layouts
from explorer.widgets.accessible import announce

Tone = Literal["bad", "warn", "good", "info"]

_ICONS: Final[dict[str, str]] = {
    "bad": "circle-alert",
    "warn": "triangle-alert",
    "good": "circle-check",
    "info": "info",
}
SHORT_MS: Final = 8_000
"""How long good news stays; bad news stays until it is closed or followed by other news."""
UNDO_MS: Final = 30_000
"""The same where it can be undone: time to decide and to reach the button."""
BRIEF: Final = 96
"""Letters of a message that one line holds, with its next step."""
PLACE_MS: Final = 100
"""After the window has painted, a message looks for its place."""
MOST_CONTROL_PX: Final = 64
"""Height of the highest control that a message avoids; of what is higher it hides as little as it can."""
STEP_PX: Final = 24
"""Between two heights at which a message may lie."""
PLOT_PX: Final = 16_000
"""Square pixels of a plot whose loss is as bad as that of a quarter as much text; less moves no message."""
KEY: Final = "F6"
"""Brings the keys to a message's buttons and back; by itself a message never takes them from what is typed."""

Act = tuple[str, Callable[[], object]]
"""Words and function of a button, e.g. `("Open folder", ...)`."""


def unbroken(text: str) -> str:
    """Return a text in which no line ends between a number and its percent sign."""
    return re.sub(r"(?<=\d) (?=%)", "\N{NO-BREAK SPACE}", text)


class Banner(QFrame):
    """A message; the newest replaces the previous one. Brief good news leaves an open failure where it is.

    It lies over the open page, at the lower right corner or where it hides less, and never over its controls. A click
    dismisses good news. Screen readers hear the text.
    """

    WIDTH: Final = 420

    def __init__(self, parent: QWidget | None = None, show_brief: Callable[[str, int], object] | None = None) -> None:
        """Create a banner; `show_brief` shows a short message without buttons in its place for some milliseconds."""
        super().__init__(parent, objectName="banner")
        self._show_brief = show_brief
        self._tone: Tone = "info"
        self._details = ""
        self._acts: dict[QPushButton, Callable[[], object]] = {}
        self._came_from: QWidget | None = None
        self._pages: QStackedWidget | None = None
        self._icon = QLabel()
        self.message = layouts.text(role="strong", name="bannerMessage", wrap=True)
        self.next = QLabel(wordWrap=True, objectName="bannerNext")
        for label in (self.message, self.next):
            label.setTextFormat(Qt.TextFormat.PlainText)
        self.action = QPushButton(objectName="bannerAction")
        self.other = QPushButton(objectName="bannerOther")
        self.copy = QPushButton("Copy details", objectName="bannerCopy", accessibleName="Copy details")
        theme.set_role(self.copy, "quiet")
        self.dismiss = QToolButton(objectName="bannerClose", accessibleName="Close this message", toolTip="Close (Esc)")
        theme.keep_icon(self.dismiss, "x", 16, "text")
        self._timer = QTimer(self, singleShot=True, timeout=self.hide)
        self._placing = QTimer(self, singleShot=True, interval=PLACE_MS, timeout=lambda: self._place(stay=True))
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
        if tone == "warn" and self._is_on_page(next_step):
            return
        announce(self, line)
        brief = passes and len(line) <= BRIEF and not (details or action or other)
        if brief and self.is_grave and self._show_brief is not None:
            self._show_brief(line, SHORT_MS)
            return
        self._tone, self._details = tone, details
        held = self._held()
        self.message.setText(unbroken(message))
        self.next.setText(unbroken(next_step))
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
        self._place()
        if passes:
            self._timer.start(ms)
        else:
            self._timer.stop()

    def lie_over(self, pages: QStackedWidget) -> None:
        """Lie over the open one of these pages, which neither moves nor changes its size for a message."""
        self._pages = pages
        pages.installEventFilter(self)
        pages.currentChanged.connect(lambda _index: self._place())

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() in (QEvent.Type.Resize, QEvent.Type.Move):
            self._place()
        elif event.type() == QEvent.Type.UpdateRequest and self.isVisible() and not self._placing.isActive():
            # Views add controls when their data are there, and say so to nobody: but these are painted.
            self._placing.start()
        return super().eventFilter(watched, event)

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self.window().installEventFilter(self)
        self._place()

    def _place(self, *, stay: bool = False) -> None:
        """Move to where it hides least; `stay` where another place would hide as much."""
        if self._pages is None or self.isHidden():
            return
        page = self._rect_of(self._pages).marginsRemoved(QMargins(*4 * (theme.INSIDE,)))
        width = min(self.WIDTH, page.width())
        self.resize(width, self.heightForWidth(width))
        parts = self._parts_of(self._pages.currentWidget() or self._pages)
        right, middle, low = page.right() + 1 - width, page.center().x() - width // 2, page.bottom() + 1 - self.height()
        rects = [
            QRect(x, y, width, self.height())
            for y in range(low, page.top(), -STEP_PX)
            for x in (right, page.left(), middle)
        ]
        if stay and self.geometry() in rects:
            rects.insert(0, self.geometry())
        self.move(min(rects, key=lambda rect: _hidden(rect, parts)).topLeft())
        self.raise_()

    def _parts_of(self, page: QWidget) -> list[tuple[QRect, int]]:
        """Return where the page has controls and heads of columns (2), texts and rows (1), and plots (0)."""
        parts = []
        for widget in page.findChildren(QWidget):
            is_control = isinstance(widget, QHeaderView) or bool(widget.focusPolicy() & Qt.FocusPolicy.TabFocus)
            is_text = isinstance(widget, QLabel) and bool(widget.text())
            if not widget.isVisible() or not (is_control or is_text) or isinstance(widget, QScrollArea):
                continue
            rect = self._rect_of(widget)
            if isinstance(widget, QLabel) and not widget.wordWrap():
                rect.setWidth(min(rect.width(), widget.sizeHint().width()))
            elif isinstance(widget, QAbstractItemView) and not isinstance(widget, QHeaderView):
                is_text, last = True, widget.visualRect(widget.model().index(widget.model().rowCount() - 1, 0))
                rect.setHeight(min(rect.height(), widget.viewport().y() + last.bottom() + 1))
                if (
                    isinstance(widget, QListView)
                    and not widget.isWrapping()
                    and widget.flow() == widget.Flow.LeftToRight
                ):
                    rect.setWidth(min(rect.width(), last.right() + 1))
            parts.append((rect, 2 if is_control and widget.height() <= MOST_CONTROL_PX else int(is_text)))
        return parts

    def _rect_of(self, widget: QWidget) -> QRect:
        """Return where a widget of the window is, in what this message lies in."""
        return QRect(widget.mapToGlobal(QPoint()) - self.mapToGlobal(QPoint()) + self.pos(), widget.size())

    def amend(self, message: str, next_step: str) -> bool:
        """Update the next step of `message` if it is still shown, as in a countdown; return whether it is."""
        is_current = self.isVisible() and self.message.text() == unbroken(message)
        if is_current and self.next.text() != unbroken(next_step):
            self.next.setText(unbroken(next_step))
            self._place()
        return is_current

    def withdraw(self, message: str) -> None:
        """Hide `message` if it is still shown: what it told has been answered."""
        if self.message.text() == unbroken(message):
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
        self.window().removeEventFilter(self)
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
        self._icon.setPixmap(theme.icon(_ICONS[self._tone], 20, role).pixmap(20, 20))

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        super().mouseReleaseEvent(event)
        if not self.is_grave:
            self.hide()

    def _lay_out(self) -> None:
        top, margins = Qt.AlignmentFlag.AlignTop, (theme.BETWEEN, *3 * (theme.INSIDE,))
        acts = layouts.row(self.action, self.other, self.copy, layouts.STRETCH)
        texts = layouts.column(self.message, self.next, acts, gap=theme.SPACE)
        layouts.row((self._icon, 0, top), (texts, 1), (self.dismiss, 0, top), margins=margins, of=self)


def _hidden(rect: QRect, parts: Sequence[tuple[QRect, int]]) -> tuple[int, int]:
    """Return how much this rectangle hides of controls, and of texts and plots: square pixels, these in large units."""
    hidden = [0, 0, 0]
    for part, kind in parts:
        covered = part.intersected(rect)
        area = covered.width() * covered.height()
        hidden[kind] += max(area, PLOT_PX // 4) if area and kind else area  # a short text says as much as a long one
    return hidden[2], (hidden[0] + 4 * hidden[1]) // PLOT_PX
