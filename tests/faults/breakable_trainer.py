"""A trainer that runs Python of a test first, to put a fault in its way, and its ranks."""

import json
import os
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]


def start_trainer(
    workspace: Any, run: int, *, before: str = "", ranks: int = 1, **environment: str
) -> subprocess.Popen[bytes]:
    """Start training the run, by that many processes, with its output in the run's log; `before` is executed first."""
    words = json.dumps({"workspace": str(workspace.folder), "run": run, "before": before, "ranks": ranks})
    settings = {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"}
    with (workspace.runs.get(run).folder / "log.txt").open("ab") as log:
        return subprocess.Popen(
            [sys.executable, "-P", "-m", "tests.faults.breakable_trainer", words],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            env=os.environ | settings | environment,
            start_new_session=True,
        )


def train(workspace: str, run: int, before: str) -> int:
    """Run `trainer fit`."""
    from trainer import device
    from trainer.errors import UserError
    from trainer.store import Workspace
    from trainer.training.fit import fit

    device.be_polite = lambda where: None
    exec(before, {"__name__": "before"})
    try:
        fit(Workspace(Path(workspace)), run)
    except UserError:
        return 2
    except BaseException:
        traceback.print_exc()
        return 1
    return 0


def share(workspace: str, run: int, before: str, ranks: int) -> int:
    """Run the agent of several ranks, each of which trains as `train`; write when they have ended to `ended`."""
    from torch.distributed.elastic.multiprocessing.subprocess_handler.subprocess_handler import SubprocessHandler

    from trainer.store import Workspace
    from trainer.training import agent

    def forked(_: SubprocessHandler, words: tuple[str, ...], given: dict[str, str]) -> Forked:
        return Forked(words, given, lambda: train(workspace, run, before))

    SubprocessHandler._popen = forked
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    code = agent.main([str(ranks), "fit", str(run), workspace])
    space = Workspace(Path(workspace))
    space.reconcile()
    (space.runs.get(run).folder / "ended").write_text(str(time.time()))
    return code


class Forked(subprocess.Popen):
    """A child process that calls a function, in the place of one that runs a program."""

    def __init__(self, words: tuple[str, ...], environment: dict[str, str], work: Callable[[], int]) -> None:
        self._work, self._given = work, environment
        super().__init__(words)

    def _execute_child(self, *_: object) -> None:
        self.pid = os.fork()
        if self.pid == 0:
            code = 1
            try:
                # A program begins without the agent's handlers, which make a stop an error.
                signal.signal(signal.SIGTERM, signal.SIG_DFL)
                signal.signal(signal.SIGINT, signal.default_int_handler)
                os.setsid()
                os.environ.update(self._given)
                code = self._work()
            finally:
                os._exit(code)
        self._child_created = True


def main(words: str) -> int:
    """Train as the words say."""
    order = json.loads(words)
    return share(**order) if order["ranks"] > 1 else train(order["workspace"], order["run"], order["before"])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
