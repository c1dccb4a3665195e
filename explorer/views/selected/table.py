"""A virtual, sortable table of pairs with thumbnails, whose selection is given as pairs."""

from __future__ import annotations

from typing import Final

import numpy as np
from jaxtyping import Int
from PySide6.QtCore import (
    QItemSelection,
    QItemSelectionModel,
    QItemSelectionRange,
    QModelIndex,
    QPersistentModelIndex,
    QPoint,
    QRect,
    QSignalBlocker,
    QSize,
    Qt,
    Signal,
)
from PySide6.QtGui import QKeyEvent, QPainter, QPaintEvent, QPen, QResizeEvent
from PySide6.QtWidgets import (
    QAbstractItemView,
    QHeaderView,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QTableView,
    QWidget,
)

from explorer import theme
from explorer.event_loop.background import Background
from explorer.models.pair_table import PAIR_ROLE, PairTableModel
from explorer.models.thumbnails import Thumbnails
from explorer.widgets.cells import CELL_PX, paint_ground
from explorer.widgets.elided_label import wrapped
from explorer.widgets.sort_header import SortHeader

PICTURE_PX: Final = 36
LINE_PX: Final = 48
"""Of three lines of a caption, which is small for it."""
LEAST_PX: Final = 40
RING_PX: Final = 2
"""Width of a column of numbers."""
CLASS_PX: Final = 88
"""Of a class at least; twice as much where two captions have room beside it."""
CAPTION_PX: Final = 184
"""Of a picture and its caption at least."""
MOST_CAPTION_PX: Final = 560
"""Of them at most: what is left widens the numbers."""
FEW_LINES, LOW_LINE_PX = 5, 32
"""A narrow table of more lines has low ones."""
MOVING_KEYS: Final = (
    *(Qt.Key.Key_Up, Qt.Key.Key_Down, Qt.Key.Key_Left, Qt.Key.Key_Right),
    *(Qt.Key.Key_Home, Qt.Key.Key_End, Qt.Key.Key_PageUp, Qt.Key.Key_PageDown),
)
MOST_HINTED: Final = 1_000
MOST_MARKED: Final = 20_000
"""More selected pairs are not marked line by line: Qt needs a range for each."""


class PairTable(QTableView):
    """A table with one pair per row."""

    chosen = Signal(object)  # The selected pairs, rows of the snapshot, after a person selected lines.
    hovered = Signal(int)  # The pair under the pointer or the keyboard; -1 for none.

    def __init__(
        self,
        pictures: Thumbnails,
        *,
        name: str,
        label: str,
        background: Background | None = None,
        narrow: bool = False,
        parent: QWidget | None = None,
    ) -> None:
        """Create a table; a `narrow` one is as high as its lines, and leaves out numbers before the class."""
        super().__init__(parent, objectName=name, accessibleName=label, showGrid=False, wordWrap=False)
        self._narrow = narrow
        self.pairs = PairTableModel(pictures, self, background)
        self._class_px = CLASS_PX
        self._least_px: list[int] = []
        self._spare_px, self._ringed_line = 0, -1
        self.setHorizontalHeader(SortHeader(self))
        self.setModel(self.pairs)
        self.setItemDelegateForColumn(0, PictureCell(self))
        self.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.setSelectionMode(QAbstractItemView.SelectionMode.ExtendedSelection)
        self.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setHorizontalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setMouseTracking(True)
        self.setTabKeyNavigation(False)
        self.verticalHeader().hide()
        # Fixed: a header that measured its sections would touch every one of a million.
        self.verticalHeader().setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
        header = self.horizontalHeader()
        header.setHighlightSections(False)
        header.setMinimumSectionSize(LEAST_PX)
        header.setSortIndicator(-1, Qt.SortOrder.AscendingOrder)
        header.setSortIndicatorClearable(False)
        self.setSortingEnabled(True)
        self.selectionModel().selectionChanged.connect(lambda *_: self._announce())
        self.entered.connect(lambda index: self.hovered.emit(index.data(PAIR_ROLE)))
        self.pairs.modelReset.connect(self._fit_columns)
        theme.theme().changed.connect(self.viewport().update)

    def sizeHint(self) -> QSize:
        """Return room for all lines of a narrow table; Qt's own is the same for any number."""
        if not self._narrow:
            return super().sizeHint()
        lines, header = min(self.pairs.rowCount(), MOST_HINTED) * self._line_px(), self.horizontalHeader()
        head = max(header.sizeHint().height(), header.minimumHeight())
        return QSize(super().sizeHint().width(), head + lines + 2 * self.frameWidth())

    def _line_px(self) -> int:
        return LOW_LINE_PX if self._narrow and self.pairs.rowCount() > FEW_LINES else LINE_PX

    def chosen_pairs(self) -> Int[np.ndarray, " k"]:
        """Return the selected pairs, ascending."""
        listed = self.pairs.pairs
        selection = self.selectionModel().selection()
        ranges = [np.arange(each.top(), each.bottom() + 1) for each in selection]
        return np.unique(listed[np.concatenate(ranges)]) if ranges else listed[:0]

    def mark(self, pairs: Int[np.ndarray, " k"], current: int | None = None) -> None:
        """Show these pairs as selected, if listed, and this one as the current of them, without emitting signals."""
        line = -1 if current is None else self.pairs.place_of(current)
        if np.array_equal(np.intersect1d(pairs, self.pairs.pairs), self.chosen_pairs()):
            if line not in (-1, self.currentIndex().row()):
                self._make_current(line)
            return
        lines = self.pairs.lines_of(pairs)[:MOST_MARKED]
        selection, last = QItemSelection(), self.pairs.columnCount() - 1
        for block in np.split(lines, np.flatnonzero(np.diff(lines) > 1) + 1) if len(lines) else ():
            first, end = self.pairs.index(int(block[0]), 0), self.pairs.index(int(block[-1]), last)
            selection.append(QItemSelectionRange(first, end))
        with QSignalBlocker(self.selectionModel()):
            self.selectionModel().select(selection, QItemSelectionModel.SelectionFlag.ClearAndSelect)
        self.viewport().update()
        if len(lines):
            self._make_current(line if line >= 0 else int(lines[0]))

    def _make_current(self, line: int) -> None:
        """Draw the ring around this line, and scroll to it."""
        index = self.pairs.index(line, 0)
        with QSignalBlocker(self.selectionModel()):
            self.selectionModel().setCurrentIndex(index, QItemSelectionModel.SelectionFlag.NoUpdate)
        self.viewport().update()
        self.scrollTo(index)

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        if (line := self.ringed()) >= 0:
            painter = QPainter(self.viewport())
            painter.setPen(QPen(theme.color("focus"), RING_PX))
            top, half = self.rowViewportPosition(line), RING_PX // 2
            painter.drawRect(half, top + half, self.viewport().width() - RING_PX, self.rowHeight(line) - RING_PX)

    def ringed(self) -> int:
        """Return the line with a ring, the current one of several selected or the one told about; -1 for none."""
        current, chosen = self.currentIndex(), self.selectionModel()
        if not chosen.hasSelection():
            return self._ringed_line
        return current.row() if len(self.chosen_pairs()) > 1 and chosen.isSelected(current) else -1

    def ring(self, line: int) -> None:
        """Draw a ring around this line while none is selected."""
        self._ringed_line = line
        self.viewport().update()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Handle keys like Qt, but with Ctrl make the selected pair above or below the current one.

        Qt would move the ring alone, to a line that no view tells about.
        """
        if event.modifiers() != Qt.KeyboardModifier.ControlModifier or event.key() not in MOVING_KEYS:
            super().keyPressEvent(event)
            return
        lines, current = self.pairs.lines_of(self.chosen_pairs()), self.currentIndex().row()
        beyond = {Qt.Key.Key_Up: lines[lines < current][::-1], Qt.Key.Key_Down: lines[lines > current]}
        if len(ahead := beyond.get(Qt.Key(event.key()), lines[:0])):
            self._make_current(int(ahead[0]))
            self._announce()

    def currentChanged(self, current: QModelIndex, previous: QModelIndex) -> None:
        super().currentChanged(current, previous)
        if current.isValid() and self.hasFocus():
            self.hovered.emit(current.data(PAIR_ROLE))

    def leaveEvent(self, event: object) -> None:
        super().leaveEvent(event)
        self.hovered.emit(-1)

    def _announce(self) -> None:
        self.chosen.emit(self.chosen_pairs())

    def resizeEvent(self, event: QResizeEvent) -> None:
        seen = self.visualRect(self.currentIndex()).intersects(QRect(QPoint(), event.oldSize()))
        super().resizeEvent(event)
        self._share()
        if seen:  # a scroll bar that appears, too, must not cover the row that is told about
            self.scrollTo(self.currentIndex())

    def _share(self, *, anew: bool = False) -> None:
        """Give the picture and its caption what the numbers leave; where that is too little, columns are left out.

        With `anew` a width that a person has given the caption is forgotten, as those of the numbers are.
        """
        header = self.horizontalHeader()
        if not self.pairs.columnCount():
            return
        self._widen_numbers(0)  # before some are left out, which keep the width that they have then
        self._leave_out()
        numbers = sum(header.sectionSize(column) for column in range(2, self.pairs.columnCount()))
        if header.sectionSize(1) == self._class_px:  # a person gave it no other width
            self._class_px = min(max(self.viewport().width() - numbers - 2 * CAPTION_PX, CLASS_PX), 2 * CLASS_PX)
            header.resizeSection(1, self._class_px)
        others = numbers + header.sectionSize(1)
        enough = self.viewport().width() - others >= CAPTION_PX
        mode = QHeaderView.ResizeMode.Stretch if enough else QHeaderView.ResizeMode.Interactive
        if anew or header.sectionResizeMode(0) != mode:
            # While a section stretches, Qt takes the room of a hidden one only here.
            header.resizeSections()
            header.setSectionResizeMode(0, mode)
            if not enough:
                header.resizeSection(0, CAPTION_PX)
        self._widen_numbers(self.viewport().width() - others - MOST_CAPTION_PX)

    def _widen_numbers(self, room_px: int) -> None:
        """Share what a caption has no use for among the numbers, but those that a person gave another width."""
        header = self.horizontalHeader()
        sizes = [(n, least) for n, least in enumerate(self._least_px) if n > 1 and not self.isColumnHidden(n)]
        columns = [(n, least) for n, least in sizes if header.sectionSize(n) == least + self._spare_px]
        self._spare_px = max(0, room_px // max(len(columns), 1))
        for number, least in columns:
            header.resizeSection(number, least + self._spare_px)

    def _leave_out(self) -> None:
        """Hide the class and the numbers that are needed least where there is no room; what is sorted by stays."""
        spare = {n: column.spare for n, column in enumerate(self.pairs.columns, 2)}
        numbers, classes = sorted(spare, key=lambda n: (spare[n], n)), [1] * self.pairs.has_classes
        # In a wide table the caption says most, and the class gives way to it first.
        columns = [*classes, *numbers] if self._narrow else [*numbers, *classes]
        room, last = self.viewport().width() - CAPTION_PX, 0
        for column in columns[::-1]:
            fits = sum(self._least_px[n] for n in columns) <= room
            if fits and (not last or spare.get(column) != last):
                break  # else a part of what is left out together would stay
            if column != self.horizontalHeader().sortIndicatorSection():
                columns.remove(column)
                last = spare.get(column, 0)
        for column in range(1, self.pairs.columnCount()):
            self.setColumnHidden(column, column not in columns)

    def _fit_columns(self) -> None:
        header = self.horizontalHeader()
        self.verticalHeader().setDefaultSectionSize(self._line_px())
        if not self.pairs.columnCount():
            return
        metrics = self.fontMetrics()
        self._class_px = CLASS_PX
        headings = [str(self.pairs.headerData(n, Qt.Orientation.Horizontal)) for n in range(self.pairs.columnCount())]
        wide = [max(map(metrics.horizontalAdvance, h.split("\n"))) + 3 * theme.INSIDE + 2 for h in headings]
        # First: a header of another height resizes the table, which shares the room among the columns.
        self._least_px = [max(px, CLASS_PX if n == 1 else LEAST_PX) for n, px in enumerate(wide)]
        self._spare_px = 0
        lines = max(heading.count("\n") + 1 for heading in headings)
        # Qt measures a heading of two lines as one that is cut.
        header.setTextElideMode(Qt.TextElideMode.ElideNone if lines > 1 else Qt.TextElideMode.ElideRight)
        header.setMinimumHeight(lines * metrics.lineSpacing() + 2 * theme.SPACE)
        for column in range(1, self.pairs.columnCount()):
            header.setSectionResizeMode(column, QHeaderView.ResizeMode.Interactive)
            self.setColumnWidth(column, self._least_px[column])
        self._share(anew=True)
        self.updateGeometry()


class PictureCell(QStyledItemDelegate):
    """Paints a thumbnail, without a tint where its line is selected, with up to three lines of caption."""

    def __init__(self, parent: QWidget | None = None, *, edge: int = PICTURE_PX) -> None:
        """Create the delegate; an `edge` of 0 leaves the thumbnail out."""
        super().__init__(parent)
        self._edge = edge

    def paint(
        self, painter: QPainter, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex
    ) -> None:
        paint_ground(self, painter, option, index)
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform)
        edge = min(self._edge, option.rect.height() - theme.SPACE)
        room = QRect(option.rect.left() + CELL_PX, 0, edge, edge)
        room.moveTop(option.rect.top() + (option.rect.height() - edge) // 2)
        picture = index.data(Qt.ItemDataRole.DecorationRole)
        if picture is None:
            painter.fillRect(room, theme.color("sunken"))
        else:
            size = picture.size().scaled(room.size(), Qt.AspectRatioMode.KeepAspectRatio)
            target = QRect(0, 0, size.width(), size.height())
            target.moveCenter(room.center())
            painter.drawPixmap(target, picture)
        selected = option.state & QStyle.StateFlag.State_Selected
        painter.setPen(theme.color("selection_text" if selected else "text"))
        painter.setFont(theme.pixel_font(theme.SMALL_PX))
        metrics = painter.fontMetrics()
        beside = edge + theme.INSIDE + theme.SPACE if edge else 0
        text_rect = option.rect.adjusted(CELL_PX + beside, 0, -theme.INSIDE, 0)
        most = max(1, text_rect.height() // metrics.height())
        lines = wrapped(str(index.data() or ""), metrics, text_rect.width(), most)
        painter.drawText(text_rect, int(Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft), "\n".join(lines))
        painter.restore()
