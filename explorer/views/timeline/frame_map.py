"""A map with a fixed frame in which its points move."""

from __future__ import annotations

from typing import Final

import numpy as np
from jaxtyping import Float
from PySide6.QtCore import QEasingCurve, QVariantAnimation
from PySide6.QtWidgets import QWidget

from explorer.theme import TRANSITION_MS, theme
from explorer.widgets.point_map import PointMap

MOST_MOVING: Final = 50_000
"""Of more points, every place on the way would cost more than a frame: they jump."""


class FrameMap(PointMap):
    """A point map with animated steps and a fixed view; nothing is rescaled."""

    # Set before `__init__`: pyqtgraph's constructor resizes, which fits.
    frame_looked_at: tuple[float, float, float, float] = (-1.0, -1.0, 1.0, 1.0)
    _stretch = 1.0

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._start = self._end = np.empty((0, 2))
        self._glide = QVariantAnimation(self, duration=TRANSITION_MS, startValue=0.0, endValue=1.0)
        self._glide.setEasingCurve(QEasingCurve.Type.InOutCubic)
        self._glide.valueChanged.connect(self._on_the_way)

    def set_frame(self, frame: tuple[float, float, float, float], *, stretch: float = 1.0) -> None:
        """Fix the view to left, bottom, right, top; an axis is stretched up to `stretch` times to fill the widget."""
        self.frame_looked_at, self._stretch = frame, stretch
        self.fit()

    def fit(self) -> None:
        left, bottom, right, top = self.frame_looked_at
        shape = self.width() * (top - bottom) / max(self.height() * (right - left), 1e-12)
        self.box.setAspectLocked(ratio=min(max(shape, 1 / self._stretch), self._stretch))
        self._show_range(*self.frame_looked_at)

    def glide_to(self, xy: Float[np.ndarray, "n 2"], *, animated: bool = True) -> None:
        """Move the points within the frame in 200 ms, or at once if the system asks for reduced motion."""
        self._glide.stop()
        before = self.places
        if not (
            animated and self.isVisible() and len(xy) <= MOST_MOVING and before.shape == xy.shape and theme().moves
        ):
            self._end = np.asarray(xy, np.float64)
            self.layer.move_points(self._end)
            return
        self._start, self._end = before.copy(), np.asarray(xy, np.float64)
        self._glide.start()

    @property
    def places(self) -> Float[np.ndarray, "n 2"]:
        """The current positions of the points, also during the animation."""
        return self.layer.grid.xy

    @property
    def gliding(self) -> bool:
        """Whether the points are moving."""
        return self._glide.state() == QVariantAnimation.State.Running

    def _on_the_way(self, share: float) -> None:
        self.layer.move_points(self._start + share * (self._end - self._start))
