"""The other processes of a run on this computer: whether they are there, and why one is not."""

from __future__ import annotations

import contextlib
import os
import platform
import signal
import threading
import time
from typing import Any, Final

from trainer.store.process_lock import Identity, identity, is_stopped

STOPPED_S: Final = 20.0
"""How long a rank may be stopped (SIGSTOP) before it is ended, since all others wait for it."""
STOOD_STILL: Final = f"had been stopped for {STOPPED_S:.0f} s, and was ended"
LOOK_S: Final = 0.5


def introduce_self(store: Any, rank: int) -> None:
    """Write for the other ranks which process this is."""
    me = identity()
    ticks, boot = (me.start_ticks, me.boot_id) if me is not None else (-1, "")
    store.set(f"rank/{rank}", f"{os.getpid()} {ticks} {boot or '-'} {platform.node() or '-'}")


class Standstill:
    """Ends processes that have been stopped (SIGSTOP) for too long."""

    def __init__(self, patience_s: float = STOPPED_S) -> None:
        self._patience_s = patience_s
        self._since: dict[Identity, float] = {}

    def ended(self, who: Identity) -> bool:
        """Look at a process; return whether it has been stopped for so long that it was ended."""
        if not is_stopped(who):
            self._since.pop(who, None)
            return False
        since = self._since.setdefault(who, time.monotonic())
        if time.monotonic() - since < self._patience_s:
            return False
        with contextlib.suppress(OSError):
            os.kill(who.pid, signal.SIGKILL if hasattr(signal, "SIGKILL") else signal.SIGTERM)
        return True


class Peers:
    """Looks after the other ranks of this computer from a thread.

    A rank that is stopped for 20 s is ended, so that the others learn it through their sockets. That of another
    computer is left to the sockets alone.
    """

    def __init__(self, store: Any, rank: int, size: int) -> None:
        self._store, self._rank, self._size = store, rank, size
        self._pids: dict[int, Identity] = {}
        self._standstill = Standstill()
        self._trouble = ""
        self._leaving = threading.Event()
        self._lock = threading.Lock()
        threading.Thread(target=self._watch, name="peers", daemon=True).start()

    def trouble(self, *, look: bool = False) -> str:
        """Return a sentence about a rank that is not there any more; empty while all are.

        Args:
            look: Look now, instead of taking what was seen last.
        """
        if look:
            self._look()
        return self._trouble

    def confess(self, reason: str) -> None:
        """Leave the reason why this rank ends."""
        with contextlib.suppress(RuntimeError):
            self._store.set(f"why/{self._rank}", reason)

    def close(self) -> None:
        """Stop watching."""
        self._leaving.set()

    def _watch(self) -> None:
        while not self._leaving.wait(LOOK_S):
            self._look()

    def _look(self) -> None:
        with self._lock:
            for rank in range(self._size):
                if rank != self._rank and not self._trouble:
                    self._trouble = self._look_at(rank)

    def _look_at(self, rank: int) -> str:
        process = self._identity(rank)
        if process is None:
            return ""
        who = f"Rank {rank} of {self._size} (process {process.pid})"
        end = "Resume continues from the last checkpoint."
        if why := self._reason(rank):
            return f"{who} failed: {why}"
        if not process.is_same(identity(process.pid)):
            return f"{who} was ended from outside. {end}"
        return f"{who} {STOOD_STILL}. {end}" if self._standstill.ended(process) else ""

    def _identity(self, rank: int) -> Identity | None:
        """Return the process of a rank of this computer, once it has introduced itself."""
        if rank not in self._pids:
            try:
                if not self._store.check([f"rank/{rank}"]):
                    return None
                pid, ticks, boot, node = self._store.get(f"rank/{rank}").decode().split(" ", 3)
            except RuntimeError:
                return None
            if node != (platform.node() or "-"):
                return None
            self._pids[rank] = Identity(int(pid), int(ticks), "" if boot == "-" else boot)
        return self._pids[rank]

    def _reason(self, rank: int) -> str:
        with contextlib.suppress(RuntimeError):
            if self._store.check([f"why/{rank}"]):
                return self._store.get(f"why/{rank}").decode()
        return ""
