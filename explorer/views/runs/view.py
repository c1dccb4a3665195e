"""The list of runs next to their curves; log and configuration of the selected ones in the right panel."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from PySide6.QtCore import QModelIndex, Qt, QTimer, QUrl
from PySide6.QtGui import QAction, QDesktopServices, QFocusEvent, QResizeEvent
from PySide6.QtWidgets import QPushButton, QTabWidget, QWidget

from explorer import theme
from explorer.event_loop.idle_scheduler import idle_scheduler
from explorer.intents import (
    ChooseSlots,
    EditAndRestart,
    FineTune,
    MixRuns,
    OpenImport,
    OpenNewRun,
    ShowRuns,
    TrainBoth,
    TrainCopy,
    TrainDecoder,
    TrainLonger,
    TrainOnImport,
    ViewIntent,
)
from explorer.run_control import actions
from explorer.run_control.actions import DECODER
from explorer.run_control.jobs import working
from explorer.views.runs.actions import CONTEXT_MENU, RESUMABLE, RunActions
from explorer.views.runs.arrangement import Arrangement, read_values
from explorer.views.runs.config_pane import ConfigPane
from explorer.views.runs.curves_pane import CurvesPane
from explorer.views.runs.drawn_runs import DrawnRuns, choose_drawn, opened_by_sides, sides_first
from explorer.views.runs.new_run import NewRun
from explorer.views.runs.runs_table import RunsTable
from explorer.views.runs.sheets import Sheets, queued_of
from explorer.views.runs.toolbar import RunsToolbar
from explorer.views.view import View
from explorer.widgets import layouts
from explorer.widgets.hairline_splitter import HairlineSplitter
from explorer.widgets.log_tail import LogTail
from explorer.widgets.state_area import StateArea
from trainer import config
from trainer.analysis.quantities import duration
from trainer.charts.settings import options
from trainer.charts.spec import Request, request_words, targets_of
from trainer.config import presets
from trainer.errors import UserError, reason_words
from trainer.scheduling import launch
from trainer.scheduling.paces import finished_paces
from trainer.store import RunRow

if TYPE_CHECKING:
    from explorer.state.view_link import ViewLink
    from trainer.store.run_values import ValueColumn, Values

LIST_PX: Final = 352
LEAST_LIST_PX, LEAST_CURVES_PX = 300, 220
STACKED_PX: Final = 640
"""In less, the curves are below the list, which then is as high as the view, and the page scrolls."""
HIDDEN: Final = {
    "filter": "{:,} hidden by the filter · Clear filter",
    "groups": "{:,} in collapsed groups · Expand all",
    "archived": "{:,} archived · Show archived",
}
"""Why runs are not in the list -> the button that shows them."""


class RunsView(View):
    """All runs and their training progress.

    Attributes:
        arrangement: Its columns of one's own, and its groups.
        curves: Of the runs whose eye is open.
        log, config: What the right panel shows of the chosen runs.
        sheets: What repeats, branches and arranges them.
    """

    title = "Runs"
    question = "All runs and their training curves."
    icon = "activity"
    shows_pairs = False
    margins = (0, 0, 0, 0)

    def build(self) -> Iterator[None]:
        context = self.context
        self._choose_when_there: tuple[int, ...] = ()
        self._sides_when_there: dict[str, Any] = {}
        self._eyes: dict[int, bool] = {}
        self._opened: set[int] = set()
        self._inspects = False
        self._preset_for_import = ""
        self._last_data: dict[str, Any] = {}
        self._newest: tuple[int, int] | None = None
        self.table = RunsTable()
        self.arrangement = Arrangement(self.table, context)
        yield
        self.actions_of_runs = RunActions(self)
        self.sheets = Sheets(self, context, self.table.chosen, self._choose_soon)
        yield
        self.curves = CurvesPane(context)
        yield
        self.log = LogTail(context.background)
        self.config = ConfigPane(context.workspace, context.background)
        yield
        self._build()
        yield
        self._connect()
        self._restore()

    # -- for the window ----------------------------------------------------------------------------------------

    def command(self) -> list[str] | None:
        runs = self.drawn()
        if not runs or not self.curves.metrics:
            return None
        request = Request(targets_of([run.id for run in runs]))
        return ["export", "curves", *request_words(request), *options(self.curves.settings)]

    def actions_for_palette(self) -> list[QAction]:
        # These are actions of the window as well.
        actions = (each for name, each in self.actions_of_runs.by_name.items() if name not in ("import", "new"))
        return [*actions, *self.arrangement.actions, *self.curves.menu.metric_actions()]

    def actions_for_more(self) -> list[QAction]:
        return []  # the menus under the list and that of metrics have them all

    def refresh(self) -> None:
        self._show_runs(list(self.context.jobs.runs))
        self._show_silent()

    def drawn(self) -> list[RunRow]:
        """Return the runs whose curves are drawn, A and B first."""
        return list(self._drawn_of(self.table.chosen()).runs)

    def close_panel(self) -> bool:
        was_open = self._inspects
        self.inspect(False)
        return was_open

    def details(self) -> QWidget | None:
        return self.tabs if self._inspects else None

    def _drawn_of(self, chosen: list[RunRow]) -> DrawnRuns:
        """Return the runs to draw: of those that a filter finds, all whose eye was not closed."""
        self._opened = opened_by_sides(self.table.runs.runs, self.context.selection.runs, self._opened)
        is_filtered = bool(self.filter.text().strip())
        rows = self.table.shown.fitting() if is_filtered else self.table.runs.runs
        return choose_drawn(
            rows,
            [run.id for run in self.table.shown.runs()],
            sides=self.context.selection.runs,
            chosen=self._opened | {run.id for run in (rows if is_filtered else chosen)},
            eyes=self._eyes,
        )

    def toggle_eyes(self, run_ids: Sequence[int]) -> None:
        """Hide the curves of these runs if all of them are drawn, else show them."""
        drawn = {run.id for run in self.drawn()}
        self._set_eyes(run_ids, opened=not drawn.issuperset(run_ids))
        self._show_chosen()

    def _set_eyes(self, run_ids: Sequence[int], *, opened: bool) -> None:
        self._eyes |= dict.fromkeys(run_ids, opened)
        self.context.settings.set("runs/eyes", {str(run): is_open for run, is_open in self._eyes.items()})

    def inspect(self, on: bool) -> None:
        """Show log and configuration of the selected runs in the right panel, or close it."""
        self._inspects = on
        self.details_changed.emit()

    def _inspect_row(self, index: QModelIndex) -> None:
        if self.table.group_at(index.row()) is None:
            self.inspect(True)

    # -- what a person does ------------------------------------------------------------------------------------

    def open_new_run(self) -> NewRun | None:
        """Open the New run dialog, with the data of the last run where they are the person's own."""
        return self._open_sheet(None, **({"preset": ""} | self._last_data))

    def carry_out(self, intent: ViewIntent) -> None:
        match intent:
            case ChooseSlots():
                self.sheets.slots()
            case OpenNewRun():
                self.open_new_run()
            case TrainOnImport():
                self._train_on(intent)
            case TrainCopy(run_id, data):
                self.edit_and_restart(run_id, data)
            case EditAndRestart(run_id):
                self.edit_and_restart(run_id)
            case TrainLonger(run_id):
                self.train_longer(run_id)
            case TrainDecoder(run_id):
                self.train_decoder(run_id)
            case FineTune(run_id):
                self.fine_tune(run_id)
            case MixRuns(run_ids):
                self.mix(run_ids)
            case ShowRuns(run_ids):
                self._choose_again(run_ids, {})
                groups = map(self.table.runs.group_of, run_ids)
                self.table.collapse(self.table.shown.collapsed - {group.title for group in groups if group})
                self.refresh()
            case _:
                super().carry_out(intent)

    def _train_on(self, intent: TrainOnImport) -> None:
        preset, self._preset_for_import = self._preset_for_import or "clip-folder", ""
        self._open_sheet(
            None,
            preset,
            data=intent.data,
            pairs=intent.pairs,
            image_size=intent.image_size,
            captions_repeat=intent.captions_repeat,
        )

    def _show_places(self, sheet: NewRun) -> None:
        from explorer.views.runs.places_sheet import PlacesSheet

        sheet_of_places = PlacesSheet(self.context.background, self.context.workspace.folder, sheet)
        sheet_of_places.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        sheet_of_places.changed.connect(sheet.where.read)
        sheet_of_places.open()

    def _open_sheet(
        self, start_from: config.Run | None, preset: str, *, parent_run: int | None = None, **about: Any
    ) -> NewRun | None:
        try:
            choices = presets.presets() | presets.user_presets()
        except UserError as problem:
            self.failed.emit(str(problem), "")
            return None
        context = self.context
        if context.jobs.refused():
            return None
        about |= {"start_from": start_from, "preset": preset, "client": context.client}
        paces = partial(finished_paces, context.workspace)
        taken = {run.name for run in context.jobs.runs}
        about |= {"taken": taken, "experiments": context.workspace.experiments.all}
        sheet = NewRun(choices, context.background, paces=paces, parent=self, **about)
        sheet.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        how: dict[str, Any] = {"parent": parent_run, "done": self._show_new}
        start = partial(context.jobs.do, actions.create_and_launch)

        def begin(run: config.Run, preset: str) -> None:
            start(run, preset, binding=sheet.where.binding(), named=sheet.name_field.isModified(), **how)

        def enqueue(run: config.Run, preset: str) -> None:
            context.jobs.do(actions.enqueue, [run], preset, named=sheet.name_field.isModified(), **how)

        sheet.chosen.connect(begin)
        sheet.places_asked.connect(lambda: self._show_places(sheet))
        sheet.queued.connect(enqueue)
        sheet.compared.connect(lambda run, seeds: self.requested.emit(TrainBoth(run, seeds)))
        sheet.import_asked.connect(self._import_for)
        # Made in this turn, shown in the next: together they would hold up the window.
        idle_scheduler().later(sheet, sheet.open)
        return sheet

    def _import(self) -> None:
        self._import_for("", "")

    def _import_for(self, path: str, preset: str) -> None:
        """Open the import dialog; a run trained on its data then starts from this preset."""
        self._preset_for_import = preset
        self.requested.emit(OpenImport(path))

    def edit_and_restart(self, run: int, data: config.Data | None = None) -> None:
        """Open the New run form for a copy of this run; one with other data names it as its parent."""
        row = self.context.jobs.run(run)
        preset = row.preset if row is not None else ""

        def show(copy: config.Run) -> None:
            self._open_sheet(copy, preset, parent_run=None if data is None else run)

        self.context.jobs.do(actions.copy_of, run, data, done=show)

    def train_longer(self, run: int) -> None:
        """Open the New run form for more steps, as suit the pairs, and new seeds; for both where CLIP and CLOOB are."""
        row = self.context.jobs.run(run)
        pairs = row.facts.get("train_pairs") if row is not None else None
        if row is None or not isinstance(pairs, int):
            return
        rows = [each for each in self.context.jobs.runs if row.experiment and each.experiment == row.experiment]

        def show(answer: tuple[config.Run, str]) -> None:
            longer, note = answer
            of_own: dict[str, Any] = {} if longer.data.is_drawn else {"data": longer.data, "pairs": pairs}
            repeat = getattr(longer.objective, "mask_duplicates", False)
            preset = row.preset or ("clip-folder" if of_own else "")
            title = "Train again" if note else "Train longer"
            sheet = self._open_sheet(longer, preset, title=title, note=note, captions_repeat=repeat, **of_own)
            if sheet is not None and {each.objective for each in rows} == {"clip", "cloob"}:
                sheet.both.click()
                sheet.pair.seeds.set_value(sum(each.objective == row.objective for each in rows))

        self.context.jobs.do(actions.longer_copy, run, done=show)

    def link_state(self) -> tuple[str, dict[str, str]]:
        return self.filter.text(), self.arrangement.link_fields()

    def show_link(self, link: ViewLink) -> None:
        self.filter.setText(link.filter)
        self.arrangement.choose(link.columns, link.group)

    def _look_for(self, text: str) -> None:
        """Filter the table; an incomplete one, such as `beta>`, changes nothing and is explained in the tool tip."""
        try:
            self.table.shown.look_for(text)
        except UserError as problem:
            self.count.setText(str(problem))
            return
        self._read_values()
        self._show_chosen()

    def _read_values(self) -> None:
        """Read the values that filter, columns and groups need besides the rows, off the GUI thread."""
        fields, arrangement = self.table.shown.fields, self.arrangement
        if not (fields or arrangement.columns or arrangement.group):
            return
        self.context.background.run(
            self,
            read_values,
            self.context.workspace,
            fields,
            arrangement.columns,
            arrangement.group,
            self.table.runs.runs,
            done=self._show_values,
            failed=lambda error: self.failed.emit("Could not read the added columns.", reason_words(error)),
            key="run-values",
        )

    def _show_values(self, answer: tuple[Values, tuple[ValueColumn, ...], ValueColumn | None]) -> None:
        values, columns, by = answer
        self.table.shown.show_values(values)
        self.arrangement.show(columns, by)
        self._show_chosen()

    def _archive(self) -> None:
        chosen = self.table.chosen()
        gone = [run.id for run in chosen if run.archived_at is not None]
        if gone:
            self.context.jobs.archive(gone, back=True)
        elif chosen:
            self.context.jobs.archive([run.id for run in chosen])

    def _duplicate(self) -> None:
        for run in self.table.chosen()[:1]:
            self.edit_and_restart(run.id)

    def _decode(self) -> None:
        for run in self.table.chosen()[:1]:
            self.train_decoder(run.id)

    def train_decoder(self, run: int) -> None:
        """Open the New run form for a decoder of this run."""
        self.context.jobs.do(actions.decoder_like, run, done=lambda form: self._open_sheet(form, DECODER))

    def _fine_tune(self) -> None:
        for run in self.table.chosen()[:1]:
            self.fine_tune(run.id)

    def fine_tune(self, run: int) -> None:
        """Open the New run form for a run that continues from the weights of this one."""
        row = self.context.jobs.run(run)
        name, preset = (row.short_name, row.preset) if row is not None else (str(run), "")
        self.context.jobs.do(
            actions.fine_tuning_like,
            run,
            done=lambda form: self._open_sheet(form, preset, parent_run=run, title=f"Fine-tune {name}", source=name),
        )

    def mix(self, runs: Sequence[int]) -> None:
        """Open the New run form for a run that measures mixes of these with what they were fine-tuned from."""
        title = "Mix with its base" if len(runs) == 1 else "Soup of runs"
        self.context.jobs.do(
            actions.mix_like, tuple(runs), done=lambda form: self._open_sheet(form, "", parent_run=runs[0], title=title)
        )

    def _stop(self, after: str = "step") -> None:
        self.context.jobs.stop([run.id for run in self.table.chosen() if run.active], after=after)

    def _ask(self, what: str) -> None:
        self.context.jobs.ask([run.id for run in self.table.chosen() if run.status == "running"], what)

    def _kill(self) -> None:
        self.context.jobs.kill([run.id for run in self.table.chosen() if working(run)])

    def _shift(self, by: int) -> None:
        self.context.jobs.shift([run.id for run in queued_of(self.table.chosen())], by)

    def _queue_again(self) -> None:
        for run in self.table.chosen():
            if run.status in RESUMABLE:
                self.context.jobs.do(actions.requeue, run.id)

    def _end(self) -> None:
        for run in self.table.chosen():
            if self.context.jobs.unresponsive(run.id) is not None:
                self.context.jobs.end(run.id)

    def _resume(self) -> None:
        chosen = self.table.chosen()
        self.context.jobs.ask([run.id for run in chosen if run.status == "paused" or run.asked == "pause"], "")
        for run in chosen:
            if run.status in RESUMABLE:
                self.context.jobs.do(launch.start_detached, run.id)

    def _delete(self) -> None:
        runs, selection = tuple(run.id for run in self.table.chosen()), self.context.selection
        sides = {"run_a": selection.run_a, "run_b": selection.run_b}
        self.context.jobs.delete(runs, restored=partial(self._choose_again, runs, sides))

    def _show_as(self, letter: str) -> None:
        """Make the selected run A or B, swapping them if it is the other one."""
        for run in self.table.chosen()[:1]:
            setattr(self.context.selection, f"run_{letter.lower()}", run.id)

    def _open_folder(self) -> None:
        for run in self.table.chosen()[:1]:
            if not QDesktopServices.openUrl(QUrl.fromLocalFile(str(run.folder))):
                self.failed.emit(f"No program opened {run.folder}.", "Open it in your file manager.")

    # -- showing -----------------------------------------------------------------------------------------------

    def _choose_soon(self, run: int) -> None:
        self._choose_when_there = (run,)

    def _show_new(self, run: int) -> None:
        """Open this view, which the form may have been opened without, on a run that was just made and stays drawn."""
        self._set_eyes((run,), opened=True)
        self.requested.emit(ShowRuns((run,)))

    def _choose_again(self, runs: tuple[int, ...], sides: dict[str, Any]) -> None:
        self._choose_when_there, self._sides_when_there = runs, sides

    def _show_silent(self) -> None:
        self.table.runs.show_silent(self.context.jobs.silent)

    def _show_runs(self, runs: list[RunRow]) -> None:
        self.table.runs.show(runs, expected=self.context.jobs.expected())
        # A run that trains is looked at, also after its end and a restart; an eye closed by hand stays closed.
        if begun := [run.id for run in runs if working(run) and run.id not in self._eyes]:
            self._set_eyes(begun, opened=True)
        expected = self._choose_when_there
        if expected and all(self.table.runs.row_of(run) is not None for run in expected):
            self.table.choose(list(expected))
            self.context.selection.propose(**self._sides_when_there)
            self._choose_again((), {})
        self._read_values()
        self._read_last_data()
        self._show_chosen()
        if runs:
            self.show_content()
        elif not self.context.jobs.is_read:
            self.show_unknown()
        else:
            self.show_no_run_yet()

    def _read_last_data(self) -> None:
        """Read what the next New run form starts with, where there is a newer run, or the newest has begun."""
        # One may begin after a newer run was made: of a run that waits the pairs are not counted yet.
        began = sum("train_pairs" in run.facts for run in self.context.jobs.runs)
        newest = max(((run.id, began) for run in self.context.jobs.runs), default=None)
        if newest != self._newest:
            self._newest = newest
            question = actions.last_own_data, self.context.workspace
            background = self.context.background
            background.run(self, *question, done=self._take_last_data, failed=self._ask_again, urgent=True)

    def _take_last_data(self, data: dict[str, Any]) -> None:
        self._last_data = data

    def _ask_again(self, _: Exception) -> None:
        self._newest = None

    def _show_chosen(self) -> None:
        chosen = self.table.chosen()
        self.actions_of_runs.show_chosen(chosen, self.context.jobs.read_only_reason)
        self.actions_of_runs.offer_end(any(self.context.jobs.unresponsive(run.id) is not None for run in chosen))
        drawn = self._drawn_of(chosen)
        styles = self.context.jobs.styles
        self.table.runs.show_styles(styles, self._letters())
        self.table.runs.show_drawn(run.id for run in drawn.runs)
        self.curves.show_runs(drawn.runs, styles, note=drawn.note)
        inspected = sides_first(chosen, self.context.selection.runs) or list(drawn.runs[:1])
        self.log.show_file(inspected[0].folder / "log.txt" if inspected else None)
        self.tabs.setTabText(0, f"Log of {inspected[0].short_name}" if inspected else "Log")
        self.config.show_runs(inspected)
        self._count()

    def _letters(self) -> dict[int, str]:
        """Return `A` and `B` by the runs that are compared, `AB` of one that is compared with itself."""
        letters: dict[int, str] = {}
        for letter, run in zip("AB", (self.context.selection.run_a, self.context.selection.run_b), strict=True):
            if run is not None:
                letters[run] = letters.get(run, "") + letter
        return letters

    def _count(self) -> None:
        total, fitting = len(self.table.runs.runs), len(self.table.shown.fitting())
        if total and not fitting:
            self.list_area.empty(
                "search", "No run matches", f"The filter is “{self.filter.text()}”.", self._clear_filter
            )
        else:
            self.list_area.ready()
        reason, n = next(iter(self.table.shown.hidden().items()), ("", 0))
        self.hidden.setVisible(bool(reason) and (fitting > 0 or reason == "archived"))
        self.hidden.setText(HIDDEN.get(reason, "").format(n))
        text = f"{fitting} of {total} runs" if fitting != total else f"{total} run{'s' * (total != 1)}"
        selected = len(self.table.chosen())
        text = f"{selected:,} selected" if selected > 1 else text
        waiting, ends = self._queue_words()
        self.count.setText(f"{text}{waiting}")
        self.count.setToolTip(ends)

    def _show_hidden(self) -> None:
        """Undo what hides runs, or show the archived ones."""
        match next(iter(self.table.shown.hidden()), ""):
            case "filter":
                self.filter.clear()
            case "groups":
                self.table.collapse(())
            case "archived":
                self.filter.setText("is:archived")

    def _queue_words(self) -> tuple[str, str]:
        """Return how many runs wait, and when the last of them is expected to end."""
        expected = self.context.jobs.expected().values()
        if not expected:
            return "", ""
        held = " (held)" if self.context.jobs.slots.held else ""
        ends = [span.end_s for span in expected]
        known_ends = [end for end in ends if end is not None]
        is_whole = bool(known_ends) and len(known_ends) == len(ends) and not held
        return f", {len(expected)} waiting{held}", f"All done in {duration(max(known_ends))}" if is_whole else ""

    # -- parts -------------------------------------------------------------------------------------------------

    def _build(self) -> None:
        self.actions_of_runs.add_to(self.table, CONTEXT_MENU)
        self.table.without_run = [self.actions_of_runs[name] for name in ("new", "import")]
        self.addAction(self.actions_of_runs["new"])
        self.tabs = QTabWidget(objectName="runs-tabs")
        self.tabs.setDocumentMode(True)
        self.tabs.hide()  # until the right panel takes it
        for pane, label in ((self.log, "Log"), (self.config, "Config")):
            self.tabs.addTab(pane, label)
        layouts.add(self.main, *self.curves.controls)
        toolbar = RunsToolbar(self.actions_of_runs, self.arrangement.button)
        self.filter, self.count = toolbar.filter, toolbar.count
        toolbar.head.setContentsMargins(theme.INSIDE, theme.INSIDE, theme.INSIDE, theme.INSIDE)
        toolbar.foot.setContentsMargins(theme.BETWEEN, theme.SPACE, theme.INSIDE, theme.SPACE)
        why_not = self.read_only_line("Read-only: nothing can be trained here.", toolbar.new)
        why_not.setContentsMargins(theme.BETWEEN, 0, theme.INSIDE, theme.SPACE)
        self.list_area = StateArea(self.table, inset=theme.INSIDE)
        self.hidden = QPushButton(objectName="runs-hidden", clicked=self._show_hidden)
        theme.set_role(self.hidden, "link")
        self._clear_filter = QAction("Clear filter", self, triggered=self.filter.clear)
        rows = (
            toolbar.head,
            why_not,
            layouts.row(theme.INSIDE, self.hidden, layouts.STRETCH, gap=0),
            (self.list_area, 1),
            layouts.hairline(),
            toolbar.foot,
        )
        self._side = side = layouts.panel(layouts.column(*rows, gap=0))
        side.setMinimumWidth(LEAST_LIST_PX)
        self.curves.setMinimumWidth(LEAST_CURVES_PX)
        self.splitter = HairlineSplitter(Qt.Orientation.Horizontal)
        self.splitter.setObjectName("runs-splitter")
        self.splitter.addWidget(side)
        self.splitter.addWidget(self.curves)
        self.splitter.setStretchFactor(0, 0)
        self.splitter.setStretchFactor(1, 1)
        self._share()
        self.body.addWidget(self.splitter, 1)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        stacked = self.width() < STACKED_PX
        orientation = Qt.Orientation.Vertical if stacked else Qt.Orientation.Horizontal
        if not hasattr(self, "splitter"):
            return
        self._side.setMinimumHeight(self.height() if stacked else 0)
        if self.splitter.orientation() != orientation:
            self.curves.set_scrolled(not stacked)
            self.splitter.setOrientation(orientation)
            if not stacked:
                self._share()

    def _share(self) -> None:
        """Restore the width of the list and of the curves."""
        state = self.context.settings.state("runs/splitter")
        if state.isEmpty() or not self.splitter.restoreState(state):
            self.splitter.setSizes([LIST_PX, 3 * LIST_PX])

    def _keep_share(self) -> None:
        if self.splitter.orientation() == Qt.Orientation.Horizontal:
            self.context.settings.set_state("runs/splitter", self.splitter.saveState())

    def focusInEvent(self, event: QFocusEvent) -> None:
        # As a proxy of the view the list would have the keys before the filter and the button over it.
        self.table.setFocus(event.reason())

    def _connect(self) -> None:
        jobs, selection, commands = self.context.jobs, self.context.selection, self.actions_of_runs
        jobs.runs_changed.connect(self._show_runs)
        jobs.silence_changed.connect(self._show_silent)
        jobs.became_unresponsive.connect(self._show_chosen)
        jobs.look_only_changed.connect(self._show_chosen)
        selection.runs_changed.connect(self._show_chosen)
        theme.theme().follow(self._show_chosen)
        self.table.chosen_changed.connect(self._show_chosen)
        self.table.runs.rename_asked.connect(jobs.rename)
        self.table.collapsed_changed.connect(self._count)
        # Later: what Qt saves while it still shares out the widths, it refuses to restore.
        remember = QTimer(self, singleShot=True, interval=0)
        remember.timeout.connect(lambda: self.context.settings.set_state("runs/columns", self.table.save_columns()))
        header = self.table.horizontalHeader()
        for changed in (header.sectionResized, header.sectionMoved, header.sortIndicatorChanged):
            changed.connect(lambda *_: remember.start())
        self.filter.textChanged.connect(self._look_for)
        self.arrangement.changed.connect(self._read_values)
        self.curves.requested.connect(self.requested)
        self.splitter.splitterMoved.connect(self._keep_share)
        self.table.eyes_toggled.connect(self.toggle_eyes)
        self.table.activated.connect(self._inspect_row)
        self.tabs.currentChanged.connect(lambda tab: self.context.settings.set("runs/tab", tab))
        commands["new"].triggered.connect(self.open_new_run)
        commands["import"].triggered.connect(self._import)
        commands["stop"].triggered.connect(lambda: self._stop())
        commands["stop-epoch"].triggered.connect(lambda: self._stop("epoch"))
        for what in ("pause", "save", "evaluate"):
            commands[what].triggered.connect(partial(self._ask, what))
        commands["kill"].triggered.connect(self._kill)
        commands["queue-up"].triggered.connect(lambda: self._shift(-1))
        commands["queue-down"].triggered.connect(lambda: self._shift(1))
        commands["queue-again"].triggered.connect(self._queue_again)
        commands["queue-turn"].triggered.connect(self.sheets.turn)
        commands["queue-slots"].triggered.connect(self.sheets.slots)
        commands["repeat"].triggered.connect(self.sheets.repeat)
        commands["experiment"].triggered.connect(self.sheets.experiment)
        commands["branch"].triggered.connect(self.sheets.branch)
        self.table.moved.connect(jobs.move)
        commands["end"].triggered.connect(self._end)
        commands["resume"].triggered.connect(self._resume)
        commands["duplicate"].triggered.connect(self._duplicate)
        commands["decode"].triggered.connect(self._decode)
        commands["fine-tune"].triggered.connect(self._fine_tune)
        commands["mix"].triggered.connect(lambda: self.mix([run.id for run in self.table.chosen()]))
        commands["rename"].triggered.connect(self.table.rename_current)
        commands["delete"].triggered.connect(self._delete)
        commands["show-a"].triggered.connect(lambda: self._show_as("A"))
        commands["show-b"].triggered.connect(lambda: self._show_as("B"))
        commands["inspect"].triggered.connect(lambda: self.inspect(not self._inspects))
        commands["folder"].triggered.connect(self._open_folder)
        commands["tag"].triggered.connect(self.sheets.tags)
        commands["note"].triggered.connect(self.sheets.note)
        commands["archive"].triggered.connect(self._archive)

    def _restore(self) -> None:
        settings = self.context.settings
        self._eyes = _eyes(settings.value("runs/eyes", {}))
        columns = settings.state("runs/columns")  # a column that comes gives others other widths, which are kept
        self.arrangement.restore()
        self.table.restore_columns(columns)
        tab = settings.value("runs/tab", 0)
        self.tabs.setCurrentIndex(tab if isinstance(tab, int) and 0 <= tab < self.tabs.count() else 0)


def _eyes(stored: object) -> dict[int, bool]:
    pairs = stored.items() if isinstance(stored, dict) else ()
    return {int(run): bool(is_open) for run, is_open in pairs if str(run).isdecimal()}
