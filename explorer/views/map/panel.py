"""One of the two maps: a title in the run's colour, the points, or what to do while there are none."""

from __future__ import annotations

import numpy as np
from PySide6.QtCore import Qt
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QStackedLayout, QVBoxLayout, QWidget

from explorer import theme
from explorer.views.map.colouring import Colouring
from explorer.views.map.reading import PairNumbers, Side
from explorer.widgets.elided_label import ElidedLabel
from explorer.widgets.empty_state import EmptyState
from explorer.widgets.pickers import Badge
from explorer.widgets.point_map import PointMap

EMPTY_PX = 280
STRIPE_PX = 3


class MapPanel(QFrame):
    """The map of run A or B.

    Attributes:
        map: The points.
        side: What is shown; None while there is nothing.
        numbers: How the run sees each pair; None until they are computed.
    """

    def __init__(self, index: int, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.index = index
        self.side: Side | None = None
        self.numbers: PairNumbers | None = None
        self.setObjectName(f"map-panel-{'ab'[index]}")
        theme.set_role(self, "card")
        self._projection = self._progress = ""
        self.title, self.note = ElidedLabel(), ElidedLabel()
        for label, role in ((self.title, "strong"), (self.note, "small")):
            theme.set_role(label, role)
        self.map = PointMap()
        self.map.setObjectName(f"map-{'ab'[index]}")
        self.map.setAccessibleName(f"Map of run {'AB'[index]}")
        self.empty = EmptyState(width=EMPTY_PX)
        self._lay_out()
        theme.theme().changed.connect(self.update)

    def show_side(self, side: Side, colours: Colouring, projection: str) -> None:
        """Shows a snapshot. The same items at another step move to their new places; others are set afresh."""
        before, self.side, self.numbers = self.side, side, None
        self.tell_projection(projection)
        if before is not None and (before.images, before.texts) == (side.images, side.texts) and before.run == side.run:
            self.map.move_points(side.xy)
            self.map.set_colours(colours.index, colours.palette)
        else:
            diamond = np.arange(side.images + side.texts) >= side.images
            self.map.set_points(side.xy, diamond=diamond, colour=colours.index, palette=colours.palette)
        self._pages.setCurrentWidget(self.map)

    def tell_projection(self, words: str) -> None:
        """Says above the points what they are and how they were placed."""
        self._projection = words
        if self.side is None:
            return
        row = self.side.row
        self.title.setText(f"{self.side.name} · step {row.step:,}")
        count = f"{self.side.n:,} pairs" if self.side.images and self.side.texts else f"{self.side.n:,} items"
        sampled = ", a sample of the split" if self.side.sampled else ""
        parts = (count + sampled, self._projection, self._progress, f"{row.dataset}, {row.split}")
        self.note.setText(" · ".join(part for part in parts if part))

    def tell_progress(self, words: str) -> None:
        """Says how far another projection of these points is; empty when none is under way."""
        self._progress = words
        self.tell_projection(self._projection)

    def show_nothing(self, icon: str, title: str, text: str, *, name: str = "") -> None:
        """Shows why there are no points, and what to do."""
        self.side = self.numbers = None
        self.title.setText(name)
        self.note.setText("")
        self.empty.tell(icon, title, text)
        self._pages.setCurrentWidget(self.empty)

    @property
    def pages(self) -> QStackedLayout:
        """The points, or what is shown in their place."""
        return self._pages

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(theme.colour(theme.run_colour(self.index)))
        painter.setClipRect(0, 0, self.width(), STRIPE_PX)
        painter.drawRoundedRect(self.rect(), theme.RADIUS, theme.RADIUS)

    def _lay_out(self) -> None:
        head = QHBoxLayout()
        head.setContentsMargins(theme.INSIDE + 2, STRIPE_PX + theme.INSIDE, theme.INSIDE, theme.SPACE)
        head.setSpacing(theme.INSIDE)
        words = QVBoxLayout()
        words.setSpacing(0)
        words.addWidget(self.title)
        words.addWidget(self.note)
        head.addWidget(Badge("AB"[self.index], self.index))
        head.addLayout(words, 1)
        self._pages = QStackedLayout()
        self._pages.addWidget(self.map)
        self._pages.addWidget(self.empty)
        self._pages.setCurrentWidget(self.empty)
        column = QVBoxLayout(self)
        column.setContentsMargins(1, 1, 1, theme.SPACE)
        column.setSpacing(0)
        column.addLayout(head)
        column.addLayout(self._pages, 1)
