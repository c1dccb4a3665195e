"""Send a run to its place, and mirror it until it has ended: the process that stands for a trainer elsewhere."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Final

from trainer.errors import UserError
from trainer.places import bindings
from trainer.places.bindings import Binding
from trainer.places.links import Link, SshLink
from trainer.places.remote_host import OutOfReach, PlaceError, RemoteHost
from trainer.places.run_mirror import RunMirror
from trainer.scheduling import launch
from trainer.store import ENDED, DatabaseBusy, RunRow, StoreError, Workspace
from trainer.store.elsewhere import elsewhere, may_train_elsewhere, out_of_reach, write_elsewhere
from trainer.store.process_lock import ProcessLock, is_held
from trainer.store.repair import is_watched
from trainer.untrusted import safe_subprocess

WATCHED_S: Final = 1.0
UNWATCHED_S: Final = 30.0
_LOOK_S: Final = 0.25
_SEEN_S: Final = 10.0
"""How often it is written down that a place answers."""
_AGAIN_S: Final = (1.0, 2.0, 5.0, 15.0, 60.0)
"""How long after a failure the next try is made; the last one again and again."""
_FOLLOWERS_S: Final = 60.0

Say = Callable[[str], None]


def link_to(host: RemoteHost, workspace: Workspace) -> Link:
    """Return a connection to a place; nothing is asked yet."""
    if host.kind == "ray":
        from trainer.places.ray_jobs import RayLink

        return RayLink(host, workspace.folder)
    return SshLink(host, workspace.folder)


def train_there(workspace: Workspace, run: int, *, start: bool = True, say: Say = lambda words: None) -> None:
    """Send the run to its place unless it is there, start it if `start`, and mirror it until it has ended.

    Raises:
        UserError: It cannot be sent; then its row says why, and that it failed.
    """
    workspace.check_mine()
    folder = workspace.runs.get(run).folder
    lock = ProcessLock.take(folder / "alive.lock")
    if lock is None:
        raise launch.LaunchError(f"Run {run} is followed by another process already.")
    # What stops a trainer that has not begun must not end this process instead, which has the request to deliver.
    workspace.runs.change(run, launched_pid=None, launched_ticks=None)
    try:
        follower = Follower(workspace, run, say)
        try:
            follower.begin(start=start)
        except UserError as error:
            if not may_train_elsewhere(folder):
                workspace.runs.change(run, status="failed", reason=str(error), phase="", ended_at=time.time())
            raise
        follower.follow()
    finally:
        lock.release()


class Follower:
    """Keeps the mirror of one run up to date and takes requests there."""

    def __init__(self, workspace: Workspace, run: int, say: Say, *, every_s: float | None = None) -> None:
        self._workspace, self._run, self._say, self._every_s = workspace, run, say, every_s
        self._folder = workspace.runs.get(run).folder
        binding = bindings.binding_of(self._folder)
        if binding is None:
            raise PlaceError(f"Run {run} trains on this computer.")
        self._binding: Binding = binding
        self._place = bindings.host_of(binding.place)
        self._link: Link | None = None
        self._mirror: RunMirror | None = None
        self._request: str | None = None
        self._seen_at = 0.0

    def begin(self, *, start: bool) -> None:
        """Send the run unless it is there, and start it.

        Raises:
            OutOfReach: The place does not answer, and the run was not sent yet.
            PlaceError: It cannot train the run.
        """
        elsewhere_now = elsewhere(self._folder)
        assert elsewhere_now is not None
        if not self._binding.run:
            self._phase(f"connecting to {self._place.name}")
            link = self._linked()
            config = self._workspace.runs.config_of(self._run)
            self._binding = link.send(config, self._binding, elsewhere_now.token, self._phase)
            bindings.bind(self._folder, self._binding)
        if start:
            # Before it may have begun: from here on nobody takes it for ended because nothing of it runs here.
            write_elsewhere(self._folder, replace(elsewhere_now, sent=True))
            self._retrying(self._start)

    def follow(self) -> None:
        """Mirror the run until it has ended there and all of it is here."""
        while not self._retrying(self._step):
            self._wait(self._pause_s())
        self._close()

    def _start(self) -> None:
        try:
            self._binding = self._linked().start(self._binding)
        except OutOfReach:
            raise
        except PlaceError as error:  # why it does not begin is in its row there, which is mirrored next
            self._say(str(error))
            return
        bindings.bind(self._folder, self._binding)

    def _step(self) -> bool:
        if self._mirror is None:
            self._mirror = RunMirror(self._workspace, self._run, self._linked().source(self._binding))
        self._send_request(self._mirror)
        ended = self._mirror.step(self._phase)
        self._take_request(self._mirror)
        self._see()
        return ended

    # -- requests --------------------------------------------------------------------------------------------

    def _send_request(self, mirror: RunMirror) -> None:
        """Send the trainer there what was requested here since the last look."""
        request = self._workspace.runs.asked(self._run)
        # After a restart nothing is known: a pending request is sent, and an empty one withdraws nothing.
        if request == self._request or (self._request is None and not request):
            return
        mirror.source.ask(request)
        self._request = request

    def _take_request(self, mirror: RunMirror) -> None:
        """Copy the request of the remote row into the local one, unless the user has made another one meanwhile."""
        before = self._request or ""
        if mirror.asked != before:
            self._workspace.runs.answered(self._run, before, then=mirror.asked)
        self._request = mirror.asked

    # -- contact -------------------------------------------------------------------------------------------

    def _retrying(self, step: Callable[[], bool | None]) -> bool:
        """Return what the step returns, however often it has to be tried."""
        tries = 0
        while True:
            try:
                return bool(step())
            except OutOfReach as error:
                self._close()
                self._phase(out_of_reach(self._place.name, self._last_seen()))
                self._say(str(error))
            except DatabaseBusy:
                pass
            except PlaceError as error:
                self._close()
                self._phase(f"cannot be mirrored: {error}"[:300])
                self._say(str(error))
            except StoreError as error:
                if not self._folder.is_dir():
                    raise
                self._say(str(error))
            self._wait(_AGAIN_S[min(tries, len(_AGAIN_S) - 1)])
            tries += 1

    def _see(self) -> None:
        now = time.time()
        if abs(now - self._seen_at) < _SEEN_S:
            return
        self._seen_at = now
        elsewhere_now = elsewhere(self._folder)
        if elsewhere_now is not None:
            write_elsewhere(self._folder, replace(elsewhere_now, seen_at=now))

    def _last_seen(self) -> float | None:
        elsewhere_now = elsewhere(self._folder)
        return elsewhere_now.seen_at if elsewhere_now is not None else None

    def _linked(self) -> Link:
        if self._link is None:
            self._link = link_to(self._place, self._workspace)
        return self._link

    def _close(self) -> None:
        self._mirror = None
        if self._link is not None:
            self._link.close()
            self._link = None

    def _phase(self, text: str) -> None:
        with contextlib.suppress(StoreError):
            if self._workspace.runs.get(self._run).phase != text:
                self._workspace.runs.change(self._run, durable=False, phase=text, eta_s=None)
                self._say(text)

    def _pause_s(self) -> float:
        if self._every_s is not None:
            return self._every_s
        return WATCHED_S if is_watched(self._workspace.folder) else UNWATCHED_S

    def _wait(self, seconds: float) -> None:
        """Wait, but not longer than until a person asks for something."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            time.sleep(min(left, _LOOK_S))
            with contextlib.suppress(StoreError):
                if self._mirror is not None and self._workspace.runs.asked(self._run) != (self._request or ""):
                    return


def fetch_checkpoint(workspace: Workspace, run: int, step: int, say: Say = lambda words: None) -> None:
    """Bring the checkpoint of a step of a run that trains elsewhere.

    Raises:
        PlaceError: The run trains here, the place does not answer, or has no such checkpoint.
    """
    workspace.check_mine()
    binding = bindings.binding_of(workspace.runs.get(run).folder)
    if binding is None or not binding.run:
        raise PlaceError(f"Run {run} was not sent to a place: its checkpoints are here.")
    link = link_to(bindings.host_of(binding.place), workspace)
    try:
        RunMirror(workspace, run, link.source(binding)).fetch_checkpoint(step, say)
    finally:
        link.close()


def send(workspace: Workspace, run: int, binding: Binding) -> None:
    """Decide that a run trains at a place; whoever trains it from now on trains it there.

    Raises:
        PlaceError: There is no such place.
    """
    workspace.check_mine()
    bindings.host_of(binding.place)
    bindings.bind(workspace.runs.get(run).folder, binding)


def keep_following(workspace: Workspace, runs: Iterable[RunRow], tried: dict[int, float]) -> None:
    """Start a follower for every run that trains elsewhere and has none: after a restart of this computer, say.

    Args:
        tried: Run -> when it was last tried; changed.
    """
    if workspace.look_only:
        return
    for row in runs:
        if (
            row.status in ENDED
            or row.status == "queued"
            or time.monotonic() - tried.get(row.id, -_FOLLOWERS_S) < _FOLLOWERS_S
        ):
            continue
        if not may_train_elsewhere(row.folder) or is_held(row.folder / "alive.lock"):
            continue
        tried[row.id] = time.monotonic()
        with contextlib.suppress(UserError):
            if bindings.binding_of(row.folder) is not None:
                arguments = ("-m", "trainer", "places", "follow", str(row.id), "--workspace", str(workspace.folder))
                launch.detach(safe_subprocess.python(*arguments), row.folder / "log.txt")
