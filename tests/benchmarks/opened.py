"""The real window for benchmarks: opened on a workspace, monitored by its own watchdog."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from PySide6.QtWidgets import QApplication

    from explorer.window import Window


@dataclass
class Opened:
    """An open window.

    Attributes:
        passed: Seconds from the start of this process to `first_paint` and to `all_views`, and those of its processor.
        stretches: What was done -> its longest stretch of computing, and the calls of all that were over 100 ms.
    """

    application: QApplication
    window: Window
    passed: dict[str, float] = field(default_factory=dict)
    stretches: dict[str, dict[str, Any]] = field(default_factory=dict)

    def wait(self, seconds: float, until: Callable[[], object] = lambda: False) -> bool:
        """Run the event loop until a condition is met; False after a timeout of `seconds`."""
        end = time.perf_counter() + seconds
        while not (so := bool(until())) and time.perf_counter() < end:
            self.application.processEvents()
            time.sleep(0.001)
        return so

    def note(self, what: str) -> None:
        """Record the longest blocked period since the last call under this name."""
        dog = self.window.watchdog
        if dog.longest is not None:
            told = [gap.stack for gap in dog.gaps if gap.own_ms > 100]
            row = {"cpu_ms": round(dog.longest.cpu_ms), "own_ms": round(max([0.0, *(gap.own_ms for gap in dog.gaps)]))}
            self.stretches[what] = row | ({"stacks": told} if told else {})
        dog.forget()

    def do(self, what: str, act: Callable[[], object], seconds: float = 2.0) -> None:
        """Perform an action, run the event loop for a while, and record the longest blocked period."""
        act()
        self.wait(seconds)
        self.note(what)


@contextmanager
def opened(folder: Path) -> Iterator[Opened]:
    """Open the window on a workspace as on its first start, and close it at the end."""
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    logging.disable(logging.WARNING)
    from explorer.event_loop.qt_import import import_qt

    import_qt()  # as the program does
    from PySide6.QtWidgets import QApplication

    from explorer import theme
    from explorer.event_loop.exception_hooks import Hooks
    from explorer.event_loop.garbage_collector import GarbageCollector
    from explorer.event_loop.process_age import process_age_s
    from explorer.window import Window

    application = QApplication.instance() or QApplication([])
    assert isinstance(application, QApplication)
    (folder / "explorer.json").unlink(missing_ok=True)  # else it opens where it was left
    hooks = Hooks(folder)
    theme.theme().apply(application, "light")
    window = Window(folder, hooks)
    it = Opened(application, window)
    garbage = GarbageCollector(begin=False)
    window.ready.connect(garbage.keep_what_is_there)
    for signal, name in ((window.painted, "first_paint"), (window.ready, "all_views")):
        signal.connect(lambda name=name: it.passed.setdefault(f"{name}_cpu", round(time.process_time(), 3)))
        signal.connect(lambda name=name: it.passed.setdefault(name, round(process_age_s(), 3)))
    window.show()
    try:
        yield it
    finally:
        window.close()
        garbage.close()
        hooks.remove()


def measured_apart(*arguments: str) -> dict[str, Any]:
    """Return the last output of `python -m tests.benchmarks ARGUMENTS...` in a separate process."""
    command = [sys.executable, "-m", "tests.benchmarks", *arguments]
    # Who installed the application has it compiled; where that is forbidden, each start would compile it again.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    root = Path(__file__).parents[2]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, cwd=root, env=environment)
    return json.loads(done.stdout.splitlines()[-1])
