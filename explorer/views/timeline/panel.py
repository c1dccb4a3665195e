"""One run's map, which fills its card over all steps, under its name, step and n."""

from __future__ import annotations

from typing import Final

import numpy as np
from jaxtyping import Float, Int, UInt8
from PySide6.QtCore import QEasingCurve, QVariantAnimation
from PySide6.QtWidgets import QWidget

from explorer.theme import TRANSITION_MS, theme
from explorer.widgets.map_card import MapCard
from explorer.widgets.point_map import PointMap
from trainer.charts.snapshot_series import TimelineRun
from trainer.metrics import data_label

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


class TimelinePanel(MapCard):
    """The map of run A or B over time.

    Attributes:
        run: What is shown; None while there is nothing.
    """

    def __init__(self, index: int, parent: QWidget | None = None) -> None:
        points = FrameMap()
        super().__init__(index, points, parent)
        self.run: TimelineRun | None = None
        self._place = -1
        self.setObjectName(f"timeline-panel-{'ab'[index]}")
        self.map = points
        self.map.setObjectName(f"timeline-map-{'ab'[index]}")
        self.map.setAccessibleName(f"Map of run {'AB'[index]} over time")

    def show_run(
        self,
        run: TimelineRun,
        color: Int[np.ndarray, " m"],
        palette: UInt8[np.ndarray, "k 3"],
        *,
        step: float,
        stretch: float,
    ) -> None:
        """Show a run at a step; an axis is stretched up to `stretch` times to fill the card."""
        self.run, self._place = run, run.at(step)
        diamond = np.arange(run.images + run.texts) >= run.images
        self.map.set_points(run.points[self._place], diamond=diamond, color=color, palette=palette)
        self.map.set_frame(run.frame, stretch=stretch)
        widest = max(map(self._title_at, range(len(run.steps))), key=self.title.fontMetrics().horizontalAdvance)
        self.title.reserve(widest)
        self._show_step()
        self.area.ready()

    def go_to(self, step: float, *, animated: bool = True) -> None:
        """Move the points to their positions in the last snapshot at or before `step`."""
        if self.run is None or (frame := self.run.at(step)) == self._place:
            return
        self._place = frame
        self.map.glide_to(self.run.points[frame], animated=animated)
        self._show_step()

    def clear(self) -> None:
        """Remove the points; `area` then shows the reason."""
        self.run, self._place = None, -1
        self.title.setText("")
        self.note.setText("")

    @property
    def step(self) -> int:
        """The step of the snapshot shown; -1 if none."""
        return self.run.steps[self._place] if self.run is not None else -1

    def _title_at(self, frame: int) -> str:
        return f"{self.run.name} · step {self.run.steps[frame]:,}" if self.run is not None else ""

    def _show_step(self) -> None:
        run = self.run
        self.title.setText(self._title_at(self._place))
        what = "pairs" if run.images and run.texts else "items"
        sampled = "sampled " if run.sampled else ""
        shots = f"{len(run.steps)} snapshot" + "s" * (len(run.steps) != 1)
        self.note.setText(f"{run.n:,} {sampled}{what} · {shots}")
        self.note.setToolTip(data_label(run))
