"""A training on another computer is watched: its files come here, or the pairs are embedded there."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.trainer.companion.test_watching import (  # noqa: F401  # fixtures
    SIZES,
    UPDATES,
    OpenClipTraining,
    _known_model,
    pairs,
    watched,
)
from tests.trainer.places.test_ssh import Box, box, here  # noqa: F401  # fixtures
from trainer.__main__ import main
from trainer.companion import remote_training
from trainer.companion.folder_watch import FolderWatch, watched_run
from trainer.companion.remote_training import RemoteTraining
from trainer.companion.watching_files import is_of_training, number_in_name
from trainer.places.bindings import located
from trainer.places.remote_folder import RemoteFolder
from trainer.places.remote_host import PlaceError, parse_folder
from trainer.store import RunRow, Workspace

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


@pytest.fixture
def training(box: Box) -> OpenClipTraining:  # noqa: F811
    """Return a training on the other computer."""
    return OpenClipTraining(box.folder / "far" / "logs" / "toy", epochs=3)


def numbers(workspace: Workspace, row: RunRow, name: str) -> dict[int, float]:
    steps, values, _ = workspace.results.series(row.id, name)
    return dict(zip(steps.tolist(), values.tolist(), strict=True))


def watched_row(workspace: Workspace) -> RunRow:
    """Return the run of the training; the first one is that of `here`."""
    return workspace.runs.all()[-1]


@pytest.mark.quick
def test_an_address_of_a_folder() -> None:
    host, path = parse_folder("ssh://me@box:2222/data/logs/toy?python=/opt/bin/python&config=~/ssh")
    assert (host.hostname, host.user, host.port, path) == ("box", "me", 2222, "/data/logs/toy")
    assert (host.name, host.python, host.options) == ("box", "/opt/bin/python", {"config": "~/ssh"})
    assert parse_folder("ssh://box/~/logs")[1] == "~/logs"
    for wrong in ("ssh://box", "http://box/logs", "ssh://-oProxyCommand=x/logs", "ssh://box/logs?workspace=/x"):
        with pytest.raises(PlaceError):
            parse_folder(wrong)


@pytest.mark.quick
def test_what_is_brought_of_a_folder() -> None:
    brought = (
        "out.log", "params.txt", "checkpoints/results.jsonl", "checkpoints/epoch_12.pt", "metrics.csv",
        "checkpoints/epoch=0-step=4.ckpt", "checkpoint-30/model.safetensors", "checkpoint-30/trainer_state.json",
        "checkpoint-30/model-00001-of-00002.safetensors", "events.out.tfevents.1.host",
    )  # fmt: skip
    left = (
        "checkpoints/tmp.pt", "checkpoint-30/optimizer.pt", "checkpoint-30/rng_state.pth", "wandb/files/config.yaml",
        "checkpoint-30/training_args.bin", "train.py", "checkpoints/deep/epoch_1.pt",
    )  # fmt: skip
    assert [name for name in (*brought, *left) if is_of_training(name)] == list(brought)
    assert [number_in_name(name) for name in (*brought[3:4], *brought[5:8], brought[8])] == [12, 4, 30, 30, 30]


def test_its_files_come_and_its_checkpoints_are_embedded_here(
    box: Box,  # noqa: F811
    here: Workspace,  # noqa: F811
    training: OpenClipTraining,
    pairs: Path,  # noqa: F811
    watched: Callable[..., SimpleNamespace],  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(remote_training, "LOOK_S", 0.1)
    for epoch in (1, 2, 3):
        training.train(epoch, seed=epoch)
    # One is being written.
    incomplete = training.folder / "checkpoints" / "epoch_4.pt"
    incomplete.write_bytes((training.folder / "checkpoints" / "epoch_3.pt").read_bytes()[:9_000])
    words = ["watch", f"ssh://box{training.folder}", "--data", str(pairs), "--workspace", str(here.folder)]
    assert main(words) == 0
    row = watched_row(here)
    assert (row.name, row.status, row.step) == ("toy", "finished", 3 * UPDATES)
    steps = [snapshot.step for snapshot in here.results.snapshots(row.id)]
    assert steps == [UPDATES, 2 * UPDATES, 3 * UPDATES]
    near = watched(training.folder)
    for name in ("val/image_to_text_R@1", "train/loss", "val/loss"):
        assert numbers(here, row, name) == numbers(near.workspace, near.run, name)
    # What is embedded takes no room here any more, but for the newest.
    (copy,) = (here.folder / "cache" / "watched").glob("*/toy")
    assert sorted(file.name for file in (copy / "checkpoints").glob("*.pt")) == ["epoch_3.pt"]
    # Another session brings what is new, and nothing else.
    incomplete.unlink()
    training.train(4, seed=4)
    assert main([*words, "--once"]) == 0
    assert watched_row(here).id == row.id
    assert [snapshot.step for snapshot in here.results.snapshots(row.id)][-1] == 4 * UPDATES


def test_a_lost_connection_is_out_of_reach_and_keeps_what_came(
    box: Box,  # noqa: F811
    here: Workspace,  # noqa: F811
    training: OpenClipTraining,
) -> None:
    training.log(1, 9.0)
    said: list[str] = []
    remote = RemoteTraining(here, f"ssh://box{training.folder}", said.append)
    with watched_run(here, remote.recognized(), name="", dataset="") as log:
        watch = FolderWatch(here, log, remote.recognized(), None)
        remote.bring(watch)
        while watch.look():
            pass
        assert box.cut() > 0
        assert not remote.bring(watch)
        watch.look()
        row = here.runs.get(log.run.id)
        assert row.out_of_reach
        assert row.phase.startswith("out of reach (box, last seen ")
        assert len(numbers(here, row, "train/loss")) == UPDATES
        box.mend()
        training.log(2, 8.0)
        while not remote.bring(watch):
            pass
        while watch.look():
            pass
        row = here.runs.get(log.run.id)
        assert (row.phase, row.step) == ("watching", 2 * UPDATES)
        log.status("stopped")
    remote.close()


def test_nothing_outside_of_the_folder_is_read(box: Box, tmp_path: Path) -> None:  # noqa: F811
    (box.folder / "secret").write_text("no")
    (box.folder / "far").mkdir()
    (box.folder / "far" / "link.txt").symlink_to(box.folder / "secret")
    host, _ = located("ssh://box/x")
    folder = RemoteFolder(host, str(box.folder / "far"), tmp_path / "copy", selects=lambda name: True)
    assert folder.bring_small() == []
    for name in ("../secret", "link.txt"):
        with pytest.raises(PlaceError, match="outside"):
            folder.ask("read", name=name, offset=0, most=10)
    folder.close()
    shutil.rmtree(box.folder / "far")
    with pytest.raises(PlaceError, match="there is no folder"):
        RemoteFolder(host, str(box.folder / "far"), tmp_path / "copy", selects=lambda name: True).bring_small()


@pytest.mark.nightly
def test_the_pairs_are_embedded_there(
    box: Box,  # noqa: F811
    here: Workspace,  # noqa: F811
    training: OpenClipTraining,
    pairs: Path,  # noqa: F811
    watched: Callable[..., SimpleNamespace],  # noqa: F811
) -> None:
    for epoch in (1, 2, 3):
        training.train(epoch, seed=epoch)
    # That computer does not know the architecture by its name.
    model = box.folder / "far" / "model"
    model.mkdir()
    (model / "open_clip_config.json").write_text(json.dumps({"model_cfg": SIZES, "preprocess_cfg": {}}))
    words = ["watch", f"ssh://box{training.folder}", "--data-there", str(pairs), "--model", str(model)]
    assert main([*words, "--workspace", str(here.folder)]) == 0
    row = watched_row(here)
    assert (row.name, row.status, row.step) == ("toy", "finished", 3 * UPDATES)
    assert len(here.results.snapshots(row.id)) == 3
    near = watched(training.folder)
    for name in ("val/image_to_text_R@1", "train/loss"):
        assert numbers(here, row, name) == numbers(near.workspace, near.run, name)
