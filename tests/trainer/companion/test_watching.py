"""Trainings of open_clip and transformers are watched: real checkpoints, written as their programs write them."""

import csv
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import open_clip
import pytest
import torch
from PIL import Image

from tests.nightly import few_plain
from trainer import pretrained
from trainer.__main__ import main
from trainer.checkpoints import tensor_file
from trainer.companion.folder_watch import FolderWatch, watched_run
from trainer.companion.stop_request import is_asked_to_stop
from trainer.companion.watching_files import WatchError, watched_folder
from trainer.evaluation.checkpoint_measurement import CheckpointMeasurement
from trainer.pretrained.specification import newest_epoch
from trainer.scheduling import launch
from trainer.store import Workspace, read_snapshot, stop_flag
from trainer.store.process_lock import identity
from trainer.training.provenance import repeat_command

pytestmark = pytest.mark.slow

PAIRS = 12
UPDATES = 4
"""Of an epoch: 8 training pairs in batches of 2."""
SIZES: dict[str, Any] = {
    "embed_dim": 16,
    "vision_cfg": {"image_size": 32, "layers": 1, "width": 32, "head_width": 16, "patch_size": 16},
    "text_cfg": {"context_length": 12, "vocab_size": 49_408, "width": 64, "heads": 4, "layers": 1},
}
NAME = "tiny-of-four-heads"
LINE = (
    "2026-11-28,12:00:{second:02d} | INFO | Train Epoch: {epoch} [ {seen}/8 (50%)] Data (t): 0.001 Batch (t): 0.1, "
    "20.0/s, 20.0/s/gpu LR: 0.000100 Logit Scale: 14.286 Contrastive_loss: {loss:.4f} ({loss:.4f}) "
    "Loss: {loss:.4f} ({loss:.4f})\n"
)


@pytest.fixture(autouse=True, scope="module")
def _known_model(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Name the tiny architecture to open_clip, as a person does for a model of their own."""
    file = tmp_path_factory.mktemp("configs") / f"{NAME}.json"
    file.write_text(json.dumps(SIZES))
    open_clip.add_model_config(file)


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a table of pictures with distinct captions, as open_clip's `--val-data`."""
    folder = tmp_path_factory.mktemp("pairs")
    random = np.random.default_rng(0)
    with (folder / "val.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["filepath", "title"])
        for number in range(PAIRS):
            Image.fromarray(random.integers(0, 255, (32, 32, 3), dtype=np.uint8)).save(folder / f"{number}.png")
            rows.writerow([f"{number}.png", f"picture number {number}"])
    return folder / "val.csv"


def model_of(seed: int) -> "open_clip.CLIP":
    torch.manual_seed(seed)
    model = open_clip.create_model(NAME)
    torch.nn.init.normal_(model.text_projection, std=0.5)
    return model.eval()


class OpenClipTraining:
    """Writes what `open_clip_train.main` writes, in its order, with models made by open_clip."""

    def __init__(self, folder: Path, epochs: int = 9) -> None:
        self.folder = folder
        (folder / "checkpoints").mkdir(parents=True)
        (folder / "out.log").write_text("2026-11-28,12:00:00 | INFO | Running with a single process.\n")
        (folder / "params.txt").write_text(f"accum_freq: 1\nbatch_size: 2\nepochs: {epochs}\nmodel: {NAME}\n")

    def log(self, epoch: int, loss: float) -> None:
        with (self.folder / "out.log").open("a") as file:
            for update in range(UPDATES):
                file.write(LINE.format(second=update, epoch=epoch - 1, seen=2 * (update + 1), loss=loss - update / 10))
        with (self.folder / "checkpoints" / "results.jsonl").open("a") as file:
            numbers = {"image_to_text_R@1": 0.5, "clip_val_loss": loss, "epoch": epoch, "num_samples": PAIRS}
            file.write(json.dumps(numbers) + "\n")

    def save(self, epoch: int, seed: int, name: str = "") -> Path:
        file = self.folder / "checkpoints" / (name or f"epoch_{epoch}.pt")
        model = model_of(seed)
        optimizer = torch.optim.AdamW(model.parameters()).state_dict()
        state = {"epoch": epoch, "name": "toy", "state_dict": model.state_dict(), "optimizer": optimizer}
        torch.save(state, file)
        return file

    def train(self, epoch: int, seed: int) -> None:
        self.log(epoch, 10.0 - epoch)
        self.save(epoch, seed)


@pytest.fixture
def training(tmp_path: Path) -> OpenClipTraining:
    return OpenClipTraining(tmp_path / "logs" / "toy")


@pytest.fixture
def watched(tmp_path: Path, pairs: Path) -> Callable[..., SimpleNamespace]:
    """Return a function that watches a folder until nothing is new, in a session of its own."""
    workspace = Workspace(tmp_path / "workspace")
    measure = CheckpointMeasurement(workspace, str(pairs))

    def watch(folder: Path, **options: Any) -> SimpleNamespace:
        said: list[str] = []
        with watched_run(workspace, watched_folder(folder), name="", dataset="val") as log:
            watch = FolderWatch(workspace, log, watched_folder(folder), measure, say=said.append, **options)
            while watch.look():
                pass
            log.status("finished" if watch.has_ended else "stopped")
        run = workspace.runs.get(log.run.id)
        steps = [snapshot.step for snapshot in workspace.results.snapshots(run.id)]
        return SimpleNamespace(run=run, steps=steps, said=said, watch=watch, workspace=workspace, id=run.id)

    return watch


def curve(answer: SimpleNamespace, name: str) -> dict[int, float]:
    steps, values, _ = answer.workspace.results.series(answer.id, name)
    return dict(zip(steps.tolist(), values.tolist(), strict=True))


def recall_by_open_clip(seed: int, pairs: Path) -> float:
    """Return R@1 from images to texts, by numpy on embeddings that open_clip makes with its own preprocessing."""
    model = model_of(seed)
    transform = open_clip.image_transform(32, is_train=False)
    pictures = torch.stack([transform(Image.open(pairs.parent / f"{number}.png")) for number in range(PAIRS)])
    captions = open_clip.tokenize([f"picture number {number}" for number in range(PAIRS)], context_length=12)
    with torch.no_grad():
        image = model.encode_image(pictures, normalize=True).numpy().astype(np.float64)
        text = model.encode_text(captions, normalize=True).numpy().astype(np.float64)
    return float((np.argmax(image @ text.T, axis=1) == np.arange(PAIRS)).mean())


def test_each_epoch_is_a_step_with_the_recall_that_open_clip_gives(training, watched, pairs) -> None:
    for epoch in (1, 2, 3):
        training.train(epoch, seed=epoch)
    answer = watched(training.folder)
    assert sorted(answer.steps) == [UPDATES, 2 * UPDATES, 3 * UPDATES]
    expected = {epoch * UPDATES: recall_by_open_clip(epoch, pairs) for epoch in (1, 2, 3)}
    assert curve(answer, "val/image_to_text_R@1") == pytest.approx(expected)
    assert len(set(expected.values())) > 1
    # The newest epoch first, then the past ones.
    assert [sentence.partition(" ")[0] for sentence in answer.said] == ["epoch_3.pt", "epoch_2.pt", "epoch_1.pt"]
    assert f"Image to text R@1, held-out, n = {PAIRS} {100 * expected[4]:.1f} %" in answer.said[-1]
    assert curve(answer, "train/loss") == pytest.approx(
        {UPDATES * (epoch - 1) + update + 1: 10.0 - epoch - update / 10 for epoch in (1, 2, 3) for update in range(4)}
    )
    assert curve(answer, "val/loss") == {4: 9.0, 8: 8.0, 12: 7.0}
    # Its own recall counts other captions as right: another name.
    assert curve(answer, "val/paired_image_to_text_R@1") == {4: 0.5, 8: 0.5, 12: 0.5}
    assert answer.run.status == "stopped"
    assert answer.run.is_companion
    saved = training.folder / "checkpoints"
    assert answer.run.facts["checkpoints_elsewhere"] == {str(4 * n): str(saved / f"epoch_{n}.pt") for n in (1, 2, 3)}
    assert repeat_command(answer.workspace, answer.run)[:3] == ["trainer", "watch", str(training.folder)]
    assert "guessed" not in answer.run.alerts


@pytest.mark.nightly
def test_all_pairs_are_one_split(training, watched) -> None:
    training.train(1, seed=1)
    answer = watched(training.folder)
    (row,) = answer.workspace.results.snapshots(answer.id)
    snapshot = read_snapshot(row.folder)
    assert (snapshot.split, snapshot.n) == ("val", PAIRS)
    assert list(snapshot.items.caption) == [f"picture number {number}" for number in range(PAIRS)]


@few_plain(1, "share", [0.9, 0.0, 0.02, 0.3, 0.999], ids=str)
def test_a_file_that_grows_waits_until_its_content_is_complete(training, watched, share) -> None:
    training.train(1, seed=1)
    training.log(2, 8.0)
    complete = training.save(2, seed=2).read_bytes()
    file = training.folder / "checkpoints" / "epoch_2.pt"
    file.write_bytes(complete[: int(share * len(complete))])
    assert watched(training.folder).steps == [UPDATES]
    file.write_bytes(complete)
    assert sorted(watched(training.folder).steps) == [UPDATES, 2 * UPDATES]


@pytest.mark.nightly
def test_an_old_incomplete_file_is_named_once(training, watched) -> None:
    for epoch in (1, 2):
        training.train(epoch, seed=epoch)
    file = training.folder / "checkpoints" / "epoch_1.pt"
    file.write_bytes(file.read_bytes()[:5_000])
    answer = watched(training.folder)
    assert answer.steps == [2 * UPDATES]
    assert sum("epoch_1.pt is incomplete" in sentence for sentence in answer.said) == 1


def test_a_repeated_epoch_replaces_the_old_one_and_drops_later_ones(training, watched, pairs) -> None:
    for epoch in (1, 2, 3):
        training.train(epoch, seed=epoch)
    assert len(watched(training.folder).steps) == 3
    # `--resume epoch_1.pt`: the same epochs come again in the same files; epoch_3.pt is still that of before.
    training.log(2, 4.0)
    training.save(2, seed=7)
    answer = watched(training.folder)
    assert sorted(answer.steps) == [UPDATES, 2 * UPDATES]
    expected = {4: recall_by_open_clip(1, pairs), 8: recall_by_open_clip(7, pairs)}
    assert curve(answer, "val/image_to_text_R@1") == pytest.approx(expected)
    assert curve(answer, "train/loss")[5] == pytest.approx(4.0)
    assert max(curve(answer, "train/loss")) == 2 * UPDATES
    # Another session, too, knows that epoch_3.pt is of before.
    assert sorted(watched(training.folder).steps) == [UPDATES, 2 * UPDATES]
    training.train(3, seed=8)
    answer = watched(training.folder)
    assert sorted(answer.steps) == [UPDATES, 2 * UPDATES, 3 * UPDATES]
    assert curve(answer, "val/image_to_text_R@1")[12] == pytest.approx(recall_by_open_clip(8, pairs))


def test_a_second_session_goes_on_in_the_same_run_and_embeds_nothing_twice(training, watched) -> None:
    training.train(1, seed=1)
    first = watched(training.folder)
    training.train(2, seed=2)
    second = watched(training.folder / "checkpoints")
    assert second.id == first.id
    assert [sentence.partition(" ")[0] for sentence in second.said] == ["epoch_2.pt"]


def test_no_epoch_is_embedded_before_its_updates_are_known(training, watched) -> None:
    training.train(1, seed=1)
    with (training.folder / "out.log").open("a") as file:
        file.write("2026-11-28,12:01:00 | INFO | Train Epo")
    assert watched(training.folder).steps == []
    with (training.folder / "out.log").open("a") as file:
        file.write("ch ends\n")
    assert watched(training.folder).steps == [UPDATES]


@pytest.mark.nightly
def test_what_another_session_saw_is_void_though_it_was_not_embedded(training, watched) -> None:
    for epoch in (1, 2, 3):
        training.train(epoch, seed=epoch)
    assert sorted(watched(training.folder, every=3 * UPDATES).steps) == [UPDATES, 3 * UPDATES]
    # Back to before the second epoch, of which the new file is not there yet.
    training.log(2, 4.0)
    assert watched(training.folder).steps == [UPDATES]


def test_the_training_ends_when_its_last_epoch_is_there(tmp_path, watched) -> None:
    training = OpenClipTraining(tmp_path / "logs" / "short", epochs=2)
    training.train(1, seed=1)
    assert watched(training.folder).run.status == "stopped"
    training.train(2, seed=2)
    assert watched(training.folder).run.status == "finished"


def test_temporary_and_latest_files_are_passed_over(training, watched) -> None:
    training.train(1, seed=1)
    training.save(1, seed=1, name="epoch_latest.pt")
    training.save(2, seed=2, name="tmp.pt")
    assert watched(training.folder).steps == [UPDATES]
    training.log(2, 8.0)
    training.save(2, seed=2, name="epoch_latest.pt")
    assert sorted(watched(training.folder).steps) == [UPDATES, 2 * UPDATES]


@pytest.mark.nightly
def test_one_checkpoint_in_so_many_updates(training, watched) -> None:
    for epoch in (1, 2, 3, 4):
        training.train(epoch, seed=epoch)
    assert sorted(watched(training.folder, every=2 * UPDATES).steps) == [UPDATES, 2 * UPDATES, 4 * UPDATES]


def test_a_second_watcher_is_refused(training, tmp_path) -> None:
    workspace = Workspace(tmp_path / "workspace")
    folder = watched_folder(training.folder)
    with (
        watched_run(workspace, folder, name="", dataset=""),
        pytest.raises(WatchError, match="watched by another process"),
        watched_run(workspace, folder, name="", dataset=""),
    ):
        pass


def test_parameters_lead_to_no_other_place(training, watched, tmp_path, pairs) -> None:
    # Settings lie where `params.txt` says, with other heads than a guess; nobody but the file said to read them.
    other = tmp_path / "other"
    other.mkdir()
    (other / "open_clip_config.json").write_text(json.dumps({"model_cfg": SIZES}))
    (training.folder / "params.txt").write_text(f"batch_size: 2\nepochs: 9\nmodel: local-dir:{other}\n")
    training.train(1, seed=1)
    answer = watched(training.folder)
    assert "guessed" in answer.run.alerts
    # In the folder that the person named they count.
    shutil.copy(other / "open_clip_config.json", training.folder)
    training.save(1, seed=1)
    answer = watched(training.folder)
    assert curve(answer, "val/image_to_text_R@1")[4] == pytest.approx(recall_by_open_clip(1, pairs))


def test_a_bare_file_gets_the_heads_of_its_run(training, tmp_path) -> None:
    training.train(1, seed=1)
    for path in (training.folder, training.folder / "checkpoints", training.folder / "checkpoints" / "epoch_1.pt"):
        resolved = pretrained.find(pretrained.model_of(str(path)), cache=tmp_path, progress=lambda share, note: None)
        assert resolved.blueprint.text["heads"] == 4
        assert not resolved.head_guess
    (training.folder / "params.txt").unlink()
    resolved = pretrained.find(pretrained.model_of(str(path)), cache=tmp_path, progress=lambda share, note: None)
    assert "heads of attention" in resolved.head_guess


def test_the_newest_model_is_that_of_the_latest_epoch_inside(training) -> None:
    for epoch in (1, 2):
        training.train(epoch, seed=epoch)
    assert newest_epoch(training.folder).name == "epoch_2.pt"
    latest = training.save(3, seed=3, name="epoch_latest.pt")
    assert newest_epoch(training.folder) == latest
    latest.write_bytes(latest.read_bytes()[:-100])
    assert newest_epoch(training.folder).name == "epoch_2.pt"
    file = training.folder / "checkpoints" / "epoch_2.pt"
    file.write_bytes(file.read_bytes()[:-100])
    assert newest_epoch(training.folder).name == "epoch_1.pt"
    with pytest.raises(tensor_file.TensorFileError, match=r"epoch_2.pt is incomplete"):
        tensor_file.load(file)


def test_the_command_brings_in_what_is_there(training, tmp_path, pairs, capsys) -> None:
    training.train(1, seed=1)
    workspace = ["--workspace", str(tmp_path / "w")]
    arguments = ["watch", str(training.folder), "--data", str(pairs), "--once", *workspace]
    assert main([*arguments, "--json", "--name", "toy run"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert (answer["name"], answer["steps"], answer["passed_over"]) == ("toy run", [UPDATES], [])
    assert main(["watch", str(tmp_path), *workspace]) == 2
    assert "holds no training that is known" in capsys.readouterr().err


def test_a_watch_is_stopped_from_the_window_and_refuses_what_it_cannot_do(training, tmp_path) -> None:
    training.train(1, seed=1)
    workspace, folder = Workspace(tmp_path / "w"), watched_folder(training.folder)
    with watched_run(workspace, folder, name="", dataset="") as log:
        run_id = log.run.id
        workspace.runs.ask(run_id, "pause")
        assert not is_asked_to_stop(workspace, log, identity(), 1)
        row = workspace.runs.get(run_id)
        assert (row.asked, "cannot pause" in row.alerts["request"]["words"]) == ("", True)
        stop_flag.put(log.folder, identity())
        assert is_asked_to_stop(workspace, log, identity(), 1)
        log.status("stopped")


@pytest.mark.nightly
def test_a_first_watch_embeds_no_epoch_of_a_time_before_the_training_went_back(training, watched) -> None:
    for epoch in (1, 2, 3):
        training.train(epoch, seed=epoch)
    hour_before = (training.folder / "checkpoints" / "epoch_3.pt").stat().st_mtime - 3_600
    lines = (training.folder / "out.log").read_text()
    for epoch in (1, 2, 3):
        os.utime(training.folder / "checkpoints" / f"epoch_{epoch}.pt", (hour_before, hour_before))
    # Resumed from the first epoch: the second is being trained again, an hour later.
    training.log(2, 7.0)
    later = time.strftime("%Y-%m-%d,%H:%M:%S")
    new = (training.folder / "out.log").read_text()[len(lines) :]
    past = time.strftime("%Y-%m-%d,%H:%M", time.localtime(hour_before - 600))
    old = lines.replace("2026-11-28,12:00", past)
    (training.folder / "out.log").write_text(old + "".join(later + line[19:] + "\n" for line in new.splitlines()))
    answer = watched(training.folder)
    # Its log has passed the second epoch, whose file may be the old one; the third is surely old.
    assert answer.steps == [UPDATES, 2 * UPDATES]
    assert curve(answer, "train/loss")[2 * UPDATES] == pytest.approx(7.0 - (UPDATES - 1) / 10)
    training.save(2, seed=12)
    assert watched(training.folder).steps == [UPDATES, 2 * UPDATES]
    training.train(3, seed=13)
    answer = watched(training.folder)
    assert answer.steps == [UPDATES, 2 * UPDATES, 3 * UPDATES]


@pytest.mark.nightly
@pytest.mark.real_process
def test_a_watch_that_is_killed_is_continued(training, watched, pairs, tmp_path) -> None:
    model, workspace = tmp_path / "model", Workspace(tmp_path / "workspace")
    model.mkdir()
    (model / "open_clip_config.json").write_text(json.dumps({"model_cfg": SIZES, "preprocess_cfg": {}}))
    for epoch in (1, 2, 3):
        training.train(epoch, seed=epoch)
    options = ["--data", str(pairs), "--model", str(model), "--workspace", str(workspace.folder)]
    process = subprocess.Popen([sys.executable, "-m", "trainer", "watch", str(training.folder), *options])
    deadline = time.monotonic() + 240
    while time.monotonic() < deadline and not (workspace.runs.all() and workspace.results.snapshots(1)):
        assert process.poll() is None
        time.sleep(0.01)
    process.kill()
    process.wait()
    workspace.reconcile()
    assert workspace.runs.get(1).status == "interrupted"
    with pytest.raises(launch.LaunchError, match="Watch it again: trainer watch "):
        launch.start_detached(workspace, 1)
    answer = watched(training.folder)
    assert (answer.id, answer.steps) == (1, [UPDATES, 2 * UPDATES, 3 * UPDATES])
    assert list(curve(answer, "val/image_to_text_R@1")) == answer.steps
    assert not list((answer.run.folder / "snapshots").glob(".tmp*"))
