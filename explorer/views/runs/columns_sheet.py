"""The dialog that chooses the columns of the table of runs, and their order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QKeySequence, QShortcut
from PySide6.QtWidgets import QLabel, QListWidget, QListWidgetItem, QPushButton, QVBoxLayout, QWidget

from explorer import theme
from explorer.widgets import layouts
from explorer.widgets.finder import CHOICE_ROLES, Choice, holding
from explorer.widgets.item_list import ITEM_ROLE
from explorer.widgets.refusal import set_refusal
from explorer.widgets.search_list import SearchList
from explorer.widgets.sheet import Sheet

WIDTH, HEIGHT = 720, 520
KINDS: Final = ("Metric", "Configuration", "Run")
"""In the order of the list."""


class ColumnsSheet(Sheet):
    """All that can be a column at the left, searched; the chosen ones at the right, in their order.

    Enter, or a double click, adds the one that is selected; Delete removes, Alt with an arrow key moves.
    """

    chosen = Signal(list)  # Names of the columns.

    def __init__(self, choices: Sequence[Choice], columns: Sequence[str], parent: QWidget | None = None) -> None:
        super().__init__("Columns of runs", "Show", parent)
        self.setObjectName("columns-sheet")
        layouts.resize_within_screen(self, WIDTH, HEIGHT)
        self._all = sorted(choices, key=lambda choice: KINDS.index(choice.kind))
        self._words = {choice.key: choice.words for choice in choices}
        labels = "Search columns", "Fields and metrics"
        self._matches = SearchList(self, "columns", labels, "Search fields and metrics", CHOICE_ROLES)
        self._matches.picked.connect(lambda _choice: self.add())
        self._matches.left.connect(self.reject)
        self._matches.list.doubleClicked.connect(lambda _: self.add())
        self.search = self._matches.line
        self.search.setClearButtonEnabled(True)
        self.search.textChanged.connect(lambda _: self._filter())
        self.names = QListWidget(objectName="columns-chosen", accessibleName="Columns")
        self.names.setDragDropMode(QListWidget.DragDropMode.InternalMove)
        self.names.currentRowChanged.connect(lambda _: self._enable())
        self.add_button = self._button("Add", "plus", self.add)
        self.up_button = self._button("Earlier", "chevron-up", lambda: self.move_by(-1))
        self.down_button = self._button("Later", "chevron-down", lambda: self.move_by(1))
        self.remove_button = self._button("Remove", "x", self.remove)
        for keys, does in (
            ("Del", self.remove),
            ("Alt+Up", self.up_button.click),
            ("Alt+Down", self.down_button.click),
        ):
            QShortcut(QKeySequence(keys), self.names, does, context=Qt.ShortcutContext.WidgetShortcut)
        self._lay_out()
        for name in columns:
            self._put(name)
        self._filter()
        self._enable()
        self.show_message("The filter takes the same names: objective.beta>8. Click a header to sort.")
        self.accepted.connect(lambda: self.chosen.emit(self.columns))
        self.search.setFocus()

    @property
    def columns(self) -> list[str]:
        """The names chosen, in order."""
        return [str(self.names.item(row).data(Qt.ItemDataRole.UserRole)) for row in range(self.names.count())]

    def add(self) -> None:
        """Add what is selected at the left after the others."""
        selected = self._matches.list.currentIndex()
        if selected.isValid():
            self._put(selected.data(ITEM_ROLE).key)
            self.names.setCurrentRow(self.names.count() - 1)
            self._filter(selected.row())

    def remove(self) -> None:
        """Remove the column that is selected at the right."""
        self.names.takeItem(self.names.currentRow())
        self._filter()
        self._enable()

    def move_by(self, by: int) -> None:
        """Move the column that is selected at the right."""
        row = self.names.currentRow()
        if 0 <= row + by < self.names.count():
            self.names.insertItem(row + by, self.names.takeItem(row))
            self.names.setCurrentRow(row + by)

    def _lay_out(self) -> None:
        right = (self.up_button, self.down_button, self.remove_button)
        both = layouts.row(
            (_side((self.search, self._matches.list), (self.add_button,)), 1),
            (_side((QLabel("Shown after the fixed columns, in this order"), self.names), right), 1),
            gap=theme.BETWEEN,
        )
        column = self.layout()
        assert isinstance(column, QVBoxLayout)
        column.insertLayout(0, both, 1)
        column.setStretchFactor(self.message, 0)

    def _put(self, name: str) -> None:
        item = QListWidgetItem(self._words.get(name, name))
        item.setData(Qt.ItemDataRole.UserRole, name)
        item.setToolTip(name)
        self.names.addItem(item)

    def _filter(self, row: int = 0) -> None:
        columns = {*self.columns}
        matches = [choice for choice in holding(self.search.text(), self._all) if choice.key not in columns]
        self._matches.model.show(matches)
        self._matches.choose(row)
        set_refusal(self.add_button, "" if matches else "No further column matches.")

    def _enable(self) -> None:
        row = self.names.currentRow()
        none = "" if row >= 0 else "Choose a column first."
        set_refusal(self.up_button, none or ("" if row else "It is the first one."))
        set_refusal(self.down_button, none or ("" if row < self.names.count() - 1 else "It is the last one."))
        set_refusal(self.remove_button, none)

    def _button(self, label: str, icon: str, does: Callable[[], None]) -> QPushButton:
        button = QPushButton(label, autoDefault=False, objectName=f"columns-{label.lower()}", clicked=lambda: does())
        theme.keep_icon(button, icon)
        return button


def _side(widgets: Sequence[QWidget], buttons: Sequence[QPushButton]) -> QVBoxLayout:
    """Return widgets under each other with buttons below."""
    return layouts.column(*widgets, layouts.row(*buttons, (layouts.STRETCH, 1)))
