"""The Prompts and Inspect views through their real widgets, with vectors made here instead of models."""

import dataclasses
import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QLabel, QLineEdit
from pytestqt.qtbot import QtBot

from explorer import theme
from explorer.intents import ClassifyPictures
from explorer.views.classify.label_form import OF_THE_RUN, OWN, LabelForm
from explorer.views.inspect import InspectView
from explorer.views.prompts import PromptsView
from explorer.views.prompts.playground import FIRST_TEMPLATE, WEIGHT
from explorer.views.prompts.tau_control import STEPS, to_place, to_tau
from explorer.views.view import Context, step_words
from explorer.widgets.elided_label import ElidedLabel
from explorer.widgets.run_badge import RunBadge
from tests.explorer.answering_client import AnsweringClient
from tests.explorer.widgets import add_widget, show_widget
from trainer.charts.class_task import ClassTexts, choice_suite, write_class_texts
from trainer.charts.snapshots import choose_snapshot
from trainer.config import default_paths
from trainer.messages import EmbedAnswer, EmbedClasses, EmbedImages, Failure, Question, Saliency, decode_answer
from trainer.prompt_suites import PromptSuite, lacks_classes
from trainer.store import Workspace
from trainer.store.snapshot_files import read_snapshot


class FakeClient(AnsweringClient):
    """Returns class vectors: each class's mean text, rotated a little more by each further template."""

    def __init__(self, workspace: Workspace, folder: Path) -> None:
        super().__init__()
        self.workspace, self.folder = workspace, folder

    def answer_of(self, question: Any) -> Any:
        return decode_answer(question, self.answer(question))

    def answer(self, question: Question) -> dict[str, Any]:
        if isinstance(question, EmbedClasses):
            return {"file": str(self.classes(question))}
        if isinstance(question, EmbedImages):
            file = self.folder / "image.npy"
            np.save(file, np.eye(8, dtype=np.float32)[:1])
            return {"array": str(file), "images": list(question.images), "unreadable": {}}
        assert isinstance(question, Saliency)
        maps = np.zeros((len(question.runs), question.grid, question.grid), np.float32)
        maps[0, 1, 2], maps[-1, 3, 0] = 0.5, 0.25
        np.save(self.folder / "maps.npy", maps)
        np.save(self.folder / "seen.npy", np.full((16, 16, 3), 90, np.uint8))
        names = {"array": str(self.folder / "maps.npy"), "image": str(self.folder / "seen.npy")}
        return {**names, "cosines": [0.3] * len(maps), "steps": [20] * len(maps)}

    def classes(self, question: EmbedClasses) -> Path:
        chosen = choose_snapshot(self.workspace, self.workspace.runs.get(question.run), step=question.step)
        snapshot, rng = read_snapshot(chosen.folder), np.random.default_rng(0)
        label = np.array(snapshot.items.label)
        means = np.array([snapshot.text[label == name].sum(axis=0) for name in question.labels])
        vectors = np.stack([means + 0.3 * t * rng.normal(size=means.shape) for t in range(len(question.templates))])
        file = self.folder / f"classes-{question.run}.npy"
        texts = ClassTexts(question.run, chosen.step, 12.0, question.labels, question.templates, vectors)
        write_class_texts(file, texts)
        return file


@pytest.fixture
def context(make_context: Callable[[], Context], two_runs: tuple[int, int], tmp_path: Path) -> Context:
    made = make_context()
    made.client.close()
    context = dataclasses.replace(made, client=FakeClient(made.workspace, tmp_path))
    context.jobs.poll()
    context.selection.propose(run_a=two_runs[0], run_b=two_runs[1])
    return context


@pytest.fixture
def prompts(qtbot: QtBot, context: Context) -> PromptsView:
    context.settings.set("classify/suite", "own")
    context.settings.set("classify/labels", "ring, star, heart, cross")
    context.settings.set("classify/templates", "a photo of a {}\na drawing of a {}\n{}")
    view = add_widget(qtbot, PromptsView(context))
    qtbot.addWidget(view.questions)
    view.resize(1100, 720)
    view.show()
    qtbot.waitUntil(lambda: "numbers" in view.calibration.panel.cards and not view.calibration.panel.filling)
    return view


def label(view: PromptsView, words: str) -> str:
    return view.calibration.panel.cards["numbers"].text(words)


def test_the_slider_moves_bars_reliability_and_numbers(qtbot: QtBot, prompts: PromptsView) -> None:
    pane = prompts.calibration
    assert label(prompts, "Temperature, trained") == label(prompts, "Temperature, shown") == "0.0833"
    before, bars = float(label(prompts, "Confidence, shown").split()[0]), pane.bars.columns[0]
    slider = pane.taus[0].slider
    slider.setFocus()
    QTest.keyClick(slider, Qt.Key.Key_End)
    assert pane.taus[0].tau == 1.0
    # The bars follow at once; the diagram's new numbers come from a thread.
    assert max(pane.bars.columns[0].shares) < max(bars.shares)
    assert sum(pane.bars.columns[0].shares) == pytest.approx(1)
    qtbot.waitUntil(lambda: label(prompts, "Temperature, shown") == "1")
    assert float(label(prompts, "Confidence, shown").split()[0]) < before
    assert label(prompts, "Temperature, trained") == "0.0833"
    assert pane.bars.columns[1].shares == prompts.calibration.bars.columns[1].shares
    QTest.mouseClick(pane.taus[0].to_best, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: label(prompts, "NLL, shown") == label(prompts, "NLL, best"))
    assert float(label(prompts, "NLL, shown")) <= float(label(prompts, "NLL, trained"))
    command = prompts.command()
    assert command[:5] == ["export", "calibration", "--runs", "1", "2"]
    assert float(command[command.index("--tau") + 1]) == pytest.approx(pane.taus[0].tau)
    nll = pane.panel.cards["likelihood"].plot.spec
    assert all(nll.y.low <= value <= nll.y.high for curve in nll.curves for value in curve.y), "no curve is cut"
    assert label(prompts, "Calibration error, shown").endswith(" %"), "as Evaluate and reports write it"
    assert "n = 48" in pane.panel.cards["numbers"].title.text()
    assert pane.bars.columns[0].note.startswith("temperature ")
    prompts.resize(2400, 1300)
    qtbot.waitUntil(lambda: pane.bars.width() > 560, timeout=5_000)
    prompts.resize(831, 732)  # beside the labels in a window of 1280x800
    plots = [card.plot for key, card in pane.panel.cards.items() if key != "numbers"]
    qtbot.waitUntil(lambda: min(plot.height() for plot in plots) >= 250)
    prompts.resize(500, 720)
    qtbot.waitUntil(lambda: pane.bars.mapTo(pane, QPoint()).y() > pane.panel.geometry().bottom())
    assert pane.minimumSizeHint().width() <= 430, "at 150 % of 1280 pixels nothing is cut"


def test_a_tau_can_be_typed_and_nonsense_is_marked(prompts: PromptsView) -> None:
    control = prompts.calibration.taus[1]
    control.box.setFocus()
    control.box.selectAll()
    QTest.keyClicks(control.box, "0.5")
    assert control.tau == 0.5
    assert control.slider.value() == to_place(0.5)
    control.box.selectAll()
    QTest.keyClicks(control.box, "7")
    assert control.tau == 0.5
    assert control.box.property("state") == "bad"


@pytest.mark.parametrize("place", [0, 1, 77, 300, STEPS])
def test_places_of_the_slider_and_temperatures_are_one_another(place: int) -> None:
    assert to_place(to_tau(place)) == place


def test_a_weight_changes_the_ensemble_its_confusion_and_the_command(qtbot: QtBot, prompts: PromptsView) -> None:
    prompts.tabs.setCurrentIndex(1)
    ground = prompts.playground
    assert ground.shown_mixture is ground.run.mean
    for row in (FIRST_TEMPLATE, FIRST_TEMPLATE + 1):
        type_into(ground.matrix, row, WEIGHT, "0")
    assert ground.weights == (0, 0, 1)
    # The weights before these may still be on their way from the thread.
    qtbot.waitUntil(lambda: ground.shown_mixture.by_class.tolist() == ground.run.accuracy[2].tolist())
    assert ground.shown_mixture.accuracy == pytest.approx(ground.run.overall[2])
    np.testing.assert_array_equal(ground.confusion.data_shown.values, ground.shown_mixture.confusion)
    assert prompts.command()[-4:] == ["--weights", "0", "0", "1"]
    type_into(ground.matrix, FIRST_TEMPLATE + 2, WEIGHT, "0")  # would leave nothing
    assert ground.weights == (0, 0, 1)
    assert "above 0" in ground.summary.text()
    QTest.mouseClick(ground.equal, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: ground.shown_mixture is ground.run.mean)
    assert "--weights" not in prompts.command()


def test_a_row_shows_that_templates_confusion_and_a_cell_its_images(qtbot: QtBot, prompts: PromptsView) -> None:
    prompts.tabs.setCurrentIndex(1)
    ground = prompts.playground
    QTest.mouseClick(ground.run_buttons.buttons()[1], Qt.MouseButton.LeftButton)
    run = ground.run
    assert run.name == "bad"
    click(ground.matrix, FIRST_TEMPLATE + 2, 1)
    assert ground.shown_mixture.accuracy == pytest.approx(run.overall[2])
    click(ground.confusion, 1, 3)
    expected = np.flatnonzero((run.truth == 1) & (ground.shown_mixture.predicted == 3))
    assert [item.path for item in ground.strip.items] == [run.paths[place] for place in expected]
    assert f"star predicted as cross: {len(expected)} of {np.sum(run.truth == 1)} images" in ground.images_title.text()


def test_words_are_kept_and_labels_that_are_no_classes_are_named(
    qtbot: QtBot, prompts: PromptsView, context: Context
) -> None:
    prompts.questions.write("walrus, otter", "a {}")
    qtbot.waitUntil(lambda: prompts.is_empty)
    prompts.refresh()
    assert (prompts.area.kind, prompts.command()) == ("failed", None)
    prompts.questions.write("ring, star", "a {}")
    qtbot.waitUntil(lambda: not prompts.is_empty)
    qtbot.waitUntil(lambda: context.settings.value("classify/labels") == "ring, star")
    qtbot.waitUntil(lambda: "--labels" in (prompts.command() or []))


def test_data_without_classes_are_no_failure_and_cannot_be_retried(
    qtbot: QtBot, prompts: PromptsView, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trainer.charts.class_task.columns", lambda items: [("label", [""] * len(items.label))])
    prompts.questions.write("ring, star", "a {}")
    qtbot.waitUntil(lambda: prompts.is_empty)
    page = prompts.area.page
    assert (prompts.area.kind, page.title.text()) == ("empty", "No classes to compare with")
    assert page.text.text() == lacks_classes()
    assert [button.text() for button in page.buttons if button.isVisible()] == ["Open Classify"]
    with qtbot.waitSignal(prompts.requested, check_params_cb=lambda intent: intent == ClassifyPictures(())):
        page.button.click()


def test_prompts_shows_the_label_set_of_classify(qtbot: QtBot, prompts: PromptsView, context: Context) -> None:
    classify = add_widget(qtbot, LabelForm(is_whole=False))
    classify.restore(context.settings)
    assert classify.labels == ("ring", "star", "heart", "cross")
    classify.write("ring, star", "a {}")
    for suite, labels in ((OWN, ("ring", "star")), (OF_THE_RUN, choice_suite(context.workspace, 1).classes)):
        classify.choose(suite)
        classify.remember(context.settings)
        prompts.hide()
        prompts.show()
        qtbot.waitUntil(lambda: prompts.questions.labels == labels)  # noqa: B023
        assert prompts.questions.suite == suite


@pytest.mark.parametrize("count", [0, 1_001])
def test_data_without_classes_or_with_too_many_are_told_apart_and_nothing_is_wrong_before_input(
    qtbot: QtBot, context: Context, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    suite = PromptSuite("data", tuple(f"class {number}" for number in range(count)), ("a {}",), "", "")
    monkeypatch.setattr("explorer.views.prompts.view.choice_suite", lambda *_: suite if count else None)
    view = PromptsView(context)
    for widget in (view, view.questions):
        qtbot.addWidget(widget)
        widget.show()
    has = "1,001 classes; 1,000 at most can be classified" if count else "fewer than two classes"
    qtbot.waitUntil(lambda: view.status.text() == f"The data of run A has {has}. Enter your own labels.")
    remark = view.questions.findChild(QLabel, "classifyLabelsRemark")
    assert not remark.isVisible(), "before anything was written"
    view.questions.labels_edit.setPlainText("ring")
    view.questions.labels_edit.setPlainText("")
    qtbot.waitUntil(lambda: remark.text() == "Write at least one label.")


def test_a_dropped_image_is_embedded_and_its_bars_shown(qtbot: QtBot, prompts: PromptsView, context: Context) -> None:
    context.selection.queries = ["/somewhere/cat.png"]
    qtbot.waitUntil(lambda: prompts.calibration.samples.currentText() == "cat.png")
    qtbot.waitUntil(lambda: all(column.shares for column in prompts.calibration.bars.columns))
    images = [question.images for question in context.client.asked if isinstance(question, EmbedImages)]
    assert images[-2:] == [("/somewhere/cat.png",)] * 2


def test_a_picture_whose_file_cannot_be_read_has_the_bars_of_the_snapshot(
    qtbot: QtBot, prompts: PromptsView, context: Context, monkeypatch
) -> None:
    run, bars = prompts.playground.run, prompts.calibration.bars
    answer = EmbedAnswer(array="", images=(), unreadable={run.paths[3]: "cat.png cannot be read."})
    asked = context.client.answer_of
    monkeypatch.setattr(
        context.client, "answer_of", lambda each: answer if isinstance(each, EmbedImages) else asked(each)
    )
    prompts.calibration.sample_chosen.emit(3)
    qtbot.waitUntil(lambda: all(column.shares for column in bars.columns))
    assert prompts.status.text() == "cat.png cannot be read. Its bars are of the embedding in the snapshot."
    texts = np.load(context.client.folder / f"classes-{run.run}.npy").astype(float)
    mean = (texts / np.linalg.norm(texts, axis=-1, keepdims=True)).mean(axis=0)
    logits = 12.0 * (mean / np.linalg.norm(mean, axis=-1, keepdims=True)) @ run.image[3].astype(float)
    shares = dict(zip(bars.names, bars.columns[0].shares, strict=True))
    expected = np.exp(logits) / np.exp(logits).sum()
    assert [shares[name] for name in run.labels] == pytest.approx(expected.tolist(), abs=1e-6)


def test_bars_have_the_colors_of_the_theme_in_use(qtbot: QtBot, prompts: PromptsView, context: Context) -> None:
    context.selection.queries = ["/somewhere/cat.png"]
    qtbot.waitUntil(lambda: all(column.shares for column in prompts.calibration.bars.columns))
    try:
        for mode in ("dark", "light"):
            theme.theme().mode = mode
            colors = [theme.color(column.color, prompts).name() for column in prompts.calibration.bars.columns]
            assert colors == [theme.run_color(0, prompts), theme.run_color(1, prompts)]
    finally:
        theme.theme().mode = "light"


def test_a_picture_dropped_while_the_view_is_open_is_shown_first(
    qtbot: QtBot, prompts: PromptsView, context: Context
) -> None:
    context.selection.queries = ["/somewhere/cat.png"]
    prompts.tabs.setCurrentIndex(1)
    assert prompts.drop_words == "Drop to see its calibrated probabilities"
    prompts.take(["/somewhere/dog.png"])
    assert [str(path) for path in context.selection.queries] == ["/somewhere/dog.png", "/somewhere/cat.png"]
    assert prompts.tabs.currentIndex() == 0
    qtbot.waitUntil(lambda: prompts.calibration.samples.currentText() == "dog.png")
    context.selection.select_runs(None, None)
    assert prompts.drop_words == ""


def test_cancel_ends_the_question_and_says_so(qtbot: QtBot, prompts: PromptsView, context: Context) -> None:
    qtbot.waitUntil(lambda: prompts.area.kind == "ready")
    context.client.answering = False
    prompts.questions.write("ring, star, heart", "a {}")
    qtbot.waitUntil(prompts.working.button.isVisible)
    assert prompts.job_slot.isAncestorOf(prompts.working), "progress and Cancel have one place"
    assert prompts.area.kind == "loading", "the earlier result stays, dimmed"
    qtbot.waitUntil(lambda: len(prompts.asking._open) == 2)
    QTest.mouseClick(prompts.working.button, Qt.MouseButton.LeftButton)
    assert len(context.client.cancelled) == 2
    assert prompts.area.kind == "stale"
    assert "Cancelled" in prompts.area.note.words.text()
    assert not prompts.working.isVisible()


# -- Inspect ---------------------------------------------------------------------------------------------------


@pytest.fixture
def inspect(qtbot: QtBot, context: Context) -> InspectView:
    view = show_widget(qtbot, InspectView(context), 1100, 720)
    qtbot.waitUntil(lambda: bool(view.strip.items) and bool(view.captions.currentText()))
    return view


def test_no_image_is_missed_before_the_pairs_were_read(qtbot: QtBot, context: Context, monkeypatch) -> None:
    asked: list[dict[str, Any]] = []
    monkeypatch.setattr(context.background, "run", lambda *_args, **options: asked.append(options))
    view = show_widget(qtbot, InspectView(context))
    view.refresh()
    assert view.area.kind == "unknown"
    pairs = [options for options in asked if options["key"] == "pairs"]
    pairs[0]["failed"](OSError("the disk is gone"))
    assert view.area.kind == "failed"
    view.refresh()
    assert view.area.kind == "unknown"
    pairs = [options for options in asked if options["key"] == "pairs"]
    assert len(pairs) == 2
    pairs[1]["done"](())
    assert view.area.kind == "empty"


def test_a_caption_is_looked_for_by_both_runs_and_compared(qtbot: QtBot, inspect: InspectView, monkeypatch) -> None:
    def texts() -> list[str]:
        return [label.text() for label in inspect.findChildren(ElidedLabel)]

    qtbot.waitUntil(lambda: texts().count("good") == 1)
    assert "CLIP" in texts()
    monkeypatch.setattr(inspect, "_named", lambda _run: ("CLIP · s0", "clip"))
    inspect.show_now()
    assert "CLIP" not in texts(), "its name says it"
    monkeypatch.undo()
    assert inspect.captions.currentText() == "a red ring, 0"  # its own
    assert inspect.command() is None
    QTest.mouseClick(inspect.show_button, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: inspect.chart is not None)
    chart = inspect.chart
    assert [run.name for run in chart.runs] == ["good", "bad"]
    assert all(badge.isVisible() for badge in inspect.findChildren(RunBadge))
    assert inspect.maps[1].heat.values[1, 2] == pytest.approx(0.5)
    assert inspect.maps[3].heat.values[1, 2] == pytest.approx(-12)  # one cell of 144 by its root mean square
    assert inspect.maps[3].heat.values[3, 0] == pytest.approx(12)
    QTest.mouseMove(inspect.maps[1], inspect.maps[1].rect_of(1, 2).center().toPoint())
    qtbot.waitUntil(lambda: inspect.maps[1].toolTip() == "row 2, column 3: 0.5")
    colors = [
        inspect.maps[at].grab().toImage().pixelColor(inspect.maps[at].rect_of(*cell).center().toPoint())
        for at, cell in ((1, (1, 2)), (2, (3, 0)))
    ]
    assert colors[0].blue() > colors[0].red() + 80, "A's"
    assert colors[1].red() > colors[1].blue() + 80, "B's"
    command = inspect.command()
    assert command[:3] == ["saliency", "1", "2"]
    assert command[command.index("--caption") + 1] == "a red ring, 0"


def test_a_picture_of_the_data_that_was_dropped_first_can_be_computed(qtbot, context: Context, inspect) -> None:
    context.selection.queries = [inspect.strip.items[1].path]
    view = show_widget(qtbot, InspectView(context))
    qtbot.waitUntil(lambda: bool(view.captions.currentText()))
    assert view.show_button.isEnabled()
    assert "Press Enter or Compute" in view.status.text()
    assert "support the caption" in view.maps[1].accessibleName()


def test_a_dropped_picture_is_inspected_where_it_fell(
    qtbot: QtBot, inspect: InspectView, context: Context, tmp_path: Path
) -> None:
    assert inspect.drop_words == "Drop to inspect"
    before, file = len(inspect.strip.items), tmp_path / "dropped.png"
    shutil.copy(inspect.strip.items[0].path, file)
    inspect.take([file])
    assert len(inspect.strip.items) == before + 1
    assert inspect.strip.current == str(file)
    assert context.selection.queries == (file,)
    context.selection.propose(run_a=None, run_b=None)
    assert inspect.drop_words == ""


def test_what_is_computed_goes_on_while_another_view_is_open(qtbot: QtBot, inspect: InspectView) -> None:
    QTest.mouseClick(inspect.show_button, Qt.MouseButton.LeftButton)
    inspect.hide()
    assert inspect.asking.busy
    qtbot.waitUntil(lambda: not inspect.asking.busy)
    inspect.show()
    assert inspect.chart is not None
    assert inspect.maps[1].heat is not None


def test_a_typed_caption_is_kept_and_asked_once(qtbot: QtBot, inspect: InspectView, context: Context) -> None:
    line = inspect.captions.lineEdit()
    line.selectAll()
    QTest.keyClicks(line, "a  cat")
    QTest.keyClick(line, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: inspect.chart is not None)
    assert context.settings.value("inspect/captions") == ["a cat"]
    QTest.keyClick(line, Qt.Key.Key_Return)
    assert len(context.client.asked) == 1
    QTest.mouseClick(inspect.methods.buttons()[1], Qt.MouseButton.LeftButton)
    assert inspect.chart is None
    assert inspect.show_button.isEnabled()


def test_the_sample_is_inspected_at_once(qtbot: QtBot, context: Context, inspect, monkeypatch) -> None:
    context.selection.queries = [inspect.strip.items[1].path]  # its caption comes with the pairs
    monkeypatch.setattr(default_paths, "is_sample", lambda _folder: True)
    view = show_widget(qtbot, InspectView(context), 1100, 720)
    qtbot.waitUntil(lambda: view.chart is not None)


def test_cancel_stops_and_a_failure_is_told(qtbot: QtBot, inspect: InspectView, context: Context) -> None:
    context.client.answering = False
    QTest.mouseClick(inspect.show_button, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: "working" in inspect.working.note.text() and inspect.working.isVisible())
    assert inspect.job_slot.isAncestorOf(inspect.working), "progress has its place in the header"
    assert inspect.answer_area.kind == "ready", "the picture is not dimmed"
    QTest.mouseClick(inspect.working.button, Qt.MouseButton.LeftButton)
    assert context.client.cancelled == [1]
    assert not inspect.working.isVisible()
    context.client.failing = Failure("unreadable", "The file is gone.", "Choose another.")
    QTest.mouseClick(inspect.show_button, Qt.MouseButton.LeftButton)
    area = inspect.answer_area
    qtbot.waitUntil(lambda: area.kind == "failed")
    assert area.page.text.text() == "The file is gone. Choose another."
    context.client.failing, context.client.answering = None, True
    QTest.mouseClick(area.page.button, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: inspect.chart is not None)
    assert area.kind == "ready"


def test_a_bug_is_told_without_its_exception(qtbot: QtBot, inspect: InspectView, context: Context) -> None:
    context.client.failing = Failure("bug", "IndexError: list index out of range", "Ask again.")
    QTest.mouseClick(inspect.show_button, Qt.MouseButton.LeftButton)
    area = inspect.answer_area
    qtbot.waitUntil(lambda: area.kind == "failed")
    assert "IndexError" not in area.page.title.text() + area.page.text.text() + inspect.status.text()
    QTest.mouseClick(area.page.other, Qt.MouseButton.LeftButton)
    assert "IndexError: list index" in QApplication.clipboard().text()


def test_a_question_goes_on_when_inspect_is_left(qtbot: QtBot, inspect: InspectView, context: Context) -> None:
    line = inspect.captions.lineEdit()
    line.selectAll()
    QTest.keyClicks(line, "a cat")
    context.client.answering = False
    QTest.mouseClick(inspect.show_button, Qt.MouseButton.LeftButton)
    asked = inspect.asking.question
    inspect.hide()
    context.jobs.run_ended.emit(SimpleNamespace(id=999))  # some other run ends meanwhile
    inspect._key = None  # and the snapshot is read again
    inspect.show()
    qtbot.waitUntil(lambda: inspect._key is not None)
    qtbot.wait(50)
    assert inspect.asking.busy
    assert inspect.question_now() == asked, "the caption that was typed stays"
    assert context.client.cancelled == []


def click(table: Any, row: int, column: int) -> None:
    index = table.model().index(row, column)
    table.scrollTo(index)
    place: QPoint = table.visualRect(index).center()
    QTest.mouseClick(table.viewport(), Qt.MouseButton.LeftButton, pos=place)


def type_into(table: Any, row: int, column: int, text: str) -> None:
    click(table, row, column)
    QTest.keyClick(table, Qt.Key.Key_F2)
    editor = [found for found in table.findChildren(QLineEdit) if found.isVisible()][-1]
    editor.selectAll()
    QTest.keyClicks(editor, text)
    QTest.keyClick(editor, Qt.Key.Key_Return)
    QApplication.processEvents()


def test_b_is_asked_at_its_own_step(qtbot: QtBot, prompts: PromptsView, inspect: InspectView, context: Context) -> None:
    context.client.answering = False  # an answer after the test would look for its workspace
    context.selection.select_snapshots((1, 20), (2, 10))
    for view in (prompts, inspect):
        view.refresh()
    assert prompts.asking.request.steps == (20, 10)
    assert inspect.question_now().steps == (20, 10)
    assert step_words(context.selection) == ["--step", "20", "10"]
