"""Open the import dialog over the window and pass its result to the views."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from PySide6.QtCore import Qt

from explorer.import_sheet.sheet import ImportData

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from PySide6.QtWidgets import QWidget

    from explorer.event_loop.background import Background
    from explorer.model_client.client import ModelClient
    from explorer.views.view import View
    from trainer import config

RUNS: Final = "runs"
"""The view that makes runs."""


def ask(
    folder: Path,
    client: ModelClient,
    background: Background,
    path: str,
    *,
    open_view: Callable[[str], View | None],
    classify: Callable[[list[Path]], object],
    keep_listed: Callable[[int], object],
    compare: bool = False,
    parent: QWidget,
) -> ImportData:
    """Open the dialog over the window `parent`; data to train on go to the New run form.

    With `compare` they go to a CLIP and a CLOOB run, which are queued without a form.

    `keep_listed` receives the number of each question that is pending while the dialog is hidden.
    """
    sheet = ImportData(folder, client, background, path=path, parent=parent)
    sheet.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)

    def train(data: config.Data, pairs: int | None, size: int, captions_repeat: bool) -> None:
        if view := open_view(RUNS):
            train_on = view.compare_on if compare else view.train_on  # type: ignore[attr-defined]
            train_on(data, pairs, size, captions_repeat)

    if compare:
        sheet.start.setText("Train CLIP and CLOOB on these pairs")
    sheet.train_asked.connect(train)
    sheet.classify_asked.connect(classify)
    sheet.asked_in_background.connect(keep_listed)
    sheet.open()
    return sheet
