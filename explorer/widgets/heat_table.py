"""A table of numbers with shaded cells; keyboard, scrolling and accessibility come from Qt's table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
from jaxtyping import Float
from msgspec import Struct
from PySide6.QtCore import QAbstractTableModel, QModelIndex, QPersistentModelIndex, QRectF, Qt, Signal
from PySide6.QtGui import QColor, QFont, QPainter, QPen
from PySide6.QtWidgets import QAbstractItemView, QHeaderView, QStyle, QStyledItemDelegate, QTableView, QWidget

from explorer import theme

Index = QModelIndex | QPersistentModelIndex

LINE_PX: Final = 24
LEAST_COLUMN_PX: Final = 38
EDITED_PX: Final = 56
MOST_HEADER_PX: Final = 250
DEEPEST: Final = 0.62
"""Opacity of the color behind a number whose shade is -1 or 1."""


class HeatData(Struct, frozen=True):
    """The data of the table."""

    rows: tuple[str, ...]  # Names of the rows.
    columns: tuple[str, ...]
    values: Float[np.ndarray, "r c"]  # NaN where there is nothing.
    shade: Float[np.ndarray, "r c"]  # -1..1; below zero in the first color, above in the second.
    text: Callable[[int, int, float], str]
    colors: tuple[str, str] = ("run_a", "run_b")  # `#rrggbb` or tokens of the two ends.
    editable: frozenset[int] = frozenset()  # Columns that can be edited.
    strong: frozenset[int] = frozenset()  # Rows set apart by weight.
    marked: frozenset[tuple[int, int]] = frozenset()  # Cells set apart by weight and a frame.
    tip: Callable[[int, int], str] = lambda _row, _column: ""


class HeatTable(QTableView):
    """A table with shaded cells."""

    cell_chosen = Signal(int, int)  # Row and column of the current cell.
    edited = Signal(int, int, str)  # Row, column and the text that the person typed.

    def __init__(self, name: str, label: str, parent: QWidget | None = None) -> None:
        super().__init__(parent, objectName=name, accessibleName=label)
        self.number_px = theme.SMALL_PX
        self._model = _Model(self)
        self._model.edited.connect(self.edited)
        self.setModel(self._model)
        self.setItemDelegate(_Cell(self))
        self.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self.setShowGrid(False)
        self.setTabKeyNavigation(False)
        self.setEditTriggers(
            QAbstractItemView.EditTrigger.DoubleClicked
            | QAbstractItemView.EditTrigger.EditKeyPressed
            | QAbstractItemView.EditTrigger.AnyKeyPressed
        )
        self.setHorizontalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        rows, columns = self.verticalHeader(), self.horizontalHeader()
        rows.setStyleSheet("QHeaderView::section { border: none; font-weight: normal; }")
        rows.setDefaultSectionSize(LINE_PX)
        rows.setMinimumSectionSize(LINE_PX)
        rows.setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
        rows.setMaximumWidth(MOST_HEADER_PX)
        rows.setDefaultAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)
        rows.setTextElideMode(Qt.TextElideMode.ElideRight)
        columns.setStyleSheet("QHeaderView::section { padding: 4px 1px; font-weight: normal; }")
        columns.setSectionResizeMode(QHeaderView.ResizeMode.Stretch)
        columns.setMinimumSectionSize(LEAST_COLUMN_PX)
        columns.setTextElideMode(Qt.TextElideMode.ElideRight)
        self.selectionModel().currentChanged.connect(self._current_changed)
        theme.theme().changed.connect(self.viewport().update)

    @property
    def data_shown(self) -> HeatData | None:
        return self._model.shown

    def show_data(self, data: HeatData) -> None:
        """Show new numbers; the current cell is kept if the shape is unchanged."""
        self._model.show(data)
        for column in data.editable:
            self.horizontalHeader().setSectionResizeMode(column, QHeaderView.ResizeMode.Fixed)
            self.horizontalHeader().resizeSection(column, EDITED_PX)

    def choose(self, row: int, column: int) -> None:
        """Make a cell the current one."""
        self.setCurrentIndex(self._model.index(row, column))

    def _current_changed(self, current: QModelIndex, _previous: QModelIndex) -> None:
        if current.isValid():
            self.cell_chosen.emit(current.row(), current.column())


class _Model(QAbstractTableModel):
    edited = Signal(int, int, str)

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.shown: HeatData | None = None

    def show(self, data: HeatData) -> None:
        before = self.shown
        if before is not None and (before.rows, before.columns) == (data.rows, data.columns):
            self.shown = data
            self.dataChanged.emit(self.index(0, 0), self.index(len(data.rows) - 1, len(data.columns) - 1))
            return
        self.beginResetModel()
        self.shown = data
        self.endResetModel()

    def rowCount(self, parent: Index | None = None) -> int:
        return len(self.shown.rows) if self.shown and not (parent and parent.isValid()) else 0

    def columnCount(self, parent: Index | None = None) -> int:
        return len(self.shown.columns) if self.shown and not (parent and parent.isValid()) else 0

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if self.shown is None or not index.isValid():
            return None
        row, column = index.row(), index.column()
        value = float(self.shown.values[row, column])
        if role == Qt.ItemDataRole.DisplayRole:
            return "" if np.isnan(value) else self.shown.text(row, column, value)
        if role == Qt.ItemDataRole.EditRole:
            return f"{value:g}"
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return int(Qt.AlignmentFlag.AlignCenter)
        if role in (Qt.ItemDataRole.ToolTipRole, Qt.ItemDataRole.AccessibleDescriptionRole):
            names = f"{self.shown.rows[row]}\n{self.shown.columns[column]}"
            return f"{names}\n{self.shown.tip(row, column)}".strip()
        if role == Qt.ItemDataRole.UserRole:
            return float(self.shown.shade[row, column]), row in self.shown.strong, column in self.shown.editable
        return None

    def setData(self, index: Index, value: Any, role: int = Qt.ItemDataRole.EditRole) -> bool:
        if role == Qt.ItemDataRole.EditRole:
            self.edited.emit(index.row(), index.column(), str(value))
            return True
        return False

    def flags(self, index: Index) -> Qt.ItemFlag:
        flags = Qt.ItemFlag.ItemIsEnabled | Qt.ItemFlag.ItemIsSelectable
        if self.shown and index.column() in self.shown.editable and index.row() not in self.shown.strong:
            flags |= Qt.ItemFlag.ItemIsEditable
        return flags

    def headerData(self, section: int, side: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if self.shown is None:
            return None
        names = self.shown.columns if side == Qt.Orientation.Horizontal else self.shown.rows
        if role in (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.ToolTipRole) and section < len(names):
            return names[section]
        return None


class _Cell(QStyledItemDelegate):
    """Paints a number on its shade."""

    def __init__(self, table: HeatTable) -> None:
        super().__init__(table)
        self._table = table

    def setEditorData(self, editor: QWidget, index: Index) -> None:
        """Fill the editor only once, so that updates do not overwrite what is being typed."""
        if not editor.property("filled"):
            editor.setProperty("filled", True)
            super().setEditorData(editor, index)

    def paint(self, painter: QPainter, option: Any, index: Index) -> None:
        shade, strong, editable = index.data(Qt.ItemDataRole.UserRole)
        room = QRectF(option.rect).adjusted(1, 1, -1, -1)
        data = self._table.data_shown
        assert data is not None, "there is no cell without data"
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        ground = QColor(theme.color(data.colors[1] if shade >= 0 else data.colors[0], self._table))
        ground.setAlphaF(DEEPEST * min(abs(shade), 1.0))
        theme.fill_with(painter, ground)
        painter.drawRoundedRect(room, 3, 3)
        marked = (index.row(), index.column()) in data.marked
        if marked or (editable and not strong):
            painter.setPen(QPen(theme.color("text" if marked else "outline"), 1))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRoundedRect(room.adjusted(1, 1, -1, -1), 3, 3)
        if option.state & QStyle.StateFlag.State_Selected:
            painter.setPen(QPen(theme.color("focus"), 2))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRoundedRect(room.adjusted(0.5, 0.5, -0.5, -0.5), 3, 3)
        weight = QFont.Weight.DemiBold if strong or marked else QFont.Weight.Normal
        painter.setFont(theme.pixel_font(self._table.number_px, weight=weight))
        painter.setPen(theme.ink_on(ground))
        painter.drawText(room, int(Qt.AlignmentFlag.AlignCenter), str(index.data() or ""))
        painter.restore()
