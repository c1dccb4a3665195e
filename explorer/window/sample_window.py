"""The window of the finished runs that come with the application."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from explorer.event_loop.exception_hooks import Hooks
from explorer.views import VIEWS
from trainer import catalog

if TYPE_CHECKING:
    from explorer.window import Window

TITLE: Final = "Finished runs - Contrastive Explorer"
_LEFT_OUT: Final = "experiments"
"""Home: nothing can be begun there."""


def window_on_sample(hooks: Hooks, *, safe: bool = False) -> Window:
    """Return a window on the maps of the sample workspace; nothing of it is saved."""
    from explorer.window import Window

    views = tuple(entry for entry in VIEWS if entry.name != _LEFT_OUT)
    window = Window(catalog.sample_workspace(), hooks, entries=views, safe=safe)
    window.setWindowTitle(TITLE)
    window.selection.view = "map"
    return window
