"""External images placed among the points of both maps: embedded by each run, added to each layout."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float
from msgspec import Struct
from PySide6.QtCore import QObject, Signal

from explorer.views.map.load import MapSide
from explorer.views.map.panel import MapPanel
from explorer.widgets.point_map.pins import Pin
from trainer.analysis.procrustes import procrustes
from trainer.charts.point_placement import PointPlacement
from trainer.messages import EmbedAnswer, EmbedImages, Failure, Project, ProjectAnswer, Question
from trainer.untrusted.bounded.arrays import load_npy

if TYPE_CHECKING:
    from explorer.event_loop.background import Background
    from explorer.model_client.client import ModelClient


class PlacedLayout(Struct, frozen=True):
    """The placement of one map's points."""

    side: MapSide
    how: PointPlacement
    xy: Float[np.ndarray, "m 2"]  # Where each point stands.
    onto: str = ""  # Folder of the snapshot whose map it faces; empty for none.


class ExternalImages(QObject):
    """Keeps the external images and requests their positions whenever a map changes."""

    changed = Signal()  # Other images are placed, or in other places.
    progressed = Signal(float, str)  # The share done, and a note.
    finished = Signal()  # Nothing is under way any more.
    failed = Signal(object)  # The `Failure`, when it is no cancelling.

    def __init__(
        self, panels: Sequence[MapPanel], client: ModelClient, background: Background, parent: QObject
    ) -> None:
        super().__init__(parent)
        self._panels, self._client, self._background = panels, client, background
        self._tickets = itertools.count()
        self._layouts: dict[int, PlacedLayout] = {}
        self._open: dict[int, tuple[int, int]] = {}
        self._vectors: dict[tuple[int, int, tuple[str, ...]], tuple[str, tuple[str, ...]]] = {}
        self.paths: tuple[str, ...] = ()

    def take(self, paths: Sequence[Path | str]) -> None:
        """Place these images, replacing earlier ones."""
        self.paths = tuple(dict.fromkeys(str(path) for path in paths))
        for index in range(len(self._panels)):
            self._place(index)
        self.changed.emit()

    def clear(self) -> None:
        """Remove all external images from the maps."""
        self.cancel()
        self.paths = ()
        for panel in self._panels:
            panel.pins.show(())
        self.changed.emit()

    def cancel(self) -> None:
        """Cancel pending requests."""
        waiting, self._open = list(self._open.values()), {}
        for number, _index in waiting:
            self._client.cancel(number)
        if waiting:
            self.finished.emit()

    def lay(self, index: int, layout: PlacedLayout | None) -> None:
        """Set the current layout of one map's points (None: in 3-D, or not placed)."""
        if layout is None:
            self._layouts.pop(index, None)
        else:
            self._layouts[index] = layout
        self._place(index)

    @property
    def busy(self) -> bool:
        """Whether a position is still pending."""
        return bool(self._open)

    @property
    def placed(self) -> int:
        """The number of images placed on a map."""
        return max((len(panel.pins.pins) for panel in self._panels), default=0)

    # -- asking ------------------------------------------------------------------------------------------------

    def _place(self, index: int) -> None:
        self._panels[index].pins.show(())
        for ticket, (number, other) in list(self._open.items()):
            if other == index:
                del self._open[ticket]
                self._client.cancel(number)
        layout = self._layouts.get(index)
        if not self.paths or layout is None or not layout.side.images:
            self._end_if_idle()
            return
        key = (layout.side.run, layout.side.row.step, self.paths)
        if key in self._vectors:
            self._project(index, layout, *self._vectors[key])
            return
        question = EmbedImages(run=layout.side.run, images=self.paths, step=layout.side.row.step)
        self._ask(index, question, lambda answer: self._take_vectors(index, layout, key, answer))

    def _take_vectors(self, index: int, layout: PlacedLayout, key: tuple[Any, ...], answer: EmbedAnswer) -> None:
        if unreadable := answer.unreadable:
            name, reason = next(iter(unreadable.items()))
            more = f", and {len(unreadable) - 1} more" if len(unreadable) > 1 else ""
            self.failed.emit(Failure("input", f"{Path(name).name} cannot be read: {reason}{more}.", "Drop another."))
        vectors = (answer.array, answer.images)
        self._vectors[key] = vectors
        if vectors[1]:
            self._project(index, layout, *vectors)

    def _project(self, index: int, layout: PlacedLayout, array: str, paths: tuple[str, ...]) -> None:
        folder = str(layout.side.row.folder)
        question = Project(snapshot=folder, placement=layout.how, onto=layout.onto, place=array)
        self._ask(index, question, lambda answer: self._take_places(index, layout, paths, answer))

    def _take_places(self, index: int, layout: PlacedLayout, paths: tuple[str, ...], answer: ProjectAnswer) -> None:
        self._background.run(
            self,
            carried,
            answer.layout,
            np.asarray(answer.placed, np.float64).reshape(-1, 2),
            layout.xy,
            done=partial(self._show, index, layout, paths),
            key=f"pins {index}",
        )

    def _show(self, index: int, layout: PlacedLayout, paths: tuple[str, ...], points: np.ndarray) -> None:
        if self._layouts.get(index) is layout and self.paths:
            rows = zip(paths, points.tolist(), strict=True)
            self._panels[index].pins.show([Pin(path, Path(path).name, x, y) for path, (x, y) in rows])
            self.changed.emit()

    def _ask(self, index: int, question: Question, done: Callable[[Any], None]) -> None:
        ticket = next(self._tickets)

        def answered(answer: Any) -> None:
            if self._open.pop(ticket, None) is not None:
                done(answer)
                self._end_if_idle()

        def refused(failure: Failure) -> None:
            if self._open.pop(ticket, None) is not None:
                if failure.kind != "cancelled":
                    self.failed.emit(failure)
                self._end_if_idle()

        def progressed(share: float, note: str) -> None:
            if ticket in self._open:
                self.progressed.emit(share, f"Placing {self._count} on {'AB'[index]}: {note}")

        number = self._client.ask(question, done=answered, failed=refused, progress=progressed, owner=self)
        self._open[ticket] = (number, index)
        self.progressed.emit(0.0, f"Placing {self._count} on {'AB'[index]}")

    @property
    def _count(self) -> str:
        return f"{len(self.paths):,} image{'' if len(self.paths) == 1 else 's'}"

    def _end_if_idle(self) -> None:
        if not self._open:
            self.finished.emit()


def carried(
    layout: str, points: Float[np.ndarray, "q 2"], target: Float[np.ndarray, "m 2"]
) -> Float[np.ndarray, "q 2"]:
    """Map positions of a stored layout to the target one; maps of the same method may be rotated differently."""
    stored = load_npy(layout)
    if stored.shape != target.shape or np.array_equal(stored, target):
        return points
    return procrustes(stored, target).apply(points)
