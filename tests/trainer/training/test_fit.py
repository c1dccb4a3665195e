import json
import os
import signal
import threading
import time

import numpy as np
import pytest
import torch

from tests.nightly import few_plain, nightly_except
from trainer import config, data
from trainer.checkpoints import checkpoint
from trainer.evaluation import measure
from trainer.inference.open_model import open_run
from trainer.methods.image_text import ClipPairs
from trainer.store import EVALUATING, RunLog, StoreError, read_snapshot
from trainer.store.disk import DiskTrouble
from trainer.training.fit import fit
from trainer.training.metric_logger import TRAINING
from trainer.training.session import FitError, TrainingSession

pytestmark = pytest.mark.slow

SAME = ("train/loss", "train/learning_rate", "train/inv_tau", "train/gradient_norm")
"""Curves that a resumed run repeats to the last bit; speeds and loads differ from run to run."""

OBJECTIVES = {"clip": config.Clip(), "cloob": config.Cloob()}


@pytest.fixture(scope="session")
def straight(workspace, tiny):
    """Return objective type -> an uninterrupted run of twelve steps."""
    found: dict[str, int] = {}

    def get(kind: str) -> int:
        if kind not in found:
            found[kind] = tiny(OBJECTIVES[kind])
            fit(workspace, found[kind])
        return found[kind]

    return get


def weights(workspace, run: int) -> dict[str, torch.Tensor]:
    found, complaints = checkpoint.newest(workspace.runs.get(run).folder / "checkpoints")
    assert found is not None
    assert not complaints
    return found.weights


def assert_identical(workspace, journal, run: int, other: int) -> None:
    ours, theirs = journal(run), journal(other)
    assert ours.keys() == theirs.keys()
    for step, values in theirs.items():
        names = [name for name in values if name in SAME or name.startswith(("val/", "combinations/"))]
        assert {name: ours[step][name] for name in names} == {name: values[name] for name in names}
    left, right = weights(workspace, run), weights(workspace, other)
    assert left.keys() == right.keys()
    assert all(torch.equal(left[name], right[name]) for name in left)


@few_plain(1, "kind", OBJECTIVES)
def test_a_run_leaves_everything_the_window_shows(workspace, straight, journal, kind):
    run = straight(kind)
    row, curves = workspace.runs.get(run), journal(run)
    assert (row.status, row.step, row.total_steps, row.phase) == ("finished", 12, 12, "")
    assert sorted(curves) == list(range(13))
    assert set(SAME) <= curves[7].keys()
    assert {"train/pairs_per_s", "train/data_wait", "system/memory_mib", "system/cpu_percent"} <= curves[7].keys()
    assert sorted({e.step for e in workspace.results.evaluations(run)}) == [0, 5, 6, 10, 12]
    for prefix in ("val", "combinations"):
        for name in (
            "image_to_text_R@1",
            "text_to_image_R@10",
            "zero_shot_acc1",
            "matched_cosine",
            "auc_hard10",
            "loss",
        ):
            assert f"{prefix}/{name}" in curves[12]
    assert [(s.step, s.split) for s in workspace.results.snapshots(run)] == [
        (step, split) for step in (0, 6, 12) for split in ("renderings", "combinations", "batch")
    ]
    assert row.last == curves[12]["val/image_to_text_R@1"]
    assert row.best == max(v["val/image_to_text_R@1"] for v in curves.values() if "val/image_to_text_R@1" in v)
    best = [c.step for c in workspace.results.checkpoints(run) if c.best]
    assert len(best) == 1
    assert curves[best[0]]["val/image_to_text_R@1"] == row.best


def test_the_first_training_batch_is_kept_with_each_snapshot(workspace, straight):
    from trainer.data.order import batches

    run = straight("clip")
    settings = workspace.runs.config_of(run)
    kept = read_snapshot([s for s in workspace.results.snapshots(run) if s.split == "batch"][-1].folder)
    pairs = data.load(
        settings.data,
        image_size=settings.model.image_size,
        workspace_folder=workspace.folder,
        progress=lambda share, note: None,
    ).train
    rows = np.sort(next(batches(len(pairs), settings.optimizer.batch_size, settings.seed, 0)))
    assert list(kept.items.caption) == [pairs.captions[row] for row in rows]
    assert kept.image.shape[0] == kept.text.shape[0] == settings.optimizer.batch_size


def test_the_last_snapshot_is_what_the_opened_model_embeds(workspace, straight):
    run = straight("clip")
    last = [s for s in workspace.results.snapshots(run) if s.split == "renderings"][-1]
    snapshot = read_snapshot(last.folder)
    model = open_run(workspace, run)
    assert model.step == 12
    text = model.embed_texts(snapshot.items.caption)
    assert text == pytest.approx(snapshot.text, abs=1e-5)
    from trainer.data import read_image

    images = [read_image(path, model.image_size) for path in snapshot.items.path[:5]]
    import numpy as np

    assert model.embed_images(np.stack(images)) == pytest.approx(snapshot.image[:5], abs=1e-5)


@pytest.mark.parametrize("kind", nightly_except(OBJECTIVES, "clip"))
def test_a_run_that_is_ended_by_sigterm_and_resumed_is_bit_identical(
    workspace, tiny, journal, straight, after_update, kind
):
    run = tiny(OBJECTIVES[kind])
    after_update(7, lambda: os.kill(os.getpid(), signal.SIGTERM))
    fit(workspace, run)
    row = workspace.runs.get(run)
    assert (row.status, row.step) == ("stopped", 7)
    fit(workspace, run)
    assert workspace.runs.get(run).status == "finished"
    assert_identical(workspace, journal, run, straight(kind))


def test_a_run_that_died_between_checkpoints_repeats_the_lost_steps(
    workspace, tiny, journal, straight, after_update, monkeypatch
):
    run = tiny()

    def die() -> None:
        raise SystemExit("as if killed")

    with monkeypatch.context():
        after_update(11, die)
        with pytest.raises(SystemExit):
            fit(workspace, run)
    assert checkpoint.steps(workspace.runs.get(run).folder / "checkpoints")[0] < 11
    fit(workspace, run)
    assert_identical(workspace, journal, run, straight("clip"))


@pytest.mark.nightly
def test_a_run_does_not_go_on_with_other_pairs(workspace, tiny, after_update):
    run = tiny()
    after_update(5, lambda: workspace.runs.ask(run, "stop"))
    fit(workspace, run)
    assert workspace.runs.get(run).status == "stopped"
    facts = workspace.runs.get(run).facts
    workspace.runs.change(run, facts=json.dumps(facts | {"fingerprint": "0" * 32}))
    with pytest.raises(FitError, match="labels of scenes have changed since this run began"):
        fit(workspace, run)


def test_the_stop_flag_ends_the_run_with_a_checkpoint(workspace, tiny, after_update):
    run = tiny(**{"optimizer.epochs": 50})
    after_update(3, lambda: workspace.runs.ask(run, "stop"))
    fit(workspace, run)
    row = workspace.runs.get(run)
    assert row.status == "stopped"
    assert 3 <= row.step < 200
    assert checkpoint.steps(row.folder / "checkpoints")[0] == row.step
    assert not workspace.is_alive(run)


def test_a_paused_run_waits_with_a_checkpoint_and_goes_on(workspace, tiny, after_update, journal, straight):
    run = tiny()
    seen: list[tuple[str, int]] = []

    def resume_later() -> None:
        while (row := workspace.runs.get(run)).status != "paused":
            time.sleep(0.02)
        seen.append((row.status, checkpoint.steps(row.folder / "checkpoints")[0]))
        workspace.runs.ask(run, "")

    def pause() -> None:
        workspace.runs.ask(run, "pause")
        time.sleep(0.15)  # the flag is read at most every 0.1 s

    thread = threading.Thread(target=resume_later)
    thread.start()
    after_update(3, pause)
    fit(workspace, run)
    thread.join()
    assert seen == [("paused", 3)]
    assert workspace.runs.get(run).status == "finished"
    left, right = weights(workspace, run), weights(workspace, straight("clip"))
    assert all(torch.equal(left[name], right[name]) for name in left)


def test_save_and_evaluate_are_done_when_asked(workspace, tiny, after_update):
    run = tiny(**{"watching.checkpoint_every": 1000, "watching.evaluate_every": 1000, "watching.snapshots": 2})

    def ask(what: str) -> None:
        workspace.runs.ask(run, what)
        time.sleep(0.15)

    after_update(2, lambda: ask("save"))
    after_update(7, lambda: ask("evaluate"))
    fit(workspace, run)
    assert {e.step for e in workspace.results.evaluations(run)} == {0, 7, 12}
    assert 2 in {c.step for c in workspace.results.checkpoints(run)}


def test_an_evaluation_gives_signs_of_life(workspace, tiny, monkeypatch):
    """Heartbeats show those who wait for the run to stop that it is evaluating and not hanging."""
    told: list[tuple[int, str]] = []
    progress = RunLog.progress

    def heard(log: RunLog, **news: object) -> None:
        told.append((news["step"], news["phase"]))
        progress(log, **news)

    monkeypatch.setattr(RunLog, "progress", heard)
    monkeypatch.setattr("trainer.inference.batches.AT_ONCE", 16)
    run = tiny(**{"optimizer.epochs": 1, "watching.evaluate_every": 4})
    fit(workspace, run)
    last = workspace.runs.get(run).step
    assert told.count((last, EVALUATING)) > 8, "one for every 16 images and texts of two splits"
    assert {phase for _, phase in told if phase} >= {TRAINING, EVALUATING}


@pytest.mark.nightly
def test_comparing_each_with_each_gives_signs_of_life(workspace, tiny, monkeypatch):
    told = []
    monkeypatch.setattr("trainer.analysis.tiled_ranks.EDGE", 1)

    def heard(heldout, *arguments, alive, **options):
        def counted():
            told.append(heldout.prefix)
            alive()

        return measure(heldout, *arguments, alive=counted, **options)

    monkeypatch.setattr("trainer.evaluation.measurement.measure", heard)
    run = tiny(**{"optimizer.epochs": 1, "watching.snapshots": 2, "watching.evaluate_every": 1000})
    fit(workspace, run)
    assert told.count("val") > 2 * 64, "for every image, at both evaluations"


def test_nan_stops_the_run_before_it_reaches_the_weights(workspace, tiny, monkeypatch, journal, log_text):
    run = tiny()
    loss, calls = ClipPairs.loss, []

    def poisoned(self, image, text):
        # Evaluations follow the gradient, too, but in float64.
        if torch.is_grad_enabled() and image.dtype == torch.float32:
            calls.append(1)
        return loss(self, image, text) * (float("nan") if len(calls) == 7 else 1.0)

    monkeypatch.setattr(ClipPairs, "loss", poisoned)
    with pytest.raises(FitError, match=r"The loss became nan in the update after step 6.*learning rate"):
        fit(workspace, run)
    row = workspace.runs.get(run)
    assert row.status == "failed"
    assert "loss became nan" in row.reason
    assert "failed" in log_text(run)
    assert journal(run)[7]["train/loss"] == "nan"
    assert row.alerts["nan"]["step"] == 6
    assert "loss became nan" in row.alerts["nan"]["words"]
    assert row.rss_mib > 10
    assert row.best < 1
    found, complaints = checkpoint.newest(row.folder / "checkpoints")
    assert found.step <= 6
    assert not complaints
    assert all(torch.isfinite(value.float()).all() for value in found.weights.values())


def test_a_bug_keeps_its_traceback_in_the_log(workspace, tiny, monkeypatch, log_text):
    def break_down(training):
        raise KeyError("gone")

    monkeypatch.setattr(TrainingSession, "update", break_down)
    run = tiny()
    with pytest.raises(KeyError):
        fit(workspace, run)
    assert workspace.runs.get(run).status == "failed"
    assert "Traceback" in log_text(run)
    assert "break_down" in log_text(run)


def test_too_few_pairs_for_a_batch_is_a_sentence(workspace, tiny):
    run = tiny(**{"optimizer.batch_size": 500})
    with pytest.raises(Exception, match=r"optimizer\.batch_size"):
        fit(workspace, run)
    assert workspace.runs.get(run).status == "failed"


def test_a_run_is_trained_by_one_process_only(workspace, tiny, after_update):
    run = tiny()
    refused: list[str] = []

    def fit_again() -> None:
        with pytest.raises(StoreError) as caught:
            fit(workspace, run)
        refused.append(str(caught.value))

    after_update(2, fit_again)
    fit(workspace, run)
    assert "already being trained" in refused[0]
    assert workspace.runs.get(run).status == "finished"


@pytest.mark.parametrize("kind", nightly_except(OBJECTIVES, "cloob"))
def test_it_learns(workspace, tiny, journal, kind):
    """Chance is 1/64 for R@1 and 5/64 for R@5."""
    quick = {"model.image_tower": "vit", "model.image_width": 32, "model.image_layers": 2}
    watching = {"watching.log_every": 10, "watching.evaluate_every": 1000, "watching.checkpoint_every": 1000}
    run = tiny(OBJECTIVES[kind], **quick | watching | {"optimizer.epochs": 15})
    fit(workspace, run)
    last = journal(run)[60]
    assert last["val/image_to_text_R@5"] > 0.2
    assert last["val/auc_hard10"] > journal(run)[0]["val/auc_hard10"] + 0.1


def test_a_run_begins_once_the_disk_has_room_for_its_row(workspace, tiny, monkeypatch):
    number, tries = tiny(), []
    folder = workspace.runs.get(number).folder

    def claim(workspace, run):
        tries.append(run)
        if len(tries) < 3:
            raise DiskTrouble("The disk is full.", path=folder, need=1, full=True)
        raise DiskTrouble("The disk is gone.", path=folder, need=1, full=False)

    monkeypatch.setattr(RunLog, "claim", claim)
    with pytest.raises(DiskTrouble, match="gone"):
        fit(workspace, number)
    assert tries == [number] * 3
    log = (folder / "log.txt").read_text(encoding="utf-8")
    assert log.count("The disk is full. The run begins once there is room.") == 1
