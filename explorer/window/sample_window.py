"""The window of the finished runs that come with the application."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

from PySide6.QtCore import QPoint, QRect, Qt

from explorer.event_loop.exception_hooks import Hooks
from explorer.views import VIEWS
from explorer.widgets.layouts import FRAME
from explorer.window.menus import CommandedFrame
from trainer.config import default_paths

FrameT = TypeVar("FrameT", bound=CommandedFrame)

TITLE: Final = "Sample: two finished runs, read-only - Contrastive Explorer"
BACK: Final = "My runs"
"""What the rail calls the window that this one was opened from."""
OFFSET_PX: Final = 40
"""By so much it lies beside that window: both are seen to be there."""
_PICTURES: Final = "data/*/renderings/"
_NAMES: Final = ("00200", "00000", "00296", "00128", "00526", "00158", "00306", "00640")
"""Of held-out pictures in Classify: on every other one the runs disagree, or one of them is unsure."""


def window_on_sample(
    make_window: Callable[..., FrameT], hooks: Hooks, *, safe: bool = False, back: Callable[[], object] | None = None
) -> FrameT:
    """Return a window on the maps of the sample, some pictures of which lie in Classify; nothing of it is saved.

    Args:
        make_window: Makes it of a folder.
        safe: Whether it draws without compiled code.
        back: Brings the window of one's own runs to the front; None where there is no such window.
    """
    views = tuple(entry for entry in VIEWS if entry.name != "experiments")  # Home: nothing can be begun there.
    window = make_window(default_paths.sample_workspace(), hooks, entries=views, safe=safe)
    window.setWindowTitle(TITLE)
    window.selection.view = "map"
    window.selection.queries = [str(path) for name in _NAMES for path in window.folder.glob(f"{_PICTURES}{name}.jpg")]
    window.selection.undo.clear()
    if back is not None:
        window.back = back
        button = window.rail.add("showOwnRuns", "arrow-left", BACK, at_top=True)
        button.setToolTip("Back to the window of my own runs")
        button.clicked.connect(back)
    return window


class SampleWindow:
    """The finished runs in a window of their own, which is opened once and closes with the first."""

    def __init__(self, make_window: Callable[..., CommandedFrame], window: CommandedFrame, hooks: Hooks) -> None:
        self._make_window, self._window, self._hooks = make_window, window, hooks
        self._sample: CommandedFrame | None = None

    def show(self) -> None:
        """Open it, or bring it to the front."""
        if not default_paths.sample_workspace().is_dir():
            self._window.banner.show_message(
                "The finished runs are not part of this installation.", "Install it again."
            )
            return
        if self._sample is None:
            self._sample = window_on_sample(self._make_window, self._hooks, back=self._window.come_forward)
            self._window.status.jobs_changed.connect(self._sample.status.show_jobs_beside)
            self._sample.status.show_jobs_beside(self._window.status.jobs)
            screen = self._window.screen().availableGeometry().adjusted(0, 0, -FRAME[0], -FRAME[1])
            geometry = QRect(self._window.pos() + QPoint(OFFSET_PX, OFFSET_PX), self._window.size()) & screen
            self._sample.resize(geometry.size())
            self._sample.move(geometry.topLeft())
            self._sample.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
            self._sample.destroyed.connect(self._forget)
            self._sample.showMaximized() if self._window.isMaximized() else self._sample.show()
        self._sample.come_forward()

    def close(self) -> None:
        if self._sample is not None:
            self._sample.close()

    def _forget(self) -> None:
        self._sample = None
