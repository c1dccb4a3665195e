"""A process with torch imported that forks a trainer for each line it reads: one starts in milliseconds.

Lines in: `{"start": {"workspace", "run", "environment", "before", "ranks"}}` and `{"wait": pid}`; out: the process
number, or the exit status as `os.waitpid` tells it. `before` is Python that the trainer runs first, to put a fault in
its way. With `ranks`, torch's agent is forked, and its ranks from it.
"""

import json
import os
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path


def warm() -> None:
    """Preload the modules of training without creating threads, which a fork would lose."""
    import numpy as np
    import psutil
    import pyarrow.parquet
    import torch
    import torch.distributed.launcher.api

    import trainer.training.agent
    import trainer.training.fit
    from trainer.evaluation import measure

    torch.set_num_threads(1)
    assert all((np, psutil, pyarrow.parquet, trainer.training.agent, trainer.training.fit, measure))
    # The first optimizer loads half of torch's compiler.
    module = torch.nn.Linear(2, 2)
    optimizer = torch.optim.AdamW(module.parameters())
    module(torch.ones(1, 2)).sum().backward()
    optimizer.step()


def train(workspace: str, run: int, environment: dict[str, str], before: str) -> int:
    """Run `trainer fit` in the child, with its output in the run's log."""
    from trainer import device
    from trainer.errors import UserError
    from trainer.store import Workspace
    from trainer.training.fit import fit

    if os.getsid(0) != os.getpid():
        os.setsid()
    os.environ.update(environment)
    space = Workspace(Path(workspace))
    log = os.open(space.runs.get(run).folder / "log.txt", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.close(log)
    sys.stdout = open(1, "w", buffering=1, closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", buffering=1, closefd=False)  # noqa: SIM115
    device.be_polite = lambda where: None
    exec(before, {"__name__": "before"})
    try:
        fit(space, run)
    except UserError:
        return 2
    except BaseException:
        traceback.print_exc()
        return 1
    return 0


def share(workspace: str, run: int, environment: dict[str, str], before: str, ranks: int) -> int:
    """Run the agent of several ranks, each of which trains as `train`; write when they have ended to `ended`."""
    from torch.distributed.elastic.multiprocessing.subprocess_handler.subprocess_handler import SubprocessHandler

    from trainer.store import Workspace
    from trainer.training import agent

    def forked(_: SubprocessHandler, words: tuple[str, ...], given: dict[str, str]) -> Forked:
        return Forked(words, given, lambda: train(workspace, run, environment, before))

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
                os.environ.update(self._given)
                code = self._work()
            finally:
                os._exit(code)
        self._child_created = True


def main() -> None:
    """Execute commands until the input ends."""
    warm()
    print("ready", flush=True)
    for line in sys.stdin:
        order = json.loads(line)
        if "wait" in order:
            print(os.waitpid(order["wait"], 0)[1], flush=True)
            continue
        child = os.fork()
        if child == 0:
            code, ranks = 1, order["start"].pop("ranks", 1)
            try:
                code = train(**order["start"]) if ranks == 1 else share(**order["start"], ranks=ranks)
            finally:
                os._exit(code)
        print(child, flush=True)


if __name__ == "__main__":
    main()
