"""The Classify view: requests, display, and the complete path with real models."""

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from PySide6.QtCore import QDir, QObject, QPoint, Qt, Signal
from PySide6.QtGui import QFontMetrics
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QFileDialog
from pytestqt.qtbot import QtBot

from explorer import theme
from explorer.event_loop.background import Background
from explorer.intents import OpenSample
from explorer.run_control.jobs import Jobs
from explorer.state.selection import Selection
from explorer.state.settings import Settings
from explorer.views.classify import ClassifyView
from explorer.views.classify.label_form import OF_THE_RUN, OWN
from explorer.views.classify.query import Prediction
from explorer.views.classify.truth import TruthPicker, by_name
from explorer.views.classify.verdict import verdict
from explorer.views.prompts import PromptsView
from explorer.views.view import Context
from explorer.widgets.elided_label import ElidedLabel
from explorer.widgets.image_strip import with_share
from tests.explorer.answering_client import AnsweringClient
from tests.explorer.widgets import add_widget, show_widget
from trainer import config, prompt_suites
from trainer.charts.class_task import texts_of_pictures
from trainer.experiments.run_style import styles_of
from trainer.messages import Classify, ClassifyAnswer, Failure, decode_answer
from trainer.store import Items, RunLog, RunRow, SplitKey, Workspace, write_snapshot
from trainer.store.caption_words import write_caption_words
from trainer.store.snapshot_files import snapshot_name


class FakeJobs(QObject):
    runs_changed = Signal(list)
    run_ended = Signal(object)
    snapshots_changed = Signal(int)

    is_read = True
    name_of = Jobs.name_of

    def __init__(self, workspace: Workspace) -> None:
        super().__init__()
        self.runs = tuple(workspace.runs.all())
        self.styles = styles_of(workspace)
        self.done: list[Callable[..., object]] = []

    def run(self, run: int) -> RunRow | None:
        return next((row for row in self.runs if row.id == run), None)

    def do(self, action: Callable[..., object]) -> None:
        self.done.append(action)


class ClassifyingClient(AnsweringClient):
    """Answers by file name: `a-red.png` is red to run 1 and, if `disagree`, blue to run 2."""

    def __init__(self) -> None:
        super().__init__()
        self.failing_runs: dict[int, Failure] = {}
        self.kept: tuple[int, ...] = ()
        """Steps of which there are checkpoints; each run's newest is 40 and its number."""
        self.now = "warm"
        self.warmed: list[tuple[int, ...]] = []

    def state(self, kind: str) -> str:
        return self.now

    def warm_up(self, runs: tuple[int, ...]) -> None:
        self.warmed.append(tuple(runs))

    def answer_of(self, question: Classify) -> ClassifyAnswer | Failure:
        run = question.runs[0]
        if question.step not in (None, *self.kept):
            return Failure("no_checkpoint", f"Run 'one' has no checkpoint at step {question.step}.", "Choose 41.")
        if run in self.failing_runs:
            return self.failing_runs[run]
        images = [path for path in question.images if "broken" not in Path(path).stem]
        rows = []
        for path in images:
            name = "blue" if run == 2 and "disagree" in Path(path).stem else Path(path).stem.rpartition("-")[2]
            top = question.labels.index(name) if name in question.labels else 0
            row = np.full(len(question.labels), 0.1 / max(1, len(question.labels) - 1))
            row[top] = 0.9
            rows.append((row / row.sum()).tolist())
        step = 40 + run if question.step is None else question.step
        said = {
            "step": step,
            "probabilities": rows,
            "cosines": rows,
            "shares": "softmax",
            "inv_tau": 1.0,
            "bias": None,
        }
        unreadable = {path: "The image is damaged: cut short." for path in question.images if path not in images}
        return decode_answer(question, {"runs": {str(run): said}, "images": images, "unreadable": unreadable})


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    workspace = Workspace(tmp_path / "workspace")
    for name in ("one", "two"):
        workspace.runs.create(config.Run(name=name))
    return workspace


@pytest.fixture
def context(qapp: QObject, workspace: Workspace) -> Iterator[Context]:
    background = Background()
    yield Context(
        workspace, Selection(), background, FakeJobs(workspace), ClassifyingClient(), Settings(workspace.folder)
    )
    background.close()


@pytest.fixture
def images(tmp_path: Path) -> dict[str, Path]:
    names = ("a-red", "disagree-red", "a-moon", "broken-one")
    paths = {name: tmp_path / f"{name}.png" for name in names}
    for name, path in paths.items():
        Image.new("RGB", (60, 40), (200, 30, 90)).save(path)
        if name == "broken-one":
            path.write_bytes(path.read_bytes()[:50])
    (tmp_path / "a-red.txt").write_text("a <b>red</b> red", encoding="utf-8")
    return paths


@pytest.fixture
def view(qtbot: QtBot, context: Context) -> ClassifyView:
    context.selection.propose(run_a=1, run_b=2)
    view = add_widget(qtbot, ClassifyView(context))
    qtbot.addWidget(view.questions)
    view.resize(1000, 700)
    view.show()
    qtbot.waitUntil(lambda: bool(view.questions.labels))
    return view


def label(view: ClassifyView, name: str) -> str:
    return view.findChild(QObject, name).text()


def words_under(view: ClassifyView, path: Path) -> list[str]:
    return [f"{line.text}{line.share}" for item in view.strip.items if item.path == str(path) for line in item.lines]


def test_it_begins_with_an_empty_state_and_the_words_that_fit_the_run(view: ClassifyView, context: Context) -> None:
    assert view.is_empty
    assert view.questions.labels == prompt_suites.prompt_suites()["scenes"].classes
    assert context.client.warmed[-1] == (1, 2)
    assert view.command() is None


def of_captions(context: Context, captions: list[str], labels: list[str] | None = None) -> int:
    """Return a run on captioned pairs, with one snapshot; on a folder of the classes `labels`, if given."""
    data = config.Folder(path="/pairs") if labels is None else config.ClassFolder(path="/birds")
    run = context.workspace.runs.create(config.Run(name="pairs", data=data))
    n, name = len(captions), snapshot_name(dataset="pairs", split="heldout", step=4)
    vectors = np.eye(n, 8, dtype=np.float32)
    items = Items(np.arange(n), [f"{i}.png" for i in range(n)], captions, labels or [""] * n, ["heldout"] * n, {})
    with RunLog.claim(context.workspace, run) as log:
        folder, about = log.folder / "snapshots" / name, {"dataset": "pairs", "split": "heldout", "model": "pairs"}
        write_snapshot(folder, image=vectors, text=vectors, items=items, step=4, **about)
        log.snapshot(4, "pairs", "heldout", folder, n, 8)
        log.status("finished")
    return run


@pytest.mark.parametrize(
    ("captions", "labels", "expected", "template"),
    [
        (["a red kite", 'moon, "full"'] * 3, None, ("a red kite", 'moon, "full"'), "{}"),
        (["red kite in the air", "the moon at night"] * 3, None, ("red", "moon", "kite", "night", "air"), "{}"),
        (["a photo of an owl.", "a photo of a crow."] * 2, ["owl", "crow"] * 2, ("crow", "owl"), "a photo of a(n) {}."),
    ],
)
def test_a_run_on_captions_is_asked_its_captions(
    qtbot: QtBot, view: ClassifyView, context: Context, images: dict[str, Path], captions, labels, expected, template
) -> None:
    """The labels come from the run's data, an edited form does not change them back, and an image gets its bars."""
    context.selection.run_a = of_captions(context, captions, labels)
    view.refresh()
    qtbot.waitUntil(lambda: view.questions.labels == expected)
    assert view.questions.templates == (template,)
    assert view.questions.templates_edit.toPlainText() == template
    view.take([images["a-red"]])
    qtbot.waitUntil(lambda: len(view.bars.columns) == 2 and all(column.shares for column in view.bars.columns))
    assert set(view.bars.names) == set(expected)
    assert "Predicting" not in label(view, "classifyVerdict")
    # A change of the font is no change of the text: the labels stay those of the run.
    view.questions.templates_edit.textChanged.emit()
    assert view.questions.suite == OF_THE_RUN


def test_templates_are_folded_until_they_are_asked_for(qtbot: QtBot, view: ClassifyView) -> None:
    form = view.questions
    form.show()
    form.write("red, blue", "a {} scene\na drawing of {}\na picture of {}")
    first = next(label for label in form.findChildren(ElidedLabel) if label.text() == "a {} scene, …")
    assert (form.unfold.text(), first.isVisible(), form.templates_edit.isVisible()) == ("3 templates", True, False)
    form.unfold.click()
    assert (first.isVisible(), form.templates_edit.isVisible()) == (False, True)
    form.write("red, blue", "a {} scene")
    assert (form.unfold.text(), first.text()) == ("1 template", "a {} scene")


def test_a_high_window_has_high_rows_and_files_are_looked_for_where_the_last_were(
    qtbot: QtBot, view: ClassifyView, images: dict[str, Path]
) -> None:
    view.browse()
    dialog = view.findChild(QFileDialog, "classifyFiles")
    assert dialog.directory() == QDir.home()
    folder = next(iter(images.values())).parent
    dialog.setDirectory(str(folder))
    dialog.accepted.emit()
    dialog.close()
    view.browse()
    dialogs = view.findChildren(QFileDialog, "classifyFiles")
    assert QDir(str(folder)) in [dialog.directory() for dialog in dialogs]
    for dialog in dialogs:
        dialog.close()
    view.bars.show_bars(("red", "blue"), ())
    heights = []
    for height in (60, 52 + 2 * 36, 2000):
        view.bars.resize(400, height)
        heights.append(view.bars.row_px)
    assert heights == [32, 36, 40]


def test_a_click_on_the_chip_of_a_label_removes_it(qtbot: QtBot, view: ClassifyView, images: dict[str, Path]) -> None:
    form = view.questions
    view.take([images["a-red"]])
    form.write("red, blue, green", "a {}")
    assert [chip.text() for chip in form.chips if chip.isVisible()] == ["red  ×", "blue  ×", "green  ×"]
    assert not form.labels_edit.isVisible()
    form.chips[1].click()
    qtbot.waitUntil(lambda: form.labels == ("red", "green"))
    assert [chip.text() for chip in form.chips if chip.isVisible()] == ["red  ×", "green  ×"]


def test_waiting_for_the_person_is_said_as_such(
    qtbot: QtBot, view: ClassifyView, context: Context, images: dict[str, Path]
) -> None:
    """A run without any caption: labels are asked for, by name, until some are written; the template is there."""
    context.selection.run_a = context.workspace.runs.create(config.Run(name="new", data=config.Folder(path="/pairs")))
    view.refresh()
    view.take([images["a-red"]])
    words = "Waiting for labels: run A has stored no captions to take them from. Enter some."
    qtbot.waitUntil(lambda: label(view, "classifyVerdict") == words)
    assert view.questions.templates == ("a photo of a(n) {}.",)
    QTest.keyClicks(view.questions.labels_edit, "red, blue")
    qtbot.waitUntil(lambda: view.bars.names == ("red", "blue"))
    view.questions.labels_edit.clear()
    qtbot.waitUntil(lambda: "Waiting for labels: add one above." in label(view, "classifyVerdict"))


def test_labels_are_embedded_before_the_first_drop(qtbot: QtBot, view: ClassifyView, context: Context) -> None:
    qtbot.waitUntil(lambda: len(context.client.asked) == 2)
    qtbot.wait(50)
    assert [(q.runs, q.images) for q in context.client.asked] == [((1,), ()), ((2,), ())]


def test_without_a_run_it_offers_finished_ones(qtbot: QtBot, context: Context) -> None:
    context.jobs.runs = ()
    view = add_widget(qtbot, ClassifyView(context))
    qtbot.addWidget(view.questions)
    view.show()
    assert view.is_empty
    with qtbot.waitSignal(view.requested) as asked:
        qtbot.mouseClick(view.findChild(QObject, "stateButton"), Qt.MouseButton.LeftButton)
    assert asked.args == [OpenSample()]


def test_dropped_images_get_bars_of_both_runs_and_a_verdict(
    qtbot: QtBot, view: ClassifyView, images: dict[str, Path]
) -> None:
    view.take([images["a-red"], images["disagree-red"]])
    assert not view.is_empty
    view.resize(720, 800)
    add = view.findChild(QObject, "classifyAdd")
    before = add.pos()
    qtbot.waitUntil(lambda: len(words_under(view, images["disagree-red"])) == 2)
    view._count.setText(10 * "A right on 5 of 8 · ")
    QApplication.sendPostedEvents()
    assert add.pos() == before, "what is said of the images moves no control"
    count = view._count
    qtbot.waitUntil(lambda: count.fontMetrics().height() < count.heightForWidth(count.width()) <= count.height())
    view._show_strip()
    assert view.strip.current == str(images["a-red"])
    assert label(view, "classifyVerdict") == "Both predict red"
    assert view.bars.names[0] == "red"
    assert [column.title for column in view.bars.columns] == ["CLIP · one", "CLIP · two"]
    assert [column.note for column in view.bars.columns] == ["step 41", "step 42"]
    assert all(column.shares[0] == pytest.approx(0.9) for column in view.bars.columns)
    assert "CLIP · one gives 90.0 % to red" in view.bars.accessibleDescription()
    assert words_under(view, images["disagree-red"]) == ["red 90 %", "blue 90 %"]
    assert [item.mark for item in view.strip.items] == ["equal", "equal-not"], "agreement is not truth"
    assert "A and B agree on 1 of 2" in label(view, "classifyCount")
    view.strip.choose(str(images["disagree-red"]))
    assert label(view, "classifyVerdict") == "A: red, B: blue"


def test_predictions_of_runs_on_different_data_are_not_compared(
    qtbot: QtBot, view: ClassifyView, images: dict[str, Path]
) -> None:
    workspace = view.context.workspace
    for run, data in zip(view.context.selection.runs, ("scenes", "own"), strict=True):
        folder = workspace.runs.get(run).folder / data
        workspace.results.add_snapshot(run, 20, data, "heldout", folder, n=20, d=8)
    view.context.selection.swap()
    view.context.selection.swap()
    view.take([images["a-red"], images["disagree-red"]])
    qtbot.waitUntil(lambda: len(words_under(view, images["disagree-red"])) == 2)
    said = "CLIP · one predicts red; CLIP · two predicts red"
    qtbot.waitUntil(lambda: label(view, "classifyVerdict") == said)
    assert [item.mark for item in view.strip.items] == ["", ""]
    assert label(view, "classifyCount") == "2 images"


def test_check_marks_stand_where_the_right_labels_are_set(
    qtbot: QtBot, view: ClassifyView, context: Context, images: dict[str, Path]
) -> None:
    view.take([images["a-red"], images["disagree-red"]])
    qtbot.waitUntil(lambda: len(words_under(view, images["disagree-red"])) == 2)
    choices = [view.right_label.itemText(row) for row in range(view.right_label.count())]
    assert choices[:2] == ["From file and folder names", f"True label: {view.questions.labels[0]}"]
    view.right_label.activated.emit(0)
    assert [item.mark for item in view.strip.items] == ["check", "equal-not"], "one of two is right"
    assert label(view, "classifyVerdict") == "Both predict red, which is right"
    counted = "2 images · A and B agree on 1 of 2 · A right on 2 of 2 · B right on 1 of 2"
    chance = f" · chance {100 / len(view.questions.labels):.1f} %"
    assert label(view, "classifyCount") == counted + chance
    for run, caption in zip(context.selection.runs, ("a red circle", "a blue circle"), strict=True):
        write_caption_words(context.workspace.runs.get(run).folder, [caption])
    view.refresh()
    guessed = counted.replace("agree on 1 of 2", "agree on 1 of 2 (1 by labels unseen in training)")
    untrained = f"{guessed} (2 by labels unseen in its training){chance}"
    qtbot.waitUntil(lambda: label(view, "classifyCount") == untrained)
    name_b = context.jobs.name_of(context.selection.run_b)
    assert label(view, "classifyVerdict") == (
        f"Both predict red, which is right. Not in the training captions of {name_b}: red"
    )
    view.right_label.activated.emit(1 + view.questions.labels.index("blue"))
    assert view.strip.items[0].mark == "x"
    name_a = context.jobs.name_of(context.selection.run_a)
    assert label(view, "classifyVerdict") == (
        f"Both predict red; true: blue. Not in the training captions of {name_b}: red. "
        f"Not in the training captions of {name_a}: blue"
    )
    picker = TruthPicker(context.settings, list)
    picker.show_labels(("black", "white"), ())
    captions = {"f": "a white heart above a black heart", "s": "a black star below a white one", "o": "a white star"}
    picker.of_data = {path: ("white", caption) for path, caption in captions.items()}
    whys = {path: picker.why(path) for path in captions}
    assert whys == {"f": "from the caption", "s": "its class in the data", "o": ""}
    black = Prediction(("black", "white"), np.array([0.9, 0.1]), np.array([0.3, 0.1]), 20, "softmax")
    outcome = verdict([black, black], ["A", "B"], "white", why=whys["f"])
    assert outcome is not None
    assert outcome.words == "Both predict black; true: white (from the caption)"
    again = TruthPicker(context.settings, list)
    again.show_labels(("blue", "red"), ())
    assert [again.label_of(str(images[name])) for name in ("a-red", "disagree-red")] == ["blue", "red"]
    view.right_label.activated.emit(view.right_label.count() - 1)
    assert view.strip.items[0].mark == "circle-help", "no longer known, and B was never trained on red"
    said = f"Both predict red. Not in the training captions of {name_b}: red"
    assert label(view, "classifyVerdict") == said, "agreement on an unseen word is no evidence"


@pytest.mark.parametrize(
    ("path", "label_of"),
    [
        ("x/black_cat-01.png", "black cat"),
        ("cat/0001.png", "cat"),
        ("x/caterpillar.png", ""),
        ("dog/cat and dog.png", "dog"),
    ],
)
def test_a_name_says_the_label_whose_words_it_holds(path: str, label_of: str) -> None:
    assert by_name(path, ("cat", "black cat", "dog")) == label_of


def test_the_dropped_image_is_asked_first_and_alone(
    qtbot: QtBot, view: ClassifyView, context: Context, images: dict[str, Path]
) -> None:
    view.take([images["a-red"]])
    qtbot.waitUntil(lambda: len(words_under(view, images["a-red"])) == 2)
    before = len(context.client.asked)
    view.take([images["a-moon"], images["disagree-red"]])
    qtbot.waitUntil(lambda: len(words_under(view, images["disagree-red"])) == 2)
    asked = [(q.runs[0], [Path(p).stem for p in q.images]) for q in context.client.asked[before:]]
    assert asked[:2] == [(1, ["a-moon"]), (2, ["a-moon"])]
    assert sorted(asked[2:]) == [(1, ["disagree-red"]), (2, ["disagree-red"])]


def test_a_broken_image_is_named_and_the_others_answered(
    qtbot: QtBot, view: ClassifyView, images: dict[str, Path]
) -> None:
    view.take([images["broken-one"], images["a-moon"]])
    qtbot.waitUntil(lambda: len(words_under(view, images["a-moon"])) == 2)
    assert view.strip.items[0].problem == "Cannot be read"
    assert "cut short" in label(view, "classifyVerdict")
    assert view.bars.columns == ()
    assert "1 could not be read" in label(view, "classifyCount")


def test_a_run_that_cannot_answer_says_why_and_the_other_answers(
    qtbot: QtBot, view: ClassifyView, context: Context, images: dict[str, Path]
) -> None:
    context.client.failing_runs[2] = Failure("no_checkpoint", "Run 'two' has no checkpoint yet.", "Wait.")
    view.take([images["a-red"]])
    qtbot.waitUntil(lambda: bool(view.asking.trouble(2)) and bool(words_under(view, images["a-red"])))
    assert label(view, "classifyVerdict") == "CLIP · one predicts red"
    assert view.bars.columns[1].note == "Run 'two' has no checkpoint yet. Wait."
    assert view.bars.columns[1].shares == ()


def test_warming_up_is_shown_until_the_first_answer(
    qtbot: QtBot, view: ClassifyView, context: Context, images: dict[str, Path]
) -> None:
    context.client.answering, context.client.now = False, "warming"
    view.take([images["a-red"]])
    assert label(view, "classifyVerdict") == "Loading the models…"
    context.client.now = "busy"
    context.client.state_changed.emit("models", "busy")
    assert label(view, "classifyVerdict") == "Predicting…"


def test_editing_asks_once_after_the_last_key_and_cancels_the_old_question(
    qtbot: QtBot, view: ClassifyView, context: Context, images: dict[str, Path]
) -> None:
    view.take([images["a-red"]])
    qtbot.waitUntil(lambda: len(words_under(view, images["a-red"])) == 2)
    before = len(context.client.asked)
    view.questions.labels_edit.setPlainText("")
    QTest.keyClicks(view.questions.labels_edit, "red, blue, red")
    assert len(context.client.asked) == before
    assert view.questions.suite == OWN
    qtbot.waitUntil(lambda: view.bars.names == ("red", "blue"))
    new = context.client.asked[before:]
    assert {q.labels for q in new} == {("red", "blue")}
    assert len(new) == 2
    assert "1 double label" in label(view, "classifyLabelsRemark")
    view.questions.templates_edit.setPlainText("no place")
    qtbot.waitUntil(lambda: view.questions.templates == ())
    assert "Enter labels and templates" in label(view, "classifyVerdict") or view.asking.is_stale(view.strip.current)
    assert view.command() is None


def test_own_words_are_remembered(qtbot: QtBot, view: ClassifyView, context: Context) -> None:
    view.questions.labels_edit.setPlainText("cat, dog")
    view.questions.templates_edit.setPlainText("a {} in the rain")
    qtbot.waitUntil(lambda: view.questions.labels == ("cat", "dog"))
    again = show_widget(qtbot, ClassifyView(context))
    assert again.questions.suite == OWN
    assert (again.questions.labels, again.questions.templates) == (("cat", "dog"), ("a {} in the rain",))
    again.questions.suites.setCurrentIndex(again.questions.suites.findData("scenes"))
    again.questions.suites.activated.emit(again.questions.suites.currentIndex())
    assert again.questions.labels == prompt_suites.prompt_suites()["scenes"].classes


def test_a_long_label_of_the_strip_is_cut_and_its_share_is_not(dressed):
    metrics = QFontMetrics(theme.pixel_font(theme.SMALL_PX))
    room = metrics.horizontalAdvance("turquoise square > 99 %") - 20
    for label in ("turquoise square", "turquoise circle", "turquoise > ring"):
        for share in (" > 99 %", " 7 %", " 100 %"):
            shown = with_share(metrics, label, share, room)
            assert shown.endswith(share)
            assert metrics.horizontalAdvance(shown) <= room
    cut = {with_share(metrics, f"turquoise {shape}", " > 99 %", room) for shape in ("square", "circle")}
    assert len(cut) == 2, "two labels read differently"
    assert with_share(metrics, "a cosine", ", cosine 0.123", 400) == "a cosine, cosine 0.123"


def test_the_keyboard_moves_along_the_strip_and_removes_with_undo(
    qtbot: QtBot, view: ClassifyView, context: Context, images: dict[str, Path]
) -> None:
    view.take([images["a-red"], images["a-moon"], images["disagree-red"]])
    QTest.keyClick(view.strip, Qt.Key.Key_Right)
    assert view.strip.current == str(images["a-moon"])
    QTest.keyClick(view.strip, Qt.Key.Key_Delete)
    assert [Path(p).stem for p in context.selection.queries] == ["a-red", "disagree-red"]
    assert view.strip.current == str(images["disagree-red"])
    context.selection.undo.undo()
    assert [Path(item.path).stem for item in view.strip.items] == ["a-red", "a-moon", "disagree-red"]
    for _ in range(3):
        QTest.keyClick(view.strip, Qt.Key.Key_Delete)
    assert view.is_empty


def test_the_caption_beside_the_image_is_shown_as_plain_text(
    qtbot: QtBot, view: ClassifyView, images: dict[str, Path]
) -> None:
    view.take([images["a-red"]])
    qtbot.waitUntil(lambda: label(view, "classifyCaption") == "Its caption: a <b>red</b> red")
    assert view.sight.caption.textFormat() == Qt.TextFormat.PlainText
    assert view.sight.picture.pixmap is not None
    assert (view.sight.picture.pixmap.width(), view.sight.picture.pixmap.height()) == (60, 40)


def test_choosing_other_runs_asks_them(
    qtbot: QtBot, view: ClassifyView, context: Context, images: dict[str, Path]
) -> None:
    view.take([images["disagree-red"]])
    qtbot.waitUntil(lambda: len(words_under(view, images["disagree-red"])) == 2)
    context.selection.select_runs(2, None)
    qtbot.waitUntil(lambda: words_under(view, images["disagree-red"]) == ["blue 90 %"])
    assert [column.title for column in view.bars.columns] == ["CLIP · two"]
    assert label(view, "classifyVerdict") == "CLIP · two predicts blue"


def test_the_checkpoints_of_the_chosen_steps_answer(
    qtbot: QtBot, view: ClassifyView, context: Context, images: dict[str, Path]
) -> None:
    context.client.kept = (10, 20)
    view.take([images["disagree-red"]])
    qtbot.waitUntil(lambda: len(words_under(view, images["disagree-red"])) == 2)
    context.selection.step = 10
    qtbot.waitUntil(lambda: [column.note for column in view.bars.columns] == ["step 10", "step 10"])
    assert view.command()[2:7] == ["--runs", "1", "2", "--step", "10"]
    context.selection.select_snapshots((1, 20), (2, 10))
    qtbot.waitUntil(lambda: [column.note for column in view.bars.columns] == ["step 20", "step 10"])
    assert words_under(view, images["disagree-red"]) == ["red 90 %", "blue 90 %"]
    assert view.command()[2:8] == ["--runs", "1", "2", "--step", "20", "10"]


def test_one_run_at_two_steps_answers_twice(
    qtbot: QtBot, view: ClassifyView, context: Context, images: dict[str, Path]
) -> None:
    context.client.kept = (10, 20)
    context.selection.select_snapshots((2, 10), (2, 20))
    view.take([images["disagree-red"]])
    qtbot.waitUntil(lambda: len(words_under(view, images["disagree-red"])) == 2)
    assert [column.title for column in view.bars.columns] == ["CLIP · two, step 10", "CLIP · two, step 20"]
    assert len({column.color for column in view.bars.columns}) == 2
    assert view.command()[2:7] == ["--runs", "2", "--step", "10", "20"]
    context.selection.select_snapshots((2, 10), (2, 30))
    qtbot.waitUntil(lambda: [column.note for column in view.bars.columns][1:] == ["step 42 (30 not kept)"])
    assert [column.title for column in view.bars.columns] == ["CLIP · two, step 10", "CLIP · two, last step"]


def test_where_the_checkpoint_of_a_step_is_gone_the_newest_answers_and_it_is_said(
    qtbot: QtBot, view: ClassifyView, context: Context, images: dict[str, Path]
) -> None:
    context.client.kept = (20,)
    context.selection.select_snapshots((1, 10), (2, 20))
    view.take([images["a-red"]])
    qtbot.waitUntil(lambda: len(words_under(view, images["a-red"])) == 2)
    notes = [column.note for column in view.bars.columns]
    assert notes == ["step 41 (10 not kept)", "step 20"]
    assert view.command()[2:8] == ["--runs", "1", "2", "--step", "last", "20"], "the same numbers as shown"
    asked = len(context.client.asked)
    view.take([images["a-moon"]])
    qtbot.waitUntil(lambda: len(words_under(view, images["a-moon"])) == 2)
    assert [question.step for question in context.client.asked[asked:]] == [None, 20], "it is not asked for again"
    context.client.failing_runs[1] = Failure("no_checkpoint", "Run 'one' has no checkpoint yet.", "Wait.")
    view.asking.ask_again()
    qtbot.waitUntil(lambda: bool(view.asking.trouble(1, 10)))
    assert view.bars.columns[0].note == "Run 'one' has no checkpoint yet. Wait."


def test_all_added_images_are_scrolled_to_if_they_have_room(view: ClassifyView, images: dict[str, Path]) -> None:
    view.resize(700, 700)
    view.take([f"/none/{number}.png" for number in range(20)])
    view.take([f"/new/{number}.png" for number in range(3)])
    assert view.strip.current == "/new/0.png"
    seen = view.strip.viewport().rect()
    rects = [view.strip.visualRect(view.strip.model().index(row)) for row in (20, 21, 22)]
    assert all(seen.contains(rect.center()) for rect in rects)


def test_the_strip_draws_only_what_is_in_sight(qtbot: QtBot, view: ClassifyView, tmp_path: Path) -> None:
    decoded: list[str] = []
    decode = view.pictures.decode
    view.pictures.decode = lambda path, edge: (decoded.append(str(path)), decode(path, edge))[1]
    paths = [tmp_path / f"many-{i}.png" for i in range(400)]
    for path in paths:
        Image.new("RGB", (8, 8)).save(path)
    view.take(paths)
    qtbot.waitUntil(lambda: len(decoded) > 3)
    view.strip.grab()
    qtbot.wait(100)
    assert len(decoded) < 40


def test_the_command_says_what_the_view_shows(qtbot: QtBot, view: ClassifyView, images: dict[str, Path]) -> None:
    view.take([images["a-red"], images["a-moon"]])
    view.strip.choose(str(images["a-moon"]))
    first, second = str(images["a-moon"]), str(images["a-red"])
    asked = ["--labels", *view.questions.labels, "--templates", *view.questions.templates]
    assert view.command() == ["classify", first, second, "--runs", "1", "2", *asked]
    view.questions.choose("scenes")
    assert view.command() == ["classify", first, second, "--runs", "1", "2", "--suite", "scenes"]


def test_labels_are_hidden_while_there_is_no_run(make_context, qtbot: QtBot) -> None:
    context = make_context()
    for made in (ClassifyView(context), PromptsView(context)):
        qtbot.addWidget(made)
        made.refresh()
        assert made.details() is None
        context.selection.select_runs(1, None)
        made.questions.edit.setChecked(True)
        assert made.details() is made.questions
        context.selection.select_runs(None, None)


def test_labels_stand_above_the_results_and_are_edited_beside_them_on_demand(
    qtbot: QtBot, view: ClassifyView, images: dict[str, Path]
) -> None:
    view.take([images["a-red"]])
    view.questions.write("red, blue, green", "a {}")
    chips = [chip for chip in view.questions.chips if chip.isVisible()]
    assert [chip.text() for chip in chips] == ["red  ×", "blue  ×", "green  ×"]
    assert chips[0].mapTo(view, QPoint()).y() < view.splitter.mapTo(view, QPoint()).y()
    assert view.details() is None
    with qtbot.waitSignal(view.details_changed):
        qtbot.mouseClick(view.questions.edit, Qt.MouseButton.LeftButton)
    assert view.details() is view.questions
    view.questions.labels_edit.setPlainText("red, red")
    remark = view.questions.chip_bar.findChild(QObject, "classifyLabelsRemark")
    qtbot.waitUntil(lambda: remark.isVisible() and "1 double label" in remark.text())


def test_a_line_behind_the_chips_adds_labels_and_refuses_a_double_one(
    qtbot: QtBot, view: ClassifyView, images: dict[str, Path]
) -> None:
    view.take([images["a-red"]])
    view.questions.choose(OWN)
    view.questions.write("red, blue", "a {}")
    line = view.questions.new_label
    chip = view.questions.chips[1]
    qtbot.waitUntil(lambda: line.isVisible() and line.x() > chip.x())
    qtbot.keyClicks(line, "moon, tent")
    qtbot.keyClick(line, Qt.Key.Key_Return)
    assert view.questions.labels == ("red", "blue", "moon", "tent")
    assert view.questions.suite == OWN
    chips = [chip for chip in view.questions.chips if chip.isVisible()]
    assert (len(chips), line.text()) == (4, "")
    qtbot.keyClicks(line, "blue, sun")
    qtbot.keyClick(line, Qt.Key.Key_Return)
    assert view.questions.labels == ("red", "blue", "moon", "tent", "sun")
    assert label(view, "classifyLabelsRemark") == "blue is a label already."
    qtbot.keyClicks(line, "half")
    qtbot.keyClick(line, Qt.Key.Key_Escape)
    assert line.text() == ""


def test_pictures_of_the_data_fill_an_empty_view_disputed_ones_first(
    qtbot: QtBot, view: ClassifyView, context: Context, tmp_path: Path
) -> None:
    n = 12
    paths = [tmp_path / f"held-{place:02}.png" for place in range(n)]
    for path in paths:
        Image.new("RGB", (8, 8), (200, 30, 90)).save(path)
    vectors = np.eye(2, dtype=np.float32)[np.arange(n) % 2]
    names = [("red", "blue")[place % 2] for place in range(n)]
    items = Items(np.arange(n), [*map(str, paths)], names, names, ["test"] * n, {})
    for run in (1, 2):
        pictures = vectors.copy()
        if run == 2:
            pictures[[5, 9]] = pictures[[4, 8]]
        with RunLog.claim(context.workspace, run) as log:
            folder = log.folder / "snapshots" / snapshot_name(dataset="own", split="test", step=4)
            about = {"dataset": "own", "split": "test", "model": "own"}
            write_snapshot(folder, image=pictures, text=vectors, items=items, step=4, **about)
            log.snapshot(4, "own", "test", folder, n, 2)
            # More pairs, of the split that is not looked at.
            others = Items(np.arange(2 * n), [str(paths[0])] * 2 * n, names * 2, names * 2, ["train"] * 2 * n, {})
            folder = log.folder / "snapshots" / snapshot_name(dataset="own", split="train", step=4)
            twice = np.tile(vectors, (2, 1))
            write_snapshot(folder, image=twice, text=twice, items=others, step=4, **(about | {"split": "train"}))
            log.snapshot(4, "own", "train", folder, 2 * n, 2)
            log.status("finished")
    context.selection.dataset = SplitKey("own", "test")
    assert view.area.page.button.text() == "Use pictures of the data"
    qtbot.mouseClick(view.area.page.button, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: len(context.selection.queries) == 8)
    assert [*context.selection.queries[:2]] == [paths[5], paths[9]]
    said = "8 images, some picked because the runs disagree"
    qtbot.waitUntil(lambda: label(view, "classifyCount").startswith(said))
    context.selection.dataset = SplitKey("own", "train")
    qtbot.waitUntil(lambda: context.selection.queries == (paths[0],), timeout=5000)
    context.selection.dataset = SplitKey("own", "test")
    qtbot.waitUntil(lambda: len(context.selection.queries) == 8, timeout=5000)
    mine = tmp_path / "mine.png"
    Image.new("RGB", (8, 8)).save(mine)
    view.take([mine])
    context.selection.dataset = SplitKey("own", "train")
    assert len(context.selection.queries) == 9, "an image of one's own stays"
    assert "picked" not in label(view, "classifyCount")
    context.selection.dataset = SplitKey("own", "test")
    context.selection.queries = context.selection.queries[:8]
    view.strip.choose(str(paths[5]))
    # Their class is known: 5 and 9 are blue, and the fake runs, which know only names of files, predict another.
    view.questions.choose(OWN)  # as by typing: the labels of run A, read later, do not replace them
    view.questions.write("red, blue", "")
    qtbot.waitUntil(lambda: view.strip.items[0].mark == "x")
    assert label(view, "classifyVerdict") == "Both predict red; true: blue"
    view.questions.write("green, a blue", "")
    qtbot.waitUntil(lambda: view.strip.items[0].mark == "equal", timeout=5000)
    assert not view.right_label.label_of(str(paths[5])), "its caption holds none of these labels"
    assert texts_of_pictures(context.workspace, 1, [str(path) for path in paths[:2]]) == {
        str(paths[0]): ("", ""),  # the other split has it with several captions
        str(paths[1]): ("blue", "blue"),
    }


def test_words_that_no_training_caption_holds_are_underlined_with_their_count(
    qtbot: QtBot, view: ClassifyView, context: Context, images: dict[str, Path]
) -> None:
    for run in context.selection.runs:
        row = context.jobs.run(run)
        assert row is not None
        write_caption_words(row.folder, ["a red circle", "a Blue square", "a blue square"])
    view.take([images["a-red"]])
    view.questions.choose("own")
    view.questions.write("red, tent, blue", "a photo of a(n) {}")
    view.refresh()
    qtbot.waitUntil(lambda: "0 of 3 training captions" in label(view, "classifyUnseen"), timeout=10_000)
    assert "contain tent, photo, of." in label(view, "classifyUnseen")
    assert view.questions.unseen_words("Red tent") == ("tent",)
    chips = view.questions.chips[:3]
    assert [chip.font().underline() for chip in chips] == [False, True, False]
    assert chips[1].toolTip() == "No training caption contains tent. Click to remove this label"
    block = view.questions.labels_edit.document().firstBlock()
    marked = [(part.start, part.length) for part in block.layout().formats()]
    assert marked == [(5, 4)], "the word tent alone has a wavy line"
    view.questions.write("red, blue", "{}")
    assert label(view, "classifyUnseen") == ""


def test_tab_goes_through_the_labels_before_the_pictures(
    qtbot: QtBot, view: ClassifyView, images: dict[str, Path]
) -> None:
    view.take([images["a-red"]])
    view.questions.choose("own")
    view.questions.write("red, tent, blue", "{}")
    chips = view.questions.chips
    qtbot.waitUntil(lambda: sum(chip.isVisible() for chip in chips) == 3, timeout=10_000)
    seen, widget = [], chips[0]
    while widget is not view.strip and len(seen) < 400:
        seen.append(widget)
        widget = widget.nextInFocusChain()
    assert widget is view.strip, "before the chain is once around"
    stops = [*chips, view.questions.new_label]
    assert [each for each in seen if each in stops] == stops


def test_words_of_captions_are_read_again_when_the_data_of_a_run_change(
    qtbot: QtBot, view: ClassifyView, context: Context, images: dict[str, Path]
) -> None:
    rows = [context.jobs.run(run) for run in context.selection.runs]
    for row in rows:
        write_caption_words(row.folder, ["a red circle"])
    view.take([images["a-red"]])
    view.questions.choose("own")
    view.questions.write("red, tent", "{}")
    view.refresh()
    qtbot.waitUntil(lambda: view.questions.unseen_words("red tent") == ("tent",), timeout=10_000)
    for row in rows:
        (row.folder / "caption_words.json").unlink()
        write_caption_words(row.folder, ["a red tent"])
    context.jobs.snapshots_changed.emit(rows[0].id)  # no view is left, opened or asked again
    qtbot.waitUntil(lambda: view.questions.unseen_words("red tent") == (), timeout=10_000)


def test_two_runs_of_one_name_have_each_their_own_training_captions(
    qtbot: QtBot, view: ClassifyView, context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(view, "_name", lambda _side: "CLIP")
    for run, caption in zip(context.selection.runs, ("a red tent", "a blue ring"), strict=True):
        row = context.jobs.run(run)
        assert row is not None
        write_caption_words(row.folder, [caption])

    def unseen() -> tuple[str, ...]:
        view.refresh()  # a reading that began before the captions were written found none: they are read again
        return view.questions.unseen_words("red blue green")

    qtbot.waitUntil(lambda: unseen() == ("green",), timeout=10_000)
