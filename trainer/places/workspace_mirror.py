"""A workspace of another computer, mirrored to be looked at here: all curves, and what else is asked for.

Snapshots and checkpoints come of the runs that somebody looks at here (`store/on_demand.py`), the latest first. Nothing
is written there, and here nobody may train, change or delete: the folder is look only.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

from trainer.places import ssh
from trainer.places.bindings import located
from trainer.places.channel import Channel, ChannelSource
from trainer.places.remote_host import OutOfReach, PlaceError
from trainer.places.run_mirror import RunMirror
from trainer.store import ACTIVE, Workspace, cells, on_demand
from trainer.store.elsewhere import Elsewhere, out_of_reach, write_elsewhere
from trainer.untrusted import confined
from trainer.untrusted import files as untrusted_files

LOOK_S: Final = 2.0
_AGAIN_S: Final = 10.0
_SLICE_S: Final = 0.25
_MOST_RUNS: Final = 10_000
_ON_DEMAND: Final[tuple[on_demand.Kind, ...]] = ("snapshots", "checkpoints")


class _RemoteRun(NamedTuple):
    """A run there: its number, the name of its folder, and a digest of what is known of it."""

    run: int
    folder: str
    digest: str


def mirror_folder(address: str) -> Path:
    """Return the folder here that mirrors the workspace of an address, made as a look-only workspace.

    Raises:
        PlaceError: It is no address of a folder.
    """
    host, path = located(address)
    digest = hashlib.sha256(address.encode("utf-8", "surrogateescape")).hexdigest()[:12]
    folder = confined.make_folder(on_demand.top(), f"{host.name}-{Path(path).name or 'workspace'}-{digest}")
    on_demand.mark(folder, address)
    # A window that found no database would look at an empty one for good.
    with contextlib.closing(Workspace(folder, mirrors=True)) as workspace:
        workspace.runs.all()
    return folder


class WorkspaceMirror:
    """Keeps the mirror of a workspace up to date.

    Attributes:
        trouble: Why nothing is brought at present; empty if it is.
    """

    def __init__(self, address: str, say: Callable[[str], None] = lambda sentence: None) -> None:
        """Ask nothing yet.

        Args:
            address: `ssh://host/path`.
            say: Gets a sentence for what happens.

        Raises:
            PlaceError: It is no address of a folder.
        """
        self._address, (self._host, self._path) = address, located(address)
        self.workspace = Workspace(mirror_folder(address), mirrors=True)
        self._say, self.trouble, self._seen_at = say, "", 0.0
        self._channel: Channel | None = None
        self._seen: dict[tuple[int, str], str] = {}
        self._mirrors: dict[tuple[int, str], RunMirror] = {}

    def close(self) -> None:
        """End the connection."""
        if self._channel is not None:
            self._channel.close()
        self._channel, self._mirrors = None, {}

    def ask(self, run: int | str) -> None:
        """Ask for the snapshots and the checkpoint of a run."""
        for kind in _ON_DEMAND:
            on_demand.ask(self.workspace.runs.get(run).folder, kind)

    def fetch_checkpoint(self, run: int | str, step: int) -> None:
        """Bring the checkpoint of a step of a run that is here.

        Raises:
            PlaceError: There is none, or that computer does not answer.
        """
        row = self.workspace.runs.get(run)
        remote = next((remote for remote in self._listed() if remote.folder == row.folder.name), None)
        if remote is None:
            raise PlaceError(f"{self._host.name} has no run {row.name!r} any more.")
        RunMirror(self.workspace, row.id, self._source(remote)).fetch_checkpoint(step, self._say)

    def step(self) -> bool:
        """Bring what is new, the curves of all runs first; return whether all that was asked for is here.

        Where the other computer does not answer, `trouble` and each run that trains say so, and what is here stays.

        Raises:
            PlaceError: There is no workspace, or that computer cannot run this program.
        """
        try:
            runs = list(self._listed())
            numbers = {remote: self._made(remote) for remote in runs}
            complete = [self._bring(remote, numbers[remote], "") for remote in sorted(runs, reverse=True)]
            by_folder = {remote.folder: remote for remote in runs}
            for kind in _ON_DEMAND:
                asked = [by_folder[name] for name in on_demand.asked(self.workspace.folder, kind) if name in by_folder]
                complete += [self._bring(remote, numbers[remote], kind) for remote in asked]
        except OutOfReach as error:
            self.close()
            self._say(str(error))
            self._lose_sight()
            return False
        self._seen_at = time.time()
        self.tell("")
        return all(complete)

    def tell(self, trouble: str) -> None:
        """Tell those who look at the mirror why nothing is brought at present; empty where it is."""
        if trouble != self.trouble:
            on_demand.mark(self.workspace.folder, self._address, trouble)
        self.trouble = trouble

    def _listed(self) -> Iterator[_RemoteRun]:
        rows = untrusted_files.parse_json(self._opened().ask("runs")[1].decode("utf-8"))
        for row in rows[:_MOST_RUNS] if isinstance(rows, list) else ():
            if isinstance(row, dict) and [*map(type, row.values())] == [int, str, str]:
                remote = _RemoteRun(*row.values())
                if remote.run > 0 and cells.is_one_level(remote.folder) and not remote.folder.startswith("."):
                    yield remote

    def _opened(self) -> Channel:
        if self._channel is None:
            facts = ssh.check(self._host)
            ssh.send_code(self._host, facts)
            path = ssh.inside(facts, self._path)
            ssh.check_path(self._host, path)
            self._channel = ssh.open_channel(self._host, facts, path)
        return self._channel

    def _made(self, remote: _RemoteRun) -> int:
        """Return the number of a run here; one that is new gets a row."""
        present = {row.folder.name: row.id for row in self.workspace.runs.all()}
        if remote.folder not in present:
            state = self._source(remote).state()
            plain = {name: value for name, value in state.items() if name not in ("snapshots", "checkpoints")}
            folder = confined.make_folder(self.workspace.folder, f"runs/{remote.folder}")
            confined.write(folder, "run.json", json.dumps(plain).encode())
            write_elsewhere(folder, Elsewhere(self._host.name, "", sent=True))
            self.workspace.rebuild(self._say)
            present = {row.folder.name: row.id for row in self.workspace.runs.all()}
            if remote.folder not in present:
                raise PlaceError(f"{self._host.name} told a run that cannot be one: {remote.folder[:60]!r}.")
        return present[remote.folder]

    def _bring(self, remote: _RemoteRun, number: int, kind: str) -> bool:
        """Bring curves and rows of a run, or snapshots or checkpoints too; return whether all of it is here."""
        key = (remote.run, kind)
        if self._seen.get(key) == remote.digest:
            return True
        if key not in self._mirrors:
            kinds = (kind,) if kind else ()
            self._mirrors[key] = RunMirror(self.workspace, number, self._source(remote), kinds=kinds)
        mirror = self._mirrors[key]
        has_ended = mirror.step(self._say)
        if has_ended or mirror.status in ACTIVE:
            self._seen[key] = remote.digest
        return has_ended or mirror.status in ACTIVE

    def _source(self, remote: _RemoteRun) -> ChannelSource:
        return ChannelSource(self._opened(), remote.run)

    def _lose_sight(self) -> None:
        self.tell(out_of_reach(self._host.name, self._seen_at or None))
        self._seen = {}
        for row in self.workspace.runs.all():
            if row.active and row.phase != self.trouble:
                self.workspace.runs.change(row.id, durable=False, phase=self.trouble, eta_s=None)


def keep(mirror: WorkspaceMirror, is_over: Callable[[], bool]) -> None:
    """Keep a mirror up to date until somebody says that it is over."""
    while not is_over():
        try:
            mirror.step()
        except PlaceError as error:
            mirror.close()
            mirror.tell(str(error))
        until = time.monotonic() + (_AGAIN_S if mirror.trouble else LOOK_S)
        while time.monotonic() < until and not is_over():
            time.sleep(_SLICE_S)
    mirror.close()
    with contextlib.suppress(Exception):
        mirror.workspace.close()
