"""Jobs in the window: the count in the status bar, the panel, and messages when one ends."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QObject
from PySide6.QtWidgets import QApplication

from explorer.models.quantities import duration
from explorer.widgets.banner import SHORT_MS
from explorer.window.desktop_notifications import DesktopNotifications
from explorer.window.job_list import IMPORT, Job, JobList

if TYPE_CHECKING:
    from collections.abc import Callable

    from PySide6.QtWidgets import QWidget

    from explorer.widgets.banner import Banner
    from explorer.window.job_panel import JobPanel
    from explorer.window.pages import Pages
    from explorer.window.services import Services
    from explorer.window.status_bar import StatusBar


LEAST_S: Final = 60.0
"""A chart, a picture or a projection that is ready sooner is not worth a message."""
_ALWAYS: Final = ("Training", "Watch", "Import", "Evaluation", "Export", "Bundle")


class JobCenter(QObject):
    """Listens to the list of jobs.

    Attributes:
        jobs: What is under way, and what has ended.
    """

    def __init__(
        self, services: Services, panel: JobPanel, status: StatusBar, banner: Banner, pages: Pages,
        show: Callable[[Job], object], window: QWidget,
    ) -> None:  # fmt: skip
        """Connect the list; `show` shows a job's result."""
        super().__init__(window)
        self._panel, self._status = panel, status
        self._banner, self._pages, self._show_result = banner, pages, show
        self.jobs = JobList(services.jobs, services.client, services.exporter, self)
        self._desktop = DesktopNotifications(window, services.context.settings)
        panel.show_jobs(self.jobs)
        panel.show_asked.connect(self._show)
        self.jobs.changed.connect(self._count)
        self.jobs.ended.connect(self._notify)
        self._count()

    def _count(self) -> None:
        active = self.jobs.active
        waiting = sum(job.state == "waiting" for job in active)
        job = active[0] if active else None
        # A training is named by its bar.
        first = "" if job is None or job.run is not None else job.title if job.kind == "Chart" else job.kind
        self._status.show_jobs(len(active) - waiting, waiting, first)

    def _show(self, job: Job) -> None:
        self._panel.hide()
        self._show_result(job)

    def _notify(self, job: Job) -> None:
        """Notify the desktop, and in the window unless the job's view is open or another message appears.

        The status bar tells what succeeded in less than a minute: its view shows the result.
        """
        if job.state == "cancelled":
            return
        title, text = ended_words(job)
        if job.kind in _ALWAYS or job.took_s >= LEAST_S:
            self._desktop.show_message(title, text, warns=job.state == "failed")
        elsewhere = job.view and self._pages.open_view is not self._pages.views.get(job.view)
        tells_itself = job.kind in ("Training", "Watch", "Export", "Bundle", "Chart")
        if tells_itself or not elsewhere or QApplication.activeWindow() is None:
            return
        if job.view == IMPORT and QApplication.activeModalWidget() is not None:
            return  # the sheet itself shows it
        if job.state == "finished" and job.took_s < LEAST_S and job.view != IMPORT:
            self._status.show_brief(f"{title}.", SHORT_MS)
            return
        show = ("Show", lambda: self._show(job))
        self._banner.show_message(title, text, tone="bad" if job.state == "failed" else "good", action=show)


def ended_words(job: Job) -> tuple[str, str]:
    """Return the outcome of a job, and how long it took or why it failed."""
    if job.state == "failed":
        return f"{job.kind} failed: {job.title}", job.note
    return f"{job.kind} finished: {job.title}", f"It took {duration(job.took_s)}."
