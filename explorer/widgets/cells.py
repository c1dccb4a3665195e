"""Delegates for table cells: a bar with its number, a state across cells, and an eye and a dot before a name."""

from __future__ import annotations

from typing import Any

from PySide6.QtCore import QModelIndex, QPersistentModelIndex, QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QPainter, QPen
from PySide6.QtWidgets import (
    QAbstractItemView,
    QApplication,
    QLineEdit,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QWidget,
)

from explorer.theme import INSIDE, SPACE, color, icon
from explorer.widgets.elided_label import elided_name
from explorer.widgets.run_badge import paint_badge

Index = QModelIndex | QPersistentModelIndex

CELL_PX = INSIDE + 3
"""What Qt keeps free at both sides of a cell's text, and the sheet at both sides of a header's."""
BAR_HEIGHT = 6
MOST_BAR_PX = 420
"""Of the bar and its text: a longer one says no more."""
LEAST_CELL_PX = 172
BAR_SHARE = 0.3
"""The part of that room that every bar takes, so that bars of one share are of one length."""
LEAST_TRACK_PX, MOST_TRACK_PX = 20, 56
"""Of the bar beside a state."""
DOT = 10
MARK_PX = 12
CHIP = 16
EYE_PX = 16
EYE_ROOM_PX = CELL_PX + EYE_PX + INSIDE
"""From the left edge of a cell with an eye to its dot."""


HOVERED_ROW = "hovered_row"
"""Property of a table: the row under the pointer."""


class RowCell(QStyledItemDelegate):
    """A cell that looks hovered where the pointer is over any cell of its row."""

    def initStyleOption(self, option: Any, index: Index) -> None:
        super().initStyleOption(option, index)
        if option.widget is not None and option.widget.property(HOVERED_ROW) == index.row():
            option.state |= QStyle.StateFlag.State_MouseOver


class ProgressCell(RowCell):
    """A bar of the completed share with the cell's text to its right; no bar if the share is None."""

    def __init__(self, *, share_role: int, tone_role: int, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._share_role, self._tone_role = share_role, tone_role

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        text, share = str(index.data() or ""), index.data(self._share_role)
        paint_ground(self, painter, option, index)
        room = QRectF(option.rect).adjusted(CELL_PX, 0, -CELL_PX, 0)
        room.setWidth(min(room.width(), MOST_BAR_PX))
        painter.save()
        painter.setPen(color("text"))
        painter.setFont(option.font)
        elided = option.fontMetrics.elidedText(text, Qt.TextElideMode.ElideRight, int(room.width()))
        painter.drawText(room, int(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter), elided)
        text_width = option.fontMetrics.horizontalAdvance(text) + SPACE
        track = QRectF(room)
        track.setWidth(min(BAR_SHARE * room.width(), room.width() - text_width - INSIDE))
        if share is not None and track.width() > 4 * BAR_HEIGHT:
            track = QRectF(track.left(), track.center().y() - BAR_HEIGHT / 2, track.width(), BAR_HEIGHT)
            paint_bar(painter, track, float(share), str(index.data(self._tone_role)))
        painter.restore()

    def sizeHint(self, option: QStyleOptionViewItem, index: Index) -> QSize:
        return QSize(LEAST_CELL_PX, super().sizeHint(option, index).height())


class StateCell(RowCell):
    """The cell's mark and text; where the row has a state, that instead, with a bar, over all cells of these columns.

    A column of numbers is narrow: the mark stands at the text, closer than the icon that Qt paints.
    """

    def __init__(
        self, columns: tuple[int, ...], *, state_role: int, share_role: int, tone_role: int, parent: QWidget
    ) -> None:
        """Create the delegate of these neighboring columns; the roles give the state, and share and tone of its bar."""
        super().__init__(parent)
        self._columns, self._state_role = columns, state_role
        self._share_role, self._tone_role = share_role, tone_role

    def initStyleOption(self, option: Any, index: Index) -> None:
        super().initStyleOption(option, index)
        option.features &= ~QStyleOptionViewItem.ViewItemFeature.HasDecoration

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        state, view = str(index.data(self._state_role) or ""), option.widget
        if not state or not isinstance(view, QAbstractItemView):
            super().paint(painter, option, index)
            if (mark := index.data(Qt.ItemDataRole.DecorationRole)) is not None:
                text_px = option.fontMetrics.horizontalAdvance(str(index.data() or ""))
                left = option.rect.right() - CELL_PX - text_px - SPACE - MARK_PX
                mark.paint(painter, left, option.rect.center().y() - MARK_PX // 2 + 1, MARK_PX, MARK_PX)
            return
        paint_ground(self, painter, option, index)
        rects = [view.visualRect(index.sibling(index.row(), column)) for column in self._columns]
        room = QRectF(rects[0].united(rects[-1])).adjusted(0, 0, -CELL_PX, 0)
        painter.save()
        painter.setClipRect(option.rect)  # each cell paints its part
        painter.setFont(option.font)
        painter.setPen(color("secondary"))
        text = option.fontMetrics.elidedText(state, Qt.TextElideMode.ElideRight, int(room.width()))
        painter.drawText(room, int(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter), text)
        free = room.width() - option.fontMetrics.horizontalAdvance(text) - INSIDE
        share = index.data(self._share_role)
        if share is not None and free > LEAST_TRACK_PX:
            wide = min(free, MOST_TRACK_PX)
            track = QRectF(room.left() + free - wide, room.center().y() - BAR_HEIGHT / 2, wide, BAR_HEIGHT)
            paint_bar(painter, track, float(share), str(index.data(self._tone_role)))
        painter.restore()


def paint_symbol(painter: QPainter, room: QRectF, symbol: str) -> None:
    """Draw one of `CURVE_SYMBOLS` with the painter's pen and brush."""
    middle = room.center()
    if symbol == "square":
        painter.drawRect(room)
    elif symbol == "triangle":
        painter.drawPolygon([QPointF(middle.x(), room.top()), room.bottomRight(), room.bottomLeft()])
    elif symbol == "diamond":
        sides = (QPointF(room.right(), middle.y()), QPointF(room.left(), middle.y()))
        painter.drawPolygon([QPointF(middle.x(), room.top()), sides[0], QPointF(middle.x(), room.bottom()), sides[1]])
    else:
        painter.drawEllipse(room)


class SwatchCell(RowCell):
    """An eye, a symbol in a color, the cell's text, and a chip for each letter; its editor makes no suggestions."""

    def __init__(
        self, *, eye_role: int, swatch_role: int, symbol_role: int, letters_role: int, parent: QWidget | None = None
    ) -> None:
        """Create the delegate; the roles give whether the eye is open, color and symbol, and the letters of chips."""
        super().__init__(parent)
        self._symbol_role = symbol_role
        self._eye_role, self._swatch_role, self._letters_role = eye_role, swatch_role, letters_role

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        swatch, letters = str(index.data(self._swatch_role) or ""), str(index.data(self._letters_role) or "")
        paint_ground(self, painter, option, index)
        room = QRectF(option.rect).adjusted(EYE_ROOM_PX, 0, -SPACE, 0)
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        is_open = bool(index.data(self._eye_role))
        top = option.rect.center().y() - EYE_PX // 2 + 1
        sign = icon("eye" if is_open else "eye-off", EYE_PX, "secondary" if is_open else "disabled")
        sign.paint(painter, option.rect.left() + CELL_PX, top, EYE_PX, EYE_PX)
        if swatch:
            # A ring is a run that is not drawn.
            painter.setPen(QPen(color(swatch), 2))
            painter.setBrush(color(swatch) if is_open else Qt.BrushStyle.NoBrush)
            dot = QRectF(room.left(), room.center().y() - DOT / 2, DOT, DOT)
            paint_symbol(painter, dot.adjusted(1, 1, -1, -1), str(index.data(self._symbol_role)))
        room.setLeft(room.left() + DOT + INSIDE)  # names line up whether or not a run has a dot
        painter.setPen(color("text" if is_open else "secondary"))
        painter.setFont(option.font)
        chips = len(letters) * (CHIP + SPACE)
        wide, text = int(room.width() - chips), str(index.data() or "")
        text = elided_name(text, option.fontMetrics, wide)
        painter.drawText(room, int(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter), text)
        left = room.left() + option.fontMetrics.horizontalAdvance(text) + INSIDE
        for letter in letters:
            rect = QRectF(left, room.center().y() - CHIP / 2, CHIP, CHIP)
            paint_badge(painter, rect, letter, color(swatch or "outline"))
            left += CHIP + SPACE
        painter.restore()

    def createEditor(self, parent: QWidget, option: QStyleOptionViewItem, index: Index) -> QWidget:
        editor = QLineEdit(parent, objectName="rename-editor", accessibleName="New name")
        return editor

    def setEditorData(self, editor: QWidget, index: Index) -> None:
        # A poll may touch the row while a person types: what they typed wins.
        if isinstance(editor, QLineEdit) and not editor.isModified():
            editor.setText(str(index.data(Qt.ItemDataRole.EditRole)))


def paint_bar(painter: QPainter, track: QRectF, share: float, tone: str) -> None:
    """Paint a track of which this share, 0 to 1, is filled in a color of the theme."""
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setPen(color("outline"))
    painter.setBrush(color("surface"))
    painter.drawRoundedRect(track.adjusted(-0.5, -0.5, 0.5, 0.5), BAR_HEIGHT / 2, BAR_HEIGHT / 2)
    painter.setPen(Qt.PenStyle.NoPen)
    if share > 0:
        done = QRectF(track)
        done.setWidth(max(BAR_HEIGHT, track.width() * min(1.0, share)))
        painter.setBrush(color(tone))
        painter.drawRoundedRect(done, BAR_HEIGHT / 2, BAR_HEIGHT / 2)


def paint_ground(delegate: QStyledItemDelegate, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
    """Paint the cell in its stylesheet look (selection, hover, hairline), without its text."""
    bare: Any = QStyleOptionViewItem(option)
    delegate.initStyleOption(bare, index)
    bare.text = ""
    bare.icon = type(bare.icon)()
    style = bare.widget.style() if bare.widget is not None else QApplication.style()
    style.drawControl(QStyle.ControlElement.CE_ItemViewItem, bare, painter, bare.widget)
