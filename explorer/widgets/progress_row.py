"""Something that takes longer than a second: how far it is, and a way to end it."""

from __future__ import annotations

import time
from typing import Final

from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtWidgets import QHBoxLayout, QProgressBar, QPushButton, QWidget

from explorer import theme
from explorer.widgets.elided_label import ElidedLabel

POLL_MS: Final = 120
SHOWN_AFTER_S: Final = 0.5
"""What is done sooner than that needs no bar, and would only flicker."""


class Cancelled(Exception):
    """The work was ended by the person, or is not wanted any more."""


class Ticket:
    """What a function on a background thread tells its progress to; plain data, so a thread may hold it."""

    def __init__(self) -> None:
        self.share, self.note, self.cancelled = 0.0, "", False

    def __call__(self, share: float, note: str) -> None:
        """Notes how far the work is.

        Raises:
            Cancelled: Nobody waits for it any more.
        """
        if self.cancelled:
            raise Cancelled
        self.share, self.note = share, note


class Working(QWidget):
    """A thin bar with a note and Cancel, visible only while something slow is under way.

    Signals:
        cancelled: The person has ended it.
    """

    cancelled = Signal()

    def __init__(self, name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent, objectName=name)
        self._ticket: Ticket | None = None
        self._since = 0.0
        self.note = ElidedLabel()
        theme.set_role(self.note, "small")
        self.bar = QProgressBar(accessibleName="Progress", textVisible=False)
        self.bar.setRange(0, 1000)
        self.bar.setFixedWidth(120)
        self.button = QPushButton("Cancel", objectName=f"{name}-cancel", accessibleName="Cancel this computation")
        theme.set_role(self.button, "quiet")
        self._timer = QTimer(self, interval=POLL_MS)
        self._timer.timeout.connect(self._look)
        self.button.clicked.connect(self.cancel)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(theme.INSIDE)
        row.addWidget(self.bar, 0, Qt.AlignmentFlag.AlignVCenter)
        row.addWidget(self.note, 1)
        row.addWidget(self.button)
        self.hide()

    @property
    def busy(self) -> bool:
        """Whether something is under way."""
        return self._ticket is not None

    def start(self) -> Ticket:
        """Ends what was under way, and gives the ticket of what is now."""
        if self._ticket is not None:
            self._ticket.cancelled = True
        self._ticket, self._since = Ticket(), time.monotonic()
        self._timer.start()
        return self._ticket

    def end(self) -> None:
        """The answer is there, or there will be none."""
        if self._ticket is not None:
            self._ticket.cancelled = True
        self._ticket = None
        self._timer.stop()
        self.hide()

    def cancel(self) -> None:
        """Ends it for the person."""
        if self._ticket is not None:
            self.end()
            self.cancelled.emit()

    def _look(self) -> None:
        if self._ticket is None:
            return
        self.bar.setValue(round(1000 * self._ticket.share))
        spent, share = time.monotonic() - self._since, self._ticket.share
        left = spent * (1 - share) / share if share > 0.02 else 0.0
        words = f"{self._ticket.note}…" if self._ticket.note else "working…"
        self.note.setText(f"{words} {left:,.0f} s left" if left > 10 else words)
        self.setVisible(spent > SHOWN_AFTER_S)
