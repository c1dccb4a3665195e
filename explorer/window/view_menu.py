"""The name of the open view: a menu of the views of its place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from PySide6.QtCore import QPoint, Qt, Signal
from PySide6.QtGui import QFont
from PySide6.QtWidgets import QMenu, QToolButton, QWidget

from explorer import theme
from explorer.views import Place
from explorer.widgets.window_menu import ChoiceMenu

FONT_PX: Final = 14


class ViewMenu(QToolButton):
    """The title of the window's bar, from which the other views of the open place are opened."""

    opened = Signal(str)  # Name of the view that was chosen.

    def __init__(self, rail_places: Sequence[Place], parent: QWidget | None = None) -> None:
        super().__init__(parent, objectName="viewMenu")
        self._places = tuple(rail_places)
        self._view = ""
        self._menu: QMenu = ChoiceMenu(self)
        self.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        # Set here and not by the sheet: the width that the button asks for before it is seen depends on it.
        self.setFont(theme.pixel_font(FONT_PX, weight=QFont.Weight.DemiBold))
        theme.set_role(self, "view")

    @property
    def place(self) -> Place:
        return self.place_of(self._view)

    def place_of(self, view: str) -> Place:
        """Return the place that holds this view, the first one if none does."""
        return next((each for each in self._places if view in _names(each)), self._places[0])

    def first_view(self, name: str = "") -> str:
        """Return the first view of this place, or of the first one."""
        return next(each for each in self._places if not name or each.name == name).views[0].name

    def show_view(self, view: str) -> None:
        """Show the name of this view."""
        if view != self._view:
            self._view = view
            self._fill(self.place_of(view))

    def walk(self, by: int) -> None:
        """Open the view `by` entries further, round the end."""
        names = _names(self.place)
        self.opened.emit(names[(names.index(self._view) + by) % len(names)])

    def show_choices(self) -> None:
        """Open the menu, so that arrows and Enter choose."""
        if self.place.views:
            self._menu.popup(self.mapToGlobal(QPoint(0, self.height())))

    def _fill(self, rail_place: Place) -> None:
        self._menu.clear()
        for entry in rail_place.views:
            action = self._menu.addAction(entry.label)
            action.setCheckable(True)
            action.setChecked(entry.name == self._view)
            action.triggered.connect(lambda _=False, name=entry.name: self.opened.emit(name))
            if entry.name == self._view:
                self.setText(entry.label)
                self.setAccessibleName(f"View: {entry.label}")
        several = len(rail_place.views) > 1
        self.setMenu(self._menu if several else None)
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus if several else Qt.FocusPolicy.NoFocus)
        theme.set_role(self, "view-menu" if several else "view")
        self.setToolTip("The views of this place (Ctrl+M)" if several else "")


def _names(rail_place: Place) -> list[str]:
    return [entry.name for entry in rail_place.views]
