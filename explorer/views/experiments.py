"""Home: the experiment that runs or was the last, its verdict first; without one, the ways to begin."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from PySide6.QtCore import QTimer
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QFileDialog, QProgressBar, QPushButton, QSizePolicy, QWidget

from explorer import theme
from explorer.intents import (
    AddSeeds,
    ChooseModel,
    CompareBoth,
    EvaluateBoth,
    Intent,
    OpenImport,
    OpenSample,
    OpenVectors,
    ShowExperiment,
    ShowRuns,
    TrainBoth,
    TrainLonger,
    ViewIntent,
    WatchTraining,
)
from explorer.run_control import actions
from explorer.views.chart_view import ChartView
from explorer.views.first_start import LOOK, SCENES, FirstStart
from explorer.views.read_only import guarded
from explorer.views.seed_rows import SeedGap, SeedRows, SeedRun
from explorer.widgets import layouts
from explorer.widgets.finder import Choice
from explorer.widgets.flow_row import FlowRow
from explorer.widgets.progress_row import show_share
from explorer.widgets.refusal import set_refusal
from explorer.widgets.searchable_combo_box import SearchableComboBox
from explorer.widgets.sheet import Sheet
from explorer.widgets.window_menu import WindowMenu
from trainer.analysis.quantities import about as about_time
from trainer.analysis.quantities import steps_of, time_left
from trainer.config import ConfigError
from trainer.distribution.published_models import FIRST as FIRST_MODEL
from trainer.errors import reason_words
from trainer.scheduling import experiments
from trainer.store import RunRow, Workspace

if TYPE_CHECKING:
    from PySide6.QtWidgets import QFrame

    from explorer.views.last_runs_card import LastRunsCard, TrainingCard, TrainingNow
    from trainer.experiments.counted import RunGroup
    from trainer.experiments.last_runs import LastRuns
    from trainer.experiments.verdict import ExperimentVerdict
    from trainer.store.experiments import ExperimentRow

FIRST: Final = "CLIP + CLOOB, 3 to 5 seeds"
PROGRESS_PX: Final = 280
PROGRESS_TEXT_PX: Final = 200
PICKER_PX, SHORT_PICKER_PX = 260, 120
AGAIN_MS: Final = 2_000
"""After its last run an experiment is read again until it has ended, which no news of a run tells."""


class Remedy(NamedTuple):
    """A button that helps where more seeds do not."""

    text: str
    hint: str
    intent: Intent


@dataclass(frozen=True)
class ExperimentEntry:
    """An experiment as the view lists it."""

    name: str
    state: str
    progress: str  # Where it stands, and which runs do not count; while it waits to start, without what it waits for.
    headline: str = ""  # Its verdict in a line; while it stops, that it does.
    seeds_left: int | None = 0  # Of its budget, while nothing is decided; None where the budget has no end.
    minutes: float = math.nan  # That a seed of all arms takes; NaN where none has ended.
    training: tuple[int, ...] = ()  # Ids of its runs that train now.
    waits: bool = False  # Whether its next run is in the queue, and none trains.
    planned: int = 0  # Number of runs until the verdict is looked at next.
    measured: tuple[object, ...] = ()  # What was measured of its runs so far, which its learning curves show.
    seeds: tuple[SeedRun, ...] = ()  # Its runs by arm and seed.
    gaps: tuple[SeedGap, ...] = ()  # By seed how much better the second of two arms is, where both were measured last.
    unfinished: int = 0  # Number of its runs that were stopped or interrupted.
    extension: int = 0  # Seeds that it lacks for a verdict at the end of its budget; 0 where none can be added.
    repeat: int = 0  # Seeds of a new experiment that repeats it, where none can be added and there is no winner.
    remedy: Remedy | None = None  # Where more seeds cannot decide: its runs, or its data, must change.
    # Its runs at the time of all this; those that train are at another step at every reading.
    rows: tuple[RunRow, ...] = field(default=(), compare=False)

    @property
    def may_go(self) -> bool:
        """Whether there is anything left to train that can still count, and nothing trains."""
        if self.state == "ended":
            return bool(self.extension or self.repeat or self.unfinished)
        return self.state == "new" or (self.state == "stopped" and not self.training)

    @property
    def compared(self) -> tuple[SeedRun, ...]:
        """Of the first two arms, finished runs of the seed nearest to the mean difference; none before there is one.

        A seed of which no run collapsed or diverged comes before one of which a run did.
        """
        from trainer.alerts import ENDED_WORDS

        finished = {row.id for row in self.rows if row.status == "finished" and row.deleted_at is None}
        flawed = {row.id for row in self.rows if ENDED_WORDS.keys() & row.alerts}
        flawed_seeds = {each.seed for each in self.seeds if each.run in flawed}
        arms = list(dict.fromkeys(each.arm for each in self.seeds))[:2]
        mean = sum(each.gap for each in self.gaps) / max(1, len(self.gaps))
        far = {each.seed: round(abs(each.gap - mean), 6) for each in self.gaps}
        order = [(seed in flawed_seeds, far.get(seed, math.inf), seed) for seed in {each.seed for each in self.seeds}]
        for _, _, seed in sorted(order):
            pair = tuple(each for each in self.seeds if each.seed == seed and each.run in finished)
            if len(arms) == 2 and [each.arm for each in pair][:2] == arms:
                return pair[:2]
        return ()

    @property
    def go_text(self) -> str:
        """What the button does that lets it train."""
        if self.state == "new":
            return "Run"
        if self.unfinished:
            return f"Resume {self.unfinished} run{'s' * (self.unfinished != 1)}"
        if self.seeds_left is None:
            return "Add seeds"
        seeds = self.extension or self.repeat or self.seeds_left
        if not seeds:
            return "Continue"
        return f"{'Repeat with' if self.repeat else 'Add'} {seeds} seed{'s' * (seeds != 1)}{self._time_of(seeds)}"

    @property
    def decide_text(self) -> str:
        """What the button does that lets an experiment of one seed add seeds until it is decided."""
        most = experiments.SEEDS_TO_DECIDE
        return f"Decide it: up to {most} seeds{self._time_of(most - 1, 'at most ')}"

    def _time_of(self, seeds: int, how: str = "about ") -> str:
        return "" if math.isnan(self.minutes) else f", {how}{about_time(60 * seeds * self.minutes)}"


def listed(
    workspace: Workspace, judged: dict[str, tuple[object, ExperimentEntry]] | None = None
) -> tuple[ExperimentEntry, ...]:
    """Return all experiments, newest first. For a thread.

    Args:
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
        else:
            entries.append(replace(cached[1], rows=tuple(runs)))
    return tuple(entries)


def read_home(
    workspace: Workspace, judged: dict[str, tuple[object, ExperimentEntry]]
) -> tuple[tuple[ExperimentEntry, ...], bool]:
    """Return all experiments as `listed`, and whether there is any run. For a thread."""
    return listed(workspace, judged), bool(workspace.runs.all())


def read_last(workspace: Workspace) -> LastRuns | None:
    """Return what to say of the last finished runs outside of experiments. For a thread."""
    from trainer.experiments.last_runs import last_runs

    return last_runs(workspace)


def _counted(run: RunRow) -> tuple[object, ...]:
    """Return what a verdict reads of a run: a run that trains has another step every second, and counts at its end.

    What it measured last is part of it: the differences beside it are of that step.
    """
    ended = run.step if run.status == "finished" else None
    return run.id, run.arm, run.status, run.asked, run.reason, ended, run.last, run.deleted_at, run.device


def _judged(workspace: Workspace, row: ExperimentRow) -> ExperimentEntry:
    from trainer.analysis.repeated_intervals import OPEN
    from trainer.experiments.counted import counted_line
    from trainer.experiments.held_out import next_step, too_few, too_few_of
    from trainer.experiments.verdict import judge
    from trainer.scheduling.experiments import (
        MORE_SEEDS,
        is_spent,
        is_stopping,
        is_waiting,
        missing_seeds,
        planned_seeds,
        progress,
        seeds_by_arm,
    )

    try:
        verdict = judge(workspace, row.name)
    except ConfigError as error:
        return ExperimentEntry(row.name, row.state, str(error))
    experiment, rows = verdict.experiment, [outcome.run for outcome in verdict.runs]
    left = None if experiment.most_seeds == OPEN else max(0, experiment.most_seeds - len(verdict.seeds))
    took = [row.duration_s for row in rows if row.status == "finished" and row.duration_s]
    minutes = len(experiment.arms) * sum(took) / len(took) / 60 if took else math.nan
    few = too_few_of(rows)
    if few is not None:
        left = 0
    headline, stands = verdict.headline if few is None else too_few(few), progress(row, experiment, verdict)
    if is_stopping(row, verdict):
        headline, stands = f"{stands[:1].upper()}{stands[1:]}", headline
    waits = is_waiting(row, verdict)
    if waits:
        stands = seeds_by_arm(experiment, verdict)
    may_repeat = few is None and verdict.longer is None  # what was too short is not repeated as it is
    parts = (
        stands,
        counted_line(map(_ended, verdict.groups)),
        verdict.points if few is None and verdict.no_comparison else "",
        next_step(few) if few is not None else verdict.advice,
    )
    return ExperimentEntry(
        row.name,
        row.state,
        ". ".join(part.removesuffix(".") for part in parts if part),
        headline,
        0 if verdict.decided else left,
        minutes,
        tuple(row.id for row in rows if row.active and row.status != "queued"),
        waits,
        len(experiment.arms) * planned_seeds(experiment, verdict),
        seeds=tuple(SeedRun(group.name, each.seed, each.run.id) for group in verdict.groups for each in group.members),
        gaps=seed_gaps(workspace, verdict),
        unfinished=sum(run.status in ("stopped", "interrupted") and run.deleted_at is None for run in rows),
        extension=missing_seeds(experiment) if row.state == "ended" and verdict.is_measured and few is None else 0,
        repeat=experiment.most_seeds + MORE_SEEDS if may_repeat and is_spent(row, experiment, verdict) else 0,
        rows=tuple(rows),
        remedy=_remedy(verdict),
    )


def _remedy(verdict: ExperimentVerdict) -> Remedy | None:
    """Return what helps where more seeds do not: a longer training, or more held-out pairs of its files."""
    if (longer := verdict.longer) is not None:
        return Remedy(longer.button, longer.text, TrainLonger(longer.run))
    path = getattr(verdict.experiment.control.run.data, "path", "")
    if not (path and verdict.advice and verdict.samples):
        return None
    more_pairs = verdict.samples, math.ceil(1 / verdict.experiment.margin)
    return Remedy("Hold out more pairs…", verdict.advice, OpenImport(path, compare=True, more_pairs=more_pairs))


def seed_gaps(workspace: Workspace, verdict: ExperimentVerdict) -> tuple[SeedGap, ...]:
    """Return of two arms the difference at the last step at which both runs of a seed were measured."""
    import numpy as np

    from trainer.store.number_series import number_series

    experiment, gaps = verdict.experiment, []
    if len(experiment.arms) != 2:
        return ()
    arms = [arm.name for arm in experiment.arms]
    members = {(group.name, each.seed): each.run.id for group in verdict.groups for each in group.members}
    for seed in sorted({seed for _, seed in members}):
        pair = [members.get((arm, seed)) for arm in arms]
        series = [number_series(workspace, run, f"val/{experiment.outcome.metric}") for run in pair if run is not None]
        if len(series) < 2:
            continue
        _, first, second = np.intersect1d(series[0].steps, series[1].steps, return_indices=True)
        if len(first) and series[0].steps[first[-1]] > 0:  # untrained models differ by chance
            gap = float(series[1].values[second[-1]] - series[0].values[first[-1]])
            gaps.append(SeedGap(seed, int(series[0].steps[first[-1]]), gap, f"val/{experiment.outcome.metric}"))
    return tuple(gaps)


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


def waiting_text(entry: ExperimentEntry, runs: Sequence[RunRow], *, held: bool) -> str:
    """Return what an experiment waits for whose next run is in the queue; empty where one trains, or none waits.

    Args:
        runs: All of the workspace.
        held: Whether the queue starts nothing.
    """
    if not entry.waits:
        return ""
    others = (run for run in runs if run.experiment != entry.name and not run.is_watched)
    trains = [run for run in others if run.active and run.status != "queued"]
    if held or not trains:
        return "Waits until the queue is released" if held else "Starts in a moment"
    first, more = trains[0], len(trains) - 1
    and_more = f" and {more} more, which train" if more else ", which trains"
    return f"Waits for {first.short_name}{and_more}: step {steps_of(first.step, first.total_steps)}"


class ExperimentsView(ChartView):
    """One experiment at a time: its verdict, its runs, its curves; the first start where there is none."""

    title = "Home"
    question = "Which variant is better, and is it decided?"
    icon = "house"
    shows_pairs = False
    name = "experiments"
    exports = (
        ("html", "Verdict report as one page (HTML)"),
        ("md", "Verdict as Markdown"),
        ("tex", "Verdict as LaTeX"),
        ("toml", "Definition as TOML"),
        *ChartView.exports,
    )

    def build(self) -> Iterator[None]:
        yield from super().build()
        self._shown: tuple[ExperimentEntry, ...] | None = None
        self._judged: dict[str, tuple[object, ExperimentEntry]] = {}
        self._finished: list[tuple[int, str, float | None]] = []
        self._result: QFrame | None = None  # What stands for the finished runs; None before they are read.
        self._wanted = ""
        self._again = QTimer(self, singleShot=True, interval=AGAIN_MS, timeout=self._runs_changed)
        self.repeat = QAction(f"{FIRST}, on the data of run A", self, objectName="experiments-repeat")
        self.repeat.setToolTip(
            "Trains both with the data and settings of run A, or on Scenes, until decided (up to 5 seeds)"
        )
        self.repeat.triggered.connect(self.start_first)
        self.picker = SearchableComboBox(name="experiments-picker", label="Experiment", width=PICKER_PX)
        self.go = QPushButton("Run", objectName="experiments-go")
        theme.set_role(self.go, "primary")
        self.decide = QPushButton(objectName="experiments-decide")
        theme.set_role(self.decide, "primary")
        self.stop = QAction("Stop after this run", self, objectName="experiments-stop")
        self.stop.setToolTip("No run starts after the current ones")
        self.stop_now = QAction("Stop now", self, objectName="experiments-stop-now")
        self.stop_now.setToolTip("Also stops the current runs; each keeps its last checkpoint")
        self.stop_menu = QPushButton("Stop", objectName="experiments-stop-menu")
        self.stop_menu.setMenu(WindowMenu(self.stop_menu, (self.stop, self.stop_now)))
        self.share, self.left = QProgressBar(accessibleName="Progress of the experiment"), layouts.text(role="small")
        self.share.setFixedWidth(PROGRESS_PX)
        self.seeds = SeedRows()
        self.compare = QPushButton(objectName="experiments-compare", clicked=self._compare)
        self.runs = QPushButton(objectName="experiments-runs", toolTip="Selects them in Runs", clicked=self._show_runs)
        self.remedy = QPushButton(objectName="experiments-remedy", clicked=self._ask_remedy)
        self.progress = layouts.text(role="secondary", name="experiments-progress", wrap=True)
        self.verdict = layouts.text(role="headline", name="experiments-verdict", wrap=True)
        self.progress.setMinimumWidth(PROGRESS_TEXT_PX)
        next_steps = FlowRow()
        next_steps.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)
        for part in (self.share, self.left, self.remedy, self.runs, self.compare):
            next_steps.add(part)
        layouts.add(
            self.above,
            layouts.row((self.verdict, 1), self.go, self.decide, self.stop_menu),
            layouts.row((self.progress, 1), next_steps),
            self.seeds,
        )
        self.body.addWidget(self._ways_in())
        self.main.insertWidget(0, self.picker)
        self.bring = QAction("Import a definition…", self, objectName="experiments-import")
        self.bring.setToolTip("Store the experiment of a TOML file; nothing starts until you press Run")
        self.bring.triggered.connect(self._ask_for_file)
        for action in (self.repeat, self.bring):
            guarded(self.context.jobs, action)
        self.context.jobs.look_only_changed.connect(lambda _why: self.show_buttons(self.chosen))
        self.picker.picked.connect(self.choose)
        self.go.clicked.connect(self._go)
        self.decide.clicked.connect(
            lambda: self._change_state(partial(experiments.extend, most=experiments.SEEDS_TO_DECIDE))
        )
        self.stop.triggered.connect(lambda: self._change_state(experiments.stop))
        self.stop_now.triggered.connect(self._stop_now)
        self.context.jobs.runs_changed.connect(self._runs_changed)
        self._show_parts(any_experiment=False)

    def shorten(self, on: bool) -> None:
        self.picker.setMinimumWidth(SHORT_PICKER_PX if on else PICKER_PX)
        self.main.activate()  # the bar measures it at once

    def focusNextPrevChild(self, forward: bool) -> bool:
        layouts.tab_as_laid_out(self)
        return super().focusNextPrevChild(forward)

    def _ways_in(self) -> QWidget:
        """Return what the first start offers as well, in one line."""
        ways: dict[str, Intent] = {
            "Use my pairs…": OpenImport(compare=True),
            "Open a pretrained model…": ChooseModel(FIRST_MODEL.specification),
            "Watch a training…": WatchTraining(),
            "Open vectors…": OpenVectors(),
            LOOK: OpenSample(),
        }
        does = {text: partial(self.requested.emit, intent) for text, intent in ways.items()}
        flow = FlowRow()
        for text, act in (does | {SCENES: self.try_on_scenes}).items():
            link = QPushButton(text, objectName="experiments-way")
            theme.set_role(link, "link")
            link.clicked.connect(lambda _=False, act=act: act())
            flow.add(link, gap=theme.BETWEEN)
            if text == SCENES:
                guarded(self.context.jobs, link)
        return flow

    @cached_property
    def first_start(self) -> FirstStart:
        """The ways to begin, read and laid out only where there is no experiment."""
        page = FirstStart()
        page.requested.connect(self.requested)
        page.tried.connect(self.try_on_scenes)
        guarded(self.context.jobs, page.ways["scenes"])
        return page

    @cached_property
    def training_now(self) -> TrainingNow:
        """What trains, above the ways to begin; made with the first run."""
        from explorer.views.last_runs_card import TrainingNow

        self.first_start.show_training(made := TrainingNow())
        made.followed.connect(lambda run: self.requested.emit(ShowRuns((run,))))
        return made

    @cached_property
    def training_card(self) -> TrainingCard:
        """What trains, in place of the sample's result; made with the first run where none has finished."""
        from explorer.views.last_runs_card import TrainingCard

        made = TrainingCard(self.context)
        made.now.followed.connect(lambda run: self.requested.emit(ShowRuns((run,))))
        return made

    @cached_property
    def last_runs(self) -> LastRunsCard:
        """The last finished runs, in place of those of the sample; made with the first that finishes."""
        from explorer.views.last_runs_card import LastRunsCard

        made = LastRunsCard(self.context)
        made.repeated.connect(self.add_seeds)
        made.evaluated.connect(self.evaluate_both)
        return made

    def add_seeds(self, runs: Sequence[int]) -> None:
        """Train the settings of two runs with further seeds, or CLIP and CLOOB on the data of one."""
        make = actions.start_clip_and_cloob if len(runs) == 1 else actions.start_pair
        self.context.jobs.do(make, *runs, done=self._started)

    def _confirm_seeds(self, runs: Sequence[int]) -> None:
        """Say what further seeds of these runs cost before any is trained: a link elsewhere has asked for them."""
        rows = [row for run in runs if (row := self.context.jobs.run(run)) is not None]
        names, seconds = " and ".join(row.short_name for row in rows), sum(row.duration_s or 0.0 for row in rows)
        time = f" If each takes as long as these did, 3 seeds take {about_time(3 * seconds)}." if seconds else ""
        sheet = Sheet("Add seeds", "Start", self)
        sheet.show_message(
            f"Trains the settings of {names} with 3 to 5 further seeds each, until it is decided.{time} An experiment "
            f"counts its own runs alone, so {names} stay as they are."
        )
        sheet.accepted.connect(lambda: self.add_seeds(runs))
        sheet.open()

    def evaluate_both(self, runs: Sequence[int]) -> None:
        """Choose these two runs and open Evaluate, which offers data to measure both on."""
        self.context.selection.select_runs(*runs)
        self.requested.emit(EvaluateBoth())

    def _show_single_runs(self) -> None:
        """Show runs outside of experiments: what finished last, and what trains, with its curves until one has."""
        runs, start = self.context.jobs.runs, self.first_start
        active = [run for run in runs if run.active or run.status == "queued"]
        finished = [(run.id, run.label, run.last) for run in runs if run.status == "finished"]
        if finished:
            self.training_now.show_runs(active, self.context.jobs.ends())
            start.show_primary(self.training_now.curves if active else self.last_runs.more)
        elif active:
            self.training_card.show_runs(active, self.context.jobs.ends())
            start.show_primary(self.training_card.now.curves)
        # Before they are read the card is empty: the sample's result would be taken for theirs.
        of_ended = (self._result or self.last_runs) if finished else start.card
        result = self.training_card if active and not finished else of_ended
        if result is not None:
            start.show_result(result)
        if finished and finished != self._finished:
            self._finished = finished
            self.context.background.run(
                self, read_last, self.context.workspace, done=self._show_last, failed=self._list_failed, key="last"
            )

    def _show_last(self, last: LastRuns | None) -> None:
        if last is not None:
            self.last_runs.show_runs(last)
        self._result = self.last_runs if last is not None else self.first_start.card
        self._show_single_runs()

    def actions_for_palette(self) -> list[QAction]:
        return [*super().actions_for_palette(), self.repeat, self.bring, self.stop, self.stop_now]

    @property
    def chosen(self) -> ExperimentEntry | None:
        return next((entry for entry in self._shown or () if entry.name == self.picker.key), None)

    def choose(self, name: str) -> None:
        """Show this experiment."""
        self._wanted = name
        self._show_list(self._shown or ())

    def carry_out(self, intent: ViewIntent) -> None:
        match intent:
            case ShowExperiment(name):
                self.choose(name)
            case TrainBoth(run, seeds):
                self.context.jobs.do(actions.start_clip_and_cloob, run, seeds, done=self._started)
            case AddSeeds(runs):
                self._confirm_seeds(runs)
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

    def runs_of_bundle(self) -> tuple[int, ...]:
        entry = self.chosen
        finished = (
            [row.id for row in entry.rows if row.status == "finished" and row.deleted_at is None] if entry else []
        )
        return tuple(dict.fromkeys([*(each.run for each in entry.compared), *finished])) if entry else ()

    def settings_now(self) -> Any:
        return replace(super().settings_now(), experiment=self.picker.key or "")

    def refresh(self) -> None:
        self._read_list()
        if self._shown:
            super().refresh()

    def _read_list(self) -> None:
        self.context.background.run(
            self,
            read_home,
            self.context.workspace,
            self._judged,
            done=self._take_home,
            failed=self._list_failed,
            key="experiments",
            urgent=True,
        )

    def _take_home(self, home: tuple[tuple[ExperimentEntry, ...], bool]) -> None:
        entries, has_runs = home
        # Its runs come with the next poll: until then the page would show the sample's result over them.
        if entries or self.context.jobs.is_read or not has_runs:
            self._show_list(entries)

    def _list_failed(self, failure: Exception) -> None:
        self.area.failed("Could not read the experiments", failure, retry=self.refresh)

    def _show_list(self, entries: tuple[ExperimentEntry, ...]) -> None:
        changed, began, self._shown = entries != self._shown, bool(entries) != bool(self._shown), entries
        if began:
            self._show_parts(any_experiment=bool(entries))
        if not entries:
            self.area.empty_page(self.first_start)
            self._show_single_runs()
            return
        key = self._wanted if any(entry.name == self._wanted for entry in entries) else entries[0].name
        self.picker.show_choices(tuple(Choice(entry.name, entry.name) for entry in entries), key)
        if (entry := self.chosen) is not None:
            headline, progress = entry.headline, f"{entry.progress[:1].upper()}{entry.progress[1:].removesuffix('.')}."
            if waits := waiting_text(entry, self.context.jobs.runs, held=self.context.jobs.slots.held):
                headline = headline if any(row.status == "finished" for row in entry.rows) else waits
                progress = progress if headline == waits else f"{waits}. {progress}"
            self.verdict.setText(headline)
            self.verdict.setVisible(bool(headline))
            self.progress.setText(progress)
            self.show_buttons(entry)
            self._show_share()
            if entry.state == "going" and not any(run.active or run.status == "queued" for run in entry.rows):
                self._again.start()
        if changed:
            self.pane.forget()
        if self.isVisible():
            super().refresh()

    def show_buttons(self, entry: ExperimentEntry | None) -> None:
        """Show what can be done next with an experiment."""
        if entry is None:
            return
        self.go.setText(entry.go_text)
        adds = "Resumes stopped runs, then adds seeds until it is decided"
        offers = bool(entry.extension) and not entry.unfinished
        new = "All planned comparisons are made. Starts a new experiment with other seeds; this one stays"
        does = new if entry.repeat else "One look at exactly 3 seeds; no more can follow" if offers else adds
        reason = self.context.jobs.read_only_reason
        set_refusal(self.go, reason or ("" if entry.may_go else "Nothing is left to train."), does)
        self.go.setVisible(entry.may_go)
        self.decide.setText(entry.decide_text)
        set_refusal(self.decide, reason, "Declares looks at 3, 4 and 5 seeds; seeds are added until it is decided")
        self.decide.setVisible(offers)
        # What is advised is what stands out.
        theme.set_role(self.remedy, "primary")
        theme.set_role(self.decide, "" if entry.remedy else "primary")
        theme.set_role(self.go, "" if offers or entry.remedy else "primary")
        self.remedy.setVisible(entry.remedy is not None)
        if entry.remedy is not None:
            self.remedy.setText(entry.remedy.text)
            set_refusal(self.remedy, reason, entry.remedy.hint)
        self._offer_stop(runs=entry.state == "going" and not reason, now=bool(entry.training) and not reason)
        ended = entry.state in ("ended", "stopped") and bool(entry.rows)
        self.runs.setVisible(ended)
        self.runs.setText(f"Show {len(entry.rows)} runs" if len(entry.rows) > 1 else "Show the run")
        self.compare.setVisible(ended and bool(entry.compared))
        if entry.compared:
            names = [self.context.jobs.name_of(each.run) for each in entry.compared]
            self.compare.setText(f"Compare {names[0]} and {names[1]}")
            self.compare.setToolTip(f"Opens Compare with {names[0]} as A and {names[1]} as B")
            theme.set_role(self.compare, "" if entry.may_go or entry.remedy else "primary")

    def _show_runs(self) -> None:
        if (entry := self.chosen) is not None:
            self.requested.emit(ShowRuns(tuple(row.id for row in entry.rows)))

    def _ask_remedy(self) -> None:
        if (entry := self.chosen) is not None and entry.remedy is not None:
            self.requested.emit(entry.remedy.intent)

    def _compare(self) -> None:
        if (entry := self.chosen) is not None and entry.compared:
            self.context.selection.select_runs(*(each.run for each in entry.compared))
            self.requested.emit(CompareBoth())

    def _offer_stop(self, *, runs: bool, now: bool) -> None:
        """Show or hide the two actions that stop; the menu and the palette leave out hidden ones."""
        for action, offered in ((self.stop, runs), (self.stop_now, now)):
            action.setEnabled(offered)
            action.setVisible(offered)
        self.stop_menu.setVisible(self.stop.isEnabled() or self.stop_now.isEnabled())

    def _show_parts(self, *, any_experiment: bool) -> None:
        """Show the controls of an experiment, which the ways to begin do not need."""
        self.picker.setVisible(any_experiment)
        if self.chart_menu is not None:
            self.chart_menu.setVisible(any_experiment and self.chart_menu.is_needed)
        if not any_experiment:
            self._offer_stop(runs=False, now=False)
        self.controls_changed.emit()

    @property
    def offers_charts(self) -> bool:
        return bool(self._shown) and super().offers_charts

    def _show_share(self) -> None:
        """Show how much of what is planned is trained, and how many minutes are left where that is known."""
        entry = self.chosen
        going = entry is not None and entry.state == "going" and entry.planned > 0
        # Of the same reading as the verdict beside them: a seed has ended in both or in none.
        rows = entry.rows if entry is not None else ()
        self.share.setVisible(going and bool(rows))
        self.left.setVisible(going and bool(rows))
        stands = entry is not None and bool(rows)
        self.seeds.setVisible(stands)
        if entry is None or not stands:
            return
        every_end = self.context.jobs.ends()
        ends = {run.id: every_end.get(run.id) for run in rows if run.active}
        self.seeds.show_runs(entry.seeds, {run.id: run for run in rows}, ends, entry.gaps, self.context.jobs.styles)
        if not going:
            return
        # A run that waits does not know its steps yet: it will have those of the others.
        done, every = sum(run.step for run in rows), entry.planned * max(run.total_steps for run in rows)
        show_share(self.share, min(1.0, done / max(1, every)), at_work=False)
        times = [end for end in ends.values() if end is not None]
        steps = f"step {done:,} of {every:,}" if every else f"0 of {entry.planned} runs"
        self.left.setText(time_left(max(times)) if times and len(times) == len(ends) else steps)

    def _go(self) -> None:
        if (entry := self.chosen) is not None and entry.repeat and not entry.unfinished:
            self.context.jobs.do(experiments.repeat, entry.name, done=self._started)
            return
        extends = self.chosen is not None and self.chosen.extension
        self._change_state(experiments.extend if extends else experiments.start)

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
            self._read_list()
        elif not any(run.active for run in self.context.jobs.runs):
            self._offer_stop(runs=False, now=False)
