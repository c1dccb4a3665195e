"""Accessibility: roles of custom widgets, and announcements for screen readers."""

from __future__ import annotations

from typing import Final, Literal

from PySide6.QtCore import QObject
from PySide6.QtGui import QAccessible, QAccessibleAnnouncementEvent, QAccessibleInterface
from PySide6.QtWidgets import QAbstractButton, QAccessibleWidget, QComboBox, QWidget

Role = Literal["Chart", "ComboBox", "Dialog", "Graphic", "Grouping", "LayeredPane", "RadioButton"]
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
    if not isinstance(target, QWidget) or not (role := target.property(_ROLE)):
        return None
    return _INTERFACES.get(role, QAccessibleWidget)(target, QAccessible.Role[role])


class _Radio(QAccessibleWidget):
    """A tool button of a choice: Qt tells a checkable one as a check box, which could be switched off."""

    def state(self) -> QAccessible.State:
        button, state = self.widget(), super().state()
        state.checkable, state.checked = True, isinstance(button, QAbstractButton) and button.isChecked()
        return state

    def actionNames(self) -> list[str]:
        return ["Press", "SetFocus"]

    def doAction(self, name: str) -> None:
        button = self.widget()
        if name == "Press" and isinstance(button, QAbstractButton):
            button.click()
        else:
            super().doAction(name)


class _Picker(QAccessibleWidget):
    """A combo box that says what is chosen and for what: Qt names one on Linux by its value alone."""

    def text(self, kind: QAccessible.Text) -> str:
        box = self.widget()
        if not isinstance(box, QComboBox) or kind not in (QAccessible.Text.Name, QAccessible.Text.Value):
            return super().text(kind)
        value = box.currentText()
        return f"{box.accessibleName()}: {value}" if kind == QAccessible.Text.Name else value

    def actionNames(self) -> list[str]:
        return ["ShowMenu", "Press", "SetFocus"]

    def doAction(self, name: str) -> None:
        box = self.widget()
        if name in ("ShowMenu", "Press") and isinstance(box, QComboBox):
            box.showPopup()
        else:
            super().doAction(name)


_INTERFACES: Final[dict[str, type[QAccessibleWidget]]] = {"RadioButton": _Radio, "ComboBox": _Picker}
