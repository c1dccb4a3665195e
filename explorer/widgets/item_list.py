"""A list model of objects, of which functions tell what Qt shows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from PySide6.QtCore import QAbstractListModel, QModelIndex, QObject, QPersistentModelIndex, Qt

Index = QModelIndex | QPersistentModelIndex
Roles = Mapping[Qt.ItemDataRole, Callable[[Any], Any]]
"""Role of Qt -> what it is for an object."""
ITEM_ROLE: Final = Qt.ItemDataRole.UserRole
"""Of an index: its object."""
ENABLED_ROLE: Final = Qt.ItemDataRole(Qt.ItemDataRole.UserRole + 1)
"""Of an object: whether it can be picked; all can where nothing tells."""


class ItemListModel(QAbstractListModel):
    """A list model of objects; `ITEM_ROLE` gives the object itself.

    Attributes:
        items: In the order shown.
    """

    def __init__(self, parent: QObject | None, roles: Roles) -> None:
        super().__init__(parent)
        self.items: Sequence[Any] = ()
        self._roles: dict[Any, Callable[[Any], Any]] = {**roles, ITEM_ROLE: lambda item: item}

    def show(self, items: Sequence[Any], *, keep: bool = False) -> None:
        """Show exactly these; `keep`: they are the same rows as before with other texts, and selection stays."""
        if keep:
            self.items = items
            if items:
                self.dataChanged.emit(self.index(0), self.index(len(items) - 1))
            return
        self.beginResetModel()
        self.items = items
        self.endResetModel()

    def rowCount(self, parent: Index | None = None) -> int:
        return 0 if parent is not None and parent.isValid() else len(self.items)

    def flags(self, index: Index) -> Qt.ItemFlag:
        may_pick = self.data(index, ENABLED_ROLE)
        return super().flags(index) if may_pick is None or may_pick else Qt.ItemFlag.ItemNeverHasChildren

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        read = self._roles.get(role)
        return read(self.items[index.row()]) if read is not None and 0 <= index.row() < len(self.items) else None
