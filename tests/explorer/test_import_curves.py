"""Importing curves through the window: dropped, recognized, refused, and as a command."""

from pathlib import Path

import pytest
from PySide6.QtCore import Qt

from explorer.import_sheet.dropped_files import dropped
from explorer.window.import_curves_sheet import ImportCurvesSheet
from tests.explorer.dropped_files import mime_of
from tests.explorer.widgets import show_widget
from trainer.store import Workspace

HISTORY = '"_step","loss"\n0,2.5\n10,1.25\n'


def test_curves_are_told_from_pairs(qapp, tmp_path: Path):
    (tmp_path / "logs" / "a").mkdir(parents=True)
    (tmp_path / "logs" / "a" / "events.out.tfevents.1.host").write_bytes(b"")
    assert dropped(mime_of(tmp_path / "logs")).curves == tmp_path / "logs"
    assert dropped(mime_of(tmp_path / "logs" / "a" / "events.out.tfevents.1.host")).curves is not None
    history, panel, pairs = (tmp_path / f"{name}.csv" for name in ("history", "panel", "pairs"))
    history.write_text(HISTORY, encoding="utf-8")
    panel.write_text('"Step","warm-sun-1 - loss"\n0,1\n', encoding="utf-8")
    pairs.write_text("image,caption\na.png,Step - by step\n", encoding="utf-8")
    assert dropped(mime_of(history)).curves == history
    assert dropped(mime_of(panel)).curves == panel
    assert dropped(mime_of(pairs)).curves is None
    assert dropped(mime_of(pairs)).data == str(pairs)


@pytest.mark.slow
def test_the_sheet_imports_runs_that_the_store_knows(dressed, background, qtbot, tmp_path: Path):
    file = tmp_path / "history.csv"
    file.write_text(HISTORY, encoding="utf-8")
    sheet = show_widget(qtbot, ImportCurvesSheet(tmp_path / "ws", background, file))
    qtbot.keyClicks(sheet.name, "Theirs")
    assert sheet.command() == ["runs", "import", str(file), "Theirs", "--from", "auto"]
    with qtbot.waitSignal(sheet.opened, timeout=60_000) as imported:
        qtbot.keyClick(sheet.name, Qt.Key.Key_Return)
    (run,) = imported.args[0]
    row = Workspace(tmp_path / "ws").runs.get(run)
    assert (row.name, row.status, row.step) == ("Theirs", "finished", 10)


@pytest.mark.slow
def test_the_sheet_stays_to_say_what_was_not_read(dressed, background, qtbot, tmp_path: Path):
    file = tmp_path / "history.jsonl"
    file.write_text('{"_step": 0, "loss": 1}\n{"_step": 1, "lo', encoding="utf-8")
    sheet = show_widget(qtbot, ImportCurvesSheet(tmp_path / "ws", background, file))
    with qtbot.waitSignal(sheet.opened, timeout=60_000) as imported:
        qtbot.mouseClick(sheet.start, Qt.MouseButton.LeftButton)
    assert len(imported.args[0]) == 1
    assert sheet.isVisible()
    assert sheet.note.text() == "Imported 1 run. history.jsonl is cut off: line 2, its last, was left out."
    assert not sheet.start.isEnabled()
    assert sheet.close_button.text() == "Close"
    qtbot.mouseClick(sheet.close_button, Qt.MouseButton.LeftButton)
    assert not sheet.isVisible()


@pytest.mark.slow
def test_the_sheet_stays_and_says_what_is_wrong(dressed, background, qtbot, tmp_path: Path):
    (tmp_path / "notes.csv").write_text("a,b\n1,2\n", encoding="utf-8")
    sheet = show_widget(qtbot, ImportCurvesSheet(tmp_path / "ws", background, tmp_path / "notes.csv"))
    sheet.start.click()
    qtbot.waitUntil(lambda: "holds no event files" in sheet.note.text(), timeout=60_000)
    assert sheet.start.isEnabled()
    sheet.path.clear()
    assert not sheet.start.isEnabled()
    assert not sheet.watch.isEnabled()


def test_a_training_that_goes_on_is_watched_instead(dressed, background, qtbot, tmp_path: Path):
    sheet = show_widget(qtbot, ImportCurvesSheet(tmp_path / "ws", background, tmp_path / "own.csv"))
    with qtbot.waitSignal(sheet.watch_asked) as asked:
        qtbot.mouseClick(sheet.watch, Qt.MouseButton.LeftButton)
    assert asked.args == [str(tmp_path / "own.csv")]
    assert not sheet.isVisible()
