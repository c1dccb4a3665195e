"""The status bar: active runs and exports, system load, state of the model process."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QEvent, Qt, QTimer, QUrl, Signal
from PySide6.QtGui import QDesktopServices, QMouseEvent, QPaintEvent
from PySide6.QtWidgets import QLabel, QProgressBar, QStatusBar, QToolButton, QWidget

from explorer import theme
from explorer.widgets import layouts
from explorer.widgets.current_page_stack import CurrentPageStack
from explorer.widgets.progress_row import ProgressRow
from trainer.analysis.quantities import time_left

if TYPE_CHECKING:
    from trainer.store import RunRow

LOAD_MS: Final = 2_000
FOLDER_PX: Final = 180
"""Width of the name of the workspace: what a message says has the rest."""
MOST_PROGRESS_PX: Final = 360
"""Kept for a computation that says how far it is; a longer note is cut."""
SHOWN: Final = 2
"""Jobs with a bar of their own; the rest is a number."""
_MODEL_WORDS: Final = {
    "cold": ("outline", "No model loaded"),
    "warming": ("warn", "Models loading"),
    "warm": ("good", "Models ready"),
    "busy": ("accent", "Models busy"),
    "gone": ("bad", "Model process ended"),
}


class StatusBar(QStatusBar):
    """The status bar's fields."""

    jobs_clicked = Signal()  # The person wants to see the jobs.
    jobs_changed = Signal(str)  # What `jobs` says now.
    load_clicked = Signal(object)  # The person wants to know what keeps the computer busy; the widget that was clicked.
    hold_clicked = Signal()  # The person wants that nothing in the queue starts.
    look_only_clicked = Signal()  # The person wants to know why the workspace is look only.
    install_clicked = Signal()  # The person wants to install torch, or to see how far that is.
    not_opened = Signal(Path)  # No program opened this folder.

    def __init__(self, workspace: Path, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setSizeGripEnabled(False)
        self._slots = [_Job(self) for _ in range(SHOWN)]
        self._jobs = QToolButton(objectName="statusJobs", accessibleName="Show the jobs")
        self._jobs.setToolTip("Active and finished jobs (Ctrl+J)")
        self.jobs = self._jobs_beside = ""
        self._jobs.clicked.connect(self.jobs_clicked)
        self._start = QLabel(objectName="statusStart")
        self._hold = QToolButton(objectName="statusHold", accessibleName="Hold the queue")
        self._hold.setText("Hold")
        self._hold.setToolTip("No queued run starts until the queue is released")
        self._hold.clicked.connect(self.hold_clicked)
        self._load = QToolButton(objectName="statusLoad", accessibleName="Show the load of this computer")
        self._load.setToolTip("Load of all processors, and memory in use; click for GPUs, disk, and each run's share")
        self._load.clicked.connect(lambda: self.load_clicked.emit(self._load))
        self._look_only = QToolButton(objectName="statusLookOnly", accessibleName="Show why training is disabled")
        self._look_only.setText("Read-only")
        self._look_only.clicked.connect(self.look_only_clicked)
        self._install = QToolButton(objectName="statusInstall", accessibleName="Show the installation of torch")
        self._install.clicked.connect(self.install_clicked)
        self._fit_later = QTimer(self, singleShot=True, interval=0, timeout=self._fit)
        self._drawn_runs = 0
        self._progress = CurrentPageStack()
        self.writing = ProgressRow("status-writing")
        self.brief = layouts.elided()
        self._brief_timer = QTimer(self, singleShot=True, timeout=self.brief.hide)
        self._dot = _Dot(self)
        self._model = QLabel(objectName="statusModel")
        texts = (text for _role, text in _MODEL_WORDS.values())
        self._model.setMinimumWidth(max(map(self.fontMetrics().horizontalAdvance, texts)))
        self._folder = QToolButton(objectName="statusFolder", accessibleName="Open the workspace folder")
        name = self.fontMetrics().elidedText(workspace.name, Qt.TextElideMode.ElideRight, FOLDER_PX)
        self._folder.setText(f"Workspace: {name}")
        self._folder.setToolTip(str(workspace))
        self._folder.clicked.connect(lambda: self._open(workspace))
        self._lay_out()
        self.show_runs(())
        self.show_jobs(0, 0)
        self.show_look_only("")
        self.show_install("")
        self.show_start(0, 0)
        self.show_brief("", 0)
        self.show_model("cold")
        self._times: tuple[float, float] | None = None  # Of all processors, and of those the idle ones, in seconds.
        self._timer = QTimer(self, interval=LOAD_MS, timeout=self._measure)

    def watch_load(self) -> None:
        """Start showing the system load."""
        self._measure()
        self._timer.start()

    def show_runs(self, runs: Sequence[RunRow]) -> None:
        """Show the first of the active runs."""
        active = [run for run in runs if run.active and run.status != "queued"]
        for slot, run in zip(self._slots, active, strict=False):
            slot.show_run(run)
        self._drawn_runs = len(active)
        self._fit()

    def show_jobs(self, running: int, waiting: int, first: str = "") -> None:
        """Show how many jobs are running, what the first does unless that is shown already, and how many wait."""
        name = f": {first}" if first else ""
        counts = [f"{running} {'job' if running == 1 else 'jobs'}{name}" if running or not waiting else ""]
        counts += [f"{waiting} waiting" if waiting else ""]
        self.jobs = ", ".join(filter(None, counts)) if running or waiting else ""
        self.show_jobs_beside(self._jobs_beside)
        self.jobs_changed.emit(self.jobs)

    def show_jobs_beside(self, jobs: str) -> None:
        """Show these jobs of the window of one's own runs while there are none of this workspace."""
        self._jobs_beside = jobs
        self._jobs.setText(self.jobs or (f"My runs: {jobs}" if jobs else "No jobs"))

    def show_progress_of(self, slot: QWidget) -> None:
        """Show how far the computations of the open view are."""
        if self._progress.indexOf(slot) < 0:
            self._progress.addWidget(slot)
        self._progress.setCurrentWidget(slot)

    def show_brief(self, text: str, ms: int) -> None:
        """Show a short message for some milliseconds; hide it if empty."""
        self.brief.setText(text)
        # It is read whole: the name of the folder gives way.
        self.brief.setMinimumWidth(min(self.brief.sizeHint().width(), MOST_PROGRESS_PX))
        self.brief.setVisible(bool(text))
        self._brief_timer.start(ms)

    def show_start(self, runs: int, seconds: int) -> None:
        """Show how many queued runs start and when, with a button to pause them; nothing for 0 runs."""
        self._start.setText(f"{runs} {'run starts' if runs == 1 else 'runs start'} in {seconds} s")
        for widget in (self._start, self._hold):
            widget.setVisible(runs > 0)

    def show_look_only(self, why: str) -> None:
        """Show that this workspace is read-only; an empty `why` hides the note."""
        self._look_only.setVisible(bool(why))
        self._look_only.setToolTip(f"Read-only: {why}; click to see what you can do")

    def show_install(self, text: str) -> None:
        """Show that torch is missing or being installed; an empty text hides it."""
        self._install.setVisible(bool(text))
        self._install.setText(text)
        self._install.setToolTip("Training and models need torch; click to install it")

    def show_model(self, state: str) -> None:
        role, text = _MODEL_WORDS.get(state, ("outline", state))
        self._dot.show_role(role)
        self._model.setText(text)

    def event(self, event: QEvent) -> bool:
        if event.type() in (QEvent.Type.LayoutRequest, QEvent.Type.Resize):
            self._fit_later.start()
        return super().event(event)

    def _fit(self) -> None:
        """Show what fits, the most important first: an item is left out as a whole, never cut."""
        for slot in self._slots[self._drawn_runs :]:
            slot.hide()
        parts = (*self._slots[: min(1, self._drawn_runs)], self._models, self._load, self._folder)
        parts += tuple(self._slots[1 : self._drawn_runs])
        px = {part: part.minimumSizeHint().width() + theme.BETWEEN for part in parts}
        room = self.width() - self.minimumSizeHint().width() + sum(px[part] for part in parts if not part.isHidden())
        # What is computed now is read whole: its note would give way to the name of the folder.
        for progress in (self.writing, self._progress):
            whole_px = 0 if progress.isHidden() else min(progress.sizeHint().width() + theme.SPACE, MOST_PROGRESS_PX)
            room -= max(0, whole_px - progress.minimumSizeHint().width())
        for part in parts:
            room -= px[part]
            part.setVisible(room >= 0)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        child = self.childAt(event.position().toPoint())
        if any(slot is child or (child is not None and slot.isAncestorOf(child)) for slot in self._slots):
            self.jobs_clicked.emit()

    def _open(self, folder: Path) -> None:
        if not QDesktopServices.openUrl(QUrl.fromLocalFile(str(folder))):
            self.not_opened.emit(folder)

    def _measure(self) -> None:
        import psutil

        used = psutil.virtual_memory()
        in_use = (used.total - used.available) / 2**30
        self._load.setText(f"CPU {self._cpu_percent()} %   Memory {in_use:.1f} of {used.total / 2**30:.0f} GiB")

    def _cpu_percent(self) -> str:
        """Return the load since the last reading; psutil's own is shared, and a second window would always read 0."""
        import psutil

        now = psutil.cpu_times()
        guest = getattr(now, "guest", 0.0) + getattr(now, "guest_nice", 0.0)  # counted as user time as well
        total, idle = sum(now) - guest, now.idle + getattr(now, "iowait", 0.0)
        before, self._times = self._times, (total, idle)
        if before is None or total <= before[0]:
            return "–"
        return f"{100 * min(1.0, max(0.0, 1 - (idle - before[1]) / (total - before[0]))):.0f}"

    def _lay_out(self) -> None:
        parts = (self._jobs, *self._slots, self._start, self._hold, (self.writing, 1), (self._progress, 1))
        left = layouts.row(*parts, (self.brief, 2), gap=theme.BETWEEN, margins=(theme.INSIDE, 0, 0, 0))
        self.addWidget(layouts.panel(left), 1)
        self._models = layouts.panel(layouts.row(self._dot, self._model, gap=6))
        for widget in (self._look_only, self._install, self._load, self._models, self._folder):
            self.addPermanentWidget(widget)
            widget.setContentsMargins(theme.INSIDE, 0, theme.INSIDE, 0)
        self.setFixedHeight(28)
        self.setMinimumWidth(1)  # what has no room is left out, and makes no window wider


class _Job(QWidget):
    """Name, progress bar and remaining time of one run."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent, objectName="statusRun")
        self._name, self._rest = layouts.text(), layouts.text()
        self._bar = QProgressBar(textVisible=False)
        self._bar.setFixedWidth(96)
        self._bar.setRange(0, 1000)
        parts = (self._name, self._bar, self._rest)
        layouts.row(*((part, 0, Qt.AlignmentFlag.AlignVCenter) for part in parts), of=self)

    def show_run(self, run: RunRow) -> None:
        # It loads the store, and no run is read before the first paint.
        from explorer.models.runs import share_of, watch_note

        share = share_of(run)
        self._name.setText(f"Watching {run.short_name}" if run.is_watched else run.short_name)
        self._bar.setValue(round(1000 * share))
        self._bar.setAccessibleName(f"Progress of {run.short_name}")
        left = f", {time_left(run.eta_s)}" if run.eta_s is not None else ""
        # Another program may not tell how many steps it will make.
        self._bar.setVisible(bool(run.total_steps) or (run.step == 0 and not run.is_watched))
        done = f"{100 * share:.0f} %" if self._bar.isVisibleTo(self) else f"step {run.step:,}"
        note = watch_note(run)
        steps = ", ".join(filter(None, (" · ".join(filter(None, (f"{done}{left}", run.beside))), note)))
        working = run.phase if run.step == 0 and run.phase else steps
        self._rest.setText(working if run.status == "running" else run.status)


class _Dot(QWidget):
    """A small disc in the color of a state."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self._role = "outline"
        self.setFixedSize(8, 8)
        theme.theme().changed.connect(self.update)

    def show_role(self, role: str) -> None:
        self._role = role
        self.update()

    def paintEvent(self, _event: QPaintEvent) -> None:
        painter = theme.smooth_painter(self)
        theme.fill_with(painter, theme.color(self._role))
        painter.drawEllipse(self.rect())
