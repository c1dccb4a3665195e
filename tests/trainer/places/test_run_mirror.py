"""The mirrored database equals the other one row for row: after cuts, repeats, half lines and a day's difference."""

import hashlib
import json
import tracemalloc
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from sqlalchemy import select

from tests.nightly import few_plain, nightly_except
from tests.trainer.places.conftest import DAY, There, WorkspaceSource
from trainer.places.remote_host import OutOfReach, PlaceError
from trainer.places.run_mirror import RunMirror
from trainer.places.source import MOST_READ, Chunk
from trainer.store import Workspace, read_snapshot, schema
from trainer.store.mirrored import TAKEN_OVER


def rows_of(workspace: Workspace, run: int) -> dict[str, Any]:
    """Return every row of a run by table, without the numbers that each database gives."""
    found: dict[str, Any] = {}
    with workspace.runs.reading() as connection:
        for table in (schema.scalar, schema.checkpoint, schema.snapshot, schema.evaluation):
            columns = [column for column in table.c if column.name not in ("id", "run")]
            found[table.name] = sorted(
                map(tuple, connection.execute(select(*columns).where(table.c.run == run))), key=repr
            )
        columns = [schema.run.c[name] for name in TAKEN_OVER]
        found["run"] = tuple(connection.execute(select(*columns).where(schema.run.c.id == run)).one())
    return found


class Unsound(WorkspaceSource):
    """A connection that is cut, hears things twice, and hears half of them."""

    def __init__(self, there: There, rng: np.random.Generator) -> None:
        super().__init__(there)
        self._rng, self._before = rng, Chunk(0, b"")
        self.faults = 0

    def _cut(self, share: float = 0.15) -> None:
        if self._rng.random() < share:
            self.faults += 1
            raise OutOfReach("cut")

    def state(self) -> dict[str, Any]:
        self._cut()
        return super().state()

    def journal(self, offset: int, digest: str) -> Chunk:
        self._cut()
        found, before = super().journal(offset, digest), self._before
        self._before = found
        chance = self._rng.random()
        if chance < 0.15 and before.offset != found.offset:
            self.faults += 1
            return before  # an answer that comes twice
        if chance < 0.5 and found.content:
            self.faults += 1
            return Chunk(found.offset, found.content[: int(self._rng.integers(len(found.content)))])
        return found

    def folders(self) -> dict[str, str]:
        self._cut()
        return super().folders()

    def read(self, name: str, offset: int) -> Chunk:
        self._cut(0.1)
        found = super().read(name, offset)
        if name.startswith("log"):
            return found
        if self._rng.random() < 0.1 and found.content:
            self.faults += 1
            return Chunk(offset, bytes(len(found.content)))  # the same length, other bytes
        return Chunk(offset, found.content[: int(self._rng.integers(1, 900))])


@pytest.mark.slow
@few_plain(1, "seed", nightly_except(range(8), 2, 6))
def test_the_mirror_equals_the_other_database_row_for_row(there: There, here: Workspace, seed: int) -> None:
    rng = np.random.default_rng(seed)
    source = Unsound(there, rng)
    mirror = RunMirror(here, 2, source)
    step = 0
    for sitting in range(4):
        kept = step // 2
        there.begin(rewind=kept if sitting else None)
        step = kept if sitting else 0
        for part in range(5):
            there.train(range(step + 1, step + 8), rng)
            step += 7
            if part % 2:
                there.measure(step, rng)
                there.keep(step, rng, best=bool(rng.random() < 0.5))
            for _ in range(3):
                if rng.random() < 0.2:
                    mirror = RunMirror(here, 2, source)  # this computer was started anew
                try:
                    mirror.step()
                except (OutOfReach, PlaceError):
                    continue
        there.end("stopped" if sitting < 3 else "finished")
    for _ in range(500):
        try:
            if mirror.step():
                break
        except (OutOfReach, PlaceError):
            continue
    else:
        pytest.fail("it was never whole")
    assert source.faults > 20
    mine, theirs = rows_of(here, 2), rows_of(there.workspace, there.run)
    for table in theirs:
        assert mine[table] == theirs[table], table
    assert theirs["scalar"]
    assert theirs["snapshot"]
    folder = here.runs.get(2).folder
    assert (folder / "metrics.jsonl").read_bytes() == (there.folder / "metrics.jsonl").read_bytes()
    for row in here.results.snapshots(2):
        name = row.folder.name
        assert np.array_equal(read_snapshot(row.folder).image, read_snapshot(there.folder / "snapshots" / name).image)
    assert not list(folder.rglob(".tmp-*"))
    # What it knew of time came from there alone.
    assert here.runs.get(2).created_at - here.runs.get(2).started_at > DAY / 2


def test_a_rewound_journal_is_taken_over_whole(there: There, here: Workspace) -> None:
    rng = np.random.default_rng(0)
    there.begin()
    there.train(range(1, 30), rng)
    mirror = RunMirror(here, 2, WorkspaceSource(there))
    mirror.step()
    there.end("stopped")
    there.begin(rewind=10)
    there.train(range(11, 15), rng)
    mirror.step()
    assert rows_of(here, 2)["scalar"] == rows_of(there.workspace, there.run)["scalar"]
    steps, *_ = here.results.series(2, "train/loss")
    assert steps.max() == 14


def test_a_half_line_waits_for_its_other_half(there: There, here: Workspace) -> None:
    there.begin()
    there.train(range(1, 3), np.random.default_rng(0))
    journal = there.folder / "metrics.jsonl"
    whole = journal.read_bytes()
    journal.write_bytes(whole[:-5])
    mirror = RunMirror(here, 2, WorkspaceSource(there))
    mirror.step()
    copy = here.runs.get(2).folder / "metrics.jsonl"
    assert copy.read_bytes() == whole[: whole[:-1].rfind(b"\n") + 1]
    journal.write_bytes(whole)
    mirror.step()
    assert copy.read_bytes() == whole


def test_what_comes_is_a_strangers(there: There, here: Workspace) -> None:
    """Names lead nowhere, numbers that cannot be are left out, and what is missing there is not waited for."""
    rng = np.random.default_rng(0)
    there.begin()
    there.train(range(1, 3), rng)
    there.end()

    class Hostile(WorkspaceSource):
        def state(self) -> dict[str, Any]:
            told = super().state()
            told["facts"], told["status"], told["step"] = {"a": 1}, "finished", -4
            told["snapshots"] = [
                {"step": 1, "dataset": "d", "split": "s", "folder": folder, "n": 1, "d": 1, "created_at": 1.0}
                for folder in ("../../../etc", "snapshots/../../x", "/etc", "snapshots/gone")
            ]
            told["checkpoints"] = [{"step": 1, "folder": "../x", "best": True, "created_at": 1.0}]
            told |= {"name": "other", "pid": 1, "folder": "../x", "note": "mine", "config": "[x]"}
            return told

        def folders(self) -> dict[str, str]:
            return {"../../../etc": "0" * 64, "snapshots/../../x": "0" * 64, "/etc": "0" * 64, "../x": "0" * 64}

    before = here.runs.get(2)
    with pytest.raises(PlaceError, match="not a folder of a run"):
        RunMirror(here, 2, Hostile(there)).step()
    Hostile.folders = lambda self: {}  # type: ignore[method-assign]
    mirror = RunMirror(here, 2, Hostile(there))
    mirror.step()
    row = here.runs.get(2)
    assert (row.name, row.folder, row.note, row.pid) == (before.name, before.folder, before.note, None)
    assert row.facts == {"a": 1}
    assert row.step == 0
    assert not here.results.snapshots(2)
    assert any("step" in words for words in mirror.changes)
    assert sorted(path.name for path in here.folder.parent.iterdir()) == ["here", "there"]


def test_a_run_elsewhere_is_not_taken_for_interrupted(there: There, here: Workspace) -> None:
    there.begin()
    there.train(range(1, 3), np.random.default_rng(0))
    RunMirror(here, 2, WorkspaceSource(there)).step()
    assert [row.id for row in here.reconcile()] != [2]
    assert here.runs.get(2).status == "running"
    (here.runs.get(2).folder / "elsewhere.json").write_text(json.dumps({"place": "box", "token": "0", "sent": False}))
    assert 2 in [row.id for row in here.reconcile()]


def test_the_log_comes_once(there: There, here: Workspace) -> None:
    there.begin()
    log = there.folder / "log.txt"
    log.write_text("one\ntwo\nhal")
    for _ in range(2):
        RunMirror(here, 2, WorkspaceSource(there)).step()
    with log.open("a") as file:
        file.write("f\n")
    RunMirror(here, 2, WorkspaceSource(there)).step()
    assert (here.runs.get(2).folder / "log.txt").read_text() == "one\ntwo\nhalf\n"


def test_a_checkpoint_comes_on_demand(there: There, here: Workspace, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    there.begin()
    there.train(range(1, 9), rng)
    for step, best in ((2, False), (4, True), (6, False)):
        there.keep(step, rng, best=best)
    mirror = RunMirror(here, 2, WorkspaceSource(there))
    mirror.step()
    folder = here.runs.get(2).folder / "checkpoints"
    assert [path.name for path in folder.iterdir()] == ["step-000004"]
    mirror.fetch_checkpoint(2)
    assert (folder / "step-000002" / "model.bin").read_bytes() == (
        there.folder / "checkpoints" / "step-000002" / "model.bin"
    ).read_bytes()
    with pytest.raises(PlaceError, match="no checkpoint of step 3"):
        mirror.fetch_checkpoint(3)


@pytest.mark.nightly
def test_memory_does_not_grow_with_a_rewound_journal(there: There, here: Workspace) -> None:
    class Rewound(WorkspaceSource):
        """Answers first with a line, and then with another journal from its beginning."""

        content = json.dumps({"step": 1, "time": 1.0, "elapsed": 1.0, "values": {"a": 0.5}}).encode() + b"\n"

        def journal(self, offset: int, digest: str) -> Chunk:
            same = hashlib.sha256(self.content[:offset]).hexdigest() == digest
            start = offset if same else 0
            return Chunk(start, self.content[start : start + MOST_READ])

    source = Rewound(there)
    mirror = RunMirror(here, 2, source)
    mirror.step()
    lines = (
        json.dumps({"step": step, "time": 2.0, "elapsed": 1.0, "values": {"train/loss": step / 3, "b": 1.0}})
        for step in range(60_000)
    )
    source.content = "".join(f"{line}\n" for line in lines).encode()
    tracemalloc.start()
    mirror.step()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(source.content) > 5 * MOST_READ
    # A part and the rows of one statement, each as objects of Python: the whole journal took 20 times its bytes.
    assert peak < 3 * len(source.content)
    rows = here.results.scalars_after(0, runs=[2], limit=200_000)
    assert sorted(row.value for row in rows if row.name == "train/loss") == [step / 3 for step in range(60_000)]
    assert {row.name for row in rows} == {"train/loss", "b"}


class Slow(WorkspaceSource):
    """A peer that says one byte at a time, and of the journal one line, without an end."""

    def __init__(self, there: There, now: list[float]) -> None:
        super().__init__(there)
        self._now, self._line = now, (there.folder / "metrics.jsonl").read_bytes().splitlines(keepends=True)[0]
        self.endless = False

    def journal(self, offset: int, digest: str) -> Chunk:
        self._now[0] += 7.0
        return Chunk(offset, self._line) if self.endless else super().journal(offset, digest)

    def read(self, name: str, offset: int) -> Chunk:
        self._now[0] += 7.0
        found = super().read(name, offset)
        return Chunk(offset, found.content[:1]) if name.startswith("snapshots") and "manifest" not in name else found


def test_a_slow_peer_holds_no_step_for_long(there: There, here: Workspace, monkeypatch) -> None:
    """Between two steps a request to stop is sent, and what the trainer says is taken over."""
    there.begin()
    there.train(range(1, 3), np.random.default_rng(0))
    there.measure(2, np.random.default_rng(0))
    now = [0.0]
    monkeypatch.setattr("trainer.places.run_mirror.time", SimpleNamespace(monotonic=lambda: now[0]))
    source = Slow(there, now)
    mirror = RunMirror(here, 2, source)
    drafts = []
    for _ in range(3):
        before = now[0]
        assert not mirror.step()
        assert now[0] - before < 100.0
        drafts.append(sum(path.stat().st_size for path in here.runs.get(2).folder.glob("snapshots/.tmp-mirror-*/*")))
    assert drafts == sorted(set(drafts)), "each step goes on where the one before was"
    assert here.runs.get(2).status == there.workspace.runs.get(there.run).status
    source.endless = True
    before = now[0]
    assert not mirror.step()
    assert now[0] - before < 100.0
    there.end("stopped")


def test_a_state_of_very_many_rows_locks_the_database_for_a_moment(there: There, here: Workspace, monkeypatch) -> None:
    there.begin()
    monkeypatch.setattr("trainer.store.rebuild.MOST_ROWS", 500)
    state = there.workspace.document(there.run)
    source = WorkspaceSource(there)
    mirror = RunMirror(here, 2, source)
    statements: list[str] = []
    from sqlalchemy import Engine, event

    hear = lambda connection, cursor, statement, *_: statements.append(statement)  # noqa: E731
    event.listen(Engine, "before_cursor_execute", hear)
    for step in (1, 2):
        rows = [{"step": step * n, "folder": f"checkpoints/{step * n}", "created_at": 1.0} for n in range(1, 601)]
        monkeypatch.setattr(source, "state", lambda rows=rows: state | {"checkpoints": rows})
        mirror.step()
        assert [row.step for row in here.results.checkpoints(2)] == [row["step"] for row in rows[:500]]
        assert any("too many" in words for words in mirror.changes)
    event.remove(Engine, "before_cursor_execute", hear)
    assert len(statements) < 200, "not one for each row"
    there.end("stopped")
