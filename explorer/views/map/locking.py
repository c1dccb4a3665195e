"""Optionally pan and zoom both maps together."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from PySide6.QtCore import QObject

from explorer.views.map.panel import MapPanel


class Locking(QObject):
    """Keeps both maps at the same section, relative to all of their points, while enabled.

    The two layouts are computed separately, so their units mean nothing to each other: a view is carried over as a
    place and a size in units of the bounds of all points.
    """

    def __init__(self, panels: Sequence[MapPanel], parent: QObject) -> None:
        super().__init__(parent)
        self._panels = panels
        self._following = False
        self.on = False
        for index, panel in enumerate(panels):
            panel.map.view_changed.connect(partial(self._follow, index))

    def set_on(self, on: bool) -> None:
        """Enable or disable the lock; B first takes A's view."""
        self.on = on
        self._follow(0)

    def _follow(self, index: int) -> None:
        leading, led = self._panels[index], self._panels[1 - index]
        if not self.on or self._following or leading.side is None or led.side is None:
            return
        # The first map being fitted to its new size moves the other, whose fitting must not move it back.
        self._following = True
        left, bottom, right, top = leading.map.layer.grid.bounds
        view = leading.map.box.viewRect()
        share = max(right - left, top - bottom, 1e-12)
        x, y = (view.center().x() - (left + right) / 2) / share, (view.center().y() - (bottom + top) / 2) / share
        width, height = view.width() / share, view.height() / share
        left, bottom, right, top = led.map.layer.grid.bounds
        share = max(right - left, top - bottom, 1e-12)
        x, y = (left + right) / 2 + x * share, (bottom + top) / 2 + y * share
        width, height = width * share, height * share
        led.map.box.setRange(
            xRange=(x - width / 2, x + width / 2),
            yRange=(y - height / 2, y + height / 2),
            padding=0,
            disableAutoRange=True,
        )
        self._following = False
