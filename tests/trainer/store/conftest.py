import os
import signal
import subprocess
from collections.abc import Callable, Iterator

import pytest

from tests import forked_code
from trainer import config
from trainer.store import Workspace

HOLDER = """
import sys, time
from pathlib import Path
from trainer.store import RunLog, StoreError, Workspace
try:
    log = RunLog.claim(Workspace(Path(sys.argv[1])), int(sys.argv[2]))
except StoreError as error:
    print("refused", error, flush=True)
    sys.exit(3)
exec(sys.argv[3])
print("held", flush=True)
time.sleep(600)
"""


@pytest.fixture
def tiny() -> config.Run:
    return config.Run(name="tiny")


@pytest.fixture
def number(workspace: Workspace, tiny: config.Run) -> int:
    """Return the number of a new run."""
    return workspace.runs.create(tiny)


@pytest.fixture
def hold(workspace: Workspace) -> Iterator[Callable[..., subprocess.Popen]]:
    """Start a real process that claims a run, does something, and waits until it is killed."""
    processes = []

    def start(run: int, then: str = "", wait: bool = True) -> subprocess.Popen:
        command = forked_code.command(HOLDER, str(workspace.folder), str(run), then)
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        processes.append(process)
        if wait:
            assert process.stdout.readline().strip() == "held", process.stdout.read()
        return process

    yield start
    for process in processes:
        if process.poll() is None:
            os.kill(process.pid, signal.SIGKILL)
        process.wait()
        process.stdout.close()
