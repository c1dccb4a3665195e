import errno
import json
import math
import os
import signal
import sqlite3
import threading
import time
from types import SimpleNamespace

import numpy as np
import pytest

from tests.builders import locked
from tests.nightly import few_plain
from trainer.store import RunLog, StoreError, disk, reserve, run_log
from trainer.store.database import Database
from trainer.store.disk import DiskTrouble
from trainer.store.journal import read_journal
from trainer.store.run_table import RunTable

pytestmark = pytest.mark.slow


def test_what_is_no_number_comes_back_as_it_was(workspace, number):
    told = [1.5, math.nan, math.inf, -math.inf, -0.0, 1e-300]
    with RunLog.claim(workspace, number) as log:
        for step, value in enumerate(told):
            log.scalars(step, {"train/loss": value})
        log.status("finished")
    steps, values, seconds = workspace.results.series(number, "train/loss")
    np.testing.assert_array_equal(values, told)
    assert (steps.dtype, values.dtype, seconds.dtype) == (np.int64, np.float64, np.float64)
    assert list(steps) == list(range(6))
    assert (np.diff(seconds) >= 0).all()
    rows = workspace.results.scalars_after(0)
    np.testing.assert_array_equal([row.value for row in rows], told)
    assert workspace.results.last_values(number) == {"train/loss": 1e-300}
    assert workspace.results.best_values(number) == {"train/loss": -0.0}


def test_best_follows_the_catalog(workspace, number):
    with RunLog.claim(workspace, number) as log:
        for step, value in enumerate([0.2, 0.9, math.nan, 0.5]):
            log.scalars(step, {"val/image_to_text_R@1": value, "val/loss": value, "train/inv_tau": value})
        log.headline(0.5, 0.9)
        log.status("finished")
    assert workspace.results.best_values(number) == {"val/image_to_text_R@1": 0.9, "val/loss": 0.2}
    assert workspace.results.last_values(number)["val/loss"] == 0.5
    assert workspace.results.scalar_names(number) == ["train/inv_tau", "val/image_to_text_R@1", "val/loss"]
    assert (workspace.runs.get(number).last, workspace.runs.get(number).best) == (0.5, 0.9)


def test_a_reader_sees_each_row_once(workspace, tiny):
    first, second = workspace.runs.create(tiny), workspace.runs.create(tiny)
    with RunLog.claim(workspace, first) as one, RunLog.claim(workspace, second) as two:
        one.scalars(1, {"a": 1.0, "b": 2.0})
        two.scalars(1, {"a": 3.0})
        one.flush()
        two.flush()
        seen = workspace.results.scalars_after(0)
        assert [(r.run, r.name, r.value) for r in seen] == [(first, "a", 1), (first, "b", 2), (second, "a", 3)]
        assert [r.run for r in workspace.results.scalars_after(0, runs=[second])] == [second]
        assert len(workspace.results.scalars_after(0, limit=2)) == 2
        assert workspace.results.scalars_after(seen[-1].id) == []
        for log in (one, two):
            log.status("finished")


def test_rows_arrive_within_half_a_second_of_steps(workspace, number, monkeypatch):
    passed = [0.0]
    monkeypatch.setattr(run_log, "time", SimpleNamespace(monotonic=lambda: passed[0], time=time.time))
    with RunLog.claim(workspace, number) as log:
        for step in (1, 2):
            log.scalars(step, {"a": 1.0})
        log.asked()
        assert len(workspace.results.scalars_after(0)) == 1
        passed[0] = 0.5
        log.asked()
        assert len(workspace.results.scalars_after(0)) == 2
        log.status("stopped")


def test_the_journal_is_written_before_the_database(workspace, number):
    with RunLog.claim(workspace, number) as log:
        log.scalars(0, {"a": 0.0})
        log.scalars(1, {"a": math.inf})
        entries = list(read_journal(log.folder / "metrics.jsonl"))
        assert [(e.step, e.values) for e in entries] == [(0, {"a": 0.0}), (1, {"a": math.inf})]
        log.status("stopped")


def test_training_goes_on_while_the_database_is_locked(workspace, number, monkeypatch):
    waits_ms, wait_at_most = [], workspace.wait_at_most
    monkeypatch.setattr(workspace, "wait_at_most", lambda ms: (waits_ms.append(ms), wait_at_most(ms)))
    with RunLog.claim(workspace, number) as log:
        with locked(workspace):
            waits_ms.clear()
            for step in range(500):
                log.scalars(step, {"a": float(step)})
                log.progress(step=step, total_steps=500, phase="train")
                log.asked()
            log.evaluation(7, "scenes", "renderings", {"acc1": 0.5})
            assert sum(waits_ms) < 1_000, "it waited for the lock again and again"
            assert workspace.results.scalars_after(0) == []
        assert log.flush()
        assert len(workspace.results.scalars_after(0)) == 500
        assert workspace.results.evaluations(number)[0].metrics == {"acc1": 0.5}
        log.status("stopped")


def test_the_end_of_a_run_waits_for_a_locked_database(workspace, number):
    blocker = sqlite3.connect(workspace.database_file, isolation_level=None, check_same_thread=False)
    with RunLog.claim(workspace, number) as log:
        blocker.execute("BEGIN IMMEDIATE")
        timer = threading.Timer(0.4, lambda: blocker.execute("ROLLBACK"))
        timer.start()
        log.scalars(1, {"a": 1.0})
        log.status("finished")
    timer.join()
    blocker.close()
    assert workspace.runs.get(number).status == "finished"
    assert len(workspace.results.scalars_after(0)) == 1


def test_rewinding_drops_rows_lines_and_snapshots_past_the_step(workspace, number):
    with RunLog.claim(workspace, number) as log:
        for step in range(1, 11):
            log.scalars(step, {"a": float(step)})
        for step in (4, 8):
            folder = log.folder / "snapshots" / f"s@{step}"
            folder.mkdir(parents=True)
            log.snapshot(step, "scenes", "renderings", folder, 1, 1)
            log.evaluation(step, "scenes", "renderings", {"x": 1.0})
            log.checkpoint(step, log.folder / "checkpoints" / f"step_{step:06d}")
        log.rewind(5)
        newest = workspace.results.scalars_after(0)[-1].id
        for step in range(6, 9):
            log.scalars(step, {"a": -float(step)})
        log.flush()
        assert [r.step for r in workspace.results.scalars_after(newest)] == [6, 7, 8], "ids must not come again"
        log.status("stopped")
    np.testing.assert_array_equal(workspace.results.series(number, "a")[1], [1, 2, 3, 4, 5, -6, -7, -8])
    assert [e.step for e in read_journal(log.folder / "metrics.jsonl")] == list(range(1, 9))
    assert [s.step for s in workspace.results.snapshots(number)] == [4]
    assert [e.step for e in workspace.results.evaluations(number)] == [4]
    assert [c.step for c in workspace.results.checkpoints(number)] == [4]
    assert [p.name for p in (log.folder / "snapshots").iterdir()] == ["s@4"]


def test_a_torn_last_line_is_cut_off_and_what_a_kill_kept_back_is_brought_in(workspace, number):
    path = workspace.runs.get(number).folder / "metrics.jsonl"
    path.write_text('{"step": 1, "time": 5.0, "elapsed": 0.5, "values": {"a": "nan"}}\n{"step": 2, "ti')
    with RunLog.claim(workspace, number) as log:
        log.scalars(2, {"a": 2.0})
        log.status("stopped")
    np.testing.assert_array_equal(workspace.results.series(number, "a")[1], [math.nan, 2.0])
    assert [e.step for e in read_journal(path)] == [1, 2]


def test_only_one_best_checkpoint_and_the_folders_are_found(workspace, number):
    with RunLog.claim(workspace, number) as log:
        log.checkpoint(10, log.folder / "checkpoints" / "step_000010", best=True)
        log.checkpoint(20, log.folder / "checkpoints" / "step_000020", best=True)
        log.checkpoint(30, log.folder / "checkpoints" / "step_000030")
        log.drop_checkpoint(10)
        log.status("stopped")
    found = workspace.results.checkpoints(number)
    assert [(c.step, c.best) for c in found] == [(20, True), (30, False)]
    assert found[0].folder == log.folder / "checkpoints" / "step_000020"


def test_wishes_stay_until_the_end_and_momentary_ones_are_told_once(workspace, number):

    def asked() -> str:
        time.sleep(0.11)
        return log.asked()

    with RunLog.claim(workspace, number) as log:
        assert asked() == ""
        workspace.runs.ask(number, "save")
        assert [asked(), asked()] == ["save", ""]
        workspace.runs.ask(number, "stop")
        assert [asked(), asked(), log.asked()] == ["stop"] * 3
        log.status("stopped")
    assert workspace.runs.get(number).asked == ""


def test_a_wish_from_before_the_claim_holds_and_one_from_an_earlier_session_does_not(workspace, number):
    workspace.runs.ask(number, "stop")
    with RunLog.claim(workspace, number) as log:
        assert log.asked() == "stop"
        log.status("stopped")
    workspace.runs.ask(number, "stop")
    with RunLog.claim(workspace, number) as log:
        assert log.asked() == ""
        log.status("stopped")


def test_progress_and_time_trained_add_up_over_sessions(workspace, number):
    began = time.monotonic()
    for _ in range(2):
        with RunLog.claim(workspace, number) as log:
            log.progress(step=3, total_steps=9, phase="train", eta_s=4.0)
            row = workspace.runs.get(number)
            assert (row.status, row.step, row.total_steps, row.phase, row.eta_s) == ("running", 3, 9, "train", 4.0)
            assert row.pid == os.getpid()
            time.sleep(0.1)
            log.status("stopped", "Asked to.")
    row = workspace.runs.get(number)
    assert 0.2 <= row.trained_s <= time.monotonic() - began
    assert row.duration_s == row.trained_s
    assert (row.status, row.reason, row.pid, row.beats) == ("stopped", "Asked to.", None, 2)


def test_an_exception_is_the_reason_of_a_failed_run(workspace, number):
    with pytest.raises(ValueError, match="too many"), RunLog.claim(workspace, number):
        raise ValueError("too many cooks")
    row = workspace.runs.get(number)
    assert (row.status, row.reason) == ("failed", "too many cooks")
    assert not workspace.is_alive(number)


def test_of_two_processes_that_claim_a_run_exactly_one_wins(workspace, number, hold):
    both = [hold(number, wait=False) for _ in range(2)]
    answers = {process.pid: process.stdout.readline().split()[0] for process in both}
    assert sorted(answers.values()) == ["held", "refused"]
    assert workspace.is_alive(number)
    assert answers[workspace.runs.get(number).pid] == "held"
    with pytest.raises(StoreError, match="already being trained"):
        RunLog.claim(workspace, number)


def test_a_killed_trainer_is_dead_at_once_and_reconciled_with_a_reason(workspace, number, hold):
    (workspace.runs.get(number).folder / "log.txt").write_text("step 41\nGPU is warm\n\n")
    process = hold(number, "log.scalars(1, {'a': 1.0}); log.progress(step=1, total_steps=9, phase='train')")
    assert workspace.is_alive(number)
    assert workspace.reconcile() == []
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert not workspace.is_alive(number)
    changed = workspace.reconcile()
    assert [(row.id, row.status, row.pid) for row in changed] == [(number, "interrupted", None)]
    assert "GPU is warm" in changed[0].reason
    assert changed[0].duration_s == changed[0].trained_s
    assert workspace.reconcile() == []
    assert list(workspace.results.series(number, "a")[1]) == [1.0], "the journal's rows are brought in"


def test_a_start_that_never_came_is_given_up_and_a_fresh_one_is_not(workspace, tiny):
    fresh, dead, old = (workspace.runs.create(tiny) for _ in range(3))
    workspace.runs.change(dead, launched_pid=os.getpid(), launched_ticks=-1)
    workspace.runs.change(old, launched_at=time.time() - 21)
    assert [row.id for row in workspace.reconcile()] == [dead, old]
    assert workspace.runs.get(fresh).status == "starting"
    assert "before it began" in workspace.runs.get(dead).reason


def test_trainers_that_log_at_once_lose_nothing(workspace, tiny, hold):
    numbers = [workspace.runs.create(tiny) for _ in range(2)]
    work = "for s in range(1500): log.scalars(s, {'a': s, 'b': -s}); log.asked()\nlog.status('finished')"
    for process in [hold(number, work, wait=False) for number in numbers]:
        assert process.stdout.readline().strip() == "held", process.stdout.read()
    for number in numbers:
        assert workspace.runs.get(number).status == "finished"
        np.testing.assert_array_equal(workspace.results.series(number, "a")[1], np.arange(1500))
        np.testing.assert_array_equal(workspace.results.series(number, "b")[0], np.arange(1500))


@pytest.mark.parametrize("meanwhile", [{"pid": 1}, {"status": "running"}, {"launched_at": 5.0}])
def test_a_run_that_was_claimed_since_it_was_looked_at_is_not_interrupted(workspace, number, meanwhile):
    table = RunTable(Database(workspace.database_file), workspace.runs_folder, workspace.check_mine)
    (seen,) = table.active()
    before = workspace.runs.get(number)
    workspace.runs.change(number, **meanwhile)
    assert not table.interrupt(number, expected=seen, reason="gone")
    workspace.runs.change(number, pid=None, status=before.status, launched_at=None)
    assert table.interrupt(number, expected=seen, reason="gone")


def test_an_end_that_a_locked_database_refuses_waits_in_the_folder(workspace, number, monkeypatch):
    monkeypatch.setattr(run_log, "_END_S", 0.2)
    log = RunLog.claim(workspace, number)
    (log.folder / "checkpoints" / "step_000004").mkdir(parents=True)
    with locked(workspace):
        log.scalars(4, {"a": 1.0})
        log.progress(step=4, total_steps=9, phase="training")
        log.checkpoint(4, log.folder / "checkpoints" / "step_000004", best=True)
        log.headline(0.25, 0.5)
        log.facts(parameters=3)
        log.alert("nan", "No number.", 4)
        log.settle()
        log.status("failed", "No number at step 4.")
        log.close()
        assert workspace.runs.get(number).status == "running"
        assert not workspace.is_alive(number)
    (row,) = workspace.reconcile()
    assert (row.status, row.reason, row.step, row.pid) == ("failed", "No number at step 4.", 4, None)
    row = workspace.runs.get(number)
    assert row.last == 0.25
    assert (row.best, row.facts["parameters"], row.alerts["nan"]["step"]) == (0.5, 3, 4)
    assert [(c.step, c.best) for c in workspace.results.checkpoints(number)] == [(4, True)]
    assert list(workspace.results.series(number, "a")[0]) == [4]
    with RunLog.claim(workspace, number) as log:
        assert not (log.folder / "waiting.jsonl").exists()
        assert workspace.runs.get(number).alerts == {}
        log.status("stopped")


def test_numbers_of_numpy_are_stored_as_numbers(workspace, tiny):
    number = workspace.runs.create(tiny, priority=np.int64(3))
    with RunLog.claim(workspace, number) as log:
        log.progress(step=np.int32(4), total_steps=np.uint8(9), eta_s=np.float32(0.5))
        log.headline(np.float64(0.25), np.float16(0.5))
        log.checkpoint(np.int64(4), log.folder / "checkpoints" / "step_000004", best=np.True_)
        log.snapshot(np.int64(4), "d", "s", log.folder / "snapshots" / "s@000004", np.int64(8), np.int16(2))
        log.status("finished")
    row = workspace.runs.get(number)
    assert (row.status, row.step, row.total_steps, row.priority) == ("finished", 4, 9, 3)
    assert (row.last, row.best) == (0.25, 0.5)
    assert [(c.step, c.best) for c in workspace.results.checkpoints(number)] == [(4, True)]
    assert [(s.step, s.n, s.d) for s in workspace.results.snapshots(number)] == [(4, 8, 2)]


@pytest.mark.parametrize("value", ["no number", 2.5, b"7", None, 2**70, {}])
def test_a_value_that_does_not_fit_is_told_and_all_else_is_stored(workspace, number, value):
    with RunLog.claim(workspace, number) as log:
        log.scalars(1, {"a": 1.0})
        log.checkpoint(value, log.folder / "checkpoints" / "odd", best=True)
        log.headline(0.25, 0.5)
        log.scalars(2, {"a": 2.0})
        log.status("finished")
        with pytest.raises(StoreError, match="does not take a value"):
            workspace.results.add_checkpoint(number, value, log.folder / "checkpoints" / "odd")
    row = workspace.runs.get(number)
    assert (row.status, row.last, row.best) == ("finished", 0.25, 0.5)
    assert "does not take a value" in row.alerts["refused"]["words"]
    assert workspace.results.series(number, "a")[0].tolist() == [1, 2]
    assert workspace.results.checkpoints(number) == []


def test_a_step_that_does_not_fit_takes_no_other_with_it(workspace, number):
    with RunLog.claim(workspace, number) as log:
        log.scalars(0, {"a": 0.0})
        for step in (1, 2.5, 3):
            log.scalars(step, {"a": float(step)})
        log.status("finished")
    assert workspace.runs.get(number).status == "finished"
    assert workspace.results.series(number, "a")[0].tolist() == [0, 1, 3]


@few_plain(2, "value", ["zz", None, 2**70, {}, 2.5])
def test_what_waits_and_does_not_fit_keeps_no_run_from_being_read_and_trained(workspace, number, value, hold):
    process = hold(number)
    process.kill()
    process.wait()
    folder = workspace.runs.get(number).folder
    (folder / "checkpoints" / "odd").mkdir(parents=True)
    values = {"status": value, "step": value, "ended_at": value, "phase": "said"}
    lines = [
        {"kind": "checkpoint", "values": {"step": value, "folder": "checkpoints/odd", "best": True}},
        {"kind": "headline", "values": {"last": 0.25}},
        {"kind": "end", "values": values},
    ]
    (folder / "waiting.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (row,) = workspace.reconcile()
    assert (row.status, row.step, row.phase) == ("interrupted", 0, "said")
    assert workspace.runs.get(number).last == 0.25
    with RunLog.claim(workspace, number) as log:
        log.status("finished")
    assert workspace.runs.get(number).status == "finished"


def test_what_a_locked_database_refuses_says_another_metric_and_a_snapshot_that_is_gone(workspace, number, monkeypatch):
    monkeypatch.setattr(run_log, "_END_S", 0.2)
    log = RunLog.claim(workspace, number)
    gone = log.folder / "snapshots" / "s@000004"
    gone.mkdir(parents=True)
    for step in (4, 8):
        log.snapshot(step, "d", "s", log.folder / "snapshots" / f"s@{step:06d}", 8, 2)
    with locked(workspace):
        log.headline(0.25, 0.5, metric="val/knn_acc1")
        log.drop_snapshot(4, "d", "s", gone)
        log.status("failed", "No number at step 8.")
        log.close()
    assert [snapshot.step for snapshot in workspace.results.snapshots(number)] == [4, 8]
    workspace.reconcile()
    assert (workspace.runs.get(number).metric, workspace.runs.get(number).last) == ("val/knn_acc1", 0.25)
    assert [snapshot.step for snapshot in workspace.results.snapshots(number)] == [8]


def test_a_momentary_wish_does_not_take_the_place_of_one_that_stays(workspace, number):

    def asked() -> str:
        log._asked_at = float("-inf")
        return log.asked()

    with RunLog.claim(workspace, number) as log:
        workspace.runs.ask(number, "stop-epoch")
        assert asked() == "stop-epoch"
        workspace.runs.ask(number, "save")
        assert [asked(), log.asked(), asked()] == ["save", "stop-epoch", "stop-epoch"]
        assert workspace.runs.get(number).asked == "stop-epoch"
        workspace.runs.ask(number, "")
        assert asked() == ""
        log.status("stopped")


@pytest.fixture
def failed(workspace, number, monkeypatch) -> int:
    """Return a run whose final message remains in its folder though it was read."""
    monkeypatch.setattr(run_log, "_END_S", 0.2)
    log = RunLog.claim(workspace, number)
    with locked(workspace):
        log.status("failed", "No number at step 4.")
        log.close()
    assert [row.status for row in workspace.reconcile()] == ["failed"]
    return number


def test_a_trainer_that_dies_before_it_begins_does_not_end_as_the_one_before(workspace, failed):
    assert workspace.runs.begin_launch(failed)
    workspace.runs.change(failed, launched_pid=os.getpid(), launched_ticks=-1)
    (row,) = workspace.reconcile()
    assert row.status == "interrupted"
    assert "before it began" in row.reason


def test_a_trainer_that_dies_while_it_begins_does_not_end_as_the_one_before(workspace, failed, monkeypatch):
    def die(folder, *, keep):
        raise SystemExit("as if killed")

    monkeypatch.setattr(run_log, "sweep_drafts", die)
    with pytest.raises(SystemExit):
        RunLog.claim(workspace, failed)
    (row,) = workspace.reconcile()
    assert row.status == "interrupted"
    assert "without a reason" in row.reason


def test_the_last_step_gives_signs_of_life_no_oftener_than_others(workspace, number):
    with RunLog.claim(workspace, number) as log:
        log.progress(step=9, total_steps=10, phase="training")
        for _ in range(50):
            log.progress(step=10, total_steps=10, phase="evaluating")
        assert workspace.runs.get(number).step == 10
        assert workspace.runs.get(number).beats < 5
        log.status("finished")


def test_what_was_removed_while_the_database_was_locked_is_removed(workspace, number, monkeypatch):
    monkeypatch.setattr(run_log, "_END_S", 0.2)
    log = RunLog.claim(workspace, number)
    for step in (1, 2):
        log.checkpoint(step, log.folder / "checkpoints" / f"step_00000{step}")
    log.alert("disk", "Nearly full.", 2)
    with locked(workspace):
        log.drop_checkpoint(1)
        log.all_clear("disk")
        log.status("finished")
        log.close()
    workspace.reconcile()
    assert [c.step for c in workspace.results.checkpoints(number)] == [2]
    assert workspace.runs.get(number).alerts == {}


@pytest.fixture
def full_but_for_the_reserve(monkeypatch):
    """Let rows be written only where nothing is reserved, as on a disk that is full but for that."""

    def refused(write):
        def on_a_full_disk(self, run, *values, **more):
            folder = self.get(run).folder
            if (folder / reserve.NAME).exists():
                raise DiskTrouble("The disk is full.", path=folder, need=1, full=True)
            write(self, run, *values, **more)

        return on_a_full_disk

    def fill():
        for name in ("change", "beat"):
            monkeypatch.setattr(RunTable, name, refused(getattr(RunTable, name)))

    return fill


def test_how_a_run_ended_is_told_in_the_room_that_was_reserved(workspace, number, full_but_for_the_reserve):
    with RunLog.claim(workspace, number) as log:
        assert (log.folder / reserve.NAME).stat().st_size == 2**20
        full_but_for_the_reserve()
        log.progress(step=1, total_steps=2, phase="training")
        log.status("failed", "One sentence.")
        assert (workspace.runs.get(number).status, workspace.runs.get(number).reason) == ("failed", "One sentence.")
    assert not (log.folder / reserve.NAME).exists()


def test_an_error_that_is_its_own_cause_is_read_once(tmp_path):
    error = OSError(errno.ENOSPC, "full")
    error.__cause__ = error
    found = disk.trouble(error, "A row", tmp_path)
    assert found is not None
    assert found.full


@pytest.mark.parametrize(
    ("made", "took_s", "expected"), [(1, 30.0, None), (9, 40.0, None), (10, 4.0, None), (10, 5.0, 50.0), (2, 60.0, 3e3)]
)
def test_the_time_left_is_told_once_steps_were_made(made: int, took_s: float, expected: float | None) -> None:
    assert run_log.seconds_left(made, took_s, 100) == expected
