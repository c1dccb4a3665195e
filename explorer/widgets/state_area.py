"""The state of a part of the window: unknown, empty, loading, partial, stale, failed, or ready.

A view, a chart and a panel each lie in a `StateArea`. What is not known yet is a skeleton. What is empty teaches, and
offers what fills it. While something is computed the old result stays, dimmed. What failed says so in words, with
*Retry* and *Copy details*; the text of an exception that nobody wrote for a person is in the details only.
"""

from __future__ import annotations

import functools
import traceback
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, Literal

from PySide6.QtCore import QElapsedTimer, QRectF, QSize, Qt, QTimer, QTimerEvent
from PySide6.QtGui import QAction, QGuiApplication, QHideEvent, QPainter, QPaintEvent, QResizeEvent, QShowEvent
from PySide6.QtWidgets import QFrame, QLabel, QPushButton, QVBoxLayout, QWidget

from explorer import theme
from explorer.widgets import layouts
from explorer.widgets.accessible import announce
from explorer.widgets.current_page_stack import CurrentPageStack
from explorer.widgets.min_size_scroll import MinSizeScroll
from explorer.widgets.progress_row import JobSlot
from explorer.widgets.refusal import refusal_of, set_refusal
from trainer.errors import NotYetError, reason_words

Kind = Literal["unknown", "empty", "loading", "partial", "stale", "failed", "ready"]
Act = tuple[str, Callable[[], object]]
"""Words and function of a button."""

TEXT_PX: Final = 440
LEAST_PX: Final = 160
TOP: Final = Qt.AlignmentFlag.AlignHCenter | Qt.AlignmentFlag.AlignTop
"""How narrow its lines may become where there is no room."""
READING: Final = "Reading the results…"
SAID_AFTER_MS: Final = 1_000
"""What is there sooner needs no words for what is waited for."""
DIMMED_AFTER_MS: Final = 120
"""What is answered sooner would only flicker; later than 150 ms, a part would look dead."""


class StatePage(QWidget):
    """A centered icon, title, text, at most one primary button and at most two others."""

    def __init__(self, parent: QWidget | None = None, *, width: int = TEXT_PX) -> None:
        """Create an empty page; `width` is the width of its lines in pixels."""
        super().__init__(parent, objectName="statePage")
        self._icon_name = "info"
        self._icon = QLabel(alignment=Qt.AlignmentFlag.AlignCenter)
        self.title = layouts.text(role="title", wrap=True, align=Qt.AlignmentFlag.AlignCenter)
        self.text = layouts.text(role="secondary", wrap=True, align=TOP)
        # It may hold a command to copy.
        self.text.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self._width = width
        self.text.setFixedWidth(width)
        self.button = QPushButton(objectName="stateButton")
        theme.set_role(self.button, "primary")
        self.other, self.third = (QPushButton(objectName=f"state{name}") for name in ("Other", "Third"))
        self._actions: list[QAction | None] = [None, None, None]
        self._clicked: tuple[int, QAction | None] = (-1, None)
        self._since_click = QElapsedTimer()
        for index, button in enumerate(self.buttons):
            button.clicked.connect(partial(self._trigger, index))
        self._lay_out()
        theme.theme().follow(self._draw_icon)

    @property
    def buttons(self) -> tuple[QPushButton, QPushButton, QPushButton]:
        return self.button, self.other, self.third

    def show_message(self, icon: str, title: str, text: str, *actions: QAction | None) -> None:
        """Show this; buttons are visible if they have actions, labeled with the actions' texts."""
        self._icon_name = icon
        self._actions = [*actions, None, None, None][:3]
        theme.set_role(self.button, "" if icon == "loader" else "primary")
        self._draw_icon()
        self._icon.setAccessibleName(f"Picture: {title}")
        self.title.setText(title)
        self.text.setText(text)
        self.text.ensurePolished()
        self._make_room()
        for button, does in zip(self.buttons, self._actions, strict=True):
            button.setVisible(does is not None)
            if does is not None:
                button.setText(does.text())
                button.setAccessibleName(does.text())
                set_refusal(button, refusal_of(does), "")

    def minimumSizeHint(self) -> QSize:
        return QSize(min(self._width, LEAST_PX), super().minimumSizeHint().height())

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._make_room()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._make_room()

    def _make_room(self) -> None:
        margins = self.layout().contentsMargins()
        room = self.width() - margins.left() - margins.right() if self.isVisible() else self._width
        width = max(min(self._width, room), min(self._width, LEAST_PX))
        self.text.setFixedWidth(width)
        # A layout asks an aligned label for its hint only, and that of wrapped words is one line too few; without a
        # layout of its own yet, it is -1.
        self.text.setMinimumHeight(max(0, self.text.heightForWidth(width)))

    def _trigger(self, index: int, _checked: bool = False) -> None:
        interval = QGuiApplication.styleHints().mouseDoubleClickInterval()
        is_double = self._since_click.isValid() and self._since_click.elapsed() < interval
        action = self._actions[index]
        button, clicked = self._clicked
        if action is None or (is_double and button == index and action is not clicked):
            return  # the second click of two is meant for what stood there before, not for "Cancel" in its place
        self._clicked = (index, action)
        self._since_click.restart()
        action.trigger()

    def _draw_icon(self) -> None:
        self._icon.setPixmap(theme.icon(self._icon_name, 40, "outline").pixmap(40, 40))

    def _lay_out(self) -> None:
        column = QVBoxLayout(self)
        column.setSpacing(theme.INSIDE)
        layouts.add(
            column,
            (layouts.STRETCH, 2),
            self._icon,
            theme.INSIDE,
            self.title,
            (self.text, 0, Qt.AlignmentFlag.AlignHCenter),
            theme.BETWEEN,
            layouts.row(layouts.STRETCH, *self.buttons, layouts.STRETCH, gap=None),
            (layouts.STRETCH, 3),
        )


class StateArea(CurrentPageStack):
    """Stacks a part of the window with the page for its state."""

    def __init__(
        self, content: QWidget, parent: QWidget | None = None, *, width: int = TEXT_PX, inset: int | Sequence[int] = 0
    ) -> None:
        """Create it in the unknown state.

        Args:
            content: What it shows once there is a result.
            parent: Of the area.
            width: Of the lines of its page, in pixels.
            inset: Pixels around the skeleton: the padding of the content. Left, top, right and bottom, or of all.
        """
        super().__init__(parent)
        self.kind: Kind = "unknown"
        self.details = ""
        self.has_result = False
        self._width, self._skeleton, self._scrolls = width, Skeleton(), isinstance(content, MinSizeScroll)
        self._skeleton.setContentsMargins(*((inset,) * 4 if isinstance(inset, int) else inset))
        self._around_page: QWidget = self._skeleton
        self._content = _Dimmable(content, self)  # its parent first: Qt restyles all that is given one
        self._soon = QTimer(self, singleShot=True, interval=DIMMED_AFTER_MS, timeout=self._show_loading)
        self.addWidget(self._skeleton)
        self.addWidget(self._content)

    @functools.cached_property
    def page(self) -> StatePage:
        """What empty and failed say; made at first use, because most areas say neither, and there are many."""
        page = StatePage(width=self._width)
        # Where the content scrolls, nothing around the area does.
        self._around_page = MinSizeScroll(page) if self._scrolls else page
        self.addWidget(self._around_page)
        return page

    @functools.cached_property
    def note(self) -> _Note:
        """What partial and stale say, below the content, which stays where it is; made at first use."""
        note = _Note()
        self._content.add_below(note)
        return note

    def unknown(self, what: str = "") -> None:
        """Show that the state is not known yet: `what` is read, `Reading the runs…`."""
        self._skeleton.what = what or READING
        self._become("unknown", self._skeleton, has_result=False)

    def empty(self, icon: str, title: str, text: str, *actions: QAction | None) -> None:
        """Show that there is nothing, and how to change that: at most a primary action and two others."""
        self.page.show_message(icon, title, text, *actions)
        self._become("empty", self.page, has_result=False)

    def empty_page(self, page: QWidget) -> None:
        """Show this page of a view's own in place of the words and buttons of `empty`."""
        if self.indexOf(page) < 0:
            self.addWidget(page)
        self._become("empty", page, has_result=False)

    def failed(
        self, what: str, why: Exception | str, *, retry: Callable[[], object] | None = None, repair: Act | None = None
    ) -> None:
        """Show that it failed; what comes by itself is waited for, without a warning.

        Args:
            what: In words, `Could not compare these snapshots`.
            why: A sentence for a person as it is; of any other exception only the details tell.
            retry: Tries it again.
            repair: What mends the cause; it becomes the primary button.
        """
        if isinstance(why, NotYetError):
            self.empty("clock", why.title, reason_words(why))
            return
        details = why if isinstance(why, str) else "".join(traceback.format_exception(why))
        self.details = f"{what}\n\n{details}"
        acts = [repair, ("Retry", retry) if retry else None, ("Copy details", self._copy)]
        self.page.show_message(
            "triangle-alert", what, reason_words(why), *(_action(self.page, act) for act in acts if act)
        )
        self._become("failed", self.page, has_result=False)

    def cancelled(self, again: Callable[[], object], what: str = "result") -> None:
        """Show that the person ended it: the previous result stays, with a button that computes it again."""
        if self.has_result:
            self.stale(f"Cancelled. The previous {what} is shown.", ("Compute", again))
        else:
            self.empty("circle-stop", "Cancelled", "Nothing has been computed.", _action(self.page, ("Compute", again)))

    def loading(self, *, keep: bool = True, what: str = "") -> None:
        """Show that a computation is running: a previous result stays, dimmed, or a skeleton appears.

        Args:
            keep: Whether the previous result answers the same question; another one's does not stay.
            what: What is waited for, `Reading the pairs…`.
        """
        self.kind, self._skeleton.what = "loading", what or READING
        self.has_result &= keep
        if not self._soon.isActive():
            self._soon.start()

    def ready(self) -> None:
        """Show that the content is complete and current."""
        self._show_result("ready", "", None)

    def partial(self, text: str, act: Act | None = None) -> None:
        """Show that the content lacks what `text` says."""
        self._show_result("partial", text, act)

    def stale(self, text: str, act: Act | None = None) -> None:
        """Show that the content is older than the request; it stays dimmed."""
        self._show_result("stale", text, act)

    def growing(self, text: str) -> None:
        """Show that the content is a part of what is being computed still."""
        self._show_result("loading", text, None)

    def _show_result(self, kind: Kind, text: str, act: Act | None) -> None:
        if text or "note" in vars(self):
            theme.set_role(self.note.words, "secondary" if kind == "loading" else "warn")
            self.note.show_message(text, act)
        self._become(kind, self._content, has_result=True)

    def _become(self, kind: Kind, page: QWidget, *, has_result: bool) -> None:
        if self.isVisible() and kind in ("empty", "failed") and page is vars(self).get("page"):
            announce(self, f"{self.page.title.text()}. {self.page.text.text()}")
        elif kind == "ready" and self.currentWidget() is self._skeleton and self._skeleton.line:
            announce(self, "Ready.")  # after a wait of which a screen reader has heard
        self._soon.stop()
        self.kind, self.has_result = kind, has_result
        self._content.dim(kind == "stale")
        self.setCurrentWidget(self._around_page if page is vars(self).get("page") else page)

    def _show_loading(self) -> None:
        self._content.dim(self.has_result)
        self.setCurrentWidget(self._content if self.has_result else self._skeleton)

    def _copy(self) -> None:
        QGuiApplication.clipboard().setText(self.details)


class Skeleton(QWidget):
    """Gray bars where a result will appear, without animation to avoid distraction; after a second what it waits for.

    Attributes:
        what: What is waited for, unless the `job_slot` above says what is done just now.
        line: What is shown of it.
    """

    def __init__(self, parent: QWidget | None = None, *, what: str = READING) -> None:
        super().__init__(parent, accessibleName="Loading", objectName="skeleton")
        self.what, self.line, self._timer = what, "", 0
        theme.theme().changed.connect(self.update)

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._timer = self._timer or self.startTimer(SAID_AFTER_MS)

    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        self.killTimer(self._timer)
        self.line, self._timer = "", 0

    def timerEvent(self, _event: QTimerEvent) -> None:
        slot, above = None, self.parentWidget()
        while slot is None and above is not None:
            slot, above = getattr(above, "job_slot", None), above.parentWidget()
        line = (slot.note if isinstance(slot, JobSlot) else "") or self.what
        if line != self.line:
            self.line = line
            self.setAccessibleDescription(line)
            self.update()

    def paintEvent(self, _event: QPaintEvent) -> None:
        painter = theme.smooth_painter(self)
        theme.fill_with(painter, theme.color("sunken"))
        inside = self.contentsRect()
        painter.translate(inside.topLeft())
        width, top = inside.width(), 0.0
        for share, height in ((0.32, 14.0), (0.0 if self.line else 0.2, 10.0)):
            painter.drawRoundedRect(QRectF(0, top, share * width, height), theme.SPACE, theme.SPACE)
            top += height + theme.INSIDE
        top += theme.INSIDE
        column = (width - theme.BETWEEN) / 2
        for left in (0.0, column + theme.BETWEEN):
            box = QRectF(left, top, column, max(0.0, inside.height() - top))
            painter.drawRoundedRect(box, theme.RADIUS, theme.RADIUS)
        theme.text_pen(painter, theme.SMALL_PX, "secondary")
        text = painter.fontMetrics().elidedText(self.line, Qt.TextElideMode.ElideRight, round(width))
        painter.drawText(QRectF(0, 14.0, width, 10.0 + 2 * theme.INSIDE), int(Qt.AlignmentFlag.AlignVCenter), text)


class _Dimmable(QWidget):
    """The content, which a veil can dim, below a note where there is one."""

    def __init__(self, content: QWidget, parent: QWidget) -> None:
        super().__init__(parent)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(theme.INSIDE)
        column.addWidget(content, 1)
        self._content, self._column = content, column
        self._veil: _Veil | None = None

    def add_below(self, note: QWidget) -> None:
        self._column.addWidget(note)

    def dim(self, on: bool) -> None:
        if self._veil is None:
            if not on:
                return
            self._veil = _Veil(self)
        self._veil.setGeometry(self._content.geometry())
        self._veil.setVisible(on)
        if on:
            self._veil.raise_()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if self._veil is not None:
            self._veil.setGeometry(self._content.geometry())


class _Veil(QWidget):
    """A translucent cover for outdated content; mouse events pass through."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent, objectName="veil")
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        theme.theme().changed.connect(self.update)
        self.hide()

    def paintEvent(self, _event: QPaintEvent) -> None:
        ground = theme.color("surface")
        ground.setAlphaF(0.55)
        QPainter(self).fillRect(self.rect(), ground)


class _Note(QFrame):
    """A line below the content that says what is missing or outdated, with a button."""

    def __init__(self) -> None:
        super().__init__(objectName="stateNote")
        self._act: Callable[[], object] | None = None
        self.words = layouts.text(role="warn", wrap=True)
        self.button = QPushButton(objectName="stateNoteButton", clicked=lambda: self._act() if self._act else None)
        layouts.row((self.words, 1), self.button, gap=theme.BETWEEN, of=self)
        self.hide()

    def show_message(self, text: str, act: Act | None) -> None:
        """Show this; an empty note takes no space."""
        self.words.setText(text)
        self.setVisible(bool(text))
        self.button.setVisible(act is not None)
        self._act = act[1] if act else None
        if act:
            self.button.setText(act[0])
            self.button.setAccessibleName(act[0])


def _action(parent: QWidget, act: Act) -> QAction:
    for old in parent.findChildren(QAction, f"state-{act[0]}"):
        old.deleteLater()
    action = QAction(act[0], parent, objectName=f"state-{act[0]}", triggered=lambda: act[1]())
    return action
