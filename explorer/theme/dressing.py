"""Restyle windows in parts: visible ones at once, hidden ones in later event-loop iterations.

A stylesheet reaches every widget under the one that it is given to, at a tenth of a millisecond each. A window of
all views has thousands, of which a person sees two hundred. So a window names what is `divided`: the widgets above
its parts. These get no sheet (they paint their ground themselves); each of their children gets one of its own.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from typing import Any, Final

import shiboken6
from PySide6.QtCore import QEvent, QObject
from PySide6.QtWidgets import QApplication, QWidget

from explorer.event_loop.idle_scheduler import turns

_DIVIDED: Final = "_divided"
_SHEET: Final = "_sheet"
"""Name of the theme that a part was dressed in; empty: in that of the application."""


class Dressing(QObject):
    """Tracks which widgets have which stylesheet, and which slots follow the theme."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._name, self._sheet = "", ""
        self._followers: list[weakref.WeakMethod[Callable[[], object]]] = []
        self._waiting: dict[QWidget, list[Callable[[], object]]] = {}
        self._frozen: set[QWidget] = set()
        self._worn: set[QWidget] = set()

    def divide(self, whole: QWidget) -> None:
        """Restyle the children of `whole` one by one from now on, hidden ones later."""
        whole.setProperty(_DIVIDED, True)

    def follow(self, slot: Callable[[], object]) -> None:
        """Call a method of a widget (or of its child) on every theme change while both exist.

        At once if the widget is seen, else in a later turn, at the latest when it is shown.
        """
        if len(self._followers) % 256 == 255:
            self._followers = [one for one in self._followers if _alive(one) is not None]
        self._followers.append(weakref.WeakMethod(slot))

    def freeze(self, application: QApplication) -> None:
        """Freeze the display of divided windows until `thaw`, so that none appears half restyled."""
        for window in _windows(application):
            if window.property(_DIVIDED) and window.isVisible():
                self._frozen.add(window)
                window.setUpdatesEnabled(False)

    def change(self, application: QApplication, name: str, sheet: str) -> None:
        """Apply a stylesheet to every window; an empty one is the application's own."""
        self._name, self._sheet = name, sheet
        for part in self._waiting:
            if shiboken6.isValid(part):
                part.removeEventFilter(self)
        self._waiting = {}
        for window in _windows(application):
            self._dress_tree(window, divided=False)
        self._notify()
        for part in self._waiting:
            part.installEventFilter(self)
            turns().later(part, lambda part=part: self._go_on(part), unseen=True)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        kind = event.type()
        if kind == QEvent.Type.Show and watched in self._waiting:
            self._catch_up(watched)
        elif kind == QEvent.Type.ChildPolished and watched.property(_DIVIDED):
            # What is born later knows only the application's sheet.
            child = event.child()
            if isinstance(child, QWidget) and not child.property(_DIVIDED):
                self._dress(child)
        return False

    def _dress_tree(self, widget: QWidget, *, divided: bool) -> None:
        if widget.property(_DIVIDED):
            widget.installEventFilter(self)
            for child in widget.children():
                if isinstance(child, QWidget):
                    self._dress_tree(child, divided=True)
        elif not widget.isVisible():
            self._waiting[widget] = []
        elif divided:
            turns().later(widget, lambda: self._dress(widget))
        else:
            self._dress(widget)

    def _dress(self, part: QWidget) -> bool:
        """Restyle a part; return whether it needed restyling."""
        if (part.property(_SHEET) or "") == self._name:
            return False
        self._undress_inner(part)
        self._worn.add(part)
        part.setProperty(_SHEET, self._name)
        part.setStyleSheet(self._sheet)
        return True

    def _undress_inner(self, part: QWidget) -> None:
        """Remove the stylesheets of widgets inside `part` that were windows when they were styled."""
        self._worn = {one for one in self._worn if shiboken6.isValid(one)}
        for inner in [one for one in self._worn if part.isAncestorOf(one)]:
            self._worn.discard(inner)
            inner.setProperty(_SHEET, "")
            inner.setStyleSheet("")

    def _notify(self) -> None:
        for slot in self._living():
            widget = _widget(slot)
            part = None if widget is None or widget.isVisible() else self._part(widget)
            if part is not None and not part.isWindow():
                self._waiting[part].append(slot)
            elif widget is not None and widget.window() in self._frozen:
                turns().later(widget, lambda slot=slot: _call(slot))
            else:
                slot()

    def thaw(self) -> None:
        """Let frozen windows repaint once all deferred work so far is done."""
        turns().later(self, self._melt)

    def _melt(self) -> None:
        for window in self._frozen:
            if shiboken6.isValid(window):
                window.setUpdatesEnabled(True)
        self._frozen.clear()

    def _part(self, widget: QWidget | None) -> QWidget | None:
        """Return the waiting part that contains `widget`."""
        while widget is not None and widget not in self._waiting:
            widget = widget.parentWidget()
        return widget

    def _go_on(self, part: QWidget) -> None:
        """Perform one step of `_catch_up`."""
        slots = self._waiting.get(part)
        if slots is None:
            return
        if not self._dress(part) and slots:
            _call(slots.pop())
        if slots:
            turns().later(part, lambda: self._go_on(part), unseen=True)
        else:
            self._catch_up(part)

    def _catch_up(self, part: QWidget) -> None:
        """Restyle a deferred part and notify the followers in it."""
        slots = self._waiting.pop(part, None)
        if slots is None:
            return
        part.removeEventFilter(self)
        self._dress(part)
        for slot in slots:
            _call(slot)

    def _living(self) -> Iterator[Any]:
        return (slot for slot in map(_alive, tuple(self._followers)) if slot is not None)


def _windows(application: QApplication) -> list[QWidget]:
    return [widget for widget in application.topLevelWidgets() if widget.parent() is None]


def _call(slot: Any) -> None:
    if shiboken6.isValid(slot.__self__):
        slot()


def _alive(reference: weakref.WeakMethod[Callable[[], object]]) -> Any:
    slot = reference()
    return slot if slot is not None and shiboken6.isValid(slot.__self__) else None


def _widget(slot: Any) -> QWidget | None:
    """Return the widget that shows what the follower changes."""
    owner = slot.__self__
    while owner is not None and not isinstance(owner, QWidget):
        owner = owner.parent()
    return owner
