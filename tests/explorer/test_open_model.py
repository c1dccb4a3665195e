"""Opening a published model through the window: dropped, chosen, refused, and as a command."""

from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel, QPushButton

from explorer.import_sheet.dropped_files import dropped
from explorer.window import open_sheet
from explorer.window.open_model_sheet import OpenModelSheet
from explorer.window.open_sheet import start_opening
from tests.explorer.dropped_files import mime_of
from tests.explorer.widgets import add_widget, show_widget
from trainer.distribution.published_models import FIRST
from trainer.errors import UserError


@pytest.fixture
def hub(tmp_path: Path) -> Path:
    folder = tmp_path / "hub"
    folder.mkdir()
    (folder / "open_clip_config.json").write_text("{}")
    return folder


@pytest.fixture
def open_clip_run(tmp_path: Path) -> Path:
    folder = tmp_path / "2024-run"
    (folder / "checkpoints").mkdir(parents=True)
    (folder / "checkpoints" / "epoch_3.pt").touch()
    return folder


def test_a_model_is_taken_by_itself_only(qapp, tmp_path, hub, open_clip_run):
    file, picture = tmp_path / "m.safetensors", tmp_path / "p.png"
    file.touch()
    picture.touch()
    for model in (hub, open_clip_run, file):
        assert dropped(mime_of(model)).model == model
    both = dropped(mime_of(file, picture))
    assert (both.model, both.paths) == (None, (picture,))
    assert "drop it by itself" in both.refused
    assert dropped(mime_of(tmp_path)).model is None
    assert dropped(mime_of(tmp_path)).data == str(tmp_path)


@pytest.fixture
def sheet(dressed, background, qtbot, tmp_path, hub):
    return show_widget(qtbot, OpenModelSheet(tmp_path / "workspace", background, model=str(hub)))


def _note(sheet: OpenModelSheet) -> QLabel:
    return sheet.findChild(QLabel, "open-model-note")


def test_the_sheet_says_the_command_and_opens_with_enter(sheet, qtbot, monkeypatch, hub):
    asked: list[list[str]] = []
    monkeypatch.setattr(open_sheet, "start_opening", lambda workspace, words: asked.append(words) or 7)
    assert sheet.command() == ["open", str(hub)]
    qtbot.keyClicks(sheet.name, "mine")
    with qtbot.waitSignal(sheet.opened) as opened:
        qtbot.keyClick(sheet.name, Qt.Key.Key_Return)
    assert opened.args == [7]
    assert asked == [["open", str(hub), "--name", "mine"]]
    assert sheet.isHidden()


def test_a_published_model_is_chosen_with_its_size_and_license(sheet, dressed, background, qtbot, tmp_path):
    assert sheet.published.currentData() == ""
    sheet.published.setCurrentIndex(4)
    assert sheet.command() == ["open", "hf-hub:timm/ViT-B-16-SigLIP"]
    assert "License: Apache-2.0. 813 MB are downloaded once" in _note(sheet).text()
    sheet.model.setText("open_clip:RN50/openai")
    assert "No training." in _note(sheet).text()
    first = add_widget(qtbot, OpenModelSheet(tmp_path / "workspace", background, model=FIRST.specification))
    assert first.published.currentText() == "CLIP ViT-B/32, LAION-2B: 605 MB, MIT"
    assert first.command() == ["open", FIRST.specification]


def test_other_data_needs_a_path(sheet, qtbot):
    sheet.data.setCurrentIndex(sheet.data.count() - 1)
    assert sheet.path.isVisible()
    assert not sheet.start.isEnabled()
    qtbot.keyClicks(sheet.path, "/pictures")
    assert sheet.start.isEnabled()
    assert sheet.command()[2:] == ["--data", "/pictures"]
    sheet.model.clear()
    assert not sheet.start.isEnabled()


@pytest.mark.parametrize("typed", ["", "data"])
def test_who_wanted_data_gets_the_other_sheet(sheet, qtbot, tmp_path, typed):
    (tmp_path / "data").mkdir()
    sheet.model.setText(str(tmp_path / typed) if typed else "open_clip:RN50/cc12m")
    with qtbot.waitSignal(sheet.data_asked) as asked:
        qtbot.mouseClick(sheet.findChild(QPushButton, "open-model-import"), Qt.MouseButton.LeftButton)
    assert asked.args == [str(tmp_path / "data") if typed else ""]
    assert sheet.isHidden()


def test_what_is_wrong_is_said_in_the_sheet(sheet, qtbot, monkeypatch):
    def refuse(workspace, words):
        raise UserError("m.pt is damaged: <b>its part</b> data/0 is not what was saved. Get it again.")

    monkeypatch.setattr(open_sheet, "start_opening", refuse)
    qtbot.mouseClick(sheet.start, Qt.MouseButton.LeftButton)
    assert not sheet.start.isEnabled()
    qtbot.waitUntil(sheet.start.isEnabled)
    assert "m.pt is damaged" in _note(sheet).text()
    assert _note(sheet).textFormat() == Qt.TextFormat.PlainText
    assert sheet.isVisible()


@pytest.mark.slow
def test_the_trainers_own_sentence_comes_back(tmp_path):
    with pytest.raises(UserError, match=r"^'nothing-here' is not a known model"):
        start_opening(tmp_path / "workspace", ["open", "nothing-here"])
