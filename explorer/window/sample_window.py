"""The window of the finished runs that come with the application."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

from explorer.event_loop.exception_hooks import Hooks
from explorer.views import VIEWS
from explorer.window.menus import CommandedFrame
from trainer import catalog

FrameT = TypeVar("FrameT", bound=CommandedFrame)

TITLE: Final = "Finished runs - Contrastive Explorer"
_LEFT_OUT: Final = "experiments"
"""Home: nothing can be begun there."""
_PICTURES: Final = "data/*/renderings/*.jpg"
_ONE_OF: Final = 64
"""Which of the held-out pictures lie in Classify."""


def window_on_sample(make_window: Callable[..., FrameT], hooks: Hooks, *, safe: bool = False) -> FrameT:
    """Return a window on the maps of the sample, some pictures of which lie in Classify; nothing of it is saved."""
    views = tuple(entry for entry in VIEWS if entry.name != _LEFT_OUT)
    window = make_window(catalog.sample_workspace(), hooks, entries=views, safe=safe)
    window.setWindowTitle(TITLE)
    window.selection.view = "map"
    window.selection.queries = [str(path) for path in sorted(window.folder.glob(_PICTURES))[::_ONE_OF]]
    window.selection.undo.clear()
    return window
