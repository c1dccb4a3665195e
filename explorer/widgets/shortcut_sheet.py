"""A sheet of all shortcuts."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from PySide6.QtCore import Qt
from PySide6.QtGui import QKeySequence
from PySide6.QtWidgets import QGridLayout, QLabel, QWidget

from explorer import theme
from explorer.widgets import layouts
from explorer.widgets.accessible import present
from explorer.widgets.min_size_scroll import MinSizeScroll
from explorer.widgets.overlay import Overlay

Keys = Mapping[str, Sequence[tuple[str, str]]]
"""Heading -> (keys, words) of each line under it; keys as Qt writes them, e.g. `Ctrl+Shift+P`."""
WIDTH = 784
"""In a narrower window there is one column."""


class ShortcutSheet(Overlay):
    """The window's shortcuts in one or two columns, which scroll where they are higher than the window."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent, name="shortcutSheet", width=WIDTH)
        present(self, "Dialog", "Keyboard shortcuts")
        self.body.setContentsMargins(theme.AROUND, theme.BETWEEN, theme.INSIDE, theme.BETWEEN)
        title = layouts.text("Keyboard shortcuts", "title")
        layouts.add(self.body, layouts.row((title, 1), self.close_button("keysClose")))
        self._scroll: MinSizeScroll | None = None

    def show_message(self, keys: Keys) -> None:
        """Open with these shortcuts."""
        if self._scroll is not None:
            self.body.removeWidget(self._scroll)
            self._scroll.deleteLater()
        wide = self.window().width() >= WIDTH + 2 * theme.AROUND
        columns = [layouts.column(gap=theme.BETWEEN) for _ in range(2 if wide else 1)]
        lines = [0] * len(columns)
        for heading, entries in keys.items():
            shorter = lines.index(min(lines))
            columns[shorter].addWidget(_group(heading, entries))
            lines[shorter] += len(entries) + 2
        for column in columns:
            column.addStretch()
        parts = ((column, 1) for column in columns)
        margins = (0, theme.INSIDE, theme.BETWEEN, 0)  # at the right: for the scroll bar
        self._scroll = MinSizeScroll(layouts.panel(layouts.row(*parts, gap=2 * theme.AROUND, margins=margins)))
        self.body.addWidget(self._scroll)
        self.open(self._scroll)  # the arrows and Page Down scroll it


def _group(heading: str, entries: Sequence[tuple[str, str]]) -> QWidget:
    group = QWidget()
    grid = QGridLayout(group)
    grid.setContentsMargins(0, 0, 0, 0)
    grid.setVerticalSpacing(6)
    grid.setColumnStretch(0, 1)
    grid.addWidget(layouts.text(heading, "heading"), 0, 0, 1, 2)
    for row, (keys, description) in enumerate(entries, start=1):
        grid.addWidget(QLabel(description), row, 0)
        grid.addWidget(_keys(keys), row, 1, Qt.AlignmentFlag.AlignRight)
    return group


def _keys(keys: str) -> QWidget:
    native = QKeySequence(keys).toString(QKeySequence.SequenceFormat.NativeText) or keys
    caps = (layouts.text(part.strip(), "key") for part in re.split(r"\+(?=.)", native))  # "Ctrl++" is two keys
    return layouts.panel(layouts.row(*caps, gap=theme.SPACE))
