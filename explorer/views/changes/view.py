"""The What changed view: asks, lays out, links with the selection."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
from PySide6.QtCore import Qt
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QHBoxLayout, QLabel, QTabWidget, QVBoxLayout, QWidget

from explorer import theme
from explorer.models.thumbnails import Pictures
from explorer.views.changes.load import (
    ChangesQuestion,
    ChangesResult,
    columns_of,
    read,
    read_likeness,
    read_verdicts,
    steps_of,
)
from explorer.views.changes.method import METHOD, NO_RUN, ONE_STEP
from explorer.views.changes.mispair_lists import MispairLists
from explorer.views.changes.neighborhoods import Neighborhoods
from explorer.views.changes.scatter import Scatter
from explorer.views.changes.verdicts import AskingClasses
from explorer.views.changes.wholes import Wholes
from explorer.views.selected import PairTable
from explorer.views.view import View
from explorer.widgets.combo_boxes import Badge, Choice, Picker
from explorer.widgets.elided_label import ElidedLabel
from explorer.widgets.hairline_splitter import HairlineSplitter
from explorer.widgets.progress_row import Cancelled, Working
from trainer.charts.likeness import Likeness
from trainer.errors import UserError
from trainer.messages import Failure
from trainer.store import of_split

K: Final = 10
AXES: Final = {
    "image_rank": ("Caption rank", True),
    "text_rank": ("Image rank", True),
    "margin": ("Standardized margin", False),
}
TABS: Final = ("pairs", "scatter", "mispairs", "wholes")


class ChangesView(View):
    """A against B, pair by pair: a table with both neighborhoods, a scatter, mispairs, and whole snapshots."""

    title = "What changed"
    question = "Which pairs do A and B see differently, and how alike are whole snapshots?"
    icon = "blend"
    method = METHOD

    def build(self) -> Iterator[None]:
        context = self.context
        self.reading: ChangesResult | None = None
        self._asked: ChangesQuestion | None = None
        self._asked_likeness: tuple[object, ...] | None = None
        self.pictures = Pictures(context.background, self)
        self.pickers = tuple(
            Picker(name=f"changes-step-{x.lower()}", words=f"Snapshot shown as {x}", width=220) for x in "AB"
        )
        self.note = ElidedLabel()
        theme.set_role(self.note, "small")
        self.working, self.working_wholes = Working("changes-working"), Working("changes-working-wholes")
        self.suite = Picker(name="changes-suite", words="By what the verdicts are", width=172)
        self._asking = AskingClasses(context.asker, self)
        yield
        self.table = PairTable(self.pictures, name="changes-table", words="What changed, pair by pair")
        self.neighborhoods = Neighborhoods(self.pictures)
        yield
        self.scatter = Scatter()
        self.axes = Picker(name="changes-axes", words="What the scatter compares", width=180)
        self.counted = QLabel()
        self.counted.setTextFormat(Qt.TextFormat.PlainText)
        theme.set_role(self.counted, "small")
        yield
        self.mispairs = MispairLists(self.pictures)
        self.wholes = Wholes()
        self.tabs = QTabWidget(objectName="changes-tabs", accessibleName="Ways to look at the changes")
        yield
        self._lay_out()
        yield
        self._connect()
        self._actions = [self._tab_action(place) for place in range(self.tabs.count())]

    # -- what the window asks ----------------------------------------------------------------------------------

    def command(self) -> list[str] | None:
        if self.tabs.currentWidget() is self.wholes and self.wholes.likeness is not None:
            found = self.wholes.likeness
            runs = dict.fromkeys(str(space.run) for space in found.spaces)
            words = ["export", "likeness", "--runs", *runs, "--measures", self.wholes.measure]
            return [*words, "--dataset", found.spaces[0].dataset, "--split", found.spaces[0].split]
        if self.reading is None:
            return None
        a, b = self.reading.changes.a, self.reading.changes.b
        words = ["export", "changes", "--runs", str(a.run), str(b.run)]
        words += ["--step-a", str(a.step), "--step-b", str(b.step)]
        words += ["--dataset", a.dataset, "--split", a.split, "--k", str(self.reading.changes.k)]
        return [*words, "--suite", self.reading.suite] if self.reading.suite else words

    def actions_for_palette(self) -> list[QAction]:
        return self._actions

    def refresh(self) -> None:
        selection = self.context.selection
        if not selection.runs:
            self._asked = self._asked_likeness = self.reading = None
            self.working.end()
            self.working_wholes.end()
            self.show_no_run("blend", NO_RUN)
            return
        question = self._question()
        if question is None:
            self._asked = self.reading = None
            self.show_empty("blend", "Nothing to compare with", ONE_STEP)
            return
        self.show_content()
        self._show_pickers(question)
        if question != self._asked:
            self._asked = question
            self._asking.cancel()
            self.context.background.forget(self, "verdicts")
            self._read(question)
        if self.tabs.currentWidget() is self.wholes:
            self._read_likeness()

    # -- asking ------------------------------------------------------------------------------------------------

    def _question(self) -> ChangesQuestion | None:
        """What the selection says; with one run only, its first step against its last."""
        selection, workspace = self.context.selection, self.context.workspace
        run_a = selection.run_a if selection.run_a is not None else selection.run_b
        run_b = selection.run_b if selection.run_b is not None else run_a
        steps = [steps_of(workspace, run, selection.dataset) for run in (run_a, run_b)]
        chosen = [_present(selection.step_of(index), steps[index]) for index in (0, 1)]
        if run_a == run_b and chosen[0] == chosen[1]:
            others = [step for step in steps[0] if step != chosen[1]]
            if not others:
                return None
            chosen[0] = others[0]
        return ChangesQuestion((run_a, chosen[0]), (run_b, chosen[1]), **of_split(selection.dataset), k=K)

    def _read(self, question: ChangesQuestion) -> None:
        ticket = self.working.start()
        self.context.background.run(
            self,
            read,
            self.context.workspace,
            question,
            ticket,
            done=self._show,
            failed=self._refuse,
            key="changes",
        )

    def _read_likeness(self) -> None:
        if self._asked is None:
            return
        runs = tuple(dict.fromkeys((self._asked.a[0], self._asked.b[0])))
        asked = (runs, self._asked.dataset, self._asked.split)
        if asked == self._asked_likeness:
            return
        self._asked_likeness = asked
        self.wholes.show_problem("")
        self.context.background.run(
            self,
            read_likeness,
            self.context.workspace,
            *asked,
            K,
            self.working_wholes.start(),
            done=self._show_likeness,
            failed=self._refuse_likeness,
            key="likeness",
        )

    def _show(self, reading: ChangesResult) -> None:
        self.working.end()
        self.reading = reading
        found = reading.changes
        self._show_suites()
        columns = columns_of(found)
        dataset = f"{found.a.dataset}-{found.a.split}"
        self._dataset = dataset
        self.table.pairs.show(found.items, found.rows, columns)
        if self.table.horizontalHeader().sortIndicatorSection() < 0:
            place = next((i for i, column in enumerate(columns) if column.key == "overlap"), 0)
            self.table.sortByColumn(len(self.table.pairs.FIXED) + place, Qt.SortOrder.AscendingOrder)
        self.mispairs.show_mispairs(found, reading.mispairs)
        offered = [Choice(key, words) for key, (words, _) in AXES.items() if f"{key}_a" in found.values]
        key = self.axes.key if self.axes.key in {choice.key for choice in offered} else None
        self.axes.show_choices(offered, key or (offered[0].key if offered else None))
        self._show_scatter()
        self._mark()

    def _show_scatter(self) -> None:
        key = self.axes.key
        if self.reading is None or key is None:
            self.scatter.show_values(np.empty(0), np.empty(0), log=False, x="A", y="B")
            return
        found, (words, log) = self.reading.changes, AXES[key]
        names = [f"{words} in {x}: {s.name}, step {s.step:,}" for x, s in (("A", found.a), ("B", found.b))]
        values = (found.values[f"{key}_a"], found.values[f"{key}_b"])
        self.scatter.show_values(*values, log=log, x=names[0], y=names[1])
        better, worse = (
            (values[1] < values[0], values[1] > values[0]) if log else (values[1] > values[0], values[1] < values[0])
        )
        self.counted.setText(
            f"{int(better.sum()):,} better in B · {int(worse.sum()):,} better in A · "
            f"{int((values[0] == values[1]).sum()):,} equal · larger marks hold more pairs"
        )

    def _pick_suite(self, suite: str) -> None:
        if self.reading is None or suite == self.reading.suite:
            return
        if suite:
            self._asking.ask(suite, self.reading.changes)
        else:
            self._asking.cancel()
            self._judge(suite, None)

    def _judge(self, suite: str, files: tuple[str, str] | None) -> None:
        if self.reading is not None:
            args = (self.context.workspace, self.reading, suite, files)
            self.context.background.run(
                self, read_verdicts, *args, done=self._show, failed=self._refuse_suite, key="verdicts"
            )

    def _refuse_suite(self, error: Exception | Failure) -> None:
        if isinstance(error, Failure):
            self.failed.emit(error.message, error.next)
        elif isinstance(error, UserError):
            self.failed.emit(str(error), "")
        else:
            self.context.background.failed.emit(error)
        self._show_suites()

    def _show_suites(self) -> None:
        """Offers what the verdicts can be by, and says above the table what they are by."""
        reading = self.reading
        choices = [Choice(name, f"Verdicts: {name}") for name in (reading.suites if reading else ())]
        self.suite.show_choices(
            [Choice("", "Verdicts: captions", "The mean of each class's own captions represents it"), *choices],
            reading.suite if reading else "",
        )
        self.suite.setVisible(bool(choices) and "verdict" in (reading.changes.values if reading else {}))
        self.note.setText(reading.changes.note if reading else "")

    def _refuse(self, error: Exception) -> None:
        self.working.end()
        self.reading = None
        if isinstance(error, Cancelled):
            return
        if not isinstance(error, UserError):
            self.context.background.failed.emit(error)
        self.show_empty("triangle-alert", "These two cannot be compared", str(error) or type(error).__name__)

    def _cancelled(self) -> None:
        self.context.background.forget(self, "changes")
        self.show_empty(
            "circle-stop", "Not compared", "You ended the comparison. It can be begun again.", self._again, None
        )

    def _show_likeness(self, found: Likeness) -> None:
        self.working_wholes.end()
        self.wholes.show_likeness(found)

    def _refuse_likeness(self, error: Exception) -> None:
        self.working_wholes.end()
        self._asked_likeness = None
        if not isinstance(error, UserError | Cancelled):
            self.context.background.failed.emit(error)
        self.wholes.show_problem(str(error) or "Comparison cancelled. Reopen this tab to restart.")

    def _ask_again(self) -> None:
        self._asked = None
        self.refresh()

    # -- linking -----------------------------------------------------------------------------------------------

    def _choose(self, pairs: object) -> None:
        if self._owns_dataset():
            self.context.selection.pairs = np.asarray(pairs, np.int64)

    def _brush(self, places: np.ndarray, adds: bool) -> None:
        if self.reading is None:
            return
        rows = self.reading.changes.rows[places]
        self._choose(np.union1d(self.context.selection.pairs, rows) if adds else rows)

    def _owns_dataset(self) -> bool:
        return self.reading is not None

    def _hover(self, pair: int) -> None:
        self.context.selection.hovered = pair if pair >= 0 else None

    def _mark(self) -> None:
        """Shows the selection in table, scatter and lists, and the neighborhoods of its first pair."""
        if self.reading is None:
            return
        found, pairs = self.reading.changes, self.context.selection.pairs
        places = np.flatnonzero(np.isin(found.rows, pairs))
        self.table.mark(pairs)
        self.scatter.set_selected(places)
        self.mispairs.mark(pairs)
        self._show_neighbors(places)

    def _show_neighbors(self, places: np.ndarray) -> None:
        current = self.table.currentIndex()
        place = int(places[0]) if len(places) else -1
        if current.isValid() and self.table.pairs.place_at(current.row()) in places:
            place = self.table.pairs.place_at(current.row())
        self.neighborhoods.show_pair(self.reading.changes if self.reading else None, place)

    def _on_snapshots(self, run: int) -> None:
        if self.isVisible() and run in self.context.selection.runs:
            self._asked_likeness = None
            self.refresh()

    def _refresh_if_seen(self) -> None:
        if self.isVisible():
            self.refresh()

    def _pick_steps(self) -> None:
        if self._asked is None or any(picker.key is None for picker in self.pickers):
            return
        refs = [(ref[0], picker.key) for ref, picker in zip((self._asked.a, self._asked.b), self.pickers, strict=True)]
        self.context.selection.select_snapshots(*refs)

    def _show_pickers(self, question: ChangesQuestion) -> None:
        names = {run.id: run.name for run in self.context.jobs.runs}
        for picker, (run, step) in zip(self.pickers, (question.a, question.b), strict=True):
            name = names.get(run, f"run {run}")
            steps = steps_of(self.context.workspace, run, self.context.selection.dataset)
            picker.show_choices([Choice(s, f"{name} · step {s:,}") for s in steps], step)

    def _tab_action(self, place: int) -> QAction:
        action = QAction(f"Show {self.tabs.tabText(place).lower()}", self, objectName=f"changes-go-{TABS[place]}")
        action.triggered.connect(lambda: self.tabs.setCurrentIndex(place))
        return action

    def _on_tab(self) -> None:
        self.context.settings.set("changes/tab", self.tabs.currentIndex())
        if self.isVisible():
            self.refresh()

    def _connect(self) -> None:
        selection = self.context.selection
        for signal in (selection.runs_changed, selection.step_changed, selection.dataset_changed):
            signal.connect(self._refresh_if_seen)
        selection.pairs_changed.connect(self._mark)
        self.context.jobs.snapshots_changed.connect(self._on_snapshots)
        self.table.chosen.connect(self._choose)
        self.scatter.brushed.connect(self._brush)
        self.mispairs.chosen.connect(self._choose)
        for part in (self.table, self.mispairs):
            part.hovered.connect(self._hover)
        for row in self.neighborhoods.rows:
            row.hovered.connect(self._hover)
            row.doubleClicked.connect(lambda index: self._choose([index.data(Qt.ItemDataRole.UserRole).pair]))
        for picker in self.pickers:
            picker.picked.connect(lambda _step: self._pick_steps())
        self.suite.picked.connect(self._pick_suite)
        self._asking.embedded.connect(self._judge)
        self._asking.failed.connect(self._refuse_suite)
        self._asking.progressed.connect(self.note.setText)
        self._asking.ended.connect(self._show_suites)
        self.axes.picked.connect(lambda _key: (self._show_scatter(), self._mark()))
        self.wholes.chosen.connect(self.context.selection.select_snapshots)
        self.tabs.currentChanged.connect(lambda _place: self._on_tab())
        self.working.cancelled.connect(self._cancelled)
        self.working_wholes.cancelled.connect(
            lambda: self.wholes.show_problem("Comparison cancelled. Reopen this tab to restart.")
        )
        self._again = QAction("Compare again", self, objectName="changes-again")
        self._again.triggered.connect(self._ask_again)

    def _lay_out(self) -> None:
        bar = QHBoxLayout()
        bar.setSpacing(theme.INSIDE)
        for index, picker in enumerate(self.pickers):
            bar.addWidget(Badge("AB"[index], index))
            bar.addWidget(picker)
            bar.addSpacing(theme.INSIDE)
        bar.addWidget(self.note, 1)
        bar.addWidget(self.working)
        bar.addWidget(self.suite)
        pairs = HairlineSplitter(Qt.Orientation.Vertical)
        pairs.addWidget(self.table)
        pairs.addWidget(self.neighborhoods)
        pairs.setStretchFactor(0, 1)
        plot = QWidget()
        column = QVBoxLayout(plot)
        column.setContentsMargins(0, theme.INSIDE, 0, 0)
        column.setSpacing(theme.INSIDE)
        line = QHBoxLayout()
        line.setSpacing(theme.INSIDE)
        line.addWidget(self.axes)
        line.addWidget(self.counted, 1)
        hint = QLabel("Drag to select · Ctrl adds")
        theme.set_role(hint, "small")
        line.addWidget(hint)
        column.addLayout(line)
        column.addWidget(self.scatter, 1)
        wholes = self.wholes.layout()
        wholes.addWidget(self.working_wholes)
        for widget, words in (
            (pairs, "Pairs"),
            (plot, "A against B"),
            (self.mispairs, "Mispairs"),
            (self.wholes, "Whole runs"),
        ):
            self.tabs.addTab(widget, words)
        self.tabs.setDocumentMode(True)
        self.tabs.setCurrentIndex(int(self.context.settings.value("changes/tab", 0)))
        self.body.addLayout(bar)
        self.body.addWidget(self.tabs, 1)


def _present(step: int | None, steps: tuple[int, ...]) -> int | None:
    """The step itself where there is one chosen, else the last."""
    return step if step is not None or not steps else steps[-1]
