"""Modules loaded after the first paint, and the objects created from them."""

from __future__ import annotations

import contextlib
import importlib
import sys
import traceback
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Final

from msgspec import Struct, field
from PySide6.QtCore import QObject

from explorer.event_loop.background import Background
from explorer.state.selection import Selection
from explorer.state.settings import Settings
from explorer.views import ViewEntry

if TYPE_CHECKING:
    from explorer.export import Exporter
    from explorer.model_client.client import ModelClient
    from explorer.run_control.jobs import Jobs
    from explorer.views.view import Context, View

_MODULES: Final = (
    "psutil",
    "trainer.store",
    "explorer.views.view",
    "explorer.run_control.jobs",
    "explorer.model_client.client",
    "explorer.export",
    # Of these the window imports some names at once; with them come views.
    "explorer.window.exports",
    "explorer.window.job_center",
    "explorer.window.notifications",
)

_UNUSED: Final = (
    "cuda.bindings",
    "jaxtyping._import_hook",
    "pyqtgraph.graphicsItems.ColorBarItem",
    "pyqtgraph.graphicsItems.GradientEditorItem",
    "pyqtgraph.graphicsItems.HistogramLUTItem",
    "pyqtgraph.graphicsItems.PColorMeshItem",
    "pyqtgraph.imageview",
    *(
        f"pyqtgraph.widgets.{name}"
        for name in (
            *("ColorMapMenu", "ColorMapWidget", "DataFilterWidget", "DataTreeWidget", "DiffTreeWidget"),
            *("GradientWidget", "HistogramLUTWidget", "RawImageWidget", "RemoteGraphicsView", "ScatterPlotWidget"),
        )
    ),
    "sqlalchemy.dialects.sqlite.aiosqlite",
)

_READERS: Final = ("numpy.ma", "trainer.untrusted.bounded.parquet")
"""What reading the first snapshot of a process imports, pyarrow with it: half of the time to its first picture."""


class Loaded(Struct, frozen=True):
    """The view classes, and the tracebacks of those that could not be loaded."""

    views: dict[str, type[View]] = field(default_factory=dict)
    broken: dict[str, str] = field(default_factory=dict)

    @property
    def names(self) -> frozenset[str]:
        return frozenset((*self.views, *self.broken))


def load(entries: Sequence[ViewEntry]) -> Loaded:
    """Import what the window and these views need; runs on a thread because it takes most of a second."""
    loaded = Loaded()
    with _without_unused_parts():
        for module in _MODULES:
            importlib.import_module(module)
        importlib.import_module("trainer.plugins").load_all()
        for entry in entries:
            try:
                loaded.views[entry.name] = entry.load()
            except Exception:  # one broken view must not take the others with it
                loaded.broken[entry.name] = traceback.format_exc()
    return loaded


class _Absent(ModuleType):
    """Stands for a module that is not to be loaded: it has every name that is imported from it."""

    def __getattr__(self, name: str) -> None:
        if name.startswith("__"):
            raise AttributeError(name)


@contextlib.contextmanager
def _without_unused_parts() -> Iterator[None]:
    """Keep libraries from loading what this window does not have.

    CUDA's bindings take 0.15 s, pyqtgraph's other widgets a third of its own time, and jaxtyping's hook, which wraps
    imports in checks of types, `unittest.mock`.
    """
    absent = [name for name in _UNUSED if name not in sys.modules]
    # None refuses the import, which pyqtgraph takes for a computer without CUDA.
    sys.modules.update({name: None if name == "cuda.bindings" else _Absent(name) for name in absent})  # type: ignore[misc]
    try:
        yield
    finally:
        for name in absent:
            del sys.modules[name]


def load_readers() -> None:
    """Import what the views need to read a snapshot, so that none of them waits for it; runs on a thread."""
    for module in _READERS:
        importlib.import_module(module)


class Services(Struct, frozen=True):
    """The services that the window and its views use."""

    context: Context
    exporter: Exporter

    @property
    def jobs(self) -> Jobs:
        """The interface to the trainers."""
        return self.context.jobs

    @property
    def client(self) -> ModelClient:
        """The client of the server processes."""
        return self.context.client

    def close(self) -> None:
        """Close everything that belongs to the window; trainers continue."""
        self.exporter.close()
        self.jobs.close()
        self.client.close()


def build(folder: Path, selection: Selection, background: Background, settings: Settings, parent: QObject) -> Services:
    """Create the services of this workspace; fast once `load` has run."""
    from explorer.export import Exporter
    from explorer.model_client.client import ModelClient
    from explorer.run_control.jobs import Jobs
    from explorer.views.view import Context
    from explorer.window.side_colors import SideColors
    from trainer.store import Workspace

    workspace = Workspace(folder)
    context = Context(
        workspace=workspace,
        selection=selection,
        background=background,
        jobs=Jobs(workspace, background, selection.undo, parent),
        client=ModelClient(workspace, parent),
        settings=settings,
    )
    SideColors(context, parent)
    return Services(context, Exporter(folder, parent))
