"""A training on another computer: watched there where the pairs lie there, else its files are brought here."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Final

from trainer import config
from trainer.companion.folder_watch import FolderWatch
from trainer.companion.watching_files import WatchedFolder, WatchError, is_of_training, number_in_name, watched_folder
from trainer.config.run_name import repaired_name
from trainer.places import bindings, ssh
from trainer.places.bindings import Binding
from trainer.places.follower import train_there
from trainer.places.links import workspace_there
from trainer.places.remote_folder import RemoteFolder
from trainer.places.remote_host import OutOfReach, PlaceError, RemoteHost
from trainer.scheduling import launch
from trainer.store import Workspace
from trainer.store.elsewhere import Elsewhere, elsewhere, out_of_reach, write_elsewhere
from trainer.untrusted import confined, safe_subprocess

Say = Callable[[str], None]
LOOK_S: Final = 5.0
"""Between two looks at a folder of another computer."""


class RemoteTraining:
    """Brings the files of a training here: curves at every look, and checkpoints one by one, the newest first."""

    def __init__(self, workspace: Workspace, address: str, say: Say) -> None:
        """Ask nothing yet.

        Args:
            workspace: Whose cache gets the files.
            address: `ssh://host/path`.
            say: Gets a sentence for what happens.

        Raises:
            PlaceError: It is no such address.
        """
        self._host, path = bindings.located(address)
        self._address, self._say, self._seen_at = address, say, time.time()
        digest = hashlib.sha256(address.encode("utf-8", "surrogateescape")).hexdigest()[:16]
        name = PurePosixPath(path).name or "training"
        top = confined.make_folder(workspace.folder, f"cache/watched/{digest}") / name
        self._files = RemoteFolder(self._host, path, top, selects=is_of_training)

    def recognized(self) -> WatchedFolder:
        """Return the folder by its small files, which are brought.

        Raises:
            OutOfReach: The other computer does not answer.
            WatchError: There is nothing in the folder that is known.
        """
        names = self._files.bring_small()
        try:
            return replace(watched_folder(self._files.folder), address=self._address)
        except WatchError:
            # Weights tell it, too, before they are here.
            for name in names:
                confined.make_folder(self._files.folder, PurePosixPath(name).parent)
            return replace(watched_folder(self._files.folder), address=self._address)

    def bring(self, watch: FolderWatch) -> bool:
        """Bring what is new; return whether anything came. Where the other computer is away, the run says so."""
        for path in watch.embedded_before:
            self._files.drop(path)
        try:
            came = self._files.bring(order=lambda name: -number_in_name(name), say=watch.report)
        except OutOfReach as error:
            watch.trouble = out_of_reach(self._host.name, self._seen_at)
            self._say(str(error))
            return False
        self._seen_at, watch.trouble = time.time(), ""
        return came

    def close(self) -> None:
        """End the connection."""
        self._files.close()


def watch_there(workspace: Workspace, address: str, options: Sequence[str], name: str, say: Say) -> int:
    """Start a watch on the other computer, where the folder and the pairs are; return the run here that mirrors it.

    Args:
        address: `ssh://host/path`.
        options: Of `trainer watch`; paths are those of the other computer.
        name: Of a new run; empty: the folder's.
        say: Gets a sentence for what happens.

    Raises:
        OutOfReach: The other computer does not answer.
        PlaceError: It cannot run this program, or refuses to watch.
    """
    workspace.check_mine()
    host, path = bindings.located(address)
    facts = ssh.check(host)
    say(f"sending the code to {host.name}")
    ssh.send_code(host, facts)
    if host not in bindings.hosts():
        bindings.add(_with_free_name(host))
        host, _ = bindings.located(address)
    folder = ssh.inside(facts, workspace_there(host, workspace.folder))
    arguments = ["watch", ssh.inside(facts, path), *options, "--detach", "--workspace", folder]
    run = _bound_run(workspace, host, folder, address)
    try:
        number = ssh.answer_of(host, facts, *arguments).get("id")
    except PlaceError as error:
        if isinstance(error, OutOfReach) or run is None or "is watched by another process" not in str(error):
            raise
        return run
    if type(number) is not int or number < 1:
        raise PlaceError(f"{host.name} did not return the number of the run.")
    if run is None:
        data = config.NoData(called=PurePosixPath(path).name or "training", source=address)
        run = workspace.runs.create(config.run_elsewhere(repaired_name(name or PurePosixPath(path).name), data))
    row = workspace.runs.get(run)
    bindings.bind(row.folder, Binding(host.name, folder, number))
    identity = elsewhere(row.folder)
    assert isinstance(identity, Elsewhere)
    # From here on nobody takes it for ended because nothing of it runs here.
    write_elsewhere(row.folder, replace(identity, sent=True))
    workspace.runs.change(run, status="running", ended_at=None, reason="")
    return run


def follow(workspace: Workspace, run: int, say: Say) -> None:
    """Mirror the run until the watch there has ended."""
    train_there(workspace, run, start=False, say=say)


def follow_detached(workspace: Workspace, run: int) -> int:
    """Start a process that mirrors the run, and return its number."""
    command = safe_subprocess.python(
        "-m", "trainer", "places", "follow", str(run), "--workspace", str(workspace.folder)
    )
    return launch.detach(command, workspace.runs.get(run).folder / "log.txt")


def _bound_run(workspace: Workspace, host: RemoteHost, folder: str, address: str) -> int | None:
    """Return the run that mirrors the watch of an address already."""
    for row in workspace.runs.all():
        data = workspace.runs.config_of(row.id).data
        if isinstance(data, config.NoData) and data.source == address:
            binding = bindings.binding_of(row.folder)
            if binding is not None and (binding.place, binding.workspace) == (host.name, folder):
                return row.id
    return None


def _with_free_name(host: RemoteHost) -> RemoteHost:
    """Return a place under a name that no other has."""
    names = {known_host.name for known_host in bindings.hosts()}
    numbered = (f"{host.name[:36]}-{number}" for number in range(2, 200))
    return replace(host, name=next(name for name in (host.name, *numbered) if name not in names))
