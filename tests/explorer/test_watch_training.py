"""Watching a training of another program through the window: dropped, recognized, started, stopped, refused."""

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel, QProgressBar
from pytestqt.qtbot import QtBot

from explorer.import_sheet.dropped_files import dropped
from explorer.intents import ChooseRun
from explorer.models.runs import RunsModel
from explorer.run_control import jobs as jobs_room
from explorer.views import VIEWS
from explorer.views.classify import ClassifyView
from explorer.views.decode import DecodeView
from explorer.views.evaluate import EvaluateView
from explorer.views.inspect import InspectView
from explorer.views.last_runs_card import TrainingNow
from explorer.views.prompts import PromptsView
from explorer.views.quality import QualityView
from explorer.views.quality.load import load_quality
from explorer.views.search import SearchView
from explorer.views.seed_rows import RunCell
from explorer.views.view import Context
from explorer.window.picker_choices import first_choice
from explorer.window.status_bar import StatusBar
from explorer.window.watch_training_sheet import WatchTrainingSheet
from tests.explorer.dropped_files import mime_of
from tests.explorer.widgets import add_widget, show_widget
from trainer import config
from trainer.charts import ChartError
from trainer.charts.snapshots import choose_snapshot
from trainer.checkpoints.checkpoint import CheckpointError
from trainer.companion.folder_watch import prepared_run
from trainer.companion.watching_files import watched_folder
from trainer.experiments.seed_truth import seed_truth
from trainer.inference.model_cache import AnswerError, ModelCache
from trainer.inference.open_model import open_run
from trainer.scheduling import launch
from trainer.store import RunLog, RunRow, Workspace
from trainer.store.rows import COMPANION, WATCH_ENDED, WATCHED

LINE = "2026-11-28,12:00:0{update} | INFO | Train Epoch: 0 [ {update}/2 (50%)] LR: 0.1 Loss: {update}.5 ({update}.5)\n"


@pytest.fixture
def training(tmp_path: Path) -> Path:
    """Return the folder of open_clip before its first epoch has ended, written in its order."""
    folder = tmp_path / "logs" / "toy"
    (folder / "checkpoints").mkdir(parents=True)
    (folder / "out.log").write_text("".join(LINE.format(update=update) for update in (1, 2)))
    (folder / "params.txt").write_text("accum_freq: 1\nbatch_size: 1\nepochs: 3\nworld_size: 1\n")
    return folder


def test_trainings_are_told_from_models_and_curves(qapp, training: Path, tmp_path: Path):
    assert dropped(mime_of(training)).training == training
    transformers, lightning, model = tmp_path / "out", tmp_path / "version_0", tmp_path / "model"
    for folder in (transformers / "checkpoint-20", lightning / "checkpoints", model / "checkpoints"):
        folder.mkdir(parents=True)
    (lightning / "checkpoints" / "epoch=0-step=4.ckpt").touch()
    (model / "checkpoints" / "epoch_3.pt").touch()
    assert dropped(mime_of(transformers)).training == transformers
    assert dropped(mime_of(lightning)).training == lightning
    assert (dropped(mime_of(model)).training, dropped(mime_of(model)).model) == (None, model)
    (training / "checkpoints").rmdir()
    assert (dropped(mime_of(training)).training, dropped(mime_of(training)).curves) == (None, training)


@pytest.fixture
def sheet(dressed, background, qtbot, training: Path, tmp_path: Path) -> WatchTrainingSheet:
    made = show_widget(qtbot, WatchTrainingSheet(tmp_path / "ws", background, training))
    qtbot.waitUntil(made.start.isEnabled)
    return made


@pytest.mark.slow
def test_the_sheet_starts_a_watch_that_a_stop_ends(sheet, qtbot, training: Path, tmp_path: Path):
    assert sheet.note.text().startswith("toy is a training of open_clip: 0 checkpoints.")
    assert not sheet.open_model.isVisible()
    qtbot.keyClicks(sheet.editors["name"], "Theirs")
    assert sheet.command() == ["watch", str(training), "--name", "Theirs"]
    with qtbot.waitSignal(sheet.opened, timeout=60_000) as opened:
        qtbot.keyClick(sheet.editors["name"], Qt.Key.Key_Return)
    workspace, run = Workspace(tmp_path / "ws"), opened.args[0]
    qtbot.waitUntil(lambda: workspace.runs.get(run).step == 2, timeout=60_000)
    row = workspace.runs.get(run)
    assert (row.name, row.status, row.is_watched, row.total_steps) == ("Theirs", "running", True, 6)
    launch.stop(workspace, run)
    assert launch.wait_until_ended(workspace, run, timeout_s=60)
    row = workspace.runs.get(run)
    assert (row.status, row.reason) == ("stopped", "The watch was stopped; the training is not affected.")


@pytest.mark.slow
def test_a_watch_that_is_killed_is_watched_again_from_the_banner(window_of, qtbot, training: Path, tmp_path: Path):
    window = window_of(tmp_path / "ws", (VIEWS[0],))
    workspace = window.services.context.workspace
    number = prepared_run(workspace, watched_folder(training), name="Theirs", dataset="")
    pid = launch.start_watch(workspace, number, str(training), [])
    qtbot.waitUntil(lambda: [run.step for run in window.services.jobs.runs if run.active] == [2], timeout=60_000)
    os.kill(pid, signal.SIGKILL)
    banner, name = window.banner, workspace.runs.get(number).short_name
    qtbot.waitUntil(lambda: banner.message.text() == f"The watch of {name} ended at step 2.", timeout=60_000)
    assert banner.next.text() == WATCH_ENDED == workspace.runs.get(number).reason
    assert banner.action.text() == "Watch again\u2026"
    assert not banner.other.isVisible(), "nothing of it can be edited or restarted here"
    assert [job.state for job in window.job_center.jobs.past] == ["cancelled"]
    assert workspace.results.series(number, "train/loss")[0].tolist() == [1, 2]
    qtbot.mouseClick(banner.action, Qt.MouseButton.LeftButton)
    sheet = window.findChild(WatchTrainingSheet)
    assert sheet.editors["folder"].text() == str(training)
    qtbot.waitUntil(sheet.start.isEnabled)


def test_a_watch_that_fails_says_why_and_names_a_folder_of_another_computer(window_of, qtbot, tmp_path: Path):
    window = window_of(tmp_path / "ws", (VIEWS[0],))
    workspace, source = window.services.context.workspace, "ssh://box/data/logs/toy"
    number = workspace.runs.create(config.run_elsewhere("far", config.NoData(called="toy", source=source)))
    workspace.runs.add_facts(number, {WATCHED: source})
    with RunLog.claim(workspace, number) as log:
        log.progress(step=3, total_steps=0, phase="watching")
        qtbot.waitUntil(lambda: bool(window.job_center.jobs.active))
        log.status("failed", "The folder is gone.")
    name = workspace.runs.get(number).short_name
    qtbot.waitUntil(lambda: window.banner.message.text() == f"The watch of {name} ended at step 3.")
    assert window.banner.next.text() == "The folder is gone. The curves until then are kept."
    qtbot.mouseClick(window.banner.action, Qt.MouseButton.LeftButton)
    assert window.findChild(WatchTrainingSheet).editors["folder"].text() == source


def test_the_sheet_says_what_it_cannot_watch(sheet, qtbot, training: Path, tmp_path: Path):
    (tmp_path / "empty").mkdir()
    sheet.editors["folder"].setText(str(tmp_path / "empty"))
    qtbot.waitUntil(lambda: "holds no training that is known" in sheet.note.text())
    assert not sheet.start.isEnabled()
    before = sheet.start.pos()
    (tmp_path / "pairs.csv").write_text("image,caption\na.png,a dog\n")
    sheet.editors["folder"].setText(str(tmp_path / "pairs.csv"))
    qtbot.waitUntil(lambda: "its first record has no number at a step or epoch" in sheet.note.text())
    sheet.editors["folder"].setText(str(training))
    assert sheet.note.text().startswith(sheet.start.toolTip())
    assert sheet.start.toolTip() == "Checking…"
    qtbot.waitUntil(sheet.start.isEnabled)
    assert sheet.start.pos() == before, "it stays under the pointer"
    sheet.editors["every"].setText("0")
    assert not sheet.start.isEnabled()
    qtbot.keyClicks(sheet.editors["data"], "val.csv")
    sheet.editors["every"].clear()
    assert sheet.start.isEnabled()
    assert "All pairs are embedded" in sheet.note.text()


def test_the_sheet_shows_the_curves_of_any_program(sheet, qtbot, tmp_path: Path):
    sheet.editors["data"].setText("val.csv")
    (tmp_path / "own.csv").write_text("step,loss\n0,2.0\n10,1.5\n")
    sheet.editors["folder"].setText(str(tmp_path / "own.csv"))
    qtbot.waitUntil(sheet.start.isEnabled)
    assert sheet.note.text().startswith("own.csv holds the curves of a training (training log). Its curves are shown")
    assert not sheet.editors["data"].isEnabled()
    assert sheet.command() == ["watch", str(tmp_path / "own.csv")]
    (tmp_path / "others").mkdir()
    for name in ("a.csv", "b.csv"):
        (tmp_path / "others" / name).write_text("step,loss\n0,2.0\n10,1.5\n")
    sheet.editors["folder"].setText(str(tmp_path / "others"))
    qtbot.waitUntil(lambda: "holds the curves of 2 trainings: a, b." in sheet.note.text())
    assert not sheet.start.isEnabled()


def test_the_sheet_takes_a_folder_of_another_computer(sheet, qtbot, training: Path):
    sheet.editors["folder"].setText("ssh://box/data/logs/toy")
    qtbot.waitUntil(sheet.start.isEnabled)
    assert sheet.note.text().startswith("/data/logs/toy on box, which is asked once the watch begins.")
    sheet.editors["data"].setText("/data/of/the/box.csv")
    assert sheet.command() == ["watch", "ssh://box/data/logs/toy", "--data-there", "/data/of/the/box.csv"]
    sheet.editors["data"].setText(str(training / "out.log"))
    assert sheet.command()[2] == "--data"
    sheet.editors["folder"].setText("ssh://box")
    qtbot.waitUntil(lambda: "is not an address of a folder" in sheet.note.text())


@pytest.mark.slow
def test_a_second_watch_and_missing_pairs_are_refused_before_there_is_a_run(sheet, training, tmp_path, capsys):
    from trainer.__main__ import main
    from trainer.companion.folder_watch import watched_run
    from trainer.companion.watching_files import watched_folder

    command = ["watch", str(training), "--detach", "--json", "--workspace", str(tmp_path / "ws")]
    assert main([*command, "--data", str(tmp_path / "missing.csv")]) == 2
    assert "missing.csv" in capsys.readouterr().err
    workspace = Workspace(tmp_path / "ws")
    assert not workspace.runs.all()
    with watched_run(workspace, watched_folder(training), name="", dataset=""):
        assert main(command) == 2
    assert "is watched by another process" in capsys.readouterr().err


def watched(workspace: Workspace, *, phase: str = "watching") -> RunRow:
    """Return a run that shows the curves of another program, in this state of its watch."""
    run = workspace.runs.create(config.run_elsewhere("mylog", config.NoData(called="training log")))
    workspace.runs.add_facts(run, {WATCHED: "/tmp/mylog.csv", COMPANION: "trainer watch, process 1"})
    workspace.runs.change(run, status="running")
    with RunLog.claim(workspace, run) as log:
        log.scalars(1_995, {"val_loss": 0.5})
        log.progress(step=1_995, total_steps=0, phase=phase)
    workspace.runs.change(run, status="running", phase=phase)
    return workspace.runs.get(run)


def test_a_run_of_curves_alone_is_not_chosen_and_everything_says_the_same_of_it(
    qtbot: QtBot, make_context: Callable[[], Context], two_runs: tuple[int, int]
) -> None:
    context = make_context()
    workspace = context.workspace
    curves, others = watched(workspace), [workspace.runs.get(run) for run in two_runs]
    sentence = "mylog has curves only: choose a run with a model."
    assert [row.curves_only for row in (curves, *others)] == [sentence, "", ""]
    assert first_choice([curves, others[0]], None, None) == (others[0].id, None)
    assert first_choice([curves], curves.id, None) == (curves.id, None), "a person may choose it"
    for error, call in (
        (ChartError, lambda: choose_snapshot(workspace, curves)),
        (AnswerError, lambda: ModelCache(workspace).get(curves.id)),
        (CheckpointError, lambda: open_run(workspace, curves.id)),
    ):
        with pytest.raises(error) as caught:
            call()
        assert str(caught.value) == sentence
    assert load_quality(workspace, [(others[0].id, None), (curves.id, None)], None).no_model.startswith(sentence)
    assert seed_truth(workspace, others[0].id, curves.id).text == sentence.rstrip(".")
    view = add_widget(qtbot, EvaluateView(context))
    context.jobs.watch()
    qtbot.waitUntil(lambda: len(context.jobs.runs) == 3)
    context.selection.select_runs(curves.id, None)
    view.refresh()
    assert (view.area.kind, view.area.page.text.text()) == ("empty", sentence)
    assert view.controls.go.toolTip() == sentence
    context.selection.select_runs(others[0].id, curves.id)
    assert view.question_now().runs == (others[0].id,)


def test_views_that_need_a_model_offer_another_run_to_runs_without_one(
    qtbot: QtBot, make_context: Callable[[], Context], two_runs: tuple[int, int]
) -> None:
    context = make_context()
    vectors = context.workspace.runs.create(config.run_elsewhere("vec", config.Vectors(image_vectors="v.npz")))
    curves = watched(context.workspace).id
    context.jobs.watch()
    qtbot.waitUntil(lambda: len(context.jobs.runs) == 4)
    for kind in (ClassifyView, PromptsView, SearchView, InspectView, DecodeView, EvaluateView, QualityView):
        view = show_widget(qtbot, kind(context))
        for run, lacks in ((curves, "mylog has curves only"), (vectors, "vec has only embeddings, no model")):
            context.selection.select_runs(run, None)
            text = f"{lacks}: choose a run with a model."
            qtbot.waitUntil(lambda: view.area.page.text.text() == text)  # noqa: B023
            assert (view.area.kind, view.area.page.title.text(), view.details()) == ("empty", "No model", None)
            with qtbot.waitSignal(view.requested, check_params_cb=lambda intent: isinstance(intent, ChooseRun)):
                view.area.page.button.click()
        context.selection.select_runs(*two_runs)
        qtbot.waitUntil(lambda: view.area.kind != "empty" or view.area.page.title.text() != "No model")  # noqa: B023
        assert view.offers_controls or kind is QualityView
        view.hide()


def test_a_watch_without_news_says_so_wherever_the_run_stands(
    qtbot: QtBot, make_context: Callable[[], Context]
) -> None:
    quiet = "quiet for 9 min"
    workspace = make_context().workspace
    run = watched(workspace, phase=quiet)
    now = add_widget(qtbot, TrainingNow())
    now.show_runs([run], {})
    (cell,) = now.findChildren(RunCell)
    assert now.findChild(QLabel).text() == "Watching"
    assert cell.words.text().endswith(f"step 1,995, {quiet}")
    assert cell.bar.isHidden(), "of no known total"
    table = RunsModel()
    assert table.state_text(run) == quiet
    bar = add_widget(qtbot, StatusBar(workspace.folder))
    bar.show_runs([run])
    texts = [label.text() for label in bar.findChildren(QLabel)]
    assert "Watching mylog" in texts
    assert f"step 1,995, {quiet}" in texts
    assert not [each for each in bar.findChildren(QProgressBar) if each.isVisibleTo(bar)]


def test_the_banner_of_a_watcher_that_was_behind_is_taken_back_by_its_next_sign_of_life(
    window_of, qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs_room, "STALLED_S", 0.3)
    window = window_of(tmp_path / "ws", (VIEWS[0],))
    workspace = window.services.context.workspace
    run = watched(workspace)
    message = f"The watcher of {run.short_name} is behind: quiet for 0 s."
    with RunLog.claim(workspace, run.id) as log:
        workspace.runs.change(run.id, status="running")
        qtbot.waitUntil(lambda: window.banner.message.text() == message, timeout=20_000)
        qtbot.waitUntil(window.banner.isVisible)
        monkeypatch.setattr(jobs_room, "STALLED_S", 90.0)
        log.progress(step=2_000, total_steps=0, phase="watching")
        qtbot.waitUntil(lambda: not window.banner.isVisible())
    table = RunsModel()
    table.show_silent({run.id: "It is in a long step."})
    assert table.state_text(run) == "Watcher behind"
