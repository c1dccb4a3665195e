"""The right panel: what the open view puts there, and the inspector of the selected pair."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import Qt
from PySide6.QtGui import QPainter, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QSizePolicy, QStackedWidget, QTabBar, QVBoxLayout, QWidget

from explorer import theme
from explorer.widgets.drop_overlay import refuse_drops
from explorer.widgets.hairline_splitter import HairlineSplitter
from explorer.widgets.min_size_scroll import MinSizeScroll

STACKED_PX: Final = 940
"""From this height on the view's own panel and the inspector stand one above the other; else they are tabs."""
OWN, PAIR = 0, 1
"""Places of the tabs."""


class _Stack(QStackedWidget):
    """A stack that paints its own background, because it has no stylesheet and a stale palette."""

    def paintEvent(self, event: QPaintEvent) -> None:
        QPainter(self).fillRect(event.rect(), theme.color("surface"))


class SidePanel(QWidget):
    """Holds up to two parts; which is shown where there is room for one is chosen by tabs.

    Attributes:
        own: Stack of what the views put into the panel.
        tabs: Shown where both parts are there and the panel is low.
    """

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("details")
        self.own = _Stack()
        self.host = _Stack()
        self._rooms: dict[QWidget, MinSizeScroll] = {}
        self._has_own = self._has_pair = False
        self.tabs = QTabBar(objectName="detailsTabs", accessibleName="Parts of the right panel")
        self.tabs.setDrawBase(False)
        self.tabs.setExpanding(False)
        self.tabs.setUsesScrollButtons(False)
        self.tabs.addTab("Options")
        self.tabs.addTab("Pair")
        self.parts = HairlineSplitter(Qt.Orientation.Vertical)
        self.parts.addWidget(self.own)
        self.parts.addWidget(self.host)
        for part in (self.own, self.host):
            part.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Ignored)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(self.tabs)
        column.addWidget(self.parts, 1)
        self.tabs.currentChanged.connect(lambda _place: self._arrange())
        self._arrange()

    def set_inspector(self, inspector: QWidget) -> None:
        """Put the inspector into its place."""
        self.host.addWidget(inspector)
        refuse_drops(inspector)
        self._arrange()

    def show_parts(self, details: QWidget | None, title: str, *, pair: bool) -> bool:
        """Show these parts; return whether there is one.

        Args:
            details: What the view puts into the panel; None: nothing.
            title: Name of its tab.
            pair: Whether the inspector is wanted.
        """
        if details is not None:
            if details not in self._rooms:
                self._rooms[details] = MinSizeScroll(details)
                self.own.addWidget(self._rooms[details])
                refuse_drops(details)
            self.own.setCurrentWidget(self._rooms[details])
        self._has_own, self._has_pair = details is not None, pair and self.host.count() > 0
        self.tabs.setTabText(OWN, title)
        self._arrange()
        return self._has_own or self._has_pair

    def raise_pair(self) -> None:
        """Bring the inspector to the front where it is behind a tab."""
        if self._has_pair:
            self.tabs.setCurrentIndex(PAIR)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._arrange()

    def paintEvent(self, event: QPaintEvent) -> None:
        QPainter(self).fillRect(event.rect(), theme.color("surface"))

    def _arrange(self) -> None:
        both = self._has_own and self._has_pair
        stacked = both and self.height() >= STACKED_PX
        tabbed = both and not stacked
        self.tabs.setVisible(tabbed)
        shows_pair = self.tabs.currentIndex() == PAIR
        was_stacked = not self.own.isHidden() and not self.host.isHidden()
        self.own.setVisible(self._has_own and not (tabbed and shows_pair))
        self.host.setVisible(self._has_pair and not (tabbed and not shows_pair))
        if stacked and not was_stacked:
            half = self.height() // 2
            self.parts.setSizes([half, self.height() - half])
