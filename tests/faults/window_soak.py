"""A window in a separate process that is busy for hours: `window_soak.py WORKSPACE LIVE ACTS LONGEST_S`.

The process has opened nothing else, so what it holds is the window's. It does something every tenth of a second, and
writes what it has to its standard output, a line of JSON at a time.
"""

import gc
import json
import os
import random
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Final

import psutil
from PySide6.QtCore import QEventLoop, QObject, QPoint, QTimer
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from explorer import theme
from explorer.event_loop.exception_hooks import Hooks
from explorer.event_loop.garbage_collector import GarbageCollector
from explorer.views import VIEWS
from explorer.window import Window

EVERY_MS: Final = 100
SAMPLES: Final = 60


class Busybody(QObject):
    """Switches views, hovers, selects runs, and toggles the theme."""

    def __init__(self, window: Window) -> None:
        super().__init__()
        self.window, self.rng, self.acts = window, random.Random(1), 0
        self.timer = QTimer(self, interval=EVERY_MS, timeout=self.act)

    def act(self) -> None:
        self.acts += 1
        if self.acts % 100 == 0:
            theme.theme().mode = "dark" if theme.theme().mode == "light" else "light"
        elif self.acts % 7 == 0:
            self.window.navigation.go_to(VIEWS[self.acts // 7 % len(VIEWS)].name)
        elif self.acts % 31 == 0:
            self.window.selection.select_runs(*self.rng.sample([1, 2, 3], 2))
        elif self.acts % 43 == 0:
            self.window.selection.undo.clear()
        else:
            where = QPoint(self.rng.randrange(self.window.width()), self.rng.randrange(self.window.height()))
            QTest.mouseMove(self.window.windowHandle(), where)


def wait(ms: float) -> None:
    """Run the event loop."""
    loop = QEventLoop()
    QTimer.singleShot(int(ms), loop.quit)
    loop.exec()


def until(is_so, longest_s: float = 120) -> None:
    end = time.monotonic() + longest_s
    while not is_so():
        assert time.monotonic() < end, "what is waited for does not come"
        wait(50)


def files() -> dict[str, int]:
    """Return the number of open files by type."""
    kinds: Counter[str] = Counter()
    folder = Path("/proc/self/fd")
    for link in folder.iterdir() if folder.is_dir() else ():
        try:
            kinds[os.readlink(link).split(":[")[0].removesuffix(" (deleted)")] += 1
        except OSError:
            continue
    return dict(kinds)


def sample(acts: int, hooks: Hooks) -> dict[str, object]:
    me = psutil.Process()
    return {
        "s": time.monotonic(),
        "acts": acts,
        "rss": me.memory_info().rss / 1e6,
        "threads": threading.active_count(),
        "tasks": me.num_threads(),
        "fds": me.num_fds(),
        "nones": sys.getrefcount(None),
        "objects": len(gc.get_objects()),
        "widgets": len(QApplication.allWidgets()),
        "caught": hooks.caught_count,
        "files": files(),
    }


def main(folder: Path, live: int, acts: int, longest_s: float) -> None:
    """Open the window like the program does and operate it."""
    application = QApplication([])
    hooks = Hooks(folder)
    hooks.install()
    theme.theme().apply(application, "light")
    window, garbage = Window(folder, hooks), GarbageCollector()
    window.ready.connect(garbage.keep_what_is_there)
    ready: list[bool] = []
    window.ready.connect(lambda: ready.append(True))
    window.show()
    until(lambda: ready)
    until(lambda: any(run.status == "running" for run in window.services.jobs.runs))
    window.pages.views["runs"].table.choose([1, live])
    # Once round: what every view keeps for good is there then.
    for place in VIEWS:
        window.navigation.go_to(place.name)
        wait(100)
        until(lambda: not window.background.busy)
    body, end, told = Busybody(window), time.monotonic() + longest_s, 0
    body.timer.start()
    while body.acts < acts and time.monotonic() < end:
        if body.acts >= told * acts / SAMPLES:
            told += 1
            print(json.dumps(sample(body.acts, hooks)), flush=True)
        wait(EVERY_MS)
    body.timer.stop()
    print(json.dumps(sample(body.acts, hooks)), flush=True)
    window.close()
    garbage.close()
    hooks.remove()


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4]))
    # Not the end of the interpreter: that is no part of what is measured.
    sys.stdout.flush()
    os._exit(0)
