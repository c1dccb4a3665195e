"""A card with a map of run A or B, under its name and a note."""

from __future__ import annotations

from PySide6.QtGui import QPaintEvent
from PySide6.QtWidgets import QFrame, QSizePolicy, QWidget

from explorer import theme
from explorer.widgets import layouts
from explorer.widgets.run_badge import RunBadge
from explorer.widgets.state_area import StateArea

EMPTY_PX = 280
STRIPE_PX = 3


class MapCard(QFrame):
    """A map under a title and a note, with a stripe in the color of its run.

    Attributes:
        index: 0 for run A, 1 for run B.
        title, note: What the head says.
        area: Shows the map, or the reason why there is none.
    """

    def __init__(self, index: int, content: QWidget, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.index = index
        theme.set_role(self, "card")
        self.title, self.note = layouts.elided(role="strong"), layouts.elided(role="small")
        self.note.drops_parts = True
        self.area = StateArea(content, width=EMPTY_PX, inset=theme.INSIDE)
        self._lay_out()
        theme.theme().changed.connect(self.update)

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        painter = theme.smooth_painter(self)
        theme.fill_with(painter, theme.color(theme.run_color(self.index, self)))
        painter.setClipRect(0, 0, self.width(), STRIPE_PX)
        painter.drawRoundedRect(self.rect(), theme.RADIUS, theme.RADIUS)

    def _lay_out(self) -> None:
        self.title.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Preferred)
        margins = (theme.INSIDE + 2, STRIPE_PX + theme.SPACE, theme.INSIDE, 2)
        head = layouts.row(RunBadge("AB"[self.index], self.index), self.title, (self.note, 1), margins=margins)
        layouts.column(head, (self.area, 1), gap=0, margins=(1, 1, 1, theme.SPACE), of=self)
