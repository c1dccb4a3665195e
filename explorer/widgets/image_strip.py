"""A strip of thumbnails with short texts; only visible ones are decoded and drawn."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Final

from msgspec import Struct
from PySide6.QtCore import QItemSelectionModel, QPoint, QRect, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QFontMetrics, QKeyEvent, QKeySequence, QPainter, QPixmap, QWheelEvent
from PySide6.QtWidgets import QListView, QStyledItemDelegate, QStyleOptionViewItem, QWidget

from explorer import theme
from explorer.widgets.image_box import LINE, draw_lines, paint_ground, paint_square
from explorer.widgets.item_list import ITEM_ROLE, Index, ItemListModel, Roles

PICTURE: Final = 104
LEAST_TEXT: Final = 120
"""Width of a line of words, in pixels: a dot and two cosines."""
LINES: Final = 2
PAD: Final = 6
DOT: Final = 8
ROLES: Final = {"check": "good", "x": "warn"}
"""Mark of a known truth -> the token of its color."""
MARK: Final = 18


class StripLine(Struct, frozen=True):
    """A line under an image: its words, the color of its dot, and what stands behind the words and is never cut."""

    text: str
    color: str = ""
    share: str = ""


class StripItem(Struct, frozen=True):
    """One image of the strip."""

    path: str  # Of the image file; also its identity. Without one the first line of `tip` is drawn in its square.
    lines: tuple[StripLine, ...] = ()  # Under it; one without a dot wraps over all of them.
    mark: str = ""  # Icon in the corner, as `Verdict.mark`; empty for none.
    problem: str = ""  # Why there is no picture or no answer, in three words; shown in place of the lines.
    tip: str = ""  # What hovering tells.


def _spoken(item: StripItem) -> str:
    return "; ".join([item.path.rpartition("/")[2], *([item.problem] if item.problem else _words(item))])


_STRIP_ROLES: Final[Roles] = {
    Qt.ItemDataRole.ToolTipRole: attrgetter("tip"),
    Qt.ItemDataRole.AccessibleTextRole: _spoken,
}


class ImageStrip(QListView):
    """Thumbnails in one row. Arrow keys move, Delete removes, Home and End jump."""

    current_changed = Signal(str)  # The path of the current picture; empty if there is none.
    remove_asked = Signal(list)  # The paths a person wants to take out.

    def __init__(
        self,
        picture: Callable[[str], QPixmap | None],
        parent: QWidget | None = None,
        *,
        lines: int = LINES,
        edge: int = PICTURE,
    ) -> None:
        """Create an empty strip.

        Args:
            picture: Returns the thumbnail of a path, or None while there is none.
            lines: How many lines of words are under an image.
            edge: Of an image, in pixels.
        """
        super().__init__(parent, wrapping=False, uniformItemSizes=True, mouseTracking=True, accessibleName="Images")
        self._model = ItemListModel(self, _STRIP_ROLES)
        self.setModel(self._model)
        self._cell = _Cell(picture, lines, edge, self)
        self.setItemDelegate(self._cell)
        self.setFlow(QListView.Flow.LeftToRight)
        self.setSpacing(0)
        self.setSelectionMode(QListView.SelectionMode.ExtendedSelection)
        self.setHorizontalScrollMode(QListView.ScrollMode.ScrollPerPixel)
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setFixedHeight(cell_size(lines, edge).height() + 14)
        self.setAcceptDrops(False)
        self.selectionModel().currentChanged.connect(lambda now, _: self.current_changed.emit(self._path(now)))
        theme.theme().changed.connect(self.viewport().update)

    @property
    def items(self) -> tuple[StripItem, ...]:
        """The items from left to right."""
        return tuple(self._model.items)

    @property
    def current(self) -> str:
        """The path of the current image; empty if there is none."""
        return self._path(self.currentIndex())

    def chosen(self) -> list[str]:
        """Return the paths of the chosen images."""
        return [self._path(index) for index in self.selectedIndexes()]

    def show_items(self, items: Sequence[StripItem]) -> None:
        """Show these items; the current image stays current, or its neighbor replaces it."""
        before, row = self.current, self.currentIndex().row()
        # If only texts change, the position stays.
        self._model.show(tuple(items), keep=[item.path for item in items] == [item.path for item in self.items])
        if not items or self.current:
            if not items:
                self.current_changed.emit("")
            return
        paths = [item.path for item in items]  # of vectors all are empty
        row = paths.index(before) if before in paths else min(max(row, 0), len(paths) - 1)
        self._choose_row(row, row)

    def choose(self, path: str, through: str = "") -> None:
        """Make this image current and scroll to it, with those up to `through` as far as they have room."""
        row_of = {item.path: row for row, item in enumerate(self.items)}
        if path in row_of:
            self._choose_row(row_of[path], row_of.get(through, row_of[path]))

    def _choose_row(self, row: int, through: int) -> None:
        index = self._model.index(row)
        self.selectionModel().setCurrentIndex(index, QItemSelectionModel.SelectionFlag.ClearAndSelect)
        self.scrollTo(self._model.index(through))
        self.scrollTo(index)

    def to_start(self) -> None:
        """Forget the current image and scroll to the first: other images will be shown."""
        self.selectionModel().clear()
        self.horizontalScrollBar().setValue(0)

    @property
    def divider(self) -> int:
        """How many images stand before a line; 0 means that there is none."""
        return self._cell.divider

    @divider.setter
    def divider(self, after: int) -> None:
        self._cell.divider = after
        self.viewport().update()

    def picture_arrived(self, path: str) -> None:
        """Draw an image that has become available."""
        for row, item in enumerate(self.items):
            if item.path == path:
                self.update(self._model.index(row))

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.matches(QKeySequence.StandardKey.Delete) or event.key() == Qt.Key.Key_Backspace:
            if chosen := self.chosen():
                self.remove_asked.emit(chosen)
            return
        super().keyPressEvent(event)

    def wheelEvent(self, event: QWheelEvent) -> None:
        """Scroll horizontally with the vertical wheel."""
        delta = event.angleDelta()
        move = event.pixelDelta() if not event.pixelDelta().isNull() else QPoint(delta.x() // 2, delta.y() // 2)
        bar = self.horizontalScrollBar()
        bar.setValue(bar.value() - (move.x() or move.y()))
        event.accept()

    def _path(self, index: Index) -> str:
        item = index.data(ITEM_ROLE)
        return item.path if item else ""


class _Cell(QStyledItemDelegate):
    """Paints one image with its text."""

    def __init__(self, picture: Callable[[str], QPixmap | None], lines: int, edge: int, parent: QWidget) -> None:
        super().__init__(parent)
        self._picture, self._lines, self._edge = picture, lines, edge
        self.divider = 0

    def sizeHint(self, option: QStyleOptionViewItem, index: Index) -> QSize:
        return cell_size(self._lines, self._edge)

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        item: StripItem = index.data(ITEM_ROLE)
        painter.save()
        painter.setRenderHints(QPainter.RenderHint.Antialiasing | QPainter.RenderHint.SmoothPixmapTransform)
        # The view stretches its items to its own height, which has room for a scroll bar.
        cell = QRect(option.rect.topLeft(), cell_size(self._lines, self._edge)).adjusted(2, 2, -2, -2)
        paint_ground(painter, QRectF(cell), option)
        if index.row() == self.divider > 0:
            painter.fillRect(option.rect.left(), cell.top(), 2, cell.height(), theme.color("outline"))
        square = QRect(cell.left() + (cell.width() - self._edge) // 2, cell.top() + PAD, self._edge, self._edge)
        sign, role = ("triangle-alert", "bad") if item.problem else ("image", "disabled")
        painter.setFont(theme.pixel_font(theme.SMALL_PX))
        if item.path:
            paint_square(painter, square, self._picture(item.path), sign=sign, role=role)
        else:
            painter.fillRect(square, theme.color("sunken"))
            painter.setPen(theme.color("secondary"))
            flags = Qt.AlignmentFlag.AlignCenter | Qt.TextFlag.TextWordWrap
            painter.drawText(square, flags, item.tip.partition("\n")[0])
        if item.mark:
            self._paint_mark(painter, square, item.mark)
        text_rect = QRect(cell.left() + PAD, square.bottom() + 5, cell.width() - 2 * PAD, self._lines * LINE)
        if item.problem:
            painter.setPen(theme.color("bad"))
            text = QFontMetrics(painter.font()).elidedText(item.problem, Qt.TextElideMode.ElideRight, text_rect.width())
            painter.drawText(
                text_rect.adjusted(0, 0, 0, LINE - text_rect.height()), int(Qt.AlignmentFlag.AlignVCenter), text
            )
        else:
            self._paint_lines(painter, text_rect, item)
        painter.restore()

    def _paint_mark(self, painter: QPainter, square: QRect, mark: str) -> None:
        circle = QRectF(square.right() - MARK - 3, square.top() + 4, MARK, MARK)
        theme.fill_with(painter, theme.color("surface"))
        painter.drawEllipse(circle)
        # A check mark only where the truth is known: that two runs agree does not say that they are right.
        theme.icon(mark, 12, ROLES.get(mark, "secondary")).paint(painter, circle.adjusted(3, 3, -3, -3).toRect())

    def _paint_lines(self, painter: QPainter, room: QRect, item: StripItem) -> None:
        for index, entry in enumerate(item.lines[: self._lines]):
            line = QRect(room.left(), room.top() + index * LINE, room.width(), LINE)
            if not entry.color:
                painter.setPen(theme.color("text"))
                draw_lines(painter, room, entry.text)
                return
            theme.fill_with(painter, theme.color(entry.color, self))
            painter.drawEllipse(QRectF(line.left() + 1, line.center().y() - DOT / 2 + 1, DOT, DOT))
            painter.setPen(theme.color("text"))
            line.setLeft(line.left() + DOT + 6)
            label = with_share(QFontMetrics(painter.font()), entry.text, entry.share, line.width())
            painter.drawText(line, int(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter), label)


def with_share(metrics: QFontMetrics, text: str, share: str, room: int) -> str:
    """Return a label with its share, `turq…ring > 99 %`: where room is scarce the label is cut, and never its share."""
    left = room - metrics.horizontalAdvance(share)
    return metrics.elidedText(text, Qt.TextElideMode.ElideMiddle, left) + share


def cell_size(lines: int = LINES, edge: int = PICTURE) -> QSize:
    """Return the size of one image with this many lines of words."""
    return QSize(max(edge, LEAST_TEXT) + 2 * PAD + 4, edge + 2 * PAD + lines * LINE + 10)


def _words(item: StripItem) -> list[str]:
    return [f"{line.text}{line.share}" for line in item.lines]
