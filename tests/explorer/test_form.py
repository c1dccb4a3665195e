"""Forms generated from the configuration's dataclasses, and the New run dialog made of them."""

import dataclasses
import re
import shlex
from itertools import pairwise
from pathlib import Path
from typing import Any, get_args

import pytest
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QGuiApplication, QImage, QWheelEvent
from PySide6.QtWidgets import (
    QAbstractSpinBox,
    QApplication,
    QComboBox,
    QLabel,
    QLineEdit,
    QPushButton,
    QScrollArea,
    QWidget,
)
from pytestqt.qtbot import QtBot

from explorer.event_loop.background import Background
from explorer.views.runs.new_run import HIGH_PX, NewRun, count_pairs, fit_command
from explorer.widgets.disclosure_button import DisclosureButton
from explorer.widgets.form import ElidedLine, Form
from explorer.widgets.number_box import NumberBox
from explorer.widgets.still import StillDoubleSpinBox, StillSpinBox
from explorer.widgets.switch import Switch
from tests.explorer.answering_client import SilentClient
from tests.explorer.widgets import add_widget, show_widget
from trainer import config
from trainer.config import default_paths, presets
from trainer.data.folder import folder_sources
from trainer.data.pairs import DataError
from trainer.experiments.experiment import clip_and_cloob
from trainer.messages import Failure, RankDifference, RunCost
from trainer.scheduling.paces import Pace, estimated_steps

KINDS = [kind for kinds in config.SECTIONS.values() for kind in kinds]
PRESETS = {
    "clip-scenes": config.Run(name="clip"),
    "cloob-scenes": config.Run(name="cloob", objective=config.Cloob()),
}


def another(kind: type, field: dataclasses.Field) -> Any:
    """Return a valid value that is not the default."""
    hint = config.field_type(kind, field.name)
    if hint is bool:
        return not field.default
    if hint is str:
        return "elsewhere"
    if hint in (int, float):
        low, high = field.metadata.get("low"), field.metadata.get("high")
        return hint(high if high not in (None, field.default) else (low or 0) + 3)
    return get_args(hint)[-1]


def test_a_path_without_room_is_elided_in_its_middle_until_it_is_edited(dressed: QApplication, qtbot: QtBot) -> None:
    form = show_widget(qtbot, Form(config.Folder, browse={"path": "folder"}))
    line = form.findChild(ElidedLine)
    line.setText("/home/somebody/projects/embeddings/data/clothing-cc0")
    qtbot.waitUntil(lambda: "…" in line.elided)
    assert (line.elided[:4], line.elided[-4:]) == ("/hom", "-cc0")
    line.setText("here")
    assert line.elided == "here"


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_every_section_has_a_form_of_labeled_editors_that_gives_back_its_values(qtbot: QtBot, kind: type):
    form = add_widget(qtbot, Form(kind))
    assert form.value() == kind()
    changed = kind(**{field.name: another(kind, field) for field in dataclasses.fields(kind)})
    assert changed != kind()
    form.set_value(changed)
    assert form.value() == changed
    for field in dataclasses.fields(kind):
        editor, hint = form.editor(field.name), config.field_type(kind, field.name)
        wanted = {bool: Switch, int: NumberBox, float: NumberBox, str: QLineEdit}.get(hint, QComboBox)
        assert isinstance(editor, wanted), field.name
        assert editor.accessibleName() == field.metadata["label"]
        assert editor.toolTip() == field.metadata["help"]
        assert editor.objectName()


@pytest.mark.parametrize("value", [1 / 0.07, 1e-6, 1e-12, 0.1 + 0.2, 3.0])
def test_a_float_nobody_touched_keeps_all_its_digits(qtbot: QtBot, value: float):
    box = add_widget(qtbot, NumberBox(integer=False))
    box.set_value(value)
    assert box.value() == value
    assert len(box.text()) <= 12


def test_arrows_step_by_a_tenth_of_the_decade_and_stop_at_the_bounds(qtbot: QtBot):
    box = add_widget(qtbot, NumberBox(integer=True, low=2, high=260))
    box.set_value(256)
    box.stepUp()
    assert box.value() == 260
    box.set_value(3)
    box.stepDown()
    box.stepDown()
    assert box.value() == 2
    rate = add_widget(qtbot, NumberBox(integer=False, low=0.0))
    rate.set_value(0.001)
    rate.stepUp()
    assert rate.value() == 0.0011


def test_letters_are_not_typed_and_a_comma_is_a_point(qtbot: QtBot):
    box = show_widget(qtbot, NumberBox(integer=False))
    box.lineEdit().clear()
    qtbot.keyClicks(box, "0x,2q5")
    assert box.value() == 0.25


@pytest.fixture
def sheet(qtbot: QtBot, background: Background) -> NewRun:
    return show_widget(qtbot, NewRun(PRESETS, background, taken={"clip"}))


def problem(sheet: NewRun, section: str, name: str) -> QLabel:
    return next(
        label for label in sheet.section(section).form.findChildren(QLabel) if label.objectName() == f"problem-{name}"
    )


def test_tab_goes_through_the_sheet_in_the_order_of_reading(qtbot: QtBot, sheet: NewRun):
    qtbot.waitUntil(sheet.isActiveWindow)
    sheet.section("optimizer").fold.setChecked(False)
    sheet.section("optimizer").fold.setChecked(True)
    sheet.section("model").fold.setChecked(True)
    stops: list[QWidget] = []
    while len(stops) < 200 and (stop := sheet.focusWidget()) not in stops:
        stops.append(stop)
        qtbot.keyClick(stop, Qt.Key.Key_Tab)
    first, content = stops.index(sheet.preset), sheet.findChild(QScrollArea).widget()
    inside = [stop for stop in stops[first:] + stops[:first] if content.isAncestorOf(stop)]

    def follow(before: QWidget, after: QWidget) -> bool:
        a, b = (stop.mapTo(content, stop.rect().center()) for stop in (before, after))
        return b.x() > a.x() if abs(a.y() - b.y()) < 8 else b.y() > a.y()

    # Once the unfolded fields are laid out.
    qtbot.waitUntil(lambda: all(follow(*pair) for pair in pairwise(inside)))


def test_what_one_changes_is_in_sight(sheet: NewRun):
    sheet.resize(sheet.width(), HIGH_PX)  # the screen of the tests is smaller
    form = sheet.section("optimizer").form
    area = sheet.findChild(QScrollArea)
    for editor in (form.editor("batch_size"), form.editor("epochs")):
        assert not editor.visibleRegion().isEmpty()
        assert area.viewport().rect().contains(editor.mapTo(area.viewport(), editor.rect().bottomRight()))


def test_a_value_out_of_range_is_told_under_its_field_and_cannot_start(qtbot: QtBot, sheet: NewRun):
    box = sheet.section("optimizer").form.editor("batch_size")
    box.set_value(1)
    assert not sheet.start.isEnabled(), "Enter must not start what is not checked yet"
    words = problem(sheet, "optimizer", "batch_size")
    qtbot.waitUntil(words.isVisible)
    assert words.text() == "Batch size 1 is too small: choose at least 2."
    assert box.property("invalid")
    box.set_value(64)
    qtbot.waitUntil(sheet.start.isEnabled)
    assert not words.isVisible()


def test_an_empty_number_is_told_and_does_not_become_zero(qtbot: QtBot, sheet: NewRun):
    sheet.section("optimizer").form.editor("epochs").lineEdit().clear()
    words = problem(sheet, "optimizer", "epochs")
    qtbot.waitUntil(words.isVisible)
    assert words.text() == "Epochs: type a whole number."
    assert not sheet.start.isEnabled()


def test_a_problem_in_a_folded_section_unfolds_it(qtbot: QtBot, sheet: NewRun):
    model = sheet.section("model")
    assert not model.fold.isChecked()
    model.form.editor("text_heads").set_value(7)
    words = problem(sheet, "model", "text_heads")
    qtbot.waitUntil(words.isVisible)
    assert "does not divide" in words.text()


def test_a_folder_needs_its_path(qtbot: QtBot, sheet: NewRun, tmp_path: Path):
    data = sheet.section("data")
    data.kind.setCurrentIndex(data.kind.findText(config.Folder.label))
    qtbot.waitUntil(lambda: problem(sheet, "data", "path").isVisible())
    data.form.editor("path").setText(str(tmp_path / "nothere"))
    assert not sheet.start.isEnabled()
    qtbot.waitUntil(lambda: "is not a folder" in problem(sheet, "data", "path").text())
    said = problem(sheet, "data", "path").text()
    with pytest.raises(DataError, match=re.escape(said)):
        folder_sources(str(tmp_path / "nothere"))
    assert not sheet.start.isEnabled(), "the training would end with this sentence"
    sheet.accept()
    assert sheet.isVisible()
    for number in range(600):
        (tmp_path / f"{number}.txt").touch()
    data.form.editor("path").setText(str(tmp_path))
    qtbot.waitUntil(sheet.start.isEnabled)
    # 600 captions, a tenth held out, at least 8 batches in an epoch and 500 steps: as Import and `fit --data` propose.
    qtbot.waitUntil(lambda: sheet.estimate.text() == "504 steps (8 per epoch, about 540 pairs)")
    optimizer = sheet.section("optimizer").form
    assert [optimizer.editor(name).value() for name in ("batch_size", "epochs")] == [64, 63]
    for number in range(300):
        (tmp_path / "more" / f"{number}.txt").parent.mkdir(exist_ok=True)
        (tmp_path / "more" / f"{number}.txt").touch()
    data.form.editor("path").setText(str(tmp_path / "more"))
    qtbot.waitUntil(lambda: sheet.estimate.text() == "504 steps (8 per epoch, about 270 pairs)")
    optimizer.editor("batch_size").set_value(16)
    data.form.editor("path").setText(str(tmp_path))
    qtbot.waitUntil(lambda: sheet.estimate.text().endswith("(50 per epoch, about 810 pairs)"))


def test_enter_starts_what_the_editors_hold(qtbot: QtBot, sheet: NewRun):
    sheet.preset.setCurrentIndex(1)
    sheet.preset.activated.emit(1)
    qtbot.keyClicks(sheet.name_field, "mine")
    sheet.section("objective").form.editor("inv_tau").set_value(20.0)
    qtbot.waitUntil(sheet.start.isEnabled)
    with qtbot.waitSignal(sheet.chosen) as chosen:
        qtbot.keyClick(sheet.name_field, Qt.Key.Key_Return)
    run, preset = chosen.args
    assert run.objective == config.Cloob(inv_tau=20.0)
    assert run.name.endswith("mine")
    assert preset == "cloob-scenes"
    assert not sheet.isVisible()


def test_enter_does_not_start_an_invalid_run_and_escape_closes(qtbot: QtBot, sheet: NewRun):
    chosen: list[object] = []
    sheet.chosen.connect(lambda *words: chosen.append(words))
    sheet.section("optimizer").form.editor("batch_size").set_value(1)
    sheet.accept()
    assert sheet.isVisible()
    qtbot.keyClick(sheet, Qt.Key.Key_Escape)
    assert not sheet.isVisible()
    assert not chosen


def test_another_preset_keeps_a_name_that_was_typed(qtbot: QtBot, sheet: NewRun):
    said = lambda: [label.text() for label in sheet.top.findChildren(QLabel) if "has this name" in label.text()]  # noqa: E731
    assert (sheet.name_field.text(), len(said())) == ("clip", 1)
    sheet.preset.setCurrentIndex(1)
    sheet.preset.activated.emit(1)
    assert (sheet.name_field.text(), len(said())) == ("cloob", 0)
    sheet.name_field.selectAll()
    qtbot.keyClicks(sheet.name_field, "typed")
    sheet.preset.setCurrentIndex(0)
    sheet.preset.activated.emit(0)
    assert sheet.name_field.text() == "typed"
    assert sheet.run().objective == config.Clip()


@pytest.mark.parametrize(
    "run",
    [
        config.Run(name="a b", seed=3),
        config.Run(
            name="x",
            data=config.Table(path="/data/p.tsv", separator="tab", heldout_share=0.2),
            objective=config.Cloob(scale_hopfield=14.0),
            optimizer=config.Optimizer(learning_rate=1e-6, batch_size=8),
            model=config.TinyTowers(image_tower="vit"),
        ),
        config.Run(name="clip", objective=config.Clip(learn_inv_tau=False)),
    ],
)
def test_the_command_fits_the_same_run(run: config.Run):
    words = fit_command(run, "clip-scenes", PRESETS)
    assert words[:3] == ["fit", "--preset", "clip-scenes"]
    again = PRESETS["clip-scenes"]
    assert all(word == "--set" for word in words[3::2])
    for setting in words[4::2]:
        field, _, value = setting.partition("=")
        again = config.replace(again, field, value)
    assert again == run


def test_pretrained_weights_bring_their_optimization_into_the_form(qtbot: QtBot, sheet: NewRun):
    """A rate that was typed stays; without the weights the preset's own values return. The command says the same."""
    model, optimizer = sheet.section("model"), sheet.section("optimizer")
    model.kind.setCurrentIndex(model.kind.findText(config.OpenClip.label))
    assert sheet.run().optimizer == config.Optimizer()
    model.form.editor("pretrained").setText("openai")
    qtbot.waitUntil(lambda: sheet.run().optimizer.learning_rate == 1e-5)
    assert (sheet.run().optimizer.layer_decay, sheet.run().optimizer.warmup_steps) == (0.75, 100)
    words = fit_command(sheet.run(), "clip-scenes", PRESETS)
    assert not any("optimizer" in word for word in words)
    model.form.editor("pretrained").setText("")
    qtbot.waitUntil(lambda: sheet.run().optimizer == config.Optimizer())
    optimizer.set_value(config.Optimizer(learning_rate=3e-4))
    model.form.editor("pretrained").setText("openai")
    qtbot.waitUntil(lambda: sheet.run().optimizer.layer_decay == 0.75)
    assert sheet.run().optimizer.learning_rate == 3e-4
    words = fit_command(sheet.run(), "clip-scenes", PRESETS)
    assert [word for word in words if "optimizer" in word] == ["optimizer.learning_rate=0.0003"]


def test_copy_as_command_copies_it_quoted(qtbot: QtBot, sheet: NewRun):
    sheet.name_field.setText("two words")
    qtbot.mouseClick(sheet.findChild(object, "new-run-copy"), Qt.MouseButton.LeftButton)
    copied = QGuiApplication.clipboard().text()
    assert shlex.split(copied) == ["trainer", "fit", "--preset", "clip-scenes", "--set", "name=two words"]


def test_steps_are_whole_batches_of_every_epoch():
    run = config.Run(optimizer=config.Optimizer(batch_size=100, epochs=3))
    assert estimated_steps(run, 250) == 6
    assert estimated_steps(run, 99) == 0


def test_pairs_of_a_table_are_its_lines(tmp_path: Path):
    table = tmp_path / "pairs.csv"
    table.write_text('filepath,title\na.png,"two\nlines"\nb.png,x\n', encoding="utf-8")
    assert count_pairs(config.Table(path=str(table), heldout_share=0.5)) == 1
    assert count_pairs(config.Table(path=str(tmp_path / "none.csv"))) is None
    assert count_pairs(config.Scenes(train_pairs=99)) == 99


def test_a_choosable_text_offers_what_there_is_and_takes_anything(dressed, qtbot) -> None:
    form = add_widget(qtbot, Form(config.Table, choosable=frozenset({"caption_column"})))
    form.set_choices("caption_column", ["one", "two"])
    assert form.value().caption_column == "title", "offering changes nothing"
    editor = form.editor("caption_column")
    with qtbot.waitSignal(form.changed):
        qtbot.keyClick(editor, Qt.Key.Key_Down)
    assert form.value().caption_column == "one"
    editor.setEditText("three")
    assert form.value().caption_column == "three"
    form.set_value(config.Table(caption_column="two"))
    qtbot.keyClick(editor, Qt.Key.Key_Up)
    assert form.value().caption_column == "one"


def test_a_name_that_cannot_be_seen_gets_its_sentence_and_does_not_start(qtbot: QtBot, sheet: NewRun):
    sheet.name_field.setText("gpj\u202etxt")
    told = sheet.top.findChild(QLabel, "problem-name")
    qtbot.waitUntil(lambda: "invisible characters" in told.text() and not sheet.start.isEnabled())
    assert told.text().isprintable()
    sheet.name_field.setText("x" * 201)
    qtbot.waitUntil(lambda: "at most 200" in told.text())
    sheet.name_field.setText("x" * 200)
    qtbot.waitUntil(sheet.start.isEnabled)


@pytest.fixture
def few(tmp_path: Path) -> config.Folder:
    """Return 42 pairs to train on."""
    for number in range(47):
        (tmp_path / f"{number}.txt").touch()
    return config.Folder(path=str(tmp_path))


def test_what_cloob_does_in_small_batches_is_said_before_it_is_trained(
    qtbot: QtBot, background: Background, few: config.Folder
):
    made = show_widget(qtbot, NewRun(PRESETS, background, data=few, pairs=42))
    run = config.replace(made.run(), "optimizer.batch_size", "4")
    told = []
    for objective in (config.Clip(), config.Cloob(), config.Cloob(retrieval_share=0.5)):
        made.show_run(dataclasses.replace(run, objective=objective))
        told.append("CLOOB may collapse with batches of 4: choose 32" in made.foot.small.text.text())
        assert made.foot.small.isVisible() is told[-1]
    assert told == [False, True, False]
    assert "On 93 photos" in made.foot.small.toolTip(), "the measurement is there"
    made.show_run(dataclasses.replace(run, objective=config.Cloob()))
    qtbot.mouseClick(made.foot.small.button, Qt.MouseButton.LeftButton)
    assert (made.run().optimizer.batch_size, made.run().objective) == (32, config.Cloob())
    qtbot.waitUntil(made.foot.small.isHidden)


def test_too_few_pairs_are_told_at_the_field_and_one_click_mends_them(
    qtbot: QtBot, background: Background, few: config.Folder
):
    made = show_widget(qtbot, NewRun(PRESETS, background, data=few, pairs=None))
    batch, words = made.section("optimizer").form.editor("batch_size"), problem(made, "optimizer", "batch_size")
    qtbot.waitUntil(lambda: batch.value() == 4)
    batch.set_value(128)
    qtbot.waitUntil(words.isVisible)
    assert words.text() == "Batch size 128 is more than the 42 pairs to train on: choose at most 42."
    for button in (made.start, made.foot.queue):
        assert (button.isEnabled(), button.toolTip()) == (False, words.text()), "a disabled button says why"
    assert made.estimate.text() == words.text()
    assert made.foot.repair.text() == "Use batch size 32"
    repair = made.section("optimizer").form.findChild(QPushButton, "repair-batch_size")
    assert repair.text() == "Use batch size 32"
    qtbot.mouseClick(repair, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(made.start.isEnabled)
    assert made.run().optimizer.batch_size == 32
    assert not repair.isVisible()
    assert made.estimate.text() == "50 steps (1 per epoch, about 42 pairs)"


@pytest.mark.parametrize(
    ("kind", "field", "label"),
    [
        (config.Table, "heldout_path", "Held-out table"),
        (config.Folder, "heldout_list", "Held-out list"),
        (config.HubDataset, "heldout_split", "Held-out split"),
    ],
)
def test_a_share_that_a_list_of_validation_pairs_replaces_is_disabled_with_the_reason(
    qtbot: QtBot, dressed, kind: type, field: str, label: str
):
    form = add_widget(qtbot, Form(kind, unused=config.unused_fields))
    share = form.editor("heldout_share")
    notes = lambda: [one.text() for one in form.findChildren(QLabel)]  # noqa: E731
    assert share.isEnabled()
    form.editor(field).setText("there")
    assert not share.isEnabled()
    assert f"Not used: {label} names the held-out pairs." in notes()
    assert form.value() == kind(**{field: "there"}), "its value stays"
    form.editor(field).setText("")
    assert share.isEnabled()
    assert not any("Not used" in note for note in notes())


def test_the_wheel_scrolls_the_form_and_enters_no_field(qtbot: QtBot, sheet: NewRun):
    editors = [*sheet.findChildren(QAbstractSpinBox), *sheet.findChildren(QComboBox)]
    assert len(editors) > 5
    assert [one.objectName() for one in editors if one.focusPolicy() == Qt.FocusPolicy.WheelFocus] == []
    box = sheet.section("optimizer").form.editor("batch_size")
    event = QWheelEvent(
        QPointF(5, 5), QPointF(5, 5), QPoint(), QPoint(0, -120), Qt.MouseButton.NoButton,
        Qt.KeyboardModifier.NoModifier, Qt.ScrollPhase.NoScrollPhase, False,
    )  # fmt: skip
    before = box.value()
    QApplication.sendEvent(box, event)
    assert not event.isAccepted(), "the page scrolls"
    assert box.value() == before


def test_the_foot_mends_what_is_out_of_sight(qtbot: QtBot, sheet: NewRun):
    sheet.section("model").form.editor("text_heads").set_value(7)
    qtbot.waitUntil(sheet.foot.repair.isVisible)
    assert sheet.foot.repair.text() == "Use text heads 8"
    qtbot.mouseClick(sheet.foot.repair, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(sheet.start.isEnabled)
    assert sheet.run().model.text_heads == 8


def test_a_run_is_queued_instead_of_started(qtbot: QtBot, sheet: NewRun):
    started = []
    sheet.chosen.connect(lambda *run: started.append(run))
    with qtbot.waitSignal(sheet.queued) as queued:
        qtbot.mouseClick(sheet.foot.queue, Qt.MouseButton.LeftButton)
    assert queued.args[0] == PRESETS[sheet.preset_name]
    assert started == []
    assert not sheet.isVisible()


COST = RunCost(
    steps=480,
    pairs=12_288,
    step_s=0.5,
    train_s=240.0,
    memory_mib=700.0,
    gpu_mib=None,
    disk_mib=2048.0,
    device="cpu",
)


def test_what_a_run_takes_is_measured_on_request_and_old_once_the_run_is_another(qtbot: QtBot, background: Background):
    client = SilentClient()
    made = add_widget(qtbot, NewRun(PRESETS, background, client=client))
    made.resize(made.width(), HIGH_PX)
    made.show()
    qtbot.waitUntil(lambda: made.estimate.text().endswith("Its time is not known yet: measure three steps."))
    data, optimizer = made.section("data").form, made.section("optimizer").form
    first = [made.section("objective").kind, made.top.editor("seed"), made.section("data").kind]
    for editor in (*first, data.editor("train_pairs"), *map(optimizer.editor, ("batch_size", "epochs"))):
        assert editor.visibleRegion().boundingRect() == editor.rect(), "it is in sight without scrolling"
    qtbot.mouseClick(made.foot.measure, Qt.MouseButton.LeftButton)
    assert config.from_toml(client.questions[0].config) == made.run()
    client.progress(0.5, "step 1 of 3")
    assert made.estimate.text() == "step 1 of 3… 50 %"
    client.done(COST)
    words = "480 steps in about 4 min 00 s on cpu, evaluations on top; 700 MiB memory, 2.0 GiB disk"
    assert made.estimate.text() == words
    assert not made.foot.measure.isVisible()
    qtbot.keyClicks(made.name_field, "other")
    qtbot.waitUntil(made.start.isEnabled)
    assert made.estimate.text() == words, "a name costs nothing"
    made.section("optimizer").form.editor("batch_size").set_value(64)
    qtbot.waitUntil(made.foot.measure.isVisible)
    qtbot.mouseClick(made.foot.measure, Qt.MouseButton.LeftButton)
    client.failed(Failure("memory", "Memory ran out.", "Choose a smaller batch."))
    assert made.estimate.text() == "Could not measure: Memory ran out. Choose a smaller batch."


def test_measuring_ends_with_its_button_and_with_the_form(qtbot: QtBot, background: Background):
    client = SilentClient()
    made = show_widget(qtbot, NewRun(PRESETS, background, client=client))
    for end in (lambda: qtbot.mouseClick(made.foot.stop, Qt.MouseButton.LeftButton), made.reject):
        qtbot.waitUntil(made.foot.measure.isVisible)
        qtbot.mouseClick(made.foot.measure, Qt.MouseButton.LeftButton)
        end()
    assert client.cancelled == [1, 2]


def test_several_processes_are_compared_with_one_on_request(qtbot: QtBot, background: Background):
    client = SilentClient()
    made = show_widget(qtbot, NewRun(PRESETS, background, client=client))
    qtbot.waitUntil(made.foot.measure.isVisible)
    assert not made.foot.check.isVisible(), "one process is like itself"
    made.top.editor("ranks").set_value(2)
    qtbot.waitUntil(made.foot.check.isVisible)
    qtbot.mouseClick(made.foot.check, Qt.MouseButton.LeftButton)
    assert client.questions[0].ranks == 2
    assert config.from_toml(client.questions[0].config).ranks == 2
    client.progress(0.0, "Making updates by 2 processes, then by one")
    assert made.estimate.text() == "Making updates by 2 processes, then by one…"
    text = "2 processes and one made 20 updates of the same batches: equal, no loss differs by one bit."
    client.done(RankDifference(equal=True, text=text))
    assert made.estimate.text() == text
    assert not made.foot.check.isVisible()
    made.top.editor("ranks").set_value(3)
    qtbot.waitUntil(lambda: "ranks" in made.estimate.text() or "Processes" in made.estimate.text())
    assert not made.start.isEnabled(), "three do not divide a batch of 128"


def test_own_presets_are_saved_offered_and_removed(
    qtbot: QtBot, background: Background, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(default_paths, "user_folder", lambda: tmp_path / "user")
    monkeypatch.setattr("PySide6.QtWidgets.QInputDialog.getText", lambda *_args, **_more: ("wide", True))
    made = show_widget(qtbot, NewRun(PRESETS, background))
    made.section("model").form.editor("text_width").set_value(256)
    qtbot.waitUntil(made.start.isEnabled)
    assert not made.remove.isEnabled()
    qtbot.mouseClick(made.save, Qt.MouseButton.LeftButton)
    assert made.preset_name == "wide"
    assert "yours" in made.preset.currentText()
    assert presets.preset("wide").model.text_width == 256
    assert presets.user_presets()["wide"] == made.run()
    assert fit_command(made.run(), "wide", presets.user_presets()) == ["fit", "--preset", "wide"]
    qtbot.mouseClick(made.remove, Qt.MouseButton.LeftButton)
    assert "wide" not in presets.user_presets()
    assert made.preset_name in PRESETS


def test_a_copy_says_what_it_is_a_copy_of(qtbot: QtBot, background: Background):
    choices = PRESETS | {"clip-folder": config.Run(data=config.Folder())}
    run = config.Run(name="cats", data=config.Folder(path="/home/ada/cats"), objective=config.Cloob())
    sheet = add_widget(qtbot, NewRun(choices, background, start_from=run, preset="clip-folder"))
    assert sheet.preset.currentText() == "clip-folder  (CLOOB on cats)"
    assert sheet.preset.itemText(sheet.preset.findData("clip-scenes")) == "clip-scenes  (CLIP on Scenes)"


def test_a_name_that_nobody_typed_follows_the_objective(qtbot: QtBot, background: Background):
    run = config.Run(name="clip-cats", data=config.Folder(path="/home/ada/cats"))
    sheet = add_widget(qtbot, NewRun(PRESETS, background, start_from=run))
    kind = sheet.section("objective").kind
    kind.setCurrentIndex(kind.findData(config.Cloob))
    qtbot.waitUntil(lambda: sheet.run().name == "cloob-cats")
    sheet.name_field.clear()
    qtbot.keyClicks(sheet.name_field, "clip-cats")
    kind.setCurrentIndex(kind.findData(config.Clip))
    qtbot.waitUntil(lambda: sheet.section("objective").value() == config.Clip())
    sheet.accept()
    assert sheet.run().name == "clip-cats"


def test_the_method_of_the_chosen_objective_is_explained_whole(qtbot: QtBot, sheet: NewRun):
    button = sheet.findChild(QPushButton, "new-run-method")
    for objective in config.SECTIONS["objective"]:
        sheet.section("objective").kind.setCurrentIndex(sheet.section("objective").kind.findData(objective))
        qtbot.mouseClick(button, Qt.MouseButton.LeftButton)
        panel = sheet.help_panel
        assert panel is not None
        assert panel.isVisible()
        text = panel.text
        assert objective.paper in text.toPlainText()
        qtbot.keyClick(text, Qt.Key.Key_Escape)
        assert not panel.isVisible()
        assert sheet.isVisible(), "Esc closes the page, not the form"


@pytest.mark.parametrize("kind", [StillSpinBox, StillDoubleSpinBox])
def test_a_number_in_a_box_stands_apart_from_its_edge(qtbot: QtBot, dressed: QApplication, kind: type) -> None:
    box = show_widget(qtbot, kind())
    image = box.grab().toImage().convertToFormat(QImage.Format.Format_RGB32)
    ground, middle = image.pixel(3, image.height() // 2), range(6, image.height() - 6)
    assert all(image.pixel(x, y) == ground for x in range(2, 6) for y in middle)


def test_what_the_views_of_an_objective_look_like_is_shown_in_its_section(qtbot: QtBot, sheet: NewRun):
    """A picture for each augmentation that is on; a slider of the form changes the strip."""
    section = sheet.section("objective")
    section.set_value(config.Clip())
    assert not sheet.views.isVisible()
    section.set_value(config.SimClr(flip=False, rotate=0.5, blur=0.0, gray=0.0))
    qtbot.waitUntil(lambda: bool(sheet.views.row.shown))
    names = [item.words for item in sheet.views.row.shown]
    assert names == [
        "original",
        *["crop, resize"] * 3,
        *(f"rotate {angle}°" for angle in (90, 180, 270)),
        *["color jitter"] * 3,
    ]
    assert sheet.views.isVisible()
    jittered = sheet.views.row.shown[-1].pixmap.toImage()
    section.form.editor("color").set_value(1.0)
    qtbot.waitUntil(lambda: sheet.views.row.shown[-1].pixmap.toImage() != jittered)
    section.form.editor("color").set_value(0.0)
    qtbot.waitUntil(lambda: "color jitter" not in [item.words for item in sheet.views.row.shown])
    section.set_value(config.Clip())
    assert not sheet.views.isVisible()


def test_clip_and_cloob_are_an_entry_that_trains_both(qtbot: QtBot, sheet: NewRun):
    objective = sheet.section("objective")
    entries = [objective.kind.itemText(index) for index in range(4)]
    assert entries == ["CLIP and CLOOB", "Images against captions", "CLIP", "CLOOB"]
    model = objective.kind.model()
    headings = [model.item(row).text() for row in range(model.rowCount()) if not model.item(row).isEnabled()]
    assert headings == list(dict.fromkeys(kind.family for kind in config.SECTIONS["objective"]))
    for _ in entries:
        qtbot.keyClick(objective.kind, Qt.Key.Key_Up)
    assert objective.kind.currentText() == "CLIP and CLOOB"
    qtbot.waitUntil(sheet.both.isHidden)
    assert (sheet.name_field.text(), sheet.name_field.isEnabled()) == ("CLIP + CLOOB on Scenes", False)
    assert sheet.run().name == "clip"
    qtbot.keyClick(objective.kind, Qt.Key.Key_Down)
    assert objective.kind.currentText() == "CLIP"
    qtbot.waitUntil(sheet.both.isVisible)
    assert (sheet.name_field.text(), sheet.name_field.isEnabled()) == ("clip", True)
    qtbot.mouseClick(sheet.both, Qt.MouseButton.LeftButton)
    assert objective.kind.currentText() == "CLIP and CLOOB"
    qtbot.waitUntil(lambda: sheet.pair.isVisible() and sheet.start.isEnabled())
    assert not objective.form.isVisible()
    assert sheet.foot.queue.isHidden()
    sheet.top.editor("seed").set_value(4)
    sheet.pair.seeds.set_value(2)
    qtbot.waitUntil(sheet.start.isEnabled)
    with qtbot.waitSignal(sheet.compared) as compared:
        qtbot.mouseClick(sheet.start, Qt.MouseButton.LeftButton)
    run, seeds = compared.args
    made = clip_and_cloob(run, seeds=seeds)
    assert [arm.run.objective for arm in made.arms] == [config.Clip(), config.Cloob()]
    assert [*made.seeds] == [4, 5]


def test_the_time_is_told_by_an_earlier_run_of_its_kind_and_by_no_other(qtbot: QtBot, background: Background):
    other = dataclasses.replace(PRESETS["clip-scenes"], model=config.TinyTowers(image_tower="vit"))
    paces = (Pace("other", other, 9.0), Pace("CLOOB · s0", PRESETS["cloob-scenes"], 1.25))
    made = add_widget(qtbot, NewRun(PRESETS, background, paces=lambda: paces))
    # The label is not broken between its words.
    qtbot.waitUntil(lambda: made.estimate.text().endswith("about 10 min at the speed of CLOOB\u00a0·\u00a0s0"))
    batch = made.section("optimizer").form.editor("batch_size")
    batch.set_value(64)
    near = "about 10 min at the speed of CLOOB\u00a0·\u00a0s0\u00a0(batch\u00a0128)"
    qtbot.waitUntil(lambda: made.estimate.text().endswith(near))
    batch.set_value(8)
    qtbot.waitUntil(lambda: made.estimate.text().endswith("pairs)"))


def test_a_fold_is_named_by_what_it_holds(qtbot: QtBot):
    titles = []
    for kind in (config.Scenes, config.Clip, config.TinyTowers, config.Optimizer):
        form = add_widget(qtbot, Form(kind))
        titles.append(form.findChild(DisclosureButton).text())
    assert titles == [
        "Drawing seed, co-occurrence and training share",
        "Largest 1/tau and mask duplicates",
        "Patch size, text heads, projection and tokenizer",
        "12 more settings, such as algorithm, cosine cycles and Adam beta 1",
    ]
