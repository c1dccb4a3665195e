"""The Data quality view: findings with evidence, decisions, and the way to a cleaned list."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, Final

import numpy as np
from PySide6.QtCore import Qt
from PySide6.QtGui import QAction, QKeySequence, QUndoCommand
from PySide6.QtWidgets import QFileDialog, QPushButton, QTabWidget, QWidget

from explorer import theme
from explorer.intents import TrainCopy
from explorer.models.thumbnails import Thumbnails
from explorer.views.quality import finding_card
from explorer.views.quality.finding_card import FindingCard
from explorer.views.quality.findings_model import FINDING_ROLE, STATES
from explorer.views.quality.findings_table import PICTURE_PX, FindingsTable
from explorer.views.quality.load import LoadedQuality, load_quality, write_states
from explorer.views.view import View, reason_of
from explorer.widgets import layouts
from explorer.widgets.finder import Choice
from explorer.widgets.flow_row import FlowRow
from explorer.widgets.progress_row import ProgressPage, ProgressRow
from explorer.widgets.refusal import set_refusal
from explorer.widgets.searchable_combo_box import SearchableComboBox
from explorer.widgets.state_area import StateArea
from trainer import config
from trainer.config import default_paths
from trainer.messages import CheckData, CleanedList, Failure, Question, WriteCleanedList
from trainer.store.quality_reports import Judgment, QualityFinding, judgments_in_short, pairs_words, splits_words
from trainer.store.reviews import Review

TABS: Final = {"mispair": "Mispairs", "duplicate": "Near-duplicates", "leak": "Leaks", "outlier": "Outliers"}
NONE_FOUND: Final = {
    "mispair": "No caption fits another picture clearly better than its own, in any of the runs above.",
    "duplicate": "No two pictures of one split show the same.",
    "leak": "No picture is both in the training pairs and in the held-out pairs.",
    "outlier": "No pair is far from all others.",
}
CHECKING: Final = "The data are being checked."
CHOOSE: Final = "Choose findings in the list first."
ALL: Final = "all"
SELECTED: Final = "selected"
FILTER: Final = "Parquet (*.parquet);;CSV (*.csv)"
REVIEW_ACTIONS: Final = (
    ("flagged", "Flag", "F", "Leave these pairs out of cleaned lists"),
    ("ignored", "Ignore", "I", "These pairs are fine as they are"),
    ("reviewed", "Reviewed", "R", "Reviewed, no decision"),
    ("", "Clear state", "Backspace", "Reset the state of these pairs"),
)
"""State, words, key and hint of each decision."""


NO_RUN: Final = "Choose run A in the bar above. Its model searches its training data for problems."
READ_ONLY_DATA: Final = (
    "A check stores its findings, so it needs a workspace of your own. Similarity lists here the pairs whose image is "
    "closer to another caption than to its own."
)
NOT_CHECKED: Final = (
    "The runs chosen above search the training and the held-out pairs for wrong captions, duplicate images and "
    "outliers. It takes minutes for tens of thousands of pairs, and continues if you leave this view."
)
AWAITED: Final = (
    "Mispairs, near-duplicates, leaks and outliers will be listed here, each with its pictures and its evidence. The "
    "check continues if you leave this view."
)

UNSURE: Final = "Its test failed: what only an embedding found may be wrong."
"""Of findings by neighbors, where too few planted mispairs were found in any split."""


def cannot_tell(blind: Sequence[Judgment], splits: int) -> tuple[str, str]:
    """Return title and text of a check that found no mispair and could not have: what is known, what not, what next.

    Args:
        blind: Of the splits in which too few planted mispairs were found.
        splits: How many were judged.
    """
    detected, planted = (sum(getattr(each, name) for each in blind) for name in ("detected", "planted"))
    both = len({run for each in blind for run in each.runs}) > 1
    who = "these two runs" if both else "this run"
    where = f" among {splits_words(blind)}" * (len(blind) < splits)
    title = f"{who.capitalize()} cannot find mispairs{where}"
    tested = f"Of {planted:,} captions exchanged as a test, {'both' if both else 'it'} found {detected:,}"
    why = f"{tested if planted else 'Too few pairs are held out to test it'}, so none is listed."
    advice = "Choose only the better run, or one trained longer" if both else "Choose a run trained longer"
    return title, f"{why} Near-duplicates, leaks and outliers are checked all the same. {advice}, and check again."


class QualityView(View):
    """What may be wrong with the data of run A, what was decided about it, and whether cleaning helped."""

    title = "Data quality"
    question = "Possible mislabels, duplicates and leaks, and the effect of training without them."
    icon = "database"
    holds_plot = True
    exports = (("csv", "Findings as CSV"), ("parquet", "Findings as Parquet"))

    def build(self) -> Iterator[None]:
        context = self.context
        self.loaded = LoadedQuality(None)
        self.states: dict[str, str] = {}
        self._writes: list[tuple[str, tuple[tuple[Review, str], ...]]] = []
        self._open_question: int | None = None
        self._writes_own = False
        self.pictures = Thumbnails(context.background, self, edge=PICTURE_PX)
        self.working = ProgressRow("quality-working", asks=True)
        self.check_page = ProgressPage(self.working, "Checking the data", AWAITED)
        self.shown = SearchableComboBox(name="quality-shown", label="State of the pairs shown", width=150)
        self.shown.show_choices(
            [
                Choice(ALL, "All states"),
                *(Choice(key, title) for key, title in STATES.items()),
                Choice(SELECTED, "Selected pairs", "Findings of the pairs that are selected in every view."),
            ],
            ALL,
        )
        self._selects = False
        self.check = QPushButton("Check the data", objectName="quality-check")
        self.export_list = QPushButton("Export cleaned list…", objectName="quality-export-list")
        self.train = QPushButton("Train on these pairs…", objectName="quality-train")
        theme.set_role(self.train, "primary")
        yield
        self.tabs = QTabWidget(objectName="quality-tabs", accessibleName="Kinds of findings")
        self.tables = {kind: FindingsTable(kind, title, self.pictures) for kind, title in TABS.items()}
        self.areas = {kind: StateArea(table) for kind, table in self.tables.items()}
        self.card = FindingCard(Thumbnails(context.background, self, edge=2 * finding_card.PICTURE_PX))
        self.opened: QualityFinding | None = None
        self.note, self.helped = (layouts.text(role="small", wrap=True) for _ in range(2))
        self.older = layouts.text(role="warn", name="quality-older", wrap=True)
        yield
        self._review_actions = [self._review_action(*spec) for spec in REVIEW_ACTIONS]
        self._check_action = QAction("Check the data", self, objectName="quality-action-check")
        self._check_action.triggered.connect(self.check_data)
        self._similarity = QAction("Show these pairs", self, objectName="quality-similarity")
        self._similarity.triggered.connect(lambda: setattr(context.selection, "view", "similarity"))
        yield
        self._lay_out()
        self._connect()

    # -- what the window asks ----------------------------------------------------------------------------------

    def details(self) -> QWidget | None:
        """Return the finding that is looked at, large; None where there is none."""
        return self.card if self.opened is not None and self.area.has_result else None

    def command(self) -> list[str] | None:
        runs = self._runs()
        if not runs or self.loaded.report is None:
            return None
        made = self.loaded.report.runs
        return ["data", "quality", *(str(run.run) for run in made), "--step", *(str(run.step) for run in made)]

    def actions_for_palette(self) -> list[QAction]:
        return [self._check_action, *self._review_actions]

    def refresh(self) -> None:
        runs = self._runs()
        if not runs:
            self.loaded = LoadedQuality(None)
            self.show_no_run(NO_RUN)
            return
        if self.area.kind == "unknown":
            self.area.loading()
        arguments = (self.context.workspace, runs, self.context.selection.dataset)
        background = self.context.background
        background.run(self, load_quality, *arguments, done=self._show, failed=self._refused, key="quality")

    # -- checking ----------------------------------------------------------------------------------------------

    def check_data(self) -> None:
        """Check the data with the chosen runs, in a process of its own."""
        runs = self._runs()
        if not runs or self.loaded.no_model or self._open_question is not None or self.context.jobs.refused():
            return
        numbers, steps = zip(*runs, strict=True)
        if self.loaded.report is None:
            self.area.empty_page(self.check_page)
        self._ask(CheckData(runs=numbers, steps=steps), lambda _answer: self.refresh())

    def _ask(self, question: Question, done: Any) -> None:
        ticket = self.working.start()
        ticket(0.0, "loading libraries")
        self._show_check()

        def ended(answer: Any) -> None:
            self._open_question = None
            self.working.end()
            self._show_check()
            done(answer)

        self._open_question = self.context.client.ask(
            question,
            done=ended,
            failed=self._not_answered,
            progress=lambda share, note: None if ticket.cancelled else ticket(share, note),
            owner=self,
        )

    def _not_answered(self, failure: Failure) -> None:
        self._open_question = None
        self.working.end()
        self._show_check()
        if failure.kind != "cancelled" and self.loaded.report is None:
            self.area.failed("Could not check the data", reason_of(failure), retry=self.check_data)
            return
        if failure.kind != "cancelled":
            self.failed.emit(*failure.sentences)
        self._show(self.loaded)

    def _cancel(self) -> None:
        if self._open_question is not None:
            self.context.client.cancel(self._open_question)

    def _show_check(self) -> None:
        """Offer a check in the bar where there is a report; without one, the page of the view offers the first."""
        for part in (self._check_action, self.check):
            set_refusal(part, self.loaded.no_model or (CHECKING if self.working.busy else ""))
        self.check.setVisible(self.loaded.report is not None)

    # -- showing -----------------------------------------------------------------------------------------------

    def _runs(self) -> list[tuple[int, int | None]]:
        steps: dict[int, int | None] = {}
        for side in self.context.selection.sides:
            steps.setdefault(side.run, side.step)
        return [*steps.items()]

    def _show(self, loaded: LoadedQuality) -> None:
        self.loaded = loaded
        self._show_check()
        if loaded.report is None and self._open_question is not None:
            self.area.empty_page(self.check_page)
            return
        if loaded.report is None:
            self._offer_controls(on=False)  # there is no finding whose kind could be chosen
            if loaded.no_model:
                self.show_no_model(loaded.no_model)
            elif self.context.jobs.look_only:
                what = "sample" if default_paths.is_sample(self.context.workspace.folder) else "workspace"
                self.show_empty("database", f"The {what} is read-only", READ_ONLY_DATA, self._similarity, self.own_runs)
            else:
                self.show_empty("database", "Not checked yet", NOT_CHECKED, self._check_action)
            return
        self.states = dict(loaded.states)
        for change in self._writes:
            self.states |= {review.pair: state for review, state in change[1]}
        self.helped.setText("\n".join(("Did it help?", *loaded.helped)) if loaded.helped else "")
        self.helped.setVisible(bool(loaded.helped))
        self.older.setText(loaded.older)
        self.older.setVisible(bool(loaded.older))
        self._show_findings()
        self.show_content()

    def _show_findings(self) -> None:
        report = self.loaded.report
        state = None if self.shown.key in (ALL, SELECTED) else self.shown.key
        split, rows = self.loaded.split, self.context.selection.pairs.tolist()
        pairs = {(split, row) for row in rows} if self.shown.key == SELECTED else None
        for tab, (kind, table) in enumerate(self.tables.items()):
            table.findings.show(report, self.states, state, pairs, self._side_names())
            count = report.count(kind) if report is not None else 0
            blind = [] if count or kind != "mispair" or report is None else report.blind
            self.tabs.setTabText(tab, f"{TABS[kind]} ({count:,})" if report and not blind else TABS[kind])
            if table.findings.rowCount():
                self.areas[kind].ready()
            elif count:
                self.areas[kind].empty(
                    "list-checks",
                    "No finding in this state" if pairs is None else "No finding among the selected pairs",
                    "Choose All states above to see the others.",
                )
            elif blind and report is not None:
                self.areas[kind].empty("circle-help", *cannot_tell(blind, len(report.judgments)))
            else:
                self.areas[kind].empty("circle-check", f"No {TABS[kind].lower()} found", NONE_FOUND[kind])
        self.tab_menu.show_current()
        self._show_counts()
        self._mark()

    def _side_names(self) -> list[str]:
        """Return A or B for each run of the report, as it is chosen now, or the name of one that is not."""
        letters = {side.run: "AB"[side.place] for side in self.context.selection.sides}
        return [letters.get(run.run, run.name) for run in self.loaded.report.runs] if self.loaded.report else []

    def _show_counts(self) -> None:
        """Say how many pairs of how many were found, and what was decided."""
        report = self.loaded.report
        if report is None:
            return
        kind = self._kind()
        parts = []
        for split, n in report.pairs.items():
            drawn = f" (drawn at random of {report.whole[split]:,})" if report.whole.get(split, n) > n else ""
            parts.append(f"{report.counts[kind].get(split, 0):,} of {pairs_words(n, split)}{drawn}")
        states = [*self.states.values()]
        counts = ", ".join(f"{states.count(state):,} {state}" for state in STATES if state and states.count(state))
        by = " and ".join(f"{checked.name}, step {checked.step:,}" for checked in report.runs)
        judged = report.judgments if kind == "mispair" else ()
        self.note.setToolTip("\n".join(judgment.words for judgment in judged))
        unsure = f". {UNSURE}" if report.judgments and len(report.blind) == len(report.judgments) else ""
        short = judgments_in_short(judged) if judged else f"{', '.join(parts)} · checked with {by}{unsure}"
        # Where nothing could be told, the page above has said so.
        facts = [] if judged and report.blind and not report.count(kind) else [short]
        self.note.setText("\n".join([*facts, *([counts] if counts else [])]))
        flagged = "flagged" in states
        listed = report.count(kind) > 0  # else there is nothing to decide about
        for part in (self.shown, *self._review_buttons.values()):
            part.setVisible(listed)
        for part in (self.train, self.export_list):
            part.setVisible(listed or flagged)
        for button in (self.train, self.export_list):
            set_refusal(
                button, "" if flagged else "Flag pairs first", "All training pairs of run A without flagged ones"
            )

    def _kind(self) -> str:
        return [*TABS][max(0, self.tabs.currentIndex())]

    def _refused(self, problem: Exception) -> None:
        self.area.failed("Could not read the report on the data", problem, retry=self.refresh)

    # -- deciding ----------------------------------------------------------------------------------------------

    def decide(self, state: str) -> None:
        """Give the selected findings this state (empty: none); undoable."""
        report = self.loaded.report
        chosen = self.tables[self._kind()].chosen()
        pairs = {key: Review("", key, "", path=f.path, caption=f.caption) for f in chosen for key in f.keys}
        after = tuple((review, state) for key, review in pairs.items() if self.states.get(key, "") != state)
        if report is None or not after:
            return
        before = tuple((review, self.states.get(review.pair, "")) for review, _ in after)
        label = next(spec[1] for spec in REVIEW_ACTIONS if spec[0] == state)
        n = f"{len(after):,} pair{'s' * (len(after) != 1)}"
        self.context.selection.undo.push(_Decision(self, f"{label}: {n}", report.dataset, before, after))

    def apply(self, dataset: str, states: tuple[tuple[Review, str], ...], *, select: bool = False) -> None:
        """Show these states at once, and store them; `select` their pairs, as they were when it was decided."""
        table = self.tables[self._kind()]
        line = max(0, table.currentIndex().row())
        self.states |= {review.pair: state for review, state in states}
        self._show_findings()
        table.go_to(line)
        if select:
            pairs = {review.pair for review, _ in states}
            table.select_lines([at for at, f in enumerate(table.findings.findings) if pairs & {*f.keys}])
        self._show_chosen()
        self._writes.append((dataset, states))
        if len(self._writes) == 1:
            self._write_next()

    def _write_next(self) -> None:
        dataset, states = self._writes[0]
        arguments = (self.context.workspace, dataset, states)
        self.context.background.run(
            self, write_states, *arguments, done=self._written, failed=self._not_written, key="quality-write"
        )

    def _written(self, _nothing: None) -> None:
        del self._writes[0]
        if self._writes:
            self._write_next()
        else:
            self._writes_own = True
            self.context.selection.facts_changed.emit()
            self._writes_own = False

    def _on_facts(self) -> None:
        """Show what was decided elsewhere; what was decided here is shown already."""
        if not self._writes_own and not self._writes:
            self.refresh_if_seen()

    def _not_written(self, problem: Exception) -> None:
        self._writes.clear()
        self.failed.emit(str(problem), "Nothing was saved.")
        self.refresh()

    # -- the cleaned list --------------------------------------------------------------------------------------

    def ask_export(self) -> None:
        """Ask where to write the cleaned list, and write it."""
        start = f"{self.loaded.report.dataset if self.loaded.report else 'data'}-cleaned.parquet"
        file, _ = QFileDialog.getSaveFileName(self, "Export cleaned list", start, FILTER)
        if file:
            self.write_list(file)

    def write_list(self, file: str) -> None:
        """Write the training pairs of run A without flagged ones, and the held-out pairs next to them."""
        if (runs := self._runs()) and self._open_question is None:
            self._ask(WriteCleanedList(run=runs[0][0], file=file), self._exported)

    def train_on_these(self) -> None:
        """Write the cleaned list into the workspace, then open the New run form with it."""
        if (runs := self._runs()) and self._open_question is None:
            self._ask(WriteCleanedList(run=runs[0][0]), partial(self._train, runs[0][0]))

    def _exported(self, answer: CleanedList) -> None:
        self.note.setText(
            f"{answer.kept:,} pairs in {answer.file}, {answer.left_out:,} flagged ones left out; the held-out "
            f"list is saved next to it."
        )

    def _train(self, run: int, answer: CleanedList) -> None:
        self.requested.emit(TrainCopy(run, config.Table(path=answer.file, heldout_path=answer.heldout)))

    # -- the shared selection ----------------------------------------------------------------------------------

    def _choose(self, findings: Sequence[QualityFinding]) -> None:
        """Show the finding that was chosen last, and select the pairs of all in the window."""
        rows = {finding.row for finding in findings if finding.split == self.loaded.split}
        self._selects = True
        self.context.selection.pairs = np.array(sorted(rows), np.int64)
        self._selects = False
        self._show_chosen()

    def _on_pairs(self) -> None:
        """Show the findings of the pairs selected elsewhere; a row chosen here leaves the rows as they are."""
        if not self._selects and not self.context.selection.pair_count:
            for table in self.tables.values():
                table.select_lines(())
        if self.shown.key == SELECTED and not self._selects:
            self._show_findings()
        else:
            self._mark()

    def _mark(self) -> None:
        for table in self.tables.values():
            table.mark(self.context.selection.pairs, self.loaded.split)
        self._show_chosen()

    def _show_chosen(self) -> None:
        """Offer decisions and show a finding large where some are selected: the current one, or the first."""
        table = self.tables[self._kind()]
        chosen, reason = table.chosen(), self.context.jobs.read_only_reason
        for part in (part for both in self._review_buttons.items() for part in both):
            set_refusal(part, reason or ("" if chosen else CHOOSE))
        current = table.currentIndex().data(FINDING_ROLE)
        self.opened = current if current in chosen else next(iter(chosen), None)
        if self.opened is not None:
            self.card.show_finding(self.opened, self._side_names())
        self.details_changed.emit()

    # -- putting together --------------------------------------------------------------------------------------

    def _review_action(self, state: str, label: str, key: str, hint: str) -> QAction:
        action = QAction(label, self, objectName=f"quality-{label.split()[0].lower()}", toolTip=f"{hint} ({key})")
        action.setShortcut(QKeySequence(key))
        action.setShortcutContext(Qt.ShortcutContext.WidgetWithChildrenShortcut)
        action.triggered.connect(lambda: self.decide(state))
        self.tabs.addAction(action)
        return action

    def _lay_out(self) -> None:
        bar = FlowRow()
        bar.add(self.shown)
        self._review_buttons: dict[QAction, QPushButton] = {}
        for action in self._review_actions:
            button = QPushButton(action.text(), objectName=f"{action.objectName()}-button", toolTip=action.toolTip())
            self._review_buttons[action] = button
            button.clicked.connect(action.trigger)
            for part in (action, button):
                set_refusal(part, CHOOSE)
            bar.add(button, gap=theme.INSIDE)
        for button in (self.export_list, self.train):
            bar.add(button, gap=theme.INSIDE)
        for kind, label in TABS.items():
            self.tabs.addTab(self.areas[kind], label)
        self.tabs.setDocumentMode(True)
        self.tab_menu = self.stand_for(self.tabs.tabBar())
        self.main.addWidget(self.check)
        self._show_check()
        layouts.add(self.body, self.older, bar, self.note, (self.tabs, 1), self.helped, self.working)

    def _connect(self) -> None:
        selection = self.context.selection
        for signal in (selection.runs_changed, selection.step_changed, selection.dataset_changed):
            signal.connect(self.refresh_if_seen)
        selection.pairs_changed.connect(self._on_pairs)
        selection.facts_changed.connect(self._on_facts)
        self.shown.picked.connect(lambda _state: self._show_findings())
        for show in (self._show_counts, self._show_chosen):
            self.tabs.currentChanged.connect(lambda _place, show=show: show())
        self.check.clicked.connect(self.check_data)
        self.export_list.clicked.connect(self.ask_export)
        self.train.clicked.connect(self.train_on_these)
        self.working.cancelled.connect(self._cancel)
        self.card.closed.connect(lambda: self.tables[self._kind()].clearSelection())
        for table in self.tables.values():
            table.chose.connect(self._choose)


class _Decision(QUndoCommand):
    """States of some pairs, before and after."""

    def __init__(self, view: QualityView, text: str, dataset: str, before: Any, after: Any) -> None:
        super().__init__(text)
        self._view, self._dataset, self._before, self._after = view, dataset, before, after

    def redo(self) -> None:
        self._view.apply(self._dataset, self._after)

    def undo(self) -> None:
        self._view.apply(self._dataset, self._before, select=True)
