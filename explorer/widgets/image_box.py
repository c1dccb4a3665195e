"""One image, as large as fits, or an icon if there is none."""

from __future__ import annotations

from PySide6.QtCore import QRect, QRectF, QSize, Qt
from PySide6.QtGui import QPainter, QPainterPath, QPaintEvent, QPen, QPixmap
from PySide6.QtWidgets import QSizePolicy, QStyle, QStyleOptionViewItem, QWidget

from explorer import theme
from explorer.widgets.elided_label import wrapped

LINE = 18
"""Height of a line of words under or beside an image, in pixels."""
MOST_ENLARGED = 4.0
"""Small pictures are drawn larger, but not until only blocks are seen."""


def paint_square(
    painter: QPainter, square: QRect, pixmap: QPixmap | None, *, sign: str = "image", role: str = "disabled"
) -> None:
    """Paint the center square of an image with rounded corners, or an icon if there is none."""
    clip = QPainterPath()
    clip.addRoundedRect(QRectF(square), 4, 4)
    painter.save()
    painter.setClipPath(clip)
    painter.fillRect(square, theme.color("sunken"))
    if pixmap is None or pixmap.isNull():
        theme.icon(sign, 24, role).paint(painter, square)
    else:
        edge = min(pixmap.width(), pixmap.height())
        middle = QRect((pixmap.width() - edge) // 2, (pixmap.height() - edge) // 2, edge, edge)
        painter.drawPixmap(square, pixmap, middle)
    painter.restore()


def paint_ground(painter: QPainter, cell: QRectF, option: QStyleOptionViewItem) -> None:
    """Paint the ground of a cell that is selected, under the pointer, or has the focus, which frames it."""
    selected = bool(option.state & QStyle.StateFlag.State_Selected)
    hovered = bool(option.state & QStyle.StateFlag.State_MouseOver)
    focused = bool(option.state & QStyle.StateFlag.State_HasFocus)
    if selected or hovered or focused:
        painter.setPen(QPen(theme.color("focus"), 2) if focused else Qt.PenStyle.NoPen)
        painter.setBrush(theme.color("selection" if selected else "hover"))
        painter.drawRoundedRect(cell.adjusted(1, 1, -1, -1), theme.RADIUS, theme.RADIUS)


def draw_lines(painter: QPainter, room: QRect, caption: str) -> None:
    """Draw text in as many lines as fit; of a longer one the middle of the last line is left out."""
    lines = wrapped(caption, painter.fontMetrics(), room.width(), max(1, room.height() // LINE))
    for number, line in enumerate(lines):
        at = QRect(room.left(), room.top() + number * LINE, room.width(), LINE)
        painter.drawText(at, int(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter), line)


class ImageBox(QWidget):
    """A complete pixmap in its own aspect ratio on a muted background."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent, accessibleName="Picture")
        self.pixmap: QPixmap | None = None
        self._sign, self._role = "image", "disabled"
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self.setMinimumSize(160, 120)
        theme.theme().changed.connect(self.update)

    def show_picture(self, pixmap: QPixmap | None, *, broken: bool = False) -> None:
        """Show a pixmap, or an icon if there is none; a damage icon if `broken`."""
        self.pixmap = pixmap
        self._sign, self._role = ("triangle-alert", "bad") if broken else ("image", "disabled")
        self.update()

    def sizeHint(self) -> QSize:
        return QSize(360, 360)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = theme.smooth_painter(self)
        painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform)
        ground = QPainterPath()
        ground.addRoundedRect(QRectF(self.rect()), theme.RADIUS, theme.RADIUS)
        painter.fillPath(ground, theme.color("background"))
        if self.pixmap is None or self.pixmap.isNull():
            theme.icon(self._sign, 40, self._role).paint(painter, self.rect())
            return
        room = QRectF(self.rect()).adjusted(theme.INSIDE, theme.INSIDE, -theme.INSIDE, -theme.INSIDE)
        size = self.pixmap.size()
        scale = min(room.width() / size.width(), room.height() / size.height(), MOST_ENLARGED)
        target = QRectF(0, 0, size.width() * scale, size.height() * scale)
        target.moveCenter(room.center())
        clip = QPainterPath()
        clip.addRoundedRect(target, 4, 4)
        painter.setClipPath(clip)
        painter.drawPixmap(target, self.pixmap, QRectF(self.pixmap.rect()))
