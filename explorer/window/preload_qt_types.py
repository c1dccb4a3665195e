"""Create the Python types of Qt's classes at a safe moment."""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Iterator
from typing import Final

_MODULES: Final = ("QtCore", "QtGui", "QtWidgets", "QtSvg", "QtOpenGL", "QtOpenGLWidgets", "QtTest")
"""Those that the views import, themselves or by pyqtgraph."""
_USED: Final = tuple(name for name in _MODULES if name != "QtOpenGL")
"""Those whose types are used by importing; OpenGL's are used by drawing only, here."""


def types_of_qt() -> Iterator[None]:
    """Create the Python types of Qt's classes, one per step; 0.1 s in all.

    PySide puts each off until its first use, and importing pyqtgraph and the views uses nearly all of them. The views
    are imported on a thread: a window whose types were made there, while Qt was at work here, once crashed.
    """
    for name in _MODULES:
        with contextlib.suppress(ImportError):  # no OpenGL on this computer: pyqtgraph does without
            module = importlib.import_module(f"PySide6.{name}")
            yield
            for each in dir(module) if name in _USED else ():
                getattr(module, each)
                yield
