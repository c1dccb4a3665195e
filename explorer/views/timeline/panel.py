"""One run's map, which fills its card over all steps, under its name, step and n."""

from __future__ import annotations

import numpy as np
from jaxtyping import Int, UInt8
from PySide6.QtWidgets import QWidget

from explorer.views.timeline.frame_map import FrameMap
from explorer.widgets.map_card import MapCard
from trainer.charts.snapshot_series import TimelineRun
from trainer.metrics import data_label


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
