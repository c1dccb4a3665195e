"""The process that starts the ranks of a run, watches them, and ends them together: torch's elastic agent.

`python -m trainer.training.agent RANKS fit RUN WORKSPACE`, or `RANKS python WORD...` for another Python program.
"""

from __future__ import annotations

import contextlib
import logging
import os
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from trainer.ranks.peers import LOOK_S, STOOD_STILL, STOPPED_S, Standstill
from trainer.store import Workspace, reserve
from trainer.store.disk import DiskTrouble
from trainer.store.process_lock import identity
from trainer.untrusted import safe_subprocess

_START_S: Final = 120
_BY_SIGNAL: Final = (-9, -11, -6, -7)
_LATER_S: Final = 5.0
"""So much later than the ranks, which say what happened, the agent ends one that is stopped."""
_WORDLESS: Final = ("torch.distributed", "torch.distributed.elastic")


def main(arguments: Sequence[str]) -> int:
    """Start the ranks and wait for them; return 0 if all ended well."""
    ranks, what, *rest = arguments
    if what == "fit":
        run_id, folder = rest
        program = ["-m", "trainer", "fit", run_id, "--workspace", folder]
        workspace = Workspace(Path(folder))
        run_folder = workspace.runs.get(int(run_id)).folder
        reserve.take(workspace.folder, run_folder)
        workspace.close()  # until it is used again
        failures = start_ranks(int(ranks), program)
        if failures:
            try:
                _say_why(workspace, int(run_id), int(ranks), failures)
            except DiskTrouble:
                reserve.give(workspace.folder, run_folder)
                _say_why(workspace, int(run_id), int(ranks), failures)
        return 1 if failures else 0
    return 1 if start_ranks(int(ranks), rest) else 0


@dataclass(frozen=True)
class RankFailure:
    """How a rank ended that did not end well."""

    pid: int  # Of its process.
    by_signal: str  # The signal that ended it, by name, where that was one from outside; else empty.
    stood_still: bool  # Whether it was ended because it had been stopped.
    at: int  # The second at which that was seen.


def start_ranks(ranks: int, program: Sequence[str]) -> Mapping[int, RankFailure]:
    """Run a Python program as that many ranks of this computer; return the failures by rank."""
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
    from torch.distributed.launcher.api import LaunchConfig, elastic_launch

    for name in _WORDLESS:  # one sentence tells what happened, not the tables of the library
        logging.getLogger(name).setLevel(logging.CRITICAL)
    executable, *first = safe_subprocess.python(*program)
    # An address, not a name: looking up the name of this computer may hang.
    config = LaunchConfig(
        min_nodes=1,
        max_nodes=1,
        nproc_per_node=ranks,
        run_id=f"ranks-{os.getpid()}",
        rdzv_backend="c10d",
        rdzv_endpoint="127.0.0.1:0",
        rdzv_configs={"timeout": _START_S},
        local_addr="127.0.0.1",
        max_restarts=0,
    )
    with _none_stands_still() as ended:
        try:
            elastic_launch(config, executable)(*first)
        except ChildFailedError as error:
            return {
                rank: RankFailure(
                    failure.pid,
                    failure.signal_name() if failure.exitcode in _BY_SIGNAL else "",
                    failure.pid in ended,
                    failure.timestamp,
                )
                for rank, failure in error.failures.items()
            }
    return {}


@contextlib.contextmanager
def _none_stands_still() -> Iterator[set[int]]:
    """End a rank that is stopped, also before the others know it and after they have left; yield whom."""
    import psutil

    ended: set[int] = set()
    over, standstill = threading.Event(), Standstill(STOPPED_S + _LATER_S)

    def watch() -> None:
        while not over.wait(LOOK_S):
            for child in psutil.Process().children():
                who = identity(child.pid)
                if who is not None and standstill.ended(who):
                    ended.add(child.pid)

    threading.Thread(target=watch, name="standstill", daemon=True).start()
    try:
        yield ended
    finally:
        over.set()


def _say_why(workspace: Workspace, run_id: int, ranks: int, failures: Mapping[int, RankFailure]) -> None:
    """Write the reason into the row of a run whose rank 0 could not."""
    workspace.reconcile()
    run_row = workspace.runs.get(run_id)
    by_signal = [rank for rank, failure in failures.items() if failure.by_signal]
    explained = run_row.status in ("stopped", "finished", "failed") or "Rank" in run_row.reason
    if by_signal and not explained:
        # Those that do not end with the first are killed by the agent, later.
        rank = min(by_signal, key=lambda rank: failures[rank].at)
        failure = failures[rank]
        what = STOOD_STILL if failure.stood_still else f"was ended from outside ({failure.by_signal})"
        reason = (
            f"Rank {rank} of {ranks} (process {failure.pid}) {what}, and the others with it. Resume continues from the "
            "last checkpoint."
        )
        workspace.runs.change(run_id, status="interrupted", reason=reason)
    elif run_row.status not in ("stopped", "finished", "failed", "interrupted"):
        reason = f"The {ranks} processes of the run ended before it began; its log says why."
        workspace.runs.change(run_id, status="failed", reason=reason)
    workspace.close()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
