"""The Map view: what it shows, what it links, what it remembers."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

import numpy as np
from PySide6.QtCore import QPoint, QRect, Qt
from PySide6.QtGui import QAction, QKeyEvent, QKeySequence, QShowEvent
from PySide6.QtWidgets import QHBoxLayout, QWidget

from explorer.models.pictures import Pictures
from explorer.theme import BETWEEN, theme
from explorer.views.map.card import PairCard
from explorer.views.map.colouring import CLASS, MODALITY
from explorer.views.map.details import MapDetails
from explorer.views.map.panel import MapPanel
from explorer.views.map.projecting import Projecting
from explorer.views.map.reading import PairNumbers, Side, read_numbers, read_side, same_items
from explorer.views.map.shared_colours import SharedColours, columns_of
from explorer.views.map.texts import METHOD, NO_B, NO_RUN
from explorer.views.map.toolbar import Projection, Toolbar
from explorer.views.view import Context, View
from trainer.messages import Failure
from trainer.problem import Problem


class MapView(View):
    """Where the models put images and texts: A and B side by side, hover and selection linked."""

    title = "Map"
    question = "Where do the models put these images and texts?"
    icon = "chart-scatter"
    method = METHOD

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._by = context.settings.value("map/colour", CLASS)
        self._key: tuple[object, ...] | None = None
        self.pictures = Pictures(context.background, self)
        self.toolbar = Toolbar()
        self.panels = (MapPanel(0), MapPanel(1))
        self.card = PairCard(self.pictures, self)
        self._details = MapDetails(self.pictures)
        self._projecting = Projecting(context.asker, context.background, self)
        self._colours = SharedColours()
        side_by_side = QHBoxLayout()
        side_by_side.setSpacing(BETWEEN)
        for panel in self.panels:
            side_by_side.addWidget(panel, 1)
        self.body.addWidget(self.toolbar)
        self.body.addLayout(side_by_side, 1)
        self._actions = self._make_actions()
        self._remembered()
        self._connect()

    # What the window asks ---------------------------------------------------------------------------------------

    def command(self) -> list[str] | None:
        shown = [panel.side for panel in self.panels if panel.side is not None]
        if not shown:
            return None
        words = ["export", "map", "--runs", *dict.fromkeys(str(side.run) for side in shown)]
        if self.context.selection.step is not None:
            words += ["--step", str(self.context.selection.step)]
        words += ["--dataset", shown[0].row.dataset, "--split", shown[0].row.split]
        chosen = self.toolbar.projection
        words += ["--method", chosen.method]
        if chosen.method == "umap":
            words += ["--neighbours", str(chosen.neighbours), "--min-dist", f"{chosen.min_dist:g}"]
            words += ["--seed", str(chosen.seed)]
        return [*words, "--colour", self.toolbar.colour_by]

    def details(self) -> QWidget | None:
        return None if self.is_empty else self._details

    def actions_for_palette(self) -> list[QAction]:
        return self._actions

    def refresh(self) -> None:
        selection = self.context.selection
        runs = (selection.run_a, selection.run_b)
        if runs == (None, None):
            self._key = None
            for index in (0, 1):
                self._read(index)
            self.show_no_run("chart-scatter", NO_RUN)
            self.details_changed.emit()
            return
        self.show_content()
        self.details_changed.emit()
        key = (*runs, selection.step, selection.dataset)
        if key != self._key:
            self._key = key
            for index in (0, 1):
                self._read(index)

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self.context.asker.warm_up(projections=True)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Escape and len(self.context.selection.pairs):
            self.context.selection.clear()
            return
        super().keyPressEvent(event)

    # Reading ----------------------------------------------------------------------------------------------------

    def _read(self, index: int) -> None:
        """Asks for one side's points; what is shown stays until they come."""
        selection, panel = self.context.selection, self.panels[index]
        run = (selection.run_a, selection.run_b)[index]
        if run is None:
            self.context.background.forget(self, f"side {index}")
            panel.show_nothing("columns-2", f"No run {'AB'[index]}", NO_B if index else NO_RUN)
            self._after_side()
            return
        if panel.side is None:
            panel.show_nothing("loader", "Reading the embeddings", "The points appear in a moment.")
        self.context.background.run(
            self,
            read_side,
            self.context.workspace,
            run,
            selection.step,
            selection.dataset,
            done=partial(self._show, index),
            failed=partial(self._refuse, index),
            key=f"side {index}",
        )

    def _show(self, index: int, side: Side) -> None:
        panel = self.panels[index]
        sides = {p.index: p.side for p in self.panels if p.side is not None} | {index: side}
        order = sorted(sides)
        self._offer_colours([sides[i] for i in order])
        colours = self._colours.of(self.toolbar.colour_by, [sides[i] for i in order])
        panel.show_side(side, colours[order.index(index)], Projection().words)
        self.context.background.run(
            self, read_numbers, side, done=partial(self._take_numbers, index, side), key=f"numbers {index}"
        )
        if self.toolbar.projection.method == "umap":
            self._projecting.ask(index, side, self.toolbar.projection)
        self._after_side()

    def _refuse(self, index: int, error: Exception) -> None:
        message = str(error)
        if not isinstance(error, Problem):
            self.context.background.failed.emit(error)
            message = f"An error that should not happen: {message or type(error).__name__}."
        self.panels[index].show_nothing("triangle-alert", "No map of this run", message)
        self._after_side()

    def _take_numbers(self, index: int, side: Side, numbers: PairNumbers | None) -> None:
        if self.panels[index].side is side:
            self.panels[index].numbers = numbers
            self._fill_card()

    def _after_side(self) -> None:
        self._recolour()
        self._show_points()
        self._mark_pairs()

    @property
    def _sides(self) -> list[Side]:
        return [panel.side for panel in self.panels if panel.side is not None]

    @property
    def _owner(self) -> Side | None:
        """The side whose pairs are selected: the first one, or of two that are not linked the one last selected in."""
        sides = self._sides
        if len(sides) == 2 and not self.linked:
            return sides[self._selected_in]
        return sides[0] if sides else None

    @property
    def linked(self) -> bool:
        """Whether both maps show the same pairs, so that hovering and selecting reach both."""
        sides = self._sides
        return len(sides) == 2 and same_items(sides[0].items, sides[1].items)

    # Projections ------------------------------------------------------------------------------------------------

    def _project(self) -> None:
        projection = self.toolbar.projection
        self.context.settings.set("map/projection", [projection.method, projection.neighbours, projection.min_dist])
        if projection.method == "pca":
            self._projecting.cancel()
        for index, panel in enumerate(self.panels):
            if panel.side is None:
                continue
            if projection.method == "umap":
                self._projecting.ask(index, panel.side, projection)
            else:
                panel.map.move_points(panel.side.xy)
                panel.tell_projection(projection.words)

    def _place(self, index: int, side: Side, projection: Projection, points: np.ndarray) -> None:
        panel = self.panels[index]
        if panel.side is side and projection == self.toolbar.projection:
            panel.map.move_points(points)
            panel.tell_projection(projection.words)

    def _tell_progress(self, index: int, share: float, note: str) -> None:
        words = f"UMAP of {'AB'[index]}: {note}"
        self.toolbar.progress.tell(share, words)
        for panel in self.panels:
            panel.tell_progress(f"UMAP: {note}" if panel.index == index else "")

    def _end_progress(self) -> None:
        self.toolbar.progress.hide()
        for panel in self.panels:
            panel.tell_progress("")

    def _stop_projecting(self) -> None:
        self._projecting.cancel()
        chosen = self.toolbar.projection
        self.toolbar.set_projection(Projection("pca", chosen.neighbours, chosen.min_dist))
        self._project()

    def _on_projection_failed(self, failure: Failure) -> None:
        self.failed.emit(failure.message, failure.next)
        self._stop_projecting()

    # Colours ----------------------------------------------------------------------------------------------------

    def _offer_colours(self, sides: list[Side]) -> None:
        choices = columns_of(sides)
        self.toolbar.offer_colours(choices, self._by if self._by in choices else MODALITY)

    def _choose_colour(self) -> None:
        self._by = self.toolbar.colour_by
        self.context.settings.set("map/colour", self._by)
        self._recolour()

    def _recolour(self) -> None:
        shown = [panel for panel in self.panels if panel.side is not None]
        for panel, colours in zip(shown, self._colours.of(self.toolbar.colour_by, self._sides), strict=True):
            panel.map.set_colours(colours.index, colours.palette)
        self._show_legend()
        self._isolate(self._details.legend.chosen())

    def _show_legend(self) -> None:
        sides = self._sides
        colours = self._colours.of(self.toolbar.colour_by, sides)
        if self.linked:
            sides, colours = sides[:1], colours[:1]
        self._details.show_colours(colours, sides, self._rows(), owner=self._owner)

    def _isolate(self, classes: list[int]) -> None:
        shown = [panel for panel in self.panels if panel.side is not None]
        for panel, colours in zip(shown, self._colours.of(self.toolbar.colour_by, self._sides), strict=True):
            panel.map.set_isolated(np.isin(colours.index, classes) if classes else None)

    def _show_points(self) -> None:
        for panel in self.panels:
            if (side := panel.side) is not None:
                kept = [self.toolbar.images.isChecked(), self.toolbar.texts.isChecked()]
                mask = np.repeat(kept, [side.images, side.texts])
                panel.map.set_shown(None if mask.all() else mask)

    # Selecting and pointing -------------------------------------------------------------------------------------

    def _rows(self) -> np.ndarray:
        rows, owner = self.context.selection.pairs, self._owner
        return rows[rows < owner.n] if owner else rows[:0]

    def _select_in(self, index: int) -> np.ndarray:
        """The pairs to add to when map `index` is selected in: none if those selected are the other map's."""
        if not self.linked and index != self._selected_in:
            self._selected_in = index
            return self._rows()[:0]
        return self.context.selection.pairs

    def _sides_of(self, index: int) -> list[MapPanel]:
        """The maps that a pair of map `index` is marked in: both, unless they show other items."""
        return [p for p in self.panels if p.side is not None and (self.linked or p.index == index)]

    def _select_points(self, index: int, points: np.ndarray, add: bool) -> None:
        side = self.panels[index].side
        rows = np.unique(np.where(points < side.images, points, points - side.images))
        before = self._select_in(index)
        self._select(np.union1d(before, rows) if add else rows)

    def _click(self, index: int, point: int, add: bool) -> None:
        if point < 0:
            return
        row = self.panels[index].side.pair_of(point)
        before = self._select_in(index)
        if not add:
            self._select([row])
        elif row in before:
            self._select(before[before != row])
        else:
            self._select([*before, row])

    def _select(self, rows: Iterable[int]) -> None:
        self.context.selection.pairs = rows
        # The same numbers may be another map's pairs now, which the selection itself cannot tell.
        self._mark_pairs()

    def _select_all(self) -> None:
        if (owner := self._owner) is not None:
            self.context.selection.pairs = range(owner.n)

    def _mark_pairs(self) -> None:
        """Shows the selection in both maps, the legend and the list."""
        rows = self._rows()
        for panel in self.panels:
            if (side := panel.side) is None:
                continue
            mask = np.zeros(side.images + side.texts, bool)
            if self.linked or side is self._owner:
                mask[rows[rows < side.images]] = True
                mask[side.images + rows[rows < side.texts]] = True
            panel.map.set_selected(mask)
        owner = self._owner
        self._details.show_pairs(owner, rows, of=self._letter(owner) if len(self._sides) == 2 else "")
        self._show_legend()

    def _letter(self, side: Side | None) -> str:
        """`A` or `B` of a side whose pairs are not the other's too; empty if they are."""
        return "" if self.linked else next(("AB"[p.index] for p in self.panels if p.side is side), "")

    def _point_at(self, index: int, point: int) -> None:
        side = self.panels[index].side
        self._pointed_in = index
        self.context.selection.hovered = side.pair_of(point) if side is not None and point >= 0 else None

    def _mark_hovered(self) -> None:
        row = self.context.selection.hovered
        marked = self._sides_of(self._pointed_in) if row is not None else []
        for panel in self.panels:
            panel.map.set_hovered(*(panel.side.points_of(row) if panel in marked else ()))

    def _show_card(self, index: int, point: int, place: QPoint) -> None:
        panel = self.panels[index]
        if panel.side is None or point < 0:
            return
        self._card_side = index
        room = QRect(panel.mapTo(self, QPoint(0, 0)), panel.size())
        self.card.show_pair(panel.side, panel.side.pair_of(point), self._sides_of(index))
        self.card.show_at(self.mapFromGlobal(place), room)

    def _fill_card(self) -> None:
        self.card.fill(self._sides_of(self._card_side))

    # Wiring -----------------------------------------------------------------------------------------------------

    def _make_actions(self) -> list[QAction]:
        made = []
        for words, keys, sign, do in (
            ("Lasso", "L", "lasso", lambda: self.toolbar.lasso.toggle()),
            ("Show all points", "F", "maximize", self._fit),
            ("Select all pairs", "Ctrl+A", "list-checks", self._select_all),
            ("Show PCA", "", "chart-scatter", lambda: self.toolbar.pca.setChecked(True)),
            ("Show UMAP", "", "chart-scatter", lambda: self.toolbar.umap.setChecked(True)),
        ):
            action = QAction(words, self, objectName=f"map-action-{words.lower().replace(' ', '-')}")
            action.setProperty("icon-name", sign)
            action.setShortcut(QKeySequence(keys))
            action.setShortcutContext(Qt.ShortcutContext.WidgetWithChildrenShortcut)
            action.triggered.connect(lambda _checked=False, do=do: do())
            self.addAction(action)
            made.append(action)
        return made

    def _remembered(self) -> None:
        self._pointed_in = self._card_side = self._selected_in = 0
        remembered = self.context.settings.value("map/projection", [])
        if isinstance(remembered, list) and len(remembered) == 3 and remembered[0] in ("pca", "umap"):
            self.toolbar.set_projection(Projection(remembered[0], int(remembered[1]), float(remembered[2])))

    def _fit(self) -> None:
        for panel in self.panels:
            panel.map.fit()

    def _connect(self) -> None:
        selection, toolbar = self.context.selection, self.toolbar
        for signal in (selection.runs_changed, selection.step_changed, selection.dataset_changed):
            signal.connect(self._refresh_if_seen)
        selection.pairs_changed.connect(self._mark_pairs)
        selection.hovered_changed.connect(self._mark_hovered)
        self.context.jobs.snapshots_changed.connect(self._on_snapshot)
        for index, panel in enumerate(self.panels):
            panel.map.hovered.connect(partial(self._point_at, index))
            panel.map.settled.connect(partial(self._show_card, index))
            panel.map.hover_ended.connect(self.card.end)
            panel.map.view_changed.connect(self.card.end)
            panel.map.clicked.connect(partial(self._click, index))
            panel.map.outlined.connect(partial(self._select_points, index))
        toolbar.projection_changed.connect(self._project)
        toolbar.colour_changed.connect(self._choose_colour)
        toolbar.shown_changed.connect(self._show_points)
        toolbar.lasso_changed.connect(self._set_lasso)
        toolbar.fit_asked.connect(self._fit)
        toolbar.cancel_asked.connect(self._stop_projecting)
        self._projecting.placed.connect(self._place)
        self._projecting.progressed.connect(self._tell_progress)
        self._projecting.finished.connect(self._end_progress)
        self._projecting.failed.connect(self._on_projection_failed)
        self._details.isolated.connect(self._isolate)
        self._details.clear_asked.connect(selection.clear)
        self._details.hovered.connect(lambda row: setattr(selection, "hovered", row if row >= 0 else None))
        self.pictures.arrived.connect(lambda _path: self._fill_card())
        theme().changed.connect(self._recolour)

    def _set_lasso(self, on: bool) -> None:
        for panel in self.panels:
            panel.map.lasso_mode = on

    def _refresh_if_seen(self) -> None:
        if self.isVisible():
            self.refresh()

    def _on_snapshot(self, run: int) -> None:
        """A training run has embedded again: its points move on, if the last step is looked at."""
        selection = self.context.selection
        if selection.step is None and run in (selection.run_a, selection.run_b):
            if not self.isVisible():
                self._key = None
                return
            for index, shown in enumerate((selection.run_a, selection.run_b)):
                if shown == run:
                    self._read(index)
