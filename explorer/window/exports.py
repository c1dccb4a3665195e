"""The person's side of exporting: where to, a note while it is drawn, and what came of it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QObject, QStandardPaths, QUrl, Signal
from PySide6.QtGui import QDesktopServices, QGuiApplication
from PySide6.QtWidgets import QFileDialog, QWidget

from explorer.export import Export, Exporter, file_stem, shell_command
from explorer.settings import Settings
from explorer.widgets.banner import Banner

if TYPE_CHECKING:
    from explorer.views.view import View

MOST_SHOWN: Final = 240
"""Characters of a copied command that the banner shows: that of many images and templates would fill the window."""
FOLDER_KEY: Final = "export/folder"
_NOTHING: Final = "There is nothing to export in this view yet."
_NEXT: Final = "Choose a run with results for A or B first."


class Exports(QObject):
    """Exports of the open view.

    Signals:
        count_changed: How many are being drawn now.
    """

    count_changed = Signal(int)

    def __init__(self, window: QWidget, exporter: Exporter, settings: Settings, banner: Banner, folder: Path) -> None:
        super().__init__(window)
        self._window, self._exporter, self._settings, self._banner = window, exporter, settings, banner
        self._folder = folder
        exporter.started.connect(self._count)
        exporter.done.connect(self._done)
        exporter.failed.connect(self._failed)

    def ask(self, view: View, suffix: str) -> None:
        """Asks where to, then exports; the dialog does not block the window."""
        command = view.command()
        if command is None:
            self._banner.tell(_NOTHING, _NEXT, tone="info")
            return
        start = self._settings.value(FOLDER_KEY) or QStandardPaths.writableLocation(
            QStandardPaths.StandardLocation.DocumentsLocation
        )
        dialog = QFileDialog(self._window, f"Export as {suffix.upper()}", str(start))
        dialog.setObjectName("exportDialog")
        dialog.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
        dialog.setNameFilter(f"{suffix.upper()} (*.{suffix})")
        dialog.setDefaultSuffix(suffix)
        dialog.selectFile(f"{file_stem(command)}.{suffix}")
        dialog.fileSelected.connect(lambda file: self.write(command, Path(file)))
        dialog.finished.connect(dialog.deleteLater)
        dialog.open()

    def write(self, command: list[str], file: Path) -> None:
        """Exports to this file."""
        self._settings.set(FOLDER_KEY, str(file.parent))
        self._exporter.start(command, file)

    def copy(self, view: View) -> None:
        """Puts the view's headless command on the clipboard."""
        command = view.command()
        if command is None:
            self._banner.tell(_NOTHING, _NEXT, tone="info")
            return
        line = shell_command(command, self._folder)
        QGuiApplication.clipboard().setText(line)
        shown = line if len(line) <= MOST_SHOWN else f"{line[:MOST_SHOWN].rstrip()} \u2026"
        self._banner.tell("The command is on the clipboard.", shown, tone="good")

    def _count(self, _export: Export) -> None:
        self.count_changed.emit(len(self._exporter.running))

    def _done(self, export: Export) -> None:
        self._count(export)
        folder = QUrl.fromLocalFile(str(export.file.parent))
        self._banner.tell(
            f"{export.file.name} is written.",
            str(export.file.parent),
            tone="good",
            action=("Open folder", lambda: QDesktopServices.openUrl(folder)),
        )

    def _failed(self, export: Export, reason: str) -> None:
        self._count(export)
        line = shell_command([*export.command, "--out", str(export.file)], self._folder)
        self._banner.tell(
            f"{export.file.name} could not be exported.", reason, details=f"{line}\n\n{reason}", tone="bad"
        )
