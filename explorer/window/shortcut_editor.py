"""The panel in which people change shortcuts."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from PySide6.QtCore import Qt
from PySide6.QtGui import QAction, QKeySequence
from PySide6.QtWidgets import (
    QAbstractItemView,
    QHeaderView,
    QKeySequenceEdit,
    QPushButton,
    QTableWidget,
    QTableWidgetItem,
    QToolButton,
    QWidget,
)

from explorer import theme
from explorer.widgets import layouts
from explorer.widgets.accessible import present
from explorer.widgets.overlay import Overlay
from explorer.widgets.wrapped_label import WrappedLabel
from explorer.window.key_bindings import KeyBindings

HIGH_PX: Final = 560


class ShortcutEditor(Overlay):
    """A table of commands and their keys; the chosen one gets what is pressed in the field below."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent, name="shortcutEditor", width=640, height=HIGH_PX)
        present(self, "Dialog", "Change keyboard shortcuts")
        self._bindings: KeyBindings | None = None
        self._others: Callable[[], Iterable[QAction]] = list
        self._names: list[str] = []
        self.table = QTableWidget(0, 2, objectName="shortcutEditor-table", accessibleName="Commands and their keys")
        self.field = QKeySequenceEdit(objectName="shortcutEditor-field", accessibleName="New keys")
        self.field.setMaximumSequenceLength(1)
        self.field.setClearButtonEnabled(True)
        for button in self.field.findChildren(QToolButton):
            button.setAccessibleName("No keys")
        self.message = WrappedLabel(objectName="shortcutEditor-message")
        self.assign = QPushButton("Assign", objectName="shortcutEditor-assign")
        self.reset = QPushButton("Reset", objectName="shortcutEditor-reset", toolTip="The first keys of this command")
        self.reset_all = QPushButton("Reset all", objectName="shortcutEditor-resetAll")
        self.done = QPushButton("Done", objectName="shortcutEditor-done")
        self._lay_out()
        self.table.itemSelectionChanged.connect(self._on_row)
        self.assign.clicked.connect(self._assign)
        self.reset.clicked.connect(self._reset)
        self.reset_all.clicked.connect(self._reset_all)
        self.done.clicked.connect(self.close_panel)

    def ask(self, bindings: KeyBindings, others: Callable[[], Iterable[QAction]]) -> None:
        """Open with these bindings; the keys of `others` are taken too."""
        self._bindings, self._others = bindings, others
        self._names = list(bindings.actions)
        self._fill()
        self.table.selectRow(0)
        self.message.setText("Choose a command, then press its new keys.")
        self.open(self.table)

    def choose(self, name: str) -> None:
        self.table.selectRow(self._names.index(name))

    def _fill(self) -> None:
        assert self._bindings is not None
        self.table.setRowCount(len(self._names))
        for row, name in enumerate(self._names):
            label = self._bindings.actions[name].text().replace("&", "")
            keys = QKeySequence(self._bindings.keys_of(name)).toString(QKeySequence.SequenceFormat.NativeText)
            mark = "  (changed)" if self._bindings.is_own(name) else ""
            self.table.setItem(row, 0, QTableWidgetItem(label))
            self.table.setItem(row, 1, QTableWidgetItem(f"{keys}{mark}"))

    @property
    def _chosen(self) -> str:
        return self._names[max(0, self.table.currentRow())]

    def _on_row(self) -> None:
        if self._bindings is not None and self.table.currentRow() >= 0:
            self.field.setKeySequence(QKeySequence(self._bindings.keys_of(self._chosen)))

    def _assign(self) -> None:
        assert self._bindings is not None
        self._show_message(self._bindings.assign(self._chosen, self.field.keySequence(), self._others()))

    def _reset(self) -> None:
        assert self._bindings is not None
        self._show_message(self._bindings.reset(self._chosen))

    def _reset_all(self) -> None:
        assert self._bindings is not None
        self._bindings.reset_all()
        self._show_message("")

    def _show_message(self, refusal: str) -> None:
        theme.set_role(self.message, "bad" if refusal else "secondary")
        self.message.setText(refusal or "Saved.")
        if not refusal:
            self._fill()
            self._on_row()

    def _lay_out(self) -> None:
        self.body.setContentsMargins(theme.AROUND, theme.AROUND, theme.AROUND, theme.AROUND)
        title = layouts.text("Change keyboard shortcuts", "title")
        theme.set_role(self.message, "secondary")
        self.table.setHorizontalHeaderLabels(["Command", "Keys"])
        self.table.horizontalHeader().setDefaultAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)
        self.table.verticalHeader().hide()
        self.table.horizontalHeader().setSectionResizeMode(0, QHeaderView.ResizeMode.Stretch)
        self.table.horizontalHeader().setSectionResizeMode(1, QHeaderView.ResizeMode.ResizeToContents)
        self.table.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.table.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.table.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self.table.setShowGrid(False)
        self.table.setTabKeyNavigation(False)
        layouts.add(
            self.body,
            title,
            (self.table, 1),
            layouts.row((self.field, 1), self.assign, self.reset, gap=theme.SPACE),
            (self.message, 0, Qt.AlignmentFlag.AlignTop),
            layouts.row(self.reset_all, layouts.STRETCH, self.done, gap=None),
        )
