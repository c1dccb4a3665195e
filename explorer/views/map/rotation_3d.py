"""3-D maps: three principal components, rotated by dragging, drawn by the same rasterizer."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final

import numpy as np
from jaxtyping import Float, Int
from msgspec import Struct
from PySide6.QtCore import QObject, QTimer, Signal

from explorer.event_loop.background import Background
from explorer.views.map.depth_shading import DepthProjection, sample_of, seen_from
from explorer.views.map.load import MapSide
from explorer.views.map.panel import MapPanel

FIRST_TURN: Final = (30.0, 20.0)
"""Azimuth and elevation, in degrees, that the cloud is first seen from."""


REST_MS: Final = 180
"""After so long without a turn a large cloud is shown whole again."""


class Cloud(Struct, frozen=True):
    """The points of a side in 3-D."""

    side: MapSide
    points: Float[np.ndarray, "m 3"]  # All of them, images first.
    of: Int[np.ndarray, " k"]  # Those that are drawn while a large cloud is turned.
    few: Float[np.ndarray, "k 3"]  # Their places.

    @property
    def is_large(self) -> bool:
        """Whether only a sample is drawn while rotating."""
        return len(self.of) < len(self.points)


class Rotation3D(QObject):
    """Keeps the clouds, rotates them, and passes their projections to the maps."""

    changed = Signal()  # The maps are in space now, or no longer.
    turned = Signal()  # They are seen from another side; which map was turned.
    failed = Signal(object)  # A cloud cannot be had; the exception.

    def __init__(self, panels: Sequence[MapPanel], background: Background, parent: QObject) -> None:
        super().__init__(parent)
        self._panels, self._background = panels, background
        self._clouds: dict[int, Cloud] = {}
        # Maps that are being projected, and whether to project them once more afterwards; maps to be shown whole.
        self._busy: dict[int, bool] = {}
        self._fits: set[int] = set()
        self._rest = QTimer(self, singleShot=True, interval=REST_MS, timeout=self._settle)
        self.on = False
        self.locked = False
        self.sides: list[tuple[float, float]] = [FIRST_TURN, FIRST_TURN]
        for index, panel in enumerate(panels):
            panel.map.turned.connect(partial(self._turn, index))

    def set_on(self, on: bool) -> None:
        """Switch the maps to 3-D; the view switches them back to 2-D."""
        self.on = on
        for panel in self._panels:
            panel.map.box.in_space = on
            if not on:
                panel.shade(None)
        if on:
            self.show()
        self.changed.emit()

    def show(self) -> None:
        """Switch all maps to 3-D that are not yet."""
        for index, panel in enumerate(self._panels):
            if not self.on or panel.side is None:
                continue
            cloud = self._clouds.get(index)
            if cloud is not None and cloud.side is panel.side:
                self._place(index, fit=True)
                continue
            self._background.run(
                self,
                cloud_of,
                panel.side,
                done=partial(self._take, index, panel.side),
                failed=self.failed.emit,
                key=f"cloud {index}",
            )

    def words(self, index: int) -> str:
        """Return the caption above a map."""
        azimuth, elevation = self.sides[index]
        return f"3-D PCA seen from {azimuth:.0f}°/{elevation:.0f}°"

    def turn_to(self, index: int, azimuth: float, elevation: float) -> None:
        """Show a map, or both if locked, from this direction."""
        azimuth = (azimuth + 180) % 360 - 180
        for each in range(len(self._panels)) if self.locked else [index]:
            self.sides[each] = (azimuth, float(np.clip(elevation, -90, 90)))
            cloud = self._clouds.get(each)
            if cloud is not None and cloud.is_large:
                self._rest.start()
                self._preview(each)
            else:
                self._place(each, fit=False)
        self.turned.emit()

    def _turn(self, index: int, right: float, towards: float) -> None:
        azimuth, elevation = self.sides[index]
        self.turn_to(index, azimuth + right, elevation + towards)

    def _take(self, index: int, side: MapSide, cloud: Cloud) -> None:
        if self._panels[index].side is side:
            self._clouds[index] = cloud
            if cloud.is_large:
                self._preview(index)
            self._place(index, fit=True)

    def _place(self, index: int, *, fit: bool) -> None:
        """Project on a thread; of the requests that arrive meanwhile, only the newest follows."""
        if not self.on or index not in self._clouds:
            return
        if fit:
            self._fits.add(index)
        if index in self._busy:
            self._busy[index] = True
            return
        self._busy[index] = False
        cloud = self._clouds[index]
        side = cloud.side
        self._background.run(
            self,
            seen_from,
            cloud.points,
            *self.sides[index],
            done=partial(self._show, index, side),
            failed=partial(self._give_up, index),
            key=f"turn {index}",
        )

    def _preview(self, index: int) -> None:
        """Show a sample of the points from the current direction, small enough to draw immediately."""
        cloud, panel = self._clouds[index], self._panels[index]
        if self.on and panel.side is cloud.side:
            panel.preview(seen_from(cloud.few, *self.sides[index]), cloud.of)
            panel.show_projection(self.words(index))

    def _settle(self) -> None:
        """Draw all points, because the rotation has ended."""
        for index, cloud in self._clouds.items():
            if cloud.is_large:
                self._place(index, fit=False)

    def _give_up(self, index: int, error: Exception) -> None:
        self._busy.pop(index, None)
        self.failed.emit(error)

    def _show(self, index: int, side: MapSide, seen: DepthProjection) -> None:
        again = self._busy.pop(index, False)
        panel = self._panels[index]
        if self.on and panel.side is side and not self._rest.isActive():
            panel.map.layer.move_points(seen.xy)
            panel.shade(seen.level)
            panel.show_projection(self.words(index))
            if index in self._fits:
                self._fits.discard(index)
                panel.map.fit()
        if again:
            self._place(index, fit=False)


def cloud_of(side: MapSide) -> Cloud:
    """Return the cloud of a side, with the sample of points drawn while rotating."""
    of = sample_of(len(side.space))
    return Cloud(side, side.space, of, side.space[of] if len(of) < len(side.space) else side.space)
