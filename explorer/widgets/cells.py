"""Delegates for table cells: a progress bar with its number, and dots before a name."""

from __future__ import annotations

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
CHIP = 16


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
    """A dot in a color, the cell's text, and a chip for each letter; its editor makes no suggestions."""

    def __init__(self, *, swatch_role: int, letters_role: int, parent: QWidget | None = None) -> None:
        """Create the delegate; the two roles give the color, and the letters of the chips."""
        super().__init__(parent)
        self._swatch_role, self._letters_role = swatch_role, letters_role

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        swatch, letters = str(index.data(self._swatch_role) or ""), str(index.data(self._letters_role) or "")
        _paint_ground(self, painter, option, index)
        room = QRectF(option.rect).adjusted(CELL_PX, 0, -CELL_PX, 0)
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        if swatch:
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(color(swatch))
            painter.drawEllipse(QRectF(room.left(), room.center().y() - DOT / 2, DOT, DOT))
        room.setLeft(room.left() + DOT + INSIDE)  # names line up whether or not a run has a dot
        painter.setPen(color("text"))
        painter.setFont(option.font)
        chips = len(letters) * (CHIP + SPACE)
        wide, text = int(room.width() - chips), str(index.data() or "")
        text = option.fontMetrics.elidedText(text, Qt.TextElideMode.ElideRight, wide)
        painter.drawText(room, int(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter), text)
        left = room.left() + option.fontMetrics.horizontalAdvance(text) + INSIDE
        for letter in letters:
            paint_chip(painter, QRectF(left, room.center().y() - CHIP / 2, CHIP, CHIP), letter, swatch or "outline")
            left += CHIP + SPACE
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


def paint_chip(painter: QPainter, rect: QRectF, letter: str, ground: str) -> None:
    """Paint a letter on a run's color: black or white, whichever is more readable on it."""
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(color(ground))
    painter.drawRoundedRect(rect, 4, 4)
    font = painter.font()
    font.setPixelSize(CHIP - 5)
    font.setBold(True)
    painter.setFont(font)
    painter.setPen(ink_on(color(ground)))
    painter.drawText(rect, int(Qt.AlignmentFlag.AlignCenter), letter)


def _paint_ground(delegate: QStyledItemDelegate, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
    """Paint the cell in its stylesheet look (selection, hover, hairline), without its text."""
    bare: Any = QStyleOptionViewItem(option)
    delegate.initStyleOption(bare, index)
    bare.text = ""
    bare.icon = type(bare.icon)()
    style = bare.widget.style() if bare.widget is not None else QApplication.style()
    style.drawControl(QStyle.ControlElement.CE_ItemViewItem, bare, painter, bare.widget)
