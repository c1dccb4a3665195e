"""The base class of the panes next to the histograms."""

from __future__ import annotations

from collections.abc import Iterable

from PySide6.QtWidgets import QWidget

from explorer.models.thumbnails import Thumbnails
from explorer.views.view import Context, side_words


class Pane(QWidget):
    """One tab of the Similarity view."""

    def __init__(self, context: Context, pictures: Thumbnails) -> None:
        super().__init__()
        self.context, self.pictures = context, pictures

    def refresh(self) -> None:
        """Update the pane for the selection; called when the pane is visible."""

    def forget(self) -> None:
        """Invalidate what was read."""

    def command(self) -> list[str] | None:
        """Return the `trainer` arguments for the same figure; None if there is nothing to export."""
        return None

    def view_words(self, sides: Iterable[int], dataset: str, split: str) -> list[str]:
        """Return the runs at these places (0 is A) and their snapshots as command arguments."""
        return [*side_words(self.context.selection, sides), "--dataset", dataset, "--split", split]
