"""A row of classes with their colors and counts; a click hides a class, a double click shows only it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from operator import attrgetter
from typing import Final

from msgspec import Struct
from PySide6.QtCore import QEvent, QItemSelection, QItemSelectionModel, QPointF, QRect, QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QColor,
    QFontMetrics,
    QKeyEvent,
    QLinearGradient,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QResizeEvent,
)
from PySide6.QtWidgets import (
    QAbstractItemView,
    QListView,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QToolButton,
    QWidget,
)

from explorer import theme
from explorer.widgets.item_list import ITEM_ROLE, Index, ItemListModel, Roles
from explorer.widgets.legend import Mark, paint_mark
from explorer.widgets.point_map.class_glyphs import paint_glyph

ROW_PX = 26
MOST_ROWS, MOST_ROWS_OF_ALL = 3, 8
"""Where the classes fill more lines than this, only the most frequent are shown; where all are, the legend scrolls."""
NAME_LEFT_PX = 26
"""From the left edge of an entry to its name."""
LONGEST_NAME_PX = 160


class ClassEntry(Struct, frozen=True):
    """One line of a legend."""

    name: str
    color: str
    totals: tuple[int, ...]  # How many there are, in each of the data sets that the legend explains.
    selected: int | None = None  # How many are selected; None while nothing is selected anywhere.
    diamond: bool = False
    glyph: int | None = None  # Place of the strokes over its mark, as on the map; None for none.
    only: str = ""  # Letter of the one of two data sets that has it; empty for both, or for one data set.

    @property
    def beside(self) -> str:
        """The text after the name: A or B for a class of one run alone, and the number of selected pairs."""
        return " ".join(filter(None, (self.only, f"{self.selected:,}" if self.selected else "")))

    @property
    def counts(self) -> str:
        """`12 / 128` with a selection, `128` without; `128 · 64` for two data sets."""
        totals = " · ".join(f"{total:,}" for total in self.totals)
        return totals if self.selected is None else f"{self.selected:,} / {totals}"


class ClassLegend(QListView):
    """The classes of a plot in one or two lines, each with its mark, its name, and how many are selected.

    A click hides a class or shows it again, a double click shows only this one, or all again. By keyboard the arrows
    only move, Space is the click, Enter the double click, and Escape shows all.
    """

    isolated = Signal(list)  # Ascending numbers of the entries that are in color; empty for all.

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent, wrapping=True, mouseTracking=True, accessibleName="Legend")
        self._entries = ItemListModel(self, _ROLES)
        self.setModel(self._entries)
        self.setItemDelegate(_EntryDelegate(self))
        self.setSelectionMode(QAbstractItemView.SelectionMode.ExtendedSelection)
        self.setFlow(QListView.Flow.LeftToRight)
        self.setResizeMode(QListView.ResizeMode.Adjust)
        self._before_click: list[int] = []
        self.has_glyphs = self._shows_all = False
        self._more = QToolButton(self, objectName="legendMore", toolTip="Show all classes, or the most frequent ones")
        self._more.clicked.connect(self._show_all)
        self._more.hide()
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.selectionModel().selectionChanged.connect(lambda *_: self.isolated.emit(self.chosen()))
        theme.theme().changed.connect(self.viewport().update)

    def set_entries(self, entries: Sequence[ClassEntry]) -> None:
        """Show these lines; isolated ones stay isolated if only counts and colors change."""
        if [e.name for e in entries] != [e.name for e in self.entries()]:
            self.clearSelection()
        self._entries.show(tuple(entries), keep=len(entries) == len(self.entries()))
        self._take_height()

    def show_glyphs(self, on: bool) -> None:
        """Draw the marks with the strokes of their classes, or plain, as the points of the map are."""
        if on != self.has_glyphs:
            self.has_glyphs = on
            self.viewport().update()

    def entries(self) -> tuple[ClassEntry, ...]:
        """Return the lines as shown."""
        return tuple(self._entries.items)

    def chosen(self) -> list[int]:
        """Return the ascending indices of the isolated entries."""
        return sorted(index.row() for index in self.selectionModel().selectedIndexes())

    def sizeHint(self) -> QSize:
        return QSize(200, ROW_PX + 2)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._take_height()

    def _take_height(self) -> None:
        """Take as many lines as the entries fill, up to `MOST_ROWS`: of more, show the selected and most frequent."""
        widths = [entry_px(entry) for entry in self.entries()]
        visible = set(range(len(widths))) if self._shows_all else self._most_frequent(widths)
        hidden = len(widths) - len(visible)
        for row in range(len(widths)):
            self.setRowHidden(row, row not in visible)
        self._more.setText(f"… {hidden:,} more" if hidden else "Fewer")
        self._more.setVisible(hidden > 0 or (self._shows_all and self._lines(widths) > MOST_ROWS))
        more_px = [] if self._more.isHidden() else [self._more.sizeHint().width()]
        lines = self._lines([widths[row] for row in sorted(visible)] + more_px)
        self.setFixedHeight(ROW_PX * min(lines, MOST_ROWS_OF_ALL if self._shows_all else MOST_ROWS) + 2)
        self._more.resize(self._more.sizeHint().width(), ROW_PX)
        self._more.move(self.viewport().width() - self._more.width(), self.height() - ROW_PX - 1)

    def _most_frequent(self, widths: Sequence[int]) -> set[int]:
        """Return the selected entries and those with most points that fit with the button of the others."""
        if self._lines(widths) <= MOST_ROWS:
            return set(range(len(widths)))
        weights = [(entry.selected or 0, sum(entry.totals)) for entry in self.entries()]
        self._more.setText(f"… {len(widths):,} more")
        more_px = self._more.sizeHint().width()
        visible: set[int] = set()
        for row in sorted(range(len(widths)), key=weights.__getitem__, reverse=True):
            if self._lines([*(widths[each] for each in sorted({*visible, row})), more_px]) > MOST_ROWS:
                break
            visible.add(row)
        return visible

    def _lines(self, widths: Sequence[int]) -> int:
        """Return how many lines entries of these widths fill."""
        lines, x = 1, 0
        for wide in widths:
            lines, x = (lines + 1, wide) if x and x + wide > self.width() - 2 else (lines, x + wide)
        return lines

    def _show_all(self) -> None:
        self._shows_all = not self._shows_all
        self._take_height()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Escape and self.chosen():
            self.clearSelection()
            return
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Space):
            do = self._hide_or_show if event.key() == Qt.Key.Key_Space else self._show_only
            do(self.currentIndex().row(), self.chosen())
            return
        # In a row, up and down go where left and right do.
        sideways = {Qt.Key.Key_Down: Qt.Key.Key_Right, Qt.Key.Key_Up: Qt.Key.Key_Left}.get(Qt.Key(event.key()))
        super().keyPressEvent(event if sideways is None else QKeyEvent(event.type(), sideways, event.modifiers()))

    def selectionCommand(self, _index: Index, event: QEvent | None = None) -> QItemSelectionModel.SelectionFlag:
        # The keys that move, and a drag, hide nothing.
        return QItemSelectionModel.SelectionFlag.NoUpdate

    def mousePressEvent(self, event: QMouseEvent) -> None:
        pressed = self.indexAt(event.position().toPoint())
        if not pressed.isValid():
            return
        self._before_click = self.chosen()
        self._hide_or_show(pressed.row(), self._before_click)
        self.selectionModel().setCurrentIndex(pressed, QItemSelectionModel.SelectionFlag.NoUpdate)

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        pressed = self.indexAt(event.position().toPoint())
        if pressed.isValid():
            # The click before has hidden it, or shown it again.
            self._show_only(pressed.row(), self._before_click)

    def _hide_or_show(self, row: int, before: list[int]) -> None:
        count = len(self.entries())
        in_color = {*(before or range(count))} ^ {row}
        self._choose(in_color if 0 <= row < count and len(in_color) < count else set())

    def _show_only(self, row: int, before: list[int]) -> None:
        self._choose(set() if before == [row] else {row})

    def _choose(self, rows: set[int]) -> None:
        chosen = QItemSelection()
        for row in rows:
            chosen.select(self.model().index(row, 0), self.model().index(row, 0))
        self.selectionModel().select(chosen, QItemSelectionModel.SelectionFlag.ClearAndSelect)


def _tip(entry: ClassEntry) -> str:
    return f"{entry.name}: {entry.counts}. Click (Space) hides or shows it, double click (Enter) shows only it."


_ROLES: Final[Roles] = {
    Qt.ItemDataRole.DisplayRole: attrgetter("name"),
    Qt.ItemDataRole.ToolTipRole: _tip,
    Qt.ItemDataRole.AccessibleTextRole: lambda entry: f"{entry.name}, {entry.counts}",
}


class _EntryDelegate(QStyledItemDelegate):
    """Paints mark and name, and how many are selected."""

    def sizeHint(self, option: QStyleOptionViewItem, index: Index) -> QSize:
        return QSize(entry_px(index.data(ITEM_ROLE)), ROW_PX)

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        entry: ClassEntry = index.data(ITEM_ROLE)
        others = bool(self.parent().chosen()) and not option.state & QStyle.StateFlag.State_Selected
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        _paint_ground(painter, option)
        mark: Mark = "diamond" if entry.diamond else "disc"
        paint_mark(painter, _mark_place(option.rect), mark, theme.color("unselected" if others else entry.color))
        if entry.glyph is not None and getattr(self.parent(), "has_glyphs", False):
            paint_glyph(painter, entry.glyph, _mark_place(option.rect), 4.5)
        painter.setFont(theme.pixel_font(theme.SMALL_PX))
        name_rect = option.rect.adjusted(NAME_LEFT_PX, 0, 0, 0)
        name = painter.fontMetrics().elidedText(entry.name, Qt.TextElideMode.ElideRight, LONGEST_NAME_PX)
        painter.setPen(theme.color("secondary" if others else "text"))
        font = painter.font()
        font.setStrikeOut(others)
        painter.setFont(font)
        painter.drawText(name_rect, Qt.AlignmentFlag.AlignVCenter, name)
        if entry.beside:
            font.setStrikeOut(False)
            painter.setFont(font)
            painter.setPen(theme.color("secondary"))
            right = Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignRight
            painter.drawText(option.rect.adjusted(0, 0, -theme.INSIDE, 0), right, entry.beside)
        painter.restore()


@cache
def _metrics() -> QFontMetrics:
    """Return those of an entry's text: a legend of 200 classes asks 600 times when it is shown."""
    return QFontMetrics(theme.pixel_font(theme.SMALL_PX))


def entry_px(entry: ClassEntry) -> int:
    """Return how wide an entry is: its mark, its name, and how many may be selected."""
    metrics = _metrics()
    name = min(metrics.horizontalAdvance(entry.name), LONGEST_NAME_PX)
    # A selection brings a number, and must not move the entries: it has its room always.
    most = " ".join(filter(None, (entry.only, f"{max(entry.totals, default=0):,}")))
    beside = metrics.horizontalAdvance(most) + theme.SPACE
    return NAME_LEFT_PX + name + beside + theme.INSIDE + theme.SPACE


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
        painter = theme.smooth_painter(self)
        before = theme.BETWEEN if self.letter else 0
        bar = QRectF(theme.INSIDE + before, theme.SPACE, self.width() - 2 * theme.INSIDE - before, 10)
        ramp = QLinearGradient(bar.topLeft(), bar.topRight())
        last = max(len(self._colors) - 1, 1)
        for index in range(0, len(self._colors), max(last // 16, 1)):
            ramp.setColorAt(index / last, self._colors[index])
        theme.fill_with(painter, ramp)
        painter.drawRoundedRect(bar, 3, 3)
        theme.text_pen(painter, theme.SMALL_PX, "secondary")
        if self.letter:
            name = QRectF(theme.INSIDE, bar.center().y() - 10, before, 20)
            painter.drawText(name, Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter, self.letter)
        line = bar.translated(0, bar.height() + theme.SPACE).adjusted(0, 0, 0, theme.INSIDE)
        painter.drawText(line, Qt.AlignmentFlag.AlignLeft, self.ends[0])
        painter.drawText(line, Qt.AlignmentFlag.AlignRight, self.ends[1])


def _paint_ground(painter: QPainter, option: QStyleOptionViewItem) -> None:
    hovered = bool(option.state & QStyle.StateFlag.State_MouseOver)
    focused = bool(option.state & QStyle.StateFlag.State_HasFocus)
    if hovered or focused:
        painter.setPen(theme.color("focus") if focused else Qt.PenStyle.NoPen)
        painter.setBrush(theme.color("hover") if hovered else Qt.BrushStyle.NoBrush)
        painter.drawRoundedRect(QRectF(option.rect).adjusted(0.5, 0.5, -0.5, -0.5), 4, 4)


def _mark_place(row: QRect) -> QPointF:
    return QPointF(row.left() + 14, row.center().y() + 0.5)
