"""Forms made from the configuration's dataclasses, and the sheet for a new run made of them."""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QComboBox, QLabel, QLineEdit
from pytestqt.qtbot import QtBot

from explorer.event_loop.background import Background
from explorer.views.runs.new_run import NewRun, count_pairs, estimated_steps, fit_command
from explorer.widgets.form import Form
from explorer.widgets.number_box import NumberBox
from explorer.widgets.switch import Switch
from trainer import config

KINDS = [kind for kinds in config.SECTIONS.values() for kind in kinds]
PRESETS = {
    "clip-scenes": config.Run(name="clip"),
    "cloob-scenes": config.Run(name="cloob", objective=config.Cloob()),
}


def another(kind: type, field: dataclasses.Field) -> Any:
    """A valid value that is not the default."""
    hint = config.field_type(kind, field.name)
    if hint is bool:
        return not field.default
    if hint is str:
        return "elsewhere"
    if hint in (int, float):
        low, high = field.metadata.get("low"), field.metadata.get("high")
        return hint(high if high not in (None, field.default) else (low or 0) + 3)
    return get_args(hint)[-1]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_every_section_has_a_form_that_gives_back_its_values(qtbot: QtBot, kind: type):
    form = Form(kind)
    qtbot.addWidget(form)
    assert form.value() == kind()
    changed = kind(**{field.name: another(kind, field) for field in dataclasses.fields(kind)})
    assert changed != kind()
    form.set_value(changed)
    assert form.value() == changed


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_every_field_has_a_labeled_editor_of_its_type(qtbot: QtBot, kind: type):
    form = Form(kind)
    qtbot.addWidget(form)
    for field in dataclasses.fields(kind):
        editor, hint = form.editor(field.name), config.field_type(kind, field.name)
        wanted = {bool: Switch, int: NumberBox, float: NumberBox, str: QLineEdit}.get(hint, QComboBox)
        assert isinstance(editor, wanted), field.name
        assert editor.accessibleName() == field.metadata["label"]
        assert editor.toolTip() == field.metadata["help"]
        assert editor.objectName()


@pytest.mark.parametrize("value", [1 / 0.07, 1e-6, 1e-12, 0.1 + 0.2, 3.0])
def test_a_float_nobody_touched_keeps_all_its_digits(qtbot: QtBot, value: float):
    box = NumberBox(whole=False)
    qtbot.addWidget(box)
    box.set_value(value)
    assert box.value() == value
    assert len(box.text()) <= 12


def test_arrows_step_by_a_tenth_of_the_decade_and_stop_at_the_bounds(qtbot: QtBot):
    box = NumberBox(whole=True, low=2, high=260)
    qtbot.addWidget(box)
    box.set_value(256)
    box.stepUp()
    assert box.value() == 260
    box.set_value(3)
    box.stepDown()
    box.stepDown()
    assert box.value() == 2
    rate = NumberBox(whole=False, low=0.0)
    qtbot.addWidget(rate)
    rate.set_value(0.001)
    rate.stepUp()
    assert rate.value() == 0.0011


def test_letters_are_not_typed_and_a_comma_is_a_point(qtbot: QtBot):
    box = NumberBox(whole=False)
    qtbot.addWidget(box)
    box.show()
    box.lineEdit().clear()
    qtbot.keyClicks(box, "0x,2q5")
    assert box.value() == 0.25


@pytest.fixture
def background(qapp) -> Iterator[Background]:
    made = Background()
    yield made
    made.close()


@pytest.fixture
def sheet(qtbot: QtBot, background: Background) -> NewRun:
    made = NewRun(PRESETS, background)
    qtbot.addWidget(made)
    made.show()
    return made


def problem(sheet: NewRun, section: str, name: str) -> QLabel:
    return next(
        label for label in sheet.section(section).form.findChildren(QLabel) if label.objectName() == f"problem-{name}"
    )


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
    for number in range(600):
        (tmp_path / f"{number}.txt").touch()
    data.form.editor("path").setText(str(tmp_path))
    qtbot.waitUntil(sheet.start.isEnabled)
    # 600 captions, a tenth held out, 4 whole batches of 128, 5 epochs.
    qtbot.waitUntil(lambda: sheet.estimate.text() == "About 20 steps, 4 an epoch, from 540 pairs")


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
    assert sheet.name_field.text() == "clip"
    sheet.preset.setCurrentIndex(1)
    sheet.preset.activated.emit(1)
    assert sheet.name_field.text() == "cloob"
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
    form = Form(config.Table, choosable=frozenset({"caption_column"}))
    qtbot.addWidget(form)
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
    qtbot.waitUntil(lambda: "cannot be seen" in told.text() and not sheet.start.isEnabled())
    assert told.text().isprintable()
    sheet.name_field.setText("x" * 201)
    qtbot.waitUntil(lambda: "at most 200" in told.text())
    sheet.name_field.setText("x" * 200)
    qtbot.waitUntil(sheet.start.isEnabled)
