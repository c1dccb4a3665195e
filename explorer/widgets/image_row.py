"""Images in a row with a share above and a caption below; one can be selected."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from msgspec import Struct
from PySide6.QtCore import QEvent, QPoint, QRect, QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QColor,
    QFont,
    QFontMetrics,
    QHelpEvent,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPen,
    QPixmap,
    QResizeEvent,
)
from PySide6.QtWidgets import QSizePolicy, QToolTip, QWidget

from explorer import theme
from explorer.widgets.accessible import announce, present
from explorer.widgets.elided_label import wrapped
from explorer.widgets.image_box import paint_square

LEAST_PX: Final = 84
MOST_PX: Final = 132
SPACIOUS_PX: Final = 12 * MOST_PX
"""From this width on pictures are larger, so that a wide screen is not left empty."""
LARGER: Final = 1.5
LARGEST_PX: Final = 216
"""Of a row of which every image is drawn."""
WORDS_PX: Final = 20
CAPTION_LINE_PX: Final = 14
MOST_LINES: Final = 4
"""Of a caption: what is longer is cut, and whole in its tool tip."""
LINE_PX: Final = 15
BETWEEN: Final = " · "
"""Where words that are too wide break into a second line."""


class ImageRowItem(Struct, frozen=True):
    """One image: its file or pixels, text above, caption, share of its bar (NaN: none), and whether it is framed."""

    path: str
    words: str
    caption: str
    share: float = float("nan")
    strong: bool = False
    pixmap: QPixmap | None = None


class ImageRowWidget(QWidget):
    """As many images as fit; `fitting` is their number."""

    chosen = Signal(int)  # Place of the picture that was clicked, or chosen with the arrow keys and Enter.

    def __init__(self, picture: Callable[[str], QPixmap | None], parent: QWidget | None = None) -> None:
        super().__init__(parent, focusPolicy=Qt.FocusPolicy.TabFocus, mouseTracking=True)
        self._picture = picture
        self.shown: tuple[ImageRowItem, ...] = ()
        self._color = "secondary"
        self._current = 0
        self._large = False
        self._head_px = WORDS_PX
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self._fit_height()
        present(self, "Graphic")
        theme.theme().changed.connect(self.update)

    def show_pictures(self, pictures: Sequence[ImageRowItem], color: str, *, large: bool = False) -> None:
        """Show these images; `color` (a token or `#rrggbb`) paints the bars. `large`: all, as large as they fit."""
        self.shown, self._color, self._large = tuple(pictures), color, large
        self._current = min(self._current, max(len(self.shown) - 1, 0))
        self.setAccessibleDescription("; ".join(f"{s.words}: {s.caption}" for s in self.shown))
        self._fit_height()
        self.update()

    def picture_arrived(self, path: str) -> None:
        """Repaint if this image is shown."""
        if any(s.path == path for s in self.shown):
            self.update()

    @property
    def scale(self) -> float:
        """The factor by which images are larger than on a narrow screen."""
        return LARGER if self.width() >= SPACIOUS_PX else 1.0

    @property
    def fitting(self) -> int:
        """The number of images drawn."""
        most = len(self.shown) if self._large else int(self.width() / (LEAST_PX * self.scale))
        return max(1, min(len(self.shown), most))

    def place(self, number: int) -> QRect:
        """Return an image's rectangle, including text and caption."""
        wide = min(self.width() // max(self.fitting, 1), LARGEST_PX if self._large else round(MOST_PX * self.scale))
        return QRect(number * wide, 0, wide, self.height())

    def sizeHint(self) -> QSize:
        return QSize(6 * LEAST_PX, self.height())

    def minimumSizeHint(self) -> QSize:
        return QSize(3 * LEAST_PX, self.height())

    def event(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.ToolTip and isinstance(event, QHelpEvent):
            number = self._at(event.pos())
            if number >= 0:
                picture = self.shown[number]
                QToolTip.showText(event.globalPos(), f"{picture.words}\n{picture.caption}", self)
            return True
        return super().event(event)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        number = self._at(event.position().toPoint())
        if number >= 0:
            self._current = number
            self.update()
            self.chosen.emit(number)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        step = {Qt.Key.Key_Left: -1, Qt.Key.Key_Right: 1}.get(Qt.Key(event.key()), 0)
        if step and self.shown:
            self._current = min(max(self._current + step, 0), self.fitting - 1)
            announce(self, f"{self.shown[self._current].words}: {self.shown[self._current].caption}")
            self.update()
        elif event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Space) and self.shown:
            self.chosen.emit(self._current)
        else:
            super().keyPressEvent(event)

    def paintEvent(self, _event: QPaintEvent) -> None:
        painter = theme.smooth_painter(self)
        for number, picture in enumerate(self.shown[: self.fitting]):
            self._paint(painter, self.place(number), picture, focused=self.hasFocus() and number == self._current)

    def _paint(self, painter: QPainter, room: QRect, picture: ImageRowItem, *, focused: bool) -> None:
        side = self._side()
        square = QRect(room.left() + 1, self._head_px, side, side)
        weight = QFont.Weight.DemiBold if picture.strong else QFont.Weight.Normal
        theme.text_pen(painter, theme.SMALL_PX, "text", weight=weight)
        wide = room.width() - 6
        for number, text in enumerate(picture.words.split(BETWEEN, 1) if self._head_px > WORDS_PX else [picture.words]):
            line = QRect(square.left(), number * LINE_PX, wide, LINE_PX)
            elided = QFontMetrics(painter.font()).elidedText(text, Qt.TextElideMode.ElideRight, wide)
            painter.drawText(line, int(Qt.AlignmentFlag.AlignVCenter), elided)
        if picture.share == picture.share:
            painter.fillRect(QRectF(square.left(), square.top() - 4, side, 3), theme.color("sunken"))
            filled = max(1.0, side * min(picture.share, 1.0))
            painter.fillRect(QRectF(square.left(), square.top() - 4, filled, 3), theme.color(self._color, self))
        self._paint_picture(painter, square.adjusted(0, 2, 0, 2), picture, focused)
        theme.text_pen(painter, theme.SMALL_PX - 1, "secondary")
        for at, text in enumerate(wrapped(picture.caption, painter.fontMetrics(), wide, MOST_LINES)):
            below = QRect(square.left(), square.bottom() + 4 + at * CAPTION_LINE_PX, room.width(), CAPTION_LINE_PX)
            painter.drawText(below, int(Qt.AlignmentFlag.AlignVCenter), text)

    def _paint_picture(self, painter: QPainter, square: QRect, picture: ImageRowItem, focused: bool) -> None:
        # Of a picture made of few pixels these are seen.
        painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform, picture.pixmap is None)
        paint_square(painter, square, picture.pixmap or self._picture(picture.path))
        if picture.strong or focused:
            painter.setBrush(Qt.BrushStyle.NoBrush)
            color = theme.color("focus") if focused else QColor(theme.color(self._color, self))
            painter.setPen(QPen(color, 2))
            painter.drawRoundedRect(QRectF(square).adjusted(1, 1, -1, -1), 4, 4)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit_height()

    def _side(self) -> int:
        return self.place(0).width() - 6 if self._large else round((LEAST_PX - 4) * self.scale)

    def _fit_height(self) -> None:
        metrics = QFontMetrics(theme.pixel_font(theme.SMALL_PX))
        wide = self.place(0).width() - 6
        drawn = [picture.words for picture in self.shown[: self.fitting] if BETWEEN in picture.words]
        breaks = any(metrics.horizontalAdvance(text) > wide for text in drawn)
        self._head_px = WORDS_PX + (LINE_PX if breaks else 0)
        small = QFontMetrics(theme.pixel_font(theme.SMALL_PX - 1))
        captions = {picture.caption for picture in self.shown[: self.fitting]}
        lines = max((len(wrapped(caption, small, wide, MOST_LINES)) for caption in captions), default=1)
        self.setFixedHeight(self._side() + 8 + self._head_px + lines * CAPTION_LINE_PX)

    def _at(self, position: QPoint) -> int:
        return next((n for n in range(min(self.fitting, len(self.shown))) if self.place(n).contains(position)), -1)
