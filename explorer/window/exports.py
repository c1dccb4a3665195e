"""The user interface of exporting: the file dialog, a progress note, and the result."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QObject, QStandardPaths, QUrl
from PySide6.QtGui import QDesktopServices, QGuiApplication
from PySide6.QtWidgets import QFileDialog, QWidget

from explorer.export import Export, Exporter, file_stem, shell_command
from explorer.state.settings import Settings
from explorer.widgets.banner import Banner
from trainer.untrusted import confined

if TYPE_CHECKING:
    from explorer.views.view import View

MOST_SHOWN: Final = 240
"""Characters of a copied command that the banner shows: that of many images and templates would fill the window."""
FOLDER_KEY: Final = "export/folder"
DRAWING: Final = ("export", "classify", "decode", "saliency")
"""Commands that draw with `--out` and change nothing; `trainer bundle` takes no others."""
_NOTHING: Final = "There is nothing to export in this view yet."
_NEXT: Final = "Choose a run with results for A or B first."


class Exports(QObject):
    """Exports of the open view."""

    def __init__(self, window: QWidget, exporter: Exporter, settings: Settings, banner: Banner, folder: Path) -> None:
        super().__init__(window)
        self._window, self.exporter, self._settings, self.banner = window, exporter, settings, banner
        self._folder = folder
        exporter.done.connect(self._done)
        exporter.failed.connect(self._failed)
        exporter.progressed.connect(self._progressed)
        exporter.cancelled.connect(self._cancelled)
        self.bundles: dict[Path, Path] = {}

    def ask(self, view: View, suffix: str) -> None:
        """Ask for a file, `suffix` first; the dialog offers every format of the view, and does not block the window."""
        command = view.command_for(suffix)
        if command is None:
            self.banner.show_message(_NOTHING, _NEXT, tone="info")
            return
        formats = {f"{label} (*.{ending})": ending for ending, label in view.exports}
        first = next((label for label, ending in formats.items() if ending == suffix), next(iter(formats)))
        stem = file_stem(command, {str(run.id): run.name for run in view.context.jobs.runs})
        dialog = QFileDialog(self._window, "Export", self._start_folder())
        dialog.setObjectName("exportDialog")
        dialog.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
        dialog.setNameFilters([*formats])

        def show_format(label: str) -> None:
            dialog.setDefaultSuffix(formats[label])
            dialog.selectFile(f"{stem}.{formats[label]}")

        dialog.selectNameFilter(first)
        show_format(first)
        dialog.filterSelected.connect(show_format)
        dialog.fileSelected.connect(lambda file: self._write_as(view, Path(file)))
        dialog.finished.connect(dialog.deleteLater)
        dialog.open()

    def _write_as(self, view: View, file: Path) -> None:
        """Export what the view shows in the format that the file is named after."""
        if (command := view.command_for(file.suffix.removeprefix(".").lower())) is not None:
            self.write(command, file)

    def write(self, command: list[str], file: Path) -> None:
        """Export to this file."""
        self._settings.set(FOLDER_KEY, str(file.parent))
        self.exporter.start(command, file)

    def ask_bundle(self, views: Iterable[View], runs: Sequence[int]) -> None:
        """Ask for a file, then write the evidence bundle of these runs with every figure currently shown."""
        if not runs:
            self.banner.show_message("Select a run to export.", _NEXT, tone="info")
            return
        figures = drawings(views)
        dialog = QFileDialog(self._window, "Export evidence bundle", self._start_folder())
        dialog.setObjectName("bundleDialog")
        dialog.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
        dialog.setNameFilter("Zip archive (*.zip);;New folder (*)")
        dialog.setDefaultSuffix("zip")
        dialog.selectFile(f"evidence-{'-'.join(map(str, runs))}.zip")
        dialog.fileSelected.connect(lambda file: self.write_bundle(figures, runs, Path(file)))
        dialog.finished.connect(dialog.deleteLater)
        dialog.open()

    def write_bundle(self, figures: Sequence[Sequence[str]], runs: Sequence[int], file: Path) -> None:
        """Write the bundle to this file or new folder, with these figures or the default ones."""
        self._settings.set(FOLDER_KEY, str(file.parent))
        command = ["bundle", "--runs", *map(str, runs)]
        if figures:
            handle, name = tempfile.mkstemp(prefix="figures-", suffix=".json")
            with os.fdopen(handle, "w", encoding="utf-8") as out:
                json.dump([list(arguments) for arguments in figures], out)
            self.bundles[file] = Path(name)
            command += ["--figures", name]
        export = self.exporter.start(command, file)
        self._progressed(export, "starting")

    def copy(self, view: View) -> None:
        """Copy the view's `trainer` command to the clipboard."""
        command = view.command()
        if command is None:
            self.banner.show_message(_NOTHING, _NEXT, tone="info")
            return
        line = shell_command(command, self._folder)
        QGuiApplication.clipboard().setText(line)
        excerpt = line if len(line) <= MOST_SHOWN else f"{line[:MOST_SHOWN].rstrip()} \u2026"
        self.banner.show_message("Copied the command to the clipboard.", excerpt, tone="good")

    def _start_folder(self) -> str:
        remembered = self._settings.value(FOLDER_KEY)
        documents = QStandardPaths.writableLocation(QStandardPaths.StandardLocation.DocumentsLocation)
        return str(remembered or documents)

    def _progressed(self, export: Export, line: str) -> None:
        if export.command[0] == "bundle":
            cancel = ("Cancel", lambda: self.exporter.cancel(export))
            self.banner.show_message(f"Writing {export.file.name}…", line, tone="info", action=cancel)

    def _cancelled(self, export: Export) -> None:
        self._forget(export)
        self.banner.show_message(f"{export.file.name} was cancelled.", "Nothing was written.", tone="info")

    def _forget(self, export: Export) -> None:
        """Delete the list of figures written for the command."""
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
