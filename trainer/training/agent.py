"""The process that starts the ranks of a run, watches them, and ends them together: torch's elastic agent.

`python -m trainer.training.agent RANKS fit RUN WORKSPACE`, or `RANKS python WORD...` for another Python program.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from trainer.store import Workspace
from trainer.untrusted import safe_subprocess

_START_S: Final = 120
_WORDLESS: Final = ("torch.distributed", "torch.distributed.elastic")


def main(words: Sequence[str]) -> int:
    """Start the ranks and wait for them; return 0 if all ended well."""
    ranks, what, *rest = words
    if what == "fit":
        run, folder = rest
        program = ["-m", "trainer", "fit", run, "--workspace", folder]
        failures = start_ranks(int(ranks), program)
        if failures:
            _say_why(Workspace(Path(folder)), int(run), int(ranks), failures)
        return 1 if failures else 0
    return 1 if start_ranks(int(ranks), rest) else 0


def start_ranks(ranks: int, program: Sequence[str]) -> Mapping[int, Any]:
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
    try:
        elastic_launch(config, executable)(*first)
    except ChildFailedError as error:
        return error.failures
    return {}


def _say_why(workspace: Workspace, run: int, ranks: int, failures: Mapping[int, Any]) -> None:
    """Write the reason into the row of a run whose rank 0 could not."""
    workspace.reconcile()
    row = workspace.runs.get(run)
    by_signal = [rank for rank, failure in failures.items() if failure.exitcode in (-9, -11, -6, -7)]
    if row.status == "interrupted" and by_signal and "Rank" not in row.reason:
        first = failures[by_signal[0]]
        reason = (
            f"Rank {by_signal[0]} of {ranks} (process {first.pid}) was ended from outside "
            f"({first.signal_name()}), and the others with it. Resume continues from the last checkpoint."
        )
        workspace.runs.change(run, reason=reason)
    elif row.status not in ("stopped", "finished", "failed", "interrupted"):
        reason = f"The {ranks} processes of the run ended before it began; its log says why."
        workspace.runs.change(run, status="failed", reason=reason)
    workspace.close()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
