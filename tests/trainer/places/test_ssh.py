"""A run on another computer, which is this one behind an sshd of its own, on a free port with keys of its own."""

import contextlib
import getpass
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import psutil
import pytest
from PIL import Image
from sqlalchemy import select

from tests.trainer.places.test_run_mirror import rows_of
from trainer import config
from trainer.__main__ import main
from trainer.config import default_paths
from trainer.places import bindings, ssh
from trainer.places.embed_job import summary_of
from trainer.places.follower import keep_following
from trainer.places.remote_host import OutOfReach, PlaceError, parse
from trainer.scheduling import launch
from trainer.store import Workspace, schema
from trainer.store.elsewhere import elsewhere

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
LONG_S = 240.0


@dataclass
class Box:
    """The other computer."""

    address: str
    folder: Path
    server: subprocess.Popen[bytes]
    command: list[str]

    def cut(self) -> int:
        """End every connection, and let none come; return how many there were."""
        children = psutil.Process(self.server.pid).children(recursive=True)
        self.server.kill()
        self.server.wait()
        ended = 0
        for child in children:
            with contextlib.suppress(psutil.NoSuchProcess):  # it ended by itself
                if "sshd" in child.name():
                    child.kill()
                    ended += 1
        return ended

    def mend(self) -> None:
        """Let connections come again."""
        self.server = subprocess.Popen(self.command, stderr=subprocess.DEVNULL)

    def workspace(self) -> Workspace:
        """Return the workspace there."""
        return Workspace(self.folder / "runs there")


@pytest.fixture
def box(tmp_path: Path) -> Iterator[Box]:
    programs = [
        shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin") for name in ("sshd", "ssh", "rsync", "ssh-keygen")
    ]
    if None in programs:
        pytest.skip("sshd, ssh, rsync and ssh-keygen are needed: apt-get install openssh-server rsync")
    sshd, _, _, keygen = map(str, programs)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    home = tmp_path / "home"
    home.mkdir()
    for name in ("host", "user"):
        subprocess.run([keygen, "-q", "-t", "ed25519", "-N", "", "-f", str(tmp_path / name)], check=True)
    (tmp_path / "allowed").write_text((tmp_path / "user.pub").read_text())
    settings = tmp_path / "sshd_config"
    settings.write_text(
        f"ListenAddress 127.0.0.1:{port}\nHostKey {tmp_path}/host\nAuthorizedKeysFile {tmp_path}/allowed\n"
        f"PidFile none\nStrictModes no\nUsePAM no\nPasswordAuthentication no\nPermitRootLogin yes\nSetEnv HOME={home}\n"
    )
    known_host = (tmp_path / "host.pub").read_text().split()[:2]
    (tmp_path / "known").write_text(f"[127.0.0.1]:{port} {' '.join(known_host)}\n")
    client = tmp_path / "ssh_config"
    client.write_text(
        f"Host *\n IdentityFile {tmp_path}/user\n IdentitiesOnly yes\n UserKnownHostsFile {tmp_path}/known\n"
        " ControlMaster no\n"
    )
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(exist_ok=True)
    command = [sshd, "-D", "-e", "-f", str(settings)]
    address = (
        f"ssh://{getpass.getuser()}@127.0.0.1:{port}{sys.executable}?config={client}&workspace={tmp_path}/runs there"
    )
    found = Box(address, tmp_path, subprocess.Popen(command, stderr=subprocess.DEVNULL), command)
    wait(lambda: _listens(port), "sshd did not start")
    bindings.add(parse("box", address))
    yield found
    found.cut()
    _end_trainers(found.workspace())
    bindings.remove("box")


def _listens(port: int) -> bool:
    with socket.socket() as found:
        return found.connect_ex(("127.0.0.1", port)) == 0


def _end_trainers(workspace: Workspace) -> None:
    for row in workspace.runs.all():
        if workspace.is_alive(row.id):
            launch.kill(workspace, row.id)
    workspace.close()


def wait(condition: Callable[[], bool], otherwise: str, long_s: float = LONG_S) -> None:
    """Wait until a condition holds."""
    until = time.monotonic() + long_s
    while not condition():
        assert time.monotonic() < until, otherwise
        time.sleep(0.1)


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Workspace]:
    workspace = Workspace(tmp_path / "here")
    workspace.runs.create(config.Run(name="near"))
    # As if a window looked: the mirror is then brought up to date every second.
    (workspace.folder / "explorer.lock").write_text(f"{os.getpid()}\n")
    yield workspace
    workspace.close()


def written(folder: Path, *, epochs: int, name: str = "far") -> Path:
    """Write a run of towers that take milliseconds a step."""
    towers = config.TinyTowers(
        image_size=32, image_width=8, text_width=32, text_heads=2, text_layers=1, context_length=12, embed_dim=16
    )
    run = config.Run(
        name=name,
        data=config.Scenes(train_pairs=64, heldout_pairs=24),
        model=towers,
        optimizer=config.Optimizer(batch_size=16, epochs=epochs, warmup_steps=1),
        watching=config.Watching(evaluate_every=8, snapshots=2, checkpoint_every=4),
        device="cpu",
    )
    file = folder / f"{name}.toml"
    file.write_text(config.to_toml(run))
    return file


def pictures_in(folder: Path, count: int) -> Path:
    """Make a folder of captioned pictures."""
    pictures = folder / "pictures"
    pictures.mkdir()
    for number in range(count):
        pixels = np.random.default_rng(number).integers(0, 255, (40, 40, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(pictures / f"{number:02d}.png")
        (pictures / f"{number:02d}.txt").write_text(f"picture {number}")
    return pictures


def check_embedding(workspace: Path, folder: Path, place: str) -> None:
    """Check that run 1 embeds a set at a place as it does here, and brings what is missing alone."""
    pictures = pictures_in(folder, 20)
    words = ["embed", "1", "--data", str(pictures), "--shard-rows", "8", "--workspace", str(workspace)]
    assert main([*words, "--out", str(folder / "alone")]) == 0
    for _ in range(2):
        assert main([*words, "--out", str(folder / "brought"), "--on", place]) == 0
        for number in range(3):
            for side in ("img", "text"):
                name = f"{side}_emb/{side}_emb_{number:05d}.npy"
                alone, there = (np.load(folder / one / name) for one in ("alone", "brought"))
                np.testing.assert_allclose(alone, there, atol=1e-6)
        # What came is damaged: it comes again, and nothing is embedded again.
        (folder / "brought" / "text_emb" / "text_emb_00001.npy").write_bytes(b"half")
    assert summary_of(folder / "brought")["kept"] == 3
    assert not list((folder / "brought").glob(".*"))
    assert main([*words, "--out", str(folder / "no"), "--on", place, "--split", "none"]) == 2


@pytest.mark.nightly
def test_a_set_is_embedded_there(box: Box, here: Workspace, capsys: pytest.CaptureFixture[str]) -> None:
    other = Workspace(box.folder / "other")
    assert main(["fit", "--config", str(written(box.folder, epochs=1)), "--workspace", str(other.folder)]) == 0
    check_embedding(other.folder, box.folder, "box")
    assert "has no split none" in capsys.readouterr().err
    words = ["evaluate", "1", "--task", "zero_shot", "retrieval", "--json", "--workspace", str(other.folder)]
    assert main(words) == 0
    alone = json.loads(capsys.readouterr().out)
    assert main([*words, "--on", "box"]) == 0
    for one, there in zip(alone, json.loads(capsys.readouterr().out), strict=True):
        assert one["metrics"] == pytest.approx(there["metrics"], abs=1e-5, nan_ok=True)
    assert main([*words[:2], "--task", "robustness", "--on", "box", *words[-2:]]) == 2
    assert "evaluate here" in capsys.readouterr().err
    other.close()


def test_a_place_is_tested_and_a_run_trains_there(
    box: Box, here: Workspace, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["places", "test", "box", "--json", "--workspace", str(here.folder)]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found[0]["group"] == "Place"
    assert {"Programs", "Workspace"} <= {row["group"] for row in found}
    assert not {"pyqtgraph", "PySide6-Essentials"} & {row["name"] for row in found}
    file = written(box.folder, epochs=3)
    assert main(["fit", "--config", str(file), "--on", "box", "--json", "--workspace", str(here.folder)]) == 0
    assert json.loads(capsys.readouterr().out) == {"id": 2, "name": "far", "status": "finished", "step": 12} | {
        "best": here.runs.get(2).best
    }
    there = box.workspace()
    assert rows_of(here, 2) == rows_of(there, 1)
    assert len(rows_of(here, 2)["snapshot"]) >= 2
    assert here.runs.get(2).pid is None
    there.close()
    # It trained where the code of this version was sent to, not in this checkout.
    code = list((box.folder / "home" / ssh.CODE).iterdir())
    assert len(code) == 1
    assert (code[0] / "trainer" / "assets" / "presets").is_dir()


@pytest.mark.nightly
def test_a_cut_is_out_of_reach_and_loses_nothing(box: Box, here: Workspace) -> None:
    file = written(box.folder, epochs=150)
    words = ["fit", "--config", str(file), "--on", "box", "--detach", "--workspace", str(here.folder)]
    assert main(words) == 0
    wait(lambda: here.runs.get(2).step > 0, f"it never began: {here.runs.get(2)}")
    assert box.cut() > 0
    wait(lambda: here.runs.get(2).phase.startswith("out of reach (box, last seen "), "it was not missed")
    for _ in range(3):
        here.reconcile()
    assert here.runs.get(2).status == "running"
    seen = here.runs.get(2).step
    box.mend()
    wait(lambda: here.runs.get(2).step > seen, "it was not found again")
    # This computer is started anew: its follower is gone, and the next window starts one.
    lines = {process: process.info["cmdline"] or [""] for process in psutil.process_iter(["cmdline"])}
    (follower,) = [process for process, line in lines.items() if "fit" in line and line[-1] == str(here.folder)]
    follower.send_signal(signal.SIGKILL)
    wait(lambda: not here.is_alive(2), "the follower stayed")
    here.reconcile()
    assert here.runs.get(2).status == "running"
    keep_following(here, here.runs.all(), {})
    wait(lambda: here.is_alive(2), "it is not followed")
    # A request goes there, and is confirmed by what the row then says.
    launch.stop(here, 2)
    wait(lambda: here.runs.get(2).status == "stopped", f"it did not stop: {here.runs.get(2)}")
    wait(lambda: not here.is_alive(2), "the follower stayed")
    there = box.workspace()
    assert there.runs.get(1).status == "stopped"
    assert rows_of(here, 2) == rows_of(there, 1)
    step = here.runs.get(2).step
    assert main(["resume", "2", "--workspace", str(here.folder)]) == 0
    wait(lambda: here.runs.get(2).step > step, "it did not continue there")
    here.runs.ask(2, "pause")
    wait(lambda: here.runs.get(2).status == "paused", "it did not pause there")
    here.runs.ask(2, "")
    wait(lambda: here.runs.get(2).status == "running", "it did not continue after the pause")
    launch.stop(here, 2)
    wait(lambda: not here.is_alive(2), "the follower stayed")
    assert rows_of(here, 2) == rows_of(there, 1)
    assert (
        main(
            [
                "places",
                "fetch",
                "2",
                "--step",
                str(there.results.checkpoints(1)[0].step),
                "--workspace",
                str(here.folder),
            ]
        )
        == 0
    )
    there.close()


def words_of_photos(box: Box, here: Workspace) -> list[str]:
    """Make a folder of 24 captioned pictures; return the words that train on it at the place."""
    photos = box.folder / "my photos"
    photos.mkdir()
    for place in range(24):
        Image.new("RGB", (40, 40), (place * 9, 80, 120)).save(photos / f"{place:02d}.png")
        (photos / f"{place:02d}.txt").write_text(f"the picture number {place}")
    return ["fit", "--data", str(photos), "--set", "optimizer.epochs=1", "--set", "optimizer.batch_size=8",
            "--set", "model.image_size=32", "--on", "box", "--workspace", str(here.folder)]  # fmt: skip


def test_data_are_checked_before_anything_is_sent(
    box: Box, here: Workspace, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*words_of_photos(box, here), "--data-there", "/no/such folder"]) == 2
    assert "box has no /no/such folder" in capsys.readouterr().err
    assert not (box.folder / "home" / ".cache").exists()
    assert here.runs.get(2).status == "failed"


@pytest.mark.nightly
def test_data_are_sent_as_they_are_or_prepared_or_lie_there(
    box: Box, here: Workspace, capsys: pytest.CaptureFixture[str]
) -> None:
    words, photos = words_of_photos(box, here), box.folder / "my photos"
    assert main([*words, "--upload", "--name", "sent"]) == 0, capsys.readouterr().err
    there = box.workspace()
    with there.runs.reading() as connection:
        (text,) = connection.execute(select(schema.run.c.config).where(schema.run.c.id == 1)).one()
    path = Path(config.from_toml(text).data.path)
    assert path.is_relative_to(there.folder / "sent")
    assert sorted(file.name for file in path.iterdir()) == sorted(file.name for file in photos.iterdir())
    assert rows_of(here, 2) == rows_of(there, 1)
    assert main([*words, "--data-there", str(photos), "--name", "by name"]) == 0
    # In place of the pictures go tars of what is prepared of them, on which the losses are the same to the bit.
    assert main([*words, "--upload-prepared", "--name", "prepared"]) == 0, capsys.readouterr().err
    with there.runs.reading() as connection:
        (text,) = connection.execute(select(schema.run.c.config).where(schema.run.c.id == 3)).one()
    path = Path(config.from_toml(text).data.path)
    assert path.is_relative_to(there.folder / "sent")
    assert [len(list(path.glob(f"{split}/*.tar"))) for split in ("train", "test")] == [1, 1]
    rows = [here.results.scalars_after(0, runs=[run]) for run in (3, 4)]
    losses = [[(row.step, row.value) for row in found if row.name in ("train/loss", "val/loss")] for found in rows]
    assert losses[0] == losses[1] != []
    there.close()


def test_what_is_wrong_is_told_in_a_sentence(box: Box, here: Workspace) -> None:
    place = bindings.host_of("box")
    with pytest.raises(PlaceError, match=r"refused|No such file"):
        ssh.check(parse("box", box.address.replace(sys.executable, "/no/python")))
    box.cut()
    with pytest.raises(OutOfReach, match=r"box does not answer: .*refused"):
        ssh.check(place)
    (box.folder / "known").write_text("")
    box.mend()
    wait(lambda: _listens(place.port or 0), "sshd did not start")
    with pytest.raises(OutOfReach, match="Connect once by hand"):
        ssh.check(place)
    assert default_paths.user_folder().joinpath("places.json").is_file()
    assert elsewhere(here.runs.get(1).folder) is None
