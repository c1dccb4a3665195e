"""The Compare view: requests, layout and link to the selection."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Final

import numpy as np
from jaxtyping import Int
from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QPushButton, QSizePolicy, QTabWidget, QWidget

from explorer import theme
from explorer.intents import CompareBoth, EvaluateBoth, ViewIntent
from explorer.models.pair_table import PAIR_ROLE, PairColumn
from explorer.models.thumbnails import Thumbnails
from explorer.views.changes.mispair_lists import MispairLists
from explorer.views.changes.neighborhoods import Neighborhoods
from explorer.views.changes.tabs import Compared, OneRunGroups, WholeRuns
from explorer.views.chart_tab import ChartTab
from explorer.views.selected import PairTable
from explorer.views.view import View
from explorer.widgets import layouts
from explorer.widgets.finder import Choice, Finder
from explorer.widgets.hairline_splitter import HairlineSplitter
from explorer.widgets.refusal import set_refusal
from explorer.widgets.searchable_combo_box import SearchableComboBox
from explorer.widgets.state_area import StateArea
from explorer.widgets.truth_line import EVALUATE
from trainer.charts.pair_changes import MEASURES, Changes
from trainer.charts.snapshot_label import steps_note
from trainer.charts.spec import Request, Target
from trainer.experiments.seed_truth import DIFFERENT_DATA, evaluated_alike, measured_apart
from trainer.metrics import data_label
from trainer.store import SplitKey, Workspace, of_split

ASKED: Final = "Own caption ranked first:"
TITLES: Final = {"only-a": "Only in A", "only-b": "Only in B", "neither": "In neither"}
HINT: Final = (
    "The image's own caption is the nearest of all. Its predicted class is another question. Click again for all pairs."
)
SHOWN = (
    "image_rank_a",
    "image_rank_b",
    "image_rank_change",
    "text_rank_a",
    "text_rank_b",
    "margin_change",
    "overlap",
    "residual",
    "verdict",
)
"""Columns of the table, in order."""
SPARE = {"residual": 3, "text_rank_a": 2, "text_rank_b": 2, "margin_change": 1}
"""Columns that a table without room leaves out, those of the highest number first; ranks of captions tell most."""
ONE_STEP: Final = "There is only one snapshot. Choose run B in the bar above, or wait for the next evaluation."
MEASURE: Final = "Only pairs that both runs embed can be compared. Evaluate measures both runs on one data set."
MEASURED: Final = (
    "Evaluate has the scores of both on {data}; pairs can be compared only where both runs embed the same ones."
)
LEAST_TABLE_PX: Final = 220
"""Of four pairs and their heads: in a low window the view scrolls, rather than show one."""
TABS: Final = ("pairs", "changes", "mispairs", "separated-groups", "representation-similarity")


class GroupChips(QWidget):
    """One chip for each group, with its number of pairs; at most one is chosen."""

    changed = Signal()  # Another group is chosen, or none.

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent, objectName="changes-groups")
        self.group = ""
        self.chips = {name: QPushButton(title, checkable=True, toolTip=HINT) for name, title in TITLES.items()}
        for name, chip in self.chips.items():
            chip.setObjectName(f"changes-group-{name}")
            chip.setAccessibleName(f"{ASKED} {TITLES[name]}")
            chip.clicked.connect(partial(self._choose, name))
        self.extent = layouts.elided(role="small")
        layouts.row(layouts.text(ASKED, "secondary"), *self.chips.values(), (self.extent, 1), of=self)

    def show_counts(self, counts: Mapping[str, int], extent: str) -> None:
        """Show how many pairs are in each group, and of which pairs; no chips where there are no groups."""
        self.setVisible(bool(counts))
        self.extent.setText(extent)
        if not counts:
            self.group = ""
        for name, chip in self.chips.items():
            chip.setText(f"{TITLES[name]} ({counts.get(name, 0):,})")
            chip.setChecked(name == self.group)
            is_offered = name == self.group or counts.get(name, 0) > 0
            set_refusal(chip, "" if is_offered else "No pair is in this group.")

    def _choose(self, name: str, _checked: bool = False) -> None:
        self.group = name if self.chips[name].isChecked() else ""
        for other, chip in self.chips.items():
            chip.setChecked(other == self.group)
        self.changed.emit()


def columns_of(changes: Changes, indices: Int[np.ndarray, " k"]) -> list[PairColumn]:
    """Return the table's number columns, of these pairs in this order."""
    made = []
    for key in SHOWN:
        if key in changes.values:
            about = MEASURES[key]
            hint = f"{about.words}. {about.hint}"
            names, head = (("differs", "same"), "Predicted class") if key == "verdict" else ((), about.words)
            if changes.shares_captions and key.startswith("text_rank"):
                head = head.replace("Image rank", "Best image, rank")  # of the caption, for every pair of it
            head = head.replace(", ", ",\n") if ", " in head else head.replace(" ", "\n", 1)
            head += f"\n({about.better} is better)" if about.better else ""
            values, spare = changes.values[key][indices], SPARE.get(key, 0)
            made.append(PairColumn(key, head, hint, values, about.digits, about.signed, names, spare))
    return made


def by_difference(changes: Changes) -> Int[np.ndarray, " n"]:
    """Return the indices of the pairs, those first that differ most between A and B.

    That is the change of the correct caption's rank, either way, and then another prediction; where a snapshot has no
    ranks, how little the neighborhoods share.
    """
    values = changes.values
    if "image_rank_change" not in values:
        return np.argsort(values["overlap"], kind="stable")
    same = values.get("verdict", np.ones(changes.n))
    return np.lexsort((np.nan_to_num(same, nan=1.0), -np.abs(values["image_rank_change"])))


def own_caption_first(changes: Changes) -> dict[str, Int[np.ndarray, " k"]]:
    """Return the indices of the pairs whose image finds its caption first in one run only, or in none, by group.

    Empty where a snapshot has no ranks.
    """
    if "image_rank_a" not in changes.values:
        return {}
    in_a, in_b = (changes.values[f"image_rank_{side}"] <= 1 for side in "ab")
    groups = {"only-a": in_a & ~in_b, "only-b": in_b & ~in_a, "neither": ~in_a & ~in_b}
    return {name: np.flatnonzero(group) for name, group in groups.items()}


def steps_of(workspace: Workspace, run: int, data: SplitKey | None) -> tuple[int, ...]:
    """Return the steps of the run's snapshots of this data, ascending."""
    return tuple(sorted({s.step for s in workspace.results.snapshots(run) if data in (None, s.key)}))


class ChangesView(View):
    """A against B, pair by pair: a table with both neighborhoods, a scatter, mispairs, groups, and whole snapshots."""

    title = "Compare"
    question = "Pairs that differ between A and B, and the similarity of whole snapshots."
    icon = "blend"
    compares = "scores"
    when_chosen = "Or compare two steps of one run."
    shows_neighbors = holds_plot = True

    def build(self) -> Iterator[None]:
        context = self.context
        self._shown: Changes | None = None
        self._evaluated: SplitKey | None = None
        if self.truth is not None:
            self.truth.offers_evaluation = False  # the page has the button
        self.pictures = Thumbnails(context.background, self)
        self.versus = QPushButton("vs. step\u2026", objectName="changes-versus")
        self._finder = Finder(self.versus, "Compare A with")
        self.groups = GroupChips()
        self._listed: Int[np.ndarray, " k"] = np.empty(0, np.int64)
        self.note = layouts.text(role="small", wrap=True)
        self.suite = SearchableComboBox(name="changes-suite", label="Class prototypes of the predictions", width=206)
        yield
        self.table = PairTable(self.pictures, name="changes-table", label="Pairs that differ between A and B")
        self.neighborhoods = Neighborhoods(self.pictures)
        yield
        self.compared = Compared(context, self.pictures)
        yield
        self.mispairs = MispairLists(self.pictures)
        self.one_run_groups = OneRunGroups(context, self.pictures, self._request)
        self.wholes = WholeRuns(context, self.pictures)
        self.tabs = QTabWidget(objectName="changes-tabs", accessibleName="Views of the changes")
        yield
        self._lay_out()
        yield
        self._connect()

    # -- what the window asks ----------------------------------------------------------------------------------

    @property
    def found(self) -> Changes | None:
        """The comparison of A and B that is shown; None before it is known."""
        return self._shown

    def carry_out(self, intent: ViewIntent) -> None:
        match intent:
            case CompareBoth():
                self.tabs.setCurrentIndex(0)
            case _:
                super().carry_out(intent)

    def command(self) -> list[str] | None:
        if self.is_empty:
            return None
        return (self._own_chart or self.compared).command()

    @property
    def _own_chart(self) -> ChartTab | None:
        """The open tab, where it is a chart that asks for itself."""
        tab = self.tabs.currentWidget()
        return next((chart for chart in (self.one_run_groups, self.wholes) if chart is tab), None)

    def refresh(self) -> None:
        if not self.context.selection.runs:
            self._forget()
            self.show_no_run()
            return
        request = self._request()
        if request is None:
            self._forget()
            self.show_empty("blend", "Nothing to compare with", ONE_STEP)
            return
        self.show_content()
        self._show_versus(request)
        if request != self.compared.request and self.compared.settings_now().suite:
            self.compared.controls.show_settings(replace(self.compared.settings_now(), suite=""))
        self.compared.request = request
        self.compared.refresh()
        self._show_waiting()
        if self._own_chart is not None:
            self._own_chart.refresh()

    def _show_waiting(self) -> None:
        """Dim the lists of the comparison before, or show that there will be some."""
        if self.compared.pane.area.kind == "loading":
            for area in self.areas:
                area.loading()

    # -- asking ------------------------------------------------------------------------------------------------

    def _forget(self) -> None:
        self._shown = None
        for tab in (self.compared, self.one_run_groups, self.wholes):
            tab.pane.stop()
            tab.forget()

    def _request(self) -> Request | None:
        """Return the request for the selection; with one run, its first step against its last."""
        selection, workspace = self.context.selection, self.context.workspace
        run_a = selection.run_a if selection.run_a is not None else selection.run_b
        run_b = selection.run_b if selection.run_b is not None else run_a
        if run_a is None or run_b is None:
            return None
        steps = [steps_of(workspace, run, selection.dataset) for run in (run_a, run_b)]
        chosen = [_present(selection.step_of(index), steps[index]) for index in (0, 1)]
        if run_a == run_b and chosen[0] == chosen[1]:
            others = [step for step in steps[0] if step != chosen[1]]
            if not others:
                return None
            chosen[0] = others[0]
        return Request((Target(run_a, chosen[0]), Target(run_b, chosen[1])), **of_split(selection.dataset))

    def _show(self) -> None:
        self._shown = changes = self.compared.found
        if changes is None:
            return
        self._show_suites()
        for area in self.areas:
            area.ready()  # first: what is sorted marks and shows the selected pair, and a hidden table cannot scroll
        self._list_pairs()
        self.mispairs.show_mispairs(changes, self.compared.mispairs)
        self._mark()

    def _list_pairs(self) -> None:
        """List the pairs of the chosen group, those first that differ most until a header is clicked."""
        if (changes := self._shown) is None:
            return
        groups = own_caption_first(changes)
        self.groups.show_counts({name: len(indices) for name, indices in groups.items()}, changes.extent)
        order = by_difference(changes)
        self._listed = order[np.isin(order, groups[self.groups.group])] if self.groups.group else order
        self.table.pairs.show(changes.items, changes.rows[self._listed], columns_of(changes, self._listed))

    def _list_group(self) -> None:
        self._list_pairs()
        # Else a shorter list is where the one before was scrolled to; a selected pair of it is then scrolled to.
        self.table.scrollToTop()
        self._mark()

    def _pick_suite(self, suite: str) -> None:
        if suite != self.compared.settings_now().suite:
            self.compared.controls.show_settings(replace(self.compared.settings_now(), suite=suite))
            self.compared.refresh()
            self._show_waiting()

    def _show_suites(self) -> None:
        """Offer the available sources of verdicts and say below the table what they are."""
        choices = [
            Choice(name, f"Class prototypes: {name}") for name in (self.compared.data.suites if self._shown else ())
        ]
        self.suite.show_choices(
            [Choice("", "Class prototypes: captions", "The mean of each class's own captions represents it"), *choices],
            self.compared.settings_now().suite,
        )
        self.suite.setVisible(bool(choices) and "verdict" in (self._shown.values if self._shown else {}))
        changes = self._shown
        sentences = (steps_note((changes.a, changes.b)), changes.note) if changes is not None else ()
        self.note.setText(" ".join(filter(None, sentences)))

    def _refused(self) -> None:
        refusal = self.compared.pane.area
        why = refusal.page.text.text()
        workspace, runs = self.context.workspace, self.context.selection.runs
        if measured_apart(workspace, runs):
            self._shown = None
            self._evaluated = next(iter(evaluated_alike(workspace, runs)), None)
            self.evaluate.setText(EVALUATE if self._evaluated is None else "Show both in Evaluate")
            measured = MEASURED.format(data=data_label(self._evaluated)) if self._evaluated is not None else MEASURE
            self.show_empty("blend", DIFFERENT_DATA, measured, self.evaluate)
            return
        if refusal.kind == "empty":
            self._shown = None
            self.show_empty("clock", refusal.page.title.text(), why)
            return
        if self.compared.settings_now().suite:
            # The ranks are known: only the classes could not be embedded.
            self.failed.emit(why, "")
            self._pick_suite("")
            return
        self._shown = None
        self.area.failed("These two cannot be compared", why, retry=self._compare_again)
        self.area.details = refusal.details

    def _compare_again(self) -> None:
        self.show_content()
        self.compared.pane.retry()
        self._show_waiting()

    def _cancelled(self) -> None:
        self._forget()
        self.show_empty(
            "circle-stop", "Not compared", "Comparison cancelled. Press Compare again to restart it.", self.again, None
        )

    # -- linking -----------------------------------------------------------------------------------------------

    def _choose(self, pairs: object) -> None:
        if self._shown is not None:
            self.context.selection.pairs = np.asarray(pairs, np.int64)

    def _choose_listed(self, pairs: object) -> None:
        clicked = self.table.currentIndex().data(PAIR_ROLE)
        self._choose(pairs)
        if clicked is not None:
            self.context.selection.current = clicked

    def _choose_rows(self, pairs: object) -> None:
        self.context.selection.pairs = np.asarray(pairs, np.int64)

    def _brush(self, rows: np.ndarray, adds: bool) -> None:
        self._choose(np.union1d(self.context.selection.pairs, rows) if adds else rows)

    def _hover(self, pair: int) -> None:
        self.context.selection.hovered = pair if pair >= 0 else None

    def _follow(self, pair: int) -> None:
        """Show the neighbors of the pair under the pointer while none is selected."""
        if pair >= 0 and self._shown is not None and not self.context.selection.pair_count:
            self.neighborhoods.show_pair(self._shown, int(np.searchsorted(self._shown.rows, pair)))
            self.table.ring(self.table.pairs.place_of(pair))

    def _mark(self) -> None:
        """Show the selection in table, plots and lists, and the neighborhoods of its first pair."""
        if self._shown is None:
            return
        pairs = self.context.selection.pairs
        indices = np.flatnonzero(np.isin(self._shown.rows, pairs))
        self.table.mark(pairs, self.context.selection.current)
        self.compared.pane.panel.mark(pairs)
        self.mispairs.mark(pairs)
        self._show_neighbors(indices)

    def _show_neighbors(self, indices: np.ndarray) -> None:
        current = self.table.currentIndex()
        indices = self._listed[np.isin(self._listed, indices)]  # a pair of another group is not in the list
        index = int(indices[0]) if len(indices) else -1
        if current.isValid() and self._index_at(current.row()) in indices:
            index = self._index_at(current.row())
        if index >= 0 and self._shown is not None:
            self.context.selection.current = int(self._shown.rows[index])
        first = index < 0 and self.table.pairs.rowCount() > 0
        self.table.ring(0 if first else -1)
        self.neighborhoods.show_pair(self._shown, self._index_at(0) if first else index)

    def _index_at(self, line: int) -> int:
        """Return the index of a line's pair in the comparison."""
        return int(self._listed[self.table.pairs.place_at(line)])

    def _on_snapshots(self, run: int) -> None:
        if self.isVisible() and run in self.context.selection.runs:
            for tab in (self.compared, self.one_run_groups, self.wholes):
                tab.forget()
            self.refresh()

    def _offer_steps(self) -> None:
        """Offer the snapshots that A can be compared with: the other steps of both runs."""
        runs = dict.fromkeys(int(target.run) for target in self.compared.request.targets)
        chosen = {(int(target.run), target.step) for target in self.compared.request.targets}
        steps = {run: steps_of(self.context.workspace, run, self.context.selection.dataset) for run in runs}
        rows = {run: self.context.jobs.run(run) for run in runs}
        choices = [
            Choice((run, step), self._name_of(run, step), group=row.experiment if (row := rows[run]) else "")
            for run, its_steps in steps.items()
            for step in its_steps
            if (run, step) not in chosen
        ]
        self._finder.ask(choices, None)

    def _compare_with(self, choice: Choice) -> None:
        a = self.compared.request.targets[0]
        self.context.selection.select_snapshots((int(a.run), a.step), choice.key)

    def _show_versus(self, request: Request) -> None:
        names = [self._name_of(int(target.run), target.step) for target in request.targets]
        self.versus.setToolTip(
            "Compare A with another step\n" + "\n".join(map(": ".join, zip("AB", names, strict=True)))
        )

    def _name_of(self, run: int, step: int | None) -> str:
        name = self.context.jobs.name_of(run)
        return name if step is None else f"{name} · step {step:,}"

    def _on_tab(self) -> None:
        self.context.settings.set("changes/tab", self.tabs.currentIndex())
        self._show_note()
        self.refresh_if_seen()

    def _show_note(self) -> None:
        """Say below the lists what they are of, which a chart says itself; only the open tab needs width."""
        policy = QSizePolicy.Policy
        for page in (*self.areas, self.compared, self.one_run_groups, self.wholes):
            is_open = page is self.tabs.currentWidget()
            page.setSizePolicy(policy.Preferred if is_open else policy.Ignored, policy.Preferred)
        self.note.setVisible(self.tabs.currentWidget() in self.areas)

    def _connect(self) -> None:
        selection = self.context.selection
        for signal in (selection.runs_changed, selection.step_changed, selection.dataset_changed):
            signal.connect(self.refresh_if_seen)
        for signal in (selection.pairs_changed, selection.current_changed):
            signal.connect(self._mark)
        self.context.jobs.snapshots_changed.connect(self._on_snapshots)
        self.table.chosen.connect(self._choose_listed)
        self.groups.changed.connect(self._list_group)
        self.versus.clicked.connect(self._offer_steps)
        self._finder.picked.connect(self._compare_with)
        self.table.pairs.layoutChanged.connect(self._mark)
        self.compared.brushed.connect(self._brush)
        self.compared.answered.connect(self._show)
        self.compared.pane.refused.connect(self._refused)
        self.compared.pane.computing.cancelled.connect(self._cancelled)
        self.mispairs.chosen.connect(self._choose)
        self.table.hovered.connect(self._follow)
        for part in (self.table, self.mispairs):
            part.hovered.connect(self._hover)
        for row in self.neighborhoods.rows:
            row.hovered.connect(self._hover)
            row.doubleClicked.connect(lambda index: self._choose([index.data(Qt.ItemDataRole.UserRole).pair]))
        self.suite.picked.connect(self._pick_suite)
        self.one_run_groups.chosen.connect(self._choose_rows)
        self.one_run_groups.pair_chosen.connect(lambda pair: self._choose_rows([pair]))
        self.wholes.chosen.connect(self.context.selection.select_snapshots)
        self.tabs.currentChanged.connect(lambda _place: self._on_tab())
        self.evaluate = QAction(EVALUATE, self, objectName="changes-evaluate")
        self.evaluate.triggered.connect(lambda: self.requested.emit(EvaluateBoth(self._evaluated)))
        self.again = QAction("Compare again", self, objectName="changes-again", triggered=lambda: self.refresh())

    def _lay_out(self) -> None:
        layouts.add(self.body, (self.tabs, 1), self.note)
        pairs = HairlineSplitter(Qt.Orientation.Vertical)
        self.table.setMinimumHeight(LEAST_TABLE_PX)
        pairs.addWidget(layouts.panel(layouts.column(self.groups, (self.table, 1), gap=theme.SPACE)))
        pairs.addWidget(self.neighborhoods)
        pairs.setStretchFactor(0, 1)
        self.areas = (StateArea(pairs), StateArea(self.mispairs))
        for widget, label, question in (
            (self.areas[0], "Pairs", "Which pairs differ, and what are their neighbors in A and in B?"),
            (self.compared, "Scatter", self.compared.chart.question),
            (self.areas[1], "Mispairs", "Which captions fit another picture better, in A and in B?"),
            (self.one_run_groups, "Groups of one run", self.one_run_groups.chart.question),
            (self.wholes, "Representation similarity", self.wholes.chart.question),
        ):
            self.tabs.setTabToolTip(self.tabs.addTab(widget, label), question)
        self.tabs.setDocumentMode(True)
        self.tabs.setCurrentIndex(int(self.context.settings.value("changes/tab", 0)))
        self._show_note()
        self.tabs.tabBar().setObjectName("changes-bar")
        self.stand_for(self.tabs.tabBar(), TABS)
        self.main.addWidget(self.versus)
        self.more.addWidget(self.suite)


def _present(step: int | None, steps: tuple[int, ...]) -> int | None:
    """Return the selected step, or the last if none is selected."""
    return step if step is not None or not steps else steps[-1]
