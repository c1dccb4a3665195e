"""The panel of jobs above the status bar: progress, expected end, cancel buttons, and results."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QEvent, QObject, Qt, QTimer, Signal
from PySide6.QtGui import QEnterEvent, QHideEvent, QKeyEvent, QShowEvent
from PySide6.QtWidgets import QFrame, QLabel, QProgressBar, QPushButton, QToolButton, QWidget

from explorer import theme
from explorer.widgets import layouts
from explorer.widgets.progress_row import show_share
from explorer.widgets.refusal import set_refusal
from trainer.analysis.quantities import duration, estimate, time_left

if TYPE_CHECKING:  # the questions that a job names import numpy, which no first paint waits for
    from explorer.window.job_list import Job, JobList, State

WIDTH: Final = 620
EVERY_MS: Final = 250
BAR_PX: Final = 112
LEFT_PX: Final = 148
BUTTON_PX: Final = 104
MOST_SHOWN: Final = 60
NOTHING: Final = "No jobs of this workspace. Trainings, imports, evaluations and exports appear here while they run."
_STATE_WORDS: Final[dict[State, str]] = {
    "waiting": "Waiting",
    "running": "Starting…",
    "finished": "Finished",
    "cancelled": "Cancelled",
}
"""What is said of a job that says nothing itself."""
_ICONS: Final[dict[State, tuple[str, str]]] = {
    "waiting": ("clock", "secondary"),
    "running": ("loader", "accent"),
    "finished": ("circle-check", "good"),
    "failed": ("circle-x", "bad"),
    "cancelled": ("circle-stop", "secondary"),
}


class JobPanel(QFrame):
    """A panel over the lower left corner of its parent. Esc closes it; rows do not move while it is open."""

    show_asked = Signal(object)  # What came of a `Job` is to be shown by its view.
    hooks_asked = Signal()  # The person wants to choose what happens when a job ends.

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent, objectName="jobPanel")
        theme.set_role(self, "raised")
        self._room = parent
        self._jobs: JobList | None = None
        self.rows: dict[int, JobRow] = {}
        self._came_from: QWidget | None = None
        self._is_under_pointer = False
        self._nothing = layouts.text(NOTHING, "secondary", name="jobPanelEmpty", wrap=True)
        self._more = layouts.text(role="small", name="jobPanelMore")
        self.hooks = QPushButton("Notifications…", objectName="jobPanelHooks")
        self.clear = QPushButton("Clear ended", objectName="jobPanelClear")
        self.dismiss = QToolButton(objectName="jobPanelClose", accessibleName="Close the jobs", toolTip="Close (Esc)")
        theme.keep_icon(self.dismiss, "x", 16, "text")
        for button in (self.hooks, self.clear):
            theme.set_role(button, "quiet")
        self._lay_out()
        self._clock = QTimer(self, interval=EVERY_MS, timeout=self._refresh)
        self.hooks.clicked.connect(self.hooks_asked)
        self.dismiss.clicked.connect(self.hide)
        parent.installEventFilter(self)
        self.hide()

    def show_jobs(self, jobs: JobList) -> None:
        """Show these jobs from now on."""
        self._jobs = jobs
        jobs.changed.connect(self._list)
        self.clear.clicked.connect(jobs.clear)

    def toggle(self) -> None:
        """Open or close the panel."""
        self.setVisible(self.isHidden())

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._came_from = self.window().focusWidget()
        self._is_under_pointer = False
        for row in list(self.rows.values()):
            self._drop(row)
        self._list()
        self._clock.start()
        self.raise_()
        self.dismiss.setFocus(Qt.FocusReason.PopupFocusReason)

    def hideEvent(self, event: QHideEvent) -> None:
        self._clock.stop()
        had_keys = self.isAncestorOf(self.window().focusWidget() or self.window())
        if had_keys and self._came_from is not None:
            self._came_from.setFocus()
        self._came_from = None
        super().hideEvent(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Escape:
            self.hide()
        else:
            super().keyPressEvent(event)

    def event(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.ShortcutOverride and getattr(event, "key", int)() == Qt.Key.Key_Escape:
            # Else the window would clear the selection instead.
            event.accept()
            return True
        return super().event(event)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.Resize and self.isVisible():
            self._place()
        return super().eventFilter(watched, event)

    def _list(self) -> None:
        """Append new jobs and remove cleared ones without moving others."""
        if self._jobs is None or self.isHidden():
            return
        active, past, before = self._jobs.active, self._jobs.past, len(self.rows)
        listed = {job.number: job for job in [*active, *past]}
        for number, row in list(self.rows.items()):
            if number not in listed:
                self._drop(row)
        for job in listed.values():
            if job.number not in self.rows and len(self.rows) < MOST_SHOWN:
                row = self.rows[job.number] = JobRow(job, self.show_asked.emit)
                self._column.insertWidget(len(self.rows) - 1, row)
        hidden = len(listed) - len(self.rows)
        self._more.setText(f"and {hidden:,} more, in Runs")
        self._more.setVisible(hidden > 0)
        self._nothing.setVisible(not listed)
        self._scroll.setVisible(bool(listed))
        set_refusal(self.clear, "" if past else "No job has ended yet.")
        self._refresh()
        if not self._is_under_pointer or len(self.rows) < before:
            self._place()

    def enterEvent(self, event: QEnterEvent) -> None:
        super().enterEvent(event)
        self._is_under_pointer = True

    def leaveEvent(self, event: QEvent) -> None:
        """Grow for the jobs that began while the pointer was over the panel: it grows upward, and rows go with it."""
        super().leaveEvent(event)
        self._is_under_pointer = False
        self._place()

    def _refresh(self) -> None:
        for row in self.rows.values():
            row.refresh()

    def _drop(self, row: JobRow) -> None:
        del self.rows[row.job.number]
        self._column.removeWidget(row)
        row.hide()
        row.deleteLater()

    def _place(self) -> None:
        room = self._room.rect()
        width = min(WIDTH, room.width() - 2 * theme.BETWEEN)
        self.setFixedWidth(width)
        rows = sum(row.sizeHint().height() + theme.SPACE for row in self.rows.values())
        self._scroll.setFixedHeight(min(rows + theme.SPACE, max(120, room.height() // 2)))
        self._whole.activate()
        height = self.sizeHint().height()
        self.setGeometry(theme.INSIDE, room.height() - height - theme.INSIDE, width, height)

    def _lay_out(self) -> None:
        title = layouts.text("Jobs", "title")
        head = layouts.row((title, 1), self.hooks, self.clear, self.dismiss, gap=theme.SPACE)
        self._column = layouts.column(layouts.STRETCH, gap=theme.SPACE, margins=(0, 0, theme.BETWEEN, 0))
        self._scroll = layouts.scroll(layouts.panel(self._column))
        margins = (theme.BETWEEN, theme.INSIDE, theme.INSIDE, theme.BETWEEN)
        self._whole = layouts.column(head, self._nothing, self._scroll, self._more, margins=margins, of=self)


class JobRow(QWidget):
    """One job: state, kind and title, activity, progress, and one button."""

    def __init__(self, job: Job, show: Callable[[Job], object]) -> None:
        super().__init__(objectName=f"job-{job.number}")
        self.job, self._show = job, show
        self._state = ""
        self._icon = QLabel()
        self.title, self.note = layouts.elided(role="strong"), layouts.elided(role="small")
        self.title.is_run_name = True
        self.bar = QProgressBar(textVisible=False)
        self.bar.setRange(0, 1000)
        self.bar.setFixedWidth(BAR_PX)
        self.left = layouts.text(role="small", align=Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        self.left.setFixedWidth(LEFT_PX)
        self.button = QPushButton(objectName=f"job-{job.number}-button", clicked=self._act)
        self.button.setFixedWidth(BUTTON_PX)
        texts = layouts.column(self.title, self.note, gap=0)
        aside = [(widget, 0, Qt.AlignmentFlag.AlignVCenter) for widget in (self.bar, self.left, self.button)]
        layouts.row(self._icon, (texts, 1), *aside, margins=(0, theme.SPACE, 0, theme.SPACE), of=self)
        theme.theme().follow(self._draw_icon)
        self.refresh()

    def refresh(self) -> None:
        """Update the row to the job's state."""
        job = self.job
        self.title.setText(f"{job.kind}: {job.title}")
        self.note.setText(job.note or _STATE_WORDS.get(job.state, ""))
        show_share(self.bar, job.share, at_work=job.state == "running")
        self.bar.setAccessibleName(f"Progress of {job.title}")
        # Why it failed needs the room.
        self.bar.setVisible(job.active)
        self.left.setText(_time_words(job))
        if self._state != job.state:
            self._state = job.state
            theme.set_role(self.note, "bad" if job.state == "failed" else "small")
            self._draw_icon()
            self._name_button()

    @property
    def _action(self) -> tuple[str, Callable[[], object]] | None:
        job = self.job
        if job.active:
            return ("Cancel", job.cancel) if job.cancel is not None else None
        if job.show is not None and job.state == "finished":
            return job.show
        return ("Show", lambda: self._show(job)) if job.view else None

    def _name_button(self) -> None:
        action = self._action
        policy = self.button.sizePolicy()
        policy.setRetainSizeWhenHidden(True)
        self.button.setSizePolicy(policy)
        self.button.setVisible(action is not None)
        if action is not None:
            self.button.setText(action[0])
            self.button.setAccessibleName(f"{action[0]}: {self.job.kind}, {self.job.title}")

    def _act(self) -> None:
        if (action := self._action) is not None:
            action[1]()

    def _draw_icon(self) -> None:
        name, role = _ICONS[self.job.state]
        self._icon.setPixmap(theme.icon(name, 16, role).pixmap(16, 16))
        self._icon.setToolTip(self.job.state.capitalize())


def _time_words(job: Job) -> str:
    if not job.active:
        return f"took {duration(job.took_s)}"
    expected = job.expected_s
    if expected is None:
        return ""
    if job.state == "waiting":
        return f"starts in {estimate(expected)}"
    return time_left(expected)
