"""The right panel: what the open view puts there, and under it the inspector of the selected pair."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QEvent, QObject, Qt
from PySide6.QtGui import QPainter, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QSizePolicy, QStackedWidget, QWidget

from explorer import theme
from explorer.widgets import layouts
from explorer.widgets.drop_overlay import refuse_drops
from explorer.widgets.hairline_splitter import HairlineSplitter
from explorer.widgets.min_size_scroll import MinSizeScroll

OWN_SHARE: Final = 0.58
"""Of the height, at most for the view's own part above the inspector, until a person moves the line between them."""

MOST_PX: Final = 2**24 - 1
"""Qt's own limit of a height, QWIDGETSIZE_MAX."""


class GroundStack(QStackedWidget):
    """A stack that paints its own background, because it has no stylesheet and a stale palette."""

    def paintEvent(self, event: QPaintEvent) -> None:
        QPainter(self).fillRect(event.rect(), theme.color("surface"))


class SidePanel(QWidget):
    """Holds up to two parts, one above the other: neither hides the other.

    Attributes:
        own: Stack of what the views put into the panel.
    """

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent, objectName="details")
        self.own = GroundStack()
        self.host = GroundStack()
        self._rooms: dict[QWidget, MinSizeScroll] = {}
        self._was_moved = False
        self.parts = HairlineSplitter(Qt.Orientation.Vertical)
        self.parts.addWidget(self.own)
        self.parts.addWidget(self.host)
        for part in (self.own, self.host):
            part.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Ignored)
        self.parts.splitterMoved.connect(lambda *_: setattr(self, "_was_moved", True))
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
                details.installEventFilter(self)
            self.own.setCurrentWidget(self._rooms[details])
        has_own, has_pair = details is not None, pair and self.host.count() > 0
        self.own.setVisible(has_own)
        self.host.setVisible(has_pair)
        self._share(details)
        return has_own or has_pair

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.LayoutRequest and isinstance(watched, QWidget):
            self._share(watched)
        return super().eventFilter(watched, event)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._share(next((part for part, room in self._rooms.items() if room is self.own.currentWidget()), None))

    def _share(self, details: QWidget | None) -> None:
        """Give the view's part what it fills: the inspector needs the rest."""
        both = details is not None and not self.own.isHidden() and not self.host.isHidden()
        high = details.sizeHint().height() if details is not None and both else MOST_PX
        self.own.setMaximumHeight(high)
        if both and not self._was_moved:
            upper = min(high, round(OWN_SHARE * self.height()))
            self.parts.setSizes([upper, self.height() - self.parts.handle(1).height() - upper])

    def paintEvent(self, event: QPaintEvent) -> None:
        QPainter(self).fillRect(event.rect(), theme.color("surface"))
