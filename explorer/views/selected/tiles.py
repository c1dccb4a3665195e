"""Pairs as thumbnails with short captions: virtual, markable, selectable."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, cast

from msgspec import Struct
from PySide6.QtCore import QItemSelection, QItemSelectionModel, QRect, QRectF, QSignalBlocker, QSize, Qt, Signal
from PySide6.QtGui import QFontMetrics, QPainter, QPen, QResizeEvent
from PySide6.QtWidgets import QListView, QStyle, QStyledItemDelegate, QStyleOptionViewItem, QWidget

from explorer import theme
from explorer.models.thumbnails import Thumbnails
from explorer.widgets.elided_label import wrapped
from explorer.widgets.image_box import paint_ground
from explorer.widgets.item_list import ITEM_ROLE, Index, ItemListModel, Roles

LINE_PX = 16
MOST_LINES: Final = 5
"""Of a tile: a longer caption is cut."""
MOST_MEASURED: Final = 1_000
"""Captions, of which the longest says how high all tiles are."""


class PairTile(Struct, frozen=True):
    """One pair."""

    pair: int  # Row of the snapshot.
    path: str  # Of its image; empty if there is none.
    caption: str
    words: str = ""  # Numbers under it, in one line or more.
    marked: str = ""  # What the frame says that is drawn around it, such as `shared`; empty for none.


class TilesModel(ItemListModel):
    """A list model of tiles; images are decoded when they become visible.

    Attributes:
        shared: Letters with which all captions begin.
    """

    def __init__(self, pictures: Thumbnails, parent: QWidget | None = None) -> None:
        roles: Roles = {
            Qt.ItemDataRole.DecorationRole: lambda tile: pictures.get(tile.path),
            Qt.ItemDataRole.ToolTipRole: lambda tile: "\n".join(filter(None, (tile.caption, tile.words, tile.path))),
            Qt.ItemDataRole.AccessibleTextRole: _spoken,
        }
        super().__init__(parent, roles)
        self._lines: dict[str, list[int]] = {}
        self.shared = 0
        pictures.arrived.connect(self._on_arrived)

    def show(self, items: Sequence[PairTile], *, keep: bool = False) -> None:
        super().show(items, keep=keep)
        self._lines, self.shared = {}, shared_start([tile.caption for tile in items])
        for line, tile in enumerate(items):
            self._lines.setdefault(tile.path, []).append(line)

    def _on_arrived(self, path: str) -> None:
        for line in self._lines.get(path, ()):
            self.dataChanged.emit(self.index(line), self.index(line), [Qt.ItemDataRole.DecorationRole])


LEAST_SHARED: Final = 12
"""Letters that captions must have in common, for as many are left out: `a photo of ` says nothing, `a ` is short."""


def shared_start(captions: Sequence[str]) -> int:
    """Return with how many letters all different captions begin, whole words only, of which each has a further one."""
    if len(set(captions)) < 2:
        return 0
    first, last = min(captions), max(captions)  # what these share, all between them do
    end = next((at for at, (a, b) in enumerate(zip(first, last)) if a != b), len(first))
    letters = first[:end].rfind(" ") + 1
    return letters if letters >= LEAST_SHARED else 0


def _spoken(tile: PairTile) -> str:
    return ", ".join((tile.caption, *tile.words.split("\n"), *filter(None, (tile.marked,))))


class Tiles(QListView):
    """Thumbnails in several rows, or in a single one."""

    chosen = Signal(object)  # The selected pairs, after a person selected some.
    hovered = Signal(int)  # The pair under the pointer; -1 for none.

    def __init__(
        self,
        pictures: Thumbnails,
        *,
        name: str,
        label: str,
        edge: int = 72,
        lines: int = 2,
        one_row: bool = False,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent, objectName=name, accessibleName=label, wrapping=not one_row, uniformItemSizes=True)
        self.beside: Tiles | None = None  # Its rows are as high as these.
        self.tiles = TilesModel(pictures, self)
        self.setModel(self.tiles)
        self.cell = _Cell(edge, lines, self)
        self.setItemDelegate(self.cell)
        self.setFlow(QListView.Flow.LeftToRight)
        self.setResizeMode(QListView.ResizeMode.Adjust)
        self.setMouseTracking(True)
        self.setSelectionMode(QListView.SelectionMode.ExtendedSelection)
        self.setVerticalScrollMode(QListView.ScrollMode.ScrollPerPixel)
        self.setHorizontalScrollMode(QListView.ScrollMode.ScrollPerPixel)
        if one_row:
            self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
            self.enlarge(edge)
        self.selectionModel().selectionChanged.connect(lambda *_: self.chosen.emit(self.chosen_pairs()))
        self.entered.connect(lambda index: self.hovered.emit(index.data(ITEM_ROLE).pair))
        theme.theme().changed.connect(self.viewport().update)

    def enlarge(self, edge: int, text_px: int = 0, lines: int | None = None) -> None:
        """Show the pictures of the row with this edge, and their words as wide, or as `text_px` if that is wider.

        With `lines` the words have as many; else as many as before.
        """
        self.cell.enlarge(edge, text_px, lines)
        self.setFixedHeight(self.cell.size.height() + 12)
        self.doItemsLayout()

    def chosen_pairs(self) -> list[int]:
        """Return the selected pairs, ascending."""
        return sorted({index.data(ITEM_ROLE).pair for index in self.selectedIndexes()})

    def show_tiles(self, tiles: Sequence[PairTile]) -> None:
        """Show these tiles; if the pairs are unchanged, update texts only and keep the scroll position."""
        if tuple(tiles) != self.tiles.items:
            self.tiles.show(tuple(tiles))
            for each in filter(None, (self, self.beside)):
                each._fit()

    def mark(self, pairs: set[int]) -> None:
        """Show these pairs as selected without emitting signals."""
        if set(self.chosen_pairs()) == pairs & {tile.pair for tile in self.tiles.items}:
            return
        selection = QItemSelection()
        for line, tile in enumerate(self.tiles.items):
            if tile.pair in pairs:
                selection.select(self.tiles.index(line), self.tiles.index(line))
        with QSignalBlocker(self.selectionModel()):
            self.selectionModel().select(selection, QItemSelectionModel.SelectionFlag.ClearAndSelect)
        self.viewport().update()

    def resizeEvent(self, event: QResizeEvent) -> None:
        self._fit()
        super().resizeEvent(event)

    def _fit(self) -> None:
        """Give the captions of several rows what the pictures leave of the width, and the lines that they need."""
        room = self.contentsRect().width() - self.verticalScrollBar().sizeHint().width()  # as Qt lays them out
        models = [each.tiles for each in (self, self.beside) if each is not None]
        if self.isWrapping() and self.cell.fit(models, room):
            self.doItemsLayout()

    def leaveEvent(self, event: object) -> None:
        super().leaveEvent(event)
        self.hovered.emit(-1)


class _Cell(QStyledItemDelegate):
    def __init__(self, edge: int, lines: int, parent: QWidget) -> None:
        super().__init__(parent)
        self._lines = self._least_lines = lines
        self._room = theme.INSIDE if lines else theme.SPACE
        self.enlarge(edge)

    def enlarge(self, edge: int, text_px: int = 0, lines: int | None = None) -> None:
        self._lines = lines = self._lines if lines is None else lines
        self._edge, self._text_px = edge, max(edge, text_px)
        high = edge + theme.INSIDE + theme.SPACE + lines * LINE_PX if lines else edge + 2 * theme.SPACE
        self.size = QSize(self._text_px + 2 * self._room, high)

    def fit(self, models: Sequence[TilesModel], wide: int) -> bool:
        """Let as many tiles as this width has room for share all of it; return whether that changed their size."""
        if self._least_lines < 2:
            return False
        before, least = self.size, self._edge + 2 * self._room
        self.enlarge(self._edge, wide // max(wide // least, 1) - 2 * self._room - 1, max(MOST_LINES, self._least_lines))
        metrics = QFontMetrics(theme.pixel_font(theme.SMALL_PX))
        texts = (self.texts(tile, metrics, each.shared) for each in models for tile in each.items[:MOST_MEASURED])
        lines = max((len(caption) + len(numbers) for caption, numbers in texts), default=0)
        self.enlarge(self._edge, self._text_px, max(lines, self._least_lines))
        return self.size != before

    def sizeHint(self, option: QStyleOptionViewItem, index: Index) -> QSize:
        return self.size

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        tile: PairTile = index.data(ITEM_ROLE)
        painter.save()
        painter.setRenderHints(QPainter.RenderHint.Antialiasing | QPainter.RenderHint.SmoothPixmapTransform)
        paint_ground(painter, QRectF(option.rect).adjusted(1, 1, -1, -1), option)
        selected = bool(option.state & QStyle.StateFlag.State_Selected)
        room = QRect(option.rect.left() + self._room, option.rect.top() + self._room, self._edge, self._edge)
        self._paint_picture(painter, room, tile, index.data(Qt.ItemDataRole.DecorationRole))
        if not self._lines:
            painter.restore()
            return
        painter.setFont(theme.pixel_font(theme.SMALL_PX))
        ink = "selection_text" if selected else "secondary"
        caption, numbers = self.texts(tile, painter.fontMetrics(), cast(TilesModel, index.model()).shared)
        for number, text in enumerate((*caption, *numbers)):
            painter.setPen(theme.color("text" if number < len(caption) and not selected else ink))
            line = QRect(room.left(), room.bottom() + theme.SPACE + number * LINE_PX, self._text_px, LINE_PX)
            painter.drawText(line, int(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter), text)
        painter.restore()

    def texts(self, tile: PairTile, metrics: QFontMetrics, shared: int = 0) -> tuple[list[str], list[str]]:
        """Return the lines of the caption, without its `shared` first letters, and those of the words."""
        caption = f"…{tile.caption[shared:]}" if shared else tile.caption
        under = tile.words if self._lines > 1 else tile.words or caption
        lines = under.split("\n") if under else []
        numbers = [metrics.elidedText(line, Qt.TextElideMode.ElideRight, self._text_px) for line in lines]
        if self._lines == 1:
            return [], numbers
        return wrapped(caption, metrics, self._text_px, max(1, self._lines - len(numbers))), numbers

    def _paint_picture(self, painter: QPainter, room: QRect, tile: PairTile, picture: Any) -> None:
        if picture is None:
            painter.fillRect(room, theme.color("sunken"))
            if not tile.path:
                theme.text_pen(painter, theme.SMALL_PX, "secondary")
                inside = room.adjusted(theme.SPACE, theme.SPACE, -theme.SPACE, -theme.SPACE)
                painter.drawText(inside, int(Qt.TextFlag.TextWordWrap), tile.caption)
        else:
            size = picture.size().scaled(room.size(), Qt.AspectRatioMode.KeepAspectRatio)
            target = QRect(0, 0, size.width(), size.height())
            target.moveCenter(room.center())
            painter.drawPixmap(target, picture)
        if tile.marked:
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.setPen(QPen(theme.color("accent"), 3))  # white or black would be lost on such pictures
            painter.drawRect(room.adjusted(0, 0, -1, -1))
