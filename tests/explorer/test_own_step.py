"""Run B at its own step, and one run at two steps: displays of views, and their commands."""

import csv
import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PySide6.QtCore import QObject, QTimer
from pytestqt.qtbot import QtBot

from explorer.state.selection import Side
from explorer.views import PLACES
from explorer.views.chart_pane import ChartPane
from explorer.views.evaluate import EvaluateView
from explorer.views.evaluate.controls import command_of
from explorer.views.explaining import ExplainingView
from explorer.views.geometry import GeometryView
from explorer.views.hopfield import HopfieldView
from explorer.views.search import SearchView
from explorer.views.similarity import SimilarityView
from explorer.window.bar import Bar
from explorer.window.picker_choices import PickerChoices
from explorer.window.view_menu import ViewMenu
from tests.explorer.widgets import add_widget
from tests.nightly import nightly_except
from trainer.__main__ import main
from trainer.analysis.geometry import alignment
from trainer.analysis.similarity import auc, hardest_texts, matched_cosines
from trainer.charts.marks import letter_index
from trainer.charts.spec import Request, Target
from trainer.charts.word_map import CHART, WordMapSettings
from trainer.messages import PlaceRows, decode_answer
from trainer.store import Snapshot, read_snapshot

TWO_RUNS, ONE_RUN = "two runs", "one run"


class TextsOfSteps(QObject):
    """Embeds any sentence as the first text of the requested step's snapshot, and records every request.

    Vectors are placed at their first two numbers.
    """

    def __init__(self, workspace: Any, folder: Path) -> None:
        super().__init__()
        self.workspace, self.folder = workspace, folder
        self.questions: list[Any] = []

    def warm_up(self, runs: Any = (), *, projections: bool = False) -> None:
        """Do nothing."""

    def ask(self, question: Any, *, done: Callable, failed: Callable, progress: Any = None, owner: Any = None) -> int:
        self.questions.append(question)
        if isinstance(question, PlaceRows):
            return self._answer(question, np.load(question.vectors)[:, :2], done)
        rows = [row for row in self.workspace.results.snapshots(question.run) if question.step in (None, row.step)]
        vectors = np.repeat(read_snapshot(rows[-1].folder).text[:1], len(question.texts), axis=0)
        # Every sentence is a little another one: an axis between two equal ones would lead nowhere.
        vectors = vectors + 0.1 * np.eye(len(vectors), vectors.shape[1], dtype=vectors.dtype)
        return self._answer(question, vectors, done)

    def _answer(self, question: Any, array: np.ndarray, done: Callable) -> int:
        file = self.folder / f"{len(self.questions)}.npy"
        np.save(file, array)
        QTimer.singleShot(0, lambda: done(decode_answer(question, {"array": str(file), "unreadable": {}})))
        return len(self.questions)

    def cancel(self, number: int) -> None:
        """Do nothing, because responses are immediate."""


@pytest.fixture(params=nightly_except([TWO_RUNS, ONE_RUN], TWO_RUNS))
def sides(request: pytest.FixtureRequest, two_runs: tuple[int, int]) -> tuple[tuple[int, int], tuple[int, int]]:
    """Return A and B, each a run and a step; both runs have snapshots at 10 and 20."""
    return (
        ((two_runs[0], 20), (two_runs[1], 10)) if request.param == TWO_RUNS else ((two_runs[0], 10), (two_runs[0], 20))
    )


@pytest.fixture
def show(qtbot: QtBot, make_context: Callable, tmp_path: Path, sides: Any) -> Callable[[type], Any]:
    def made(kind: type) -> Any:
        context = make_context()
        context = dataclasses.replace(context, client=TextsOfSteps(context.workspace, tmp_path))
        view = add_widget(qtbot, kind(context), 1096, 716)
        context.selection.select_snapshots(*sides)
        view.show()
        return view

    return made


def at(view: Any, side: tuple[int, int]) -> Snapshot:
    return read_snapshot(next(r for r in view.context.workspace.results.snapshots(side[0]) if r.step == side[1]).folder)


def labels(view: Any, sides: Any) -> list[str]:
    """Return what both are called in a chart: steps tell one run apart; of two runs, the head or a note says them."""
    runs = [(view.context.workspace.runs.get(run).short_name, step) for run, step in sides]
    return [name if len({name for name, _ in runs}) > 1 else f"{name}, step {step}" for name, step in runs]


def notes_steps(panel: Any, view: Any, sides: Any) -> bool:
    """Return whether a note says the steps of two runs; the labels say those of one."""
    names = labels(view, sides)
    steps = ", ".join(f"{name} {step}" for name, (_, step) in zip(names, sides, strict=True))
    return "step" in names[0] or f"The snapshots are of different steps: {steps}." in panel.notes


def says_both(words: list[str], sides: Any) -> None:
    """Check that the command contains the runs and the step of each."""
    runs = [str(run) for run in dict.fromkeys(run for run, _ in sides)]
    start = words.index("--runs")
    assert words[start : start + len(runs) + 4] == [
        *("--runs", *runs),
        *("--step", str(sides[0][1]), str(sides[1][1])),
    ]


def test_similarity(qtbot: QtBot, show: Callable, sides: Any, tmp_path: Path):
    view = show(SimilarityView)
    qtbot.waitUntil(lambda: len(view.cosines.runs) == 2 and not view.cosines.pane.busy, timeout=30_000)
    cards = view.cosines.pane.panel.cards
    areas = []
    for place in (0, 1):
        shot = at(view, sides[place])
        areas.append(auc(matched_cosines(shot.image, shot.text), hardest_texts(shot.image, shot.text, 10).cosines))
        assert cards["numbers"].text("AUC vs. 10 hardest", place) == f"{areas[-1]:.3f}"
        assert labels(view, sides)[place] in cards[f"cosines-{place}"].title.text()
    assert notes_steps(view.cosines.pane.panel.panel, view, sides)
    # The command prints what the window shows, for both steps.
    file = tmp_path / "numbers.csv"
    assert main([*view.command(), "--out", str(file), "--workspace", str(view.context.workspace.folder)]) == 0
    with file.open(newline="") as lines:
        rows = {(row["series"], row["x"]): row["y"] for row in csv.DictReader(lines) if row["part"] == "numbers"}
    assert [float(rows[label, "AUC vs. 10 hardest"]) for label in labels(view, sides)] == pytest.approx(areas)

    view.tabs.setCurrentIndex(1)
    matrix = view.pane(1)
    qtbot.waitUntil(lambda: len(matrix.tiles) == 2, timeout=30_000)
    for place, side in enumerate(matrix.sides):
        assert f"step {sides[place][1]}" in side.title.text()
        shot = at(view, sides[place])
        first = matrix.opened.order[0]
        assert matrix.tiles[place].means[0, 0] == pytest.approx(float(shot.image[first] @ shot.text[first]), abs=1e-5)
    says_both(matrix.command(), sides)


def test_words_and_axes(qtbot: QtBot, show: Callable, sides: Any):
    view = show(SimilarityView)
    for place in (2, 3):
        view.tabs.setCurrentIndex(place)
        pane = view.pane(place)
        qtbot.waitUntil(lambda pane=pane: pane.command() is not None, timeout=30_000)
        qtbot.waitUntil(lambda pane=pane: len(pane.runs) == 2, timeout=30_000)
        assert [(run.run, run.step) for run in pane.runs] == [*sides]
        command = pane.command()
        steps = [str(step) for _, step in sides]
        assert command[command.index("--step") + 1 :][:2] == steps
    assert {(q.run, q.step) for q in view.context.client.questions} == {*sides}, "each asks its own checkpoint"


def test_words_are_placed_by_the_process_of_projections(
    qtbot: QtBot, make_context: Callable, tmp_path: Path, sides: Any
):
    context = make_context()
    context = dataclasses.replace(context, client=TextsOfSteps(context.workspace, tmp_path))
    pane = add_widget(qtbot, ChartPane(context, CHART.name))
    request = Request(tuple(Target(*side) for side in sides))
    pane.ask(CHART, request, WordMapSettings(words=10, method="umap", neighbors=4))
    qtbot.waitUntil(lambda: pane.answer is not None, timeout=30_000)
    placed = {(q.run, q.placement) for q in context.client.questions if isinstance(q, PlaceRows)}
    assert {(run, placement.method, placement.neighbors) for run, placement in placed} == {
        (run, "umap", 4) for run, _ in sides
    }
    vectors = np.array(pane.answer.request.vectors[0])
    assert pane.answer.data.found[0].places == pytest.approx(vectors[:, :2])
    assert not [*tmp_path.glob("*.npy")], "an answer is read once and taken away"


@pytest.mark.parametrize("sides", [ONE_RUN], indirect=True)
def test_without_the_checkpoint_of_a_step_window_and_command_refuse_alike(
    qtbot: QtBot, show: Callable, sides: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    view = show(SimilarityView)
    workspace, run = view.context.workspace, sides[0][0]
    workspace.results.add_checkpoint(
        run, 20, workspace.runs.get(run).folder / "checkpoints" / "step_000020", best=False
    )
    said = f"Run {workspace.runs.get(run).name} keeps no checkpoint of step 10"
    view.tabs.setCurrentIndex(2)
    words = view.pane(2)
    qtbot.waitUntil(lambda: bool(words.runs), timeout=30_000)
    assert said in words.pane.warnings.text()
    assert [shown.step for shown in words.runs] == [20]
    view.tabs.setCurrentIndex(3)
    axes = view.pane(3)
    qtbot.waitUntil(lambda: bool(axes.runs), timeout=30_000)
    assert said in axes.pane.warnings.text()
    assert [shown.step for shown in axes.runs] == [20]
    assert {question.step for question in view.context.client.questions} == {20}
    where = ["--runs", str(run), "--step", "10", "--out", str(tmp_path / "f.csv"), "--workspace", str(workspace.folder)]
    for kind in (["words"], ["axes", "--x", "a ring - a star", "--y", "red"]):
        assert main(["export", *kind, *where]) == 2
        told = capsys.readouterr().err
        assert said in told
        assert "Choose step 20." in told


def test_geometry(qtbot: QtBot, show: Callable, sides: Any):
    view = show(GeometryView)
    qtbot.waitUntil(lambda: view.pane.answer is not None and not view.busy, timeout=30_000)
    cards = view.pane.panel.cards
    for place in (0, 1):
        shot = at(view, sides[place])
        assert cards["pairs"].text("Alignment", place) == f"{alignment(shot.image, shot.text):.3f}"
    assert [*cards["pairs"].numbers.columns] == labels(view, sides)
    assert notes_steps(view.pane.panel.panel, view, sides)
    words, steps = view.command(), [str(step) for _, step in sides]
    assert words[words.index("--step") + 1 :][:2] == steps
    course = cards["course"].plot.spec
    assert len(course.curves) == 2 * len({run for run, _ in sides}), "one run has one course, of A's color"
    assert [(letter_index(dot.tone), dot.x) for dot in course.dots[::2]] == [(0, sides[0][1]), (1, sides[1][1])]


ABOUT_RUNS = ("retrieval-share", "replayed-step", "generative-classes")
"""Charts of whole runs: no snapshot is chosen for them. Their own tests check what they name."""


def test_hopfield(qtbot: QtBot, show: Callable, sides: Any):
    view = show(HopfieldView)
    for name in view.charts:
        if name not in ABOUT_RUNS:
            view.open_chart(name)
            shows_both(qtbot, view, sides)
    view.ask_with_words("a ring")
    panel = view.pane.panel
    qtbot.waitUntil(lambda: not view.busy and "a ring" in panel.panel.head[1], timeout=30_000)
    assert [(q.run, q.step) for q in view.context.client.questions] == [*sides]


def shows_both(qtbot: QtBot, view: Any, sides: Any) -> None:
    """Check that the open chart shows and names both snapshots, and that its command does too."""
    name = view.chart.name
    qtbot.waitUntil(lambda: not view.busy and view.pane.answer.chart.name == name, timeout=30_000)
    answer = view.pane.answer
    assert [(target.run, target.step) for target in answer.request.targets] == [*sides]
    assert all(f"step {step}," in answer.panel.head[0] for _, step in sides)
    assert all(label in str(answer.panel.marks) for label in labels(view, sides)), f"{name} names both"
    words = view.command()
    steps = [str(step) for _, step in sides]
    at = words.index("--step") + 1
    assert words[at : at + 2] == steps


def test_explaining(qtbot: QtBot, show: Callable, sides: Any):
    view = show(ExplainingView)
    for name in view.charts:
        if name not in ABOUT_RUNS:
            view.open_chart(name)
            shows_both(qtbot, view, sides)


def test_search(qtbot: QtBot, show: Callable, sides: Any):
    view = show(SearchView)
    qtbot.keyClicks(view.field, "a ring")
    qtbot.waitUntil(lambda: all(panel.hits is not None for panel in view.panels), timeout=30_000)
    assert [(panel.hits.run, panel.hits.step) for panel in view.panels] == [*sides]
    words = view.command()
    at = words.index("--step") + 1
    assert words[at : at + 2] == [str(step) for _, step in sides]


def test_evaluate(show: Callable, sides: Any):
    view = show(EvaluateView)
    question = view.controls.question(view.context.selection.sides)
    assert (question.runs, question.steps) == (tuple(run for run, _ in sides), tuple(step for _, step in sides))
    line = command_of(question, Path("/w"))
    assert [f"--step {step} " in part for part, (_, step) in zip(line.split(" && "), sides, strict=True)] == [
        True,
        True,
    ]


def test_one_snapshot_twice_is_one_side(make_context: Callable, two_runs: tuple[int, int]):
    selection = make_context().selection
    selection.select_snapshots((two_runs[0], 10), (two_runs[0], 10))
    assert selection.sides == (Side(0, two_runs[0], 10),)
    selection.step = None
    assert selection.sides == (Side(0, two_runs[0], None),)
    assert selection.follows(two_runs[0])
    assert not selection.follows(two_runs[1])
    selection.select_snapshots((two_runs[0], 10), (two_runs[1], 20))
    assert not selection.follows(two_runs[0])


def test_the_bar_names_both_steps_and_a_pick_ends_them(qtbot: QtBot, make_context: Callable, two_runs: tuple[int, int]):
    context = make_context()
    selection = context.selection
    bar = add_widget(qtbot, Bar(selection, ViewMenu(PLACES)))
    bar.show_facts(PickerChoices(steps=(10, 20)))
    selection.select_snapshots((two_runs[0], 10), (two_runs[0], 20))
    assert bar.step.currentText() == "A 10 · B 20"
    bar.step.activated.emit(bar.step.currentIndex())
    assert [side.step for side in selection.sides] == [10, 20]
    bar.step.setCurrentIndex(bar.step.findText("20"))
    bar.step.activated.emit(bar.step.currentIndex())
    assert selection.sides == (Side(0, two_runs[0], 20),)
    assert bar.step.findText("A 10 · B 20") < 0
