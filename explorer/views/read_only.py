"""Controls that write to the workspace: disabled while it is read-only, with the reason as hint and description."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from PySide6.QtGui import QAction
from PySide6.QtWidgets import QWidget

from explorer.widgets.refusal import set_refusal

if TYPE_CHECKING:
    from explorer.run_control.jobs import Jobs

Part = TypeVar("Part", bound=QWidget | QAction)


def guarded(jobs: Jobs, part: Part) -> Part:
    """Return the part, which is disabled while the workspace is read-only."""

    def show(_why: str) -> None:
        set_refusal(part, jobs.read_only_reason)

    if jobs.look_only:
        show("")
    jobs.look_only_changed.connect(show)
    return part
