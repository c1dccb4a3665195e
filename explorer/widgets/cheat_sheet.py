"""A cheat sheet of all shortcuts, and the panel that explains a method."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from PySide6.QtCore import Qt
from PySide6.QtGui import QKeySequence
from PySide6.QtWidgets import QGridLayout, QHBoxLayout, QLabel, QScrollArea, QVBoxLayout, QWidget

from explorer import theme
from explorer.widgets.accessible import present
from explorer.widgets.overlay import Overlay

Keys = Mapping[str, Sequence[tuple[str, str]]]
"""Heading -> (keys, words) of each line under it; keys as Qt writes them, e.g. `Ctrl+Shift+P`."""


class CheatSheet(Overlay):
    """The window's shortcuts in two columns."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent, name="cheatSheet", width=720)
        present(self, "Dialog", "Keys")
        self.body.setContentsMargins(theme.AROUND, theme.AROUND, theme.AROUND, theme.AROUND)
        title = QLabel("Keys")
        theme.set_role(title, "title")
        self.body.addWidget(title)
        self._columns = QWidget()
        self.body.addWidget(self._columns)

    def show_message(self, keys: Keys) -> None:
        """Open with these shortcuts."""
        self.body.removeWidget(self._columns)
        self._columns.deleteLater()
        self._columns = QWidget()
        row = QHBoxLayout(self._columns)
        row.setContentsMargins(0, theme.INSIDE, 0, 0)
        row.setSpacing(2 * theme.AROUND)
        columns = [QVBoxLayout(), QVBoxLayout()]
        lines = [0, 0]
        for heading, entries in keys.items():
            shorter = lines.index(min(lines))
            columns[shorter].addWidget(_group(heading, entries))
            lines[shorter] += len(entries) + 2
        for column in columns:
            column.setSpacing(theme.BETWEEN)
            column.addStretch()
            row.addLayout(column, 1)
        self.body.addWidget(self._columns)
        self.open()


class MethodPanel(Overlay):
    """What a view computes: formula, paper, caveats; as selectable plain text."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent, name="methodPanel", width=640)
        present(self, "Dialog", "Method")
        self.body.setContentsMargins(theme.AROUND, theme.AROUND, theme.AROUND, theme.AROUND)
        self._title = QLabel()
        theme.set_role(self._title, "title")
        self._question = QLabel(wordWrap=True)
        theme.set_role(self._question, "secondary")
        self._text = QLabel(wordWrap=True, objectName="methodText")
        self._text.setTextInteractionFlags(
            Qt.TextInteractionFlag.TextSelectableByMouse | Qt.TextInteractionFlag.TextSelectableByKeyboard
        )
        for label in (self._title, self._question, self._text):
            label.setTextFormat(Qt.TextFormat.PlainText)
        scroll = QScrollArea(widgetResizable=True)
        scroll.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        scroll.setWidget(self._text)
        # The text has the focus, and scrolls.
        scroll.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self._scroll = scroll
        self.body.addWidget(self._title)
        self.body.addWidget(self._question)
        self.body.addSpacing(theme.INSIDE)
        self.body.addWidget(scroll, 1)

    def show_message(self, title: str, question: str, method: str) -> None:
        """Open with this explanation."""
        self._title.setText(title)
        self._question.setText(question)
        self._text.setText(method or "Nothing is computed here.")
        self._text.setAlignment(Qt.AlignmentFlag.AlignTop)
        wide = 640 - 2 * theme.AROUND - theme.BETWEEN
        self._scroll.setMinimumHeight(min(480, self._text.heightForWidth(wide) + theme.INSIDE))
        self.open(self._text)


def _group(heading: str, entries: Sequence[tuple[str, str]]) -> QWidget:
    group = QWidget()
    grid = QGridLayout(group)
    grid.setContentsMargins(0, 0, 0, 0)
    grid.setVerticalSpacing(6)
    grid.setColumnStretch(0, 1)
    title = QLabel(heading)
    theme.set_role(title, "heading")
    grid.addWidget(title, 0, 0, 1, 2)
    for row, (keys, description) in enumerate(entries, start=1):
        grid.addWidget(QLabel(description), row, 0)
        grid.addWidget(_keys(keys), row, 1, Qt.AlignmentFlag.AlignRight)
    return group


def _keys(keys: str) -> QWidget:
    box = QWidget()
    row = QHBoxLayout(box)
    row.setContentsMargins(0, 0, 0, 0)
    row.setSpacing(theme.SPACE)
    native = QKeySequence(keys).toString(QKeySequence.SequenceFormat.NativeText) or keys
    for part in native.split("+"):
        cap = QLabel(part.strip() or "+")
        theme.set_role(cap, "key")
        row.addWidget(cap)
    return box
