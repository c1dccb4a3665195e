"""What a training of another program logs is a run, and logging never touches the training."""

import base64
import copy
import gzip
import json
import os
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from tests import forked_code
from trainer import api as ce
from trainer.charts.measures.curves import curves
from trainer.companion import run_logger, writer_thread
from trainer.companion.embedding_set import EmbeddingSet
from trainer.companion.kept_steps import most_crowded
from trainer.companion.process_rank import process_rank
from trainer.companion.writing_queue import WritingQueue
from trainer.scheduling import launch
from trainer.store import RunRow, Workspace, read_snapshot
from trainer.store.disk import DiskTrouble
from trainer.store.process_lock import identity, is_held

N, D = 24, 8
IDS = [f"pair {i}" for i in range(N)]
ITEMS = {"id": IDS, "caption": [f"caption {i}" for i in range(N)], "label": [str(i % 3) for i in range(N)]}


def rows(seed: int, width: int = D) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(N, width)).astype(np.float32)


def unit_of(vectors: np.ndarray) -> np.ndarray:
    exact = vectors.astype(np.float64)
    return exact / np.linalg.norm(exact, axis=1, keepdims=True)


@pytest.fixture(autouse=True)
def no_ranks(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "LOCAL_RANK", "NODE_RANK", "WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)


def row_of(log: ce.RunLogger, folder: Path) -> RunRow:
    return Workspace(folder).runs.get(log.run_id or 0)


def series(folder: Path, log: ce.RunLogger, name: str) -> list[tuple[int, float]]:
    steps, values, _ = Workspace(folder).results.series(log.run_id or 0, name)
    return list(zip(steps.tolist(), values.tolist()))


def test_a_loop_is_a_run_whose_steps_have_the_views_of_any_other(tmp_path: Path) -> None:
    images = {10: rows(1), 20: rows(2)}
    text = rows(3)
    with ce.log_run(tmp_path, name="mine", config={"lr": 0.1, "model": {"width": 8}}, total_steps=20) as log:
        for step in range(1, 21):
            log.metrics(np.int64(step), {"train/loss": torch.tensor(1 / step, requires_grad=True), "n": np.float32(2)})
            if step in images:
                log.embeddings(step, image=images[step], text=text, items=ITEMS if step == 10 else None)
        (tmp_path / "epoch_1.pt").touch()
        log.checkpoint(10, tmp_path / "epoch_0.pt")  # and removed, as by a program that keeps one
        log.checkpoint(20, tmp_path / "epoch_1.pt")
    row = row_of(log, tmp_path)
    assert (row.status, row.step, row.total_steps, row.metric) == ("finished", 20, 20, "train/loss")
    assert row.last == row.best == pytest.approx(1 / 20)
    assert row.facts["imported_settings"] == {"lr": "0.1", "model.width": "8"}
    assert row.facts["checkpoints_elsewhere"] == {"20": str(tmp_path / "epoch_1.pt")}
    assert series(tmp_path, log, "train/loss") == [(step, pytest.approx(1 / step)) for step in range(1, 21)]
    stored = [read_snapshot(snapshot.folder) for snapshot in Workspace(tmp_path).results.snapshots(row.id)]
    assert [list(snapshot.items.id) for snapshot in stored] == [IDS, IDS]
    run = ce.workspace(tmp_path).run(row.id)
    film, angles = ce.charts.snapshot_curves(run).rows(), ce.charts.geometry(run, course="angle").rows()
    for snapshot, image in zip(stored, images.values()):
        unit, unit_text = unit_of(image), unit_of(text)
        assert snapshot.image is not None
        np.testing.assert_allclose(snapshot.image, unit, atol=5e-4)
        cosines = unit @ unit_text.T
        expected = {
            "Modality gap": np.linalg.norm(unit.mean(axis=0) - unit_text.mean(axis=0)),
            f"Image to text R@1, held-out, n = {N}": 100 * (cosines.argmax(axis=1) == np.arange(N)).mean(),
        }
        for title, value in expected.items():
            drawn = film[film["title"].str.startswith(title) & (film["x"] == snapshot.step)]["y"].astype(float)
            assert drawn.tolist() == [pytest.approx(value, abs=2e-3)], title
        pairs = np.triu_indices(N, 1)
        mean_angle = np.degrees(np.arccos((unit @ unit.T)[pairs])).mean()
        drawn = angles[
            (angles["part"] == "course") & (angles["series"] == "mine, images") & (angles["x"] == snapshot.step)
        ]
        assert drawn["y"].astype(float).tolist() == [pytest.approx(mean_angle, abs=0.02)]


def test_what_was_logged_is_there_after_a_flush(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = ce.log_run(tmp_path, name="read while it trains")
    for step in (1, 2, 3):
        log.metrics(step, {"train/loss": 1 / step})
    log.embeddings(3, image=rows(1))
    assert log.flush()
    assert [step for step, _ in series(tmp_path, log, "train/loss")] == [1, 2, 3]
    assert [snapshot.step for snapshot in Workspace(tmp_path).results.snapshots(log.run_id or 0)] == [3]
    # What waits for a disk is not there.
    monkeypatch.setattr(writer_thread.RunLog, "entries", full_disk)
    log.metrics(4, {"train/loss": 0.1})
    with pytest.warns(ce.LoggingWarning, match="wait in memory"):
        assert not log.flush(2.5)
    monkeypatch.undo()
    log.finish()
    assert not log.flush()
    assert [step for step, _ in series(tmp_path, log, "train/loss")] == [1, 2, 3, 4]


def full_disk(*_: object) -> None:
    raise DiskTrouble("The disk is full.", path=Path("/"), need=1, full=True)


def test_any_kind_of_fraction_is_stored_as_unit_float16(tmp_path: Path) -> None:
    made = rows(1)
    with ce.log_run(tmp_path, name="kinds") as log:
        for step, image in enumerate(
            [torch.tensor(made).bfloat16(), torch.tensor(made, requires_grad=True), made.astype(np.float64)]
        ):
            log.embeddings(step, image=image)
    assert not log.lost
    for snapshot in Workspace(tmp_path).results.snapshots(log.run_id or 0):
        image = read_snapshot(snapshot.folder).image
        assert image is not None
        assert image.dtype == np.float16
        np.testing.assert_allclose(image, made / np.linalg.norm(made, axis=1, keepdims=True), atol=5e-3)


def test_ids_alone_in_any_order_have_the_columns_of_the_step_before(tmp_path: Path) -> None:
    with ce.log_run(tmp_path, name="shuffled") as log:
        log.embeddings(1, image=rows(1), items={"id": range(N), "caption": [f"caption {i}" for i in range(N)]})
        shuffled = np.random.default_rng(0).permutation(N)
        log.embeddings(2, image=rows(1)[shuffled], items=shuffled)
        log.embeddings(3, image=rows(1), items=range(1, N + 1))
    first, second, third = (read_snapshot(stored.folder) for stored in Workspace(tmp_path).results.snapshots(1))
    assert list(second.items.caption) == [f"caption {i}" for i in second.items.id]
    np.testing.assert_array_equal(second.image, first.image[shuffled])
    assert (list(third.items.id), {*third.items.caption}) == ([*range(1, N + 1)], {""})


def test_what_changes_after_the_call_is_not_what_was_logged(tmp_path: Path) -> None:
    total, image = torch.zeros(()), torch.tensor(rows(1))
    with ce.log_run(tmp_path, name="running sums") as log:
        for step in range(5):
            total += 1
            log.metrics(step, {"sum": total})
        log.embeddings(1, image=image)
        image.zero_()
    assert [value for _, value in series(tmp_path, log, "sum")] == [1, 2, 3, 4, 5]
    assert not log.lost


POISON = {
    "NaN step": lambda log: log.metrics(float("nan"), {"x": 1}),
    "truth as step": lambda log: log.metrics(True, {"x": 1}),
    "negative step": lambda log: log.metrics(-1, {"x": 1}),
    "huge step": lambda log: log.metrics(2**60, {"x": 1}),
    "no step": lambda log: log.metrics(None, {"x": 1}),
    "None": lambda log: log.metrics(1, {"x": None}),
    "a text": lambda log: log.metrics(1, {"x": "0.5"}),
    "a matrix": lambda log: log.metrics(1, {"x": torch.zeros(2, 2)}),
    "no mapping": lambda log: log.metrics(1, 5),
    "nothing": lambda log: log.embeddings(1),
    "a list of texts": lambda log: log.embeddings(1, image=["a", "b"]),
    "whole numbers": lambda log: log.embeddings(1, image=np.ones((4, 4), int)),
    "sides of two sizes": lambda log: log.embeddings(1, image=rows(1), text=rows(2)[:5]),
    "other items": lambda log: log.embeddings(1, image=rows(1), items=IDS[:3]),
    "equal ids": lambda log: log.embeddings(1, image=rows(1), items=["same"] * N),
    "no direction": lambda log: log.embeddings(1, image=np.zeros((N, D), np.float32)),
}


def test_what_cannot_be_logged_is_counted_and_warned_of_once(tmp_path: Path) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with ce.log_run(tmp_path, name="poison") as log:
            for poison in POISON.values():
                poison(log)
                poison(log)
            log.metrics(3, {"x": 1.5})
    assert series(tmp_path, log, "x") == [(3, 1.5)]
    assert Workspace(tmp_path).results.snapshots(log.run_id or 0) == []
    # Of the matrix, the texts and so on each number, of the rest each call.
    assert log.lost == {"numbers": 18, "sets of embeddings": 14}
    assert row_of(log, tmp_path).facts["not_logged"] == log.lost
    assert row_of(log, tmp_path).status == "finished"
    ours = [str(warning.message) for warning in caught if issubclass(warning.category, ce.LoggingWarning)]
    assert len(ours) == 3, ours


def test_warnings_that_are_errors_do_not_reach_the_loop(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with ce.log_run(tmp_path, name="strict") as log:
            log.metrics(-1, {"x": 1})
    assert "out of range" in capfd.readouterr().err


def test_rows_without_a_direction_are_left_out_by_id_and_another_width_is_another_split(tmp_path: Path) -> None:
    broken = rows(1)
    broken[3], broken[5, 0] = 0, np.nan
    with warnings.catch_warnings(record=True), ce.log_run(tmp_path, name="rows") as log:
        log.embeddings(1, image=broken, items=IDS)
        log.embeddings(2, image=rows(2, width=D + 1), items=IDS)
        log.embeddings(3, image=rows(3), items=IDS, split="../up")
    snapshots = {(s.split, s.step): s for s in Workspace(tmp_path).results.snapshots(log.run_id or 0)}
    assert {key: (s.n, s.d) for key, s in snapshots.items()} == {
        ("val", 1): (N - 2, D),
        ("val-9d", 2): (N, D + 1),
        ("up", 3): (N, D),
    }
    left = [name for name in IDS if name not in ("pair 3", "pair 5")]
    assert list(read_snapshot(snapshots["val", 1].folder).items.id) == left
    assert "2 of 24 rows of val (ids pair 3, pair 5)" in row_of(log, tmp_path).facts["dropped_val"]


def test_a_full_queue_keeps_the_newest_set_and_never_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer_thread.WriterThread, "_run", lambda self: self._opened.set())
    queue = WritingQueue(most_bytes=3 * N * D * 4)
    monkeypatch.setattr(writer_thread, "WritingQueue", lambda: queue)
    with warnings.catch_warnings(record=True):
        log = ce.log_run(tmp_path, name="full")
        for step in range(10):
            log.embeddings(step, image=rows(step))
        for step in range(1_000):
            log.metrics(step, {"x": 1.0})
        log.finish()
    waiting = queue.take(0)
    assert isinstance(waiting[0], EmbeddingSet)
    assert waiting[0].step > 0
    assert queue.lost["sets of embeddings"] + queue.lost["numbers"] == 1_010 - len(waiting) - len(queue._records)


def test_a_full_disk_is_one_warning_and_the_numbers_follow_when_there_is_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entries, full = run_logger.WriterThread._write_numbers, [True]

    def refused(self: writer_thread.WriterThread, log) -> None:
        if full and self._pending:
            full.pop()
            self._wait_for_disk(log, DiskTrouble("The disk is full.", path=tmp_path, need=1, full=True))
        else:
            entries(self, log)

    monkeypatch.setattr(writer_thread.WriterThread, "_write_numbers", refused)
    with warnings.catch_warnings(record=True) as caught, ce.log_run(tmp_path, name="full disk") as log:
        warnings.simplefilter("always")
        for step in range(4):
            log.metrics(step, {"x": step})
    assert [str(warning.message) for warning in caught if "disk is full" in str(warning.message)] != []
    assert series(tmp_path, log, "x") == [(step, step) for step in range(4)]
    assert not log.lost


def test_a_workspace_that_cannot_be_is_a_warning(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.warns(ce.LoggingWarning, match="not logged"):
        log = ce.log_run(tmp_path / "file", name="nowhere")
    log.metrics(1, {"x": 1.0})
    log.finish()
    assert log.run_id is None


def test_an_exception_fails_the_run_and_a_second_of_its_name_ends_the_first(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="diverged"), ce.log_run(tmp_path, name="a") as failed:
        raise ValueError("the loss diverged")
    first = ce.log_run(tmp_path, name="b")
    second = ce.log_run(tmp_path, name="b")
    second.finish()
    assert [(row.name, row.status) for row in Workspace(tmp_path).runs.all()] == [
        ("a", "failed"),
        ("b", "interrupted"),
        ("b 2", "finished"),
    ]
    assert row_of(failed, tmp_path).reason == "the loss diverged"
    assert "Another run of this name" in row_of(first, tmp_path).reason
    dropped = ce.log_run(tmp_path, name="c")
    number, writer = dropped.run_id, dropped._active
    del dropped
    assert writer.join(60)
    assert "dropped" in Workspace(tmp_path).runs.get(number or 0).reason


def test_a_stop_from_the_window_is_for_the_loop_and_a_pause_is_refused(tmp_path: Path) -> None:
    store = Workspace(tmp_path)
    with ce.log_run(tmp_path, name="asked", total_steps=1_000_000) as log:
        store.runs.ask(log.run_id or 0, "pause")
        deadline = time.monotonic() + 60
        while not store.runs.get(log.run_id or 0).alerts and time.monotonic() < deadline:
            time.sleep(0.05)
        assert "cannot pause" in store.runs.get(log.run_id or 0).alerts["request"]["words"]
        assert not log.stopping
        launch.stop(store, log.run_id or 0)
        step = 0
        while not log.stopping and time.monotonic() < deadline:
            log.metrics(step := step + 1, {"x": 1.0})
            time.sleep(0.02)
    row = row_of(log, tmp_path)
    assert (row.status, row.asked, row.reason) == ("stopped", "", f"Stopped at step {step}, as asked.")
    with pytest.raises(launch.LaunchError, match="trained by another program"):
        launch.start_detached(store, row.id)
    assert row_of(log, tmp_path).status == "stopped"


def test_a_training_of_others_is_reminded_by_a_file_and_never_by_a_signal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    signaled: list[object] = []
    monkeypatch.setattr(launch, "signal_trainer", lambda *_, **__: signaled.append(1))
    monkeypatch.setattr(launch, "trainer_of", lambda *_: identity())
    monkeypatch.setattr(launch, "os", SimpleNamespace(getpid=lambda: -1))  # as the window, another process
    store = Workspace(tmp_path)
    with ce.log_run(tmp_path, name="locked") as log:
        assert launch.remind(store, log.run_id or 0)
        monkeypatch.undo()
        deadline = time.monotonic() + 60
        while not log.stopping and time.monotonic() < deadline:
            time.sleep(0.05)
    assert (row_of(log, tmp_path).status, signaled) == ("stopped", [])


def test_a_copy_in_another_process_is_silent(tmp_path: Path) -> None:
    with ce.log_run(tmp_path, name="copied") as log:
        copied = copy.deepcopy(log)
        assert (copied.is_open, log.is_open) == (False, True)
        copied.metrics(1, {"x": 1.0})
        copied.finish()
        assert log.is_open
    assert series(tmp_path, log, "x") == []


def test_validation_losses_of_other_batches_have_another_axis(tmp_path: Path) -> None:
    for batch in (32, 32, 64):
        with ce.log_run(tmp_path, name=f"batch {batch}", val_batch=batch) as log:
            log.metrics(1, {"val/loss": 1.0})
    panels = curves(Workspace(tmp_path), [1, 2, 3], ["val/loss"])
    assert [(panel.label, len(panel.series)) for panel in panels] == [
        ("Validation loss, Other program, batches of 32", 2),
        ("Validation loss, Other program, batches of 64", 1),
    ]


def test_a_resumed_run_goes_on_from_the_step_it_begins_at(tmp_path: Path) -> None:
    with ce.log_run(tmp_path, name="long") as log:
        for step in (1, 2, 3, 4):
            log.metrics(step, {"x": 1.0})
            log.embeddings(step, image=rows(step))
    with ce.log_run(tmp_path, name="long", resume=log.run_id) as again:
        again.metrics(3, {"x": 2.0})
        again.embeddings(3, image=rows(9))
    assert again.run_id == log.run_id
    assert series(tmp_path, log, "x") == [(1, 1.0), (2, 1.0), (3, 2.0)]
    snapshots = Workspace(tmp_path).results.snapshots(log.run_id or 0)
    assert [snapshot.step for snapshot in snapshots] == [1, 2, 3]
    assert sorted(path.name[-1] for path in (row_of(log, tmp_path).folder / "snapshots").iterdir()) == ["1", "2", "3"]


def test_embeddings_stay_within_their_budget_evenly_spread(tmp_path: Path) -> None:
    with ce.log_run(tmp_path, name="thin", keep_bytes=24_000) as log:
        for step in range(1, 17):
            log.embeddings(step, image=rows(step), items=ITEMS)
    snapshots = Workspace(tmp_path).results.snapshots(log.run_id or 0)
    steps = [snapshot.step for snapshot in snapshots]
    assert (steps[0], steps[-1]) == (1, 16)
    assert 3 <= len(steps) < 16
    gaps = np.diff(steps)
    assert gaps.max() <= 3 * gaps.min()
    assert len(list((row_of(log, tmp_path).folder / "snapshots").iterdir())) == len(steps)
    assert row_of(log, tmp_path).facts["thinned_val"].startswith("Of the logged steps of val")


def test_the_most_crowded_step_is_never_an_end() -> None:
    assert most_crowded([5, 1]) is None
    assert most_crowded([9, 1, 4, 5]) == 4
    assert most_crowded([1, 2, 3]) == 2


@pytest.mark.parametrize(
    ("environment", "first", "size"),
    [
        ({}, True, 1),
        ({"RANK": "0", "WORLD_SIZE": "4", "SLURM_PROCID": "3"}, True, 4),
        ({"RANK": "2", "WORLD_SIZE": "4"}, False, 4),
        ({"SLURM_PROCID": "1", "SLURM_NTASKS": "2"}, False, 2),
        ({"OMPI_COMM_WORLD_RANK": "0", "OMPI_COMM_WORLD_SIZE": "8"}, True, 8),
        ({"LOCAL_RANK": "1"}, False, 1),
        ({"LOCAL_RANK": "0", "NODE_RANK": "1"}, False, 1),
        ({"RANK": "x", "LOCAL_RANK": "0"}, True, 1),
    ],
)
def test_the_first_rank_writes(environment: dict[str, str], first: bool, size: int) -> None:
    rank = process_rank(environment)
    assert (rank.is_first, rank.size) == (first, size)


def test_later_ranks_are_silent_and_a_part_is_a_sample(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    with ce.log_run(tmp_path / "a", name="rank 1") as log:
        log.metrics(1, {"x": 1.0})
        log.embeddings(1, image=rows(1))
    assert not (tmp_path / "a").exists()
    monkeypatch.setenv("RANK", "0")
    with ce.log_run(tmp_path / "b", name="rank 0") as log:
        log.embeddings(1, image=rows(1))
    assert read_snapshot(Workspace(tmp_path / "b").results.snapshots(1)[0].folder).sampled


def test_training_has_the_same_numbers_with_and_without(tmp_path: Path) -> None:
    def losses(log: ce.RunLogger | None) -> list[float]:
        torch.manual_seed(0)
        model = torch.nn.Linear(4, 4)
        optimizer = torch.optim.AdamW(model.parameters())
        values = []
        for step in range(1, 9):
            loss = (model(torch.randn(16, 4)) ** 2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            values.append(loss.item())
            if log is not None:
                log.metrics(step, {"train/loss": loss})
                log.embeddings(step, image=model(torch.eye(4)))
        return values

    with ce.log_run(tmp_path, name="bits") as log:
        logged = losses(log)
    assert logged == losses(None)
    assert not log.lost


CHILD = """
import os, sys, time
from trainer import api as ce
log = ce.log_run(sys.argv[1], name="child", total_steps=100)
for step in range(1, 21):
    log.metrics(step, {"x": float(step)})
assert "torch" not in sys.modules
"""
KILLED = """
deadline = time.monotonic() + 60
while log._active._first is None and time.monotonic() < deadline:
    time.sleep(0.02)
time.sleep(2.5)
log.embeddings(3, image=__import__("numpy").eye(4))
child = os.fork()
if not child:
    with log:
        log.metrics(99, {"x": 1.0})
    log.finish()
    print(f"child {log.is_open}\\n", end="", flush=True)
    time.sleep(120)
print(f"ready {child}\\n", end="", flush=True)
time.sleep(120)
"""
FAILED = "\nraise RuntimeError('out of ideas')\n"


def child(tmp_path: Path, more: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-W", "error::ResourceWarning", "-c", CHILD + more, str(tmp_path)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])},
    )


@pytest.mark.slow
@pytest.mark.real_process
@pytest.mark.skipif(not hasattr(os, "fork"), reason="Windows has no fork")
def test_a_killed_training_is_interrupted_although_its_forked_child_lives(tmp_path: Path) -> None:
    process = child(tmp_path, KILLED)
    assert process.stdout is not None
    lines = [process.stdout.readline(), process.stdout.readline()]
    forked = next(int(line.split()[1]) for line in lines if line.startswith("ready"))
    try:
        assert "child False\n" in lines
        store = Workspace(tmp_path)
        folder = store.runs.get(1).folder
        # The child closed its logger, which neither ended the run nor unlocked it.
        assert is_held(folder / "alive.lock")
        assert store.reconcile() == []
        assert store.runs.get(1).status == "running"
        deadline = time.monotonic() + 60
        while (len(store.results.series(1, "x")[1]), store.runs.get(1).step) != (
            20,
            20,
        ) and time.monotonic() < deadline:
            time.sleep(0.05)
        process.kill()
        process.wait()
        deadline = time.monotonic() + 60
        while is_held(folder / "alive.lock") and time.monotonic() < deadline:
            time.sleep(0.05)
        os.kill(forked, 0)  # it lives
        store.reconcile()
        row = store.runs.get(1)
        assert (row.status, row.step) == ("interrupted", 20)
        assert list(store.results.series(1, "x")[1]) == list(range(1, 21))
        assert '"step": 99' not in (folder / "metrics.jsonl").read_text()
    finally:
        os.kill(forked, signal.SIGKILL)
        process.kill()
        process.wait()


@pytest.mark.slow
@pytest.mark.real_process
def test_a_process_that_ends_by_an_error_fails_its_run(tmp_path: Path) -> None:
    process = child(tmp_path, FAILED)
    process.communicate()
    row = Workspace(tmp_path).runs.get(1)
    assert (row.status, row.reason, row.step) == ("failed", "out of ideas", 20)


PART = """
import os, sys, numpy as np
from trainer import api as ce
rank, size, folder = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]), sys.argv[1]
with ce.log_run(folder, name="parts", total_steps=2, merge_ranks=size) as log:
    for step in (1, 2):
        # As a sampler deals them out, with a repeat so that all parts are equally long.
        ids = [*range(rank, 7, size), 0][: -(-7 // size)]
        values = np.random.default_rng(step).normal(size=(7, 4))
        log.metrics(step, {"x": float(rank)})
        log.embeddings(step, image=values[ids], items={"id": ids, "caption": [f"caption {i}" for i in ids]})
assert not log.lost, log.lost
"""


@pytest.mark.slow
def test_parts_of_several_processes_are_merged_by_id(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3]), "WORLD_SIZE": "3"}
    processes = [
        subprocess.Popen(forked_code.command(PART, str(tmp_path)), env=environment | {"RANK": str(rank)})
        for rank in (2, 1, 0)
    ]
    assert [process.wait(120) for process in processes] == [0, 0, 0]
    store = Workspace(tmp_path)
    (row,) = store.runs.all()
    assert (row.status, list(store.results.series(row.id, "x")[1])) == ("finished", [0.0, 0.0])
    for step, snapshot in zip((1, 2), store.results.snapshots(row.id), strict=True):
        stored = read_snapshot(snapshot.folder)
        assert (list(stored.items.id), stored.sampled) == (list(range(7)), False)
        assert list(stored.items.caption) == [f"caption {number}" for number in range(7)]
        np.testing.assert_allclose(stored.image, unit_of(np.random.default_rng(step).normal(size=(7, 4))), atol=5e-4)
    assert not list((tmp_path / "cache").glob("ranks-*/*"))


def test_a_part_that_does_not_come_makes_a_sample(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer_thread, "WAIT_S", 0.2)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with ce.log_run(tmp_path, name="parts", merge_ranks=2) as log:
            log.embeddings(1, image=rows(1), items=IDS)
            log.embeddings(2, image=rows(1))
    assert read_snapshot(Workspace(tmp_path).results.snapshots(1)[0].folder).sampled
    assert row_of(log, tmp_path).facts["parts_val"] == "Of val at step 2 there are the parts of 1 of 2 processes."
    assert any("did not bring theirs in time" in str(warning.message) for warning in caught)
    with warnings.catch_warnings(), ce.log_run(tmp_path, name="numbered", merge_ranks=2) as log:
        warnings.simplefilter("ignore")
        log.embeddings(1, image=rows(1))
    assert log.lost == {"sets of embeddings": 1}


def test_a_cell_of_a_notebook_shows_the_map_of_its_run_each_time_it_is_run(tmp_path: Path) -> None:
    pytest.importorskip("anywidget", reason="the extra [notebook] is not installed")
    for name in ("notebook", "notebook 2"):
        log = ce.log_run(tmp_path, name="notebook")
        log.embeddings(1, image=rows(1), text=rows(2), items=ITEMS)
        log.finish()
        widget = ce.live_map(ce.workspace(tmp_path).run(log.run_id), color="label")
        assert log.name == name
        assert json.loads(gzip.decompress(base64.b64decode(widget.packed)))["maps"][0]["pairs"] == N
