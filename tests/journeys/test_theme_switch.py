"""A window after a theme switch equals one started in that theme, pixel by pixel: every view."""

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
import shiboken6
from PySide6.QtCore import QEvent, QRect
from PySide6.QtGui import QImage, QPainter
from PySide6.QtWidgets import QApplication

from explorer import theme
from explorer.event_loop.idle_scheduler import idle_scheduler
from explorer.intents import ClassifyPictures
from explorer.views import VIEWS
from explorer.widgets.bars import BarColumn
from explorer.widgets.progress_row import ProgressRow
from explorer.window import Window
from tests.real_window import real_window

pytestmark = [pytest.mark.nightly, pytest.mark.timeout(1200)]

NAMES = [place.name for place in VIEWS]
PICTURES = ("classify", "prompts", "inspect", "decode", "map")
"""Views that show pictures of a person; for the others no model is opened, which takes longest."""


@pytest.fixture
def open_window(qtbot, qapp: QApplication, two_runs, monkeypatch) -> Iterator[Callable[[theme.Mode, str], Window]]:
    """Open the real window in a theme, with both runs and an image selected."""

    def without_duration(name: str, note: str, *rest) -> BarColumn:
        return BarColumn(name, note.partition(" · ")[0], *rest)

    monkeypatch.setattr("explorer.views.classify.view.BarColumn", without_duration)
    flash = qapp.cursorFlashTime()
    # A caret that blinks would be a difference.
    qapp.setCursorFlashTime(0)
    with contextlib.ExitStack() as stack:

        def start(mode: theme.Mode, name: str) -> Window:
            window = stack.enter_context(real_window(two_runs.workspace, mode=mode, size=(1280, 800)))
            qtbot.waitUntil(lambda: len(window.services.jobs.runs) == 2, timeout=60_000)
            window.selection.select_snapshots((1, two_runs.steps[0]), (2, two_runs.steps[1]))
            if name in PICTURES:
                window.router.send(ClassifyPictures(tuple(two_runs.pictures[:2])))
            window.selection.pairs = []
            window.selection.pairs = [3]  # fills the inspector, and shows it where the window remembered this pair
            return window

        yield start
    qapp.setCursorFlashTime(flash)
    theme.theme().mode = "light"


def remove(window: Window) -> None:
    """Close and delete a window, unless it is gone: the next theme would dress all its widgets again."""
    if shiboken6.isValid(window):
        window.close()
        window.deleteLater()
        QApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete.value)


def at_work(window: Window) -> bool:
    """Return whether a computation or a request to a process is pending, also one too young to show a bar."""
    return window.background.busy or any(row.busy for row in window.findChildren(ProgressRow))


def look(qtbot, window: Window, name: str) -> QImage:
    """Return an image of the view once its requests are complete and two images are equal."""
    window.navigation.go_to(name)
    view, seen = window.pages.open_view, []
    if name == "inspect" and view.chart is None:
        qtbot.wait(100)
        view.captions.setEditText("a red circle on the left")
        view.ask()
        qtbot.waitUntil(lambda: view.chart is not None, timeout=300_000)
    if name == "quality":
        qtbot.waitUntil(lambda: view.area.kind in ("ready", "empty"), timeout=60_000)
        if view.loaded.report is None:
            view.check_data()
        qtbot.waitUntil(lambda: view.loaded.report is not None, timeout=300_000)
    if name == "classify":
        sides = [(side.run, side.step) for side in window.selection.sides]
        pictures = [item.path for item in view.strip.items]
        qtbot.waitUntil(lambda: all(view.asking.prediction(p, *s) for p in pictures for s in sides), timeout=300_000)

    def is_still() -> bool:
        if at_work(window) or not idle_scheduler().idle:
            return False
        seen.append(window.pages.grab().toImage().convertToFormat(QImage.Format.Format_RGB32))
        return seen[-1] in seen[:-1][-1:]

    qtbot.wait(100)
    qtbot.waitUntil(is_still, timeout=300_000)
    return seen[-1]


def look_twice(qtbot, window: Window, name: str) -> QImage:
    """Return an image of the second look, when data that other views read for this one are available."""
    look(qtbot, window, name)
    window.navigation.go_to("runs" if name != "runs" else "map")
    return look(qtbot, window, name)


def difference(first: QImage, second: QImage) -> QRect:
    """Return the smallest rectangle around all differences; empty if there are none."""
    if first.size() != second.size():
        return first.rect()
    one, other = (np.frombuffer(image.constBits(), np.uint32).reshape(image.height(), -1) for image in (first, second))
    rows, columns = np.nonzero(one != other)
    if not len(rows):
        return QRect()
    return QRect(int(columns.min()), int(rows.min()), int(np.ptp(columns)) + 1, int(np.ptp(rows)) + 1)


def keep(folder: Path, name: str, *images: QImage) -> Path:
    """Write images side by side for investigating a failure."""
    wide = images[0].width()
    both = QImage(len(images) * wide, images[0].height(), QImage.Format.Format_RGB32)
    painter = QPainter(both)
    for place, image in enumerate(images):
        painter.drawImage(place * wide, 0, image)
    painter.end()
    both.save(str(folder / f"{name}.png"))
    return folder / f"{name}.png"


@pytest.fixture(scope="module")
def _drawn_once(qapp: QApplication, two_runs) -> None:
    """Open a window first: that of a process draws the outlines of letters a shade differently."""
    with real_window(two_runs.workspace, mode=None):
        pass


@pytest.mark.usefixtures("_drawn_once")
@pytest.mark.parametrize("name", NAMES)
def test_a_switched_window_looks_like_one_started_in_that_theme(qtbot, open_window, tmp_path: Path, name: str) -> None:
    started = {}
    for mode in ("dark", "light"):
        window = open_window(mode, name)
        started[mode] = look_twice(qtbot, window, name)
        remove(window)
    # Its panels have not been seen in light when the theme changes for the first time.
    window, different = open_window("light", name), []
    for turn, mode in enumerate(("dark", "light", "dark", "light")):
        # The view is open, or another one is.
        window.navigation.go_to(name if turn in (1, 2) else "geometry")
        theme.theme().mode = mode
        # Another view that is opened and left makes this one fill itself again, which would hide an old color.
        looks = (look, look_twice) if turn in (1, 2) else (look_twice,)
        for way in looks:
            seen = way(qtbot, window, name)
            where = difference(started[mode], seen)
            if not where.isEmpty():
                file = keep(tmp_path, f"{turn}-{mode}-{way.__name__}", started[mode], seen)
                different.append(f"{mode} after {turn + 1} switches: {where.getRect()}, {file}")
    assert not different, "\n".join(different)
