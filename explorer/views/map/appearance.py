"""The maps' appearance: colors and legend, contours, thumbnails, cluster labels, visible modalities."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from operator import is_
from typing import Final

import numpy as np
from jaxtyping import Float, Int
from PySide6.QtCore import QObject, Qt, QTimer, Signal
from PySide6.QtWidgets import QWidget

from explorer.theme import run_color, theme
from explorer.views.map.coloring import CLASS, COMPUTED, MODALITY, Coloring, means_classes
from explorer.views.map.details import MapDetails
from explorer.views.map.load import MapSide, Sketch, read_changes, read_numbers, read_words
from explorer.views.map.panel import MapPanel
from explorer.views.map.selecting import Selecting
from explorer.views.map.shared_colors import ColorRequest, SharedColors, columns_of, found
from explorer.views.map.toolbar import MapToolbar
from explorer.views.map.tools import AWAY_AT_FIRST
from explorer.views.view import Context
from explorer.widgets.point_map.labels import Label
from explorer.widgets.progress_row import ProgressRow
from trainer.analysis.cluster_words import ClusterWords
from trainer.analysis.dominant_classes import dominant_points
from trainer.charts.metadata_columns import NO_VALUE, MetadataColumn
from trainer.charts.pair_colors import CHANGED, MOST_RANKED, PairNumbers

POLL_MS = 120
BETWEEN: Final = 2
"""Number of the watch over what is compared between the maps; 0 and 1 are the maps' own."""
MEMBERS = 300
"""Points of a cluster that decide where its words stand."""


class StopFlag:
    """The progress of a background computation, and a flag that stops it at its next step. Holds no Qt objects."""

    def __init__(self) -> None:
        self.share, self.note = 0.0, ""
        self.stopped = False

    def __call__(self, share: float, note: str) -> None:
        """Receive progress from the thread.

        Raises:
            InterruptedError: It is to stop.
        """
        if self.stopped:
            raise InterruptedError("cancelled")
        self.share, self.note = share, note


class MapAppearance(QObject):
    """The appearance of both maps."""

    numbers_changed = Signal()  # It is known now how a run sees its pairs.

    def __init__(
        self,
        panels: Sequence[MapPanel],
        toolbar: MapToolbar,
        details: MapDetails,
        selecting: Selecting,
        context: Context,
        parent: QWidget,
    ) -> None:
        super().__init__(parent)
        self._working = ProgressRow("map-coloring", parent)
        self._working.cancelled.connect(self._cancel)
        self._panels, self._toolbar, self._details = panels, toolbar, details
        self._selecting, self._context = selecting, context
        self._by = context.settings.value("map/color", CLASS)
        self._colors = SharedColors()
        self._clusters: dict[int, tuple[MapSide, ClusterWords, list[Int[np.ndarray, " m"]]]] = {}
        self._watches: dict[int, StopFlag] = {}
        self._changes: tuple[tuple[MapSide, MapSide], Mapping[str, MetadataColumn]] | None = None
        self._poll = QTimer(self, interval=POLL_MS, timeout=self._show_work)
        self._restore()
        toolbar.color_changed.connect(self._choose)
        toolbar.tools.shown_changed.connect(self._switch)
        details.isolated.connect(self._isolate)
        selecting.marked.connect(self.show_legend)
        theme().follow(self.recolor)
        for index, panel in enumerate(panels):
            panel.map.layer.indexed.connect(partial(self._place_words, index))
            # Queued: it is told while the map is painted.
            panel.glyphs.seen_changed.connect(self._show_glyphs, Qt.ConnectionType.QueuedConnection)

    # Colors ----------------------------------------------------------------------------------------------------

    def show_side(self, index: int, side: MapSide, projection: str, then: Callable[[], None]) -> None:
        """Show a snapshot in one map with the selected colors, then call `then`; colors of many points come first."""
        sides = {p.index: p.side for p in self._panels if p.side is not None} | {index: side}
        numbers = {p.index: p.numbers for p in self._panels if p.index != index}
        order = sorted(sides)
        drawn = [sides[i] for i in order]
        choices = columns_of(drawn)
        self._toolbar.offer_colors(choices, self._by if self._by in choices else MODALITY)
        self._stop(index)
        self._stop(BETWEEN)
        request = self._wanted(drawn, [numbers.get(i) for i in order])

        def enter(made: list[Coloring]) -> None:
            self._colors.keep(request, made)
            self._panels[index].show_side(side, made[order.index(index)], projection)
            if side.n <= MOST_RANKED:
                self._compute(index, side)
            then()

        if self._colors.known(request):
            enter(self._colors.of(request))
        else:
            again = partial(self.show_side, index, side, projection, then)
            self._enter(index, request, enter, again)

    def _enter(
        self, index: int, request: ColorRequest, enter: Callable[[list[Coloring]], None], again: Callable[[], None]
    ) -> None:
        """Find the colors on the thread, then show the points; or say that there are none."""

        def refuse(error: Exception) -> None:
            self._context.background.failed.emit(error)
            self._panels[index].area.failed("Could not color the points", error, retry=again)

        self._context.background.run(self, found, request, done=enter, failed=refuse, key=f"enter {index}")

    def show_sketch(self, index: int, sketch: Sketch, then: Callable[[], None]) -> None:
        """Show part of a snapshot with the selected colors until all of it arrives, then call `then`."""
        request = ColorRequest(self._by, (sketch.side,), (None,), dark=theme().dark, runs=self._run_colors())

        def enter(made: list[Coloring]) -> None:
            self._panels[index].show_sketch(sketch, made[0])
            then()

        # On the thread though they are few: the first colors of a process load what names of colors mean.
        self._enter(index, request, enter, partial(self.show_sketch, index, sketch, then))

    def recolor(self) -> None:
        """Color the points by the selected column and update the legend."""
        if self._toolbar.color_by in COMPUTED:
            for index, panel in enumerate(self._panels):
                if panel.side is not None and panel.numbers is None and index not in self._watches:
                    self._compute(index, panel.side)
        panels = self._shown_panels
        request = self._wanted([p.side for p in panels if p.side is not None], [p.numbers for p in panels])
        if request.by in CHANGED and not any(request.more) and BETWEEN not in self._watches:
            self._compare(request.sides)
        if self._colors.known(request):
            self._take_colors(request, self._colors.of(request))
        else:
            take = partial(self._take_colors, request)
            self._context.background.run(self, found, request, done=take, key="colors")

    def _take_colors(self, request: ColorRequest, made: list[Coloring]) -> None:
        panels = self._shown_panels
        if [panel.side for panel in panels] != [*request.sides]:
            return
        self._colors.keep(request, made)
        for panel, colors in zip(panels, made, strict=True):
            panel.color(colors)
        self.show_legend()
        self._isolate(self._details.legend.chosen())

    def _wanted(self, sides: Sequence[MapSide], numbers: Sequence[PairNumbers | None]) -> ColorRequest:
        is_current = self._changes is not None and all(map(is_, self._changes[0], sides)) and len(sides) == 2
        more = (self._changes[1],) * 2 if is_current and self._changes is not None else ()
        runs = self._run_colors()
        return ColorRequest(self._toolbar.color_by, tuple(sides), tuple(numbers), more, dark=theme().dark, runs=runs)

    def show_legend(self) -> None:
        """Update the legend: each color's meaning, its number of pairs, and how many are selected."""
        sides, colors = self._selecting.sides, self._colorings()
        if self._selecting.linked and not any(coloring.own_scale for coloring in colors) and _equal(colors):
            sides, colors = sides[:1], colors[:1]
        self._details.show_colors(colors, sides, self._selecting.rows, owner=self._selecting.owner)

    def _show_glyphs(self) -> None:
        """Draw the legend's marks as the points of a map are."""
        self._details.legend.show_glyphs(any(panel.glyphs.are_seen for panel in self._shown_panels))

    def show_points(self) -> None:
        """Hide images or texts if that is selected."""
        visible = [self._toolbar.tools.is_shown(name) for name in ("images", "texts")]
        for panel in self._shown_panels:
            side = panel.side
            mask = np.repeat(visible, [side.images, side.texts]) if side is not None else np.empty(0, bool)
            panel.map.set_shown(None if all(visible) else mask)
            panel.sprites.set_shown(self._toolbar.tools.is_shown("sprites") and visible[0])

    def _run_colors(self) -> tuple[str, str]:
        return run_color(0, self._panels[0]), run_color(1, self._panels[0])

    @property
    def _shown_panels(self) -> list[MapPanel]:
        return [panel for panel in self._panels if panel.side is not None]

    def _colorings(self) -> list[Coloring]:
        """Return the maps' current colors; newly selected ones may still be pending."""
        panels = self._shown_panels
        sides = [panel.side for panel in panels if panel.side is not None]
        last = self._colors.last(sides)
        return last if last is not None else self._colors.of(self._wanted(sides, [p.numbers for p in panels]))

    def _choose(self) -> None:
        self._by = self._toolbar.color_by
        self._context.settings.set("map/color", self._by)
        if self._by not in COMPUTED:
            self._cancel_large()
        if self._by not in CHANGED:
            self._stop(BETWEEN)
        self.recolor()

    def _isolate(self, classes: list[int]) -> None:
        self.show_words()
        for panel, colors in zip(self._shown_panels, self._colorings(), strict=True):
            if not classes:
                panel.map.set_isolated(None)
                continue
            lit = np.zeros(len(colors.palette), bool)
            lit[classes] = True
            panel.map.set_isolated(lit[colors.index])

    # How a run sees its pairs -----------------------------------------------------------------------------------

    def _compute(self, index: int, side: MapSide) -> None:
        watch = self._watches[index] = StopFlag()
        self._context.background.run(
            self,
            read_numbers,
            side,
            watch,
            done=partial(self._take_numbers, index, side),
            failed=partial(self._fail, index, watch),
            key=f"numbers {index}",
        )
        self._poll.start()

    def _compare(self, sides: Sequence[MapSide]) -> None:
        """Compute the changes from A to B pair by pair on a cancellable thread, for coloring."""
        if len(sides) != 2:
            return
        both = (sides[0], sides[1])
        watch = self._watches[BETWEEN] = StopFlag()
        self._context.background.run(
            self,
            read_changes,
            self._context.workspace,
            *both,
            watch,
            done=partial(self._take_changes, both),
            failed=partial(self._fail, BETWEEN, watch),
            key="changes",
        )
        self._poll.start()

    def _take_changes(self, sides: tuple[MapSide, MapSide], columns: Mapping[str, MetadataColumn]) -> None:
        self._watches.pop(BETWEEN, None)
        self._show_work()
        self._changes = (sides, columns)
        if self._toolbar.color_by in CHANGED:
            self.recolor()

    def _take_numbers(self, index: int, side: MapSide, numbers: PairNumbers | None) -> None:
        self._watches.pop(index, None)
        self._show_work()
        if self._panels[index].side is not side:
            return
        self._panels[index].numbers = numbers
        self.numbers_changed.emit()
        if self._toolbar.color_by in COMPUTED:
            self.recolor()

    def _fail(self, index: int, watch: StopFlag, error: Exception) -> None:
        if self._watches.get(index) is watch:
            del self._watches[index]
        self._show_work()
        if not isinstance(error, InterruptedError):
            self._context.background.failed.emit(error)

    def _stop(self, index: int) -> None:
        if (watch := self._watches.pop(index, None)) is not None:
            watch.stopped = True
            self._context.background.forget(self, "changes" if index == BETWEEN else f"numbers {index}")

    def _cancel_large(self) -> None:
        for index in list(self._watches):
            if index == BETWEEN:
                continue
            side = self._panels[index].side
            if side is None or side.n > MOST_RANKED:
                self._stop(index)
        self._show_work()

    def _cancel(self) -> None:
        """Cancel the rank computation and color by modality."""
        self._cancel_large()
        self._stop(BETWEEN)
        self._toolbar.offer_colors(columns_of(self._selecting.sides), MODALITY)
        self._choose()

    def _show_work(self) -> None:
        large = [watch for index, watch in self._watches.items() if self._is_long(index)]
        if large:
            self._working.show_progress(large[0].share, (large[0].note or "Reading the embeddings").capitalize())
        else:
            self._working.end()
        if not self._watches:
            self._poll.stop()

    def _is_long(self, index: int) -> bool:
        if index == BETWEEN:
            return True
        side = self._panels[index].side
        return side is not None and side.n > MOST_RANKED

    # Contours, thumbnails, words --------------------------------------------------------------------------------

    def _restore(self) -> None:
        away = self._context.settings.value("map/away", [*AWAY_AT_FIRST])
        for name, action in self._toolbar.tools.shown.items():
            action.setChecked(name not in away)
        self._apply()

    def _switch(self, name: str) -> None:
        away = [name for name, action in self._toolbar.tools.shown.items() if not action.isChecked()]
        self._context.settings.set("map/away", away)
        self._apply()
        if name in ("images", "texts", "sprites"):
            self.show_points()
        if name == "labels":
            self.show_words()

    def _apply(self) -> None:
        for panel in self._panels:
            panel.contours.set_shown(self._toolbar.tools.is_shown("contours"))

    def show_words(self) -> None:
        """Show cluster labels over each map once they are available, or hide them."""
        for index, panel in enumerate(self._panels):
            side = panel.side
            if side is None or not self._toolbar.tools.is_shown("labels"):
                panel.labels.show(())
            elif self._names_classes(panel) or (index in self._clusters and self._clusters[index][0] is side):
                self._place_words(index)
            elif any(side.items.caption[:1000]):
                self._context.background.run(
                    self, grouped, side, done=partial(self._take_words, index, side), key=f"words {index}"
                )

    @staticmethod
    def _names_classes(panel: MapPanel) -> bool:
        return panel.coloring is not None and means_classes(panel.coloring)

    def _take_words(self, index: int, side: MapSide, named: tuple[ClusterWords, list[Int[np.ndarray, " m"]]]) -> None:
        if self._panels[index].side is side:
            self._clusters[index] = (side, *named)
            self._place_words(index)

    def _place_words(self, index: int) -> None:
        """Name each class where it dominates, or place each cluster's label at the center of its points."""
        entry, panel = self._clusters.get(index), self._panels[index]
        if panel.side is None or not self._toolbar.tools.is_shown("labels"):
            return
        xy, coloring = panel.map.layer.grid.xy, panel.coloring
        if coloring is not None and means_classes(coloring) and len(coloring.index) == len(xy):
            done = partial(self._show_class_names, index, coloring, xy)
            self._context.background.run(
                self, dominant_labels, coloring.names, coloring.index, xy, done=done, key=f"words {index}", urgent=True
            )
            return
        if entry is None or entry[0] is not panel.side:
            return
        _, clusters, members = entry
        if max((int(rows.max(initial=0)) for rows in members), default=0) >= len(xy):
            return
        panel.labels.show(labels_of(clusters, members, xy))

    def _show_class_names(self, index: int, coloring: Coloring, xy: np.ndarray, labels: Sequence[Label]) -> None:
        panel = self._panels[index]
        is_current = panel.coloring is coloring and panel.map.layer.grid.xy is xy
        if is_current and self._toolbar.tools.is_shown("labels"):
            in_color = self._details.isolated_names()
            panel.labels.show([label for label in labels if not in_color or label.text in in_color])


def grouped(side: MapSide) -> tuple[ClusterWords, list[Int[np.ndarray, " m"]]]:
    """Return clusters with their words, and a random sample of pairs of each for placing it on a map."""
    clusters = read_words(side)
    rng = np.random.default_rng(0)
    members = []
    for group in range(len(clusters.counts)):
        rows = np.flatnonzero(clusters.group == group)
        members.append(rng.choice(rows, MEMBERS, replace=False) if len(rows) > MEMBERS else rows)
    return clusters, members


def labels_of(
    clusters: ClusterWords, members: Sequence[Int[np.ndarray, " m"]], xy: Float[np.ndarray, "n 2"]
) -> list[Label]:
    """Return labels placed at each cluster's most central point, largest cluster first."""
    labels = []
    for name, rows in zip(clusters.words, members, strict=True):
        points = np.asarray(xy[rows], np.float64)
        points = points[np.isfinite(points).all(axis=1)]
        if not name or not len(points):
            continue
        # The median alone may stand in a void between two heaps: the point nearest to it never does.
        middle = np.median(points, axis=0)
        x, y = points[((points - middle) ** 2).sum(axis=1).argmin()]
        labels.append(Label(" ".join(name), float(x), float(y)))
    return labels


def dominant_labels(names: Sequence[str], classes: Int[np.ndarray, " n"], xy: Float[np.ndarray, "n 2"]) -> list[Label]:
    """Return the name of each class that dominates somewhere, where it is densest. For a thread."""
    # The last color is of what is not known.
    named = {number: name for number, name in enumerate(names) if name != NO_VALUE}
    return [Label(named[number], x, y) for number, (x, y) in dominant_points(classes, xy).items() if named.get(number)]


def _equal(colors: Sequence[Coloring]) -> bool:
    """Return whether the same pairs have the same colors in all maps, so that one count applies to all."""
    first = colors[0] if colors else None
    return first is not None and all(
        coloring.index is first.index or np.array_equal(coloring.index, first.index) for coloring in colors
    )
