"""The one bar above a view: its name, run A, run B, data, step, its main controls, and what it can do.

Where one row has no room for all, the runs, data and step stand in a second one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise, product
from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent, QObject, Qt, QTimer, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QFrame, QSizePolicy, QToolButton, QWidget

from explorer import theme
from explorer.intents import ExportFigure, ShowCharts
from explorer.models.run_choices import run_choice, run_choices
from explorer.state.selection import Selection
from explorer.widgets import layouts
from explorer.widgets.current_page_stack import CurrentPageStack
from explorer.widgets.finder import Choice
from explorer.widgets.refusal import set_refusal
from explorer.widgets.run_badge import RunBadge
from explorer.widgets.searchable_combo_box import SearchableComboBox
from explorer.window.picker_choices import PickerChoices, partner
from explorer.window.view_menu import ViewMenu
from trainer.metrics import data_label

if TYPE_CHECKING:
    from explorer.views.view import View
    from trainer.store import RunRow

HEIGHT = 40
LEAST_RUN_PX, MOST_RUN_PX = 76, 200
WIDEST_PX, LINE_PX = 320, 1
PICKER_FRAME_PX = 44
"""Of a picker, beside its text."""
PICKERS_AT, PICKERS_STRETCH = 2, 15
READING = "Reading…"
"""Until the store was read: that nothing is known is not that there is nothing."""
OWN_STEPS = "own steps"
"""Key of the choice that A and B are at a step each; it is made where two snapshots are compared."""


class Bar(QWidget):
    """The view's name, what it shows, its main controls and its actions, in one row.

    Attributes:
        has_room: Whether the main controls of the view fit; else they are among its others, behind `...`.
        wraps: Whether the runs, data and step stand in a second row.
    """

    palette_asked = Signal()  # The search button was clicked.
    more_asked = Signal()  # The other controls of the view are wanted.
    command_asked = Signal()  # The command that does the same is to be copied.
    requested = Signal(object)  # The button of exports or of charts was clicked: an `Intent`.
    narrowed = Signal()  # There is room for the view's main controls now, for fewer of them, or none any more.

    def __init__(self, selection: Selection, view_menu: ViewMenu, parent: QWidget | None = None) -> None:
        super().__init__(parent, objectName="bar")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self.setFixedHeight(HEIGHT)
        self._selection, self.view_menu = selection, view_menu
        self._rows: Sequence[RunRow] = ()
        self._runs: tuple[Choice, ...] = ()
        self._archived: dict[int, Choice] = {}
        self._facts = PickerChoices()
        self._knows_runs = self._knows_facts = False
        self.has_room, self.wraps = True, False
        self._parts_pickers = False
        self._fitted_px: int | None = None
        self._main: QWidget | None = None
        self._view: View | None = None
        self._shortened: set[QWidget] = set()
        self._controls_px: dict[tuple[QWidget, bool], int] = {}
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
        self.more = _sign("viewMore", "ellipsis", "Further controls of this view", "Ctrl+.")
        self.copy = _sign("viewCommand", "terminal", "Copy as command", "Ctrl+Shift+C")
        self.export = _sign("viewExport", "download", "Export figure or data…", "Ctrl+E")
        self.search = _sign("openPalette", "search", "Search all commands", "Ctrl+K")
        self.search.setText("  Search or run a command    Ctrl+K")
        self.controls = CurrentPageStack()
        self.controls.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        self._lines = (_line(), _line(), _line())
        self._lay_out()
        self._connect(selection)
        self._show()

    def show_runs(self, runs: Sequence[RunRow]) -> None:
        """Offer these runs; archived ones only while they are chosen."""
        # Made once for both pickers and for all that is chosen until the next list: there may be thousands.
        self._rows = runs
        offered = run_choices([run for run in runs if run.archived_at is None])
        self._archived = {run.id: run_choice(run) for run in runs if run.archived_at is not None}
        self._runs = (Choice(None, "No run"), *offered) if runs else ()
        self._knows_runs = True
        self._show()

    def show_facts(self, facts: PickerChoices) -> None:
        """Offer these steps and data."""
        self._facts, self._knows_facts = facts, True
        self._show()

    def show_pickers(self, on: bool, data: bool) -> None:
        """Show what A and B are, and of which data, or leave out what a view does not depend on."""
        for part in (self._pickers, *self._badges, self.run_a, self.swap, self.run_b, self.step):
            part.setVisible(on)
        self.dataset.setVisible(data)
        self._show_lines()

    def show_view(self, view: View | None) -> None:
        """Offer the main controls and the exports of a view; None: a page that is no view."""
        main = view.main_panel if view is not None else None
        self._view, self._main = view, main if view is not None and view.offers_controls else None
        if self._main is not None:
            self._main.installEventFilter(self)
        self.charts.setVisible(view is not None and view.offers_charts)
        self._show_lines()
        # Those that are not offered are taken, too: they would stand in the view.
        controls = main if self.has_room or self._main is None else None
        if controls is not None:
            if self.controls.indexOf(controls) < 0:
                self.controls.addWidget(controls)
            self._order_focus(controls)
            self.controls.setCurrentWidget(controls)
        self.controls.setVisible(controls is not None and self._main is not None)
        self._show_lines()
        for button in (self.more, self.copy, self.export):
            set_refusal(button, "" if view is not None else "This page has no charts.")

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        # A button that appears, or a longer word: there may be no room for all of them any more.
        if event.type() == QEvent.Type.LayoutRequest and watched is self._main is not None:
            key = self._main, self._main in self._shortened
            if self._main.sizeHint().width() > self._controls_px.get(key, 0):
                QTimer.singleShot(0, self, self._fit)  # the bar is told of it after them
        return super().eventFilter(watched, event)

    def _order_focus(self, controls: QWidget) -> None:
        """Have Tab go through a view's controls where they stand: after the pickers, before the last buttons."""
        for before, after in pairwise([self.step, *layouts.tab_stops(controls), self.charts]):
            QWidget.setTabOrder(before, after)

    def _fit(self) -> None:
        """Fit into the width. What that changes asks for it again meanwhile: only another width needs it."""
        if self._fitted_px is not None:
            return
        self._fitted_px = self.width()
        try:
            self._fit_once()
        finally:
            if self._fitted_px != self.width():
                QTimer.singleShot(0, self, self._fit)
            self._fitted_px = None

    def _fit_once(self) -> None:
        """Give the pickers the width of their runs, and the button of further charts its words, where there is room."""
        pickers = (self.run_a, self.run_b, self.step, self.dataset)
        for picker in pickers:
            # Two of them must not read alike: a short name is not cut, nor a step.
            text = picker.currentText() or picker.placeholderText()
            texts = (text if picker is self.step else picker.short_text or text, text)
            least, most = (picker.fontMetrics().horizontalAdvance(each) + PICKER_FRAME_PX for each in texts)
            picker.setMinimumWidth(max(LEAST_RUN_PX, min(WIDEST_PX if picker is self.dataset else MOST_RUN_PX, least)))
            picker.setMaximumWidth(max(picker.minimumWidth(), min(WIDEST_PX, most)))
        self.swap.setVisible(not self.run_a.isHidden())
        for row in (self._pickers_row, self._row):
            row.setSpacing(theme.SPACE)
        self.charts.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonIconOnly)
        data_px = self.dataset.minimumWidth()
        self._measure()
        self.charts.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        if self._need_px() > self.width():
            self.charts.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonIconOnly)

        def cut_names() -> None:
            for picker in pickers[:2]:
                picker.setMinimumWidth(LEAST_RUN_PX)

        # The names of A and B are cut last, and alike.
        steps: list[Callable[[], object]] = [
            partial(self._row.setSpacing, theme.SPACE // 2),
            partial(self._pickers_row.setSpacing, theme.SPACE // 2),
            partial(self.step.setMinimumWidth, LEAST_RUN_PX),
            partial(self.dataset.setMinimumWidth, LEAST_RUN_PX),
            self.swap.hide,
            cut_names,
        ]
        for narrow in steps:
            if self._need_px() > self.width():
                narrow()
        main_px = self._main.sizeHint().width() - self._main.minimumSizeHint().width() if self._main else 0
        spare_px = self.width() - self._need_px() - (0 if self.wraps else max(main_px, 0))
        self.dataset.setMinimumWidth(min(data_px, self.dataset.minimumWidth() + max(spare_px, 0)))

    def _need_px(self) -> int:
        """Return the least width of the bar, also while its rows have not been told of a change."""
        for part in (self._pickers, self.controls):
            part.updateGeometry()
        for row in (self._row, self._second):
            row.invalidate()
        return self.minimumSizeHint().width()

    def _wrap(self, on: bool) -> None:
        """Put the runs, data and step into a row of their own, or back."""
        if on == self.wraps:
            return
        self.wraps = on
        before, after = (self._row, self._second) if on else (self._second, self._row)
        before.removeWidget(self._pickers)
        after.insertWidget(0 if on else PICKERS_AT, self._pickers, PICKERS_STRETCH)
        self._lines[1].setVisible(self._parts_pickers and not on)
        self.setFixedHeight(HEIGHT * (1 + on))

    def _measure(self) -> None:
        """Find out whether the main controls fit, in one row or else in two, and say so where that has changed."""
        before = self.has_room, self._main in self._shortened
        if self._main is not None:
            self._measure_controls(self._main)
        rows = (False,) if self.run_a.isHidden() else (False, True)
        for wraps, is_short in product(rows, (False, True)):
            room_px = self._room_px(wraps=wraps)
            self.has_room = self._controls_width(is_short) <= room_px
            if self.has_room:
                break
        if not self.has_room:  # behind the dots they need no second row
            wraps = wraps and self._room_px(wraps=False) < 0
        self._shorten(is_short)
        self._wrap(wraps)
        if before != (self.has_room, self._main in self._shortened):
            self.narrowed.emit()

    def _room_px(self, *, wraps: bool) -> int:
        """Return how much of the first row is left to the main controls where the pickers are narrow."""
        self._need_px()
        gap, rest_px, lines = theme.SPACE, self._row.minimumSize().width(), self._lines[:2]
        rest_px += (self.wraps - wraps) * (self._pickers.minimumSizeHint().width() + gap)
        if not wraps:
            narrow = [each for each in (self.step, self.dataset) if not each.isHidden()]
            rest_px -= sum(max(0, each.minimumWidth() - LEAST_RUN_PX) for each in narrow)
        for part in (self.controls, *lines):
            rest_px -= 0 if part.isHidden() else max(LINE_PX, part.sizeHint().width()) + gap
        # Beside controls the search is a sign.
        rest_px -= max(0, self.search.sizeHint().width() - self.more.sizeHint().width())
        margins_px = theme.SPACE + theme.INSIDE
        return self.width() - rest_px - margins_px - gap - len(lines) * (LINE_PX + gap)

    def _controls_width(self, is_short: bool) -> int:
        """Return the width of the main controls; that of the short ones is known once they were short."""
        if (main := self._main) is None:
            return 0
        if (main, is_short) not in self._controls_px:
            self._shorten(is_short)
        if is_short == (main in self._shortened):
            self._measure_controls(main)
        return self._controls_px[main, is_short]

    def _shorten(self, on: bool) -> None:
        if (main := self._main) is not None and self._view is not None and on != (main in self._shortened):
            self._shortened ^= {main}
            self._view.shorten(on)

    def _measure_controls(self, main: QWidget) -> None:
        """Keep the width of these controls: in the bar they may be wider than where they once had no room."""
        is_short, width = main in self._shortened, main.sizeHint().width()
        before = self._controls_px.get((main, is_short), width)
        if width > before:  # the others have grown as well, by how much is not known
            self._controls_px.pop((main, not is_short), None)
        self._controls_px[main, is_short] = max(before, width)

    def _show_lines(self) -> None:
        """Show a line only between two groups that are there."""
        page = self.controls.currentWidget()
        buttons = page.findChildren(QWidget, options=Qt.FindChildOption.FindDirectChildrenOnly) if page else []
        has_controls = not self.controls.isHidden() and any(not button.isHidden() for button in buttons)
        has_controls = has_controls or not self.charts.isHidden()
        has_pickers = not self.run_a.isHidden()
        self._lines[0].setVisible(has_pickers or has_controls)
        self._parts_pickers = has_pickers and has_controls
        self._lines[1].setVisible(self._parts_pickers and not self.wraps)
        # Where nothing else stands in the bar, what finds all that can be done is a field of words.
        is_bare = not (has_pickers or has_controls)
        style = Qt.ToolButtonStyle.ToolButtonTextBesideIcon if is_bare else Qt.ToolButtonStyle.ToolButtonIconOnly
        self.search.setToolButtonStyle(style)
        theme.set_role(self.search, "outlined" if is_bare else "")
        self._fit()

    def _connect(self, selection: Selection) -> None:
        self.run_a.picked.connect(self._choose_a)
        self.run_b.picked.connect(lambda run: setattr(selection, "run_b", run))
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

    def _choose_a(self, run: int | None) -> None:
        """Choose A, and with it its partner as B if that is of other data."""
        selection = self._selection
        other = partner(self._rows, run, selection.run_b)
        if other == selection.run_b:
            selection.run_a = run
        else:
            selection.select_runs(run, other)

    def _show(self) -> None:
        for picker, run in ((self.run_a, self._selection.run_a), (self.run_b, self._selection.run_b)):
            archived = self._archived.get(run) if run is not None else None
            picker.show_choices(self._runs if archived is None else (*self._runs, archived), run)
        steps = [Choice(step, f"{step:,}") for step in reversed(self._facts.steps)]
        last = Choice(None, f"Last ({steps[0].words})" if steps else "Last", short="Last")
        a, b = self._selection.step_of(0), self._selection.step_of(1)
        if a != b and steps:
            labels = [last.words if step is None else f"{step:,}" for step in (a, b)]
            steps = [Choice(OWN_STEPS, f"A {labels[0]} · B {labels[1]}", "A separate step for each run"), *steps]
        self.step.show_choices([last, *steps] if steps else [], a if a == b else OWN_STEPS)
        data = [Choice(key, data_label(key)) for key in self._facts.datasets]
        chosen = self._selection.dataset if self._selection.dataset in self._facts.datasets else None
        self.dataset.show_choices(data, chosen or (data[0].key if data else None))
        set_refusal(self.swap, "" if self._selection.runs else "No run is chosen yet.")
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
        pickers = (self._badges[0], (self.run_a, 3), self.swap, self._badges[1], (self.run_b, 3), (self.dataset, 9))
        self._pickers_row = layouts.row(*pickers, self.step, (layouts.STRETCH, 1), gap=theme.SPACE)
        self._pickers = layouts.panel(self._pickers_row)
        self._row = layouts.row(
            *(self.view_menu, self._lines[0], (self._pickers, PICKERS_STRETCH)),
            *(self._lines[1], self.controls, self.charts, (layouts.STRETCH, 1)),
            *(self.more, self.copy, self.export, self._lines[2], self.search),
            gap=theme.SPACE,
        )
        self._second = layouts.row((layouts.STRETCH, 1), gap=theme.SPACE, margins=(theme.INSIDE + theme.SPACE, 0, 0, 0))
        layouts.column(self._row, self._second, gap=0, margins=(theme.SPACE, 0, theme.INSIDE, 0), of=self)


def _sign(name: str, icon: str, label: str, keys: str = "") -> QToolButton:
    button = QToolButton(objectName=name, accessibleName=label, toolTip=f"{label} ({keys})" if keys else label)
    theme.keep_icon(button, icon, 16, "secondary")
    return button


def _line() -> QFrame:
    line = layouts.hairline(upright=True)
    line.setFixedHeight(20)
    line.setContentsMargins(theme.SPACE, 0, theme.SPACE, 0)
    return line
