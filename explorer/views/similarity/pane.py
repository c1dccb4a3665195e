"""What the panes beside the histograms share."""

from __future__ import annotations

from collections.abc import Iterable

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QWidget

from explorer.models.thumbnails import Pictures
from explorer.views.view import Context, side_words


class Pane(QWidget):
    """One tab of the Similarity view.

    Signals:
        failed: Message and next step, for the window's banner.
    """

    failed = Signal(str, str)

    def __init__(self, context: Context, pictures: Pictures) -> None:
        super().__init__()
        self.context, self.pictures = context, pictures

    def refresh(self) -> None:
        """Shows what the selection says now; called when the pane is looked at."""

    def forget(self) -> None:
        """What was read may be old."""

    def command(self) -> list[str] | None:
        """What to write after `trainer` for the same figure; None: nothing to export."""
        return None

    def view_words(self, places: Iterable[int], dataset: str, split: str) -> list[str]:
        """The runs at these places (0 is A) and their snapshots, as arguments of a command."""
        return [*side_words(self.context.selection, places), "--dataset", dataset, "--split", split]
