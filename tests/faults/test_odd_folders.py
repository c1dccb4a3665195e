"""Promise 5 on untrusted files: a rebuild restores what is readable, reports the rest, and reads nothing endless."""

import json
import os
import random
import shutil
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.faults.breakable_trainer import start_trainer
from trainer import config
from trainer.cli import runs as runs_command
from trainer.store import DAMAGED, RunLog, StoreError, Workspace
from trainer.store.results_table import ResultsTable

pytestmark = [pytest.mark.faults, pytest.mark.timeout(3_600)]

NAMES = ("one", "two", "three", "four")
VICTIM = "0002-two"
ODD = (
    "zz", "", None, 2**70, -7, 1.5e300, float("nan"), float("inf"), True, [], {}, [1, {"a": None}], {"a": {"b": 1}},
    "\0", "\ud800", "../..", "x" * 2_000_000, 1,
)  # fmt: skip


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Path:
    """Return four runs with curves, a checkpoint, a snapshot and an evaluation each."""
    workspace = Workspace(tmp_path_factory.mktemp("made"))
    for name in NAMES:
        number = workspace.runs.create(config.Run(name=name))
        with RunLog.claim(workspace, number) as log:
            for step in range(1, 6):
                log.scalars(step, {"train/loss": 1 / step})
            for kind, part in (("checkpoints", "step_000004"), ("snapshots", "scenes-renderings@000004")):
                (log.folder / kind / part).mkdir(parents=True)
            log.checkpoint(4, log.folder / "checkpoints" / "step_000004", best=True)
            log.snapshot(4, "scenes", "renderings", log.folder / "snapshots" / "scenes-renderings@000004", 8, 4)
            log.evaluation(4, "scenes", "renderings", {"acc1": 0.5})
            log.status("stopped", "Asked to.")
    workspace.close()
    return workspace.folder


def edited(edit: Callable[[dict[str, Any]], object]) -> Callable[[Path], None]:
    """Return a function that edits the document in `run.json`."""

    def act(runs: Path) -> None:
        card = runs / VICTIM / "run.json"
        document = json.loads(card.read_text())
        edit(document)
        card.write_text(json.dumps(document))

    return act


def change(key: str, value: object) -> Callable[[Path], None]:
    return edited(lambda document: document.update({key: value}))


def change_row(table: str, key: str, value: object) -> Callable[[Path], None]:
    """Return a function that changes a value in a dependent row in `run.json`."""
    return edited(lambda document: document[table][0].update({key: value}))


def drop(key: str) -> Callable[[Path], None]:
    return edited(lambda document: document.pop(key))


def twice(table: str) -> Callable[[Path], None]:
    return edited(lambda document: document.update({table: document[table] * 2}))


def replaced(name: str, make: Callable[[Path], object]) -> Callable[[Path], None]:
    """Return a function that makes something else where a file was."""

    def act(runs: Path) -> None:
        (runs / VICTIM / name).unlink(missing_ok=True)
        make(runs / VICTIM / name)

    return act


def put(name: str, content: bytes) -> Callable[[Path], None]:
    return replaced(name, lambda file: file.write_bytes(content))


def pipe(name: str) -> Callable[[Path], None]:
    return replaced(name, os.mkfifo)


def link(name: str, target: str) -> Callable[[Path], None]:
    return replaced(name, lambda file: file.symlink_to(target))


def folder_for(name: str) -> Callable[[Path], None]:
    return replaced(name, Path.mkdir)


def copy_as(name: str) -> Callable[[Path], None]:
    return lambda runs: shutil.copytree(runs / VICTIM, runs / name) and None


def append(name: str, content: bytes) -> Callable[[Path], None]:
    def act(runs: Path) -> None:
        with (runs / VICTIM / name).open("ab") as file:
            file.write(content)

    return act


def flip(name: str, seed: int) -> Callable[[Path], None]:
    """Return a function that flips one bit of a file."""

    def act(runs: Path) -> None:
        file, chance = runs / VICTIM / name, random.Random(seed)
        content = bytearray(file.read_bytes())
        content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
        file.write_bytes(bytes(content))

    return act


def hole(runs: Path) -> None:
    """Append hundreds of MiB of zeros to a journal, as after a power cut or an attack."""
    os.truncate(runs / VICTIM / "metrics.jsonl", 2**40)


HAND_MADE: dict[str, Callable[[Path], None]] = {
    "a copy": copy_as("0005-a-copy"),
    "a copy of the same number, before": copy_as("0002-a"),
    "a copy of the same number, behind": copy_as("0002-two-copy"),
    "a colleague's run 1": copy_as("0001-of-a-colleague"),
    "a copy of a huge number": copy_as("99999999999999999999-x"),
    "a copy of the largest number": copy_as("999999999-x"),
    "a name that is no text": lambda runs: shutil.copytree(runs / VICTIM, runs / "0007-\udcff") and None,
    "a link to a folder": lambda runs: (runs / "0007-link").symlink_to(runs / VICTIM),
    "a link to nothing": lambda runs: (runs / "0007-link").symlink_to("/nowhere"),
    "a file in the place of a folder": lambda runs: (runs / "0007-file").write_text("x") and None,
    "an empty folder": lambda runs: (runs / "0007-empty").mkdir(),
    "deep JSON": put("run.json", b"[" * 1_000_000),
    "a JSON of another kind": put("run.json", b"[1, 2]"),
    "an empty run.json": put("run.json", b""),
    "a run.json of a hundred million digits": put("run.json", b'{"id": ' + b"9" * 10_000_000 + b"}"),
    "no run.json": lambda runs: (runs / VICTIM / "run.json").unlink(),
    "no files": lambda runs: [f.unlink() for f in (runs / VICTIM).iterdir() if f.is_file()] and None,
    "a line that is deep": append("metrics.jsonl", b"[" * 100_000 + b"\n"),
    "a line that has no end": hole,
    "a line of infinity": append("metrics.jsonl", b'{"step": 1e999, "time": 1, "elapsed": 1, "values": {"a": 1}}\n'),
    "a line of a time that is none": append(
        "metrics.jsonl", b'{"step": 6, "time": NaN, "elapsed": 1, "values": {"a": 1}}\n'
    ),
    "a line of half a letter": append(
        "metrics.jsonl", b'{"step": 6, "time": 1, "elapsed": 1, "values": {"\\ud800": 1}}\n'
    ),
    "a line of a huge step": append(
        "metrics.jsonl", b'{"step": 99999999999999999999, "time": 1, "elapsed": 1, "values": {"a": 1}}\n'
    ),
    "bytes in the journal": append("metrics.jsonl", bytes(range(256)) * 100),
    **{f"a pipe for {name}": pipe(name) for name in ("run.json", "metrics.jsonl", "config.toml")},
    **{f"/dev/zero for {name}": link(name, "/dev/zero") for name in ("run.json", "metrics.jsonl", "config.toml")},
    **{f"a folder for {name}": folder_for(name) for name in ("run.json", "metrics.jsonl", "config.toml")},
    **{f"{table} come twice": twice(table) for table in ("checkpoints", "snapshots", "evaluations")},
}


def generated(made: Path) -> dict[str, Callable[[Path], None]]:
    """Return changes of every key in `run.json` to every odd value, or missing; and bit flips."""
    document = json.loads((made / "runs" / VICTIM / "run.json").read_text())
    found = {f"{key} = {str(odd)[:20]!r}": change(key, odd) for key in document for odd in ODD}
    found |= {f"no {key}": drop(key) for key in document}
    for table in ("checkpoints", "snapshots", "evaluations"):
        found |= {f"{table}.{k} = {str(o)[:20]!r}": change_row(table, k, o) for k in document[table][0] for o in ODD}
    found |= {f"{name}, bit {n}": flip(name, n) for name in ("run.json", "metrics.jsonl") for n in range(100)}
    return found


def comes_back(base: Path, folder: Path, act: Callable[[Path], None]) -> str:
    """Return what is wrong with a rebuild after `act`; empty if nothing is."""
    shutil.rmtree(folder / "runs", ignore_errors=True)
    shutil.copytree(base / "runs", folder / "runs")
    act(folder / "runs")
    for file in folder.glob("explorer.db*"):
        file.unlink()
    shutil.copyfile(base / "empty.db", folder / "explorer.db")
    workspace, told = Workspace(folder), list[str]()
    workspace.adopt()
    try:
        workspace.rebuild(told.append)
        rows = workspace.runs.all() + workspace.runs.deleted()
        whole = {row.name for row in rows if len(workspace.results.series(row.id, "train/loss")[0]) == 5}
        kept = {
            row.name for row in rows if workspace.results.checkpoints(row.id) and workspace.results.snapshots(row.id)
        }
        others = {"one", "three", "four"}
        if not (others <= whole & kept) or any(row.status == DAMAGED for row in rows):
            return f"others are missing: {[(r.name, r.status, r.reason) for r in rows]} {told}"
        back = {row.folder.name for row in rows}
        odd = {f.name for f in (folder / "runs").iterdir() if f.name[0].isdigit()} - back
        unnamed = [name for name in odd if not any(name[:5] in words for words in told)]
        return f"neither back nor named: {unnamed} {told}" if unnamed else ""
    except Exception as error:
        return repr(error)[:500]
    finally:
        workspace.close()


@pytest.fixture
def base(made, tmp_path) -> Path:
    """Return the run folders next to an empty database."""
    folder = tmp_path / "base"
    shutil.copytree(made / "runs", folder / "runs")
    empty = Workspace(tmp_path / "empty")
    assert empty.runs.all() == []
    empty.close()
    shutil.copyfile(tmp_path / "empty" / "explorer.db", folder / "empty.db")
    return folder


def test_one_odd_folder_keeps_no_other_run_out(base, made, tmp_path, faults) -> None:
    odd = generated(made)
    assert len(odd) + len(HAND_MADE) > 900
    chosen = dict(list(odd.items())[:: 4 if faults.whole else faults.every(40)]) | dict(
        faults.thin(list(HAND_MADE.items()), 3)
    )
    folder = tmp_path / "workspace"
    folder.mkdir()
    wrong = {what: said for what, act in chosen.items() if (said := comes_back(base, folder, act))}
    words = "all other runs back; the odd one back, renumbered or named"
    faults.row("S5", "one odd run folder before a rebuild", words, len(chosen), len(chosen) - len(wrong))
    assert not wrong, list(wrong.items())[:12]


def test_what_a_damaged_folder_said_stays_beside_what_was_made_of_it(base, tmp_path) -> None:
    folder = tmp_path / "workspace"
    folder.mkdir()
    assert comes_back(base, folder, change("step", "abc")) == ""
    before = json.loads((folder / "runs" / VICTIM / "run-before-rebuild.json").read_text())
    after = json.loads((folder / "runs" / VICTIM / "run.json").read_text())
    assert (before["step"], after["step"]) == ("abc", 0)


def test_numbers_given_twice_are_told_and_the_original_keeps_its_own(base, tmp_path) -> None:
    folder = tmp_path / "workspace"
    folder.mkdir()
    shutil.copytree(base / "runs", folder / "runs")
    shutil.copytree(base / "runs" / "0001-one", folder / "runs" / "0001-a-colleague")
    told: list[str] = []
    workspace = Workspace(folder)
    workspace.adopt()
    assert workspace.rebuild(told.append) == 5
    numbers = {row.folder.name: row.id for row in workspace.runs.all()}
    assert sorted(numbers.values()) == [1, 2, 3, 4, 5]
    assert [words for words in told if "is taken, so it is run 5 now" in words]
    workspace.close()


def test_a_damaged_row_is_made_anew_from_its_folder(made, tmp_path) -> None:
    import sqlite3

    folder = tmp_path / "workspace"
    shutil.copytree(made, folder)
    connection = sqlite3.connect(folder / "explorer.db")
    with connection:
        connection.execute("UPDATE run SET facts = '[', note = 'x' WHERE id = 2")
    connection.close()
    workspace = Workspace(folder)
    workspace.adopt()
    assert workspace.runs.get(2).status == DAMAGED
    assert workspace.rebuild() == 1
    row = workspace.runs.get(2)
    assert (row.status, row.name, len(workspace.results.series(2, "train/loss")[0])) == ("stopped", "two", 5)
    assert len(workspace.runs.all()) == 4
    workspace.close()


# -- a run of another workspace --------------------------------------------------------------------------------


def test_a_run_of_another_workspace_is_taken_over_whole(space, small, tmp_path, capsys) -> None:
    run = small()
    assert start_trainer(space, run).wait() == 0
    row = space.runs.get(run)
    theirs = sorted(path.relative_to(row.folder) for path in row.folder.rglob("*") if path.is_file())
    mine = Workspace(tmp_path / "mine")
    assert mine.runs.create(config.Run(name=row.name), status="failed") == 1
    number = mine.import_run(row.folder)
    assert number == 2
    taken = mine.runs.get(number)
    assert (taken.status, taken.name, taken.step, taken.best) == (row.status, f"{row.name} 2", row.step, row.best)
    assert (taken.parent, taken.folder.parent) == (None, mine.runs_folder)
    for name in space.results.scalar_names(run):
        for ours, other in zip(mine.results.series(number, name), space.results.series(run, name), strict=True):
            assert ours.tobytes() == other.tobytes()
    assert mine.results.scalar_names(number) == space.results.scalar_names(run)
    for read in (ResultsTable.snapshots, ResultsTable.checkpoints):
        ours, others = read(mine.results, number), read(space.results, run)
        assert [one.step for one in ours] == [one.step for one in others] != []
        for one, other in zip(ours, others, strict=True):
            for file in other.folder.iterdir():
                assert (one.folder / file.name).read_bytes() == file.read_bytes()
    assert [e.metrics for e in mine.results.evaluations(number)] == [e.metrics for e in space.results.evaluations(run)]
    assert tomllib.loads((taken.folder / "config.toml").read_text())["name"] == taken.name
    ours = sorted(path.relative_to(taken.folder) for path in taken.folder.rglob("*") if path.is_file())
    assert {file for file in theirs if file.name != "alive.lock"} | {Path("imported_from.json")} == set(ours)
    mine.close()


def test_only_regular_files_are_taken_over_and_what_is_no_run_is_refused(made, tmp_path) -> None:
    source = tmp_path / "of a colleague"
    shutil.copytree(made / "runs" / VICTIM, source)
    (source / "stolen").symlink_to("/etc/passwd")
    (source / "snapshots" / "link").symlink_to(tmp_path)
    os.mkfifo(source / "pipe")
    card = json.loads((source / "run.json").read_text())
    (source / "run.json").write_text(json.dumps(card | {"status": "running", "id": -1, "parent": 7, "after": 3}))
    mine = Workspace(tmp_path / "mine")
    row = mine.runs.get(mine.import_run(source))
    assert (row.status, row.parent, row.after) == ("interrupted", None, None)
    assert not [path for path in row.folder.rglob("*") if path.is_symlink() or path.is_fifo()]
    assert len(mine.results.series(row.id, "train/loss")[0]) == 5
    (tmp_path / "empty").mkdir()
    for bad in (tmp_path / "empty", tmp_path / "nowhere", source / "run.json"):
        with pytest.raises(StoreError, match="run folder"):
            mine.import_run(bad)
    assert len(mine.runs.all()) == len(list(mine.runs_folder.iterdir())) == 1
    mine.close()
    assert "import" in runs_command.HELP


def test_a_run_folder_thousands_of_levels_deep_is_imported_and_purged(made, tmp_path, faults) -> None:
    source = tmp_path / "deep"
    shutil.copytree(made / "runs" / VICTIM, source)
    folder, here = source, os.getcwd()
    try:
        os.chdir(folder)
        for _ in range(1_700):  # as deep as a path can name
            os.mkdir("d")
            os.chdir("d")
    finally:
        os.chdir(here)
    mine = Workspace(tmp_path / "mine")
    row = mine.runs.get(mine.import_run(source))
    assert len(mine.results.series(row.id, "train/loss")[0]) == 5
    (source / "d").rename(row.folder / "d")
    mine.purge(row.id)
    assert list(mine.runs_folder.iterdir()) == []
    mine.close()
    faults.row("S5", "a run folder of 1,700 levels is imported and purged", "whole and gone", 1, 1)


@pytest.mark.skipif(os.name == "nt", reason="makes a file of holes")
def test_a_run_folder_of_holes_is_not_imported(made, tmp_path, faults) -> None:
    source = tmp_path / "holes"
    shutil.copytree(made / "runs" / VICTIM, source)
    with (source / "checkpoint.bin").open("wb") as file:
        file.truncate(2**43)
    mine = Workspace(tmp_path / "mine")
    with pytest.raises(StoreError, match=r"MiB free\. Nothing was imported"):
        mine.import_run(source)
    assert mine.runs.all() == []
    mine.close()
    faults.row("S5", "a run folder with 8 TiB of holes is imported", "refused by its size", 1, 1)
