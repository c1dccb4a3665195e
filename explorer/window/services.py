"""Everything that is loaded after the first paint, and the objects made of it."""

from __future__ import annotations

import importlib
import traceback
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QObject

from explorer.event_loop.background import Background
from explorer.state.selection import Selection
from explorer.state.settings import Settings
from explorer.views import Place

if TYPE_CHECKING:
    from explorer.export import Exporter
    from explorer.model_client.client import Asker
    from explorer.run_control.jobs import Jobs
    from explorer.views.view import Context, View

_MODULES: Final = (
    "psutil",
    "trainer.store",
    "explorer.views.view",
    "explorer.run_control.jobs",
    "explorer.model_client.client",
    "explorer.export",
)


@dataclass(frozen=True)
class Loaded:
    """The classes of the views, and the tracebacks of those that could not be loaded."""

    views: dict[str, type[View]] = field(default_factory=dict)
    broken: dict[str, str] = field(default_factory=dict)


def load(places: Sequence[Place]) -> Loaded:
    """Imports what the window needs after its first paint; runs on a thread, for this takes most of a second."""
    for module in _MODULES:
        importlib.import_module(module)
    loaded = Loaded()
    for place in places:
        try:
            loaded.views[place.name] = place.load()
        except Exception:  # one broken view must not take the others with it
            loaded.broken[place.name] = traceback.format_exc()
    return loaded


@dataclass(frozen=True)
class Services:
    """What the window and its views work with."""

    context: Context
    exporter: Exporter

    @property
    def jobs(self) -> Jobs:
        """The trainers."""
        return self.context.jobs

    @property
    def asker(self) -> Asker:
        """The answer processes."""
        return self.context.asker

    def close(self) -> None:
        """Ends what belongs to the window; trainers go on."""
        self.exporter.close()
        self.jobs.close()
        self.asker.close()


def build(folder: Path, selection: Selection, background: Background, settings: Settings, parent: QObject) -> Services:
    """The rooms of this workspace; quick once `load` has run."""
    from explorer.export import Exporter
    from explorer.model_client.client import Asker
    from explorer.run_control.jobs import Jobs
    from explorer.views.view import Context
    from trainer.store import Workspace

    workspace = Workspace(folder)
    context = Context(
        workspace=workspace,
        selection=selection,
        background=background,
        jobs=Jobs(workspace, background, selection.undo, parent),
        asker=Asker(workspace, parent),
        settings=settings,
    )
    return Services(context, Exporter(folder, parent))
