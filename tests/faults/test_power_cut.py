"""Promise 3: after a power cut the newest checkpoint loads, the database is valid, no acknowledged state is lost.

A trainer's store and checkpoints are at work under strace. Then the power is cut at any of its system calls: of what
was not synced by then, every 4 KiB page of a file survives by a coin, and of each folder's new, renamed and removed
entries a random beginning. That is more than most file systems lose.
"""

import os
import random
import re
import shutil
import subprocess
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests import forked_code
from trainer import config
from trainer.checkpoints import checkpoint
from trainer.store import StoreError, Workspace
from trainer.store.journal import read_journal

pytestmark = [pytest.mark.faults, pytest.mark.timeout(7_200)]

WORKER = """
import ctypes, os, sys
from pathlib import Path
import torch
from sqlalchemy import Engine, event
from trainer.checkpoints import checkpoint
from trainer.store import RunLog, Workspace

ctypes.CDLL(None).prctl(0x59616D61, ctypes.c_ulong(-1))  # PR_SET_PTRACER_ANY, where Yama restricts tracing
sys.stdin.readline()  # until it is traced

@event.listens_for(Engine, "connect")
def often(connection, record):
    connection.execute("PRAGMA wal_autocheckpoint=40")  # else it would hardly happen in so short a run

def said(words):
    os.write(1, f"ACK {words}\\n".encode())

model = torch.nn.Linear(8, 8)
optimizer = torch.optim.AdamW(model.parameters())
space = Workspace(Path(sys.argv[1]))
log = RunLog.claim(space, 1)
said("state running")
for step in range(1, 41):
    model(torch.randn(2, 8)).sum().backward()
    optimizer.step()
    log.scalars(step, {"train/loss": 1 / step})
    log.progress(step=step, total_steps=40, phase=f"step {step % 7}")
    if step % 5 == 0:
        log.sync()
        state = {"step": step, "best": 0.5, "best_step": 5, "optimizer": optimizer.state_dict()}
        folder = checkpoint.save(log.folder / "checkpoints", modules={"m": model}, training=state, tokenizer="{}")
        said(f"checkpoint {step}")
        log.checkpoint(step, folder, best=step == 5)
        for gone in checkpoint.prune(log.folder / "checkpoints", best=5):
            log.drop_checkpoint(gone)
    if step == 12:
        log.status("paused", "asked to")
        said("state paused")
    if step == 22:
        log.status("running")
        said("state running again")
log.flush()
log.status("stopped", "asked to")
said("state stopped")
log.close()
"""
STATES = ("starting", "running", "paused", "running again", "stopped")
CALLS = (
    "open,openat,creat,close,dup,dup2,dup3,fcntl,lseek,write,pwrite64,writev,pwritev,ftruncate,fallocate,fsync,fdatasync,"
    "rename,renameat,renameat2,unlink,unlinkat,mkdir,mkdirat,rmdir,sendfile,copy_file_range,link,linkat,symlink"
)
PAGE = 4096


@dataclass
class Inode:
    """A file or a folder."""

    data: bytes = b""
    folder: bool = False
    names: dict[str, int] = field(default_factory=dict)


@dataclass
class Recording:
    """The trainer's disk writes: the files before, and every change after.

    Attributes:
        inodes: By number, as they were before; 0 is the workspace.
        changes: (kind, inode, ...): `write` offset bytes, `cut` size, `sync`, `name` name inode-or-None, `said` words.
    """

    inodes: dict[int, Inode]
    changes: list[tuple]


def record(root: Path, trace: Path, source: str) -> Recording:
    """Run the worker, traced by strace once it has imported what it needs."""
    inodes, paths = _before(root)
    command = forked_code.command(source, str(root), trains=True)
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True) as worker:
        options = ["-xx", "-s", "100000000", "-e", f"trace={CALLS}", "-o", str(trace), "-p", str(worker.pid)]
        tracer = subprocess.Popen(["strace", *options])
        while "TracerPid:\t0" in Path(f"/proc/{worker.pid}/status").read_text():
            assert tracer.poll() is None, "the worker cannot be traced"
            time.sleep(0.01)
        worker.communicate("go on\n")
    assert (worker.returncode, tracer.wait()) == (0, 0)
    reader = _Reader(root, inodes, paths)
    with trace.open() as lines:
        for line in lines:
            reader.read(line)
    return Recording(inodes, reader.changes)


def _before(root: Path) -> tuple[dict[int, Inode], dict[str, int]]:
    inodes, paths = {0: Inode(folder=True)}, {str(root): 0}
    for path in sorted(root.rglob("*")):
        number = len(inodes)
        inodes[number] = Inode(folder=True) if path.is_dir() else Inode(path.read_bytes())
        paths[str(path)] = number
        inodes[paths[str(path.parent)]].names[path.name] = number
    return inodes, paths


class _Reader:
    """Converts strace lines to changes of files below `root`."""

    def __init__(self, root: Path, inodes: dict[int, Inode], paths: dict[str, int]) -> None:
        self.root, self.paths, self.changes = str(root), dict(paths), []
        self._next = len(inodes)
        self._sizes = {number: len(inode.data) for number, inode in inodes.items()}
        self._descriptors: dict[int, list] = {}  # descriptor -> [inode, offset, append]
        self._folders: dict[int, str] = {}  # descriptor -> path

    def read(self, line: str) -> None:
        found = re.match(r"(\w+)\((.*)\) += (-?\d+)", line)
        if not found or int(found[3]) < 0:
            return
        call, result = found[1], int(found[3])
        texts = [bytes.fromhex(t.replace("\\x", "")) for t in re.findall(r'"((?:\\x[0-9a-f]{2})*)"', found[2])]
        plain = re.sub(r'"[^"]*"', "T", found[2]).split(", ")
        handler = getattr(self, f"_{call.rstrip('0123456789') if call != 'dup2' else call}", None)
        if handler is not None:
            handler(plain, texts, result)

    def _below(self, text: bytes) -> str | None:
        path = os.path.normpath(text.decode(errors="surrogateescape"))
        return path if path.startswith(self.root) else None

    def _name(self, path: str, number: int | None) -> None:
        parent, _, name = path.rpartition("/")
        self.changes.append(("name", self.paths[parent], name, number))

    def _new(self, path: str) -> int:
        number, self._next = self._next, self._next + 1
        self.paths[path] = number
        self._sizes[number] = 0
        return number

    def _openat(self, plain, texts, result) -> None:
        text = texts[0]
        if plain[0].isdigit() and not text.startswith(b"/"):  # a name in a folder that is open
            text = os.fsencode(self._folders.get(int(plain[0]), "/")) + b"/" + text
        path = self._below(text)
        self._descriptors.pop(result, None)
        self._folders.pop(result, None)
        if path is None:
            return
        self._folders[result] = path
        flags = plain[-2] if "O_CREAT" in plain[-2] else plain[-1]
        if path not in self.paths:
            if "O_CREAT" not in flags:
                return
            number = self._new(path)
            self.changes.append(("made", number, False))
            self._name(path, number)
        number = self.paths[path]
        if "O_TRUNC" in flags:
            self.changes.append(("cut", number, 0))
            self._sizes[number] = 0
        self._descriptors[result] = [number, 0, "O_APPEND" in flags]

    _open = _openat

    def _close(self, plain, texts, result) -> None:
        self._descriptors.pop(int(plain[0]), None)

    def _dup(self, plain, texts, result) -> None:
        if int(plain[0]) in self._descriptors:
            self._descriptors[result] = self._descriptors[int(plain[0])]

    _dup2 = _dup

    def _fcntl(self, plain, texts, result) -> None:
        if plain[1].startswith("F_DUPFD"):
            self._dup(plain, texts, result)

    def _lseek(self, plain, texts, result) -> None:
        if int(plain[0]) in self._descriptors:
            self._descriptors[int(plain[0])][1] = result

    def _write(self, plain, texts, result) -> None:
        descriptor = int(plain[0])
        data = b"".join(texts)[:result]
        if descriptor == 1 and data.startswith(b"ACK "):
            self.changes.append(("said", 0, data.decode().strip().removeprefix("ACK ")))
        if descriptor not in self._descriptors:
            return
        opened = self._descriptors[descriptor]
        offset = self._sizes[opened[0]] if opened[2] else opened[1]
        self._put(opened[0], offset, data)
        opened[1] = offset + len(data)

    _writev = _write

    def _pwrite(self, plain, texts, result) -> None:
        if int(plain[0]) in self._descriptors:
            self._put(self._descriptors[int(plain[0])][0], int(plain[-1]), texts[0][:result])

    def _put(self, number: int, offset: int, data: bytes) -> None:
        self.changes.append(("write", number, offset, data))
        self._sizes[number] = max(self._sizes[number], offset + len(data))

    def _ftruncate(self, plain, texts, result) -> None:
        if int(plain[0]) in self._descriptors:
            number = self._descriptors[int(plain[0])][0]
            self.changes.append(("cut", number, int(plain[1])))
            self._sizes[number] = int(plain[1])

    def _fsync(self, plain, texts, result) -> None:
        if int(plain[0]) in self._descriptors:
            self.changes.append(("sync", self._descriptors[int(plain[0])][0]))

    _fdatasync = _fsync

    def _rename(self, plain, texts, result) -> None:
        old, new = self._below(texts[0]), self._below(texts[1])
        if old is None or new is None or old not in self.paths:
            return
        self.changes.append(("moved", self.paths[os.path.dirname(old)], os.path.basename(old), new, self.paths[old]))
        assert os.path.dirname(old) == os.path.dirname(new), "a rename between folders is not modeled"
        for path in [p for p in self.paths if p == old or p.startswith(f"{old}/")]:
            self.paths[new + path[len(old) :]] = self.paths.pop(path)

    _renameat = _rename

    def _unlink(self, plain, texts, result) -> None:
        path = self._below(texts[0])
        if path is None and plain[0].isdigit() and int(plain[0]) in self._descriptors:
            # Within an open folder, as shutil.rmtree does it.
            folder = self._descriptors[int(plain[0])][0]
            path = next(f"{p}/{texts[0].decode()}" for p, n in self.paths.items() if n == folder)
        if path in self.paths:
            self._name(path, None)
            del self.paths[path]

    _unlinkat = _rmdir = _unlink

    def _mkdir(self, plain, texts, result) -> None:
        path = self._below(texts[0])
        if path is not None:
            number = self._new(path)
            self.changes.append(("made", number, True))
            self._name(path, number)

    _mkdirat = _mkdir

    def _sendfile(self, plain, texts, result) -> None:
        raise AssertionError("a copy inside the kernel is not modeled")

    _copy_file_range = _sendfile


def cut(recording: Recording, at: int, chance: random.Random, target: Path) -> list[str]:
    """Write to `target` what a power cut after `at` changes leaves; return what had been acknowledged by then."""
    said: list[str] = []
    data = {number: bytearray(inode.data) for number, inode in recording.inodes.items()}
    names = {number: dict(inode.names) for number, inode in recording.inodes.items()}
    folders = {number for number, inode in recording.inodes.items() if inode.folder}
    loose: dict[int, list[tuple]] = {}
    for change in recording.changes[:at]:
        kind, number = change[:2]
        if kind == "said":
            said.append(change[2])
        elif kind == "made":
            data[number], names[number] = bytearray(), {}
            folders |= {number} if change[2] else set()
        elif kind == "sync":
            for kept in loose.pop(number, []):
                _apply(kept, data, names)
        else:
            loose.setdefault(number, []).append(change)
    for number, changes in loose.items():
        if number in folders:
            for kept in changes[: chance.randint(0, len(changes))]:
                _apply(kept, data, names)
        else:
            for change in changes:
                for part in _pages(change):
                    if chance.random() < 0.5:
                        _apply(part, data, names)
    _lay_out(0, target, data, names, folders)
    return said


def _pages(change: tuple) -> list[tuple]:
    if change[0] != "write":
        return [change]
    _, number, offset, content = change
    parts, done = [], 0
    while done < len(content):
        length = min(PAGE - (offset + done) % PAGE, len(content) - done)
        parts.append(("write", number, offset + done, content[done : done + length]))
        done += length
    return parts


def _apply(change: tuple, data: dict[int, bytearray], names: dict[int, dict[str, int]]) -> None:
    kind, number = change[:2]
    if kind == "write":
        _, _, offset, content = change
        held = data[number]
        held.extend(bytes(max(0, offset - len(held))))
        held[offset : offset + len(content)] = content
    elif kind == "cut":
        size = change[2]
        del data[number][size:]
        data[number].extend(bytes(size - len(data[number])))
    elif kind == "name":
        if change[3] is None:
            names[number].pop(change[2], None)
        else:
            names[number][change[2]] = change[3]
    else:
        names[number].pop(change[2], None)
        names[number][os.path.basename(change[3])] = change[4]


def _lay_out(number: int, target: Path, data, names, folders) -> None:
    target.mkdir(exist_ok=True)
    for name, child in names[number].items():
        if child in folders:
            _lay_out(child, target / name, data, names, folders)
        elif not name.endswith("-shm"):  # SQLite makes it anew
            (target / name).write_bytes(data[child])


def _wrong(folder: Path, said: list[str]) -> str:
    """Return what is lost or damaged but must not be; empty if all is well."""
    workspace = Workspace(folder)
    try:
        state = max(
            STATES.index(words.removeprefix("state ")) for words in ["state starting", *said] if words in _STATES
        )
        steps = [int(words.removeprefix("checkpoint ")) for words in said if words.startswith("checkpoint ")]
        row = workspace.runs.get(1)
        if workspace.quick_check() != "ok":
            return "the database is damaged"
        if row.status not in {words.split()[0] for words in STATES[state:]}:
            return f"{STATES[state]} was acknowledged, {row.status} is there"
        found, _ = checkpoint.newest(row.folder / "checkpoints")
        if steps and (found is None or found.step < steps[-1]):
            return f"checkpoint {steps[-1]} was acknowledged, {found and found.step} loads"
        workspace.catch_up(1)
        there = {entry.step for entry in read_journal(row.folder / "metrics.jsonl")}
        if found and not set(range(1, found.step + 1)) <= there:
            return f"curves before the checkpoint of step {found.step} are lost"
        if set(workspace.results.series(1, "train/loss")[0]) - {0} < {s for s in there if found and s <= found.step}:
            return "the database lacks curves that the journal has"
    except StoreError as error:
        return str(error)
    finally:
        workspace.close()
    return ""


_STATES = {f"state {state}" for state in STATES}


@pytest.fixture(scope="module")
def recording(tmp_path_factory) -> Recording:
    """Return a short training with every file-changing system call recorded."""
    if shutil.which("strace") is None:
        pytest.skip("strace is not installed: without it nobody knows what SQLite writes when")
    folder = tmp_path_factory.mktemp("recorded")
    workspace = Workspace(folder / "space")
    workspace.runs.create(config.Run(name="cut"))
    workspace.close()
    return record(folder / "space", folder / "trace", WORKER)


def test_power_cuts(recording, faults, tmp_path):
    tried, good, wrong = min(8, faults.times(2_000)) if faults.part > 10 else faults.times(2_000), 0, []
    chance = random.Random(11)
    syncs = sum(change[0] == "sync" for change in recording.changes)
    assert syncs > 100
    assert recording.changes[-1][0] != "said" or len(recording.changes) > 500
    for _ in range(tried):
        at = chance.randint(0, len(recording.changes))
        with tempfile.TemporaryDirectory(prefix="cut-", dir=tmp_path) as folder:
            said = cut(recording, at, chance, Path(folder) / "space")
            problem = _wrong(Path(folder) / "space", said)
        good += not problem
        if problem:
            wrong.append((at, problem))
    words = "database sound, no acknowledged state or checkpoint lost, curves whole up to it"
    faults.row(3, "power cut at any system call", words, tried, good)
    assert not wrong, wrong[:10]


def test_the_model_finds_a_write_that_is_not_synced(recording, tmp_path):
    """Without syncing checkpoints, cuts do damage: the model can detect failures."""
    careless = Recording(recording.inodes, [c for c in recording.changes if c[0] != "sync"])
    chance = random.Random(1)
    harmed = 0
    for _ in range(5):
        with tempfile.TemporaryDirectory(dir=tmp_path) as folder:
            said = cut(careless, len(careless.changes), chance, Path(folder) / "space")
            harmed += bool(_wrong(Path(folder) / "space", said))
    assert harmed == 5
