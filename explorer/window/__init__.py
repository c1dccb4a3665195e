"""The main window: its parts, its start and its end."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QTimer, QUrl, Signal
from PySide6.QtGui import QCloseEvent, QDragEnterEvent, QDropEvent, QGuiApplication, QPaintEvent

from explorer import intents
from explorer.event_loop.background import Background
from explorer.event_loop.exception_hooks import Hooks
from explorer.event_loop.stall_detector import StallDetector
from explorer.state.view_history import ViewHistory
from explorer.views import VIEWS, ViewEntry, places_of
from explorer.views.read_only import guarded
from explorer.window import close_dialog
from explorer.window.appearance import MOTION_KEY, THEME_KEY, Appearance
from explorer.window.dialogs import Dialogs
from explorer.window.drop_handler import DropHandler
from explorer.window.error_dialog import ErrorDialog
from explorer.window.focus_keeper import FocusKeeper
from explorer.window.intent_router import IntentRouter
from explorer.window.menus import CommandedFrame, Menus
from explorer.window.more_charts import MoreCharts
from explorer.window.navigation import INSTALL_PAGE, Navigation
from explorer.window.notifications import Notifications
from explorer.window.sample_window import SampleWindow
from explorer.window.saved_views import SavedViews
from explorer.window.services import Services, build, load_readers
from explorer.window.single_instance import listen_for_second_start
from explorer.window.undo import Undo
from explorer.window.view_builder import ViewBuilder
from explorer.window.view_commands import ViewCommands
from explorer.window.welcome import show_how_it_starts, show_plugin_failures
from explorer.window.window_state import WindowState
from trainer.config import default_paths
from trainer.distribution import training_part
from trainer.errors import UserError

if TYPE_CHECKING:
    from explorer.run_control.jobs import Jobs
    from explorer.views.selected.inspector import PairInspector
    from explorer.window.job_center import JobCenter
    from explorer.window.job_list import Job

__all__ = ["MOTION_KEY", "THEME_KEY", "Window"]


class Window(CommandedFrame):
    """Paints its frame at once; views and store are loaded after the first paint.

    Attributes:
        services: What the views work with; None until they are loaded.
        watchdog: Measures how long the event loop is busy at a stretch; tests read it.
        back: Brings the window of one's own runs to the front; None where there is none.
        opens_again: Whether another window is to be opened when this one is closed, with another zoom.
    """

    painted = Signal()  # The frame is on the screen.
    ready = Signal()  # Every view is built.

    def __init__(self, folder: Path, hooks: Hooks, *, entries: Sequence[ViewEntry] = VIEWS, safe: bool = False) -> None:
        """Build the frame; `safe` restores and saves no settings and starts nothing automatically."""
        super().__init__(folder, places_of(entries), remember=not (safe or default_paths.is_sample(folder)))
        self.hooks, self._entries, self._safe = hooks, tuple(entries), safe
        self.history = ViewHistory(self.selection, self)
        self.background = Background(self)
        self.services: Services | None = None
        self.notifications: Notifications | None = None
        self.job_center: JobCenter | None = None
        self.back: Callable[[], object] | None = None
        self.inspector: PairInspector | None = None
        self._failures_of_view: set[str] = set()
        self._was_painted = self._may_close = self.opens_again = False
        self._build_parts()
        self._restore()
        self._connect()
        hooks.caught.connect(self._show_caught)  # the hooks would hold a lambda for good
        self._focus_keeper = FocusKeeper(self)
        self.pages.blank.setFocus()  # until there is a view: else the first button of the chain has the keys
        self.watchdog = StallDetector(self)

    # -- building ----------------------------------------------------------------------------------------------

    def _build_parts(self) -> None:
        self.navigation = Navigation(self._entries, self.selection, self.rail, self.view_menu, self.pages, self)
        self.router = IntentRouter(self.navigation, self)
        self.dialogs = Dialogs(self, self.folder, self.background, self.navigation, self.router.send)
        self.drop_handler = DropHandler(self, self.folder, self.background)
        self.saved_views = SavedViews(self, self.selection, self.banner, lambda: self.pages.views)
        self.view_commands = ViewCommands(
            self.pages, lambda *page: self.help_panel.show_view(*page), self.selection, self.router.send
        )
        self.more_charts = MoreCharts(
            self, self._entries, self.pages, self.navigation, self.background, self.selection, self.settings
        )
        self.undo = Undo(self.selection.undo, self.banner)
        self._sample = SampleWindow(Window, self, self.hooks)
        self.appearance = Appearance(self.personal, self.banner, self.open_again)
        self.state = WindowState(self, self.selection, self.settings)
        self.help_button = self.rail.add("showHelp", "circle-help", "Help")
        settings_button = self.rail.add("showSettings", "sliders-horizontal", "Settings")
        self.menus = Menus(self, remember=not self._safe)
        self.help_button.clicked.connect(lambda: self.router.send(intents.ShowMethod()))
        settings_button.clicked.connect(self.show_settings)
        self.view_builder = ViewBuilder(self._entries, self.pages, self.background, self.hooks, self.navigation, self)

    def _connect(self) -> None:
        self.rail.opened.connect(self.navigation.go_to_place)
        self.view_menu.opened.connect(self.navigation.go_to)
        selection = self.selection
        changes = selection.runs_changed, selection.step_changed, selection.dataset_changed, selection.queries_changed
        for signal in (*changes, selection.facts_changed, selection.view_changed):  # before the views hear of it
            signal.connect(self._withdraw_failures)
        selection.view_changed.connect(self.navigation.show_view)
        self.navigation.marked.connect(lambda: self.bar.show_pickers(*self.navigation.picks))
        self.navigation.mark()
        self.bar.palette_asked.connect(self.menus.show_palette)
        self.bar.more_asked.connect(self.show_more)
        self.bar.command_asked.connect(lambda: self.router.send(intents.CopyCommand()))
        self.bar.requested.connect(self.router.send)
        for signal in (self.bar.narrowed, self.pages.stack.currentChanged):
            signal.connect(lambda *_: self.show_controls())
        self.status.jobs_clicked.connect(self.job_panel.toggle)
        self.drop_handler.pictures_arrived.connect(self.view_commands.take_pictures)
        self.drop_handler.requested.connect(self.router.send)
        self.status.not_opened.connect(
            lambda folder: self.banner.show_message(f"No program opened {folder}.", "Open it in your file manager.")
        )
        self.drop_handler.refused.connect(lambda reason: self.banner.show_message(reason, tone="warn"))
        self.drop_handler.answered.connect(self.banner.withdraw)
        self.background.failed.connect(self._show_failure)
        self.view_builder.loaded.connect(self._begin_services)
        self.view_builder.built.connect(self._listen)
        self.view_builder.first_built.connect(lambda: self.jobs.watch())
        self.view_builder.others_loaded.connect(self._add_inspector)
        self.view_builder.finished.connect(self._finish)
        self.state.follow()

    # -- starting ----------------------------------------------------------------------------------------------

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        if not self._was_painted:
            self._was_painted = True
            # After this event has run its course the picture is handed to the screen.
            QTimer.singleShot(0, self, self.begin)

    def begin(self) -> None:
        """Load what the frame does not need: it is on the screen."""
        self.painted.emit()
        show_how_it_starts(self.banner, self.hooks, self.settings, safe=self._safe)
        self.view_builder.begin()

    def _begin_services(self) -> None:
        from explorer.window.exports import Exports
        from explorer.window.job_center import JobCenter

        services = self.services = build(self.folder, self.selection, self.background, self.settings, self)
        self.view_commands.exports = Exports(
            self, services.exporter, self.settings, self.banner, self.status.writing, self.folder
        )
        self.notifications = Notifications(services, self.bar, self.status, self.banner, self, warm=not self._safe)
        self.notifications.requested.connect(self.router.send)
        self.job_center = JobCenter(
            services,
            self.job_panel,
            self.status,
            self.banner,
            self.pages,
            self.show_result,
            self,
            folder=self.folder,
            hooks=not self._safe,
        )
        self.dialogs.begin(services, self.job_center.jobs)
        self.router.begin(self.takers())
        services.client.died.connect(self.hooks.report_output)
        if not training_part.is_there():
            self._offer_torch()
        self.status.watch_load()
        listen_for_second_start(self.folder, self._on_second_start, self)
        self.saved_views.begin(services.context.workspace, self.background, services.jobs)
        guarded(services.jobs, self.menus.actions.by_name()["saveView"])
        self.view_builder.build(services.context)

    @property
    def jobs(self) -> Jobs:
        """The interface to the trainers, once the services are there."""
        assert self.services is not None
        return self.services.jobs

    def takers(self) -> dict[type, Callable[[Any], object]]:
        """Return the class of each intent that the window takes -> the function that does."""
        return {
            intents.OpenImport: self.dialogs.import_data,
            intents.ChooseModel: self.dialogs.open_model,
            intents.OpenSample: lambda _: self._sample.show(),
            intents.ShowOwnRuns: lambda _: (self.back or self.status.look_only_clicked.emit)(),
            intents.OpenVectors: self.dialogs.open_vectors,
            intents.ImportCurves: self.dialogs.import_curves,
            intents.WatchTraining: self.dialogs.watch_training,
            intents.OpenLink: self._open_link,
            intents.ExportFigure: self.view_commands.export,
            intents.CopyCommand: self.view_commands.copy_command,
            intents.ShowCharts: self.more_charts.show,
            intents.ChooseRun: lambda _: self.bar.run_a.showPopup(),
            intents.ShowControls: lambda _: self.show_more(),
            intents.ShowMethod: self.view_commands.show_method,
        }

    def _offer_torch(self) -> None:
        """Show the page that installs torch, which is missing; views can still be opened."""
        from explorer.window.training_page import TrainingOffer

        assert self.notifications is not None
        offer = TrainingOffer(INSTALL_PAGE, self.pages, self.status, self.settings, self.background, self)
        self.navigation.offer = offer
        offer.turned.connect(self.navigation.show_view)
        offer.installed.connect(self.notifications.take_torch)
        self.navigation.show_view()

    def _listen(self, name: str) -> None:
        """Take what a new view sends, and show it if it is the open one."""
        if (view := self.pages.views.get(name)) is not None:
            if self.job_center is not None:
                self.job_center.jobs.watch(name, view)
            view.failed.connect(self._show_failure_of_view)
            view.requested.connect(self.router.send)
            view.controls_changed.connect(self.show_controls)
        if name == self.navigation.view_name:
            self.navigation.show_view()

    def _show_failure_of_view(self, message: str, next_step: str) -> None:
        self._failures_of_view.add(message)
        self.banner.show_message(message, next_step)

    def _withdraw_failures(self) -> None:
        """Close what a view said of other data, other images or another view, or of what has now been written."""
        while self._failures_of_view:
            self.banner.withdraw(self._failures_of_view.pop())

    def _add_inspector(self) -> None:
        # Imported here: all that takes long of it has been, with the views.
        from explorer.views.selected.inspector import PairInspector

        assert self.services is not None
        self.inspector = PairInspector(self.services.context)
        self.inspector.failed.connect(lambda message, step: self.banner.show_message(message, step))
        self.inspector.go.connect(self.navigation.go_to)
        self.pages.set_inspector(self.inspector)

    def _finish(self) -> None:
        """Bring the views up to date: those built after the runs were read have not heard of them."""
        assert self.notifications is not None
        self.jobs.emit_again()
        self.notifications.read_facts()
        show_plugin_failures(self.banner)
        self.router.finish()
        if self.selection.run_a is not None:
            self.background.run(self, load_readers, done=lambda _: None)
        self.ready.emit()

    # -- what the person does ----------------------------------------------------------------------------------

    def _open_link(self, intent: intents.OpenLink) -> None:
        if intent.link.startswith("file:"):
            self.drop_handler.take_file(QUrl(intent.link))
            return
        self.saved_views.open(intent.link)
        self.navigation.mark()

    def _on_second_start(self, link: str) -> None:
        self.come_forward()
        if link:
            self.router.send(intents.OpenLink(link))

    def show_settings(self) -> None:
        """Open the page of settings."""
        from explorer.window.settings_sheet import SettingsDialogs

        self.settings_sheet.ask(
            self.appearance,
            SettingsDialogs(
                parallel_runs=lambda: self.router.send(intents.ChooseSlots()),
                notices=lambda: self.job_center.choose_notices() if self.job_center is not None else None,
                keys=self.menus.change_keys,
                shortcuts=self.menus.show_keys,
            ),
        )

    def start_demo(self) -> None:
        """Queue the demo runs and show them."""
        from explorer.run_control import actions

        if self.services is not None:
            self.jobs.do(actions.create_demo)
            self.navigation.go_to(self._entries[0].name)

    def show_result(self, job: Job) -> None:
        """Open the view, or the import dialog, that shows the result of a job."""
        from explorer.window.job_list import IMPORT

        if job.view == IMPORT:
            self.dialogs.show_import()
        elif job.run is not None:
            self.router.send(intents.ShowRuns((job.run,)))
        else:
            self.navigation.go_to(job.view)

    # -- events --------------------------------------------------------------------------------------------------

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        self.drop_handler.greet(event, self.view_commands.drop_words())

    def dropEvent(self, event: QDropEvent) -> None:
        """Handle a drop that arrives before the overlay is shown."""
        self.drop_handler.overlay.dropEvent(event)

    @cached_property
    def _failure(self) -> ErrorDialog:
        return ErrorDialog(self.hooks, self)

    def _show_caught(self, summary: str, details: str) -> None:
        self._failure.show_message(summary, details)

    def _show_failure(self, error: Exception) -> None:
        if isinstance(error, UserError):
            self.banner.show_message(str(error))
        else:
            self.hooks.report(error)

    # -- the state, and the end ----------------------------------------------------------------------------------

    def _restore(self) -> None:
        self.state.restore()
        self.history.forget()
        self.navigation.mark()

    def forget(self) -> None:
        """Reset size, view and selection as if this workspace had never been opened."""
        backup = self.settings.forget()
        self._restore()
        text = f"The previous settings are kept as {backup.name}." if backup else "There were no saved settings."
        self.painted.connect(lambda: self.banner.show_message("The window uses default settings.", text, tone="info"))

    def open_again(self) -> None:
        """Close, and have another window opened."""
        self.opens_again = True
        self.close()

    def close(self) -> bool:
        """Close without asking; trainers continue. Users close through `leave`."""
        self._may_close = True
        return super().close()

    def leave(self) -> None:
        """Close, after asking what to do with runs that train or wait, and with work that would be lost."""
        if self.services is None:
            self.close()
        else:
            unfinished = () if self.job_center is None else self.job_center.jobs.unfinished
            close_dialog.ask(self, self.jobs, self.settings, self.close, unfinished)

    def closeEvent(self, event: QCloseEvent) -> None:
        """Save the state and close; the window's close button asks first, the end of the session does not."""
        session_ends = bool(getattr(QGuiApplication.instance(), "isSavingSession", lambda: False)())
        if not self._may_close and not session_ends and self.services is not None:
            event.ignore()
            QTimer.singleShot(0, self, self.leave)
            return
        self._sample.close()
        self.watchdog.close()
        self.state.close()
        if self.navigation.offer is not None:
            self.navigation.offer.close()
        if self.services is not None:
            self.services.close()
        self.background.close()
        if self.services is not None:
            self.services.context.workspace.close()  # after the threads that read it
        super().closeEvent(event)
