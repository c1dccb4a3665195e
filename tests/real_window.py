"""The real window, opened and closed as the program does it."""

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import shiboken6
from PySide6.QtCore import QEvent
from PySide6.QtTest import QSignalSpy
from PySide6.QtWidgets import QApplication

from explorer import theme
from explorer.event_loop.exception_hooks import Hooks
from explorer.event_loop.garbage_collector import GarbageCollector
from explorer.views import VIEWS
from explorer.window import Window

READY_MS = 180_000


@contextlib.contextmanager
def real_window(
    folder: Path,
    entries: Any = VIEWS,
    *,
    mode: theme.Mode | None = "light",
    size: Sequence[int] = (),
    ready: bool = True,
    hooked: bool = True,
    collected: bool = True,
    safe: bool = False,
) -> Iterator[Window]:
    """Open the window of a workspace, and delete it at the end.

    Args:
        folder: The workspace.
        entries: The views.
        mode: The theme that is applied first; none leaves the application's.
        size: Width and height.
        ready: Show it and wait until all views are built.
        hooked: Its hooks catch errors, which fail the test otherwise.
        collected: Garbage is collected between events.
        safe: As after a crash.
    """
    if mode:
        theme.theme().apply(QApplication.instance(), mode)
    hooks = Hooks(folder)
    garbage = GarbageCollector() if collected else None
    if hooked:
        hooks.install()
    window = Window(folder, hooks, entries=entries, safe=safe)
    if size:
        window.resize(*size)
    built = QSignalSpy(window.ready)
    try:
        if ready:
            window.show()
            assert built.count() or built.wait(READY_MS), "the views are not built"
        yield window
    finally:
        if shiboken6.isValid(window):
            window.close()
            window.deleteLater()
        if garbage:
            garbage.close()
        hooks.remove()
        QApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete.value)
