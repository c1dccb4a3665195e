"""The dialog that opens, renames and deletes saved views."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QKeySequence, QShortcut
from PySide6.QtWidgets import QDialog, QListWidget, QListWidgetItem, QPushButton, QWidget

from explorer import theme
from explorer.widgets import layouts
from explorer.widgets.refusal import set_refusal

WIDTH, HEIGHT = 460, 400


class SavedViewsSheet(QDialog):
    """The names of the saved views. Enter opens one, F2 or a double click renames it, Delete deletes it."""

    opened = Signal(str)  # A name whose view is to be shown.
    renamed = Signal(str, str)  # Its name and the new one.
    deleted = Signal(str)  # Its name.

    def __init__(self, names: list[str], parent: QWidget | None = None, reason: str = "") -> None:
        """List the names; with the reason why the workspace is read-only, they stay as they are."""
        super().__init__(parent, objectName="saved-views", windowTitle="Saved views", modal=True)
        self._reason = reason
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        layouts.resize_within_screen(self, WIDTH, HEIGHT)
        about = "Place, runs, step, selection, filter, columns and groups of each are kept in this workspace."
        text = layouts.text(about, "secondary", wrap=True)
        self.names = QListWidget(self, objectName="saved-views-names", accessibleName="Saved views")
        self.names.itemChanged.connect(self._edited)
        self.names.currentRowChanged.connect(lambda _: self._enable())
        self.open_button = QPushButton("Open", self, objectName="saved-views-open", default=True, clicked=self._open)
        self.rename_button = QPushButton("Rename", self, objectName="saved-views-rename", autoDefault=False)
        self.rename_button.clicked.connect(lambda: self.names.editItem(self.names.currentItem()))
        self.delete_button = QPushButton("Delete", self, objectName="saved-views-delete", autoDefault=False)
        self.delete_button.clicked.connect(self._delete)
        QShortcut(QKeySequence(Qt.Key.Key_Delete), self.names, self._delete, context=Qt.ShortcutContext.WidgetShortcut)
        close = QPushButton("Close", self, objectName="saved-views-close", autoDefault=False, clicked=self.reject)
        row = layouts.row(self.rename_button, self.delete_button, (layouts.STRETCH, 1), close, self.open_button)
        layouts.column(text, (self.names, 1), row, gap=theme.BETWEEN, margins=theme.AROUND, of=self)
        self.show_names(names)

    def show_names(self, names: list[str]) -> None:
        """List these names, and keep the place in the list."""
        row = max(0, self.names.currentRow())
        self.names.blockSignals(True)
        self.names.clear()
        for name in names:
            item = QListWidgetItem(name)
            if not self._reason:
                item.setFlags(item.flags() | Qt.ItemFlag.ItemIsEditable)
            item.setData(Qt.ItemDataRole.UserRole, name)
            self.names.addItem(item)
        self.names.setCurrentRow(min(row, len(names) - 1))
        self.names.blockSignals(False)
        self._enable()

    def _enable(self) -> None:
        none = "" if self.names.currentItem() is not None else "No view is saved yet."
        set_refusal(self.open_button, none)
        for button in (self.rename_button, self.delete_button):
            set_refusal(button, self._reason or none)

    def _edited(self, item: QListWidgetItem) -> None:
        name, new_name = item.data(Qt.ItemDataRole.UserRole), item.text()
        if new_name != name:
            self.renamed.emit(name, new_name)

    def _open(self) -> None:
        if (item := self.names.currentItem()) is not None:
            self.opened.emit(item.data(Qt.ItemDataRole.UserRole))
            self.accept()

    def _delete(self) -> None:
        if (item := self.names.currentItem()) is not None and not self._reason:
            self.deleted.emit(item.data(Qt.ItemDataRole.UserRole))
