"""Delegates for table cells: a progress bar with its number, and dots before a name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from PySide6.QtCore import QModelIndex, QPersistentModelIndex, QRectF, QSize, Qt
from PySide6.QtGui import QPainter
from PySide6.QtWidgets import QApplication, QLineEdit, QStyle, QStyledItemDelegate, QStyleOptionViewItem, QWidget

from explorer.theme import INSIDE, SPACE, color, ink_on

Index = QModelIndex | QPersistentModelIndex

CELL_PX = INSIDE + 3
"""What Qt keeps free at both sides of a cell's text, and the sheet at both sides of a header's."""
BAR_HEIGHT = 6
MOST_BAR_PX = 420
"""Of the bar and its text: a longer one says no more."""
LEAST_CELL_PX = 172
BAR_SHARE = 0.3
"""The part of that room that every bar takes, so that bars of one share are of one length."""
DOT = 10
LETTERED = 16


class ProgressCell(QStyledItemDelegate):
    """A bar of the completed share with the cell's text to its right; no bar if the share is None."""

    def __init__(self, *, share_role: int, tone_role: int, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._share_role, self._tone_role = share_role, tone_role

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        text, share = str(index.data() or ""), index.data(self._share_role)
        _paint_ground(self, painter, option, index)
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
            self._paint_bar(painter, track, float(share), str(index.data(self._tone_role)))
        painter.restore()

    def sizeHint(self, option: QStyleOptionViewItem, index: Index) -> QSize:
        return QSize(LEAST_CELL_PX, super().sizeHint(option, index).height())

    def _paint_bar(self, painter: QPainter, track: QRectF, share: float, tone: str) -> None:
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


class SwatchCell(QStyledItemDelegate):
    """The cell's text after one dot per color of the swatch role; its editor makes no suggestions."""

    def __init__(self, *, swatches_role: int, letters: Callable[[str], str], parent: QWidget | None = None) -> None:
        """Create the delegate; `letters` maps a color to one letter (A, B) or an empty string."""
        super().__init__(parent)
        self._swatches_role, self._letters = swatches_role, letters

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        swatches = index.data(self._swatches_role) or ()
        _paint_ground(self, painter, option, index)
        room = QRectF(option.rect).adjusted(CELL_PX, 0, -CELL_PX, 0)
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        left = room.left()
        for swatch in swatches:
            left += self._paint_swatch(painter, left, room.center().y(), swatch) + SPACE
        # Names line up whether or not a run has a dot.
        room.setLeft(max(left + SPACE, room.left() + LETTERED + INSIDE))
        painter.setPen(color("text"))
        painter.setFont(option.font)
        # The middle goes: the runs of a grid differ at the end of their names.
        text = option.fontMetrics.elidedText(str(index.data() or ""), Qt.TextElideMode.ElideMiddle, int(room.width()))
        painter.drawText(room, int(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter), text)
        painter.restore()

    def createEditor(self, parent: QWidget, option: QStyleOptionViewItem, index: Index) -> QWidget:
        editor = QLineEdit(parent)
        editor.setObjectName("rename-editor")
        editor.setAccessibleName("New name")
        return editor

    def setEditorData(self, editor: QWidget, index: Index) -> None:
        # A poll may touch the row while a person types: what they typed wins.
        if isinstance(editor, QLineEdit) and not editor.isModified():
            editor.setText(str(index.data(Qt.ItemDataRole.EditRole)))

    def _paint_swatch(self, painter: QPainter, left: float, middle: float, swatch: str) -> float:
        letter = self._letters(swatch)
        size = LETTERED if letter else DOT
        spot = QRectF(left + (LETTERED - size) / 2, middle - size / 2, size, size)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(color(swatch))
        painter.drawEllipse(spot)
        if letter:
            font = painter.font()
            font.setPixelSize(DOT)
            font.setBold(True)
            painter.setFont(font)
            painter.setPen(ink_on(color(swatch)))
            painter.drawText(spot, int(Qt.AlignmentFlag.AlignCenter), letter)
        return LETTERED


def _paint_ground(delegate: QStyledItemDelegate, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
    """Paint the cell in its stylesheet look (selection, hover, hairline), without its text."""
    bare: Any = QStyleOptionViewItem(option)
    delegate.initStyleOption(bare, index)
    bare.text = ""
    bare.icon = type(bare.icon)()
    style = bare.widget.style() if bare.widget is not None else QApplication.style()
    style.drawControl(QStyle.ControlElement.CE_ItemViewItem, bare, painter, bare.widget)
