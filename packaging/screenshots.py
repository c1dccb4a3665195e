"""Takes the pictures of every view: `uv run python packaging/screenshots.py WORKSPACE OUT`.

The workspace needs two runs with snapshots (`uv run trainer demo --workspace WORKSPACE` makes them); the first CLIP
run becomes A and the first CLOOB run B. Each view is taken in both themes at 1280 x 800 and 2560 x 1440, and once
more in an empty workspace. The window is the real one, on Qt's offscreen platform.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

from PySide6.QtCore import QEventLoop, QTimer
from PySide6.QtWidgets import QApplication, QPushButton

from explorer import theme
from explorer.event_loop.exception_hooks import Hooks
from explorer.event_loop.garbage_collector import GarbageCollector
from explorer.intents import ClassifyPictures
from explorer.views import VIEWS
from explorer.window import Window
from trainer.charts.point_placement import PointPlacement

SIZES = ((1280, 800), (2560, 1440))
MOST_SECONDS = 600.0


def main(workspace: Path, out: Path) -> None:
    """Takes all pictures; prints the name of each."""
    out.mkdir(parents=True, exist_ok=True)
    application = QApplication.instance() or QApplication(sys.argv[:1])
    application.setApplicationName("Contrastive Explorer")
    garbage = GarbageCollector(application)  # as the application: a worker that collects widgets crashes
    for mode in ("light", "dark"):
        theme.theme().apply(application, mode)
        photograph(workspace, out, mode, empty=False)
        with tempfile.TemporaryDirectory() as nothing:
            photograph(Path(nothing), out, mode, empty=True)
    garbage.close()


def photograph(workspace: Path, out: Path, mode: str, *, empty: bool) -> None:
    """Every view of one workspace in one theme."""
    hooks = Hooks(workspace)
    window = Window(workspace, hooks)
    ready: list[bool] = []
    window.ready.connect(lambda: ready.append(True))
    window.show()
    wait_until(lambda: bool(ready))
    if not empty:
        choose_runs(window)
    for size in SIZES[:1] if empty else SIZES:
        window.resize(*size)
        for place in VIEWS:
            window.navigation.go_to(place.name)
            settle(window, place.name, empty)
            file = out / f"{place.name}-{mode}-{size[0]}{'-empty' if empty else ''}.png"
            window.grab().save(str(file))
            print(file.name, flush=True)
    window.close()


def choose_runs(window: Window) -> None:
    """The first CLIP run as A, the first CLOOB run as B, and a few held-out pictures to classify."""
    jobs, selection = window.services.jobs, window.selection
    wait_until(lambda: len(jobs.runs) >= 2)
    by_objective = {run.objective: run.id for run in reversed(jobs.runs)}
    selection.run_a, selection.run_b = by_objective["clip"], by_objective["cloob"]
    pictures = sorted(window.folder.glob("data/scenes-*/renderings/*.jpg"))
    window.router.send(ClassifyPictures(tuple(pictures[3:60:7])))


def settle(window: Window, name: str, empty: bool) -> None:
    """Waits until the view shows its answers."""
    pause(0.8)
    if empty:
        return
    view = window.pages.open_view
    if name == "runs":
        view.table.choose(list(window.selection.runs))
    if name == "classify":
        wait_until(lambda: all(view.asking.prediction(view.strip.current, run) for run in window.selection.runs))
    if name == "map":
        view.toolbar.methods.set_placement(PointPlacement(method="umap"))
    pause(1.0)
    wait_until(lambda: not at_work(window))
    pause(1.5)


def at_work(window: Window) -> bool:
    """Whether the view still computes: everything that takes long shows a Cancel."""
    return window.background.busy or any(
        button.text() == "Cancel" and button.isVisible() for button in window.findChildren(QPushButton)
    )


def pause(seconds: float) -> None:
    """Lets the window live for a while."""
    loop = QEventLoop()
    QTimer.singleShot(int(1000 * seconds), loop.quit)
    loop.exec()


def wait_until(condition: Callable[[], bool]) -> None:
    """Lets the window live until `condition` holds.

    Raises:
        TimeoutError: It did not for ten minutes.
    """
    end = time.monotonic() + MOST_SECONDS
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError("the window did not get there within ten minutes")
        pause(0.05)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve())
