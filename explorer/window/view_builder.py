"""Imports and builds the views in pieces, the open one first, so that the window answers meanwhile."""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QObject, Signal

from explorer.event_loop.background import Background
from explorer.event_loop.exception_hooks import Hooks
from explorer.event_loop.idle_scheduler import idle_scheduler
from explorer.views import ViewEntry
from explorer.window.navigation import Navigation
from explorer.window.pages import Pages
from explorer.window.services import Loaded, load

if TYPE_CHECKING:
    from explorer.views.view import Context, View

_MODULES: Final = ("QtCore", "QtGui", "QtWidgets", "QtSvg", "QtOpenGL", "QtOpenGLWidgets", "QtTest")
"""Those that the views import, themselves or by pyqtgraph."""
_USED: Final = tuple(name for name in _MODULES if name != "QtOpenGL")
"""Those whose types are used by importing; OpenGL's are used by drawing only, here."""


class ViewBuilder(QObject):
    """Fills the pages of a window."""

    loaded = Signal()  # The modules of the services and of the open view are imported; `build` can begin.
    first_built = Signal()  # The open view is built; the modules of the others are imported next.
    others_loaded = Signal()  # Those are imported.
    built = Signal(str)  # Name of a view that is built or broken; it is among the pages.
    finished = Signal()  # All views are built.

    def __init__(
        self,
        entries: Sequence[ViewEntry],
        pages: Pages,
        background: Background,
        hooks: Hooks,
        navigation: Navigation,
        parent: QObject,
    ) -> None:
        super().__init__(parent)
        self._entries, self._pages, self._background, self._hooks = tuple(entries), pages, background, hooks
        self._navigation = navigation
        self._context: Context | None = None
        self._modules = Loaded()
        self._has_others = False

    def begin(self) -> None:
        """Import what the window and the open view need."""
        self._load_after(types_of_qt())

    def build(self, context: Context) -> None:
        """Build the open view, then the others."""
        self._context = context
        first = [entry for entry in self._entries if entry.name in self._modules.names]
        idle_scheduler().later(self, lambda: self._build_next(first))

    def _load_after(self, steps: Iterator[None]) -> None:
        for _ in steps:
            if idle_scheduler().is_full:
                idle_scheduler().later(self, lambda: self._load_after(steps))
                return
        self._background.run(self, load, self._open_first(self._entries)[:1], done=self._take_first)

    def _take_first(self, modules: Loaded) -> None:
        self._modules = modules
        self.loaded.emit()

    def _open_first(self, entries: Sequence[ViewEntry]) -> list[ViewEntry]:
        return sorted(entries, key=lambda entry: entry.name != self._navigation.view_name)

    def _load_others(self) -> None:
        """Import the modules of the other views, once the open view can show the runs."""
        self._has_others = True
        self.first_built.emit()
        others = self._open_first([entry for entry in self._entries if entry.name not in self._modules.names])
        self._background.run(self, load, others, done=lambda modules: self._take_others(modules, others))

    def _take_others(self, modules: Loaded, others: list[ViewEntry]) -> None:
        self._modules = modules
        self.others_loaded.emit()
        idle_scheduler().later(self, lambda: self._build_next(others))

    def _build_next(self, entries: list[ViewEntry]) -> None:
        """Build one view per event-loop iteration, so that the window stays responsive."""
        if not entries:
            self.finished.emit() if self._has_others else self._load_others()
            return
        # What a person has opened meanwhile is built next: until then it is gray bars.
        entry = self._open_first(entries)[0]
        rest = [other for other in entries if other is not entry]
        self._go_on(entry, self._new_view(entry), rest)

    def _new_view(self, entry: ViewEntry) -> View | None:
        assert self._context is not None
        if entry.name in self._modules.broken:
            self._hooks.caught.emit(f"{entry.title} could not be loaded.", self._modules.broken[entry.name])
            return None
        try:
            view = self._modules.views[entry.name](self._context, at_once=False)
            self._pages.adopt(view)
            return view
        except Exception as error:  # the other views must still open
            self._hooks.report(error)
            return None

    def _go_on(self, entry: ViewEntry, view: View | None, rest: list[ViewEntry]) -> None:
        """Continue building a view for the rest of this iteration."""
        try:
            for _ in view.building if view is not None else ():
                if idle_scheduler().is_full:
                    idle_scheduler().later(self, lambda: self._go_on(entry, view, rest))
                    return
        except Exception as error:  # the other views must still open
            self._hooks.report(error)
            if view is not None:
                view.deleteLater()
            view = None
        idle_scheduler().later(self, lambda: self._add(entry, view, rest))

    def _add(self, entry: ViewEntry, view: View | None, rest: list[ViewEntry]) -> None:
        """Add a view in its own iteration, because its stylesheet takes half as long as the view itself."""
        if view is None:
            self._pages.add_broken(entry.name, entry.title)
        else:
            self._pages.add(entry.name, view)
        self.built.emit(entry.name)
        idle_scheduler().later(self, lambda: self._build_next(rest))


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
