"""Links and names that an attacker has put into a workspace lead to nothing outside it."""

import contextlib
import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from itertools import cycle, product
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from PySide6.QtGui import QImage

from explorer import __main__ as program
from explorer.event_loop.exception_hooks import Hooks, _log
from explorer.state.settings import Settings
from explorer.views.map.selecting import written_rows
from explorer.window.drop_handler import write_png
from tests.nightly import few_plain
from trainer import config
from trainer.cli import bundle
from trainer.data.atomic_folder import written_once
from trainer.distribution.private_paths import PrivatePaths
from trainer.errors import UserError
from trainer.scheduling import launch
from trainer.store import RunLog, Workspace, branch, layout_files, ownership, pending_rows, picture_paths
from trainer.store.files import make_folder, write_text
from trainer.store.quality_reports import Measured, QualityReport, write_quality
from trainer.store.replay_records import ReplayRecord, write_replay
from trainer.store.reviews import Review
from trainer.store.snapshot_files import Items, write_snapshot
from trainer.store.task_records import TaskRecord, evaluation_folder, write_task
from trainer.untrusted import confined

pytestmark = [pytest.mark.faults, pytest.mark.timeout(1800)]

RUN = "runs/0001-one"
IN_WORKSPACE = (
    *(".writable", "explorer.tmp", "explorer.json", "explorer.log", "explorer.log.1", "crash.log", "explorer.lock"),
    *("explorer.db", "explorer.db-wal", "explorer.db-shm", "explorer.db-journal", "workspace.json", "queue.txt"),
    *("runs", "backups", "scratch", "layouts", "indexes", "cache", "reviews.jsonl", "lists"),
)
IN_RUN = (
    *("", "/metrics.jsonl", "/run.json", "/config.toml", "/log.txt", "/alive.lock", "/waiting.jsonl", "/.tmp-reserve"),
    *(
        "/checkpoints",
        "/snapshots",
        "/evaluations",
        "/scratch",
        "/replays",
        "/quality",
        "/imported_from.json",
        "/checkpoints/step_000999",
        "/snapshots/s-x@000999",
    ),
)
NAMES = (*IN_WORKSPACE, *(RUN + name for name in IN_RUN))
TARGETS = ("torn", "folder", "missing", "folder/missing")


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a workspace with one stopped run, created normally."""
    folder = tmp_path_factory.mktemp("template") / "workspace"
    workspace = Workspace(folder)
    run = workspace.runs.create(config.Run(name="one"), status="stopped")
    with RunLog.claim(workspace, run) as log:
        log.scalars(1, {"train/loss": 1.0})
        log.snapshot(1, "s", "x", _snapshot(log.folder, 1), 2, 3)
        log.status("stopped")
    workspace.close()
    return folder


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """Return files of the user that must stay unchanged."""
    folder = tmp_path / "home"
    (folder / "folder" / "step_000999").mkdir(parents=True)
    (folder / "folder" / ".tmp-draft").mkdir()
    (folder / "torn").write_bytes(b'{"no line end')
    for name in ("thesis.tex", ".tmp-draft/kept", "step_000999/kept", "metrics.jsonl"):
        (folder / "folder" / name).write_bytes(b"years of work")
    return folder


def _copy(template: Path, folder: Path) -> None:
    """Copy a workspace and adopt it, so that its rows are trusted."""
    shutil.copytree(template, folder)
    ownership.sign(folder)


def _state(folder: Path) -> dict[str, bytes | None]:
    return {str(path): path.read_bytes() if path.is_file() else None for path in sorted(folder.rglob("*"))}


def _snapshot(run_folder: Path, step: int) -> Path:
    folder = run_folder / "snapshots" / f"s-x@{step:06d}"
    vectors = np.ones((2, 3), np.float32)
    items = Items(np.array([0, 1]), ["a", "b"], ["a", "b"], ["", ""], ["x", "x"])
    write_snapshot(folder, image=vectors, text=vectors, items=items, step=step, dataset="s", split="x", model="one")
    return folder


def _replay() -> ReplayRecord:
    rows = (np.ones((1, 2), np.float32),) * 2
    return ReplayRecord(1, 0, 2, 0.5, ("c",), ("p",), ("own",), np.zeros((1, 1)), (1.0,), rows, rows)


def _acts(folder: Path) -> Iterator[Callable[[], object]]:
    """Yield every function by which the application writes to a workspace."""
    yield lambda: program._check_writable(folder)
    yield lambda: _settings(folder)
    yield lambda: _hooks(folder)
    workspace = Workspace(folder)
    yield lambda: workspace.runs.add_facts(1, {"a": 1})
    yield lambda: launch.detach(["python"], folder / "queue.txt")
    yield lambda: launch.start_detached(workspace, 1)
    yield lambda: pending_rows.keep(folder / RUN, "alert", {"kind": "a"})
    yield lambda: workspace.catch_up(1)
    yield lambda: pending_rows.forget(folder / RUN)
    yield lambda: _trained(workspace)
    yield lambda: _snapshot(folder / RUN, 5)
    yield lambda: write_task(evaluation_folder(folder / RUN, "s", "x", 1), TaskRecord("gap", {"gap": 1.0}, 1, 1))
    yield lambda: write_replay(folder / RUN, _replay())
    yield lambda: write_quality(
        folder / RUN, QualityReport("s", 1.0, (Measured(1, "one", 1, {}, {}, {}),), *[{}] * 3, ())
    )
    yield lambda: workspace.reviews.put([Review("s", "p", "flagged")])
    yield lambda: workspace.reviews.take_back("s", ["p"])
    yield lambda: workspace.reviews.restore(str)
    yield lambda: workspace.experiments.add("asked", "name = 'asked'")
    yield lambda: workspace.experiments.set_state("asked", "stopped")
    yield lambda: picture_paths.remember_source(folder / RUN, folder / RUN)
    yield lambda: layout_files.remove_orphans(folder)
    yield lambda: write_text(folder / "workspace.json", "{}")
    for name in ("scratch", "layouts", "indexes", "backups", "cache", "lists"):
        yield lambda name=name: write_text(confined.make_folder(folder, name) / "new", "new")
    yield lambda: workspace.runs.rename(1, "another")
    yield lambda: workspace.reconcile()
    yield lambda: workspace.runs.change(1, status="stopped")
    yield lambda: workspace.delete(1)
    yield lambda: workspace.purge(1)
    yield workspace.close


def _settings(folder: Path) -> None:
    settings = Settings(folder)
    settings.set("a", 1)
    settings.flush()
    settings.forget()


def _hooks(folder: Path) -> None:
    hooks = Hooks(folder)
    hooks.install()
    try:
        for _ in range(3):
            _log.error("a line")
            if hasattr(hooks.log_handler, "doRollover"):
                hooks.log_handler.doRollover()
    finally:
        hooks.remove()


def _trained(workspace: Workspace) -> None:
    with RunLog.claim(workspace, 1) as log:
        log.scalars(2, {"train/loss": 1.0})
        make_folder(log.folder / "checkpoints")
        write_text(log.folder / "checkpoints" / "made", "made")
        log.rewind(0)
        log.status("stopped")


def test_no_link_at_any_name_leads_outside(
    template: Path, outside: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, qapp: object, faults
):
    monkeypatch.setattr(
        launch, "spawn", lambda command, log, more=None: log.write(b"words") and SimpleNamespace(pid=1, wait=int)
    )
    before, folder, links = _state(outside), tmp_path / "workspace", list(product(NAMES, TARGETS))
    assert len(links) > 100
    if faults.part > 10:  # a third of the names, the targets by turns
        links = faults.thin(list(zip(NAMES, cycle(TARGETS))), 3)
    tried = len(links)
    for name, target in links:
        _copy(template, folder)
        place = folder / name
        if place.is_dir():
            shutil.rmtree(place)
        place.unlink(missing_ok=True)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.symlink_to(outside / target)
        for act in _acts(folder):
            with contextlib.suppress(OSError, UserError):
                act()
        assert _state(outside) == before, (name, target)
        shutil.rmtree(folder)
    faults.row(
        "S1", "a link at a name that the application writes in a workspace", "nothing outside changes", tried, tried
    )


@pytest.mark.parametrize("name", ["{outside}/folder", "..", "../../home/folder", "../..", ".", "", "a/../..", "linked"])
def test_no_folder_of_a_run_leads_outside(template: Path, outside: Path, tmp_path: Path, name: str):
    folder, before = tmp_path / "workspace", _state(outside)
    _copy(template, folder)
    (folder / "runs" / "linked").symlink_to(outside / "folder")
    (folder / "runs" / "0002-other").mkdir()
    with contextlib.closing(sqlite3.connect(folder / "explorer.db")) as connection, connection:
        connection.execute("UPDATE run SET folder = ?", (name.format(outside=outside),))
    for act in _acts(folder):
        with contextlib.suppress(OSError, UserError):
            act()
    assert _state(outside) == before
    assert (folder / "runs" / "0002-other").is_dir()
    assert (folder / "explorer.db").is_file()


@pytest.mark.parametrize(
    "name", ["{outside}/folder", "..", "../../../home/folder", ".", "checkpoints", "snapshots/linked"]
)
def test_no_folder_of_a_snapshot_leads_outside(template: Path, outside: Path, tmp_path: Path, name: str):
    folder, before = tmp_path / "workspace", _state(outside)
    _copy(template, folder)
    (folder / RUN / "checkpoints").mkdir(exist_ok=True)
    (folder / RUN / "snapshots" / "linked").symlink_to(outside / "folder")
    with contextlib.closing(sqlite3.connect(folder / "explorer.db")) as connection, connection:
        connection.execute("UPDATE snapshot SET folder = ?, step = 999", (name.format(outside=outside),))
    with contextlib.suppress(UserError):
        _trained(Workspace(folder))
    assert _state(outside) == before
    assert (folder / RUN / "config.toml").is_file()
    assert (folder / RUN / "checkpoints").is_dir()


def test_a_torn_line_behind_a_link_stays_and_the_person_is_told(template: Path, outside: Path, tmp_path: Path):
    folder = tmp_path / "workspace"
    _copy(template, folder)
    (folder / RUN / "metrics.jsonl").unlink()
    (folder / RUN / "metrics.jsonl").symlink_to(outside / "torn")
    with pytest.raises(UserError, match=r"metrics\.jsonl, it is a link.*Nothing was changed"):
        RunLog.claim(Workspace(folder), 1)
    assert (outside / "torn").read_bytes() == b'{"no line end'


@pytest.mark.parametrize(
    "name", ["", ".", "..", "/etc", "a/../b", "a\0b", "../a", "C:\\a", "a\\..\\b", "\\\\host\\share"]
)
def test_names_that_are_no_names_within_a_folder(tmp_path: Path, name: str):
    assert not confined.is_inside(tmp_path, name)
    for act in (confined.make_folder, confined.remove, confined.read):
        with pytest.raises(OSError, match="name within"):
            act(tmp_path, name, *([10] if act is confined.read else []))


@pytest.mark.skipif(os.name == "nt", reason="there are no pipes in its folders")
def test_pipes_are_refused_and_never_waited_for(tmp_path: Path):
    os.mkfifo(tmp_path / "pipe")
    for mode in ("rb", "rb+", "ab", "ab+", "wb"):
        with pytest.raises(confined.NotConfined):
            confined.open_file(tmp_path, "pipe", mode)


def test_files_go_through_the_door(tmp_path: Path):
    folder = confined.make_folder(tmp_path, "a/b")
    assert folder.is_dir()
    confined.write(tmp_path, "a/b/file", b"one two three")
    confined.write(tmp_path, "a/b/file", b"four")
    with confined.open_file(tmp_path, "a/b/file", "ab") as file:
        file.write(b" five")
    assert confined.read(tmp_path, "a/b/file", 9) == b"four five"
    with pytest.raises(OSError, match="longer"):
        confined.read(tmp_path, "a/b/file", 8)
    confined.replace(tmp_path, "a/b/file", "a/c")
    assert (tmp_path / "a" / "c").stat().st_mode & 0o077 == 0 or os.name == "nt"
    confined.remove(tmp_path, "a/c")
    confined.remove(tmp_path, "a/c")
    confined.remove_tree(tmp_path, "a")
    assert not list(tmp_path.iterdir())


@pytest.fixture
def two_runs(tmp_path: Path) -> Iterator[Workspace]:
    workspace = Workspace(tmp_path / "space")
    for _ in range(2):
        workspace.runs.create(config.Run(name="one"), status="failed")
    yield workspace
    workspace.close()


THESIS = b"my thesis"


@few_plain(1, "name", ["config.toml", "run.json", "metrics.jsonl"])
def test_the_bundle_packs_no_linked_file(two_runs: Workspace, outside: Path, tmp_path: Path, name: str):
    row = two_runs.runs.get(1)
    (row.folder / "metrics.jsonl").write_text("{}\n")
    (row.folder / name).unlink()
    (outside / "thesis.tex").write_bytes(THESIS)
    (row.folder / name).symlink_to(outside / "thesis.tex")
    bundle.copy_run(two_runs, row, tmp_path / "packed", PrivatePaths())
    packed = {path.name: path.read_bytes() for path in (tmp_path / "packed").rglob("*") if path.is_file()}
    # Configuration and facts are written anew from the database; curves are copied where they are the run's own.
    assert packed.keys() == {"config.toml", "run.json", "metrics.jsonl"} - ({name} & {"metrics.jsonl"})
    assert not any(THESIS in content for content in packed.values())


def test_a_branch_copies_no_linked_json(two_runs: Workspace, outside: Path):
    parent = two_runs.runs.get(1)
    (parent.folder / "tokenizer.json").write_text("{}")
    (parent.folder / "stolen.json").symlink_to(outside / "thesis.tex")
    branch._copy_files(two_runs, parent, 2, [])
    copied = two_runs.runs.get(2).folder
    assert (copied / "tokenizer.json").read_text() == "{}"
    assert not os.path.lexists(copied / "stolen.json")


@pytest.mark.parametrize("linked", ["scratch", "file"])
def test_what_the_window_keeps_in_scratch_follows_no_link(outside: Path, tmp_path: Path, linked: str):
    before = _state(outside)
    scratch = tmp_path / "space" / "scratch"
    scratch.parent.mkdir()
    rows = np.arange(1, 20_001, 2)
    kept = Path(written_rows(rows, tmp_path / "other" / "scratch"))
    if linked == "scratch":
        scratch.symlink_to(outside / "folder")
    else:
        scratch.mkdir()
        for name in ("a.png", kept.name):
            (scratch / name).symlink_to(outside / "thesis.tex")
    image = QImage(2, 2, QImage.Format.Format_RGB32)
    assert write_png(image, scratch / "a.png") is None
    with pytest.raises(OSError, match="link"):
        written_rows(rows, scratch)
    assert _state(outside) == before
    file = write_png(image, tmp_path / "other" / "scratch" / "a.png")
    assert file is not None
    assert QImage(str(file)).size() == image.size()
    np.testing.assert_array_equal(np.load(kept), rows)


@few_plain(1, "linked", ["folder", "journal"])
def test_an_unfinished_folder_with_a_link_is_begun_anew(outside: Path, tmp_path: Path, linked: str):
    before = _state(outside)
    unfinished = tmp_path / "cache" / ".data.unfinished"
    unfinished.parent.mkdir()
    if linked == "folder":
        unfinished.symlink_to(outside / "folder")
    else:
        unfinished.mkdir()
        (unfinished / "journal").symlink_to(outside / "thesis.tex")

    def write(folder: Path) -> None:
        with (folder / "journal").open("a") as journal:
            journal.write("line\n")

    folder = written_once(tmp_path / "cache" / "data", write, lambda: None, keep_unfinished=True)
    assert (folder / "journal").read_text() == "line\n"
    assert _state(outside) == before
