"""Promise 25: another user of this computer makes nothing that is taken for one's own."""

import hashlib
import hmac
import json
import os
import random
import shutil
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.faults.conftest import SMALL
from trainer.config import default_paths
from trainer.scheduling import launch, queue
from trainer.store import LookOnly, RunLog, StoreError, Workspace, manifests, owner_key, ownership

pytestmark = [pytest.mark.faults, pytest.mark.timeout(900)]

root_only = pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can become another user"
)


def as_user(uid: int, act: Callable[[], object]) -> bool:
    """Run a function in a child process of another user; return whether it got through."""
    child = os.fork()
    if child == 0:
        try:
            os.setgroups([])
            os.setgid(uid)
            os.setuid(uid)
            act()
            os._exit(0)
        finally:
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def code(key: bytes, words: str) -> str:
    return hmac.new(key, f"contrastive-explorer {words}".encode(), hashlib.sha256).hexdigest()


def machine_key() -> bytes:
    """Return what every user can compute: the key of earlier versions."""
    number = Path("/etc/machine-id")
    return f"{number.read_text().strip() if number.exists() else os.uname().nodename}\0000".encode()


def words_of(folder: Path, key: bytes, *, earlier: bool) -> str:
    found, place = folder.stat(), os.path.realpath(folder)
    document = {"format": 1 if earlier else 2, "made_at": time.time(), "former": []}
    document |= {"path": code(key, f"path {place}"), "folder": code(key, f"folder {found.st_dev} {found.st_ino}")}
    owner = {"computer": code(key.split(b"\0")[0], "computer"), "user": code(key, "user")}
    return json.dumps(document | (owner if earlier else {"owner": code(key, "owner")}))


def put(path: Path, content: bytes) -> None:
    """Put a file of one's own in the place of another's."""
    draft = path.with_name(f"draft-{path.name}")
    draft.write_bytes(content)
    draft.replace(path)


class Scene:
    """A victim's workspace with a run that waits, and a copy of it that belongs to an attacker."""

    def __init__(self, base: Path, template: Path, uid: int) -> None:
        self.own, self.theirs = base / "own", base / "theirs"
        shutil.copytree(template, self.own)
        ownership.sign(self.own)
        shutil.copytree(self.own, self.theirs)
        (self.theirs / ownership.NAME).unlink()
        for path in (self.theirs, *self.theirs.rglob("*")):
            os.chown(path, uid, uid)
            path.chmod(0o777 if path.is_dir() else 0o666)
        for path in (self.own, *self.own.rglob("*")):  # the worst case: all may read, and write in its folders
            path.chmod(0o777 if path.is_dir() else 0o644)


def forged_earlier(scene: Scene) -> Path:
    put(scene.theirs / ownership.NAME, words_of(scene.theirs, machine_key(), earlier=True).encode())
    return scene.theirs


def forged(scene: Scene) -> Path:
    put(scene.theirs / ownership.NAME, words_of(scene.theirs, machine_key(), earlier=False).encode())
    return scene.theirs


def drawn(scene: Scene) -> Path:
    put(scene.theirs / ownership.NAME, words_of(scene.theirs, os.urandom(32), earlier=False).encode())
    return scene.theirs


def copied(scene: Scene) -> Path:
    put(scene.theirs / ownership.NAME, (scene.own / ownership.NAME).read_bytes())
    return scene.theirs


def linked(scene: Scene) -> Path:
    (scene.theirs / ownership.NAME).symlink_to(scene.own / ownership.NAME)
    return scene.theirs


def in_its_place(scene: Scene) -> Path:
    copied(scene)
    scene.own.rename(scene.own.with_name("away"))
    scene.theirs.rename(scene.own)
    return scene.own


def other_database(scene: Scene) -> Path:
    put(scene.own / "explorer.db", (scene.theirs / "explorer.db").read_bytes())
    return scene.own


def other_log(scene: Scene) -> Path:
    put(scene.own / "explorer.db-wal", b"")
    return scene.own


def other_words(scene: Scene) -> Path:
    put(scene.own / ownership.NAME, words_of(scene.own, machine_key(), earlier=True).encode())
    return scene.own


def other_runs(scene: Scene) -> Path:
    (scene.own / "runs").rename(scene.own / "before")
    shutil.copytree(scene.own / "before", scene.own / "runs")
    return scene.own


WAYS = (
    forged_earlier, forged, drawn, copied, linked, in_its_place, other_database, other_log, other_words, other_runs
)  # fmt: skip


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a workspace with a run that waits."""
    workspace = Workspace(tmp_path_factory.mktemp("template") / "space")
    workspace.runs.create(SMALL, status="queued")
    workspace.close()
    return workspace.folder


@pytest.fixture
def base() -> Iterator[Path]:
    """Return a folder that every user reaches and may write in."""
    folder = Path(tempfile.mkdtemp(dir="/tmp"))
    folder.chmod(0o777)
    yield folder
    shutil.rmtree(folder)


def check_look_only(folder: Path) -> None:
    workspace = Workspace(folder)
    assert workspace.look_only
    assert queue.start_due(workspace) == []
    for act in (
        lambda: RunLog.claim(workspace, 1),
        lambda: launch.start_detached(workspace, 1, queued_only=True),
        lambda: queue.keep_going(workspace),
    ):
        with pytest.raises(LookOnly):
            act()
    workspace.close()


@root_only
def test_what_another_user_makes_is_never_ones_own(template: Path, base: Path, faults) -> None:
    key, draw = owner_key.owner_key(), random.Random(25)
    tried = max(faults.times(50), len(WAYS))
    for number in range(tried):
        way, uid = WAYS[number % len(WAYS)], draw.choice((65534, 1000, 31337, 2**31 - 2))
        scene = Scene(base / str(number), template, uid)
        (base / str(number)).chmod(0o777)
        assert not Workspace(scene.own).look_only
        assert not as_user(uid, lambda: owner_key.path().read_bytes()), "the key is private"
        assert as_user(uid, lambda scene=scene, way=way: way(scene)), way.__name__
        check_look_only(scene.own if way in WAYS[5:] else scene.theirs)
        assert owner_key.existing_key() == key
        shutil.rmtree(base / str(number))
    faults.row(25, "a workspace, or a file of it, is made by another user", "look only, nothing trains", tried, tried)


@root_only
def test_another_users_key_and_seals_are_not_ones_own(base: Path, faults, monkeypatch: pytest.MonkeyPatch) -> None:
    draw, tried = random.Random(26), faults.times(50)
    for number in range(tried):
        folder, uid = base / str(number), draw.choice((65534, 1000))
        folder.mkdir()
        folder.chmod(0o777)
        monkeypatch.setattr(default_paths, "user_folder", lambda folder=folder: folder)
        assert as_user(uid, lambda folder=folder: put(folder / owner_key.NAME, bytes(32)))
        with pytest.raises(owner_key.NoKey, match="belongs to another user"):
            owner_key.owner_key()
        (folder / owner_key.NAME).unlink()
        assert owner_key.owner_key() != bytes(32)
        draft = base / f"snapshot-{number}"
        draft.mkdir()
        (draft / "items.parquet").write_bytes(draw.randbytes(8))
        manifests.write_manifest(draft, {})
        files = json.dumps(manifests.verified(draft)["files"], sort_keys=True)
        for forged_key in (machine_key(), bytes(32), draw.randbytes(32)):
            (draft / manifests.NAME).unlink()
            manifests.write_manifest(draft, {"seal": code(forged_key, f"seal {files}")})
            assert not manifests.is_sealed(manifests.verified(draft))
    faults.row(25, "another user puts a key in its place, or forges a seal", "refused in words; no seal", tried, tried)


@root_only
def test_a_run_folder_of_another_user_is_trained_by_nobody(template: Path, base: Path) -> None:
    """The rest of the workspace stays one's own; a lost database takes no queue from such a folder."""
    folder = base / "own"
    shutil.copytree(template, folder)
    ownership.sign(folder)
    workspace = Workspace(folder)
    run = workspace.runs.get(1).folder
    for path in (run, *run.rglob("*")):
        os.chown(path, 65534, 65534)
    with pytest.raises(StoreError, match=f"belongs to another user.*trainer runs import {run}"):
        RunLog.claim(workspace, 1)
    assert workspace.import_run(run) == 2
    with RunLog.claim(workspace, 2) as log:
        log.status("stopped")
    workspace.close()
    for path in folder.glob("explorer.db*"):
        path.unlink()
    assert workspace.rebuild() == 2
    assert [row.status for row in workspace.runs.all()] == ["interrupted", "stopped"]
    assert queue.start_due(workspace) == []
    workspace.close()


def test_a_workspace_of_another_number_is_look_only_also_without_root(
    template: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not hasattr(os, "geteuid"):
        pytest.skip("this system has no numbers of users")
    shutil.copytree(template, tmp_path / "own")
    ownership.sign(tmp_path / "own")
    assert owner_key.owner_key()
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    check_look_only(tmp_path / "own")
    monkeypatch.undo()
    assert not Workspace(tmp_path / "own").look_only
    with sqlite3.connect(tmp_path / "own" / "explorer.db") as connection:
        assert connection.execute("SELECT status FROM run").fetchall() == [("queued",)]
