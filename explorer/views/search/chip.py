"""The query image, shown small next to the search field."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QToolButton

from explorer import theme


class Chip(QToolButton):
    """The query image; a click removes it."""

    def __init__(self) -> None:
        super().__init__(objectName="search-picture", accessibleName="Remove the query image", visible=False)
        self.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        theme.keep_icon(self, "image", 16, "secondary")
        self.removed = self.clicked

    def show_image(self, path: str) -> None:
        """Show the image's name; nothing for an empty path."""
        self.setVisible(bool(path))
        name = Path(path).name
        self.setText(f"{name if len(name) < 28 else name[:25] + '…'}  ×" if path else "")
        self.setToolTip(f"{path}\nClick to remove" if path else "")
