"""Opens the import sheet over the window, and takes what is chosen in it to the views."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from PySide6.QtCore import Qt

from explorer.import_sheet.sheet import ImportData

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from PySide6.QtWidgets import QWidget

    from explorer.event_loop.background import Background
    from explorer.model_client.client import Asker
    from explorer.views.view import View
    from trainer import config

RUNS: Final = "runs"
"""The view that makes runs."""


def ask(
    folder: Path,
    asker: Asker,
    background: Background,
    path: str,
    *,
    open_view: Callable[[str], View | None],
    classify: Callable[[list[Path]], object],
    parent: QWidget,
) -> ImportData:
    """Opens the sheet over the window `parent`; what is to be trained on goes to the form of a new run."""
    sheet = ImportData(folder, asker, background, path=path, parent=parent)
    sheet.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)

    def train(data: config.Data, pairs: int | None, size: int, captions_repeat: bool) -> None:
        if view := open_view(RUNS):
            view.train_on(data, pairs, size, captions_repeat)  # type: ignore[attr-defined]

    sheet.train_asked.connect(train)
    sheet.classify_asked.connect(classify)
    sheet.open()
    return sheet
