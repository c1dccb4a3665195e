"""The tabs of the open place, and which of them was open last in each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QHBoxLayout, QTabBar, QWidget

from explorer import theme
from explorer.state.settings import Settings
from explorer.views import Place, ViewEntry

LAST_KEY: Final = "window/last_tabs"


class PlaceTabs(QWidget):
    """A quiet row of the open place's views, hidden where there is only one.

    Signals:
        opened: Name of the view whose tab was chosen.
    """

    opened = Signal(str)

    def __init__(self, rail_places: Sequence[Place], settings: Settings, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("placeTabs")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self._places, self._settings = tuple(rail_places), settings
        self._open: Place | None = None
        self.bar = QTabBar(objectName="place-tabs", accessibleName="Views of this place")
        self.bar.setDrawBase(False)
        self.bar.setExpanding(False)
        self.bar.setUsesScrollButtons(False)
        row = QHBoxLayout(self)
        row.setContentsMargins(theme.AROUND - theme.SPACE, theme.SPACE, theme.AROUND, 0)
        row.addWidget(self.bar)
        row.addStretch()
        self.bar.currentChanged.connect(self._on_tab)
        self.hide()

    @property
    def place(self) -> Place | None:
        """The open place."""
        return self._open

    def place_of(self, view: str) -> Place:
        """Return the place that holds this view, the first one if none does."""
        return next((p for p in self._places if view in _names(p)), self._places[0])

    def last_view(self, name: str) -> str:
        """Return the view that was open last in this place, at first its first one."""
        names = _names(next(p for p in self._places if p.name == name))
        last = self._settings.value(LAST_KEY, {}).get(name)
        return last if last in names else names[0]

    def show_view(self, view: str) -> None:
        """Show the tabs of this view's place with this view marked, and remember it."""
        rail_place = self.place_of(view)
        self.bar.blockSignals(True)
        if rail_place is not self._open:
            self._open = rail_place
            self._fill(rail_place.views)
        self.bar.setCurrentIndex(_names(rail_place).index(view))
        self.bar.updateGeometry()  # the marked tab is bold, so the row is as wide as another one
        self.bar.blockSignals(False)
        self.setVisible(len(rail_place.views) > 1)
        last = self._settings.value(LAST_KEY, {})
        if last.get(rail_place.name) != view:
            self._settings.set(LAST_KEY, {**last, rail_place.name: view})

    def walk(self, by: int) -> None:
        """Open the tab `by` places further, round the end."""
        if self.bar.count():
            self.bar.setCurrentIndex((self.bar.currentIndex() + by) % self.bar.count())

    def _fill(self, views: Sequence[ViewEntry]) -> None:
        while self.bar.count():
            self.bar.removeTab(0)
        for entry in views:
            self.bar.addTab(entry.label)

    def _on_tab(self, index: int) -> None:
        if self._open is not None and index >= 0:
            self.opened.emit(self._open.views[index].name)


def _names(rail_place: Place) -> list[str]:
    return [entry.name for entry in rail_place.views]
