"""Plots painted one after the other, because painting them together would block the window."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from PySide6.QtCore import QEvent, QObject, QPoint, QRect, Qt
from PySide6.QtGui import QFocusEvent, QHideEvent, QPainter, QPaintEvent, QPen

from explorer import theme
from explorer.event_loop.idle_scheduler import idle_scheduler
from explorer.widgets.overlay import Shade

MOST_SKIPPED: Final = 3
"""Who was passed over so often is painted, though the turn is full: one such a turn, for all come due together."""
_frames = 0
_exposed_in = -1
_overdue_in = 0


@contextmanager
def frame() -> Iterator[None]:
    """Mark painting to the screen, which may be deferred; painting for image files is immediate."""
    global _frames
    _frames += 1
    try:
        yield
    finally:
        _frames -= 1


class ExposeFilter(QObject):
    """An event filter of a `QWindow` for expose events, whose areas Qt paints immediately to the screen.

    From there to the end of the turn everything is taken for such a picture.
    """

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() in (QEvent.Type.Expose, QEvent.Type.Paint):
            global _exposed_in
            _exposed_in = idle_scheduler().number
        return super().eventFilter(watched, event)


class DeferredPaint:
    """A mixin for graphics views that defers painting to the next iteration when this one is full.

    Until then it keeps what it showed; where it has just been moved or shown, there is its ground. Under a shade it is
    painted at once: Qt would blend the shade once more into the pixels that are kept, which have it.
    """

    # Whether the last painting was deferred and left the pixels, with those of what lies over them.
    keeps_pixels = False
    _shaded = False
    _times_passed_over = 0
    _painted_at: QRect | None = None

    def defer_painting(self) -> None:
        """Keep the pixels of a deferred widget instead of erasing them; to be called in the constructor."""
        viewport = self.viewport()  # type: ignore[attr-defined]
        viewport.setAutoFillBackground(False)
        viewport.setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent)
        # The view has the focus, and the name: its viewport is none of the widgets that take it.
        viewport.setFocusPolicy(Qt.FocusPolicy.NoFocus)

    def forget_painted(self) -> None:
        """Discard the last painting, so that it is not shown again."""
        self._painted_at = None

    def paintEvent(self, event: QPaintEvent) -> None:
        on_screen = _frames or _exposed_in == idle_scheduler().number
        self.keeps_pixels = False
        before, self._shaded = self._shaded, self._is_shaded()
        shaded = before or self._shaded
        if on_screen and idle_scheduler().is_full and not shaded and not self._is_overdue():
            self._times_passed_over += 1
            self.keeps_pixels = self._painted_at == self._place_on_screen()
            if not self.keeps_pixels:
                QPainter(self.viewport()).fillRect(event.rect(), theme.color("surface"))  # type: ignore[attr-defined]
            idle_scheduler().later(self, self._paint_now)  # type: ignore[arg-type]
            return
        self._times_passed_over = 0
        super().paintEvent(event)  # type: ignore[misc]
        self._painted_at = self._place_on_screen()
        if theme.theme().has_ring(self):  # type: ignore[arg-type]
            painter = QPainter(self.viewport())  # type: ignore[attr-defined]
            painter.setPen(QPen(theme.color("focus"), 2))
            painter.drawRect(self.viewport().rect().adjusted(1, 1, -1, -1))  # type: ignore[attr-defined]

    def focusInEvent(self, event: QFocusEvent) -> None:
        super().focusInEvent(event)  # type: ignore[misc]
        self._paint_now()

    def focusOutEvent(self, event: QFocusEvent) -> None:
        super().focusOutEvent(event)  # type: ignore[misc]
        self._paint_now()

    def _is_shaded(self) -> bool:
        beside = self.window().children()  # type: ignore[attr-defined]
        return any(isinstance(widget, Shade) and widget.isVisible() for widget in beside)

    def _is_overdue(self) -> bool:
        global _overdue_in
        if self._times_passed_over < MOST_SKIPPED or _overdue_in == idle_scheduler().number:
            return False
        _overdue_in = idle_scheduler().number
        return True

    def hideEvent(self, event: QHideEvent) -> None:
        self._painted_at = None
        super().hideEvent(event)  # type: ignore[misc]

    def _paint_now(self) -> None:
        self.viewport().update()  # type: ignore[attr-defined]

    def _place_on_screen(self) -> QRect:
        viewport = self.viewport()  # type: ignore[attr-defined]
        return QRect(viewport.mapTo(viewport.window(), QPoint()), viewport.size())
