"""What opening a published model costs, in pictures; and how it ends when it is stopped."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch

from trainer import config
from trainer.__main__ import main
from trainer.cli.open import FEW, INTERRUPTED
from trainer.evaluation.heldout import embed_images
from trainer.inference.batches import at_once
from trainer.store import Workspace

pytestmark = pytest.mark.slow

SMALL = ["--set", "data.train_pairs=96", "--set", "data.heldout_pairs=24", "--set", "device=cpu"]
CPU = torch.device("cpu")


@pytest.fixture
def embedded(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return how many pictures each call embedded."""
    counts: list[int] = []

    def counted(towers, images, where, **options):
        counts.append(len(images))
        return embed_images(towers, images, where, **options)

    for module in ("heldout", "neighbors"):
        monkeypatch.setattr(f"trainer.evaluation.{module}.embed_images", counted)
    return counts


def test_without_data_few_scenes_are_drawn_and_embedded(hub_folder, tmp_path, embedded):
    assert main(["open", str(hub_folder), "--set", "device=cpu", "--workspace", str(tmp_path)]) == 0
    assert len(list((tmp_path / "data").rglob("*.jpg"))) == 3 * FEW
    batch = 64
    assert sorted(embedded) == [batch, FEW, FEW, FEW]
    assert {one.n for one in Workspace(tmp_path).results.snapshots(1)} == {FEW, batch}


def test_of_many_training_pairs_only_those_needed_are_prepared(hub_folder, tmp_path, embedded, monkeypatch):
    """A model that is not trained needs those alone among which neighbors are sought."""
    monkeypatch.setattr("trainer.training.fit.STORED", 40)
    workspace = Workspace(tmp_path)
    assert main(["open", str(hub_folder), *SMALL, "--workspace", str(tmp_path)]) == 0
    prepared = [len(np.load(file, mmap_mode="r")) for file in (tmp_path / "cache").rglob("images.npy")]
    assert sorted(prepared) == [24, 24, 40]
    assert sorted(embedded) == [24, 24, 40, 40]  # with the example of a batch
    assert workspace.runs.get(1).facts["train_pairs"] == 96
    asked = {one.question.protocol for one in workspace.results.answers(1) if one.question.task == "knn"}
    assert asked == {"20 nearest among 40 of 96, drawn training pairs"}


def test_large_pictures_are_embedded_few_at_a_time():
    """So that a stop has not long to wait; in groups that divide those of callers, for equal bits."""
    assert [at_once(side, CPU) for side in (32, 64, 96, 224, 336, 1024)] == [256, 256, 64, 16, 8, 8]
    assert at_once(224, torch.device("cuda")) == 256


def test_a_signal_while_it_embeds_ends_it_and_leaves_nothing(hub_folder, tmp_path, monkeypatch, capsys):
    calls = []

    def interrupted(towers, images, where, **options):
        calls.append(len(images))
        os.kill(os.getpid(), signal.SIGTERM)
        return embed_images(towers, images, where, **options)

    with monkeypatch.context() as patched:
        patched.setattr("trainer.evaluation.heldout.embed_images", interrupted)
        assert main(["open", str(hub_folder), *SMALL, "--workspace", str(tmp_path)]) == INTERRUPTED
    assert calls == [24], "a second split was embedded after the signal"
    workspace = Workspace(tmp_path)
    row = workspace.runs.get(1)
    assert row.status == "stopped"
    results = workspace.results
    assert not [*results.snapshots(1), *results.answers(1), *results.checkpoints(1)]
    assert not [file for part in ("snapshots", "checkpoints") for file in (row.folder / part).rglob("*")]
    assert "`trainer resume 1` opens it." in capsys.readouterr().out
    assert main(["fit", "1", "--workspace", str(tmp_path)]) == 0
    assert workspace.runs.get(1).status == "finished"


@pytest.mark.nightly  # test_a_signal_while_it_embeds has one here
def test_a_signal_while_it_draws_ends_the_process_and_leaves_nothing_by_halves(hub_folder, tmp_path):
    """Many Scenes, so that the first of them is far from the last when the signal comes."""
    words = ["open", str(hub_folder), "--workspace", str(tmp_path), "--set", "data.train_pairs=8000"]
    words += ["--set", "data.heldout_pairs=32"]
    with (tmp_path / "out.txt").open("wb") as out:
        process = subprocess.Popen(
            [sys.executable, "-m", "trainer", *words], stdout=out, stderr=out, cwd=Path(config.__file__).parents[2]
        )
        try:
            awaited(lambda: any((tmp_path / "data").glob("*/.train*/00000.jpg")) or process.poll() is not None)
            process.send_signal(signal.SIGTERM)
            assert process.wait(timeout=90) == INTERRUPTED, (tmp_path / "out.txt").read_text()
        finally:
            process.kill()
    left = {one.name for one in (tmp_path / "data").glob("*/*") if one.is_dir()}
    assert left <= {"renderings", "combinations"}, "what was drawn whole stays, and nothing else"
    assert Workspace(tmp_path).runs.get(1).status == "stopped"


def awaited(condition) -> None:
    ends = time.monotonic() + 240
    while not condition():
        assert time.monotonic() < ends
        time.sleep(0.01)
