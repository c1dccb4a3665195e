"""A process with torch imported that forks a trainer for each line it reads: one starts in milliseconds.

Lines in: `{"start": {"workspace", "run", "environment", "before"}}` and `{"wait": pid}`; out: the process number, or
the exit status as `os.waitpid` tells it. `before` is Python that the trainer runs first, to put a fault in its way.
"""

import json
import os
import sys
import traceback
from pathlib import Path


def warm() -> None:
    """Preload the modules of training without creating threads, which a fork would lose."""
    import alembic.command
    import numpy as np
    import psutil
    import pyarrow.parquet
    import torch

    import trainer.training.fit
    from trainer.evaluation import measure

    torch.set_num_threads(1)
    assert all((alembic.command, np, psutil, pyarrow.parquet, trainer.training.fit, measure))
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
            code = 1
            try:
                code = train(**order["start"])
            finally:
                os._exit(code)
        print(child, flush=True)


if __name__ == "__main__":
    main()
