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
_PICTURES: Final = "data/*/renderings/*.jpg"
_ONE_OF: Final = 64
"""Which of the held-out pictures lie in Classify."""


def window_on_sample(hooks: Hooks, *, safe: bool = False) -> Window:
    """Return a window on the maps of the sample, some pictures of which lie in Classify; nothing of it is saved."""
    from explorer.window import Window

    views = tuple(entry for entry in VIEWS if entry.name != _LEFT_OUT)
    window = Window(catalog.sample_workspace(), hooks, entries=views, safe=safe)
    window.setWindowTitle(TITLE)
    window.selection.view = "map"
    window.selection.queries = [str(path) for path in sorted(window.folder.glob(_PICTURES))[::_ONE_OF]]
    window.selection.undo.clear()
    return window
