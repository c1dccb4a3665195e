"""An image overlaid with the cells of a saliency map."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, UInt8
from msgspec import Struct
from PySide6.QtCore import QEvent, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QHelpEvent, QImage, QLinearGradient, QPainter, QPainterPath, QPaintEvent, QPixmap
from PySide6.QtWidgets import QSizePolicy, QToolTip, QWidget

from explorer import theme
from explorer.thumbnails import image_of
from trainer.analysis.number_text import signed
from trainer.charts.marks import grayed

BAR_PX = 10
SCALE_PX = 34
LEAST_PX = 116
WORDS_PX = 16
WRAPPED = Qt.AlignmentFlag.AlignCenter | Qt.TextFlag.TextWordWrap
FAINT, STRONG = 0.12, 0.85


class SaliencyOverlay(Struct, frozen=True):
    """The overlay on the image."""

    cells: Float[np.ndarray, "g g"]  # NaN never; positive cells take the second color, negative ones the first.
    reach: float  # The value that has the full color.
    colors: tuple[str, str]  # Tokens or `#rrggbb` of both ends.
    ends: tuple[str, str]  # Words at both ends of the scale; between them is 0.


class SaliencyMap(QWidget):
    """A square image, grayed out under the saliency cells, with their color scale; plain without cells."""

    def __init__(self, name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent, objectName=name)
        self._image: QImage | None = None
        self._gray: QImage | None = None
        self.overlay: SaliencyOverlay | None = None
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self.setMinimumSize(LEAST_PX, LEAST_PX + SCALE_PX)
        theme.theme().changed.connect(self.update)

    def show_map(self, image: UInt8[np.ndarray, "s s 3"] | None, overlay: SaliencyOverlay | None, text: str) -> None:
        """Show an image and its cells; `text` describes them for screen readers, and says what comes where none is."""
        self._image = None if image is None else image_of(image)
        self._gray = None if image is None else image_of(grayed(image))
        self.overlay = overlay
        self.setAccessibleName(text)
        self.update()

    def show_pixmap(self, pixmap: QPixmap | None) -> None:
        """Show the center square of a thumbnail until the runs' own input image arrives."""
        if pixmap is None or pixmap.isNull():
            return
        side = min(pixmap.width(), pixmap.height())
        left, top = (pixmap.width() - side) // 2, (pixmap.height() - side) // 2
        self._image = pixmap.copy(left, top, side, side).toImage()
        self.update()

    def sizeHint(self) -> QSize:
        return QSize(300, 300 + SCALE_PX)

    def event(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.ToolTip and isinstance(event, QHelpEvent):
            QToolTip.showText(event.globalPos(), self.words_at(event.position().x(), event.position().y()), self)
            return True
        return super().event(event)

    def words_at(self, x: float, y: float) -> str:
        """Return a description of the cell at a point of the widget; empty outside."""
        room = self.room()
        if self.overlay is None or not room.contains(x, y):
            return ""
        grid = len(self.overlay.cells)
        row = min(int((y - room.top()) / room.height() * grid), grid - 1)
        column = min(int((x - room.left()) / room.width() * grid), grid - 1)
        value = self.overlay.cells[row, column]
        return f"row {row + 1}, column {column + 1} of {grid}: {signed(value, 4)}"

    def paintEvent(self, _event: QPaintEvent) -> None:
        painter = theme.smooth_painter(self)
        room = self.room()
        clip = QPainterPath()
        clip.addRoundedRect(room, theme.RADIUS, theme.RADIUS)
        painter.fillPath(clip, theme.color("sunken"))
        image = self._image if self.overlay is None else self._gray
        if image is None:
            painter.setPen(theme.color("secondary"))
            painter.drawText(room.adjusted(WORDS_PX, 0, -WORDS_PX, 0), WRAPPED, self.accessibleName())
            return
        painter.save()
        painter.setClipPath(clip)
        painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform)
        painter.drawImage(room, image)
        if self.overlay is not None:
            self._paint_cells(painter, room, self.overlay)
        painter.restore()
        if self.overlay is not None:
            self._paint_scale(painter, room, self.overlay)

    def room(self) -> QRectF:
        side = min(self.width(), self.height() - SCALE_PX)
        return QRectF((self.width() - side) / 2, 0, side, side)

    def _paint_cells(self, painter: QPainter, room: QRectF, overlay: SaliencyOverlay) -> None:
        grid = len(overlay.cells)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)
        at = [round(room.left() + line * room.width() / grid) for line in range(grid + 1)]
        down = [round(room.top() + line * room.height() / grid) for line in range(grid + 1)]
        for (row, column), value in np.ndenumerate(overlay.cells):
            strength = min(abs(float(value)) / overlay.reach, 1.0) if overlay.reach else 0.0
            if strength < 0.02:
                continue
            color = QColor(theme.color(overlay.colors[1] if value > 0 else overlay.colors[0], self))
            color.setAlphaF(FAINT + (STRONG - FAINT) * strength)
            painter.fillRect(
                QRectF(at[column], down[row], at[column + 1] - at[column], down[row + 1] - down[row]), color
            )

    def _paint_scale(self, painter: QPainter, room: QRectF, overlay: SaliencyOverlay) -> None:
        bar = QRectF(room.left(), room.bottom() + 6, room.width(), BAR_PX)
        shade = QLinearGradient(bar.topLeft(), bar.topRight())
        for position, token, alpha in ((0.0, 0, STRONG), (0.5, 0, 0.0), (0.5001, 1, 0.0), (1.0, 1, STRONG)):
            color = QColor(theme.color(overlay.colors[token], self))
            color.setAlphaF(alpha)
            shade.setColorAt(position, color)
        theme.fill_with(painter, theme.color("sunken"))
        painter.drawRoundedRect(bar, 3, 3)
        painter.setBrush(shade)
        painter.drawRoundedRect(bar, 3, 3)
        theme.text_pen(painter, theme.SMALL_PX, "secondary")
        labels = QRectF(room.left(), bar.bottom() + 1, room.width(), 17)
        for side, text in zip(("Left", "HCenter", "Right"), (overlay.ends[0], "0", overlay.ends[1]), strict=True):
            where = getattr(Qt.AlignmentFlag, f"Align{side}") | Qt.AlignmentFlag.AlignVCenter
            painter.drawText(labels, int(where), text)
