"""The inspector: one selected pair with picture, caption, ranks in each run, neighbors, tags and state."""

from __future__ import annotations

import re
from typing import Final

import numpy as np
from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QAction, QResizeEvent, QShowEvent
from PySide6.QtWidgets import QPushButton, QSizePolicy, QToolButton, QWidget

from explorer import theme
from explorer.models.thumbnails import Thumbnails
from explorer.state.selection import Side
from explorer.views.chart_pane import request_of
from explorer.views.selected.pair_actions import PairActions
from explorer.views.selected.pair_cards import CourseCard, FactsTable, NeighborRows, RanksTable
from explorer.views.selected.pair_load import LoadedPair, load_pair
from explorer.views.view import Context
from explorer.widgets import layouts
from explorer.widgets.flow_row import FlowRow
from explorer.widgets.image_box import ImageBox
from explorer.widgets.min_size_scroll import MinSizeScroll
from explorer.widgets.state_area import StateArea
from trainer.charts.one_pair import OnePair
from trainer.metrics import data_label

PICTURE_PX: Final = 104
OTHERS_PX: Final = 930
"""Height of all but the picture with the caption below it."""
LARGE_PX, MOST_PICTURE_PX = 160, 320
"""Of a picture above its caption; a smaller one has it to its right."""
LONG_WORD: Final = re.compile(r"(\S{22})(?=\S)")
"""A word that does not fit a narrow panel may be broken after so many letters."""
NOTHING: Final = (
    "Click a point, a bar, a cell or a row in a view. The pair is shown here, and stays while you open other views."
)


class PairInspector(QWidget):
    """Shows the selected pair; of several one at a time, in the order of their rows."""

    failed = Signal(str, str)  # What went wrong, and what to do.
    go = Signal(str)  # Name of a view that is to show the pair.

    def __init__(self, context: Context, parent: QWidget | None = None) -> None:
        super().__init__(parent, objectName="inspector")
        self.context = context
        self.loaded: LoadedPair | None = None
        self.course: CourseCard | None = None
        self._course_place = layouts.column(gap=None)
        self.row: int | None = None
        self._is_old = True
        self._sides: tuple[Side, ...] = ()
        self.pictures = Thumbnails(context.background, self, edge=2 * MOST_PICTURE_PX)
        self.title, self.place = layouts.text(role="strong"), layouts.elided(role="small")
        self.back = self._step("inspector-back", "chevron-left", "Previous selected pair", -1)
        self.forth = self._step("inspector-forth", "chevron-right", "Next selected pair", 1)
        self.close_button = QToolButton(objectName="inspector-close", accessibleName="Close the inspector")
        self.close_button.setToolTip("Close, and select nothing (Esc)")
        theme.keep_icon(self.close_button, "x", 16, "secondary")
        self.picture = ImageBox()
        self.caption = layouts.text(name="inspector-caption", wrap=True)
        self.about, self.problems = (layouts.text(role=role, wrap=True) for role in ("small", "warn"))
        self.ranks = RanksTable()
        self.near = NeighborRows(Thumbnails(context.background, self))
        self.near_panel = layouts.panel(layouts.column(self.near))
        self.pair_actions = PairActions(context)
        self.facts = FactsTable()
        self.show_map = QPushButton("Show on map", objectName="inspector-map")
        self.show_saliency = QPushButton("Saliency map", objectName="inspector-saliency")
        self.area = StateArea(MinSizeScroll(self._lay_out()), width=220, inset=theme.BETWEEN)
        layouts.column(self.area, gap=None, of=self)
        self._connect()

    @property
    def pair(self) -> OnePair | None:
        """The pair shown; None before there is one."""
        return self.loaded.pair if self.loaded is not None else None

    def refresh(self) -> None:
        """Show the current pair of the selection, if the inspector is seen."""
        self._is_old = True
        if not self.isVisible():
            return
        self._is_old = False
        selection = self.context.selection
        pairs = selection.pairs
        if not self.context.jobs.is_read:
            self.area.unknown()
            return
        if not selection.runs or not len(pairs):
            self._forget()
            self._sides = selection.sides
            self.area.empty("target", "No pair selected", NOTHING)
            return
        if selection.current is None:
            selection.current = int(pairs[0])  # announced, and shown then
            return
        self.row = selection.current
        self._show_place()
        self._load(self.row)

    def walk(self, step: int) -> None:
        """Show the next (1) or the previous (-1) selected pair; every view rings it."""
        selection = self.context.selection
        if len(pairs := selection.pairs):
            selection.current = int(pairs[(self._place + step) % len(pairs)])
            selection.hovered = None

    @property
    def _place(self) -> int:
        """The place of the current pair among the selected ones."""
        current = self.context.selection.current
        return 0 if current is None else int(np.searchsorted(self.context.selection.pairs, current))

    def forget_facts(self) -> None:
        """Read tags and states again, because they were changed elsewhere."""
        self.pair_actions.facts = None
        self.refresh()

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        if self._is_old:
            self.refresh()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        room = min(self.width() - 2 * theme.BETWEEN, self.height() - OTHERS_PX, MOST_PICTURE_PX)
        edge = room if room >= LARGE_PX else PICTURE_PX
        self.picture.setFixedSize(edge, edge)
        layouts.stack(self._head, room >= LARGE_PX)

    # -- loading -----------------------------------------------------------------------------------------------

    def _load(self, row: int, *, ranked: bool = False) -> None:
        if not ranked:
            self.area.loading(what="Reading the pair…")
        context = self.context
        self._sides = context.selection.sides
        context.background.run(
            self,
            load_pair,
            context.workspace,
            request_of(context.selection),
            row,
            self.loaded.opened if self.loaded else None,
            self.pair_actions.facts,
            ranked,
            done=self._show,
            failed=self._refuse,
            key="inspector-pair",
        )

    def _forget(self) -> None:
        self.context.background.forget(self, "inspector-pair")
        self.loaded = self.row = None

    def _refuse(self, error: Exception) -> None:
        self.loaded = None
        self.area.failed("Could not read this pair", error, retry=self.refresh)

    def _show(self, loaded: LoadedPair) -> None:
        self.loaded = loaded
        pair = loaded.pair
        self.title.setText(f"Pair {pair.row:,}")
        self._show_picture()
        self.caption.setText(LONG_WORD.sub("\\1\u200b", pair.caption) or "No caption")
        self.about.setText(_about(pair))
        self.problems.setText("\n".join(pair.problems))
        self.problems.setVisible(bool(pair.problems))
        self.ranks.show_pair(pair)
        self._show_course(pair)
        self.near.show_pair(pair)
        self.pair_actions.show_pair(loaded)
        self.facts.show_pair(pair)
        if pair.ranked:
            self.area.ready()
            return
        self.area.partial(f"Ranks and neighbors follow: {max(run.n for run in pair.runs):,} pairs are compared.")
        self._load(pair.row, ranked=True)

    def _show_course(self, pair: OnePair) -> None:
        # A plot takes as long to make as all the rest: it is made for the first pair that has a course.
        if self.course is None:
            if all(len(run.course) < 2 for run in pair.runs):
                return
            self.course = CourseCard()
            self._course_place.addWidget(self.course)
        self.course.show_pair(pair)

    def _show_picture(self, path: str = "") -> None:
        pair = self.pair
        if pair is not None and path in ("", pair.path):
            self.picture.setVisible(bool(pair.path))
            problem = self.pictures.problem(pair.path)
            self.picture.show_picture(self.pictures.get(pair.path), broken=bool(problem))
            self.picture.setToolTip(problem or pair.path)
            self.picture.setAccessibleDescription(pair.caption)

    def _show_place(self) -> None:
        pairs = self.context.selection.pairs
        self.place.setText(f"{self._place + 1:,} of {len(pairs):,}" if len(pairs) > 1 else "")
        for button in (self.back, self.forth):
            button.setVisible(len(pairs) > 1)

    # -- linking -----------------------------------------------------------------------------------------------

    def _on_other_data(self) -> None:
        self._forget()
        self.refresh()

    def _on_snapshots(self, run: int) -> None:
        if self.context.selection.follows(run):
            self.refresh()

    def _choose(self, row: int) -> None:
        self.context.selection.pairs = (row,)

    def _connect(self) -> None:
        selection, jobs = self.context.selection, self.context.jobs
        for signal in (selection.pairs_changed, selection.current_changed):
            signal.connect(self.refresh)
        selection.dataset_changed.connect(self._on_other_data)
        selection.facts_changed.connect(self.forget_facts)
        for signal in (selection.runs_changed, selection.step_changed, jobs.runs_changed):
            signal.connect(self._refresh_if_new)
        jobs.snapshots_changed.connect(self._on_snapshots)
        self.pictures.arrived.connect(self._show_picture)
        self.near.chosen.connect(self._choose)
        self.close_button.clicked.connect(selection.clear)
        self.near.hovered.connect(lambda row: setattr(selection, "hovered", row if row >= 0 else None))
        self.pair_actions.failed.connect(self.failed)
        self.show_map.clicked.connect(lambda: self.go.emit("map"))
        self.show_saliency.clicked.connect(lambda: self.go.emit("inspect"))

    def _refresh_if_new(self) -> None:
        """Follow other runs; news of the runs that are shown already change nothing."""
        if self.context.selection.sides != self._sides:
            self.refresh()

    def actions_for_palette(self) -> list[QAction]:
        """Return the actions: walk the selected pairs, and what can be decided."""
        return [*self._walks, *self.pair_actions.actions()]

    # -- putting together --------------------------------------------------------------------------------------

    def _step(self, name: str, icon: str, label: str, step: int) -> QToolButton:
        button = QToolButton(objectName=name, accessibleName=label, toolTip=label, clicked=lambda: self.walk(step))
        theme.keep_icon(button, icon, 16, "secondary")
        return button

    def _lay_out(self) -> QWidget:
        self.caption.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self._walks = [QAction(button.toolTip(), self) for button in (self.back, self.forth)]
        for action, step in zip(self._walks, (-1, 1), strict=True):
            action.triggered.connect(lambda _=False, w=step: self.walk(w))
        others = FlowRow()
        others.add(self.show_map)
        others.add(self.show_saliency)
        texts = layouts.panel(layouts.column(self.caption, self.about, gap=theme.SPACE))
        self._head = layouts.row(self.picture, (texts, 1, Qt.AlignmentFlag.AlignTop))
        for part in (self.ranks, self.near, self.near_panel, self.pair_actions, self.facts):
            part.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Maximum)
        return layouts.panel(
            layouts.column(
                layouts.row(
                    self.title, theme.SPACE, (self.place, 1), self.back, self.forth, self.close_button, gap=theme.SPACE
                ),
                self._head,
                self.problems,
                theme.SPACE,
                self.ranks,
                self._course_place,
                theme.SPACE,
                self.near_panel,
                theme.SPACE,
                self.pair_actions,
                self.facts,
                others,
                layouts.STRETCH,
                margins=theme.BETWEEN,
            )
        )


def _about(pair: OnePair) -> str:
    steps = [f"{run.step:,}" for run in pair.runs]
    if len({*steps}) > 1:
        step = "steps " + " and ".join(f"{step} ({'AB'[run.place]})" for run, step in zip(pair.runs, steps))
    else:
        step = f"step {steps[0]}" if steps else ""
    sizes = {run.n for run in pair.runs}
    n = f"n\u00a0=\u00a0{' and '.join(f'{size:,}' for size in sorted(sizes))} pairs" if sizes else ""
    label = f"class {pair.label}" if pair.label else ""
    return " · ".join(part for part in (label, data_label(pair), step, n) if part)
