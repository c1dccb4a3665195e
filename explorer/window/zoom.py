"""The zoom of the whole window: 75 to 200 %, remembered; texts, icons, plots and distances grow alike.

Qt scales every paint device by one factor, which it reads at its start. Its own setter of that factor is exported and
works later too, on windows that are created anew; sizes in pixels, of which the window has a thousand, stay as they
are. The setter is no public interface: where a Qt lacks it, the zoom is seen after a restart, which the window offers.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, MutableMapping
from pathlib import Path
from typing import Any, Final

import PySide6
from PySide6.QtCore import QEvent, QRect, QSize, qInstallMessageHandler
from PySide6.QtWidgets import QApplication, QWidget

from explorer import theme
from explorer.widgets.layouts import FRAME

ZOOM_KEY: Final = "window/zoom"
STEPS: Final = (75, 90, 100, 110, 125, 150, 175, 200)
"""Percent."""
SCALE: Final = "QT_SCALE_FACTOR"
OWN_SCALE: Final = "CONTRASTIVE_EXPLORER_SCALE"
"""The person's own QT_SCALE_FACTOR, which a zoom multiplies again."""
_ITANIUM: Final = "_ZN15QHighDpiScaling15setGlobalFactorEd"
SETTERS: Final = {
    "linux": ("libQt6Gui.so.6", _ITANIUM),
    "darwin": (str(Path(PySide6.__file__).parent / "Qt/lib/QtGui.framework/Versions/A/QtGui"), _ITANIUM),
    "win32": ("Qt6Gui.dll", "?setGlobalFactor@QHighDpiScaling@@SAXN@Z"),
}
"""Platform -> the loaded library, and the name of `void QHighDpiScaling::setGlobalFactor(qreal)` in it."""


def zoom_of(value: Any) -> int:
    """Return a remembered zoom in percent; 100 for what is none."""
    return value if value in STEPS and isinstance(value, int) else 100


def next_zoom(now: int, direction: int) -> int:
    """Return the zoom after (1) or before (-1) this one; at the ends the same."""
    index = STEPS.index(zoom_of(now)) + direction
    return STEPS[min(max(index, 0), len(STEPS) - 1)]


def set_scale(percent: int, environment: MutableMapping[str, str] = os.environ) -> None:
    """Scale the application that is made next; the scale of the person's environment is multiplied."""
    environment.setdefault(OWN_SCALE, environment.get(SCALE, "1"))
    if percent != 100 or SCALE in environment:
        environment[SCALE] = f"{_factor(percent, environment):g}"


def rescale(percent: int) -> bool:
    """Scale the running application, whose windows keep their place on the screen; return whether this Qt can."""
    setter, application = _setter(), QApplication.instance()
    if setter is None or not isinstance(application, QApplication):
        return False
    windows = [(window, handle) for window in application.topLevelWidgets() if (handle := window.windowHandle())]
    visible = [window for window, _ in windows if window.isVisible()]
    places_of = {window: window.geometry() for window in visible}  # within their frames, which are not scaled
    active, before = application.activeWindow(), application.primaryScreen().devicePixelRatio()
    visible.sort(key=lambda window: window is active)  # a window manager puts the one that is shown last on top
    for window, handle in windows:
        for widget in window.findChildren(QWidget):
            if widget.underMouse():  # Qt forgets it with the handle, and it would look hovered for ever.
                QApplication.sendEvent(widget, QEvent(QEvent.Type.Leave))
        window.hide()
        handle.destroy()
    # Qt warns that windows exist: those that do are created anew.
    handler = qInstallMessageHandler(lambda *_: None)
    setter(_factor(percent, os.environ))
    qInstallMessageHandler(handler)
    for window in visible:
        _fit(window, places_of[window], before)
        window.show()
    if active is not None:
        active.raise_()
        active.activateWindow()
    theme.theme().redraw()
    return True


def _fit(window: QWidget, was: QRect, before: float) -> None:
    """Give a window the place on the screen that it had, or what the screen has; another zoom gives it back.

    One that is maximized has its size of the desktop, which only its smallest size must not exceed.
    """
    least, last, physical = window.property("zoom") or (window.minimumSize(), QRect(), QRect())
    if was.size() != last.size():
        physical.setSize(was.size() * before)
    if was.topLeft() != last.topLeft():
        physical.moveTopLeft(was.topLeft() * before)
    after, room = window.screen().devicePixelRatio(), window.screen().availableSize() - QSize(*FRAME)
    window.setMinimumSize(least.boundedTo(room))
    if not window.isMaximized() and not window.isFullScreen():
        window.setGeometry(QRect(physical.topLeft() / after, (physical.size() / after).boundedTo(room)))
    window.setProperty("zoom", (least, window.geometry(), physical))


def _factor(percent: int, environment: MutableMapping[str, str]) -> float:
    try:
        factor = float(environment.get(OWN_SCALE, "1"))
    except ValueError:
        factor = 1.0
    return factor * percent / 100


def _setter() -> Callable[[float], None] | None:
    import ctypes

    try:
        library, name = SETTERS[sys.platform]
        setter: Callable[[float], None] = ctypes.CFUNCTYPE(None, ctypes.c_double)((name, ctypes.CDLL(library)))
    except (KeyError, OSError, AttributeError):
        return None
    return setter
