"""Accessibility: roles of custom widgets, and announcements for screen readers."""

from __future__ import annotations

from typing import Final, Literal

from PySide6.QtCore import QObject
from PySide6.QtGui import QAccessible, QAccessibleAnnouncementEvent, QAccessibleInterface
from PySide6.QtWidgets import QAccessibleWidget, QWidget

Role = Literal["Chart", "Dialog", "Graphic", "LayeredPane"]
_ROLE: Final = "accessibleRole"


def present(widget: QWidget, role: Role, name: str = "") -> None:
    """Set a widget's accessible role, and its name unless it is set elsewhere."""
    _install()
    widget.setProperty(_ROLE, role)
    if name:
        widget.setAccessibleName(name)


def announce(widget: QWidget, text: str) -> None:
    """Announce these words to a screen reader, if one is active."""
    if text and QAccessible.isActive():
        QAccessible.updateAccessibility(QAccessibleAnnouncementEvent(widget, text))


_installed = False


def _install() -> None:
    global _installed
    if not _installed:
        _installed = True
        QAccessible.installFactory(_interface_of)


def _interface_of(_kind: str, target: QObject) -> QAccessibleInterface | None:
    role = target.property(_ROLE) if isinstance(target, QWidget) else None
    return QAccessibleWidget(target, QAccessible.Role[role]) if role else None
