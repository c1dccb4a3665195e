"""Places in the window: the dialog that lists them, and Where in the New run form."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import Qt

from explorer.event_loop.background import Background
from explorer.models.runs import RunColumn, RunsModel, display_text
from explorer.run_control import actions
from explorer.run_control.poller import PollState, news
from explorer.views.runs.new_run import NewRun
from explorer.views.runs.places_sheet import PlacesSheet
from tests.explorer.widgets import show_widget
from trainer import config
from trainer.config import presets
from trainer.places import bindings, follower
from trainer.places.bindings import Binding, binding_of
from trainer.places.remote_host import PlaceError, parse
from trainer.store import Workspace
from trainer.store.elsewhere import Elsewhere, elsewhere, out_of_reach, write_elsewhere


@pytest.fixture
def box() -> Iterator[None]:
    bindings.add(parse("box", "ssh://me@127.0.0.1:9/opt/python"))
    yield
    bindings.remove("box")


def test_a_place_is_added_tested_and_removed(qtbot, background: Background, tmp_path: Path, monkeypatch) -> None:
    sheet = show_widget(qtbot, PlacesSheet(background, tmp_path, None))
    assert not sheet.test.isEnabled()
    qtbot.keyClicks(sheet.name, "box")
    qtbot.keyClicks(sheet.address, "ftp://x")
    qtbot.keyClick(sheet.address, Qt.Key.Key_Return)
    assert "is not an address of a place" in sheet.note.text()
    sheet.address.clear()
    qtbot.keyClicks(sheet.address, "ssh://me@host")
    with qtbot.waitSignal(sheet.changed):
        qtbot.keyClick(sheet.address, Qt.Key.Key_Return)
    assert [place.address for place in bindings.hosts()] == ["ssh://me@host"]
    found = [{"group": "Programs", "name": "torch", "value": "2", "state": "broken", "next": "Install it."}]
    monkeypatch.setattr("explorer.views.runs.places_sheet.findings", lambda name, folder: found)
    qtbot.mouseClick(sheet.test, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: "! Programs: torch: 2 Install it." in sheet.report.toPlainText())
    assert sheet.note.text() == "box answers; 1 finding is broken."

    def refused(name: str, folder: Path) -> None:
        raise PlaceError("box does not answer: no route.")

    monkeypatch.setattr("explorer.views.runs.places_sheet.findings", refused)
    qtbot.mouseClick(sheet.test, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: sheet.note.text() == "box does not answer: no route.")
    qtbot.mouseClick(sheet.remove, Qt.MouseButton.LeftButton)
    assert bindings.hosts() == []
    assert not sheet.remove.isEnabled()


def test_a_cluster_is_edited_and_training_is_installed_there(qtbot, background, tmp_path: Path, monkeypatch) -> None:
    bindings.add(parse("lab", "slurm://me@login/opt/python?gpus=1&prologue=module%20load%20cuda&container=~/a.sif"))
    sheet = show_widget(qtbot, PlacesSheet(background, tmp_path, None))
    qtbot.mouseClick(sheet.edit, Qt.MouseButton.LeftButton)
    assert (sheet.address.text(), sheet.container.text()) == ("slurm://me@login/opt/python?gpus=1", "~/a.sif")
    assert sheet.prologue.toPlainText() == "module load cuda"
    sheet.prologue.setPlainText("module load cuda\nexport A='b c'")
    sheet.container.clear()
    qtbot.mouseClick(sheet.add, Qt.MouseButton.LeftButton)
    assert bindings.host_of("lab").options == {"gpus": "1", "prologue": "module load cuda\nexport A='b c'"}

    def refused(host, say, *, build):
        say(0.5, f"downloading {build}")
        raise PlaceError("The login computer has no card.")

    monkeypatch.setattr("explorer.views.runs.places_sheet.install", refused)
    sheet.build.setCurrentText("cu128")
    told = []
    sheet.progressed.connect(lambda share, note: told.append(note))
    qtbot.mouseClick(sheet.install, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: sheet.note.text() == "The login computer has no card.")
    assert told == ["downloading cu128"]
    form = show_widget(qtbot, NewRun(presets.presets(), background, preset="clip-scenes"))
    assert form.where.nodes.isHidden()
    form.where.place.setCurrentIndex(form.where.place.findData("lab"))
    form.where.nodes.setValue(3)
    qtbot.waitUntil(lambda: "1 processes cannot be shared by 3 nodes" in form.foot.summary.text())
    assert form.where.binding() == Binding("lab", nodes=3)
    assert form.where.command() == ["--on", "lab", "--nodes", "3"]
    bindings.remove("lab")


def test_where_is_in_the_form_and_its_command(qtbot, background: Background, box, tmp_path: Path) -> None:
    form = show_widget(qtbot, NewRun(presets.presets(), background, preset="clip-scenes"))
    assert form.where.binding() is None
    assert "--on" not in form.command()
    form.where.place.setCurrentIndex(form.where.place.findData("box"))
    qtbot.waitUntil(form.foot.start.isEnabled)
    assert not form.foot.queue.isEnabled()
    assert form.where.binding() == Binding("box")
    assert form.command()[-2:] == ["--on", "box"]
    assert form.where.upload.isHidden()  # Scenes are drawn there
    photos = config.Folder(path=str(tmp_path))
    form.where.show_data(photos)
    assert not form.where.upload.isHidden()
    form.where.upload.setChecked(True)
    assert form.where.binding() == Binding("box", upload=True)
    assert form.where.command() == ["--on", "box", "--upload"]


def test_a_run_of_the_form_is_bound_in_the_users_settings(tmp_path: Path, box, monkeypatch) -> None:
    workspace = Workspace(tmp_path / "space")
    monkeypatch.setattr("trainer.scheduling.launch.start_detached", lambda workspace, run: 1)
    run = actions.create_and_launch(workspace, config.Run(name="far"), binding=Binding("box"))
    folder = workspace.runs.get(run).folder
    assert binding_of(folder) == Binding("box")
    told = elsewhere(folder)
    assert told is not None
    assert "127.0.0.1" not in "".join(path.read_text() for path in folder.glob("*.json"))
    # A stranger's workspace names no place that this user has.
    write_elsewhere(folder, Elsewhere("box", "1" * 32, sent=True))
    with pytest.raises(PlaceError, match="which another computer or user has sent it to"):
        binding_of(folder)
    workspace.close()


def test_a_mirrored_run_says_where_and_how_long_it_trains(tmp_path: Path, box) -> None:
    workspace = Workspace(tmp_path / "space")
    run = workspace.runs.create(config.Run(name="far"))
    follower.send(workspace, run, Binding("box", run=1))
    # The other clock is three days ahead.
    began = time.time() + 3 * 86_400
    told = {"status": "running", "session_at": began, "started_at": began}
    workspace.take_over(run, told | {"heartbeat_at": began + 75.0, "trained_s": 10.0, "step": 4, "total_steps": 8})
    row = workspace.runs.get(run)
    assert display_text(row, RunColumn.STATUS) == "On box"
    assert display_text(row, RunColumn.DURATION) == "1 min 25 s"
    workspace.take_over(run, told | {"status": "finished", "trained_s": 90.0, "ended_at": began + 80.0})
    row = workspace.runs.get(run)
    assert display_text(row, RunColumn.STATUS) == "Finished"
    assert display_text(row, RunColumn.DURATION) == "1 min 30 s"
    model = RunsModel()
    model.show([row])
    cell = model.index(0, list(RunColumn).index(RunColumn.STATUS))
    assert "Trained at box." in cell.data(Qt.ItemDataRole.ToolTipRole)
    workspace.close()


def test_a_run_out_of_reach_says_so_and_gets_a_follower(qtbot, tmp_path: Path, box, monkeypatch) -> None:
    workspace = Workspace(tmp_path / "space")
    run = workspace.runs.create(config.Run(name="far"))
    follower.send(workspace, run, Binding("box", run=1))
    folder = workspace.runs.get(run).folder
    told = elsewhere(folder)
    assert told is not None
    write_elsewhere(folder, Elsewhere("box", told.token, sent=True, seen_at=1.7e9))
    workspace.runs.change(run, status="running", phase=out_of_reach("box", 1.7e9))
    row = workspace.runs.get(run)
    assert row.phase.startswith("out of reach (box, last seen 2023-11-1")
    assert display_text(row, RunColumn.STATUS) == "Out of reach"
    model = RunsModel()
    model.show([row])
    cell = model.index(0, list(RunColumn).index(RunColumn.STATUS))
    assert "last seen 2023" in cell.data(Qt.ItemDataRole.ToolTipRole)
    started = []
    monkeypatch.setattr("trainer.scheduling.launch.detach", lambda words, log: started.append(words) or 1)
    seen = PollState()
    for _ in range(3):
        result = news(workspace, seen, [run], reconcile=True)
        seen = result.seen
    assert [words[-4:-2] for words in started] == [["follow", str(run)]]
    assert workspace.runs.get(run).status == "running"
    workspace.close()
