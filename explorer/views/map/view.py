"""The Map view: its data, links and saved settings."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
from jaxtyping import Int
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QAction, QKeyEvent, QShowEvent
from PySide6.QtWidgets import QApplication, QWidget

from explorer.models.thumbnails import Thumbnails
from explorer.theme import BETWEEN, SPACE
from explorer.views.map.actions import make_actions
from explorer.views.map.appearance import MapAppearance
from explorer.views.map.card import PairCard
from explorer.views.map.details import MapDetails
from explorer.views.map.external_images import ExternalImages, PlacedLayout
from explorer.views.map.load import MapSide, Sketch, read_one, read_sketch
from explorer.views.map.panel import MapPanel
from explorer.views.map.projecting import Projecting, read_facing
from explorer.views.map.rotation_3d import Rotation3D
from explorer.views.map.selecting import Selecting, written_rows
from explorer.views.map.text_search import TextSearch
from explorer.views.map.toolbar import MapToolbar
from explorer.views.view import View, steps_in_words
from explorer.widgets import layouts
from explorer.widgets.point_map.locking import Locking
from explorer.widgets.progress_row import ProgressRow
from trainer.analysis.projection import percent
from trainer.charts.pair_colors import COMPUTED, MOST_RANKED, PairNumbers
from trainer.charts.point_placement import LABELS, METHODS, PointPlacement, few_points
from trainer.errors import UserError
from trainer.messages import Failure
from trainer.store import SplitKey, derived

NO_RUN = "Choose run A in the bar above, and run B to compare. Their embeddings then appear here as points."

ALIGNED = "B aligned to A where both show the same pairs"
CAUTION = "Distances between clusters mean nothing"
_MEASURED = "changes are measured in embedding space. B is Procrustes-aligned to A where both show the same pairs."
CAUTION_DETAILS = f"Distances between clusters are not meaningful; {_MEASURED}"
PCA_DETAILS = f"What varies along the other components is not to be seen; {_MEASURED}"


def variance_words(shares: dict[str, float], components: int) -> str:
    """Return how much of the variance a projection shows, of the maps with these letters."""
    parts = " · ".join(f"{letter} {percent(share)}" for letter, share in shares.items())
    count = {2: "two", 3: "three"}[components]
    return f"Variance shown by {count} components: {parts}" if parts else ""


class MapView(View):
    """Maps of images and texts: A and B side by side, with linked hover and selection."""

    title = "Map"
    question = "2-D maps of the image and text embeddings."
    icon = "chart-scatter"
    compares = "pictures"
    when_chosen = "Their embeddings then appear here as points."

    def build(self) -> Iterator[None]:
        context = self.context
        self._key: tuple[object, ...] | None = None
        self._chose_method = False
        self._card_side = 0
        self.pictures = Thumbnails(context.background, self)
        self.toolbar = MapToolbar(self)
        self.panels = (MapPanel(0, self.pictures), MapPanel(1, self.pictures))
        for panel, other in zip(self.panels, self.panels[::-1], strict=True):
            panel.sprites.twin = other.sprites
        self.card = PairCard(self.pictures, self)
        yield
        self.details_pane = MapDetails(context, self.pictures)
        yield
        self.selecting = Selecting(self.panels, context.selection, context.background, self.toolbar.tools, self)
        self.appearance = MapAppearance(self.panels, self.toolbar, self.details_pane, self.selecting, context, self)
        self.text_search = TextSearch(self.panels, self.selecting, context.background, self)
        self.rotation = Rotation3D(self.panels, context.background, self)
        self.placing = ProgressRow("map-placing", self, asks=True)
        self._locking = Locking([panel.map for panel in self.panels], self)
        self.external_images = ExternalImages(self.panels, context.client, context.background, self)
        self._projecting = Projecting(context, self)
        self.caution = layouts.elided(role="small")
        self.caution.setObjectName("map-caution")
        # The legend has a row of its own: beside the inspector, too, it is whole, and the tools below keep their place.
        marks = (self.details_pane.marks, 0, Qt.AlignmentFlag.AlignVCenter)
        self.foot = layouts.panel(
            layouts.column(
                layouts.row(marks, (self.caution, 1), self.details_pane.show_all),
                self.details_pane.legend_row,
                layouts.row(self.toolbar.tools, (self.text_search.field, 3), (layouts.STRETCH, 1), gap=BETWEEN),
                gap=SPACE,
            )
        )
        yield
        layouts.add(self.main, self.toolbar.methods, self.toolbar.color)
        layouts.add(
            self.body,
            (layouts.row(*((panel, 1) for panel in self.panels), gap=BETWEEN), 1),
            self.foot,
        )
        yield
        show_classes = self.details_pane.legend.clearSelection
        parts = (self, self.toolbar, self.selecting, self.text_search)
        self._actions = make_actions(*parts, fit=self.fit, resize_brush=self.resize_brush, show_classes=show_classes)
        self._remembered()
        self._connect()

    # What the window asks ---------------------------------------------------------------------------------------

    def command(self) -> list[str] | None:
        drawn = [panel.side for panel in self.panels if panel.side is not None]
        if not drawn:
            return None
        selection = self.context.selection
        arguments = ["export", "map", "--runs", *dict.fromkeys(str(side.run) for side in drawn)]
        arguments += steps_in_words([selection.step_of(index) for index, each in enumerate(self.panels) if each.side])
        # A and B of different data are each drawn on their own, which no option names.
        if len({(side.row.dataset, side.row.split) for side in drawn}) == 1:
            arguments += ["--dataset", drawn[0].row.dataset, "--split", drawn[0].row.split]
        chosen = self.toolbar.projection
        if self.rotation.on:
            azimuth, elevation = self.rotation.sides[self.panels[0].side is None]
            arguments += ["--method", "pca", "--turn", f"{azimuth:g}", f"{elevation:g}"]
            return [*arguments, *self._lit_words()]
        for name, value in chosen.options.items():
            arguments += [f"--{name}", f"{value:g}" if isinstance(value, float) else str(value)]
        return [*arguments, *self._lit_words()]

    @property
    def _lit_rows(self) -> Int[np.ndarray, " k"]:
        """The pairs that a figure highlights: the selected ones, else those that match the search."""
        rows = self.selecting.rows if len(self.selecting.rows) else self.text_search.rows
        return rows if self.selecting.linked or self.selecting.owner is self.panels[0].side else rows[:0]

    @property
    def filter_words(self) -> str:
        isolated, rows, owner = self.details_pane.isolated_names(), self._lit_rows, self.selecting.owner
        why = "selected" if len(self.selecting.rows) else f"filter: {self.text_search.field.text().strip()}"
        parts = [f"{len(rows):,} of {owner.n:,} pairs, {why}"] if owner is not None and len(rows) else []
        return "; ".join([*parts, *([f"classes: {', '.join(isolated)}"] if isolated else [])])

    def _lit_words(self) -> list[str]:
        """Return the command arguments for what is highlighted, and how."""
        isolated = self.details_pane.isolated_names()
        arguments = ["--isolate", *isolated] if isolated else []
        if len(rows := self._lit_rows):
            arguments += ["--pairs", written_rows(rows, derived.root(self.context.workspace.folder) / "scratch")]
        return [*arguments, "--color", self.toolbar.color_by]

    @property
    def drop_words(self) -> str:
        letters = ["AB"[index] for index, panel in enumerate(self.panels) if panel.side and panel.side.images]
        puts = "put" if len(letters) > 1 else "puts"
        return f"Drop to show where {' and '.join(letters)} {puts} this picture" if letters else ""

    def take(self, paths: Iterable[Path | str]) -> None:
        """Show where each run places these images (dropped, pasted or classified)."""
        self.toolbar.tools.space.setChecked(False)  # images can be placed only in 2-D
        self.external_images.take([*paths])

    def details(self) -> QWidget | None:
        # One pair is in the inspector.
        return None if self.is_empty or self.context.selection.pair_count < 2 else self.details_pane

    def actions_for_more(self) -> list[QAction]:
        return [action for action in self._actions if action.property("section")]

    def shorten(self, on: bool) -> None:
        self.toolbar.methods.shorten(on)

    def actions_for_palette(self) -> list[QAction]:
        return [*self._actions, *self.details_pane.selected.actions()]

    def refresh(self) -> None:
        selection = self.context.selection
        runs = (selection.run_a, selection.run_b)
        if runs == (None, None):
            self._key = None
            for index in (0, 1):
                self._read(index)
            self.show_no_run()
            self.details_changed.emit()
            return
        self.show_content()
        self.details_changed.emit()
        key = (*runs, selection.step_of(0), selection.step_of(1), selection.dataset)
        if key != self._key:
            self._key = key
            for index in (0, 1):
                self._read(index)

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._warm_up()

    def _warm_up(self) -> None:
        """Start the process of projections once there is a picture, which its imports would hold up."""
        if self.isVisible() and any(panel.map.layer.frame and len(panel.map.layer.grid) for panel in self.panels):
            self.context.client.warm_up(projections=True)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Escape and self.context.selection.pair_count:
            self.context.selection.clear()
            return
        super().keyPressEvent(event)

    # Reading ----------------------------------------------------------------------------------------------------

    def _read(self, index: int) -> None:
        """Request one side's points; the current ones stay until they arrive."""
        selection, panel = self.context.selection, self.panels[index]
        run = (selection.run_a, selection.run_b)[index]
        # The map of A alone has the whole stage.
        self.panels[1].setVisible(selection.run_b is not None)
        if run is None:
            self.context.background.forget(self, f"side {index}")
            panel.clear()
            panel.area.empty("columns-2", f"No run {'AB'[index]}", NO_RUN)
            self._after_side()
            return
        first = selection.run_a if index else None
        key = (run, selection.step_of(index), selection.dataset)
        read = partial(self._read_whole, index, key, first, selection.step_of(0))
        panel.area.loading(what="Reading the pairs…")
        if panel.side is not None:
            read()
            return
        self.context.background.run(
            self,
            read_sketch,
            self.context.workspace,
            *key,
            done=partial(self._show_sketch, index, read),
            failed=partial(self._refuse, index),
            key=f"side {index}",
        )

    def _show_sketch(self, index: int, then: Callable[[], None], sketch: Sketch | None) -> None:
        """Show some of very many points until all are placed."""
        if sketch is None:
            then()
        else:
            self.appearance.show_sketch(index, sketch, then)

    def _read_whole(
        self, index: int, key: tuple[int, int | None, SplitKey | None], other: int | None, other_step: int | None
    ) -> None:
        self.context.background.run(
            self,
            read_facing,
            self.context.workspace,
            *key,
            other,
            other_step,
            done=partial(self._show, index),
            failed=partial(self._refuse, index),
            key=f"side {index}",
        )

    def _show(self, index: int, side: MapSide) -> None:
        self.appearance.show_side(index, side, side.pca_words, partial(self._after_showing, index))

    def _after_showing(self, index: int) -> None:
        self._lay(index)
        side = self.panels[index].side
        if index == 0 and side is not None and self._begins_with_umap(side):
            self.toolbar.methods.set_placement(PointPlacement(method="umap"))
            self.controls_changed.emit()
        if index == 0 and self.panels[1].side is not None:
            self._lay(1)  # it faces A, which may have come after it
        if self.rotation.on:
            self.rotation.show()
        elif self.toolbar.projection.method != "pca":
            self._ask_projection(index)
            if index == 0 and self.panels[1].side is not None:
                self._ask_projection(1)  # it faces A, which is another now
        self._after_side()

    def _begins_with_umap(self, side: MapSide) -> bool:
        """Whether UMAP is to follow on PCA: it is there, or soon is, and nothing else was chosen."""
        run = self.context.jobs.run(side.run)
        is_soon = side.n <= MOST_RANKED and run is not None and run.status == "finished"
        return not self._chose_method and (side.has_umap or (is_soon and not self.context.jobs.look_only))

    def _refuse(self, index: int, error: Exception) -> None:
        if not isinstance(error, UserError):
            self.context.background.failed.emit(error)
        self.panels[index].clear()
        self.panels[index].area.failed("No map of this run", error, retry=lambda: self._read(index))
        self._after_side()

    def _after_side(self) -> None:
        self.appearance.recolor()
        self.appearance.show_points()
        self.appearance.show_words()
        self.selecting.mark()
        self.text_search.refresh()

    # Projections ------------------------------------------------------------------------------------------------

    def _project(self) -> None:
        projection = self.toolbar.projection
        self._chose_method = True
        self.controls_changed.emit()
        self.context.settings.set("map/projection", [projection.method, projection.neighbors, projection.min_dist])
        self.context.settings.set("map/metric", [projection.metric, projection.seed])
        if projection.method == "pca":
            self._projecting.cancel()
        if self.rotation.on:
            return
        for index, panel in enumerate(self.panels):
            if panel.side is None:
                continue
            if projection.method != "pca":
                self._ask_projection(index)
            else:
                panel.map.move_points(panel.side.xy)
                panel.show_projection(panel.side.pca_words)
                self._lay(index)

    def _ask_projection(self, index: int) -> None:
        """Request one map's points; those of B are aligned to A if both show the same pairs."""
        side = self.panels[index].side
        if side is not None:
            self._projecting.ask(index, side, self.toolbar.projection, self._faces(index, side))

    def _place(self, index: int, side: MapSide, projection: PointPlacement, points: np.ndarray, text: str) -> None:
        panel = self.panels[index]
        if panel.side is side and projection == self.toolbar.projection and not self.rotation.on:
            panel.map.move_points(points)
            panel.show_projection(text)
            self._lay(index, projection, points)

    def _sketch(self, index: int, side: MapSide, projection: PointPlacement, points: np.ndarray) -> None:
        """Show the points of the layout so far: the map can be read from its first epochs on."""
        panel = self.panels[index]
        if panel.side is side and projection == self.toolbar.projection and not self.rotation.on:
            panel.map.move_points(points)

    def _lay(self, index: int, how: PointPlacement | None = None, points: np.ndarray | None = None) -> None:
        """Place external images again, because the points of a map have moved."""
        side = self.panels[index].side
        self._show_caution(how)
        if side is None or self.rotation.on:
            self.external_images.lay(index, None)
            return
        face = self._faces(index, side)
        onto = str(face.row.folder) if face is not None else ""
        self.external_images.lay(
            index, PlacedLayout(side, how or PointPlacement(method="pca"), side.xy if points is None else points, onto)
        )

    def _show_caution(self, how: PointPlacement | None) -> None:
        """Say what the distances of points placed like this mean; None: by PCA."""
        count = 3 if self.rotation.on else 2
        sides = {"AB"[panel.index]: panel.side for panel in self.panels if panel.side is not None}
        shares = {letter: sum(side.shares[:count]) for letter, side in sides.items() if side.shares}
        is_pca = how is None or how.method == "pca"
        points = min((side.images + side.texts for side in sides.values()), default=0)
        few = "" if how is None or not points else few_points(how.method, how.neighborhood, points)
        meaning = variance_words(shares, count) if is_pca else few or CAUTION
        aligned = ALIGNED if len(sides) > 1 and not few else ""
        self.caution.setText(" · ".join(filter(None, (meaning, aligned))))
        self.caution.set_details(PCA_DETAILS if is_pca else CAUTION_DETAILS)

    def _faces(self, index: int, side: MapSide) -> MapSide | None:
        first = self.panels[0].side
        face = index == 1 and first is not None and first.identity == side.identity and first.row != side.row
        return first if face else None

    def _show_progress(self, index: int, share: float, note: str, waiting: set[int]) -> None:
        method = LABELS[self.toolbar.projection.method]
        text = f"{method} of {'AB'[index]}: {note}"
        self.placing.show_progress(share, text)
        for panel in self.panels:
            said = note if panel.index == index else "waiting for the projection process"
            panel.show_progress(f"{method}: {said}" if panel.index in waiting else "")
            if panel.side is not None:
                panel.area.loading()

    def _end_progress(self) -> None:
        if self._projecting.busy or self.external_images.busy:
            return
        self.placing.end()
        for panel in self.panels:
            panel.show_progress("")
            if panel.area.kind == "loading" and panel.side is not None:
                panel.area.ready()

    def _stop_projecting(self) -> None:
        if not self._projecting.busy and self.external_images.busy:
            self.external_images.clear()
            return
        self._projecting.cancel()
        self.toolbar.methods.set_placement(replace(self.toolbar.methods.placement, method="pca", coordinates=""))
        self._project()

    def _on_projection_failed(self, failure: Failure) -> None:
        self.failed.emit(*failure.sentences)
        self._stop_projecting()

    # Selecting and pointing -------------------------------------------------------------------------------------

    def fit(self) -> None:
        """Show all points of both maps."""
        for panel in self.panels:
            panel.map.fit()

    def resize_brush(self, steps: int) -> None:
        """Resize the brush in both maps."""
        for panel in self.panels:
            panel.map.resize_brush(steps)

    def _list_pairs(self) -> None:
        owner, linked = self.selecting.owner, len(self.selecting.sides) == 2
        letter = self.selecting.letter(owner) if linked else ""
        linked_same = self.selecting.linked
        shows_ranks = self.toolbar.color_by in COMPUTED  # only on request, because captions need the space
        numbers = [
            ("AB"[panel.index], panel.numbers)
            for panel in self.panels
            if panel.numbers is not None and (linked_same or panel.side is owner) and shows_ranks
        ]
        self.details_pane.show_pairs(owner, self.selecting.rows, of=letter, numbers=numbers)

    def _show_card(self, index: int, point: int, point_on_screen: QPoint) -> None:
        panel = self.panels[index]
        if panel.side is None or point < 0:
            return
        self._card_side = index
        self.card.show_pair(panel.side, panel.side.pair_of(point), self.selecting.panels_of(index))
        self.card.show_at(point_on_screen, panel.map)
        self._ask_about(panel.side.pair_of(point), index)

    def _ask_about(self, row: int, index: int) -> None:
        """Request the rank of this pair; with very many pairs not all are computed."""
        for panel in self.selecting.panels_of(index):
            if panel.side is not None and panel.numbers is None and panel.side.n > MOST_RANKED:
                self.context.background.run(
                    self,
                    read_one,
                    panel.side,
                    row,
                    done=partial(self._take_one, panel, row),
                    key=f"one {panel.index}",
                )

    def _take_one(self, panel: MapPanel, row: int, numbers: PairNumbers | None) -> None:
        panel.one = None if numbers is None else (row, numbers)
        self._fill_card()

    def _fill_card(self) -> None:
        self.card.fill(self.selecting.panels_of(self._card_side))

    # Space ------------------------------------------------------------------------------------------------------

    def _set_space(self, on: bool) -> None:
        """Switch to 3-D, available for PCA only, or back to the selected projection."""
        if on:
            self._projecting.cancel()
            self._take_focus_of_methods()
        self.toolbar.methods.setEnabled(not on)
        self.rotation.set_on(on)
        if on:
            for index in (0, 1):
                self.external_images.lay(index, None)
        if not on:
            self._project()
            self.fit()

    def _take_focus_of_methods(self) -> None:
        """Focus a map in place of a method: a disabled button loses the focus, and with it the keys of the view."""
        focus = QApplication.focusWidget()
        if focus is not None and self.toolbar.methods.isAncestorOf(focus):
            next((panel for panel in self.panels if panel.side is not None), self.panels[0]).map.setFocus()

    def _set_lock(self, on: bool) -> None:
        self.context.settings.set("map/linked", on)
        self._link(on)

    def _link(self, on: bool) -> None:
        self.rotation.locked = on
        self._locking.set_on(on)
        if on and self.rotation.on:
            self.rotation.turn_to(0, *self.rotation.sides[0])

    # Wiring -----------------------------------------------------------------------------------------------------

    def _remembered(self) -> None:
        remembered = self.context.settings.value("map/projection", [])
        metric, seed = self.context.settings.value("map/metric", ["cosine", 0])
        if isinstance(remembered, list) and len(remembered) == 3 and remembered[0] in METHODS[:-1]:
            method, neighbors, min_dist = remembered
            numbers = {"neighbors": int(neighbors), "min_dist": float(min_dist), "seed": int(seed)}
            self.toolbar.methods.set_placement(PointPlacement(method=method, metric=metric, **numbers))
            self._chose_method = True
        self.toolbar.tools.lock.setChecked(self.context.settings.value("map/linked", True))
        self._link(self.toolbar.tools.lock.isChecked())  # nothing listens to the button yet

    def _connect(self) -> None:
        selection, toolbar = self.context.selection, self.toolbar
        for signal in (selection.runs_changed, selection.step_changed, selection.dataset_changed):
            signal.connect(self.refresh_if_seen)
        self.context.jobs.snapshots_changed.connect(self._on_snapshot)
        for index, panel in enumerate(self.panels):
            panel.map.layer.framed.connect(self._warm_up)
            panel.map.settled.connect(partial(self._show_card, index))
            panel.map.hover_ended.connect(self.card.end)
            panel.map.view_changed.connect(self.card.end)
            # A card that stays would cover what is being outlined.
            panel.map.box.outlining.connect(self._on_outline)
            panel.map.box.brush_at.connect(self._on_outline)
        toolbar.color_changed.connect(self._list_pairs)
        toolbar.projection_changed.connect(self._project)
        self.placing.cancelled.connect(self._stop_projecting)
        self._projecting.placed.connect(self._place)
        self._projecting.sketched.connect(self._sketch)
        self._projecting.progressed.connect(self._show_progress)
        self._projecting.finished.connect(self._end_progress)
        self._projecting.failed.connect(self._on_projection_failed)
        toolbar.tools.fit_asked.connect(self.fit)
        toolbar.tools.grow_asked.connect(self.selecting.grow)
        toolbar.tools.space_changed.connect(self._set_space)
        toolbar.tools.lock_changed.connect(self._set_lock)
        self.rotation.failed.connect(self._space_failed)
        self.rotation.turned.connect(self.card.end)
        self.selecting.marked.connect(self._list_pairs)
        self.selecting.noticed.connect(self.details_pane.selected.show_message)
        self.appearance.numbers_changed.connect(self._fill_card)
        self.appearance.numbers_changed.connect(self._list_pairs)
        self.details_pane.selected.failed.connect(self.failed)
        self.details_pane.remove_asked.connect(self.external_images.clear)
        self.external_images.changed.connect(lambda: self.details_pane.show_placed(self.external_images.placed))
        self.external_images.progressed.connect(self.placing.show_progress)
        self.external_images.finished.connect(self._end_progress)
        self.external_images.failed.connect(lambda failure: self.failed.emit(*failure.sentences))
        selection.placing.connect(self.take)
        self.pictures.arrived.connect(self._on_picture)

    def _on_outline(self, outline: np.ndarray) -> None:
        if len(outline) > 1:
            self.card.end()

    def _on_picture(self, _path: str) -> None:
        self._fill_card()
        for panel in self.panels:
            panel.sprites.refresh()
            panel.map.layer.update()

    def _space_failed(self, error: Exception) -> None:
        self.context.background.failed.emit(error)
        self.toolbar.tools.space.setChecked(False)

    def _on_snapshot(self, run: int) -> None:
        """Update the points when a training run has embedded again, if its last step is shown."""
        selection = self.context.selection
        if selection.follows(run):
            if not self.isVisible():
                self._key = None
                return
            for index, shown_run in enumerate((selection.run_a, selection.run_b)):
                if shown_run == run:
                    self._read(index)
