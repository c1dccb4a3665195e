"""A label that wraps between words, and never between a number and its unit."""

from __future__ import annotations

import re
from typing import Any, Final

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel, QWidget

_UNITS: Final = r"%|±|[munµ]?s|min|hours?|days?|px|pt|cm|points?|[kMGT]i?B|°"
_BREAKS: Final = re.compile(rf"(?<=\d) (?=(?:{_UNITS})(?!\w))|(?<=±) (?=[\d.])|(?<=\bn) (?== )|(?<=\bn =) (?=\d)")


def unbroken(text: str) -> str:
    """Return a text in which no line ends between a number and its unit, its interval, or the name of a count."""
    return _BREAKS.sub("\N{NO-BREAK SPACE}", text)


class WrappedLabel(QLabel):
    """A plain text of one line or several, as wide as there is room."""

    def __init__(self, text: str = "", parent: QWidget | None = None, **properties: Any) -> None:
        super().__init__(parent, wordWrap=True, textFormat=Qt.TextFormat.PlainText, **properties)
        self.setText(text)

    def setText(self, text: str) -> None:
        self._text = text
        super().setText(unbroken(text))

    def text(self) -> str:
        """The text as it was set, with plain spaces."""
        return self._text
