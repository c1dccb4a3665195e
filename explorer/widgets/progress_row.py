"""The progress of work that takes longer than a second, with a cancel button."""

from __future__ import annotations

import time
from functools import cached_property
from typing import Any, Final

import shiboken6
from PySide6.QtCore import QSize, Qt, QTimer, Signal
from PySide6.QtWidgets import QProgressBar, QPushButton, QWidget

from explorer import theme
from explorer.widgets import layouts
from explorer.widgets.elided_label import ElidedLabel
from trainer.analysis.quantities import time_left

POLL_MS: Final = 120
NOTE_PX: Final = 96
"""Kept for the note where two rows are in one status bar."""
MOST_PX: Final = 640
"""Of the whole row: it takes what room there is, but Cancel stays near what it cancels."""
PAGE_PX: Final = 440
"""Of the bar and the lines of a page."""
LEAST_DONE: Final = 0.05
"""Of what was left when progress first moved; before that, no pace can be told."""
SHOWN_AFTER_S: Final = 0.5
"""What is done sooner than that needs no bar, and would only flicker."""


def show_share(bar: QProgressBar, share: float, *, at_work: bool = True) -> None:
    """Show this share of 1,000 parts, or motion while something is at work and nothing is known of its share."""
    bar.setRange(0, 0 if at_work and share <= 0 and theme.theme().moves else 1000)
    bar.setValue(round(1000 * share))


class TimeLeft:
    """Estimates how long work takes still, from the pace since its progress first moved: starting is no progress."""

    def __init__(self) -> None:
        self._first: tuple[float, float] | None = None

    def estimate(self, share: float) -> float | None:
        """Return the seconds left now that this share is done; None while that cannot be told."""
        now = time.monotonic()
        if share <= 0:
            return None
        if self._first is None or share < self._first[1]:
            self._first = (now, share)
        began, before = self._first
        done = share - before
        if done <= 0 or done < LEAST_DONE * (1 - before):
            return None
        return (now - began) * (1 - share) / done


class Cancelled(Exception):
    """The work was canceled by the user or is no longer needed."""


class Ticket:
    """A progress receiver for functions on background threads; plain data, so that a thread may hold it.

    Attributes:
        cancelled: Nobody waits for it any more, or it has ended.
        answered: It has ended by itself, with a result or with the reason for none.
        part: The newest part of the result that nobody has taken; None for none.
    """

    def __init__(self) -> None:
        self.share, self.note, self.cancelled, self.answered = 0.0, "", False, False
        self.part: Any = None

    def __call__(self, share: float, note: str) -> None:
        """Record the progress, or raise `Cancelled`.

        Raises:
            Cancelled: Nobody waits for it any more.
        """
        if self.cancelled:
            raise Cancelled
        self.share, self.note = share, note


class JobSlot(QWidget):
    """Shows the progress of a view's computations: in the window's status bar, or below a view alone."""

    began = Signal(object)  # A `ProgressRow` of the view has started.

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent, objectName="jobSlot")
        self._row = layouts.row((layouts.STRETCH, 1), gap=None, of=self)
        self._rows: list[ProgressRow] = []

    def take(self, row: ProgressRow) -> None:
        """Show this row in front of earlier ones."""
        self._rows = [other for other in self._rows if shiboken6.isValid(other) and other is not row and other.busy]
        for other in self._rows:
            other.hide()
        self._rows.append(row)
        self._row.addWidget(row, 1_000)
        self.began.emit(row)

    @property
    def note(self) -> str:
        """What the row in front does just now; empty if none is busy or none can tell."""
        busy = [row for row in self._rows if shiboken6.isValid(row) and row.ticket is not None]
        return busy[-1].note.text() if busy else ""

    def is_front(self, row: ProgressRow) -> bool:
        busy = [other for other in self._rows if shiboken6.isValid(other) and other.busy]
        return not busy or busy[-1] is row


class ProgressRow(QWidget):
    """A thin bar with a note and Cancel, visible only during slow work.

    When it starts inside a view it moves into the view's `job_slot`: progress and Cancel have one place.

    Attributes:
        asks: Whether it shows a question to a process, which the list of jobs knows of the process's client.
    """

    cancelled = Signal()  # The person has ended it.
    moved = Signal(float, str)  # The share that is done, and what the row says of it.
    grew = Signal(object)  # A part of the result is there: `Ticket.part`.

    def __init__(self, name: str, parent: QWidget | None = None, *, asks: bool = False) -> None:
        super().__init__(parent, objectName=name)
        self.asks = asks
        self.ticket: Ticket | None = None
        self._slot: JobSlot | None = None
        self._since, self._left = 0.0, TimeLeft()
        self._timer = QTimer(self, interval=POLL_MS, timeout=self._look)
        self.setMaximumWidth(MOST_PX)
        self.hide()

    # Made when work first starts: there are many rows, of which few ever do.

    @cached_property
    def note(self) -> ElidedLabel:
        """What is being done."""
        note = ElidedLabel(parent=self)
        note.setMinimumWidth(NOTE_PX)
        theme.set_role(note, "small")
        return note

    @cached_property
    def bar(self) -> QProgressBar:
        bar = QProgressBar(self, accessibleName="Progress", textVisible=False)
        bar.setRange(0, 1000)
        bar.setFixedWidth(80)
        return bar

    @cached_property
    def button(self) -> QPushButton:
        """Cancels the work."""
        name = f"{self.objectName()}-cancel"
        button = QPushButton("Cancel", self, objectName=name, accessibleName="Cancel this computation")
        theme.set_role(button, "quiet")
        button.clicked.connect(self.cancel)
        return button

    @property
    def busy(self) -> bool:
        """Whether work is in progress."""
        return self.ticket is not None

    def sizeHint(self) -> QSize:
        """Return room for the whole note, which gives way where there is less."""
        return super().sizeHint() + QSize(max(0, self.note.sizeHint().width() - self.note.minimumWidth()), 0)

    def start(self, note: str = "") -> Ticket:
        """End earlier work and return the ticket of the new one, which says `note` until it tells more."""
        if self.ticket is not None:
            self.ticket.cancelled = True
        self.ticket, self._since, self._left = Ticket(), time.monotonic(), TimeLeft()
        self.ticket.note = note
        if self.layout() is None:
            layouts.row((self.bar, 0, Qt.AlignmentFlag.AlignVCenter), (self.note, 1), self.button, of=self)
        self._find_slot()
        self._timer.start()
        return self.ticket

    def show_progress(self, share: float | None, note: str) -> None:
        """Show the progress of a request to a process, starting the display if it is idle."""
        ticket = self.ticket or self.start()
        ticket.share, ticket.note = share or 0.0, note

    def end(self) -> None:
        """End the work, finished or not."""
        if self.ticket is not None:
            self.ticket.answered = True
        self._stop()

    def cancel(self) -> None:
        """Cancel the work for the user."""
        if self.ticket is not None:
            self._stop()
            self.cancelled.emit()

    def _stop(self) -> None:
        if self.ticket is not None:
            self.ticket.cancelled = True
        self.ticket = None
        self._timer.stop()
        self.hide()

    def _look(self) -> None:
        if self.ticket is None:
            return
        part, self.ticket.part = self.ticket.part, None
        if part is not None:
            self.grew.emit(part)
        show_share(self.bar, self.ticket.share)
        spent = time.monotonic() - self._since
        left = self._left.estimate(self.ticket.share) or 0.0
        text = f"{self.ticket.note}…" if self.ticket.note else "working…"
        self.note.setText(f"{text} {time_left(left)}" if left > 10 else text)
        self.moved.emit(self.ticket.share, self.note.text())
        in_front = self._slot is None or self._slot.is_front(self)
        self.setVisible(spent > SHOWN_AFTER_S and in_front)

    def _find_slot(self) -> None:
        above: QWidget | None = self.parentWidget()
        while self._slot is None and above is not None:
            self._slot = getattr(above, "job_slot", None)
            above = above.parentWidget()
        if self._slot is not None:
            self._slot.take(self)


class ProgressPage(QWidget):
    """What is seen in place of a result that takes minutes: what comes, and the progress of its row, with Cancel."""

    def __init__(self, row: ProgressRow, title: str, text: str) -> None:
        super().__init__(objectName="progressPage")
        self.bar = QProgressBar(accessibleName="Progress", textVisible=False, maximum=1000)
        self.note = layouts.text(role="secondary", name="progressNote")
        self.button = QPushButton("Cancel", objectName="progressCancel", accessibleName="Cancel this computation")
        text_label, title_label = layouts.text(text, "secondary", wrap=True), layouts.text(title, "title")
        for part in (text_label, self.bar):
            part.setFixedWidth(PAGE_PX)
        for label in (title_label, text_label, self.note):
            label.setAlignment(Qt.AlignmentFlag.AlignCenter)
        text_label.setMinimumHeight(text_label.heightForWidth(PAGE_PX))
        parts = title_label, text_label, theme.SPACE, self.bar, self.note
        buttons = layouts.row(layouts.STRETCH, self.button, layouts.STRETCH)
        lines = layouts.column((layouts.STRETCH, 2), *parts, buttons, (layouts.STRETCH, 3))
        layouts.row(layouts.STRETCH, lines, layouts.STRETCH, of=self)
        self.button.clicked.connect(row.cancel)
        row.moved.connect(self._show)

    def _show(self, share: float, note: str) -> None:
        show_share(self.bar, share)
        self.note.setText(note)
