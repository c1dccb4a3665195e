"""The one bar above a view: its name, run A, run B, data, step, its main controls, and what it can do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QFrame, QSizePolicy, QToolButton, QWidget

from explorer import theme
from explorer.intents import ExportFigure, ShowCharts
from explorer.state.selection import Selection
from explorer.widgets import layouts
from explorer.widgets.current_page_stack import CurrentPageStack
from explorer.widgets.finder import Choice
from explorer.widgets.run_badge import RunBadge
from explorer.widgets.searchable_combo_box import SearchableComboBox
from explorer.window.picker_choices import PickerChoices
from explorer.window.view_menu import ViewMenu
from trainer.config.split_key import SplitKey

if TYPE_CHECKING:
    from explorer.views.view import View
    from trainer.store import RunRow

HEIGHT = 40
WITH_CONTROLS_PX = 960
"""In a bar that is narrower than this, the main controls of a view are among its others, behind `...`."""
LEAST_RUN_PX, MOST_RUN_PX = 76, 200
DATASET_PX = 90
"""More than its least width, with which the name of the data says something."""
PICKER_FRAME_PX = 44
"""Of a picker, beside its text."""
READING = "Reading…"
"""Until the store was read: that nothing is known is not that there is nothing."""
OWN_STEPS = "own steps"
"""Key of the choice that A and B are at a step each; it is made where two snapshots are compared."""
_SPLITS = {
    "renderings": "unseen renderings",
    "batch": "a training batch",
    "combinations": "unseen combinations",
    "heldout": "held-out pairs",
    "train": "training pairs",
}


class Bar(QWidget):
    """The view's name, what it shows, its main controls and its actions, in one row.

    Signals:
        palette_asked: The search button was clicked.
        more_asked: The other controls of the view are wanted.
        command_asked: The command that does the same is to be copied.
        requested: The button of exports or of charts was clicked: an `Intent`.
        narrowed: There is room for the view's main controls now, or there is none any more.
    """

    palette_asked = Signal()
    more_asked = Signal()
    command_asked = Signal()
    requested = Signal(object)
    narrowed = Signal()

    def __init__(self, selection: Selection, view_menu: ViewMenu, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("bar")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self.setFixedHeight(HEIGHT)
        self._selection, self.view_menu = selection, view_menu
        self._runs: tuple[Choice, ...] = ()
        self._archived: dict[int, Choice] = {}
        self._facts = PickerChoices()
        self._knows_runs = self._knows_facts = self._had_room = False
        self.run_a = SearchableComboBox(name="runA", label="Run A", width=LEAST_RUN_PX)
        self.run_b = SearchableComboBox(name="runB", label="Run B", width=LEAST_RUN_PX)
        self.step = SearchableComboBox(name="step", label="Step of the snapshots", width=LEAST_RUN_PX)
        self.dataset = SearchableComboBox(name="dataset", label="Data of the snapshots", width=44)
        self.swap = QToolButton(objectName="swapRuns", accessibleName="Swap A and B", toolTip="Swap A and B (Ctrl+T)")
        theme.keep_icon(self.swap, "arrow-left-right", 16, "secondary")
        self.charts = QToolButton(objectName="viewCharts", accessibleName="More charts", toolTip="More charts (Ctrl+G)")
        self.charts.setText(" More charts")
        theme.keep_icon(self.charts, "grid-2x2", 16, "secondary")
        theme.set_role(self.charts, "outlined")
        self.charts.hide()
        self.more = _sign("viewMore", "ellipsis", "Further controls of this view")
        self.copy = _sign("viewCommand", "terminal", "Copy as command", "Ctrl+Shift+C")
        self.export = _sign("viewExport", "download", "Export figure or data…", "Ctrl+E")
        self.search = _sign("openPalette", "search", "Search all commands", "Ctrl+K")
        self.controls = CurrentPageStack()
        self.controls.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        self._lines = (_line(), _line(), _line())
        self._lay_out()
        self._connect(selection)
        self._show()

    def show_runs(self, runs: Sequence[RunRow]) -> None:
        """Offer these runs; archived ones only while they are chosen."""
        # Made once for both pickers and for all that is chosen until the next list: there may be thousands.
        offered = [_choice(run) for run in runs if run.archived_at is None]
        self._archived = {run.id: _choice(run) for run in runs if run.archived_at is not None}
        self._runs = (Choice(None, "No run"), *offered) if runs else ()
        self._knows_runs = True
        self._show()

    def show_facts(self, facts: PickerChoices) -> None:
        """Offer these steps and data."""
        self._facts, self._knows_facts = facts, True
        self._show()

    @property
    def has_room(self) -> bool:
        """Whether the main controls of a view fit."""
        return self.width() >= WITH_CONTROLS_PX

    def show_pickers(self, on: bool) -> None:
        """Show what A and B are, or leave it out where a view does not depend on them."""
        for part in (*self._badges, self.run_a, self.swap, self.run_b, self.dataset, self.step):
            part.setVisible(on)
        self._show_lines()

    def show_view(self, view: View | None) -> None:
        """Offer the main controls and the exports of a view; None: a page that is no view."""
        controls = view.main_panel if view is not None and self.has_room else None
        if controls is not None:
            if self.controls.indexOf(controls) < 0:
                self.controls.addWidget(controls)
            self.controls.setCurrentWidget(controls)
        self.controls.setVisible(controls is not None)
        self.charts.setVisible(view is not None and view.offers_charts)
        self._show_lines()
        for button in (self.more, self.copy, self.export):
            button.setEnabled(view is not None)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()
        # Not by the old size: it is none where the window was hidden meanwhile, as for a zoom.
        if self._had_room != self.has_room:
            self._had_room = self.has_room
            self.narrowed.emit()

    def _fit(self) -> None:
        """Give the pickers the width of their runs, and the button of further charts its words, where there is room."""
        pickers = (self.run_a, self.run_b, self.step)
        for picker in pickers:
            # Two runs must not read alike: a short name is not cut, nor a step.
            name_px = picker.fontMetrics().horizontalAdvance(picker.currentText()) + PICKER_FRAME_PX
            picker.setMinimumWidth(max(LEAST_RUN_PX, min(MOST_RUN_PX, name_px)))
        self.charts.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        if self.minimumSizeHint().width() + DATASET_PX > self.width():
            self.charts.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonIconOnly)
        self.swap.setVisible(not self.run_a.isHidden())
        if not self.has_room and self.minimumSizeHint().width() > self.width():
            self.swap.hide()
        if not self.has_room and self.minimumSizeHint().width() > self.width():
            for picker in pickers:
                picker.setMinimumWidth(LEAST_RUN_PX)

    def _show_lines(self) -> None:
        """Show a line only between two groups that are there."""
        page = self.controls.currentWidget()
        buttons = page.findChildren(QWidget, options=Qt.FindChildOption.FindDirectChildrenOnly) if page else []
        has_controls = not self.controls.isHidden() and any(not button.isHidden() for button in buttons)
        has_controls = has_controls or not self.charts.isHidden()
        has_pickers = not self.run_a.isHidden()
        self._lines[0].setVisible(has_pickers or has_controls)
        self._lines[1].setVisible(has_pickers and has_controls)
        self._fit()

    def _connect(self, selection: Selection) -> None:
        self.run_a.picked.connect(lambda run: selection.select_runs(run, selection.run_b))
        self.run_b.picked.connect(lambda run: selection.select_runs(selection.run_a, run))
        self.step.picked.connect(lambda step: None if step == OWN_STEPS else setattr(selection, "step", step))
        self.dataset.picked.connect(lambda dataset: setattr(selection, "dataset", dataset))
        self.swap.clicked.connect(selection.swap)
        self.search.clicked.connect(self.palette_asked)
        self.charts.clicked.connect(lambda: self.requested.emit(ShowCharts()))
        self.more.clicked.connect(self.more_asked)
        self.copy.clicked.connect(self.command_asked)
        self.export.clicked.connect(lambda: self.requested.emit(ExportFigure()))
        for signal in (selection.runs_changed, selection.step_changed, selection.dataset_changed):
            signal.connect(self._show)

    def _show(self) -> None:
        for picker, run in ((self.run_a, self._selection.run_a), (self.run_b, self._selection.run_b)):
            archived = self._archived.get(run) if run is not None else None
            picker.show_choices(self._runs if archived is None else (*self._runs, archived), run)
        steps = [Choice(step, f"{step:,}") for step in reversed(self._facts.steps)]
        last = Choice(None, f"Last ({steps[0].words})" if steps else "Last")
        a, b = self._selection.step_of(0), self._selection.step_of(1)
        if a != b and steps:
            labels = [last.words if step is None else f"{step:,}" for step in (a, b)]
            steps = [Choice(OWN_STEPS, f"A {labels[0]} · B {labels[1]}", "A separate step for each run"), *steps]
        self.step.show_choices([last, *steps] if steps else [], a if a == b else OWN_STEPS)
        data = [Choice(key, dataset_words(key)) for key in self._facts.datasets]
        chosen = self._selection.dataset if self._selection.dataset in self._facts.datasets else None
        self.dataset.show_choices(data, chosen or (data[0].key if data else None))
        self.swap.setEnabled(bool(self._selection.runs))
        no_run = "No run yet" if self._knows_runs else READING
        no_data = "No snapshots yet" if self._knows_runs and self._knows_facts else READING
        for picker, placeholder in (
            (self.run_a, no_run),
            (self.run_b, no_run),
            (self.step, "Last"),
            (self.dataset, no_data),
        ):
            picker.setPlaceholderText(placeholder)
        self._fit()

    def _lay_out(self) -> None:
        self._badges = (RunBadge("A", 0), RunBadge("B", 1))
        pickers = (self._badges[0], (self.run_a, 3), self.swap, self._badges[1], (self.run_b, 3), (self.dataset, 4))
        layouts.row(
            *(self.view_menu, self._lines[0], *pickers, self.step, self._lines[1], self.controls, self.charts),
            (layouts.STRETCH, 1),
            *(self.more, self.copy, self.export, self._lines[2], self.search),
            gap=theme.SPACE,
            margins=(theme.SPACE, 0, theme.INSIDE, 0),
            of=self,
        )
        for picker, widest in (
            (self.run_a, MOST_RUN_PX),
            (self.run_b, MOST_RUN_PX),
            (self.dataset, 220),
            (self.step, 130),
        ):
            picker.setMaximumWidth(widest)


def _sign(name: str, icon: str, label: str, keys: str = "") -> QToolButton:
    button = QToolButton(objectName=name, accessibleName=label, toolTip=f"{label} ({keys})" if keys else label)
    theme.keep_icon(button, icon, 16, "secondary")
    return button


def _line() -> QFrame:
    line = layouts.hairline(upright=True)
    line.setFixedHeight(20)
    line.setContentsMargins(theme.SPACE, 0, theme.SPACE, 0)
    return line


def dataset_words(key: SplitKey) -> str:
    """Format a data key: `Scenes, unseen renderings`."""
    return f"{key.dataset[:1].upper()}{key.dataset[1:]}, {_SPLITS.get(key.split, key.split)}"


def _choice(run: RunRow) -> Choice:
    state = run.status if run.archived_at is None else f"{run.status}, archived"
    return Choice(run.id, run.short_name, f"{run.name}, #{run.id}, {run.objective.upper()}, {run.data}, {state}")
