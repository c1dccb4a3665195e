"""Ten example pairs: images with as much of their captions as fits."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from operator import attrgetter
from typing import Final

from PySide6.QtCore import QRect, QRectF, QSize, Qt
from PySide6.QtGui import QPainter, QResizeEvent
from PySide6.QtWidgets import QListView, QStyle, QStyledItemDelegate, QStyleOptionViewItem, QWidget

from explorer import theme
from explorer.models.thumbnails import Thumbnails
from explorer.widgets.image_box import LINE, draw_lines, paint_ground, paint_square
from explorer.widgets.item_list import ITEM_ROLE, Index, ItemListModel, Roles
from trainer.messages import Example

MIN_HEIGHT_PX, MAX_HEIGHT_PX = 84, 132
"""Of a cell, which is as high as all pairs have room for."""
PAD: Final = theme.SPACE
MIN_WIDTH_PX: Final = 340
"""Of a cell: from twice that on there are two columns, and so on."""
EXAMPLES: Final = 10


class PairModel(ItemListModel):
    """A list model of examples, each with its thumbnail."""

    def __init__(self, pictures: Thumbnails, parent: QWidget | None = None) -> None:
        roles: Roles = {
            Qt.ItemDataRole.DisplayRole: attrgetter("caption"),
            Qt.ItemDataRole.DecorationRole: lambda pair: pictures.get(pair.path),
            Qt.ItemDataRole.ToolTipRole: self._tip,
            Qt.ItemDataRole.AccessibleTextRole: lambda pair: f"{pair.item}: {pair.caption}",
        }
        super().__init__(parent, roles)
        self._pictures = pictures
        pictures.arrived.connect(self._arrived)

    def show(self, items: Sequence[Example], *, keep: bool = False) -> None:
        """Show these pairs; do nothing if they are unchanged."""
        if tuple(items) != self.items:
            super().show(tuple(items), keep=keep)

    def problem(self, pair: Example) -> str:
        """Return why an image cannot be shown; empty if it can, or if it has not been loaded yet."""
        return self._pictures.problem(pair.path)

    def _tip(self, pair: Example) -> str:
        return wrapped_tip("\n".join(filter(None, (pair.caption, pair.item, self.problem(pair)))))

    def _arrived(self, path: str) -> None:
        for row, pair in enumerate(self.items):
            if pair.path == path:
                self.dataChanged.emit(self.index(row), self.index(row))


class PairGrid(QListView):
    """A grid of pairs, with as many columns as fit. Arrow keys navigate; the tool tip has the whole caption."""

    def __init__(self, pictures: Thumbnails, parent: QWidget | None = None) -> None:
        super().__init__(parent, objectName="import-pairs", accessibleName="Preview of ten pairs of this data")
        self.pairs = PairModel(pictures, self)
        self.setModel(self.pairs)
        self.setItemDelegate(_Cell(self))
        self.setViewMode(QListView.ViewMode.IconMode)
        self.setFlow(QListView.Flow.LeftToRight)
        self.setWrapping(True)
        self.setUniformItemSizes(True)
        self.setResizeMode(QListView.ResizeMode.Adjust)
        self.setMovement(QListView.Movement.Static)
        self.setVerticalScrollMode(QListView.ScrollMode.ScrollPerPixel)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setMouseTracking(True)
        theme.theme().changed.connect(self.viewport().update)

    def resizeEvent(self, event: QResizeEvent) -> None:
        # With the scroll bar or without, the columns are the same: else they could flicker between two layouts.
        width = self.width() - self.style().pixelMetric(QStyle.PixelMetric.PM_ScrollBarExtent) - theme.SPACE
        columns = max(1, width // MIN_WIDTH_PX)
        rows = -(-EXAMPLES // columns)
        height = (self.height() - theme.SPACE) // rows
        self.setGridSize(QSize(width // columns, min(MAX_HEIGHT_PX, max(MIN_HEIGHT_PX, height))))
        super().resizeEvent(event)


class _Cell(QStyledItemDelegate):
    """Paints an image with up to three lines of its caption and its name."""

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        pair: Example = index.data(ITEM_ROLE)
        painter.save()
        painter.setRenderHints(QPainter.RenderHint.Antialiasing | QPainter.RenderHint.SmoothPixmapTransform)
        cell = option.rect.adjusted(0, 0, -theme.SPACE, -theme.SPACE)
        paint_ground(painter, QRectF(cell), option)
        side = cell.height() - 2 * PAD
        square = QRect(cell.left() + PAD, cell.top() + PAD, side, side)
        problem = option.widget.pairs.problem(pair)
        sign, role = ("triangle-alert", "bad") if problem else ("image", "disabled")
        paint_square(painter, square, index.data(Qt.ItemDataRole.DecorationRole), sign=sign, role=role)
        left = square.right() + theme.INSIDE + theme.SPACE
        room = QRect(left, square.top(), cell.right() - left - theme.SPACE, side - LINE)
        painter.setFont(option.font)
        painter.setPen(theme.color("text"))
        draw_lines(painter, room, pair.caption)
        theme.text_pen(painter, theme.SMALL_PX, "bad" if problem else "secondary")
        below = QRect(room.left(), square.bottom() - LINE + 1, room.width(), LINE)
        text = problem or " · ".join(part for part in (pair.label, pair.item) if part)
        elide = Qt.TextElideMode.ElideRight if problem else Qt.TextElideMode.ElideMiddle
        painter.drawText(
            below,
            int(Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft),
            painter.fontMetrics().elidedText(text, elide, below.width()),
        )
        painter.restore()

    def sizeHint(self, option: QStyleOptionViewItem, _index: Index) -> QSize:
        return option.widget.gridSize()


def wrapped_tip(text: str) -> str:
    """Return a tool tip in readable lines; that its tags are no HTML is the style sheet's, as of every tool tip."""
    return "\n".join(textwrap.fill(line, 90) for line in text.splitlines())
