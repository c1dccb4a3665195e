"""The dialogs over the window that open models, vectors, curves, trainings and data; each is imported when opened."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QObject, Qt
from PySide6.QtWidgets import QWidget

from explorer import intents
from explorer.event_loop.background import Background

if TYPE_CHECKING:
    from explorer.import_sheet.sheet import ImportSheet
    from explorer.window.job_list import JobList
    from explorer.window.navigation import Navigation
    from explorer.window.open_sheet import OpenSheet
    from explorer.window.services import Services

RUNS: Final = "runs"
MAP: Final = "map"
"""The views that show what is opened."""


class Dialogs(QObject):
    """Opens dialogs over a window."""

    def __init__(
        self,
        window: QWidget,
        folder: Path,
        background: Background,
        navigation: Navigation,
        send: Callable[[intents.Intent], object],
    ) -> None:
        """Prepare; `send` passes on the intents of the dialogs."""
        super().__init__(window)
        self._window, self._folder, self._background = window, folder, background
        self._navigation, self._send = navigation, send
        self._services: Services | None = None
        self._job_list: JobList | None = None

    def begin(self, services: Services, job_list: JobList) -> None:
        """Let the dialogs start jobs, which the list shows."""
        self._services, self._job_list = services, job_list

    def open_model(self, intent: intents.ChooseModel) -> None:
        """Ask how to inspect a published model, and import it as a run."""
        from explorer.window.open_model_sheet import OpenModelSheet

        assert self._services is not None
        run_a = self._services.context.selection.run_a
        run_row = None if run_a is None else self._services.jobs.run(run_a)
        sheet = OpenModelSheet(self._folder, self._background, model=intent.model, like=run_row, parent=self._window)
        sheet.data_asked.connect(lambda path: self._send(intents.OpenImport(path)))
        self._open(sheet)

    def open_vectors(self, intent: intents.OpenVectors) -> None:
        """Ask which files of vectors to open, and what their rows are."""
        from explorer.window.open_vectors_sheet import OpenVectorsSheet

        assert self._services is not None
        selection = self._services.context.selection
        sheet = OpenVectorsSheet(self._folder, self._background, intent.paths, self._window)
        sheet.opened.connect(lambda run: selection.select_runs(run, None))
        self._open(sheet, MAP)

    def import_curves(self, intent: intents.ImportCurves) -> None:
        """Ask which curves of another program to import as runs."""
        from explorer.window.import_curves_sheet import ImportCurvesSheet

        sheet = ImportCurvesSheet(self._folder, self._background, intent.path, self._window)
        sheet.watch_asked.connect(lambda path: self._send(intents.WatchTraining(Path(path))))
        self._open(sheet)

    def watch_training(self, intent: intents.WatchTraining) -> None:
        """Ask which training of another program to show as a run, and the pairs to embed with its checkpoints."""
        from explorer.window.watch_training_sheet import WatchTrainingSheet

        sheet = WatchTrainingSheet(self._folder, self._background, intent.path, self._window)
        sheet.model_asked.connect(lambda path: self._send(intents.ChooseModel(path)))
        self._open(sheet)

    def import_data(self, intent: intents.OpenImport) -> None:
        """Ask what of a folder, table or tar to train on."""
        from explorer.import_sheet.sheet import ImportSheet
        from trainer.scheduling.paces import finished_paces

        assert self._services is not None
        assert self._job_list is not None
        sheet = ImportSheet(
            self._folder,
            self._services.client,
            self._background,
            path=intent.path,
            compare=intent.compare,
            more_pairs=intent.more_pairs,
            paces=partial(finished_paces, self._services.context.workspace),
            parent=self._window,
        )
        sheet.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        sheet.requested.connect(self._send)
        sheet.asked_in_background.connect(self._job_list.keep_question)
        sheet.open()

    def show_import(self) -> None:
        """Show the import dialog that reads in the background, or a new one."""
        from explorer.import_sheet.sheet import ImportSheet

        hidden: list[ImportSheet] = [sheet for sheet in self._window.findChildren(ImportSheet) if sheet.isHidden()]
        if hidden:
            hidden[-1].open()
        else:
            self._send(intents.OpenImport(compare=True))

    def show_places(self) -> None:
        """Show the places: other computers that train runs."""
        from explorer.views.runs.places_sheet import PlacesSheet

        sheet = PlacesSheet(self._background, self._folder, self._window)
        sheet.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        sheet.open()

    def show_about(self) -> None:
        """Report version, license, and the libraries that are installed."""
        from explorer.window.about_sheet import AboutSheet

        AboutSheet(self._background, self._window).open()

    def _open(self, sheet: OpenSheet, view: str = RUNS) -> None:
        """Open a dialog whose new runs appear in a view."""
        assert self._services is not None
        jobs = self._services.jobs
        sheet.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        sheet.opened.connect(lambda _run: jobs.poll())
        sheet.opened.connect(lambda _run: self._navigation.go_to(view))
        sheet.open()
