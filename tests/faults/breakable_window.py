"""A window that starts runs as a person would, or of two that start at the same moment; it dies where a test says.

`python -m tests.faults.breakable_window JSON` opens the real window with its first view. At `point` it kills itself: a
place in the launch between two acts that the store or the system sees. `tests/fork_server.py` forks hundreds.
"""

import functools
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parents[2]
FAKE = Path(__file__).with_name("fake_trainer.py")


def start_window(workspace: Path, **order: object) -> subprocess.Popen[bytes]:
    """Open a window that starts `runs` runs with a `name` and dies at a `point`, or that opens `at` a moment."""
    settings = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    words = json.dumps({"workspace": str(workspace), **order})
    command = [sys.executable, "-P", "-m", "tests.faults.breakable_window", words]
    null = subprocess.DEVNULL
    environment = os.environ | settings
    return subprocess.Popen(command, stdin=null, stdout=null, stderr=null, env=environment, start_new_session=True)


def warm() -> None:
    """Preload the window's modules without creating threads or an application, which a fork would lose."""
    from explorer.views import VIEWS
    from explorer.window import Window
    from explorer.window.exports import Exports
    from explorer.window.services import load

    loaded = load(VIEWS[:1])
    assert not loaded.broken
    assert Exports
    Window.__init__.__kwdefaults__["entries"] = VIEWS[:1]


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def before(function: Callable, *_: object) -> Callable:
    """Wrap the function to die before it."""
    return functools.wraps(function)(lambda *args, **named: die())


def after(function: Callable) -> Callable:
    """Wrap the function to die after it."""

    @functools.wraps(function)
    def call(*args: object, **named: object) -> object:
        function(*args, **named)
        return die()

    return call


def set_trap(point: str) -> None:
    """Make the window die at a point of the launch."""
    from trainer.scheduling import launch
    from trainer.store.run_table import RunTable

    if point == "before the run is made":
        RunTable.create = before(RunTable.create)
    elif point == "after the run is made":
        RunTable.create = after(RunTable.create)
    elif point == "after it is marked as starting":
        RunTable.begin_launch = after(RunTable.begin_launch)
    elif point == "before the trainer is started":
        launch.spawn = before(launch.spawn)
    elif point == "after the trainer is started":
        launch.spawn = after(launch.spawn)
    elif point == "after its number is written":
        launch.start_detached = after(launch.start_detached)
    else:
        assert not point, point


def open_window(workspace: str, name: str, runs: int, point: str) -> int:
    """Run `explorer` with a user who starts runs."""
    from explorer import __main__ as program
    from explorer.window import Window
    from trainer import config
    from trainer.scheduling import launch

    spawn = launch.spawn
    launch.spawn = lambda command, log, more=None: spawn([sys.executable, str(FAKE), command[5], command[7]], log, more)
    set_trap(point)
    begin = Window.begin

    def start(window: Window) -> None:
        from explorer.run_control import actions

        for number in range(runs):
            window.services.jobs.do(actions.create_and_launch, config.Run(name=f"{name} {number}"))

    def begin_and_start(window: Window) -> None:
        window.ready.connect(lambda: start(window))
        begin(window)

    Window.begin = begin_and_start
    return program.main(["--workspace", workspace, "--theme", "light"])


def race(workspace: str, at: float) -> int:
    """Run the whole command, with its output and readiness in files named by its number."""
    from explorer import __main__ as program
    from explorer.window import Window

    said = os.open(f"{workspace}/said-{os.getpid()}", os.O_WRONLY | os.O_CREAT, 0o600)
    os.dup2(said, 2)
    begin = Window.begin

    def begin_and_tell(window: Window) -> None:
        window.ready.connect(lambda: Path(f"{workspace}/ready-{os.getpid()}").touch())
        begin(window)

    Window.begin = begin_and_tell
    time.sleep(max(0.0, at - time.monotonic()))
    return program.main(["--workspace", workspace, "--theme", "light"])


def main(words: str) -> int:
    """Open the window that the words describe."""
    # Under nohup a hang-up is ignored, by every child as well.
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    order = json.loads(words)
    return race(**order) if "at" in order else open_window(**order)


if __name__ == "__main__":
    warm()
    sys.exit(main(sys.argv[1]))
