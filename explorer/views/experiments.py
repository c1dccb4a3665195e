"""Home: the experiment that runs or was the last, its verdict first; without one, the ways to begin."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from PySide6.QtGui import QAction
from PySide6.QtWidgets import QFileDialog, QMenu, QProgressBar, QPushButton, QWidget

from explorer import theme
from explorer.intents import ShowExperiment, ViewIntent
from explorer.run_control import actions
from explorer.views.chart_view import ChartView
from explorer.views.first_start import FirstStart
from explorer.widgets import layouts
from explorer.widgets.finder import Choice
from explorer.widgets.progress_row import show_share
from explorer.widgets.searchable_combo_box import SearchableComboBox
from explorer.widgets.state_area import reason_words
from trainer.config import ConfigError
from trainer.scheduling import experiments
from trainer.store import RunRow, Workspace

if TYPE_CHECKING:
    from trainer.experiments.counted import RunGroup
    from trainer.store.experiments import ExperimentRow

FIRST: Final = "CLIP + CLOOB, 3 to 5 seeds"
PROGRESS_PX: Final = 280


@dataclass(frozen=True)
class ExperimentEntry:
    """An experiment as the view lists it.

    Attributes:
        progress: Where it stands, and which runs do not count.
        headline: Its verdict in a line.
        seeds_left: Of its budget, while nothing is decided; None where the budget has no end.
        minutes: That a seed of all arms takes; NaN where none has ended.
        training: Ids of its runs that train now.
        planned: Number of runs until the verdict is looked at next.
        measured: What was measured of its runs so far, which its learning curves show.
    """

    name: str
    state: str
    progress: str
    headline: str = ""
    seeds_left: int | None = 0
    minutes: float = math.nan
    training: tuple[int, ...] = ()
    planned: int = 0
    measured: tuple[object, ...] = ()

    @property
    def go_text(self) -> str:
        """What the button does that lets it train."""
        if self.state == "new":
            return "Run"
        if self.seeds_left is None:
            return "Add seeds"
        if not self.seeds_left:
            return "Continue"
        takes = self.seeds_left * self.minutes
        about = "" if math.isnan(takes) else f", about {max(1, round(takes))} min"
        return f"Add {self.seeds_left} seed{'s' * (self.seeds_left != 1)}{about}"


def listed(
    workspace: Workspace, judged: dict[str, tuple[object, ExperimentEntry]] | None = None
) -> tuple[ExperimentEntry, ...]:
    """Return all experiments, newest first. For a thread.

    Args:
        workspace: Where they are.
        judged: What was found before, by name: an experiment whose runs have not changed since is not judged again.
    """
    judged = {} if judged is None else judged
    evaluated, entries = workspace.results.evaluation_states(), []
    for row in reversed(workspace.experiments.all()):
        runs = workspace.runs.of_experiment(row.name)
        state = (row, [(*_counted(run), evaluated.get(run.id)) for run in runs])
        cached = judged.get(row.name)
        if cached is None or cached[0] != state:
            measured = tuple(evaluated.get(run.id) for run in runs)
            cached = judged[row.name] = (state, replace(_judged(workspace, row), measured=measured))
        entries.append(cached[1])
    return tuple(entries)


def _counted(run: RunRow) -> tuple[object, ...]:
    """Return what a verdict reads of a run: a run that trains has another step every second, and counts at its end."""
    ended = run.step if run.status == "finished" else None
    return run.id, run.arm, run.status, run.reason, ended, run.deleted_at, run.device


def _judged(workspace: Workspace, row: ExperimentRow) -> ExperimentEntry:
    from trainer.analysis.repeated_intervals import OPEN
    from trainer.experiments.counted import counted_line
    from trainer.experiments.verdict import judge
    from trainer.scheduling.experiments import planned_seeds, progress

    try:
        verdict = judge(workspace, row.name)
    except ConfigError as error:
        return ExperimentEntry(row.name, row.state, str(error))
    experiment, rows = verdict.experiment, [outcome.run for outcome in verdict.runs]
    left = None if experiment.most_seeds == OPEN else max(0, experiment.most_seeds - len(verdict.seeds))
    took = [row.duration_s for row in rows if row.status == "finished" and row.duration_s]
    minutes = len(experiment.arms) * sum(took) / len(took) / 60 if took else math.nan
    return ExperimentEntry(
        row.name,
        row.state,
        ". ".join(filter(None, (progress(row, experiment, verdict), counted_line(map(_ended, verdict.groups))))),
        verdict.headline,
        0 if verdict.decided else left,
        minutes,
        tuple(row.id for row in rows if row.active and row.status != "queued"),
        len(experiment.arms) * planned_seeds(experiment, verdict),
    )


def _ended(group: RunGroup) -> RunGroup:
    """Return the group without the runs that wait or train: of these the progress tells."""
    return replace(group, members=tuple(member for member in group.members if not member.run.active))


def import_definition(workspace: Workspace, file: str) -> str:
    """Store the definition in a file and return its name. For a thread.

    Raises:
        ConfigError: The file defines no experiment.
        StoreError: Another experiment has its name.
    """
    from trainer.experiments.experiment import read, to_toml

    experiment = read(Path(file))
    return workspace.experiments.add(experiment.name, to_toml(experiment)).name


class ExperimentsView(ChartView):
    """One experiment at a time: its verdict, its runs, its curves; the first start where there is none."""

    title = "Home"
    question = "Which variant is better, and is it decided?"
    icon = "house"
    compares = False
    name = "experiments"
    exports = (
        ("html", "Verdict as one page (HTML)"),
        ("md", "Verdict as Markdown"),
        ("tex", "Verdict as LaTeX"),
        ("toml", "Definition as TOML"),
        *ChartView.exports,
    )

    def build(self) -> Iterator[None]:
        yield from super().build()
        self._shown: tuple[ExperimentEntry, ...] | None = None
        self._judged: dict[str, tuple[object, ExperimentEntry]] = {}
        self._changes: int | None = None
        self._wanted = ""
        self.repeat = QAction(f"{FIRST}, on this data", self, objectName="experiments-repeat")
        self.repeat.setToolTip(
            "Trains both with the data and settings of run A, or on Scenes, until decided (up to 5 seeds)"
        )
        self.repeat.triggered.connect(self.start_first)
        self.picker = SearchableComboBox(name="experiments-picker", label="Experiment", width=260)
        self.go = QPushButton("Run", objectName="experiments-go")
        theme.set_role(self.go, "primary")
        self.stop = QAction("Stop after this run", self, objectName="experiments-stop")
        self.stop.setToolTip("No run starts after the current ones")
        self.stop_now = QAction("Stop now", self, objectName="experiments-stop-now")
        self.stop_now.setToolTip("Also stops the current runs; each keeps its last checkpoint")
        self.stop_menu = QPushButton("Stop", objectName="experiments-stop-menu")
        self.stop_menu.setMenu(_menu_of(self.stop_menu, self.stop, self.stop_now))
        self.share, self.left = QProgressBar(accessibleName="Progress of the experiment"), layouts.text(role="small")
        self.share.setFixedWidth(PROGRESS_PX)
        self.progress = layouts.text(role="secondary", name="experiments-progress", wrap=True)
        self.verdict = layouts.text(role="headline", name="experiments-verdict", wrap=True)
        layouts.add(
            self.above,
            layouts.row((self.verdict, 1), self.go, self.stop_menu),
            layouts.row((self.progress, 1), self.share, self.left),
        )
        self.main.insertWidget(0, self.picker)
        self.bring = QAction("Import a definition…", self, objectName="experiments-import")
        self.bring.setToolTip("Store the experiment of a TOML file; nothing starts until you press Run")
        self.bring.triggered.connect(self._ask_for_file)
        self.picker.picked.connect(self.choose)
        self.go.clicked.connect(lambda: self._change_state(experiments.start))
        self.stop.triggered.connect(lambda: self._change_state(experiments.stop))
        self.stop_now.triggered.connect(self._stop_now)
        self.context.jobs.runs_changed.connect(self._runs_changed)
        self._show_parts(any_experiment=False)

    @cached_property
    def first_start(self) -> FirstStart:
        """The ways to begin, read and laid out only where there is no experiment."""
        page = FirstStart()
        page.requested.connect(self.requested)
        page.tried.connect(self.try_on_scenes)
        return page

    def actions_for_palette(self) -> list[QAction]:
        return [*super().actions_for_palette(), self.repeat, self.bring, self.look, self.stop, self.stop_now]

    @property
    def chosen(self) -> ExperimentEntry | None:
        """The experiment that is shown."""
        return next((entry for entry in self._shown or () if entry.name == self.picker.key), None)

    def choose(self, name: str) -> None:
        """Show this experiment."""
        self._wanted = name
        self._show_list(self._shown or ())

    def carry_out(self, intent: ViewIntent) -> None:
        match intent:
            case ShowExperiment(name):
                self.choose(name)
            case _:
                super().carry_out(intent)

    def try_on_scenes(self) -> None:
        """Make and start the experiment of the first button, which promises drawn scenes whatever run A learned."""
        self.context.jobs.do(actions.start_clip_and_cloob, None, done=self._started)

    def start_first(self) -> None:
        """Make and start the same experiment on the data of run A, or on Scenes."""
        runs = self.context.selection.runs
        self.context.jobs.do(actions.start_clip_and_cloob, runs[0] if runs else None, done=self._started)

    def import_file(self, file: str) -> None:
        """Store the definition in a TOML file and show it; nothing starts."""
        self.context.background.run(
            self, import_definition, self.context.workspace, file, done=self._started, failed=self._not_imported
        )

    def _ask_for_file(self) -> None:
        dialog = QFileDialog(self, "Import an experiment", "", "Experiments (*.toml)")
        dialog.setObjectName("experiments-import-dialog")
        dialog.setFileMode(QFileDialog.FileMode.ExistingFile)
        dialog.fileSelected.connect(self.import_file)
        dialog.finished.connect(dialog.deleteLater)
        dialog.open()

    def _not_imported(self, failure: Exception) -> None:
        self.failed.emit("The experiment was not imported.", reason_words(failure))

    def command_for(self, suffix: str) -> list[str] | None:
        if self.chosen is None:
            return None
        # The page and the definition are of the experiment, whichever chart of it is open.
        verdict = ["experiment", "verdict", self.chosen.name]
        return verdict if suffix in ("html", "md", "tex", "toml") else self.command()

    def settings_now(self) -> Any:
        return replace(super().settings_now(), experiment=self.picker.key or "")

    def refresh(self) -> None:
        self._read_list()
        if self._shown:
            super().refresh()

    def _read_list(self) -> None:
        self.context.background.run(
            self,
            listed,
            self.context.workspace,
            self._judged,
            done=self._show_list,
            failed=self._list_failed,
            key="experiments",
        )

    def _list_failed(self, failure: Exception) -> None:
        self.area.failed("Could not read the experiments", failure, retry=self.refresh)

    def _show_list(self, entries: tuple[ExperimentEntry, ...]) -> None:
        changed, began, self._shown = entries != self._shown, bool(entries) != bool(self._shown), entries
        if began:
            self._show_parts(any_experiment=bool(entries))
        if not entries:
            self.area.empty_page(self.first_start)
            return
        key = self._wanted if any(entry.name == self._wanted for entry in entries) else entries[0].name
        self.picker.show_choices(tuple(Choice(entry.name, entry.name) for entry in entries), key)
        entry = self.chosen
        if entry is not None:
            self.verdict.setText(entry.headline)
            self.verdict.setVisible(bool(entry.headline))
            self.progress.setText(f"{entry.progress[:1].upper()}{entry.progress[1:].removesuffix('.')}.")
            self._show_buttons(entry)
            self._show_share()
        if changed:
            self.pane.forget()
        if self.isVisible():
            super().refresh()

    def _show_buttons(self, entry: ExperimentEntry) -> None:
        self.go.setText(entry.go_text)
        self.go.setEnabled(entry.state in ("new", "stopped"))
        self.go.setVisible(self.go.isEnabled())
        self.stop.setEnabled(entry.state == "going")
        self.stop_now.setEnabled(bool(entry.training))
        self.stop_menu.setVisible(self.stop.isEnabled() or self.stop_now.isEnabled())

    def _show_parts(self, *, any_experiment: bool) -> None:
        """Show the controls of an experiment, which the ways to begin do not need."""
        self.picker.setVisible(any_experiment)
        if self.chart_menu is not None:
            self.chart_menu.setVisible(any_experiment and self.chart_menu.is_needed)
        self.stop.setEnabled(self.stop.isEnabled() and any_experiment)
        self.stop_now.setEnabled(self.stop_now.isEnabled() and any_experiment)
        self.controls_changed.emit()

    @property
    def offers_charts(self) -> bool:
        return bool(self._shown) and super().offers_charts

    def _show_share(self) -> None:
        """Show how much of what is planned is trained, and how many minutes are left where that is known."""
        entry = self.chosen
        going = entry is not None and entry.state == "going" and entry.planned > 0
        rows = [run for run in self.context.jobs.runs if entry is not None and run.experiment == entry.name]
        self.share.setVisible(going and bool(rows))
        self.left.setVisible(going and bool(rows))
        if entry is None or not going:
            return
        trained = sum(1.0 if run.status == "finished" else run.step / max(1, run.total_steps) for run in rows)
        show_share(self.share, min(1.0, trained / entry.planned))
        expected = self.context.jobs.expected()
        ends = [expected[run.id].end_s if run.id in expected else run.eta_s for run in rows if run.active]
        known_ends = [end for end in ends if end is not None]
        is_known = bool(known_ends) and len(known_ends) == len(ends)
        self.left.setText(f"about {max(1, round(max(known_ends) / 60))} min left" if is_known else "")

    def _stop_now(self) -> None:
        if (entry := self.chosen) is not None:
            self._change_state(experiments.stop)
            self.context.jobs.stop(entry.training)

    def _change_state(self, change: Callable[[Workspace, str], object]) -> None:
        if self.chosen is not None:
            self.context.jobs.do(change, self.chosen.name)

    def _started(self, name: str) -> None:
        self._wanted = name
        self.refresh_if_seen()

    def _runs_changed(self, _runs: Any = None) -> None:
        if self.isVisible():
            self._show_share()
            self._read_list()


def _menu_of(parent: QWidget, *actions: QAction) -> QMenu:
    menu = QMenu(parent)
    menu.setToolTipsVisible(True)
    menu.addActions(actions)
    return menu
