"""Pairs as a list: picture and caption of each, decoded only when its row is seen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from PySide6.QtCore import QAbstractListModel, QModelIndex, QObject, QPersistentModelIndex, QSize, Qt

from explorer import theme
from explorer.models.pictures import Pictures

MOST_ROWS: Final = 500
ROW_ROLE: Final = Qt.ItemDataRole.UserRole
"""The pair's row in the snapshot."""


@dataclass(frozen=True)
class Pair:
    """One pair as it is shown; `path` is where its image is, empty if there is none."""

    row: int
    caption: str
    label: str
    path: str


class PairsModel(QAbstractListModel):
    """The first 500 of some pairs."""

    def __init__(self, pictures: Pictures, parent: QObject | None = None, *, edge: int = 48) -> None:
        super().__init__(parent)
        self._pictures, self._edge = pictures, edge
        self._pairs: tuple[Pair, ...] = ()
        self._rows_of: dict[str, list[int]] = {}
        pictures.arrived.connect(self._on_arrived)

    def set_pairs(self, pairs: Sequence[Pair]) -> None:
        """Lists these pairs, the first 500 of them."""
        self.beginResetModel()
        self._pairs = tuple(pairs[:MOST_ROWS])
        self._rows_of = {}
        for place, pair in enumerate(self._pairs):
            self._rows_of.setdefault(pair.path, []).append(place)
        self.endResetModel()

    def rowCount(self, parent: QModelIndex | QPersistentModelIndex = QModelIndex()) -> int:  # noqa: B008
        return 0 if parent.isValid() else len(self._pairs)

    def data(self, index: QModelIndex | QPersistentModelIndex, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        pair = self._pairs[index.row()]
        if role == Qt.ItemDataRole.DisplayRole:
            return pair.caption or pair.label or pair.path
        if role == Qt.ItemDataRole.DecorationRole:
            return self._pictures.get(pair.path)
        if role == Qt.ItemDataRole.ToolTipRole:
            return pair.path
        if role == Qt.ItemDataRole.SizeHintRole:
            return QSize(0, self._edge + theme.INSIDE)
        if role == Qt.ItemDataRole.AccessibleTextRole:
            return f"pair {pair.row}: {pair.caption}"
        return pair.row if role == ROW_ROLE else None

    def _on_arrived(self, path: str) -> None:
        for place in self._rows_of.get(path, ()):
            index = self.index(place)
            self.dataChanged.emit(index, index, [Qt.ItemDataRole.DecorationRole])
