"""One of the two maps: a title in the run's color, the points, or what to do while there are none."""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Int
from PySide6.QtCore import Qt
from PySide6.QtGui import QColor, QPainter, QPaintEvent, QPixmap
from PySide6.QtWidgets import QFrame, QHBoxLayout, QStackedLayout, QVBoxLayout, QWidget

from explorer import theme
from explorer.models.thumbnails import Pictures
from explorer.views.map.coloring import Coloring
from explorer.views.map.depth_shading import DepthView, shaded
from explorer.views.map.load import MapSide, Sketch
from explorer.widgets.combo_boxes import Badge
from explorer.widgets.elided_label import ElidedLabel
from explorer.widgets.empty_state import EmptyState
from explorer.widgets.point_map import PointMap
from explorer.widgets.point_map.contours import Contours
from explorer.widgets.point_map.labels import Labels
from explorer.widgets.point_map.pins import Pins
from explorer.widgets.point_map.sprites import Sprites
from trainer.charts.pair_colors import PairNumbers

EMPTY_PX = 280
STRIPE_PX = 3


class MapPanel(QFrame):
    """The map of run A or B.

    Attributes:
        map: The points.
        side: What is shown; None while there is nothing.
        numbers: How the run sees each pair; None until they are computed.
        one: A pair and how the run sees it, where only this one was asked for.
        contours, labels, sprites, pins: What is drawn over the points.
    """

    def __init__(self, index: int, pictures: Pictures, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.index = index
        self.side: MapSide | None = None
        self.numbers: PairNumbers | None = None
        self.one: tuple[int, PairNumbers] | None = None
        self._pictures = pictures
        self.coloring: Coloring | None = None
        self._level: Int[np.ndarray, " m"] | None = None
        self._sketched = False
        self.setObjectName(f"map-panel-{'ab'[index]}")
        theme.set_role(self, "card")
        self._projection = self._progress = ""
        self.title, self.note = ElidedLabel(), ElidedLabel()
        for label, role in ((self.title, "strong"), (self.note, "small")):
            theme.set_role(label, role)
        self.map = PointMap()
        self.map.setObjectName(f"map-{'ab'[index]}")
        self.map.setAccessibleName(f"Map of run {'AB'[index]}")
        self.contours = Contours(self.map.layer, self)
        self.sprites = Sprites(self.map.layer, self._picture, self._ink, self)
        self.labels = Labels(self.map.layer, self)
        self.pins = Pins(self.map.layer, pictures.get, lambda: theme.color(theme.run_color(index)), self)
        self.empty = EmptyState(width=EMPTY_PX)
        self._lay_out()
        theme.theme().changed.connect(self.update)

    def show_side(self, side: MapSide, colors: Coloring, projection: str) -> None:
        """Shows a snapshot. The same items at another step move to their new places; others are set afresh."""
        before, self.side, self.numbers, self.one = self.side, side, None, None
        self.coloring, self._level = colors, None
        self.labels.show(())
        self.tell_projection(projection)
        if before is not None and (before.images, before.texts) == (side.images, side.texts) and before.run == side.run:
            self.map.move_points(side.xy)
            self.map.set_colors(colors.index, colors.palette)
        else:
            diamond = np.arange(side.images + side.texts) >= side.images
            # What was sketched is seen until all points are sorted and drawn.
            self.map.set_points(
                side.xy, diamond=diamond, color=colors.index, palette=colors.palette, instead=self._sketched
            )
            self.sprites.set_points(~diamond)
        self._sketched = False
        self._pages.setCurrentWidget(self.map)

    def show_sketch(self, sketch: Sketch, colors: Coloring) -> None:
        """Shows some of the points until all are placed; as long, none can be pointed at or selected."""
        some = sketch.side
        self._sketched = True
        diamond = np.arange(some.images + some.texts) >= some.images
        self.map.set_points(some.xy, diamond=diamond, color=colors.index, palette=colors.palette)
        self.sprites.set_points(np.zeros(len(diamond), bool))
        self.title.setText(f"{some.name} · step {some.row.step:,}")
        self.note.setText(f"{len(diamond):,} of {sketch.points:,} points, the others are being placed")
        self._pages.setCurrentWidget(self.map)

    def color(self, colors: Coloring) -> None:
        """Colors the points, paler with their distance if they are in space."""
        self.coloring = colors
        index, palette = colors.index, colors.palette
        if self._level is not None and len(self._level) == len(index):
            index, palette = shaded(index, palette, self._level)
        self.map.set_colors(index, palette)

    def shade(self, level: Int[np.ndarray, " m"] | None) -> None:
        """Points are so many steps back in space; None: they are in the plane."""
        if self._level is not level:
            self._level = level
            if self.coloring is not None and self.side is not None:
                self.color(self.coloring)

    def preview(self, seen: DepthView, of: Int[np.ndarray, " k"]) -> None:
        """Draws some points as they are seen from a side, until they are all drawn again."""
        if self.coloring is not None:
            palette, index = self.coloring.palette, self.coloring.index[of]
            self.map.layer.preview(seen.xy, of, *shaded(index, palette, seen.level))

    def select(self, mask: Bool[np.ndarray, " m"] | None) -> None:
        """Lifts these points above the others; None: nothing is selected."""
        self.map.set_selected(mask)
        self.sprites.set_first(mask)

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
        self.side = self.numbers = self.one = None
        self._sketched = False
        self.labels.show(())
        self.pins.show(())
        self.title.setText(name)
        self.note.setText("")
        self.empty.tell(icon, title, text)
        self._pages.setCurrentWidget(self.empty)

    @property
    def pages(self) -> QStackedLayout:
        """The points, or what is shown in their place."""
        return self._pages

    def _picture(self, point: int) -> QPixmap | None:
        side = self.side
        if side is None or not 0 <= point < side.images or not (path := side.items.path[point]):
            return None
        return self._pictures.get(path)

    def _ink(self, point: int) -> QColor:
        colors = self.coloring
        if colors is None or point >= len(colors.index):
            return theme.color("unselected")
        return QColor(*map(int, colors.palette[colors.index[point]]))

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(theme.color(theme.run_color(self.index)))
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
