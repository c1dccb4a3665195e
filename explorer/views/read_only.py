"""Controls that write to the workspace: disabled while it is read-only, with the reason as hint and description."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from PySide6.QtGui import QAction
from PySide6.QtWidgets import QAbstractButton, QLineEdit, QWidget

if TYPE_CHECKING:
    from explorer.run_control.jobs import Jobs

Part = TypeVar("Part", bound=QWidget | QAction)


def guarded(jobs: Jobs, part: Part) -> Part:
    """Return the part, which is disabled while the workspace is read-only."""
    hints: dict[QWidget | QAction, tuple[str, str]] = {}

    def show(_why: str) -> None:
        reason = jobs.read_only_reason
        part.setEnabled(not reason)
        for control in (part, *part.findChildren(QAbstractButton), *part.findChildren(QLineEdit)):
            described = control.accessibleDescription() if isinstance(control, QWidget) else ""
            hint, description = hints.setdefault(control, (control.toolTip(), described))
            control.setToolTip(reason or hint)
            if isinstance(control, QWidget):
                control.setAccessibleDescription(reason or description)

    if jobs.look_only:
        show("")
    jobs.look_only_changed.connect(show)
    return part
