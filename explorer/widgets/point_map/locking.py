"""Optionally pan and zoom both maps together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from PySide6.QtCore import QObject

from explorer.widgets.point_map.point_map import PointMap


class Locking(QObject):
    """Keeps both maps at the same section, relative to all of their points, while enabled.

    The two layouts are computed separately, so their units mean nothing to each other: a view is carried over as a
    place and a size in units of the bounds of all points.
    """

    def __init__(
        self,
        maps: Sequence[PointMap],
        parent: QObject,
        bounds_of: Callable[[PointMap], tuple[float, float, float, float]] = lambda points: points.layer.grid.bounds,
    ) -> None:
        """Connect two maps; `bounds_of` returns left, bottom, right and top of what each shows when it is fitted."""
        super().__init__(parent)
        self._maps, self._bounds_of = maps, bounds_of
        self.on = False
        for index, points in enumerate(maps):
            points.moved.connect(partial(self._follow, index))
            points.fitted.connect(partial(self._fit_other, index))

    def set_on(self, on: bool) -> None:
        """Enable or disable the lock; B first takes A's view."""
        self.on = on
        (self._fit_other if self._maps[0].is_fitted else self._follow)(0)

    def _fit_other(self, index: int) -> None:
        """Show all in both: each in its own size, in which a section of the other would not be all."""
        if self.on and not self._maps[1 - index].is_fitted:
            self._maps[1 - index].fit()

    def _follow(self, index: int) -> None:
        leading, led = self._maps[index], self._maps[1 - index]
        if not self.on or not len(leading.layer.grid) or not len(led.layer.grid):
            return
        left, bottom, right, top = self._bounds_of(leading)
        view = leading.box.viewRect()
        share = max(right - left, top - bottom, 1e-12)
        x, y = (view.center().x() - (left + right) / 2) / share, (view.center().y() - (bottom + top) / 2) / share
        width, height = view.width() / share, view.height() / share
        left, bottom, right, top = self._bounds_of(led)
        share = max(right - left, top - bottom, 1e-12)
        x, y = (left + right) / 2 + x * share, (bottom + top) / 2 + y * share
        width, height = width * share, height * share
        led.box.setRange(
            xRange=(x - width / 2, x + width / 2),
            yRange=(y - height / 2, y + height / 2),
            padding=0,
            disableAutoRange=True,
        )
        led.leave_fit()
