"""One of the two maps: a title in the run's color, and the points or a message."""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Int
from PySide6.QtGui import QColor, QPixmap
from PySide6.QtWidgets import QWidget

from explorer import theme
from explorer.models.thumbnails import Thumbnails
from explorer.views.map.coloring import Coloring, classes_of
from explorer.views.map.depth_shading import DepthProjection, shaded
from explorer.views.map.load import MapSide, Sketch
from explorer.widgets.map_card import MapCard
from explorer.widgets.point_map import PointMap
from explorer.widgets.point_map.class_glyphs import ClassGlyphs
from explorer.widgets.point_map.contours import Contours
from explorer.widgets.point_map.labels import Labels
from explorer.widgets.point_map.pins import Pins
from explorer.widgets.point_map.sprites import Sprites
from trainer.analysis.map_quality import quality_in_short
from trainer.charts.pair_colors import PairNumbers
from trainer.metrics import data_label


class MapPanel(MapCard):
    """The map of run A or B.

    Attributes:
        side: What is shown; None while there is nothing.
        numbers: How the run sees each pair; None until they are computed.
        one: A pair and how the run sees it, where only this one was asked for.
        contours, labels, sprites, pins: What is drawn over the points.
    """

    def __init__(self, index: int, pictures: Thumbnails, parent: QWidget | None = None) -> None:
        points = PointMap()
        super().__init__(index, points, parent)
        self.side: MapSide | None = None
        self.numbers: PairNumbers | None = None
        self.one: tuple[int, PairNumbers] | None = None
        self._pictures = pictures
        self.coloring: Coloring | None = None
        self._level: Int[np.ndarray, " m"] | None = None
        self._sketched = False
        self.setObjectName(f"map-panel-{'ab'[index]}")
        self._projection = self._progress = ""
        self.map = points
        self.map.setObjectName(f"map-{'ab'[index]}")
        self.map.setAccessibleName(f"Map of run {'AB'[index]}")
        self.glyphs = ClassGlyphs(self.map.layer, self)
        self.contours = Contours(self.map.layer, self)
        self.sprites = Sprites(self.map.layer, self._picture, self._ink, self)
        self.labels = Labels(self.map.layer, self, taken=self.sprites.rects)
        self.pins = Pins(self.map.layer, pictures.get, lambda: theme.color(theme.run_color(index, self)), self)

    def show_side(self, side: MapSide, colors: Coloring, projection: str) -> None:
        """Show a snapshot; the same items at another step move to their new positions, others replace the points."""
        before, self.side, self.numbers, self.one = self.side, side, None, None
        self.coloring, self._level = colors, None
        self.labels.show(())
        self.show_projection(projection)
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
        self.glyphs.show_classes(classes_of(colors))
        self._sketched = False
        self.area.ready()

    def show_sketch(self, sketch: Sketch, colors: Coloring) -> None:
        """Show a preview until all points are placed; meanwhile none can be hovered or selected."""
        some = sketch.side
        self._sketched = True
        diamond = np.arange(some.images + some.texts) >= some.images
        self.map.set_points(some.xy, diamond=diamond, color=colors.index, palette=colors.palette)
        self.sprites.set_points(np.zeros(len(diamond), bool))
        self.title.setText(f"{some.name} · step {some.row.step:,}")
        self.note.set_details("")
        self.note.setText(f"{len(diamond):,} of {sketch.points:,} points, the others are being placed")
        self.area.ready()

    def color(self, colors: Coloring) -> None:
        """Color the points, fading with distance in 3-D."""
        self.coloring = colors
        self.glyphs.show_classes(classes_of(colors))
        index, palette = colors.index, colors.palette
        if self._level is not None and len(self._level) == len(index):
            index, palette = shaded(index, palette, self._level)
        self.map.set_colors(index, palette)

    def shade(self, level: Int[np.ndarray, " m"] | None) -> None:
        """Set each point's depth level in 3-D; None means 2-D."""
        if self._level is not level:
            self._level = level
            if self.coloring is not None and self.side is not None:
                self.color(self.coloring)

    def preview(self, seen: DepthProjection, of: Int[np.ndarray, " k"]) -> None:
        """Draw a sample of points from a direction until all are drawn again."""
        if self.coloring is not None:
            palette, index = self.coloring.palette, self.coloring.index[of]
            self.map.layer.preview(seen.xy, of, *shaded(index, palette, seen.level))

    def select(self, mask: Bool[np.ndarray, " m"] | None) -> None:
        """Raise these points above the others; None means no selection."""
        self.map.set_selected(mask)
        self.sprites.set_first(mask)
        self.labels.dim(mask is not None)

    def show_projection(self, text: str) -> None:
        """Show above the points what they are and how they were placed."""
        self._projection = text
        if self.side is None:
            return
        row = self.side.row
        self.title.setText(f"{self.side.name} · step {row.step:,}")
        count = f"{self.side.n:,} pairs" if self.side.images and self.side.texts else f"{self.side.n:,} items"
        sampled = ", a sample of the split" if self.side.sampled else ""
        # Beside a second map and the inspector two short parts fit, or the angles of a turned cloud.
        method = self._projection.split(", ")[0]
        short = self._progress or (count.replace(" ", " sampled ") if self.side.sampled else count)
        quality = "" if self._progress else quality_in_short(self._projection)
        self.note.setText(method if "°" in method else " · ".join(filter(None, (method, short, quality))))
        parts = (count + sampled, self._projection, self._progress, data_label(row))
        self.note.set_details(" · ".join(part for part in parts if part))

    def show_progress(self, text: str) -> None:
        """Show the progress of another projection; nothing if empty."""
        self._progress = text
        self.show_projection(self._projection)

    def clear(self, name: str = "") -> None:
        """Remove the points; `area` then shows the reason."""
        self.side = self.numbers = self.one = None
        self._sketched = False
        self.labels.show(())
        self.sprites.set_points(np.zeros(0, bool))
        self.pins.show(())
        self.title.setText(name)
        self.note.setText("")
        self.note.set_details("")

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
