"""Apply a style sheet lazily: to what is visible at once, to what is hidden when it is shown or the window is idle.

Qt applies a style sheet to every widget under the one that it is set on, at a tenth of a millisecond each. A window of
all views has thousands of widgets, of which a person sees two hundred. So a window names its *containers*. These get no
style sheet (they paint their ground themselves); each child of a container is a *section* with a style sheet of its
own. A window without containers is one section.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from functools import partial
from typing import Any, Final

import shiboken6
from PySide6.QtCore import QChildEvent, QEvent, QObject
from PySide6.QtWidgets import QApplication, QWidget

from explorer.event_loop.idle_scheduler import idle_scheduler

_IS_CONTAINER: Final = "_styledBySections"
_THEME_NAME: Final = "_themeName"
"""Property of a section: the theme of its own style sheet; empty: it has that of the application."""


class LazyStyleSheet(QObject):
    """The style sheet of every section, and the methods that are called when the theme changes.

    A section is *outdated* from a change of the theme until it has the new style sheet and the methods of the widgets
    in it have been called.
    """

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._theme_name, self._style_sheet = "", ""
        self._listeners: list[weakref.WeakMethod[Callable[[], object]]] = []
        self._outdated: dict[QWidget, list[Callable[[], object]]] = {}
        self._frozen_windows: set[QWidget] = set()
        self._styled_sections: weakref.WeakSet[QWidget] = weakref.WeakSet()

    def add_container(self, widget: QWidget) -> None:
        """Make every child of the widget a section of its own."""
        widget.setProperty(_IS_CONTAINER, True)

    def add_listener(self, method: Callable[[], object]) -> None:
        """Call a method of a widget (or of its child) on every change of the theme while both exist.

        At once if the widget is visible, else in an idle turn, at the latest when it is shown.
        """
        if len(self._listeners) % 256 == 255:
            self._listeners = [listener for listener in self._listeners if _live_method(listener) is not None]
        self._listeners.append(weakref.WeakMethod(method))

    def freeze_windows(self, application: QApplication) -> None:
        """Stop painting windows with containers until `unfreeze_windows_later`, so that none is seen half restyled."""
        for window in _windows(application):
            if window.property(_IS_CONTAINER) and window.isVisible():
                self._frozen_windows.add(window)
                window.setUpdatesEnabled(False)

    def unfreeze_windows_later(self) -> None:
        """Let frozen windows paint once everything that has been put off so far is done."""
        idle_scheduler().later(self, self._unfreeze_windows)

    def _unfreeze_windows(self) -> None:
        for window in self._frozen_windows:
            if shiboken6.isValid(window):
                window.setUpdatesEnabled(True)
                # Qt asks for no painting of what was to be painted before already, as when the palette closed.
                QApplication.postEvent(window, QEvent(QEvent.Type.UpdateRequest))
        self._frozen_windows.clear()

    def apply(self, application: QApplication, theme_name: str, style_sheet: str) -> None:
        """Give a style sheet to every section and tell the listeners; two empty texts: the application's own."""
        self._theme_name, self._style_sheet = theme_name, style_sheet
        self.recolor(application)

    def recolor(self, application: QApplication) -> None:
        """Call the listeners for colors that are others now; a section without the current style sheet gets it."""
        for section in self._outdated:
            if shiboken6.isValid(section):
                section.removeEventFilter(self)
        self._outdated = {}
        for window in _windows(application):
            self._restyle_sections(window, in_container=False)
        self._call_listeners()
        for section in self._outdated:
            section.installEventFilter(self)
            # In the name of this object: a section that Qt has deleted meanwhile must be dropped, it holds its window.
            idle_scheduler().later(self, partial(self._update_step, section), unseen=True)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        child = event.child() if isinstance(event, QChildEvent) and event.polished() else None
        is_window = isinstance(child, QWidget) and child.isWindow()
        if watched in self._outdated and (event.type() == QEvent.Type.Show or is_window):
            self._update(watched)  # a dialog of a hidden section has its style sheet
        elif isinstance(child, QWidget) and watched.property(_IS_CONTAINER) and not child.property(_IS_CONTAINER):
            # A section made after the change has the application's style sheet only.
            self._restyle(child)
        return False

    def _restyle_sections(self, widget: QWidget, *, in_container: bool) -> None:
        """Restyle the visible sections at and below a widget, and note the hidden ones as outdated."""
        if widget.property(_IS_CONTAINER):
            widget.installEventFilter(self)
            for child in widget.children():
                if isinstance(child, QWidget):
                    self._restyle_sections(child, in_container=True)
        elif not widget.isVisible():
            self._outdated[widget] = []
        elif in_container:
            idle_scheduler().later(widget, partial(self._restyle, widget))
        else:
            self._restyle(widget)

    def _restyle(self, section: QWidget) -> bool:
        """Set the current style sheet; return whether the section had another one."""
        if (section.property(_THEME_NAME) or "") == self._theme_name:
            return False
        self._clear_inner_style_sheets(section)
        self._styled_sections.add(section)
        section.setProperty(_THEME_NAME, self._theme_name)
        section.setStyleSheet(self._style_sheet)
        return True

    def _clear_inner_style_sheets(self, section: QWidget) -> None:
        """Clear the style sheets of widgets that were sections (windows, say) before they were put into this one."""
        for inner in [w for w in self._styled_sections if shiboken6.isValid(w) and section.isAncestorOf(w)]:
            self._styled_sections.discard(inner)
            inner.setProperty(_THEME_NAME, "")
            inner.setStyleSheet("")

    def _call_listeners(self) -> None:
        """Call every listener: that of a hidden section with its update, others now or before the window unfreezes."""
        for method in (method for method in map(_live_method, tuple(self._listeners)) if method is not None):
            widget = _widget_of(method)
            section = None if widget is None or widget.isVisible() else self._outdated_section_of(widget)
            if section is not None and not section.isWindow():
                self._outdated[section].append(method)
            elif widget is not None and widget.window() in self._frozen_windows:
                idle_scheduler().later(widget, partial(_call, method))
            else:
                method()

    def _outdated_section_of(self, widget: QWidget | None) -> QWidget | None:
        while widget is not None and widget not in self._outdated:
            widget = widget.parentWidget()
        return widget

    def _update_step(self, section: QWidget) -> None:
        """Do one part of `_update`: the style sheet or one method a turn, and come back for the next."""
        methods = self._outdated.get(section)
        if methods is None:
            return
        if not shiboken6.isValid(section):
            del self._outdated[section]
            return
        if not self._restyle(section) and methods:
            _call(methods.pop())
        if methods:
            idle_scheduler().later(self, partial(self._update_step, section), unseen=True)
        else:
            self._update(section)

    def _update(self, section: QWidget) -> None:
        """Restyle an outdated section and call the methods in it that have not been called yet."""
        methods = self._outdated.pop(section, None)
        if methods is None:
            return
        section.removeEventFilter(self)
        self._restyle(section)
        for method in methods:
            _call(method)


def _windows(application: QApplication) -> list[QWidget]:
    return [widget for widget in application.topLevelWidgets() if widget.parent() is None]


def _call(method: Any) -> None:
    if shiboken6.isValid(method.__self__):
        method()


def _live_method(reference: weakref.WeakMethod[Callable[[], object]]) -> Any:
    method: Any = reference()
    return method if method is not None and shiboken6.isValid(method.__self__) else None


def _widget_of(method: Any) -> QWidget | None:
    """Return the widget that the method belongs to, perhaps by an object below it."""
    owner = method.__self__
    while owner is not None and not isinstance(owner, QWidget):
        owner = owner.parent()
    return owner
