"""The Evaluate view: tasks on a data set for runs A and B, and whether their differences are significant."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final

from msgspec import Struct
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QApplication, QSizePolicy, QWidget

from explorer import theme
from explorer.intents import EvaluateBoth, ShowControls, ViewIntent
from explorer.model_client.single_request import SingleRequest
from explorer.models.thumbnails import Thumbnails
from explorer.run_control import actions
from explorer.state.selection import Side
from explorer.views.chart_pane import ChartPane
from explorer.views.evaluate.confusion_pane import ConfusionPane
from explorer.views.evaluate.controls import EvaluateControls, command_of
from explorer.views.evaluate.efficiency_pane import EfficiencyPane
from explorer.views.evaluate.evaluation_tab import EvaluationTab
from explorer.views.evaluate.group_bar import groups_of
from explorer.views.evaluate.seeds_pane import SeedsPane, seeded
from explorer.views.evaluate.tables import ResultTable, show_published
from explorer.views.view import View, reason_of
from explorer.widgets import layouts
from explorer.widgets.current_page_stack import CurrentPageStack
from explorer.widgets.finder import Choice
from explorer.widgets.image_strip import PICTURE
from explorer.widgets.progress_row import ProgressRow
from explorer.widgets.refusal import set_refusal
from explorer.widgets.searchable_combo_box import SearchableComboBox
from explorer.widgets.state_area import StatePage
from trainer.charts.caption_choice import CHART as CHOICE
from trainer.charts.comparison import CHART as COMPARISON
from trainer.charts.confusion import CHART as CONFUSION
from trainer.charts.data_efficiency import CHART as EFFICIENCY
from trainer.charts.evaluation import TASK_WORDS, EvaluationChart, asked, evaluated_data, evaluation, unmeasured_text
from trainer.charts.evaluation_curves import CHART as CURVES
from trainer.charts.evaluation_scores import CHART as SCORES
from trainer.charts.groups import CHART as GROUPS
from trainer.charts.protocol import CHART as PROTOCOL
from trainer.charts.published_numbers import references
from trainer.charts.spec import Request, Target, request_words, targets_of
from trainer.errors import UserError, reason_words
from trainer.experiments.run_data import RunData, trained_data
from trainer.messages import Evaluate, EvaluateAnswer, Failure
from trainer.metrics import data_label
from trainer.store import SplitKey, Workspace

TABS: Final = (SCORES, CONFUSION, CURVES, COMPARISON, GROUPS, EFFICIENCY, PROTOCOL, CHOICE)
"""The charts of the tabs."""
OF_ALL_DATA: Final = frozenset({COMPARISON.name, GROUPS.name, EFFICIENCY.name})
"""Charts that show more than the data set chosen."""
TABLE_EXPORTS: Final = (("md", "Table as Markdown"), ("tex", "Table as LaTeX"))
PROCESS: Final = "Evaluations run in the background."
READ_ONLY: Final = "Read-only: nothing can be measured here."
NOTHING: Final = "Zero-shot and retrieval on each run's own held-out pairs, unless other tasks or data are chosen."
APART: Final = "A and B were trained on different data"
MEASURE_BOTH: Final = (
    "Measure both on one data set to compare them. Other data and tasks are under … in the bar (Ctrl+.)."
)


class EvaluateView(View):
    """Evaluates both runs and shows stored results."""

    title = "Evaluate"
    question = "Benchmark the runs and test the differences."
    icon = "list-checks"
    compares = "scores"
    when_chosen = "Both are evaluated on the same tasks."
    exports = (*View.exports, *TABLE_EXPORTS)

    def build(self) -> Iterator[None]:
        context = self.context
        self.asking = SingleRequest(context.client, self)
        self.pictures = Thumbnails(context.background, self, edge=2 * PICTURE)
        self.chart: EvaluationChart | None = None
        self._read: tuple[Any, ...] | None = None
        self._nothing, self._failure = NOTHING, ""
        self._apart: tuple[RunData, ...] = ()
        self._choosing = self._page_evaluates = False
        self.controls = EvaluateControls(context.settings)
        self._actions = [
            QAction("Evaluate the runs", self, objectName="evaluate-action-go", triggered=self.evaluate),
            QAction("Copy the evaluation as a command", self, objectName="evaluate-action-copy"),
        ]
        self._actions[1].triggered.connect(self.copy_evaluation)
        self._measure = QAction("Evaluate", self, objectName="evaluate-action-page", triggered=self.evaluate)
        self._choose = QAction("Choose data and tasks…", self, objectName="evaluate-action-choose")
        self._choose.triggered.connect(lambda: self.requested.emit(ShowControls()))
        self._cancel = QAction("Cancel", self, objectName="evaluate-action-cancel", triggered=self._cancelled)
        self._folder = QAction("Choose a folder…", self, objectName="evaluate-action-folder", triggered=self._on_folder)
        self._on = [QAction(self, objectName=f"evaluate-action-on-{letter}") for letter in "ab"]
        for index, action in enumerate(self._on):
            action.triggered.connect(partial(self._measure_both, index))
        self._again = QAction("Retry", self, objectName="evaluate-action-again", triggered=self.evaluate)
        self.working = ProgressRow("evaluate-working", self, asks=True)
        self.status = layouts.text("", "small", wrap=True)
        self.shown = SearchableComboBox(name="evaluate-shown", label="Data set shown", width=240)
        self.tabs = layouts.tab_bar(
            "evaluate-tabs", "Views of the evaluation", ((chart.label, chart.question) for chart in TABS)
        )
        self.stack = CurrentPageStack()
        yield
        self.table = ChartPane(context, SCORES.name)
        self.published = ResultTable("evaluate-published", "Published numbers of this data set")
        yield
        self.protocol = EvaluationTab(
            context, PROTOCOL.name, self.pictures, lambda settings: f"{settings.task}_protocol"
        )
        self.choice = EvaluationTab(context, CHOICE.name, self.pictures, lambda _settings: "caption_choice")
        yield
        self.confusion = ConfusionPane(self.pictures)
        yield
        self.curves = ChartPane(context, CURVES.name)
        yield
        self.comparison = ChartPane(context, COMPARISON.name)
        yield
        self.seeds = SeedsPane(context)
        yield
        self.efficiency = EfficiencyPane(context)
        self.about = layouts.elided(role="small")
        yield
        self._lay_out()
        yield
        self._restore()
        self._connect()

    # -- what the window asks ----------------------------------------------------------------------------------

    def command(self) -> list[str] | None:
        pane = self.open_pane
        if not isinstance(pane, ConfusionPane):
            return None if self.needs_data and self.chart is None else pane.command()
        if self.chart is None:
            return None
        task = ["--task", pane.task] if pane.task else []
        return ["export", CONFUSION.name, *request_words(self._request(self.chart)), *task]

    @property
    def open_pane(self) -> ChartPane | EvaluationTab | ConfusionPane | SeedsPane | EfficiencyPane:
        """What the open tab shows."""
        panes = (self.table, self.confusion, self.curves, self.comparison, *self._last_panes)
        return panes[self.tabs.currentIndex()]

    @property
    def _last_panes(self) -> tuple[SeedsPane | EfficiencyPane | EvaluationTab, ...]:
        return self.seeds, self.efficiency, self.protocol, self.choice

    @property
    def needs_data(self) -> bool:
        """Whether the open tab shows the chosen data set, instead of all that was measured."""
        return TABS[self.tabs.currentIndex()].name not in OF_ALL_DATA

    @property
    def method(self) -> str:  # type: ignore[override]
        """The help of the open tab."""
        return TABS[self.tabs.currentIndex()].method

    def _request(self, chart: EvaluationChart) -> Request:
        targets = tuple(Target(side.run, side.step) for side in self.context.selection.sides)
        return Request(targets, chart.dataset, chart.split)

    def actions_for_palette(self) -> list[QAction]:
        return [*self.chart_actions, *self._actions]

    def actions_for_more(self) -> list[QAction]:
        """Return the commands behind the bar's `...`, without the one that has its button in the view."""
        return [action for action in super().actions_for_more() if action is not self._actions[0]]

    def refresh(self) -> None:
        selection = self.context.selection
        if not selection.runs:
            set_refusal(self.controls.go, "Choose a run in the bar above.")
            self.show_no_run()
            return
        if self.lacks_model():
            set_refusal(self.controls.go, self.area.page.text.text())
            return
        self.show_content()
        self._propose()
        self._show()
        self.read()

    def evaluate(self) -> None:
        """Start the evaluation that the controls describe."""
        self._ask(self.question_now())

    def _ask(self, question: Evaluate) -> None:
        if self.asking.busy or not self.context.selection.runs or self.context.jobs.refused():
            return
        if not question.tasks:
            self.status.setText("Choose at least one task.")
            return
        self._failure, self._choosing = "", False
        self.show_content()
        self.read()
        self.controls.keep_data(question.data)
        self.asking.ask(question)

    def carry_out(self, intent: ViewIntent) -> None:
        match intent:
            case EvaluateBoth(key):
                self.tabs.setCurrentIndex(0)
                self._choosing = key is None
                if key is not None:
                    pair = (key.dataset, key.split)
                    self.shown.show_choices([Choice(pair, _label_of(pair))], pair)
                self.read(again=True)
            case _:
                super().carry_out(intent)

    def _pick_data(self) -> None:
        self._choosing = self._page_evaluates = False
        self.read(again=True)

    def _measure_both(self, index: int) -> None:
        self.controls.choose_data(self._apart[index])
        self.evaluate()

    def _on_folder(self) -> None:
        if self.controls.choose_folder():
            self.evaluate()

    def _measure_missing(self) -> None:
        """Measure what the other run was measured by on the data shown."""
        chart = self.chart
        if chart is None or (question := self._missing_question(chart)) is None:
            return
        self._ask(question)

    def _missing_question(self, chart: EvaluationChart) -> Evaluate | None:
        of_model = self._sides_with_model
        sides = [side for run in chart.to_measure if (side := self.context.selection.sides[run.index]) in of_model]
        if not sides:
            return None
        question = self.controls.question_about(chart.dataset, chart.split, sides)
        tasks = tuple(dict.fromkeys(task for run in chart.runs for task in run.tasks))
        return None if question is None else replace(question, tasks=tasks, shift="")

    def copy_evaluation(self) -> None:
        """Copy the equivalent command to the clipboard."""
        QApplication.clipboard().setText(command_of(self.question_now(), self.context.workspace.folder))
        self.status.setText("Copied the command to the clipboard.")

    def read(self, *, again: bool = False) -> None:
        """Read the runs' stored results, unless they are shown already."""
        selection = self.context.selection
        key = (selection.sides, self.shown.key)
        if key == self._read and not again:
            return
        if self._read is not None and key[0] != self._read[0]:
            self._failure, self._choosing = "", False  # of other runs
        self._read = key
        if self.chart is None:
            # That nothing was measured is said once it has been looked up.
            self.empty.hide()
            self.no_curves.hide()
            self.table.show()
        self.context.background.run(
            self, stored, self.context.workspace, *key, done=self._take, failed=self._not_read, key="read"
        )

    # -- showing -----------------------------------------------------------------------------------------------

    def _take(self, answer: StoredResults) -> None:
        evaluated, chart = answer.evaluated, answer.chart
        self.controls.fill_data(answer.trained)
        self._apart = answer.apart
        for action, data in zip(self._on, answer.apart, strict=False):
            action.setText(f"Measure both on {data.label}")
        self.chart = chart if isinstance(chart, EvaluationChart) else None
        key = (self.chart.dataset, self.chart.split) if self.chart else None
        if self.truth is not None:
            self.truth.evaluated = SplitKey(*key) if key else None
            self.truth.read()
        self.shown.show_choices([Choice(data_key, _label_of(data_key)) for data_key in evaluated], key)
        if self._read is not None:
            self._read = (*self._read[:1], self.shown.key)
        if self.chart is not None:
            show_published(self.published, ())  # the chart has them
        else:
            show_published(self.published, references(self.controls.dataset_named()))
        for widget in (self._published_head, self._published_pane):
            widget.setVisible(self.published.rowCount() > 0)
        self._nothing = chart if evaluated and isinstance(chart, str) else NOTHING
        self._show_pages()
        self._show_unmeasured()
        has_table = self.chart is not None and not (self._choosing and self._apart and self.chart.unmeasured)
        self.empty.setVisible(not has_table)
        self.table.setVisible(has_table)
        self._show_shown()
        self.about.setText(asked(self.chart, with_split=False) if self.chart else "")
        self.confusion.show_chart(self.chart)
        self._draw_curves()
        self.comparison.forget()
        self._draw_if_seen()

    def _show_unmeasured(self) -> None:
        """Say below the results which run was not measured on their data, or earlier, with a button for it."""
        chart = self.chart
        if chart is None or not chart.to_measure or not self.needs_data:
            if self.area.kind == "partial" and not self._failure:
                self.area.ready()
            return
        able = self._missing_question(chart) is not None and not self.context.jobs.look_only and not self.asking.busy
        self.area.partial(
            self._missing_model or unmeasured_text(chart), ("Measure", self._measure_missing) if able else None
        )

    def _draw_curves(self) -> None:
        self.no_curves.setVisible(self.chart is None)
        for pane in (self.table, self.curves):
            pane.forget()
        self.curves.setVisible(self.chart is not None)
        if self.chart is not None:
            for pane, chart in ((self.table, SCORES), (self.curves, CURVES)):
                pane.ask(chart, self._request(self.chart), chart.settings())
        for tab in (self.protocol, self.choice):
            request = Request() if self.chart is None else self._request(self.chart)
            tab.show_evaluations(request, {task for run in self.chart.runs for task in run.tasks} if self.chart else ())

    def _show(self) -> None:
        busy = self.asking.busy
        set_refusal(self.controls.go, "An evaluation is running." if busy else "")
        if busy:
            self.working.show_progress(self.asking.progress, self.asking.note)
            self.status.setText(PROCESS)
        else:
            self.working.end()
        self._show_pages()

    def _show_pages(self) -> None:
        """Say on each page that stands for a result whether one is being measured, has failed, or was not asked."""
        look_only = self.context.jobs.look_only
        if self.asking.busy:
            share = f"{100 * self.asking.progress:.0f} % · " if self.asking.progress else ""
            note = f"{self.asking.note[:1].upper()}{self.asking.note[1:]}"
            message = ("loader", "Evaluating", f"{share}{note}…", self._cancel)
        elif self._failure:
            message = ("triangle-alert", "The evaluation failed", self._failure, self._again)
        elif look_only or self._nothing != NOTHING or not self._apart:
            is_refused = look_only and self._nothing == NOTHING
            rest = (READ_ONLY, self.own_runs) if is_refused else (self._nothing, self._measure, self._choose)
            message = ("list-checks", "Not evaluated yet", *rest)
        else:
            message = ("list-checks", APART, MEASURE_BOTH, *self._on, self._folder)
        for page in (self.empty, self.no_curves):
            page.show_message(*message)
        self._page_evaluates = self._measure in message
        self._show_go()
        for pane in (self.confusion, self.protocol, self.choice):
            pane.show_waiting(message if self.asking.busy or self._failure or look_only else None)

    def _show_go(self) -> None:
        """Show the button below the results, unless the page in their place has it."""
        is_page = self._page_evaluates and self.chart is None and self.open_pane in (self.table, self.curves)
        is_done = self.chart is not None and not self.chart.to_measure
        theme.set_role(self.controls.go, "" if is_done else "primary")
        self.controls.go.setVisible(not is_page and not self.context.jobs.look_only)

    def _done(self, answer: EvaluateAnswer) -> None:
        left_out: dict[str, list[str]] = {}  # by the reason
        for what, why in answer.left_out.items():
            left_out.setdefault(why, []).append(what)
        reasons = [f"Not measured: {'; '.join(names)}. {why}" for why, names in left_out.items()]
        tasks: dict[int, dict[str, None]] = {}
        for each in answer.done:
            tasks.setdefault(each.run, {})[TASK_WORDS.get(each.task, each.task).lower()] = None
        runs: dict[str, list[str]] = {}  # by what was stored of them
        for run, names in tasks.items():
            runs.setdefault(", ".join(names), []).append(self.context.jobs.name_of(run))
        saved = "; ".join(f"{names} of {' and '.join(runs[names])}" for names in runs)
        self.status.setText(" ".join([f"Saved: {saved or 'nothing'}.", *reasons]))
        if answer.done:
            last = answer.done[-1]
            key = (last.dataset, last.split)
            self.shown.show_choices([Choice(key, _label_of(key))], key)
        self.read(again=True)
        if self.truth is not None:
            self.truth.read(again=True)

    def _cancelled(self) -> None:
        self.asking.cancel()
        self.status.setText("Cancelled. Tasks that were done are stored.")
        self.read(again=True)

    def _not_read(self, error: Exception) -> None:
        self._read = None
        self.area.failed("Could not read the results", error, retry=self.refresh)

    def _not_evaluated(self, failure: Failure) -> None:
        self.status.setText("")
        self._failure = failure.words
        self._show_pages()
        if self._read is None or (self.chart is None and failure.kind in ("bug", "ended")):
            # Nor could the results be read, or its text is for a report.
            self.area.failed("The evaluation failed", reason_of(failure), retry=self.evaluate)
        elif self.chart is not None:
            self.area.partial(f"The evaluation failed: {failure.words}", ("Retry", self.evaluate))

    def _not_launched(self, error: Exception) -> None:
        set_refusal(self.seeds.launch, "")
        self.failed.emit("Could not queue the seeds.", reason_words(error))

    # -- seeds -------------------------------------------------------------------------------------------------

    def _propose(self) -> None:
        groups = groups_of(self.context.jobs.runs)
        selection = self.context.selection
        of_sides = [groups[run].key if run in groups else "" for run in (selection.run_a, selection.run_b)]
        offered = tuple(dict.fromkeys(groups.values()))
        for pane in (self.seeds, self.efficiency):
            pane.groups.propose(offered, *of_sides)
        self._draw_if_seen()

    def _draw_if_seen(self) -> None:
        """Draw the comparison, or the groups chosen."""
        pane = self.open_pane
        if not self.isVisible():
            return
        if pane is self.comparison:
            request = Request(targets_of(self.context.selection.runs))
            self.comparison.ask(COMPARISON, request, COMPARISON.settings())
        elif isinstance(pane, SeedsPane | EfficiencyPane):
            pane.draw()

    def _launch(self, seeds: int) -> None:
        set_refusal(self.seeds.launch, "The seeds are being queued.")
        args = (seeded, self.context.workspace, self.context.selection.runs, seeds)
        self.context.background.run(self, *args, done=self._queue, failed=self._not_launched, key="seeds")

    def _queue(self, runs: Sequence[Any]) -> None:
        set_refusal(self.seeds.launch, "")
        if not runs:
            self.status.setText("Every seed of both runs already exists.")
            return
        self.context.jobs.do(actions.enqueue, runs)
        self.status.setText(f"{len(runs)} runs queued: {runs[0].name} to {runs[-1].name}. See Runs.")

    # -- the rest ----------------------------------------------------------------------------------------------

    def question_now(self) -> Evaluate:
        return self.controls.question(self._sides_with_model)

    @property
    def _sides_with_model(self) -> list[Side]:
        """The runs shown that have a model."""
        rows = self.context.jobs.run
        return [side for side in self.context.selection.sides if not ((row := rows(side.run)) and row.no_model)]

    @property
    def _missing_model(self) -> str:
        rows = map(self.context.jobs.run, self.context.selection.runs)
        return next((row.no_model for row in rows if row is not None and row.no_model), "")

    def _on_tab(self, tab: int) -> None:
        self.stack.setCurrentIndex(tab)
        self._show_shown()
        self._show_go()
        self._draw_if_seen()
        self._show_unmeasured()
        self.context.settings.set("evaluate/tab", tab)

    def _show_shown(self) -> None:
        """Show the data whose results are shown where there are any; what was asked of them goes with it."""
        for widget in (self.shown, self.about):
            widget.setVisible(self.needs_data and self.shown.count() > 0)

    # -- putting it together -----------------------------------------------------------------------------------

    def _restore(self) -> None:
        tab = self.context.settings.value("evaluate/tab", 0)
        self.tabs.setCurrentIndex(tab if tab in range(len(TABS)) else 0)
        self.stack.setCurrentIndex(self.tabs.currentIndex())

    def _connect(self) -> None:
        selection = self.context.selection
        for signal in (selection.runs_changed, selection.step_changed):
            signal.connect(self.refresh_if_seen)
        self.context.jobs.runs_changed.connect(lambda _runs: self._propose())
        self.context.jobs.look_only_changed.connect(lambda _why: self._show_pages())
        self.controls.wanted.connect(self.evaluate)
        for tab in (self.protocol, self.choice):
            tab.measure_asked.connect(lambda task: self._ask(replace(self.question_now(), tasks=(task,))))
        self.controls.data_picked.connect(lambda: self.read(again=True) if self.chart is None else None)
        self.working.cancelled.connect(self._cancelled)
        self.asking.changed.connect(self._show)
        self.asking.done.connect(self._done)
        self.asking.failed.connect(self._not_evaluated)
        self.shown.picked.connect(self._pick_data)
        self.tabs.currentChanged.connect(self._on_tab)
        bars = (self.seeds.groups, self.efficiency.groups)
        for bar, other in (bars, bars[::-1]):
            bar.changed.connect(partial(other.follow, bar))
        self.seeds.launch_asked.connect(self._launch)

    def shorten(self, on: bool) -> None:
        (self._foot if on else self.main).addWidget(self.shown)
        self._show_shown()  # of another parent now, which hid it
        self.main.activate()  # the bar measures it at once

    def _lay_out(self) -> None:
        self.stand_for(self.tabs, [chart.name for chart in TABS])
        self.main.addWidget(self.shown)
        self.more.addWidget(self.controls)
        self.about.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Preferred)
        self.shown.setMaximumWidth(280)
        self.shown.hide()
        self._foot = layouts.row(self.controls.go, (self.status, 1), self.about)
        self.body.addLayout(
            layouts.column(
                self.read_only_line(READ_ONLY, self.controls.go),
                (self.stack, 1),
                self._foot,
                gap=theme.SPACE,
            ),
            1,
        )
        for pane in (self._numbers(), self.confusion, self._curves_pane(), self.comparison, *self._last_panes):
            self.stack.addWidget(pane)

    def _curves_pane(self) -> QWidget:
        self.no_curves = StatePage()
        return layouts.panel(layouts.column((self.no_curves, 1), (self.curves, 1), layouts.STRETCH, gap=None))

    def _numbers(self) -> QWidget:
        self.empty = StatePage()
        self._published_pane = self.published.at_left()
        self._published_head = layouts.text("Published numbers, of other models at full resolution", "strong")
        self._published_head.hide()
        self._published_pane.hide()
        return layouts.panel(
            layouts.column(
                (self.empty, 3),
                (self.table, 3),
                self._published_head,
                (self._published_pane, 2),
                layouts.STRETCH,
                gap=theme.SPACE,
            )
        )


class StoredResults(Struct, frozen=True):
    """What is stored of the runs shown, and the data that they can be measured on."""

    evaluated: tuple[tuple[str, str], ...]  # Data set and split of what was measured of any of them.
    chart: EvaluationChart | str  # One of these, or why there is none.
    trained: tuple[RunData, ...]
    apart: tuple[RunData, ...] = ()  # What A and what B was trained on, where these differ.


def stored(workspace: Workspace, sides: Sequence[Side], data: tuple[str, str] | None) -> StoredResults:
    """Return the runs' results, the chart of `data` or of what most of them were measured on. Pure, for a thread."""
    evaluated, chart = _stored(workspace, sides, data)
    trained = tuple(trained_data(workspace))
    of_runs = {each: None for side in sides for each in trained if side.run in each.runs}
    return StoredResults(tuple(evaluated), chart, trained, tuple(of_runs) if len(of_runs) > 1 else ())


def _label_of(key: tuple[str, str]) -> str:
    return data_label(SplitKey(*key))


def _stored(
    workspace: Workspace, sides: Sequence[Side], data: tuple[str, str] | None
) -> tuple[list[tuple[str, str]], EvaluationChart | str]:
    evaluated: list[tuple[str, str]] = []
    try:
        runs = [side.run for side in sides]
        evaluated = evaluated_data(workspace, [*dict.fromkeys(runs)])
        dataset, split = data if data in evaluated else (None, None)
        steps = [side.step for side in sides]
        return evaluated, evaluation(workspace, [*dict.fromkeys(runs)], dataset=dataset, split=split, steps=steps)
    except UserError as problem:
        return evaluated, str(problem)
