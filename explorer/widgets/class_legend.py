"""A legend of classes with their colors and counts; a click isolates a class."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import (
    QAbstractListModel,
    QItemSelectionModel,
    QModelIndex,
    QPersistentModelIndex,
    QPointF,
    QRect,
    QRectF,
    QSize,
    Qt,
    Signal,
)
from PySide6.QtGui import QColor, QKeyEvent, QLinearGradient, QMouseEvent, QPainter, QPaintEvent
from PySide6.QtWidgets import QAbstractItemView, QListView, QStyle, QStyledItemDelegate, QStyleOptionViewItem, QWidget

from explorer import theme
from explorer.widgets.legend import Mark, paint_mark
from explorer.widgets.point_map.class_glyphs import paint_glyph

ROW_PX = 26


@dataclass(frozen=True)
class ClassEntry:
    """One line of a legend.

    Attributes:
        totals: How many there are, in each of the data sets that the legend explains.
        glyph: Place of the strokes over its mark, as on the map; None for none.
        selected: How many are selected; None while nothing is selected anywhere.
    """

    name: str
    color: str
    totals: tuple[int, ...]
    selected: int | None = None
    diamond: bool = False
    glyph: int | None = None

    @property
    def counts(self) -> str:
        """`12 / 128` with a selection, `128` without; `128 · 64` for two data sets."""
        totals = " · ".join(f"{total:,}" for total in self.totals)
        return totals if self.selected is None else f"{self.selected:,} / {totals}"


class ClassLegend(QListView):
    """The classes of a plot, each with its mark, name and counts.

    A click isolates a class, Ctrl + click several, a second click on the only one ends it; so does Escape. By keyboard
    the arrows isolate one after the other, Enter or Space ends it.

    Signals:
        isolated: Ascending numbers of the isolated entries; empty for none.
    """

    isolated = Signal(list)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._entries = _Entries(self)
        self.setModel(self._entries)
        self.setItemDelegate(_EntryDelegate(self))
        self.setSelectionMode(QAbstractItemView.SelectionMode.ExtendedSelection)
        self.setUniformItemSizes(True)
        self.setMouseTracking(True)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setAccessibleName("Legend")
        self.selectionModel().selectionChanged.connect(lambda *_: self.isolated.emit(self.chosen()))
        theme.theme().changed.connect(self.viewport().update)

    def set_entries(self, entries: Sequence[ClassEntry]) -> None:
        """Show these lines; isolated ones stay isolated if only counts and colors change."""
        if [e.name for e in entries] != [e.name for e in self._entries.entries]:
            self.clearSelection()
        self._entries.show(tuple(entries))
        self.updateGeometry()

    def entries(self) -> tuple[ClassEntry, ...]:
        """Return the lines as shown."""
        return self._entries.entries

    def chosen(self) -> list[int]:
        """Return the ascending indices of the isolated entries."""
        return sorted(index.row() for index in self.selectionModel().selectedIndexes())

    def sizeHint(self) -> QSize:
        return QSize(200, ROW_PX * min(max(len(self.entries()), 1), 12) + 2)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Escape and self.chosen():
            self.clearSelection()
            return
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Space):
            self._toggle(self.currentIndex())
            return
        super().keyPressEvent(event)

    def _toggle(self, index: QModelIndex) -> None:
        if self.chosen() == [index.row()]:
            self.clearSelection()
        else:
            self.selectionModel().select(index, QItemSelectionModel.SelectionFlag.ClearAndSelect)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        pressed = self.indexAt(event.position().toPoint())
        plain = event.modifiers() == Qt.KeyboardModifier.NoModifier
        if plain and (not pressed.isValid() or self.chosen() == [pressed.row()]):
            self.clearSelection()
            return
        super().mousePressEvent(event)


class _Entries(QAbstractListModel):
    """The list model of the lines."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.entries: tuple[ClassEntry, ...] = ()

    def show(self, entries: tuple[ClassEntry, ...]) -> None:
        """Replace the lines, keeping Qt's selection if their number is unchanged."""
        if len(entries) == len(self.entries):
            self.entries = entries
            if entries:
                self.dataChanged.emit(self.index(0), self.index(len(entries) - 1))
            return
        self.beginResetModel()
        self.entries = entries
        self.endResetModel()

    def rowCount(self, parent: QModelIndex | QPersistentModelIndex = QModelIndex()) -> int:  # noqa: B008
        return 0 if parent.isValid() else len(self.entries)

    def data(self, index: QModelIndex | QPersistentModelIndex, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        entry = self.entries[index.row()]
        if role in (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.ToolTipRole):
            return entry.name
        if role == Qt.ItemDataRole.AccessibleTextRole:
            return f"{entry.name}, {entry.counts}"
        return entry if role == Qt.ItemDataRole.UserRole else None


class _EntryDelegate(QStyledItemDelegate):
    """Paints mark, name and right-aligned counts."""

    def sizeHint(self, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex) -> QSize:
        return QSize(160, ROW_PX)

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: QModelIndex) -> None:
        entry: ClassEntry = index.data(Qt.ItemDataRole.UserRole)
        chosen = bool(option.state & QStyle.StateFlag.State_Selected)
        others = bool(self.parent().chosen()) and not chosen
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        _paint_ground(painter, option, chosen)
        mark: Mark = "diamond" if entry.diamond else "disc"
        paint_mark(painter, _mark_place(option.rect), mark, theme.color("unselected" if others else entry.color))
        if entry.glyph is not None:
            paint_glyph(painter, entry.glyph, _mark_place(option.rect), 4.5)
        painter.setFont(theme.pixel_font(theme.SMALL_PX))
        numbers = painter.fontMetrics().horizontalAdvance(entry.counts)
        name_rect = option.rect.adjusted(28, 0, -numbers - 2 * theme.INSIDE, 0)
        name = painter.fontMetrics().elidedText(entry.name, Qt.TextElideMode.ElideRight, name_rect.width())
        painter.setPen(theme.color("secondary" if others else "text"))
        painter.drawText(name_rect, Qt.AlignmentFlag.AlignVCenter, name)
        painter.setPen(theme.color("secondary"))
        right = Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignRight
        painter.drawText(option.rect.adjusted(0, 0, -theme.INSIDE, 0), right, entry.counts)
        painter.restore()


class ScaleLegend(QWidget):
    """A legend of a continuous scale: its colors from low to high, and both values."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setFixedHeight(44)
        self._colors: list[QColor] = []
        self.ends = ("", "")
        self.letter = ""

    def show_scale(self, colors: Sequence[QColor], low: float, high: float, *, letter: str = "") -> None:
        """Show these colors from `low` to `high`; `letter` names the run if runs have separate scales."""
        self._colors, self.ends, self.letter = list(colors), (f"{low:.4g}", f"{high:.4g}"), letter
        whose = f" of {letter}" if letter else ""
        self.setAccessibleName(f"Scale{whose} from {self.ends[0]} to {self.ends[1]}")
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        before = theme.BETWEEN if self.letter else 0
        bar = QRectF(theme.INSIDE + before, theme.SPACE, self.width() - 2 * theme.INSIDE - before, 10)
        ramp = QLinearGradient(bar.topLeft(), bar.topRight())
        last = max(len(self._colors) - 1, 1)
        for index in range(0, len(self._colors), max(last // 16, 1)):
            ramp.setColorAt(index / last, self._colors[index])
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(ramp)
        painter.drawRoundedRect(bar, 3, 3)
        painter.setFont(theme.pixel_font(theme.SMALL_PX))
        painter.setPen(theme.color("secondary"))
        if self.letter:
            name = QRectF(theme.INSIDE, bar.center().y() - 10, before, 20)
            painter.drawText(name, Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter, self.letter)
        line = bar.translated(0, bar.height() + theme.SPACE).adjusted(0, 0, 0, theme.INSIDE)
        painter.drawText(line, Qt.AlignmentFlag.AlignLeft, self.ends[0])
        painter.drawText(line, Qt.AlignmentFlag.AlignRight, self.ends[1])


def _paint_ground(painter: QPainter, option: QStyleOptionViewItem, chosen: bool) -> None:
    hovered = bool(option.state & QStyle.StateFlag.State_MouseOver)
    focused = bool(option.state & QStyle.StateFlag.State_HasFocus)
    if chosen or hovered or focused:
        painter.setPen(theme.color("focus") if focused else Qt.PenStyle.NoPen)
        painter.setBrush(
            theme.color("selection" if chosen else "hover") if chosen or hovered else Qt.BrushStyle.NoBrush
        )
        painter.drawRoundedRect(QRectF(option.rect).adjusted(0.5, 0.5, -0.5, -0.5), 4, 4)


def _mark_place(row: QRect) -> QPointF:
    return QPointF(row.left() + 14, row.center().y() + 0.5)
