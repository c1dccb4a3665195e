"""Hover timing: one hit test per 50 ms, hovering after 125 ms, ended 260 ms after leaving."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from PySide6.QtCore import QObject, QPointF, QTimer, Signal

HIT_TEST_MS: Final = 50
DWELL_MS: Final = 125
GRACE_MS: Final = 260


class Hover(QObject):
    """Converts mouse moves to hovered points."""

    pointed = Signal(int)  # The point under the pointer is another now; -1 for none.
    settled = Signal(int)  # The pointer rests on this point.
    ended = Signal()  # The pointer left the last settled point a while ago.

    def __init__(self, hit_test: Callable[[QPointF], int], parent: QObject) -> None:
        super().__init__(parent)
        self._hit_test = hit_test
        self._place: QPointF | None = None
        self.point = -1
        self._next_test = QTimer(self, singleShot=True, interval=HIT_TEST_MS, timeout=self._test)
        self._dwell = QTimer(self, singleShot=True, interval=DWELL_MS, timeout=lambda: self.settled.emit(self.point))
        self._grace = QTimer(self, singleShot=True, interval=GRACE_MS)
        self._grace.timeout.connect(self.ended)

    def move(self, position: QPointF) -> None:
        """Handle a move of the pointer to `position`."""
        waiting, self._place = self._next_test.isActive(), position
        if not waiting:
            self._test()

    def leave(self) -> None:
        """Handle that the pointer has left."""
        self._place = None
        self._next_test.stop()
        self._point_at(-1)

    def go_to(self, point: int) -> None:
        """Hover `point` by keyboard."""
        self._place = None
        self._point_at(point)

    def _test(self) -> None:
        if self._place is None:
            return
        position, self._place = self._place, None
        self._next_test.start()
        self._point_at(self._hit_test(position))

    def _point_at(self, point: int) -> None:
        if point == self.point:
            return
        self.point = point
        self.pointed.emit(point)
        if point < 0:
            self._dwell.stop()
            self._grace.start()
        else:
            self._grace.stop()
            self._dwell.start()
