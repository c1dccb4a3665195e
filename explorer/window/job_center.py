"""Jobs in the window: the count in the status bar, the panel, and messages when one ends."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject
from PySide6.QtWidgets import QApplication

from explorer.widgets.banner import SHORT_MS
from explorer.window import job_hooks
from explorer.window.desktop_notifications import DesktopNotifications
from explorer.window.job_list import IMPORT, Job, JobList
from trainer.config import default_paths

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from PySide6.QtWidgets import QWidget

    from explorer.widgets.banner import Banner
    from explorer.window.job_panel import JobPanel
    from explorer.window.pages import Pages
    from explorer.window.services import Services
    from explorer.window.status_bar import StatusBar


class JobCenter(QObject):
    """Listens to the list of jobs.

    Attributes:
        jobs: What is under way, and what has ended.
        runner: What tells the outside when a job ends.
    """

    def __init__(
        self, services: Services, panel: JobPanel, status: StatusBar, banner: Banner, pages: Pages,
        show: Callable[[Job], object], window: QWidget, *, folder: Path, hooks: bool = True,
    ) -> None:  # fmt: skip
        """Connect the list; `show` shows a job's result; without `hooks` no command is run and nothing is posted."""
        super().__init__(window)
        self._window, self._panel, self._status = window, panel, status
        self._banner, self._pages, self._show_result = banner, pages, show
        self.jobs = JobList(services.jobs, services.client, services.exporter, self)
        mine = default_paths.user_folder()
        self.runner = job_hooks.JobHookRunner(DesktopNotifications(window), folder, mine, self, runs=hooks)
        panel.show_jobs(self.jobs)
        panel.show_asked.connect(self._show)
        panel.hooks_asked.connect(self.choose_notices)
        self.jobs.changed.connect(self._count)
        self.jobs.ended.connect(self._notify)
        self.runner.failed.connect(lambda reason: banner.show_message(reason, tone="warn"))
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
        """Notify outside the window, and inside it unless the job's view is open or another message appears.

        The status bar tells what succeeded in less than a minute: its view shows the result.
        """
        self.runner.job_ended(job)
        elsewhere = job.view and self._pages.open_view is not self._pages.views.get(job.view)
        tells_itself = job.kind in ("Training", "Watch", "Export", "Bundle", "Chart")
        if job.state == "cancelled" or tells_itself or not elsewhere or QApplication.activeWindow() is None:
            return
        if job.view == IMPORT and QApplication.activeModalWidget() is not None:
            return  # the sheet itself shows it
        title, text = job_hooks.ended_words(job)
        if job.state == "finished" and job.took_s < job_hooks.LEAST_S and job.view != IMPORT:
            self._status.show_brief(f"{title}.", SHORT_MS)
            return
        show = ("Show", lambda: self._show(job))
        self._banner.show_message(title, text, tone="bad" if job.state == "failed" else "good", action=show)

    def choose_notices(self) -> None:
        """Ask what happens when a job ends."""
        sheet = job_hooks.JobHooksSheet(self.runner.hooks, self._window)
        sheet.chosen.connect(self.runner.choose)
        sheet.open()
