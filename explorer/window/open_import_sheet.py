"""Opens the import sheet over the window, and takes what is chosen in it to the views."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from PySide6.QtCore import Qt

from explorer.import_sheet import ImportData

if TYPE_CHECKING:
    from explorer.window import Window
    from explorer.window.services import Rooms
    from trainer import config

RUNS: Final = "runs"
"""The view that makes runs."""


def ask(window: Window, rooms: Rooms, path: str = "") -> ImportData:
    """Opens the sheet over the window; what is to be trained on goes to the form of a new run, pictures to Classify."""
    sheet = ImportData(window.folder, rooms.asker, window.background, path=path, parent=window)
    sheet.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)

    def train(data: config.Data, pairs: int | None, size: int, captions_repeat: bool) -> None:
        window.go_to(RUNS)
        if view := window.pages.views.get(RUNS):
            view.train_on(data, pairs, size, captions_repeat)  # type: ignore[attr-defined]

    sheet.train_asked.connect(train)
    sheet.classify_asked.connect(window.classify)
    sheet.open()
    return sheet
