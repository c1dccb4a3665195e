"""The Evaluate view through its real widgets; the server process is replaced by what it would store."""

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import numpy as np
import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QFileDialog, QLabel
from pytestqt.qtbot import QtBot

from explorer import theme
from explorer.intents import EvaluateBoth
from explorer.views.changes import ChangesView
from explorer.views.evaluate import EvaluateView
from explorer.views.evaluate.controls import OWN_DATA
from explorer.views.evaluate.group_bar import CUSTOM, groups_of
from explorer.views.evaluate.seeds_pane import seeded
from explorer.views.evaluate.view import READ_ONLY
from explorer.views.similarity import SimilarityView
from explorer.views.view import Context
from explorer.widgets.state_area import StatePage
from explorer.window import Window
from tests.explorer.answering_client import AnsweringClient
from tests.explorer.conftest import unselected
from tests.explorer.widgets import show_widget
from tests.two_runs import write_run_on_other_data
from trainer import config
from trainer.__main__ import main
from trainer.analysis.significance import Paired
from trainer.charts.evaluation import Difference, EvaluatedRun, EvaluationChart, EvaluationLine, images_of_cell
from trainer.charts.evaluation_scores import CHART as SCORES
from trainer.charts.marks import Mark, NumberRow, letter_index
from trainer.charts.measures.evaluation_scores import answer_of
from trainer.config.default_paths import assets_dir
from trainer.experiments.seed_truth import TRAINED_APART, evaluated_alike, seed_truth
from trainer.messages import Evaluate, EvaluateAnswer, EvaluatedTask, Failure
from trainer.metrics import HEADLINE, metric
from trainer.scheduling import queue
from trainer.store import Question, SplitKey, Workspace
from trainer.store.task_records import TaskRecord, evaluation_folder, read_records, write_task

N = 60
CLASSES = ("ring", "star", "heart")


class FakeClient(AnsweringClient):
    """Stores requested results: run A is right in 2 of 3 images, the other in all."""

    note = "good: robustness"

    def __init__(self, workspace: Workspace, folder: Path) -> None:
        super().__init__()
        self.workspace, self.folder = workspace, folder

    def answer_of(self, question: Any) -> Any:
        return store(self.workspace, self.folder, question)


ASKED = {task: Question(task, N, 3) for task in ("zero_shot", "robustness", "knn")}
ASKED["fine_tune"] = Question("fine_tune", N, 3, protocol="1 %: 12 labels")


def store(workspace: Workspace, folder: Path, question: Evaluate) -> EvaluateAnswer:
    label = np.arange(N) % 3
    paths = np.array([str(folder / f"{i}.png") for i in range(N)])
    done = []
    for place, run in enumerate(question.runs):
        row = workspace.runs.get(run)
        predicted = np.where((label == 2) & (place == 0), 0, label)
        right = predicted == label
        bins = {"edges": [0, 0.5, 1], "counts": [20, 40], "confidence": [0.3, 0.8], "accuracy": [0.4, 0.9]}
        details = {
            "classes": list(CLASSES),
            "reliability": {"own": {"inv_tau": 30.0, "ece": 0.1, "ece_calibrated": 0.04, **bins}},
        }
        details |= {"suite": "toys", "templates": ["{}", "a {}"]}
        arrays = {"path": paths, "label": label, "predicted": predicted, "right": right, "rank": 2 - right}
        metrics = {"zero_shot_acc1": float(right.mean()), "zero_shot_acc5": 1.0}
        record = TaskRecord("zero_shot", metrics, N, 100, details, arrays, ASKED["zero_shot"])
        at = evaluation_folder(row.folder, "GTSRB", "test", 20)
        write_task(at, record)
        curves = {kind: [0.6, 0.5, 0.4, 0.3, 0.2] for kind in ("noise", "blur")}
        robust = {"robust_clean": float(right.mean()), "robust_mean": 0.4}
        about = {"curves": curves, "measure": "zero_shot_acc1"}
        write_task(at, TaskRecord("robustness", robust, N, 100, about, arrays, ASKED["robustness"]))
        workspace.results.add_evaluation(run, 20, "GTSRB", "test", metrics | robust, ASKED)
        done.append({"run": run, "step": 20, "dataset": "GTSRB", "split": "test", "task": "zero_shot"})
    left_out = {"good: retrieval": "Its captions are made of its classes."}
    return EvaluateAnswer(done=tuple(EvaluatedTask(**each) for each in done), left_out=left_out)


@pytest.fixture
def context(make_context: Callable[[], Context], two_runs: tuple[int, int], tmp_path: Path) -> Context:
    made = make_context()
    made.client.close()
    context = dataclasses.replace(made, client=FakeClient(made.workspace, tmp_path))
    context.jobs.poll()
    context.selection.propose(run_a=two_runs[0], run_b=two_runs[1])
    return context


@pytest.fixture
def view(context: Context, qtbot: QtBot) -> EvaluateView:
    made = show_widget(qtbot, EvaluateView(context), 1100, 760)
    qtbot.waitUntil(lambda: bool(context.jobs.runs) and not context.background.busy)
    return made


def page(shown: StatePage) -> tuple[str, str, str]:
    return shown.title.text(), shown.text.text(), shown.button.text()


def press(view: EvaluateView) -> None:
    """Press the only button that evaluates."""
    (button,) = (b for b in (view.empty.button, view.controls.go) if b.isVisible() and b.text() == "Evaluate")
    QTest.mouseClick(button, Qt.MouseButton.LeftButton)


def measured(view: EvaluateView, qtbot: QtBot) -> None:
    view.controls.data.setCurrentText("/some/GTSRB")
    press(view)
    qtbot.waitUntil(lambda: view.chart is not None, timeout=20_000)


@pytest.fixture(scope="module")
def _shared(share_view, tmp_path_factory: pytest.TempPathFactory) -> EvaluateView:
    folder = tmp_path_factory.mktemp("pictures")
    return share_view(EvaluateView, 1100, 760, lambda workspace: FakeClient(workspace, folder))


@pytest.fixture
def shared(qtbot: QtBot, dressed, _shared: EvaluateView) -> EvaluateView:
    """Return the view of the tests that look at what was measured once."""
    context = unselected(_shared).context
    if not context.client.asked:
        context.jobs.poll()
        qtbot.waitUntil(lambda: bool(context.jobs.runs) and not context.background.busy)
        measured(_shared, qtbot)
    _shared.tabs.setCurrentIndex(0)
    qtbot.waitUntil(lambda: _shared.chart is not None)
    return _shared


def test_views_of_scores_say_the_same_of_few_pairs_until_more_are_measured(context: Context, view: EvaluateView, qtbot):
    workspace, runs = context.workspace, context.selection.runs
    (key, *_) = {snapshot.key: None for snapshot in workspace.results.snapshots(runs[0])}
    question, label = Question("zero_shot", 12, 3), np.arange(12) % 3
    arrays = {
        "path": label.astype(str),
        "label": label,
        "predicted": label,
        "right": label == label,
        "rank": 1 + 0 * label,
    }
    for run in runs:
        workspace.runs.change(run, metric=HEADLINE, last=0.5)
        workspace.runs.add_facts(run, {"heldout_pairs": {key.split: 12}})
        at = evaluation_folder(workspace.runs.get(run).folder, key.dataset, key.split, 20)
        details = {"classes": list(CLASSES), "suite": "toys", "templates": ["{}"]}
        write_task(at, TaskRecord("zero_shot", {"zero_shot_acc1": 1.0}, 12, 100, details, arrays, question))
        workspace.results.add_evaluation(
            run, 20, key.dataset, key.split, {"zero_shot_acc1": 1.0}, {"zero_shot": question}
        )
    idle = dataclasses.replace(context, client=MagicMock())
    others = [kind(idle) for kind in (SimilarityView, ChangesView)]
    for other in others:
        qtbot.addWidget(other)
        other.show()
    view.read(again=True)
    qtbot.waitUntil(lambda: view.chart is not None and view.chart.dataset == key.dataset)
    for shown in (*others, view):
        shown.truth.read(again=True)
        qtbot.waitUntil(lambda shown=shown: shown.truth.accessibleName() == "12 held-out pairs: too few to compare")
    measured(view, qtbot)
    qtbot.waitUntil(lambda: view.truth.accessibleName() == "1 seed each: undecided")


def test_what_could_not_be_stored_is_refused_before_a_process_works(view: EvaluateView, monkeypatch) -> None:
    monkeypatch.setattr(view.context.jobs, "_look_only", "it mirrors box")
    said: list[str] = []
    view.context.jobs.failed.connect(said.append)
    view.evaluate()
    assert len(said) == 1
    assert not view.asking.busy
    view.context.jobs.look_only_changed.emit("it mirrors box")
    assert view.controls.go.isHidden()
    for empty in (view.empty, view.confusion.area.page, view.protocol.missing, view.choice.missing):
        assert page(empty) == ("Not evaluated yet", READ_ONLY, "Make it mine…")
    monkeypatch.setattr(view.context.jobs, "_look_only", "")
    view.context.jobs.look_only_changed.emit("")
    assert page(view.empty)[2] == "Evaluate"
    assert page(view.choice.missing)[2] == "Measure it"


def test_evaluate_stands_out_until_all_is_measured(view: EvaluateView, qtbot: QtBot):
    measured(view, qtbot)
    qtbot.waitUntil(lambda: not view.asking.busy)
    assert not view.chart.to_measure
    assert view.controls.go.isVisible()
    assert not view.controls.go.property("role")


def test_an_empty_view_says_what_to_do(view: EvaluateView):
    assert view.empty.isVisible()
    assert not view.table.isVisible()
    assert view.command() is None
    assert view.empty.title.text() == "Not evaluated yet"
    view.tabs.setCurrentIndex(1)
    assert view.confusion.area.page.text.text().startswith("Evaluate zero-shot")
    assert not view.confusion.tasks.isVisible()
    assert view.controls.go.isEnabled()
    assert view.controls.go.property("role") == "primary"
    assert view.isAncestorOf(view.controls.go), "the bar of an enlarged window would have no room for it"
    view.context.selection.propose(run_a=None, run_b=None)
    assert not view.controls.go.isEnabled()


def test_data_are_chosen_once_in_evaluate_and_its_empty_page_opens_the_controls(window: Window, qtbot: QtBot):
    window.navigation.go_to("map")
    assert not window.bar.dataset.isHidden()
    window.navigation.go_to("evaluate")
    assert (window.bar.dataset.isHidden(), window.bar.step.isHidden()) == (True, False)
    page = window.pages.views["evaluate"].empty
    qtbot.waitUntil(lambda: page.other.isVisible(), timeout=20_000)
    assert page.other.text() == "Choose data and tasks…"
    QTest.mouseClick(page.other, Qt.MouseButton.LeftButton)
    assert window.more_panel.isVisible()
    assert window.more_panel.isAncestorOf(window.pages.views["evaluate"].controls.data)
    window.navigation.go_to("losslab")
    assert window.bar.dataset.isHidden()
    window.navigation.go_to("map")
    assert not window.bar.dataset.isHidden()


def test_a_click_measures_both_runs_and_shows_whether_they_differ(view: EvaluateView, qtbot: QtBot):
    view.controls.task_menu.actions()[2].trigger()
    measured(view, qtbot)
    question = view.context.client.asked[0]
    assert question.runs == view.context.selection.runs
    assert question.data == "/some/GTSRB"
    assert set(question.tasks) == {"zero_shot", "retrieval", "linear_probe"}
    card = numbers(view, qtbot)
    name = next(line.words for line in card.numbers.lines if line.words.startswith("Zero-shot accuracy"))
    assert [card.text(name, column) for column in range(4)] == ["60", "66.7 %", "100.0 %", "+33.3"]
    assert card.text(name, 5) == "< 0.001"
    assert card.text("Zero-shot top-5 accuracy (k ≥ 3 answers)", 3) == "–", "top-5 of three classes cannot differ"
    strong = {label.text() for label in card.findChildren(QLabel) if label.property("role") == "strong"}
    assert {text for text in strong if "%" in text} == {"100.0 %"}
    assert "Its captions are made of its classes" in view.status.text()
    assert view.status.height() >= view.status.heightForWidth(view.status.width()), "no line is cut"
    names = [view.context.jobs.name_of(run) for run in view.context.selection.runs]
    assert view.status.text().startswith(f"Saved: zero-shot of {' and '.join(names)}. "), "what was stored, once"
    assert view.about.width() == view.about.sizeHint().width(), "the status has the rest of the row"


def test_the_answer_comes_first_and_the_note_of_the_table_with_the_table(shared: EvaluateView, qtbot: QtBot):
    numbers(shared, qtbot)
    panel = shared.table.panel
    card = panel.cards["shares"]
    winner = shared.chart.runs[1].label
    ahead = f"{winner} ahead by 33.3 points (p < 0.001, Holm)"
    title = f"Zero-shot accuracy: {ahead}. Clean, on the robustness sample: {ahead}."
    assert card.title.text() == title
    pens = {letter_index(tone): item.opts["pen"].color().name() for tone, item in card.plot._errors.items()}
    assert pens == {place: theme.run_color(place, shared) for place in (0, 1)}
    assert "McNemar" not in panel.notes.text()
    QTest.mouseClick(shared.table.numbers.button, Qt.MouseButton.LeftButton)
    assert card.minimumHeight() >= 300, "the plot stays readable above the table"
    assert panel.notes.text().startswith("B against A in points")


def test_the_primary_outcome_is_told_first_and_one_number_of_pairs_once():
    """Not the clearest of eight differences; that the primary one is none is told, too."""

    def line(name: str, gap: float, p: float, n: int = 60) -> EvaluationLine:
        found = Difference(Paired(gap, gap - 0.1, gap + 0.1, n), None, p)
        shares = (0.6, 0.6 + gap), ((0.5, 0.7), (0.5, 0.7)), (n, n)
        return EvaluationLine(metric(f"val/{name}"), name, "retrieval", *shares, found)

    runs = tuple(EvaluatedRun(place, place + 1, "", "clip", 20, {}, f"run {place + 1}") for place in (0, 1))
    clear, first = line("text_to_image_R@5", -0.4, 1e-9), line("image_to_text_R@1", -0.2, 0.01)
    chart = EvaluationChart("data", "renderings", runs, (clear, first), ())
    said = ("Image to text R@1: run 1 ahead by 20.0 points (p = 0.010, Holm).", "Text to image R@5: run 1 ahead by")
    assert answer_of(chart) == f"{said[0]} {said[1]} 40.0 points (p < 0.001, Holm)."
    more = dataclasses.replace(chart, lines=(*chart.lines, line("text_to_image_R@10", 0.3, 0.02)))
    assert answer_of(more) == f"{answer_of(chart)} 1 more score differs."
    plot = SCORES.draw(chart, None).mark("shares")
    assert plot.names == ("Text to image R@5", "Image to text R@1")
    assert plot.note.startswith("unseen renderings, n = 60 · ")
    assert answer_of(dataclasses.replace(chart, primary="text_to_image_R@5")).startswith("Text to image R@5")
    few = dataclasses.replace(first, n=(40, 40))
    assert SCORES.draw(dataclasses.replace(chart, lines=(clear, few)), None).mark("shares").names[1].endswith("n = 40")
    none = dataclasses.replace(chart, lines=(clear, line("image_to_text_R@1", -0.02, 0.4)))
    assert answer_of(none) == (
        "Image to text R@1: no significant difference (p = 0.400, Holm). "
        "Text to image R@5: run 1 ahead by 40.0 points (p < 0.001, Holm)."
    )


def test_scores_that_are_100_percent_in_all_runs_are_named_under_the_plot():
    line = EvaluationLine(
        metric("val/zero_shot_acc1"), "zero_shot_acc1", "zero_shot", (0.5,), ((0.4, 0.6),), (60,), None
    )
    perfect = dataclasses.replace(line, metric=metric("val/zero_shot_acc5"), values=(1.0,), intervals=((0.9, 1.0),))
    runs = (EvaluatedRun(0, 1, "one", "clip", 20, {}, "one"),)
    panel = SCORES.draw(EvaluationChart("data", "val", runs, (line, perfect), ()), None)
    assert len(panel.mark("shares").names) == 1
    assert panel.notes == (f"Not drawn, 100 %: {perfect.metric.label}.",)


@pytest.mark.parametrize(("value", "is_zoomed"), [(0.97, True), (0.4, False)])
def test_scores_that_lie_close_fill_the_axis_and_chance_is_a_number(value: float, is_zoomed: bool):
    """Values of 96 to 99 % lay at the right edge of an axis from 0."""
    ends = ((value - 0.01, value + 0.01), (value - 0.1, value)) if not is_zoomed else ((0.96, 0.98), (0.97, 0.99))
    question = Question("zero_shot", 1024, classes=10)
    line = EvaluationLine(
        *(
            metric("val/zero_shot_acc1"),
            "zero_shot_acc1",
            "zero_shot",
            (value, value),
            ends,
            (1024, 1024),
            None,
            question,
        )
    )
    runs = tuple(EvaluatedRun(index, index + 1, "", "clip", 20, {}, f"run {index + 1}") for index in (0, 1))
    plot = SCORES.draw(EvaluationChart("data", "val", runs, (line,), ()), None).mark("shares")
    assert (plot.y.low > 90) is is_zoomed
    assert any(dot.name == "chance" for dot in plot.dots) is not is_zoomed
    assert (f"({question.chance(line.name)})" in plot.names[0]) is is_zoomed


def numbers(view: EvaluateView, qtbot: QtBot) -> Any:
    """Return the card of the table of scores."""
    qtbot.waitUntil(lambda: view.table.answer is not None and not view.table.busy, timeout=20_000)
    return view.table.panel.cards["numbers"]


def test_published_numbers_stand_beside_ones_own(shared: EvaluateView, qtbot: QtBot):
    numbers(shared, qtbot)
    published = shared.table.answer.panel.mark("published")
    cells = ("Zero-shot", "CC3M, 31 epochs", "5", "6.38 ± 2.11 %")
    assert ("CLOOB RN50", cells) in {(line.words, line.values) for line in published.lines}
    assert "CLOOB paper" in published.lines[0].hint
    assert "published" in shared.table.panel.cards


def test_a_cell_of_the_confusion_shows_its_images(shared: EvaluateView, qtbot: QtBot):
    shared.tabs.setCurrentIndex(1)
    heat = shared.confusion.maps[0]
    qtbot.waitUntil(heat.isVisible)
    QApplication.processEvents()
    place = heat.rect_of(2, 0).center().toPoint()
    QTest.mouseMove(heat, place)
    QTest.mouseClick(heat, Qt.MouseButton.LeftButton, pos=QPoint(place))
    assert "heart predicted as ring: 20 of 20 (100 %), 20 without their image file" in shared.confusion.note.text()
    strip = shared.confusion.strip
    assert not strip.isVisible()
    for path in map(Path, images_of_cell(shared.chart.runs[0].tasks["zero_shot"], 2, 0)[1:]):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    QTest.mouseClick(heat, Qt.MouseButton.LeftButton, pos=QPoint(heat.rect_of(2, 0).center().toPoint()))
    assert [Path(item.path).name for item in strip.items][:2] == ["5.png", "8.png"]
    assert "1 without their image file" in shared.confusion.note.text()
    assert shared.command()[-2:] == ["--task", "zero_shot"]
    assert shared.command()[1] == "confusion"


def test_curves_are_those_of_the_store_and_are_exported(shared: EvaluateView, qtbot: QtBot, tmp_path: Path):
    shared.tabs.setCurrentIndex(2)
    drawn = drawn_curves(shared, qtbot)
    assert [(mark.title, [curve.name for curve in mark.curves]) for mark in drawn[1:]] == [
        ("good under corruption", ["noise", "blur"]),
        ("bad under corruption", ["noise", "blur"]),
    ]
    assert drawn[1].curves[0].y[1:] == pytest.approx((60, 50, 40, 30, 20))
    assert drawn[0].curves[1].x == pytest.approx((0.3, 0.8))
    out = tmp_path / "shown.csv"
    assert main([*shared.command(), "--out", str(out), "--workspace", str(shared.context.workspace.folder)]) == 0
    assert any("corruption-0," in line and "blur,5.0,20.0" in line for line in out.read_text().splitlines())


def drawn_curves(view: EvaluateView, qtbot: QtBot) -> tuple[Mark, ...]:
    """Return the marks on the tab of curves."""
    qtbot.waitUntil(lambda: view.curves.answer is not None and not view.curves.busy)
    return view.curves.answer.panel.marks


def test_runs_of_other_questions_are_not_drawn_in_one_diagram(view: EvaluateView, qtbot: QtBot, tmp_path: Path):
    measured(view, qtbot)
    workspace, b = view.context.workspace, view.context.selection.run_b
    folder = evaluation_folder(workspace.runs.get(b).folder, "GTSRB", "test", 20)
    for record in read_records(folder):
        (folder / f"{record.task}-{record.question.digest}.json").unlink()
        write_task(folder, dataclasses.replace(record, n=30, question=dataclasses.replace(record.question, n=30)))
    view.read(again=True)
    qtbot.waitUntil(lambda: view.chart is not None and view.chart.runs[1].tasks["zero_shot"].n == 30, timeout=20_000)
    drawn = drawn_curves(view, qtbot)
    assert [mark.key for mark in drawn] == ["reliability", "reliability-1", "corruption-0", "corruption-1-1"]
    for mark, n in zip(drawn, (60, 30, 60, 30), strict=True):
        assert f"n = {n}, 3 classes" in mark.note
        assert len({letter_index(curve.tone) for curve in mark.curves} - {-1}) <= 1


OWN, RENDERINGS = SplitKey("own", "heldout"), SplitKey("scenes", "renderings")


class DataClient(FakeClient):
    """Stores what a question about the data of a run asks for, under their name."""

    def answer_of(self, question: Evaluate) -> EvaluateAnswer:
        data = self.workspace.runs.config_of(int(question.data_of)).data if question.data_of else None
        key = OWN if isinstance(data, config.Folder) else RENDERINGS
        done = []
        for run in question.runs:
            row = self.workspace.runs.get(run)
            asked = {"retrieval": Question("retrieval", 20, gallery=20)}
            ranks = {"path": np.array([f"{i}" for i in range(20)]), "image_to_text": np.arange(20) % (1 + run)}
            metrics = {"image_to_text_R@1": float((ranks["image_to_text"] <= 1).mean()), "image_to_text_R@5": 1.0}
            record = TaskRecord("retrieval", metrics, 20, 20, {}, ranks, asked["retrieval"])
            write_task(evaluation_folder(row.folder, key.dataset, key.split, 20), record)
            self.workspace.results.add_evaluation(run, 20, key.dataset, key.split, metrics, asked)
            done.append(EvaluatedTask(run=run, step=20, dataset=key.dataset, split=key.split, task="retrieval"))
        return EvaluateAnswer(done=tuple(done), left_out={})


@pytest.fixture
def apart(context: Context, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, qtbot: QtBot) -> EvaluateView:
    """Return the view of a run on Scenes and one on a folder of one's own."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own").mkdir()
    own = write_run_on_other_data(context.workspace)
    context = dataclasses.replace(context, client=DataClient(context.workspace, tmp_path))
    context.jobs.poll()
    context.selection.select_runs(context.selection.run_a, own)
    made = show_widget(qtbot, EvaluateView(context), 1100, 760)
    qtbot.waitUntil(lambda: made.empty.isVisible() and not context.background.busy)
    return made


def test_data_of_the_workspaces_runs_are_offered_by_their_names(apart: EvaluateView):
    data = apart.controls.data
    entries = [data.itemText(place) for place in range(data.count())]
    assert entries[:3] == ["Each run's own data", "own, held-out", "Scenes, unseen renderings"]
    data.setCurrentText("own, held-out")
    own = apart.context.selection.run_b
    assert (apart.question_now().data, apart.question_now().data_of) == ("", str(own))
    apart.copy_evaluation()
    assert f"--data-of {own}" in QApplication.clipboard().text()


def test_two_runs_on_different_data_are_measured_on_one_data_set_by_a_click(apart: EvaluateView, qtbot: QtBot):
    texts = [button.text() for button in apart.empty.buttons]
    assert texts == ["Measure both on Scenes, unseen renderings", "Measure both on own, held-out", "Choose a folder…"]
    QTest.mouseClick(apart.empty.other, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: apart.chart is not None, timeout=20_000)
    asked = apart.context.client.asked[-1]
    assert (asked.runs, asked.data_of) == (apart.context.selection.runs, str(apart.context.selection.run_b))
    assert (apart.chart.unmeasured, apart.shown.currentText()) == ((), "own, held-out")
    assert apart.area.kind == "ready"
    assert apart.truth is not None
    qtbot.waitUntil(lambda: apart.truth.said == TRAINED_APART)
    runs = apart.context.selection.runs
    assert seed_truth(apart.context.workspace, *runs).apart, "in other views they are"
    apart.context.client.answer_of(Evaluate(runs=(runs[0],), data_of=str(runs[0])))
    apart.read(again=True)
    qtbot.waitUntil(lambda: apart.shown.count() == 2)
    apart.shown.setCurrentText("Scenes, unseen renderings")
    (key,) = evaluated_alike(apart.context.workspace, runs)
    apart.carry_out(EvaluateBoth(key))
    qtbot.waitUntil(lambda: apart.shown.currentText() == "own, held-out" and apart.table.isVisible())
    qtbot.waitUntil(lambda: apart.chart is not None and apart.chart.dataset == "own")


def test_a_run_that_was_not_measured_on_the_data_shown_is_named_and_measured(apart: EvaluateView, qtbot: QtBot):
    scenes, own = apart.context.selection.runs
    apart.context.client.answer_of(Evaluate(runs=(own,), data_of=str(own)))
    apart.read(again=True)
    qtbot.waitUntil(lambda: apart.area.kind == "partial", timeout=20_000)
    names = {run: apart.context.jobs.name_of(run) for run in (scenes, own)}
    assert apart.area.note.words.text() == f"{names[scenes]} is not measured on these data."
    workspace = apart.context.workspace
    workspace.results.add_evaluation(scenes, 20, "own", "heldout", {"val/image_to_text_R@1": 0.2})
    apart.read(again=True)
    logged = f"{names[scenes]} is measured on these data only while training, see Comparison."
    qtbot.waitUntil(lambda: apart.area.note.words.text() == logged, timeout=20_000)
    qtbot.waitUntil(lambda: apart.table.answer is not None, timeout=20_000)
    panel = apart.table.answer.panel
    assert panel.rows[0][0].title == f"Scores of {names[own]}"
    assert not panel.notes[-1].startswith("Not drawn"), "what was measured of one run only is drawn"
    apart.carry_out(EvaluateBoth())
    qtbot.waitUntil(lambda: apart.empty.isVisible() and not apart.table.isVisible())
    apart.shown.picked.emit(apart.shown.key)
    qtbot.waitUntil(lambda: apart.table.isVisible() and apart.area.kind == "partial", timeout=20_000)
    QTest.mouseClick(apart.area.note.button, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: apart.chart is not None and not apart.chart.unmeasured, timeout=20_000)
    asked = apart.context.client.asked[-1]
    assert (asked.runs, asked.data_of, asked.tasks, asked.split) == ((scenes,), str(own), ("retrieval",), "")
    qtbot.waitUntil(lambda: apart.area.kind == "ready")


def test_nothing_is_called_missing_before_it_was_looked_up(view: EvaluateView, qtbot: QtBot):
    qtbot.waitUntil(lambda: view.empty.isVisible(), timeout=20_000)
    view.read(again=True)
    assert not view.empty.isVisible()
    assert view.table.isVisible()
    qtbot.waitUntil(lambda: view.empty.isVisible() and not view.table.isVisible(), timeout=20_000)


def test_a_step_that_was_not_evaluated_is_no_empty_table(shared: EvaluateView, qtbot: QtBot):
    shared.context.selection.step = 10
    qtbot.waitUntil(lambda: shared.chart is None, timeout=20_000)
    assert shared.empty.isVisible()
    assert "on GTSRB, test at step 10: there is good at step 20; bad at step 20" in shared.empty.text.text()
    shared.context.selection.step = 20
    qtbot.waitUntil(lambda: shared.chart is not None, timeout=20_000)
    assert not shared.empty.isVisible()


def test_progress_is_shown_and_cancelling_ends_it(view: EvaluateView, qtbot: QtBot):
    view.context.client.answering = False
    press(view)
    qtbot.waitUntil(lambda: "good: robustness" in view.working.note.text())
    assert view.working.bar.value() == 400
    assert view.job_slot.isAncestorOf(view.working)
    assert not view.controls.go.isEnabled()
    QTest.mouseClick(view.working.button, Qt.MouseButton.LeftButton)
    assert view.context.client.cancelled == [1]
    assert view.controls.go.isEnabled()
    assert not view.working.isVisible()
    assert "Cancelled" in view.status.text()


def test_a_failure_is_said_with_its_next_step(view: EvaluateView, qtbot: QtBot):
    view.context.client.failing = Failure("unreadable", "There is no such folder.", "Choose another.")
    view.controls.data.setFocus()
    QTest.keyClick(view.controls.data.lineEdit(), Qt.Key.Key_Return)
    said = ("The evaluation failed", "There is no such folder. Choose another.", "Retry")
    qtbot.waitUntil(lambda: page(view.empty) == said)
    for tab in (1, 2, 6, 7):
        view.tabs.setCurrentIndex(tab)
        pane = {1: view.confusion.area, 2: view.no_curves, 6: view.protocol.missing, 7: view.choice.missing}[tab]
        assert page(pane if isinstance(pane, StatePage) else pane.page) == said
    view.tabs.setCurrentIndex(0)
    view.context.client.failing = None
    measured(view, qtbot)
    view.context.client.failing = Failure("unreadable", "There is no such folder.", "Choose another.")
    press(view)
    qtbot.waitUntil(lambda: view.area.kind == "partial")
    assert view.area.note.words.text().endswith("There is no such folder. Choose another.")
    assert view.area.note.button.text() == "Retry", "above the results that there are"


def test_a_page_without_a_result_says_that_one_is_being_measured(view: EvaluateView, qtbot: QtBot):
    view.context.client.answering = False
    press(view)
    qtbot.waitUntil(lambda: page(view.empty) == ("Evaluating", "40 % · Good: robustness…", "Cancel"))
    qtbot.wait(QApplication.doubleClickInterval() + 50)  # sooner it would be the second click of two
    QTest.mouseClick(view.empty.button, Qt.MouseButton.LeftButton)
    assert view.context.client.cancelled == [1]
    qtbot.waitUntil(lambda: view.empty.title.text() == "Not evaluated yet")


def test_the_controls_are_whole_in_a_narrow_panel_and_evaluate_is_offered_once(view: EvaluateView, qtbot: QtBot):
    controls = view.controls
    qtbot.waitUntil(lambda: controls.data.currentText() == OWN_DATA)
    view.more_panel.show()
    view.more_panel.setFixedWidth(max(340, view.more_panel.minimumSizeHint().width()))
    QApplication.processEvents()
    edit = controls.data.lineEdit()
    assert edit.width() > edit.fontMetrics().horizontalAdvance(OWN_DATA)
    assert [label.text() for label in controls.findChildren(QLabel)] == [
        "Evaluate on", "Split", "Classes", "Tasks", "Images at most",
    ]  # fmt: skip
    assert "Evaluate the runs" not in [action.text() for action in view.actions_for_more()]
    assert "Evaluate the runs" in [action.text() for action in view.actions_for_palette()]


def test_the_command_on_the_clipboard_measures_the_same(view: EvaluateView, monkeypatch: pytest.MonkeyPatch):
    view.controls.data.setCurrentText("/some/GTSRB")
    monkeypatch.setattr(QFileDialog, "getExistingDirectory", lambda *_: "/other/style")
    view.controls.shift_action.trigger()
    assert view.controls.shift_action.text().endswith(": style")
    view.copy_evaluation()
    words = QApplication.clipboard().text().split()
    assert words[:4] == ["trainer", "evaluate", *map(str, view.context.selection.runs)]
    assert words[words.index("--data") + 1] == "/some/GTSRB"
    assert words[words.index("--most") + 1] == "2000"
    assert words[words.index("--shift") + 1] == "/other/style"
    assert not {"--split", "--suite", "--features"} & set(words)


def test_split_suite_and_features_are_asked_for_and_what_was_used_is_shown(view: EvaluateView, qtbot: QtBot):
    assert (view.question_now().split, view.question_now().suite, view.question_now().features) == ("", "", False)
    view.controls.split.setFocus()
    view.controls.split.lineEdit().selectAll()
    QTest.keyClicks(view.controls.split.lineEdit(), "test_style")
    place = view.controls.suite.findText("Suite cifar10")
    view.controls.suite.setCurrentIndex(place)
    view.controls.features_action.trigger()
    measured(view, qtbot)
    question = view.context.client.asked[0]
    assert (question.split, question.suite, question.features) == ("test_style", "cifar10", True)
    assert set(question.tasks) == {"zero_shot", "retrieval"}, "what takes minutes is measured only if it is chosen"
    assert view.about.text() == "60 of 100 pairs, 3 classes of toys, 2 templates"
    assert view.shown.currentText() == "GTSRB, test"
    assert view.about.isVisible()
    view.copy_evaluation()
    words = QApplication.clipboard().text().split()
    assert words[words.index("--split") + 1] == "test_style"
    assert words[words.index("--suite") + 1] == "cifar10"
    assert "--features" in words


def test_fine_tuning_stands_beside_the_probe_on_the_same_labels(view: EvaluateView, qtbot: QtBot):
    measured(view, qtbot)
    workspace, folder = view.context.workspace, view.context.client.folder
    for place, run in enumerate(view.context.selection.runs):
        right = np.arange(N) % 3 != 2 if place == 0 else np.ones(N, bool)
        label = np.arange(N) % 3
        places = {"fine_tune_1pct": np.where(right, 1, 3), "fine_tune_linear_1pct": np.full(N, 2)}
        paths = np.array([str(folder / f"{i}.png") for i in range(N)])
        shares = [{"share": 0.01, "labels": 12, "epochs": 30, "per_class": [4, 4, 4]}]
        details = {"shares": shares, "left_out": {}, "whole": 1200, "seed": 0}
        metrics = {f"{name}_acc1": float((value == 1).mean()) for name, value in places.items()}
        arrays = {"path": paths, "label": label, **places}
        record = TaskRecord("fine_tune", metrics, N, 100, details, arrays, ASKED["fine_tune"])
        write_task(evaluation_folder(workspace.runs.get(run).folder, "GTSRB", "test", 20), record)
    view.read(again=True)
    heading = "Fine-tuning, test, n = 60, 3 classes, 1 %: 12 labels"

    def tuned() -> list[str]:
        card = numbers(view, qtbot)
        return [card.text("Fine-tuned, 1 % of labels", column) for column in range(4)]

    # A reading that was under way may have met the files of one run only.
    qtbot.waitUntil(lambda: any(line.words == heading for line in lines_of(view)), timeout=60_000)
    qtbot.waitUntil(lambda: tuned() == ["60", "66.7 %", "100.0 %", "+33.3"], timeout=60_000)
    card = numbers(view, qtbot)
    assert [card.text("Linear probe, 1 % of labels", column) for column in (1, 2)] == ["0.0 %", "0.0 %"]


def lines_of(view: EvaluateView) -> tuple[NumberRow, ...]:
    """Return the rows of the table of scores, including headings."""
    return view.table.answer.panel.mark("numbers").lines if view.table.answer is not None else ()


def test_the_help_says_how_the_accuracies_of_a_run_relate(view: EvaluateView):
    page = (assets_dir() / "docs" / "reference" / "views" / "evaluate.md").read_text(encoding="utf-8")
    said = next(part for part in page.split("\n\n") if part.startswith("A run can have several"))
    for word in ("logged", "snapshot", "measured here", "split, n, classes, templates and step"):
        assert word in said


def test_the_table_is_exported_as_markdown_and_latex(shared: EvaluateView, qtbot: QtBot, tmp_path: Path):
    numbers(shared, qtbot)
    names = {suffix for suffix, _label in shared.exports}
    assert {"svg", "csv", "md", "tex"} <= names
    for name in ("t.md", "t.tex"):
        out = tmp_path / name
        assert main([*shared.command(), "--out", str(out), "--workspace", str(shared.context.workspace.folder)]) == 0
    text = (tmp_path / "t.md").read_text(encoding="utf-8")
    row = next(line for line in text.splitlines() if line.startswith("| Zero-shot accuracy"))
    assert [cell.strip() for cell in row.split("|")][2:6] == ["60", "66.7 %", "**100.0 %**", "+33.3"]
    assert r"\textbf{100.0 \%}" in (tmp_path / "t.tex").read_text(encoding="utf-8")
    assert "3 classes of toys" in text


def test_one_click_queues_a_group_over_seeds(view: EvaluateView, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch):
    queued: list[Any] = []
    monkeypatch.setattr(view.context.jobs, "do", lambda _action, runs: queued.extend(runs))
    view.tabs.setCurrentIndex(4)
    view.seeds.seeds.setValue(3)
    QTest.mouseClick(view.seeds.launch, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: bool(queued))
    # Seed 0 of each is there already: it is the run itself.
    assert [(run.name, run.seed) for run in queued] == [
        ("good seed 1", 1),
        ("good seed 2", 2),
        ("bad seed 1", 1),
        ("bad seed 2", 2),
    ]
    workspace = view.context.workspace
    for run in queued:
        workspace.runs.create(run)
    assert seeded(workspace, view.context.selection.runs, 3) == []
    measured(view, qtbot)
    view.context.jobs.poll()
    qtbot.waitUntil(lambda: view.seeds.groups.chosen == ("good*", "bad*"))
    view.seeds.draw(again=True)
    qtbot.waitUntil(lambda: view.seeds.found is not None and not view.seeds.pane.busy)
    assert view.seeds.found.not_counted.startswith(
        "4 runs not counted: good* seed 1, starting; good* seed 2, starting;"
    )


def test_a_group_is_an_arm_or_runs_of_no_experiment_that_differ_in_their_seed(tmp_path: Path):
    workspace = Workspace(tmp_path)
    for name in ("clip-emoji-0", "clip-emoji-1", "clip-emoji-2-2", "resnet-50", "good", "good seed 2"):
        workspace.runs.create(config.Run(name=name))
    run = workspace.runs.create(config.Run(name="duel, CLIP, seed 0"), experiment="duel", arm="CLIP")
    groups = groups_of(workspace.runs.all())
    assert [group.key for group in groups.values()] == [
        *["clip-emoji-*"] * 3,
        "resnet-50*",
        *["good*"] * 2,
        "duel, CLIP",
    ]
    assert [group.words for group in dict.fromkeys(groups.values())] == [
        "clip-emoji",
        "CLIP · resnet-50",
        "CLIP · good",
        "CLIP",
    ]
    assert groups[run].group == "duel"
    again = workspace.runs.create(config.Run(name="again, CLIP, seed 0"), experiment="again", arm="CLIP")
    labels = {number: group.words for number, group in groups_of(workspace.runs.all()).items()}
    assert (labels[run], labels[again]) == ("CLIP · duel", "CLIP · again"), "a closed picker shows no heading"


def test_seeds_that_are_there_under_other_names_are_not_trained_again(tmp_path: Path):
    workspace = Workspace(tmp_path)
    for name, seed in (("clip-emoji-0", 0), ("clip-emoji-1", 1), ("clip-emoji-2-2", 2)):
        workspace.runs.create(config.Run(name=name, seed=seed))
    workspace.runs.create(config.Run(name="other", seed=3, device="cpu"))
    assert [(run.name, run.seed) for run in seeded(workspace, (1,), 5)] == [("clip-emoji-3", 3), ("clip-emoji-4", 4)]


def test_the_groups_proposed_are_compared_when_the_tab_is_opened(seeded_groups: EvaluateView, qtbot: QtBot):
    view = seeded_groups
    view.show()
    view.refresh()
    view.tabs.setCurrentIndex(4)
    qtbot.waitUntil(lambda: view.seeds.found is not None, timeout=20_000)
    assert [group.pattern for group in view.seeds.found.groups] == ["good*", "bad*"]


@pytest.fixture
def seeded_groups(view: EvaluateView) -> EvaluateView:
    """Return four seeds of each run, measured four times: the runs named bad learn faster."""
    workspace = view.context.workspace
    for name, gain in (("good", 0.1), ("bad", 0.2)):
        for seed in range(1, 5):
            run = workspace.runs.create(config.Run(name=f"{name} seed {seed}", seed=seed), status="finished")
            for step in (0, 10, 20, 30):
                value = 0.1 + gain * step / 10 + 0.004 * seed
                found = {"zero_shot_acc1": value, "knn_acc1": 0.5}
                workspace.results.add_evaluation(run, step, "toys", "val", found, ASKED)
    return view


def test_the_fields_of_the_efficiency_have_room_at_1280(seeded_groups: EvaluateView, qtbot: QtBot):
    view = seeded_groups
    view.resize(1040, 640)
    view.show()
    view.tabs.setCurrentIndex(5)
    view.efficiency.groups.choose("good seed*", "bad seed*")
    qtbot.waitUntil(lambda: view.efficiency.chart is not None, timeout=20_000)
    for picker in view.efficiency.groups.pickers:
        needed = picker.fontMetrics().horizontalAdvance("CLOOB shares, emoji-pairs, share .25")
        assert picker.width() > needed + 40
    for picker in (view.efficiency.data, view.efficiency.measure):
        assert picker.fontMetrics().horizontalAdvance(picker.currentText()) < picker.width() - 40
        assert picker.geometry().right() < view.efficiency.width()


def test_groups_are_tested_and_the_better_one_is_strong(seeded_groups: EvaluateView, qtbot: QtBot, tmp_path: Path):
    view = seeded_groups
    view.tabs.setCurrentIndex(4)
    assert view.command() is None
    view.seeds.groups.choose("good seed*", "bad seed*")

    # The first test of groups imports scipy.
    def named() -> list[str]:
        return [group.pattern for group in view.seeds.found.groups] if view.seeds.found else []

    qtbot.waitUntil(lambda: named() == ["good seed*", "bad seed*"], timeout=20_000)
    qtbot.waitUntil(lambda: not view.seeds.pane.busy)
    panel = view.seeds.pane.panel
    assert panel.notes.text().endswith("Holm-corrected over all rows.")
    card = panel.cards["numbers"]
    name = next(line.words for line in card.numbers.lines if line.words.startswith("Zero-shot accuracy"))
    texts = [card.text(name, column) for column in range(4)]
    assert texts == ["41.0 ± 0.5 %", "71.0 ± 0.5 %", "4", "< 0.001"]
    strong = [label.text() for label in card.findChildren(QLabel) if label.property("role") == "strong"]
    assert [text for text in strong if "%" in text] == ["71.0 ± 0.5 %"]
    # What is compared in one pane is what the other one draws.
    assert view.efficiency.groups.chosen == ("good seed*", "bad seed*")
    where = ["--workspace", str(view.context.workspace.folder)]
    files = [tmp_path / name for name in ("g.md", "g.tex", "g.csv", "g.png")]
    assert main([*view.command(), "--records", "--out", *map(str, files), *where]) == 0
    assert "**71.0 ± 0.5 %**" in files[0].read_text(encoding="utf-8")
    assert r"\textbf{71.0 $\pm$ 0.5 \%}" in files[1].read_text(encoding="utf-8")
    assert "p_welch_holm" in files[2].read_text(encoding="utf-8")
    assert files[3].stat().st_size > 5000


def test_curves_over_pairs_seen_are_drawn_for_both_groups(
    seeded_groups: EvaluateView, qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    view = seeded_groups
    view.tabs.setCurrentIndex(5)
    view.efficiency.groups.choose("good seed*", "bad seed*")
    qtbot.waitUntil(
        lambda: view.efficiency.chart is not None and view.efficiency.chart.groups[0].pattern == "good seed*"
    )
    assert not view.shown.isVisible()
    qtbot.waitUntil(lambda: not view.efficiency.pane.busy)
    panel = view.efficiency.pane.panel
    curves = panel.panel.mark("curves").curves
    means = [curve for curve in curves if curve.low is not None]
    assert [curve.tone for curve in means] == ["run_a:0", "run_b:0"]
    assert means[0].x == pytest.approx((0, 1.28, 2.56, 3.84))
    assert means[1].y == pytest.approx((11, 31, 51, 71))
    assert means[0].high[0] > means[0].y[0] > means[0].low[0]
    assert panel.panel.head[0].endswith("n = 60")
    told = panel.notes.text()
    assert told.startswith("good seed* reaches a mean of 41.0 % after 3,840 pairs, bad seed* after 1,920")
    assert "updates x pairs in a batch" in told
    assert "4 seeds" in means[0].name
    measure = view.efficiency.measure
    measure.setCurrentIndex(measure.findText("kNN accuracy of class"))
    measure.activated.emit(measure.currentIndex())
    qtbot.waitUntil(lambda: view.efficiency.chart is not None and view.efficiency.chart.name == "knn_acc1")
    out = tmp_path / "e.csv"
    assert main([*view.command(), "--out", str(out), "--workspace", str(view.context.workspace.folder)]) == 0
    assert "good seed*" in out.read_text(encoding="utf-8")
    monkeypatch.setattr("PySide6.QtWidgets.QInputDialog.getText", lambda *_args, **_more: (" nobody* ", True))
    picker = view.efficiency.groups.pickers[0]
    assert [picker.itemText(row) for row in range(picker.count())] == [
        "Runs",
        "CLIP · good",
        "CLIP · bad",
        "good seed*",
        CUSTOM.words,
    ]
    picker.activated.emit(picker.place_of(None))
    assert picker.currentText() == "nobody*"
    qtbot.waitUntil(lambda: view.efficiency.chart is None)
    assert "No run is called nobody*" in view.efficiency.pane.area.page.text.text()
    assert view.command() is None


def test_the_proposed_groups_are_drawn_by_themselves_and_again_when_others_are_chosen(
    seeded_groups: EvaluateView, qtbot: QtBot
):
    view = seeded_groups
    view.tabs.setCurrentIndex(5)
    drawn_of(view, qtbot, "good*")
    selection = view.context.selection
    selection.run_a, selection.run_b = selection.run_b, selection.run_a
    drawn_of(view, qtbot, "bad*")


def drawn_of(view: EvaluateView, qtbot: QtBot, pattern: str) -> None:
    """Wait until curves with group A `pattern` are drawn."""

    def drawn() -> bool:
        chart = view.efficiency.chart
        return chart is not None and chart.groups[0].pattern == pattern

    qtbot.waitUntil(drawn, timeout=20_000)


def test_one_click_puts_the_group_into_the_real_queue(view: EvaluateView, qtbot: QtBot):
    """With the queue held, nothing trains: the rows are in the queue with their seeds."""
    workspace = view.context.workspace
    queue.choose_slots(workspace, held=True)
    view.tabs.setCurrentIndex(4)
    view.seeds.seeds.setValue(2)
    QTest.mouseClick(view.seeds.launch, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: sum(row.status == "queued" for row in workspace.runs.all()) == 2, timeout=10_000)
    names = {row.name: workspace.runs.config_of(row.id).seed for row in workspace.runs.all() if row.status == "queued"}
    assert names == {"good seed 1": 1, "bad seed 1": 1}
    assert "2 runs queued" in view.status.text()


def test_what_was_not_measured_is_offered_in_its_tab(view: EvaluateView, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch):
    asked: list[Evaluate] = []
    monkeypatch.setattr(view.asking, "ask", asked.append)
    view.tabs.setCurrentIndex(1)
    assert view.protocol.missing.isVisibleTo(view.protocol)
    view.protocol.measure.trigger()
    view.protocol.change(task="retrieval")
    view.protocol.measure.trigger()
    view.choice.measure.trigger()
    assert [question.tasks for question in asked] == [
        ("zero_shot_protocol",),
        ("retrieval_protocol",),
        ("caption_choice",),
    ]
