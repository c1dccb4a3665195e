"""A control that cannot be used says why: its tool tip does, and its description for a screen reader."""

from __future__ import annotations

from typing import Final

from PySide6.QtGui import QAction
from PySide6.QtWidgets import QAbstractButton, QLineEdit, QWidget

HINTS: Final = "hints"
"""Property of a control that is refused -> its tool tip and description while it is not."""


def set_refusal(part: QWidget | QAction, reason: str, hint: str | None = None) -> None:
    """Disable a control, with the buttons and fields in it, and say why.

    Args:
        part: The control.
        reason: A sentence; an empty one enables the control, which then has its own tool tip again.
        hint: That tool tip; None for the one which it had before.
    """
    part.setEnabled(not reason)
    inside = (*part.findChildren(QAbstractButton), *part.findChildren(QLineEdit)) if isinstance(part, QWidget) else ()
    for control in (part, *inside):
        described = control.accessibleDescription() if isinstance(control, QWidget) else ""
        before, description = control.property(HINTS) or (control.toolTip(), described)
        before = hint if hint is not None and control is part else before
        control.setProperty(HINTS, (before, description) if reason else None)
        control.setToolTip(reason or before)
        if isinstance(control, QWidget):
            control.setAccessibleDescription(reason or description)


def refusal_of(part: QWidget | QAction) -> str:
    """Return why a control is disabled; empty if it is not."""
    return part.toolTip() if part.property(HINTS) else ""
