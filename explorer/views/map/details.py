"""Beside the maps: what the colours mean, and which pairs are selected."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Int
from PySide6.QtCore import QModelIndex, QRect, QSize, Qt, Signal
from PySide6.QtGui import QColor, QPainter, QPixmap
from PySide6.QtWidgets import (
    QAbstractItemView,
    QHBoxLayout,
    QLabel,
    QListView,
    QPushButton,
    QSizePolicy,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QVBoxLayout,
    QWidget,
)

from explorer import theme
from explorer.models.pairs import MOST_ROWS, ROW_ROLE, Pair, PairsModel
from explorer.models.pictures import Pictures
from explorer.views.map.colouring import MODALITY, SHADES, Colouring, words
from explorer.views.map.reading import Side
from explorer.widgets.class_legend import ClassLegend, Entry, ScaleLegend

PICTURE_PX = 44


class MapDetails(QWidget):
    """Legend and selected pairs.

    Signals:
        isolated: Numbers of the isolated classes; empty for none.
        cancel_asked: What is being computed for the colours is not wanted any more.
        hovered: The pair under the pointer in the list, -1 for none.
        clear_asked: Nothing is to be selected any more.
    """

    isolated = Signal(list)
    hovered = Signal(int)
    clear_asked = Signal()
    cancel_asked = Signal()

    def __init__(self, pictures: Pictures, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("map-details")
        self.legend_title, self.selected_title = _heading("Colours"), _heading("Selected")
        self.legend, self.scale, self.scale_b = ClassLegend(), ScaleLegend(), ScaleLegend()
        self.legend.setObjectName("map-legend")
        self.legend.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Maximum)
        self.note = QLabel(wordWrap=True, textFormat=Qt.TextFormat.PlainText)
        theme.set_role(self.note, "small")
        self.work = QLabel(textFormat=Qt.TextFormat.PlainText)
        theme.set_role(self.work, "small")
        self.cancel = QPushButton("Cancel", objectName="map-cancel-colours", accessibleName="Cancel the computation")
        theme.set_role(self.cancel, "quiet")
        self.cancel.clicked.connect(self.cancel_asked)
        self.pairs = PairsModel(pictures, self, edge=PICTURE_PX)
        self.list = _PairList(self.pairs)
        self.hint = QLabel(wordWrap=True, alignment=Qt.AlignmentFlag.AlignTop)
        theme.set_role(self.hint, "small")
        self.clear = QPushButton("Clear", objectName="map-clear", accessibleName="Clear the selection", toolTip="Esc")
        theme.set_role(self.clear, "quiet")
        self._lay_out()
        self.tell_work("")
        self.legend.isolated.connect(self.isolated)
        self.list.hovered.connect(self.hovered)
        self.clear.clicked.connect(self.clear_asked)
        self.show_pairs(None, np.empty(0, np.int64))

    def show_colours(
        self, colours: Sequence[Colouring], sides: Sequence[Side], rows: Int[np.ndarray, " k"], *, owner: Side | None
    ) -> None:
        """Explains the colours, with the selected and the total number of pairs of each.

        Args:
            colours: Of each side; they share their palette.
            sides: One where both maps show the same pairs, else both: each line then counts A's and B's.
            rows: Selected pairs of `owner`.
            owner: The side whose pairs are selected.
        """
        first = colours[0] if colours else None
        own = first is not None and first.own_scale
        two = " · A · B" if len(sides) > 1 and not own else ""
        self.legend_title.setText((words(first.by) if first else "Colours") + two)
        self.scale_b.setVisible(own and len(colours) > 1)
        self._tell_note(colours)
        self.legend.setVisible(first is not None and first.scale is None)
        self.scale.setVisible(first is not None and first.scale is not None)
        if first is None:
            return
        if first.scale is not None:
            ramp = [QColor(*map(int, rgb)) for rgb in first.palette[:SHADES]]
            letters = ("A", "B") if own and len(colours) > 1 else ("", "")
            for bar, one, letter in zip((self.scale, self.scale_b), colours, letters, strict=False):
                bar.show_scale(ramp, *(one.scale or (0.0, 0.0)), letter=letter)
            self.legend.set_entries([])
            return
        self.legend.set_entries(legend_entries(colours, sides, rows, owner=owner))
        self.legend.setMaximumHeight(self.legend.sizeHint().height())

    def tell_work(self, words: str) -> None:
        """Says what is being computed for the colours, with a way to cancel it; empty when nothing is."""
        self.work.setText(words)
        self.work.setVisible(bool(words))
        self.cancel.setVisible(bool(words))

    def tell_growth(self, words: str) -> None:
        """Says what growing the selection did."""
        self.hint.setText(words)
        self.hint.show()

    def _tell_note(self, colours: Sequence[Colouring]) -> None:
        first = colours[0] if colours else None
        unknown = sum(one.unknown for one in colours)
        parts = [first.note if first is not None else "", f"{unknown:,} points grey: not known" if unknown else ""]
        said = "; ".join(part for part in parts if part)
        self.note.setText(said[:1].upper() + said[1:] + "." if said else "")
        self.note.setVisible(bool(said))

    def show_pairs(self, side: Side | None, rows: Int[np.ndarray, " k"], *, of: str = "") -> None:
        """Lists the selected pairs; `of` names the run whose pairs they are, where the other's are different."""
        n = side.n if side else 0
        whose = f" of {of}" if of else ""
        self.selected_title.setText(f"Selected {len(rows):,} of {n:,} pairs{whose}" if len(rows) else "Selected")
        self.clear.setVisible(len(rows) > 0)
        self.pairs.set_pairs([pair_of(side, int(row)) for row in rows[:MOST_ROWS]] if side else [])
        self.list.setVisible(len(rows) > 0)
        if not len(rows):
            where = "in one map: A and B show different pairs" if of else "in both maps"
            self.hint.setText(f"Drag with lasso (L), rectangle (R) or brush (B) to select pairs {where}.")
        elif len(rows) > MOST_ROWS:
            self.hint.setText(f"The first {MOST_ROWS} are listed.")
        self.hint.setVisible(not 0 < len(rows) <= MOST_ROWS)

    def _lay_out(self) -> None:
        title = QHBoxLayout()
        title.addWidget(self.selected_title, 1)
        title.addWidget(self.clear)
        column = QVBoxLayout(self)
        column.setContentsMargins(theme.BETWEEN, theme.BETWEEN, theme.INSIDE, theme.INSIDE)
        column.setSpacing(theme.INSIDE)
        column.addWidget(self.legend_title)
        column.addWidget(self.legend)
        column.addWidget(self.scale)
        column.addWidget(self.scale_b)
        column.addWidget(self.note)
        working = QHBoxLayout()
        working.addWidget(self.work, 1)
        working.addWidget(self.cancel)
        column.addLayout(working)
        column.addSpacing(theme.INSIDE)
        column.addLayout(title)
        column.addWidget(self.hint)
        column.addWidget(self.list, 1)
        column.addStretch(0)


class _PairList(QListView):
    """The selected pairs, virtual: only rows that are seen are painted and decoded."""

    hovered = Signal(int)

    def __init__(self, pairs: PairsModel) -> None:
        super().__init__(objectName="map-selected", accessibleName="Selected pairs")
        self.setModel(pairs)
        self.setItemDelegate(_PairDelegate(self))
        self.setUniformItemSizes(True)
        self.setMouseTracking(True)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.entered.connect(lambda index: self.hovered.emit(index.data(ROW_ROLE)))

    def currentChanged(self, current: QModelIndex, previous: QModelIndex) -> None:
        super().currentChanged(current, previous)
        if current.isValid():
            self.hovered.emit(current.data(ROW_ROLE))

    def leaveEvent(self, event: object) -> None:
        super().leaveEvent(event)
        self.hovered.emit(-1)


class _PairDelegate(QStyledItemDelegate):
    """Picture on the left, two lines of caption on the right."""

    def sizeHint(self, option: QStyleOptionViewItem, index: QModelIndex) -> QSize:
        return QSize(160, PICTURE_PX + theme.INSIDE)

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: QModelIndex) -> None:
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform)
        if option.state & (QStyle.StateFlag.State_Selected | QStyle.StateFlag.State_MouseOver):
            painter.fillRect(option.rect, theme.colour("hover"))
        room = QRect(option.rect.left() + theme.SPACE, option.rect.top() + theme.SPACE, PICTURE_PX, PICTURE_PX)
        _paint_picture(painter, room, index.data(Qt.ItemDataRole.DecorationRole))
        painter.setFont(theme.pixel_font(theme.SMALL_PX))
        painter.setPen(theme.colour("text"))
        words_room = option.rect.adjusted(PICTURE_PX + 3 * theme.SPACE + 2, theme.SPACE, -theme.SPACE, -theme.SPACE)
        flags = Qt.AlignmentFlag.AlignVCenter | Qt.TextFlag.TextWordWrap
        painter.drawText(words_room, flags, index.data(Qt.ItemDataRole.DisplayRole))
        painter.restore()


def pair_of(side: Side, row: int) -> Pair:
    """Pair `row` of a snapshot, as it is shown."""
    items = side.items
    return Pair(row, items.caption[row], items.label[row], items.path[row])


def legend_entries(
    colours: Sequence[Colouring], sides: Sequence[Side], rows: Int[np.ndarray, " k"], *, owner: Side | None
) -> list[Entry]:
    """One line for every class: how many of its pairs are selected, and how many there are on each side.

    Under `modality` it is images and texts that are counted. Without a selection there are totals only.
    """
    totals = [_counts(c, side, slice(None)) for c, side in zip(colours, sides, strict=True)]
    chosen = next((_counts(c, side, rows) for c, side in zip(colours, sides, strict=True) if side is owner), None)
    first = colours[0]
    return [
        Entry(
            name,
            QColor(*map(int, first.palette[i])).name(),
            tuple(total[i] for total in totals),
            chosen[i] if chosen is not None and len(rows) else None,
            diamond=first.by == MODALITY and i == 1,
        )
        for i, name in enumerate(first.names)
    ]


def _counts(colours: Colouring, side: Side, rows: Int[np.ndarray, " k"] | slice) -> list[int]:
    """How many of the pairs `rows` are of each class."""
    if colours.by == MODALITY:
        if isinstance(rows, slice):
            return [side.images, side.texts]
        return [int((rows < count).sum()) for count in (side.images, side.texts)]
    # The last row of the palette is the grey of what is not known: no class.
    return np.bincount(colours.index[: side.n][rows], minlength=len(colours.palette)).tolist()[:-1]


def _paint_picture(painter: QPainter, room: QRect, picture: QPixmap | None) -> None:
    if picture is None:
        painter.fillRect(room, theme.colour("sunken"))
        return
    size = picture.size().scaled(room.size(), Qt.AspectRatioMode.KeepAspectRatio)
    place = QRect(0, 0, size.width(), size.height())
    place.moveCenter(room.center())
    painter.drawPixmap(place, picture)


def _heading(words_: str) -> QLabel:
    label = QLabel(words_)
    label.setTextFormat(Qt.TextFormat.PlainText)
    theme.set_role(label, "heading")
    return label
