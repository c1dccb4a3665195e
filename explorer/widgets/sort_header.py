"""A header of a table that paints the arrow of the sorted column next to its words."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QPointF, QRect, Qt
from PySide6.QtGui import QPainter, QPen, QPolygonF
from PySide6.QtWidgets import QHeaderView, QWidget

from explorer import theme
from explorer.widgets.cells import CELL_PX

ARROW_PX: Final = 7
RIGHT_PX: Final = 1
"""The arrow stands in the padding at the right end of its section, where it covers no words, or left of those that end
there."""


class SortHeader(QHeaderView):
    """A horizontal header; Qt's own arrow would take room from the words and cut right-aligned ones."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(Qt.Orientation.Horizontal, parent, textElideMode=Qt.TextElideMode.ElideRight)
        self.setSectionsClickable(True)

    def arrow(self, rect: QRect, section: int) -> QRect:
        """Return where the arrow of a section with this rectangle is."""
        left, top = rect.right() - RIGHT_PX - ARROW_PX, rect.center().y() - ARROW_PX // 4
        side = self.model().headerData(section, self.orientation(), Qt.ItemDataRole.TextAlignmentRole)
        if side is not None and int(side) & int(Qt.AlignmentFlag.AlignRight):
            before = self._words_left(rect, section) - theme.SPACE - ARROW_PX
            left = before if before > rect.left() else left
        return QRect(left, top, ARROW_PX, ARROW_PX // 2 + 1)

    def _words_left(self, rect: QRect, section: int) -> int:
        text = str(self.model().headerData(section, self.orientation()) or "")
        return rect.right() - CELL_PX - max(map(self.fontMetrics().horizontalAdvance, text.split("\n")))

    def paintSection(self, painter: QPainter, rect: QRect, section: int) -> None:
        painter.save()
        super().paintSection(painter, rect, section)
        painter.restore()
        if not self.isSortIndicatorShown() or self.sortIndicatorSection() != section:
            return
        arrow = self.arrow(rect, section)
        ends = [QPointF(arrow.left(), arrow.top()), QPointF(arrow.right() + 1, arrow.top())]
        tip = QPointF(arrow.left() + ARROW_PX / 2, arrow.bottom() + 1)
        if self.sortIndicatorOrder() == Qt.SortOrder.AscendingOrder:
            ends = [QPointF(end.x(), arrow.bottom() + 1) for end in ends]
            tip.setY(arrow.top())
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(QPen(theme.color("secondary"), 1.5))
        painter.drawPolyline(QPolygonF([ends[0], tip, ends[1]]))
        painter.restore()
