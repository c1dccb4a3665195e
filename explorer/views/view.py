"""The base class of all views: one pane that answers one question."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QAction, QShowEvent
from PySide6.QtWidgets import QPushButton, QTabBar, QTabWidget, QWidget

from explorer import theme
from explorer.intents import EXPORTS, ChooseRun, OpenSample, ShowCharts, ShowExperiment, ShowOwnRuns, ViewIntent
from explorer.state.menu_charts import is_in_menu
from explorer.views.seed_truth_line import SeedTruthLine
from explorer.widgets import layouts
from explorer.widgets.min_size_scroll import MinSizeScroll
from explorer.widgets.progress_row import JobSlot
from explorer.widgets.state_area import StateArea
from explorer.widgets.tab_menu import TabMenu
from trainer.config import default_paths
from trainer.experiments.run_style import RunStyle, side_styles

if TYPE_CHECKING:
    from pathlib import Path

    from explorer.event_loop.background import Background
    from explorer.model_client.client import ModelClient
    from explorer.run_control.jobs import Jobs
    from explorer.state.selection import Selection
    from explorer.state.settings import Settings
    from explorer.state.view_link import ViewLink
    from trainer.messages import Failure
    from trainer.store import Workspace

CHOOSE_RUNS = "Choose run A in the bar above, and run B to compare."


@dataclass(frozen=True)
class Context:
    """The services passed to a view, instead of singletons or access to the window."""

    workspace: Workspace
    selection: Selection
    background: Background
    jobs: Jobs
    client: ModelClient
    settings: Settings

    @property
    def side_styles(self) -> tuple[RunStyle, ...]:
        """How A and B are drawn, as everywhere."""
        sides = (self.selection.run_a, self.selection.run_b)
        return side_styles(self.jobs.styles, [run for run in sides if run is not None])


class View(QWidget):
    """A pane of the window that answers one question.

    Attributes:
        title: Its name, two words at most.
        question: One sentence, with which its page of help begins: what it answers.
        icon: Name of a Lucide icon in `assets/icons`.
        when_chosen: What is then to be done or seen, after the advice to choose runs.
        method: The help of the open chart, shown after the page of the view: formula, paper, caveats; plain text.
        exports: Suffix and label of each format that the export dialog offers; the first is its default.
        margins: Pixels around the body: left, top, right and bottom.
        compares: What of A and B it sets against each other. Scores and measures are decided over seeds, and its line
            says how far. Pictures decide nothing: there the line says only what holds of the runs.
        shows_pairs: Whether the inspector of the selected pair stands beside it.
        shows_neighbors: Whether it shows the neighbors of the selected pair, so that the inspector does not.
        holds_plot: Whether its plot or list keeps its size when a click brings details, until the pointer is there.
        main: Row of its one or two main controls, which the window puts into its bar.
        more: Column of its other controls, which the window puts behind the bar's `...`.
        body: Layout to fill.
        area: Shows the body, or why there is none.
        job_slot: Where what the view computes says how far it is; the window puts it into its status bar.
        truth: What is known of A and B, over seeds where it compares scores; None where it compares nothing.
        look: Opens the finished runs that come with the application.
        own_runs: Leads from a read-only workspace to where runs can be made.
        chart_menu: The menu of its charts; None where it has no charts to choose from.
        offers_controls: Whether the bar offers its main controls.
        building: What of `build` is still to be done; whoever made the view not `at_once` goes through it.
    """

    title: ClassVar[str] = ""
    question: ClassVar[str] = ""
    icon: ClassVar[str] = "square"
    when_chosen: ClassVar[str] = ""
    method: str = ""
    exports: ClassVar[tuple[tuple[str, str], ...]] = EXPORTS
    margins: ClassVar[tuple[int, int, int, int]] = (theme.BETWEEN, theme.SPACE, theme.BETWEEN, theme.INSIDE)
    compares: ClassVar[Literal["scores", "pictures", "nothing"]] = "nothing"
    shows_pairs: ClassVar[bool] = True
    shows_neighbors: ClassVar[bool] = False
    holds_plot: ClassVar[bool] = False

    failed = Signal(str, str)  # Message and next step, for the window's banner.
    requested = Signal(object)  # An `Intent` that another part of the window takes.
    details_changed = Signal()  # `details()` would give another widget now.
    controls_changed = Signal()  # The bar offers others of its controls now.

    def __init__(self, context: Context, *, at_once: bool = True) -> None:
        super().__init__()
        self.context = context
        theme.take_sides(self, lambda: context.side_styles)
        self.setObjectName(type(self).__name__)
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self.setProperty("role", "view")
        self._content = QWidget()
        self.body = layouts.column(of=self._content)
        self.look = QAction("Look at finished runs", self, objectName=f"{self.objectName()}-look")
        self.look.triggered.connect(lambda: self.requested.emit(OpenSample()))
        self._home = QAction("Train my own", self, objectName=f"{self.objectName()}-home")
        self._home.triggered.connect(lambda: self.requested.emit(ShowExperiment()))
        label = "My runs" if default_paths.is_sample(context.workspace.folder) else "Make it mine…"
        self.own_runs = QAction(label, self, objectName=f"{self.objectName()}-own-runs")
        self.own_runs.triggered.connect(lambda: self.requested.emit(ShowOwnRuns()))
        self._choose_run = QAction("Choose another run", self, objectName=f"{self.objectName()}-choose-run")
        self._choose_run.triggered.connect(lambda: self.requested.emit(ChooseRun()))
        self._waits_for_runs = False
        # As far from the edges as the page that stands here while the view is built.
        inset = [theme.AROUND - margin for margin in self.margins]
        self.area = StateArea(MinSizeScroll(self._content), inset=inset)
        self.chart_menu: TabMenu | None = None
        self.offers_controls = True
        self.job_slot = JobSlot()
        self.main, self.more = layouts.row(), layouts.column(gap=theme.BETWEEN)
        self.main_panel, self.more_panel = layouts.panel(self.main), layouts.panel(self.more)
        services = context.workspace, context.selection, context.jobs, context.background
        line = SeedTruthLine(*services, self.requested.emit, decides=self.compares == "scores")
        self.truth = line if self.compares != "nothing" else None
        # A view without a window has its controls above it.
        layouts.column(
            self.main_panel,
            self.more_panel,
            *([self.truth] if self.truth is not None else []),
            (self.area, 1),
            self.job_slot,
            gap=0,
            margins=self.margins,
            of=self,
        )
        self.building = self.build()
        if at_once:
            for _ in self.building:
                pass

    def build(self) -> Iterator[None]:
        """Create the content; each yield returns to the event loop, and no piece takes longer than 50 ms."""
        yield from ()

    def command(self) -> list[str] | None:
        """Return the `trainer` arguments for the same figure, without `--out`; None if there is nothing to export."""
        return None

    def command_for(self, suffix: str) -> list[str] | None:
        """Return the arguments that write a file with this suffix; those of `command` unless a view knows others."""
        return self.command()

    @property
    def filter_words(self) -> str:
        """What of its pairs the figure of `command` is limited to; empty where it shows all."""
        return ""

    def runs_of_bundle(self) -> tuple[int, ...]:
        """Return the runs of an evidence bundle of what is shown, A and B first; empty: those that are selected."""
        return ()

    @property
    def drop_words(self) -> str:
        """The text of the drop overlay, such as `Drop to inspect`; empty if no images are accepted."""
        return ""

    def take(self, paths: Iterable[Path | str]) -> None:
        """Handle dropped or pasted images; called only while `drop_words` is not empty."""

    def carry_out(self, intent: ViewIntent) -> None:
        """Do what another part of the window asks of this view, which is open.

        Raises:
            NotImplementedError: The view does not take intents of this class.
        """
        raise NotImplementedError(f"{type(self).__name__} does not take {type(intent).__name__}.")

    def link_state(self) -> tuple[str, dict[str, str]]:
        """Return the filter, and the further fields, of a link to this view."""
        return "", {} if self.chart_menu is None else {"chart": self.chart_menu.chart}

    def show_link(self, link: ViewLink) -> None:
        """Show what a link to this view says besides the selection."""
        if self.chart_menu is not None:
            self.chart_menu.open_chart(link.chart)

    def details(self) -> QWidget | None:
        """Return the widget for the right panel, or None; the view keeps a reference to it."""
        return None

    def close_panel(self) -> bool:
        """Close the widget of `details` that a person has opened; return whether there was one."""
        return False

    def actions_for_more(self) -> list[QAction]:
        """Return the commands behind the bar's `...`: without charts, which another menu of the bar opens."""
        return [action for action in self.actions_for_palette() if not action.text().startswith(f"{self.title}: ")]

    def actions_for_palette(self) -> list[QAction]:
        """Return the actions for the command palette while this view is open."""
        return self.chart_actions

    @property
    def offers_charts(self) -> bool:
        """Whether its charts can be chosen from now."""
        return self.offers_controls and self.chart_menu is not None and len(self.chart_menu.charts) > 1

    def refresh(self) -> None:
        """Update for the selection and the store; called whenever the view is shown, so it must be quick."""

    def refresh_if_seen(self) -> None:
        """Refresh if the view is visible; a hidden one does so when it is shown."""
        if self.isVisible():
            self.refresh()

    def show_empty(
        self, icon: str, title: str, text: str, action: QAction | None = None, *others: QAction | None
    ) -> None:
        """Show an empty state with instructions, a primary action and up to two others."""
        self.area.empty(icon, title, text, action, *others)

    def show_unknown(self) -> None:
        """Show a skeleton until the runs are read, because a slow disk must not look like an empty workspace."""
        self.area.unknown("Reading the runs…")
        if not self._waits_for_runs:
            self._waits_for_runs = True
            self.context.jobs.runs_changed.connect(self._take_first_runs)

    def _take_first_runs(self) -> None:
        self.context.jobs.runs_changed.disconnect(self._take_first_runs)
        self._waits_for_runs = False
        self.refresh_if_seen()

    def show_no_run(self, text: str = "") -> None:
        """Show that no run is selected, and what to choose; offer finished runs and Home if there are none at all."""
        self.details_changed.emit()
        if not self.context.jobs.is_read:
            self.show_unknown()
        elif self.context.jobs.runs:
            self._offer_controls(on=True)
            self.show_empty(self.icon, "No run chosen", text or f"{CHOOSE_RUNS} {self.when_chosen}")
        else:
            self.show_no_run_yet()

    def _offer_controls(self, *, on: bool) -> None:
        if on != self.offers_controls:
            self.offers_controls = on
            self.controls_changed.emit()
            self.details_changed.emit()

    def lacks_model(self) -> bool:
        """Return whether none of the chosen runs has a model to ask, which the page then says; else offer controls."""
        rows = [row for run in self.context.selection.runs if (row := self.context.jobs.run(run)) is not None]
        if rows and all(row.no_model for row in rows):
            self.show_no_model(rows[0].no_model)
            return True
        self._offer_controls(on=True)
        return False

    def show_no_model(self, why: str) -> None:
        """Show that the chosen runs have no model to ask, in place of controls that could only fail."""
        self._offer_controls(on=False)
        self.show_empty(self.icon, "No model", why, self._choose_run)

    def show_no_run_yet(self) -> None:
        """Show that there is no run at all: finished ones can be looked at, and Home trains others."""
        hint = "Finished runs of CLIP and CLOOB open at once in a window of their own. Home says how to train yours."
        self._offer_controls(on=False)
        self.show_empty(self.icon, "No run yet", hint, self.look, self._home)

    def read_only_line(self, text: str, button: QWidget) -> QWidget:
        """Return a line that stands for a button where nothing can be made: why not, and the way on."""
        link = QPushButton(self.own_runs.text(), objectName=f"{self.objectName()}-read-only")
        theme.set_role(link, "link")
        link.clicked.connect(self.own_runs.trigger)
        line = layouts.panel(layouts.row(layouts.text(text, "small"), link, layouts.STRETCH))

        def show(why: str) -> None:
            line.setVisible(bool(why))
            button.setVisible(not why)

        # Neither has a parent yet: made visible, it would be a window of its own.
        (button if self.context.jobs.look_only else line).hide()
        self.context.jobs.look_only_changed.connect(show)
        return line

    def stand_for(self, tabs: QTabBar, charts: Sequence[str] = ()) -> TabMenu:
        """Put a menu in place of a row of tabs: it is the first of the main controls.

        Args:
            tabs: The row, which is hidden.
            charts: Names of the charts that the tabs show; empty: they are none.
        """
        menu = TabMenu(tabs, charts, lambda chart: is_in_menu(self.context.settings, chart))
        if isinstance(pages := tabs.parentWidget(), QTabWidget):
            # Tab would end at it: it hands the focus to its row, which is hidden and refuses it.
            pages.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.main.insertWidget(0, menu)
        menu.show_current()
        if charts:
            self.chart_menu = menu
            menu.more_asked.connect(lambda: self.requested.emit(ShowCharts()))
            for action in self.chart_actions:
                action.setText(f"{self.title}: {action.text()}")
        return menu

    @property
    def chart_actions(self) -> list[QAction]:
        """Of each chart of its menu: opens it; the chart that is called as the view opens with the view."""
        actions = self.chart_menu.chart_actions if self.chart_menu is not None else []
        return [action for action in actions if action.text() != self.title]

    def show_content(self) -> None:
        self._offer_controls(on=True)
        self.area.ready()

    def shorten(self, on: bool) -> None:
        """Make the main controls narrower or fewer, because the bar has no room for them, or all wide again."""

    @property
    def is_empty(self) -> bool:
        """Whether there is no content: unknown, empty or failed."""
        return self.area.kind in ("unknown", "empty", "failed")

    def showEvent(self, event: QShowEvent) -> None:
        try:
            super().showEvent(event)
        finally:
            # Also after a part of it has failed at showing what was there: it must not keep the runs of before.
            if not event.spontaneous():
                if self.truth is not None:
                    self.truth.read()
                self.refresh()


def reason_of(failure: Failure) -> Exception | str:
    """Return the reason for a failure for `StateArea.failed`; a bug's text goes to the details."""
    return RuntimeError(failure.message) if failure.kind == "bug" else failure.words


def side_words(selection: Selection, indices: Iterable[int] = (0, 1)) -> list[str]:
    """Return the snapshots at these places (0 is A) as command arguments: the runs, and the step of each."""
    chosen = {*indices}
    runs = dict.fromkeys(str(side.run) for side in selection.sides if side.place in chosen)
    return ["--runs", *runs, *step_words(selection, chosen)]


def step_words(selection: Selection, indices: Iterable[int] = (0, 1)) -> list[str]:
    """Return the selected steps as command arguments: one if they are the same."""
    chosen = {*indices}
    return steps_in_words([side.step for side in selection.sides if side.place in chosen])


def steps_in_words(steps: Sequence[int | None]) -> list[str]:
    """Return the steps (None: the last) as command arguments: one if they are the same, none if all are the last."""
    distinct = steps[:1] if len({*steps}) == 1 else steps
    return [] if {*steps} <= {None} else ["--step", *("last" if step is None else str(step) for step in distinct)]
