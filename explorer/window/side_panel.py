"""The right panel: what the open view puts there, and under it the inspector of the selected pair."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import Qt
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QStackedWidget, QWidget

from explorer import theme
from explorer.widgets import layouts
from explorer.widgets.drop_overlay import refuse_drops
from explorer.widgets.hairline_splitter import HairlineSplitter
from explorer.widgets.min_size_scroll import MinSizeScroll

OWN_SHARE: Final = 0.58
"""Of the height, for the view's own part above the inspector, at first."""


class GroundStack(QStackedWidget):
    """A stack that paints its own background, because it has no stylesheet and a stale palette."""

    def paintEvent(self, event: QPaintEvent) -> None:
        QPainter(self).fillRect(event.rect(), theme.color("surface"))


class SidePanel(QWidget):
    """Holds up to two parts, one above the other: neither hides the other.

    Attributes:
        own: Stack of what the views put into the panel.
        host: Holds the inspector.
    """

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent, objectName="details")
        self.own = GroundStack()
        self.host = GroundStack()
        self._rooms: dict[QWidget, MinSizeScroll] = {}
        self.parts = HairlineSplitter(Qt.Orientation.Vertical)
        self.parts.addWidget(self.own)
        self.parts.addWidget(self.host)
        for part in (self.own, self.host):
            part.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Ignored)
        layouts.column(self.parts, of=self)

    def set_inspector(self, inspector: QWidget) -> None:
        """Put the inspector into its part."""
        self.host.addWidget(inspector)
        refuse_drops(inspector)

    def show_parts(self, details: QWidget | None, *, pair: bool) -> bool:
        """Show these parts; return whether there is one.

        Args:
            details: What the view puts into the panel; None: nothing.
            pair: Whether the inspector is to be seen.
        """
        if details is not None:
            if details not in self._rooms:
                self._rooms[details] = MinSizeScroll(details)
                self.own.addWidget(self._rooms[details])
                refuse_drops(details)
            self.own.setCurrentWidget(self._rooms[details])
        has_own, has_pair = details is not None, pair and self.host.count() > 0
        were_both = not self.own.isHidden() and not self.host.isHidden()
        self.own.setVisible(has_own)
        self.host.setVisible(has_pair)
        if has_own and has_pair and not were_both:
            upper = round(OWN_SHARE * self.height())
            self.parts.setSizes([upper, self.height() - upper])
        return has_own or has_pair

    def paintEvent(self, event: QPaintEvent) -> None:
        QPainter(self).fillRect(event.rect(), theme.color("surface"))
