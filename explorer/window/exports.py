"""The user interface of exporting: the dialog of choices, the progress in the status bar, and the result."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QObject, QStandardPaths, QUrl
from PySide6.QtGui import QDesktopServices, QGuiApplication
from PySide6.QtWidgets import QWidget

from explorer.export import Export, Exporter, file_stem, shell_command
from explorer.state.settings import Settings
from explorer.views import VIEWS
from explorer.widgets.banner import Banner
from trainer.charts import ChartError, registry
from trainer.charts.figure_choices import FigureChoices, run_names
from trainer.charts.settings import parse, words
from trainer.distribution.bundle_files import DRAWING, USUAL, figure_kind
from trainer.untrusted import confined

if TYPE_CHECKING:
    from explorer.views.view import View
    from explorer.widgets.progress_row import ProgressRow
    from explorer.window.export_dialog import ExportDialog
    from trainer.store import RunRow

FOLDER_KEY: Final = "export/folder"
CHOICES_KEY: Final = "export/choices"
ALSO_KEY: Final = "export/also"
BUNDLES: Final = (("zip", "Zip archive"), ("folder", "New folder"))
CONTENTS: Final = (
    "And a report as one page, the configuration of each run, package versions, commands that draw the figures again"
)
"""Of a bundle besides its figures."""
_NOTHING: Final = "There is nothing to export in this view yet."
_COMPUTES: Final = ("The view still computes.", "Export it when the chart is there.")
_NEXT: Final = "Choose a run with results for A or B first."


class Exports(QObject):
    """Exports of the open view."""

    def __init__(
        self, window: QWidget, exporter: Exporter, settings: Settings, banner: Banner, row: ProgressRow, folder: Path
    ) -> None:
        """Create what exports to files; `row` shows the progress of the newest one that runs."""
        super().__init__(window)
        self._window, self.exporter, self._settings, self.banner = window, exporter, settings, banner
        self.writing, self._folder = row, folder
        row.note.setMinimumWidth(row.fontMetrics().horizontalAdvance("Exporting folder… less than 1 min left"))
        row.cancelled.connect(lambda: exporter.cancel(exporter.running[-1]))
        exporter.done.connect(self._done)
        exporter.failed.connect(self._failed)
        exporter.progressed.connect(self._show_progress)
        exporter.cancelled.connect(self._cancelled)
        self.bundles: dict[Path, Path] = {}
        self._figures: list[list[str]] = []
        self._left_out: list[str] = []

    def ask(self, view: View, suffix: str) -> None:
        """Ask for a file, `suffix` first; the dialog offers every format of the view, and does not block the window."""
        command = view.command_for(suffix or view.exports[0][0])
        if command is None:
            # A view that computes has its runs: to choose others would not help.
            computes = view.area.kind in ("unknown", "loading")
            self.banner.show_message(*(_COMPUTES if computes else (_NOTHING, _NEXT)), tone="info")
            return
        # The one that is asked for comes first.
        formats = sorted(view.exports, key=lambda entry: entry[0] != suffix)
        self._open(view.title, formats, view.command_for, file_stem(command, self._names(view.context.jobs.runs)))

    def _open(
        self,
        title: str,
        formats: Sequence[tuple[str, str]],
        command_for: Callable[[str], Sequence[str] | None],
        stem: str,
        example: Sequence[str] = (),
        contents: str = "",
        figures: Mapping[str, str] | None = None,
    ) -> ExportDialog:
        """Open the dialog with the choices of last time."""
        from explorer.window.export_dialog import ExportDialog, free_stem
        from explorer.window.figure_previews import FigurePreviews

        dialog = ExportDialog(
            title,
            formats,
            command_for,
            free_stem(Path(self._start_folder()), stem, [suffix for suffix, _ in formats]),
            FigurePreviews(self._folder),
            choices=self._remembered(),
            also=self._settings.value(ALSO_KEY, []),
            example=example,
            contents=contents,
            figures=figures,
            left_out=self._left_out,
            parent=self._window,
        )
        dialog.chosen.connect(self.write)
        dialog.copied.connect(self._copy)
        dialog.remembered.connect(self._remember)
        dialog.open()
        return dialog

    def _remembered(self) -> FigureChoices:
        try:
            return parse(FigureChoices, [str(word) for word in self._settings.value(CHOICES_KEY, [])])
        except (ChartError, TypeError):  # of another version
            return FigureChoices()

    def _remember(self, choices: FigureChoices, also: list[str]) -> None:
        self._settings.set(CHOICES_KEY, words(choices))
        self._settings.set(ALSO_KEY, also)

    @staticmethod
    def _names(runs: Iterable[RunRow]) -> dict[str, str]:
        """Return the number of each run -> its label for a file's name."""
        rows = [*runs]
        names = run_names([row.short_name for row in rows], FigureChoices(names="seed"))
        return {str(row.id): names.get(row.short_name, row.short_name) for row in rows}

    def write(self, command: list[str], file: Path) -> None:
        self._settings.set(FOLDER_KEY, str(file.parent))
        if command[0] == "bundle":
            self.write_bundle(self._figures, command, file)
        else:
            self._show_progress(self.exporter.start(command, file), 0.0, "Rendering the figure")

    def ask_bundle(self, views: Iterable[View], runs: Sequence[int], rows: Iterable[RunRow] = ()) -> None:
        """Ask for a file and the figures' looks, then write the evidence bundle of these runs.

        It holds the usual figures, and what the views show of runs now.
        """
        if not runs:
            self.banner.show_message("Select a run to export.", _NEXT, tone="info")
            return
        figures = with_usual(drawings(views), runs)
        selected = ["--runs", *map(str, runs)]
        stem = file_stem(["evidence", *selected], self._names(rows))
        command = ["bundle", *selected]
        example = ["export", "similarity", *selected]
        names = figure_names(figures)
        dialog = self._open("evidence bundle", BUNDLES, lambda _suffix: command, stem, example, CONTENTS, names)
        dialog.finished.connect(lambda _result: setattr(self, "_left_out", dialog.left_out))
        self._figures = figures

    def write_bundle(self, figures: Sequence[Sequence[str]], command: list[str], file: Path) -> None:
        """Write the bundle to this file or new folder, with these figures or the default ones."""
        if figures:
            handle, name = tempfile.mkstemp(prefix="figures-", suffix=".json")
            with os.fdopen(handle, "w", encoding="utf-8") as out:
                json.dump([list(arguments) for arguments in figures], out)
            self.bundles[file] = Path(name)
            command = [*command, "--figures", name]
        self._show_progress(self.exporter.start(command, file), 0.0, "Starting")

    def copy(self, view: View) -> None:
        """Copy the view's `trainer` command to the clipboard."""
        command = view.command()
        if command is None:
            self.banner.show_message(_NOTHING, _NEXT, tone="info")
            return
        self._copy(command)

    def _copy(self, command: Sequence[str]) -> None:
        line = shell_command(command, self._folder)
        QGuiApplication.clipboard().setText(line)
        self.banner.show_message("Copied the command to the clipboard.", tone="good")

    def _start_folder(self) -> str:
        remembered = self._settings.value(FOLDER_KEY)
        documents = QStandardPaths.writableLocation(QStandardPaths.StandardLocation.DocumentsLocation)
        return str(remembered or documents)

    def _show_progress(self, export: Export, share: float, note: str) -> None:
        if export is self.exporter.running[-1]:
            self.writing.note.set_details(f"{export.file.name}: {note}")
            self.writing.show_progress(share, f"Exporting {export.file.suffix[1:].upper() or 'folder'}")

    def _cancelled(self, export: Export) -> None:
        self._forget(export)
        self.banner.show_message(f"{export.file.name} was cancelled.", "Nothing was written.", tone="info")

    def _forget(self, export: Export) -> None:
        """Show the progress of what still runs, and delete the list of figures written for the command."""
        self.writing.end()
        for other in self.exporter.running[-1:]:
            self._show_progress(other, 0.0, "")
        figures = self.bundles.pop(export.file, None)
        if figures is not None:
            confined.remove(figures.parent, figures.name)

    def _done(self, export: Export) -> None:
        self._forget(export)
        folder = QUrl.fromLocalFile(str(export.file.parent))
        self.banner.show_message(
            f"Saved {export.file.name}.",
            str(export.file.parent),
            tone="good",
            action=("Open folder", lambda: QDesktopServices.openUrl(folder)),
        )

    def _failed(self, export: Export, reason: str) -> None:
        self._forget(export)
        line = shell_command([*export.command, "--out", str(export.file)], self._folder)
        self.banner.show_message(
            f"{export.file.name} could not be exported.", reason, details=f"{line}\n\n{reason}", tone="bad"
        )


def drawings(views: Iterable[View]) -> list[list[str]]:
    """Return the commands that draw what the views show now; an empty view has none."""
    commands = [view.command() for view in views]
    return [command for command in commands if command and command[0] in DRAWING]


def figure_names(figures: Iterable[Sequence[str]]) -> dict[str, str]:
    """Return what these figures draw -> what the window calls it."""
    return {kind: _name_of(kind) for kind in map(figure_kind, figures)}


def _name_of(kind: str) -> str:
    """Return what the window calls a figure: its view, and its chart there."""
    labels = {entry.name: entry.label for entry in VIEWS}
    view = next((view for view, charts in registry.BUILT_IN.items() if kind in charts), "")
    if kind in labels or view not in labels:
        return labels.get(kind, kind.replace("-", " ").capitalize())
    return f"{labels[view]}: {registry.load(kind).label}"


def with_usual(commands: Iterable[Sequence[str]], runs: Sequence[int]) -> list[list[str]]:
    """Return the usual figures of the runs, each as it is shown now if it is, and then what else is shown of runs."""
    of_runs = [list(command) for command in commands if "--runs" in command or command[0] != "export"]
    command_of_kind = {command[1]: command for command in of_runs if command[0] == "export"}
    usual = [command_of_kind.get(kind, ["export", kind, "--runs", *map(str, runs)]) for kind in USUAL]
    return [*usual, *(command for command in of_runs if command not in usual)]
