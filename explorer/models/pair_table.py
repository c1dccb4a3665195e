"""A table model of pairs with image, caption and numbers; sorting costs one index array even for a million rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from jaxtyping import Int
from msgspec import Struct
from PySide6.QtCore import QAbstractTableModel, QModelIndex, QObject, QPersistentModelIndex, Qt

from explorer.event_loop.background import Background
from explorer.models.thumbnails import Thumbnails
from trainer.store import Items
from trainer.store.columns import StoredColumn

Index = QModelIndex | QPersistentModelIndex

SORTED_AT_ONCE: Final = 20_000
"""More lines are sorted on a thread."""
PAIR_ROLE: Final = Qt.ItemDataRole.UserRole
"""The pair's row in the snapshot."""


class PairColumn(Struct, frozen=True):
    """One column of numbers."""

    key: str  # Names the column for programs.
    words: str
    hint: str  # What it means.
    values: np.ndarray  # One per pair of the table.
    digits: int = 2  # After the point.
    signed: bool = False  # Whether a plus sign is written.
    names: tuple[str, ...] = ()  # What 0, 1, ... are called, where the numbers stand for words.
    spare: int = 0  # A table without room leaves out the columns of the highest number first, then the last ones.

    def text(self, row: int) -> str:
        """Format the value with a true minus sign; a dash marks a missing one."""
        value = float(self.values[row])
        if np.isnan(value):
            return "–"
        if self.names:
            return self.names[int(value)]
        if self.signed and value == 0:
            return "0"
        return f"{value:{'+' if self.signed else ''},.{self.digits}f}".replace("-", "−")


class PairTableModel(QAbstractTableModel):
    """A table model of image, caption, class and number columns; sorting only builds an index array."""

    FIXED: Final = ("Pair", "Class")

    def __init__(
        self, pictures: Thumbnails, parent: QObject | None = None, background: Background | None = None
    ) -> None:
        super().__init__(parent)
        self._pictures, self._background = pictures, background
        self._items: Items | None = None
        self._rows: Int[np.ndarray, " n"] = np.empty(0, np.int64)
        self._order: Int[np.ndarray, " n"] = self._rows
        self.columns: tuple[PairColumn, ...] = ()
        self._sorted = (-1, Qt.SortOrder.AscendingOrder)
        self._line_of: dict[str, int] = {}
        pictures.arrived.connect(self._on_arrived)

    @property
    def pairs(self) -> Int[np.ndarray, " n"]:
        """The snapshot rows in display order."""
        return self._rows[self._order]

    def show(self, items: Items | None, rows: Int[np.ndarray, " n"], columns: Sequence[PairColumn] = ()) -> None:
        """Show these pairs of a snapshot, keeping the sort column if it still exists."""
        key = self._key(self._sorted[0])
        self.beginResetModel()
        self._items, self._rows, self.columns = items, np.asarray(rows, np.int64), tuple(columns)
        self._line_of.clear()
        column = next((i for i in range(self.columnCount()) if self._key(i) == key), -1) if key else -1
        self._sorted = (column, self._sorted[1])
        self._order = np.arange(len(self._rows))
        if not self._is_long:
            self._order = self._ordered()
        self.endResetModel()
        if self._is_long:
            self._sort_soon()

    @property
    def has_classes(self) -> bool:
        """Whether the data give classes, by the first thousand lines."""
        return self._items is not None and any(self._items.label[row] for row in self._rows[:1000])

    def place_of(self, pair: int) -> int:
        """Return the line that shows a pair; -1 if there is none."""
        lines = np.flatnonzero(self._rows[self._order] == pair)
        return int(lines[0]) if len(lines) else -1

    def lines_of(self, pairs: Int[np.ndarray, " k"]) -> Int[np.ndarray, " j"]:
        """Return the lines that show these pairs, ascending."""
        return np.flatnonzero(np.isin(self._rows[self._order], pairs))

    def place_at(self, line: int) -> int:
        """Return the index of a line's pair in the arrays passed to the table."""
        return int(self._order[line])

    # -- Qt's side ---------------------------------------------------------------------------------------------

    def rowCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008
        return 0 if parent.isValid() else len(self._rows)

    def columnCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008
        return 0 if parent.isValid() else len(self.FIXED) + len(self.columns)

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if orientation is not Qt.Orientation.Horizontal or not 0 <= section < self.columnCount():
            return None
        number = self.columns[section - len(self.FIXED)] if section >= len(self.FIXED) else None
        if role == Qt.ItemDataRole.DisplayRole:
            return number.words if number else self.FIXED[section]
        if role == Qt.ItemDataRole.ToolTipRole:
            return number.hint if number else None
        if role == Qt.ItemDataRole.TextAlignmentRole:
            side = Qt.AlignmentFlag.AlignRight if number else Qt.AlignmentFlag.AlignLeft
            return int(side | Qt.AlignmentFlag.AlignVCenter)
        return None

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if self._items is None or not index.isValid() or index.row() >= len(self._order):
            return None
        row = int(self._order[index.row()])
        pair, column = int(self._rows[row]), index.column()
        if role == PAIR_ROLE:
            return pair
        if role == Qt.ItemDataRole.DecorationRole and column == 0:
            return self._picture(pair, index.row())
        if role == Qt.ItemDataRole.DisplayRole:
            return self._text(pair, row, column)
        if role == Qt.ItemDataRole.TextAlignmentRole and column >= len(self.FIXED):
            return int(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        if role == Qt.ItemDataRole.ToolTipRole and column == 0:
            return f"{self._items.caption[pair]}\n{self._items.path[pair]}".strip()
        if role == Qt.ItemDataRole.AccessibleTextRole:
            head = self.headerData(column, Qt.Orientation.Horizontal).replace("\n", " ")
            return f"{head}: {self._text(pair, row, column)}"
        return None

    def sort(self, column: int, order: Qt.SortOrder = Qt.SortOrder.AscendingOrder) -> None:
        self._sorted = (column, order)
        if self._is_long:
            self._sort_soon()
        else:
            self._reorder(self._ordered())

    @property
    def _is_long(self) -> bool:
        """Whether sorting would take noticeable time and a thread is available."""
        return self._background is not None and len(self._rows) > SORTED_AT_ONCE

    def _sort_soon(self) -> None:
        """Sort on a thread; the current order stays until then."""
        sorting = self._sorted
        if self._background is None or self._items is None:
            return
        if sorting[0] < 0:
            self._background.forget(self, "order")
            return
        key = (self._rows, sorting)

        def take(order: np.ndarray) -> None:
            if self._rows is key[0] and self._sorted == sorting:
                self._reorder(order)

        values = self._values(sorting[0])
        self._background.run(self, ordered, values, self._rows, sorting[1], done=take, key="order")

    def _reorder(self, order: Int[np.ndarray, " n"]) -> None:
        self.layoutAboutToBeChanged.emit()
        before = self.persistentIndexList()
        rows = [int(self._order[index.row()]) for index in before]
        self._order = order
        self._line_of.clear()
        if before:
            line_of = np.empty(len(self._order), np.int64)
            line_of[self._order] = np.arange(len(self._order))
            after = [self.index(int(line_of[p]), index.column()) for p, index in zip(rows, before, strict=True)]
            self.changePersistentIndexList(before, after)
        self.layoutChanged.emit()

    def _text(self, pair: int, row: int, column: int) -> str:
        if column == 0:
            return self._items.caption[pair] or self._items.path[pair].rpartition("/")[2]
        return self._items.label[pair] if column == 1 else self.columns[column - len(self.FIXED)].text(row)

    def _picture(self, pair: int, line: int) -> Any:
        path = self._items.path[pair]
        self._line_of[path] = line
        return self._pictures.get(path)

    def _on_arrived(self, path: str) -> None:
        line = self._line_of.get(path, -1)
        if 0 <= line < len(self._rows):
            index = self.index(line, 0)
            self.dataChanged.emit(index, index, [Qt.ItemDataRole.DecorationRole])

    def _key(self, column: int) -> str:
        if column < 0:
            return ""
        return self.FIXED[column] if column < len(self.FIXED) else self.columns[column - len(self.FIXED)].key

    def _ordered(self) -> Int[np.ndarray, " n"]:
        column, order = self._sorted
        if column < 0 or self._items is None:
            return np.arange(len(self._rows))
        return ordered(self._values(column), self._rows, order)

    def _values(self, column: int) -> Sequence[str] | np.ndarray:
        """Return the texts of every pair of the snapshot, or the numbers of the rows shown."""
        if column < len(self.FIXED) and self._items is not None:
            return self._items.caption if column == 0 else self._items.label
        return np.asarray(self.columns[column - len(self.FIXED)].values)


def ordered(
    values: Sequence[str] | np.ndarray, rows: Int[np.ndarray, " n"], order: Qt.SortOrder
) -> Int[np.ndarray, " n"]:
    """Return a stable sort order of `rows` by value: texts of every pair, or numbers of the rows."""
    up = order is Qt.SortOrder.AscendingOrder
    if isinstance(values, np.ndarray):
        numbers = np.asarray(values, np.float64)
        # What has no value is neither small nor large: NaN sorts last either way.
        return np.argsort(numbers if up else -numbers, kind="stable")
    if isinstance(values, StoredColumn):
        ascending = values.order(rows)
    else:
        texts = [values[row] for row in rows.tolist()]
        ascending = np.array(sorted(range(len(texts)), key=texts.__getitem__), np.int64)
    return ascending if up else ascending[::-1]
