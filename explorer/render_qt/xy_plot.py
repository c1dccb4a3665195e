"""A widget for a plot of `trainer.charts.marks`, updated in place as settings change."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyqtgraph as pg
from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QBrush, QColor, QKeyEvent, QMouseEvent, QPainter, QPen, QPixmap, QTransform
from PySide6.QtWidgets import QToolTip, QVBoxLayout, QWidget

from explorer import theme
from explorer.widgets import layouts
from explorer.widgets.elided_label import heading
from explorer.widgets.legend import Legend, LegendEntry, Mark
from explorer.widgets.plot import Plot
from explorer.widgets.run_badge import RunBadge
from trainer.analysis import palette
from trainer.analysis.label_places import places_beside
from trainer.charts import marks
from trainer.charts.color_words import own_colors

LEAST_HEIGHT = 118
LYING_PX, LYING_ROOM_PX = 16, 64
"""Height of a bar that lies, and of what stands over and under all of them."""
BARS_WIDE = 0.7
TICK_SHARE, MOST_TICKS = 0.07, 5_000
"""Height of the ticks of selected pairs as a share of the plot, and how many are drawn."""
NUMBER_ROOM, NUMBER_ROOM_LYING = 0.12, 0.2
"""Of the axis: what a number at the end of a bar needs."""
MOST_WRITTEN = 16
"""More bars than these have no number written over them."""
FILL_ALPHA, BAND_ALPHA, BRUSH_ALPHA = 0.55, 0.18, 0.16
_DASHES = Qt.PenStyle.DashLine
_SYMBOLS = {"square": "s", "triangle": "t1", "pentagon": "p", "hexagon": "h"}
_MARKS = {"diamond": "d", "up": "t1", "down": "t"}
MOST_AVOIDED = 50
"""Points that no label covers; among more there would be no room for any."""
LABEL_ALPHA = 0.8
"""Of the ground under a label over lines."""
NEAR_PX = 6
"""From the edge of a marker, where the pointer is on it."""
HATCH_PX = 9
"""Side of the tile of a hatch."""


def tone_color(tone: marks.Tone) -> QColor:
    """Return the color of a series in the current theme."""
    hue, lightness = marks.hue_of(tone)
    if lightness is not None:
        return QColor(theme.run_shade(marks.HUES.index(hue), lightness))
    if tone in marks.RUN_TONES:
        return QColor(theme.run_shade(marks.RUN_TONES.index(tone), 0))
    if tone in marks.HUES:
        return QColor(theme.class_colors(len(marks.HUES))[marks.HUES.index(tone)])
    return theme.color("bad" if tone == "bad" else "outline")


def show_badge(badge: RunBadge, tone: marks.Tone | None) -> None:
    """Show the letter of the run that a tone is about in the run's color; nothing for another tone."""
    badge.show_run(marks.letter_index(tone), lambda: tone_color(tone or "quiet").name())


def cloud_color(cloud: marks.Points) -> QColor:
    """Return the color of points in the current theme: of their class if they have one, else of their tone."""
    if not cloud.classes:
        return tone_color(cloud.tone)
    named_colors = own_colors(cloud.classes, dark=theme.theme().dark)
    return QColor((named_colors or theme.class_colors(len(cloud.classes)))[cloud.at])


def line_pen(tone: marks.Tone, *, width: float = 2.0, dashed: bool = False, faint: bool = False) -> QPen:
    """Return the pen of a line: color and dashes tell one tone from another."""
    color = tone_color(tone)
    if faint:
        # Solid, not translucent: over light ground a pale line could not be seen.
        return pg.mkPen(theme.faint(color), width=theme.stroke(1))
    if marks.is_thin(tone, width):
        color = QColor(palette.thin(color.name(), theme.theme().dark))
    pen: QPen = pg.mkPen(color, width=theme.stroke(width))
    if pattern := marks.dash_of(tone, dashed=dashed):
        pen.setCapStyle(Qt.PenCapStyle.FlatCap)
        pen.setDashPattern(pattern)
    return pen


def bar_brush(tone: marks.Tone) -> QBrush:
    """Return the brush of bars: the color, hatched in that of the ground where the tone has a pattern."""
    color, hatch = tone_color(tone), marks.HATCHES.get(marks.pattern_of(tone), "")
    if not hatch:
        return QBrush(color)
    tile = QPixmap(HATCH_PX, HATCH_PX)
    tile.fill(color)
    painter = QPainter(tile)
    painter.setPen(QPen(theme.color("surface"), 1.2))
    painter.setRenderHint(QPainter.RenderHint.Antialiasing, hatch in "/\\x")
    side, middle = HATCH_PX, HATCH_PX // 2
    lines = {"/": [(0, side, side, 0)], "\\": [(0, 0, side, side)], "|": [(middle, 0, middle, side)]}
    lines |= {"-": [(0, middle, side, middle)], "x": [(0, side, side, 0), (0, 0, side, side)]}
    lines["+"] = lines["|"] + lines["-"]
    for line in lines[hatch]:
        painter.drawLine(*line)
    painter.end()
    return QBrush(tile)


class HatchedBars(pg.BarGraphItem):
    """Bars with a pattern over their color, which keeps its size when the axes change."""

    def __init__(self, tone: marks.Tone) -> None:
        self._hatch = bar_brush(tone)
        super().__init__(x=[], height=[], width=0.7, brush=tone_color(tone), pen=None)

    def paint(self, painter: QPainter, *options: Any) -> None:
        super().paint(painter, *options)
        if self._hatch.style() != Qt.BrushStyle.TexturePattern:
            return
        painter.save()
        to_pixels = painter.worldTransform()
        painter.setWorldTransform(QTransform())
        for bar in self._bars():
            painter.fillRect(to_pixels.mapRect(bar), self._hatch)
        painter.restore()

    def _bars(self) -> Iterator[QRectF]:
        heights, wide = self.opts["height"], self.opts["width"]
        if self.opts.get("x0") is not None:  # they lie
            for position, length in zip(self.opts["y"], np.asarray(wide, np.float64), strict=True):
                yield QRectF(0, position - heights / 2, length, heights).normalized()
        else:
            for position, length in zip(self.opts["x"], np.asarray(heights, np.float64), strict=True):
                yield QRectF(position - wide / 2, 0, wide, length).normalized()


class XYPlotWidget(Plot):
    """Curves, bars, dots and shaded ranges over fixed axes."""

    dragged = Signal(float, float)  # Where the pointer is pressed or dragged, in units of the axes.
    pointed = Signal(float)  # The x under the pointer, NaN when it has left.
    id_chosen = Signal(int)  # The id of a clicked point.
    # What was dragged across, as `(low, high)` of x or `(low, high, low, high)` of x and y, or None: the brush
    # was taken away, by a click or Esc.
    brushed = Signal(object)
    crowded = Signal()  # `is_crowded` may be another: whether a label that names a curve finds no room.

    def __init__(self, parent: QWidget | None = None) -> None:
        self.brush: tuple[float, ...] | None = None
        self._brush_start: QPointF | None = None
        self._marked_ids: np.ndarray = np.empty(0, np.int64)
        self.spec: marks.XYPlot | None = None
        self._shape: object = None
        self._curves: list[pg.PlotCurveItem] = []
        self._bands: list[tuple[pg.PlotCurveItem, pg.PlotCurveItem]] = []
        self._bars: list[tuple[pg.BarGraphItem, pg.ErrorBarItem]] = []
        self._clouds: list[pg.ScatterPlotItem] = []
        self._regions: list[tuple[pg.LinearRegionItem, pg.TextItem]] = []
        self._signs: list[pg.TextItem] = []
        self._labeled: list[tuple[marks.Marker, pg.TextItem]] = []
        self.names_curves = self.is_crowded = self.by_legend = False
        self._dots, self._errors = pg.ScatterPlotItem(pxMode=True), dict[marks.Tone, pg.ErrorBarItem]()
        self._cursor, self._shade = pg.InfiniteLine(angle=90), pg.LinearRegionItem(movable=False)
        self._outline, self._lit, self._ticks = pg.PlotCurveItem(), pg.ScatterPlotItem(), pg.PlotCurveItem()
        super().__init__(parent)
        self.getPlotItem().setMouseEnabled(x=False, y=False)
        self.getPlotItem().getViewBox().sigResized.connect(lambda _box: self.place_labels())
        self.getPlotItem().getViewBox().sigTransformChanged.connect(lambda _box: self.place_labels())
        self.setMouseTracking(True)
        self.setMinimumHeight(LEAST_HEIGHT)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)

    def show_plot(self, spec: marks.XYPlot) -> None:
        """Draw the plot; existing items only receive new data."""
        before, self.spec = self.spec, spec
        if before is None or _scales(before) != _scales(spec):
            if before is not None and before.lying:
                self.setMinimumHeight(LEAST_HEIGHT)
            self._scale(spec)
        if self._shape != _shape(spec):
            self._rebuild(spec)
            for axis in map(self.getPlotItem().getAxis, ("left", "bottom")):
                axis.picture = None  # it draws its numbers once, and those of an empty plot are none
                axis.update()
        self._fill(spec)

    def move_cursor(self, x: float) -> None:
        """Move the dashed line to x, without drawing anything else again; NaN hides it."""
        if self.spec is not None:
            self.spec = dataclasses.replace(self.spec, cursor=x)
            self._place_cursor(self.spec)

    def recolor(self) -> None:
        super().recolor()
        if self.spec is not None:
            self._rebuild(self.spec)
            self._fill(self.spec)

    def shown(self) -> Iterator[tuple[Any, ...]]:
        """Yield series, x, y and interval ends of everything drawn, read from the items."""
        spec = self.spec
        if spec is None:
            return
        bands = iter(self._bands)
        for item, curve in zip(self._curves, spec.curves, strict=True):
            x, y = _off_axis(spec.x, item.xData), _off_axis(spec.y, item.yData)
            x = (x[1:] + x[:-1]) / 2 if curve.stepped else x
            ends = () if curve.low is None else [_off_axis(spec.y, end.yData) for end in next(bands)]
            yield from ((curve.name, *map(float, point)) for point in zip(x, y, *ends, strict=True))
        for item, cloud in zip(self._clouds, spec.points, strict=True):
            x, y = item.getData()[:: -1 if spec.lying else 1]
            positions = zip(_off_axis(spec.x, x), _off_axis(spec.y, y), strict=True)
            yield from ((cloud.name, float(x), float(y)) for x, y in positions)
        for (item, error), bars in zip(self._bars, spec.bars, strict=True):
            heights = np.asarray(item.opts["width" if spec.lying else "height"])
            ends = [heights - error.opts["bottom"], heights + error.opts["top"]] if bars.low else []
            yield from ((bars.name, *point) for point in zip(spec.names, heights, *ends, strict=True))
        yield from self._shown_dots(spec)

    def _shown_dots(self, spec: marks.XYPlot) -> Iterator[tuple[Any, ...]]:
        x, y = self._dots.getData()[:: -1 if spec.lying else 1]
        first = len(x) - len(spec.dots)
        ends = ("left", "right") if spec.lying else ("bottom", "top")
        visible = {tone: item.opts for tone, item in self._errors.items() if item.isVisible()}
        errors = {tone: zip(*(opts[end] for end in ends), strict=True) for tone, opts in visible.items()}
        for dot, at, height in zip(spec.dots, x[first:], y[first:], strict=True):
            position, height = float(_off_axis(spec.x, at)), float(_off_axis(spec.y, height))
            below, above = next(errors[dot.tone]) if dot.low == dot.low else (None, None)
            if dot.name or dot.label:
                where = spec.names[round(position)] if spec.names else position
                interval = () if below is None else (height - below, height + above)
                yield (" ".join(filter(None, (dot.name, dot.label))), where, height, *interval)

    def sizeHint(self) -> QSize:
        return QSize(320, 150)

    def set_brush(self, brush: tuple[float, ...] | None) -> None:
        """Show a brushed range or rectangle without emitting a signal."""
        self.brush = brush
        self._shade.setVisible(brush is not None and len(brush) == 2)
        self._outline.setVisible(brush is not None and len(brush) == 4)
        if brush is None or self.spec is None:
            return
        if len(brush) == 2:
            self._shade.setRegion(brush)
        else:
            x = _on_axis(self.spec.x, np.array([brush[0], brush[1], brush[1], brush[0], brush[0]]))
            self._outline.setData(
                x, _on_axis(self.spec.y, np.array([brush[2], brush[2], brush[3], brush[3], brush[2]]))
            )

    def mark(self, ids: np.ndarray) -> None:
        """Highlight the points with these ids, and tick their places under a histogram."""
        self._marked_ids = ids
        if self.spec is not None:
            self._fill_lit(self.spec)

    def mousePressEvent(self, ev: QMouseEvent) -> None:
        if self.spec is not None and self.spec.brushes and ev.button() == Qt.MouseButton.LeftButton:
            self._brush_start = self._place(ev)
            self.setFocus(Qt.FocusReason.MouseFocusReason)
        self._drag(ev)

    def mouseMoveEvent(self, ev: QMouseEvent) -> None:
        if ev.buttons() & Qt.MouseButton.LeftButton:
            self._drag(ev)
            if self._brush_start is not None:
                self.set_brush(self._brushed_to(ev))
        self.pointed.emit(self._place(ev).x())
        hint = self.hint_at(ev.position())
        if hint != self.toolTip():
            self.setToolTip(hint)
            QToolTip.showText(ev.globalPosition().toPoint(), hint, self) if hint else QToolTip.hideText()

    def mouseReleaseEvent(self, ev: QMouseEvent) -> None:
        ev.accept()
        if self._brush_start is None or self.spec is None:
            at = self.plotItem.getViewBox().mapSceneToView(self.mapToScene(ev.position().toPoint()))
            self._choose_point([spot for cloud in self._clouds for spot in cloud.pointsAt(at)])
            return
        brush = self._brushed_to(ev)
        ends = [_at(self.spec.x, end) for end in (*brush[:2], self.spec.x.low, self.spec.x.high)]
        self._brush_start = None
        # A click, or a slip of the hand, takes the brush away, and chooses the point under it.
        self.set_brush(brush if ends[1] - ends[0] > (ends[3] - ends[2]) / 200 else None)
        self.brushed.emit(self.brush)
        if self.brush is None:
            at = QPointF(ends[0], _at(self.spec.y, brush[2])) if len(brush) == 4 else None
            spots = [spot for cloud in self._clouds if at is not None for spot in cloud.pointsAt(at)]
            if spots:
                self._choose_point(spots)

    def keyPressEvent(self, ev: QKeyEvent) -> None:
        if ev.key() == Qt.Key.Key_Escape and self.brush is not None:
            self.set_brush(None)
            self.brushed.emit(None)
            return
        super().keyPressEvent(ev)

    def _brushed_to(self, ev: QMouseEvent) -> tuple[float, ...]:
        assert self.spec is not None
        assert self._brush_start is not None
        start, end = self._brush_start, self._place(ev)
        box: list[float] = []
        for axis, ends in ((self.spec.x, (start.x(), end.x())), (self.spec.y, (start.y(), end.y()))):
            box += [max(min(ends), axis.low), min(max(ends), axis.high)]
        return tuple(box) if self.spec.brushes == "xy" else tuple(box[:2])

    def leaveEvent(self, ev: QEvent) -> None:
        super().leaveEvent(ev)
        self.pointed.emit(math.nan)

    def _drag(self, ev: QMouseEvent) -> None:
        position = self._place(ev)
        self.dragged.emit(position.x(), position.y())

    def _place(self, ev: QMouseEvent) -> QPointF:
        position = self.getPlotItem().getViewBox().mapSceneToView(QPointF(ev.position()))
        if self.spec is None:
            return position
        return QPointF(float(_off_axis(self.spec.x, position.x())), float(_off_axis(self.spec.y, position.y())))

    def _scale(self, spec: marks.XYPlot) -> None:
        item = self.getPlotItem()
        item.getViewBox().invertY(spec.lying)
        if spec.lying:
            self._scale_lying(spec)
            return
        self.set_axes(spec.x, spec.y)
        item.setAspectLocked(spec.equal)
        for side, axis in (("bottom", spec.x), ("left", spec.y)):
            item.getAxis(side).show_names(spec.names if side == "bottom" else ())
            if not item.getAxis(side).names:
                ticks = [(math.log10(value), text) for value, text in (axis.ticks() if axis.log else ())]
                item.getAxis(side).setTicks([ticks] if axis.log else None)
            item.getAxis(side).setVisible(not spec.equal)
        item.showGrid(x=not (spec.equal or spec.bars), y=not spec.equal, alpha=0.14)
        self.setXRange(_at(spec.x, spec.x.low), _at(spec.x, spec.x.high), padding=0)
        self.setYRange(*_with_numbers(spec), padding=0)

    def _scale_lying(self, spec: marks.XYPlot) -> None:
        self.set_axes(spec.y, spec.x)
        item = self.getPlotItem()
        item.getAxis("bottom").show_names(())
        item.getAxis("bottom").setTicks(None)
        item.getAxis("left").show_names(spec.names)
        item.showGrid(x=True, y=False, alpha=0.14)
        self.setXRange(*_with_numbers(spec), padding=0)
        self.setYRange(spec.x.low, spec.x.high, padding=0)
        self.setMinimumHeight(LYING_ROOM_PX + LYING_PX * len(spec.names) * max(len(spec.bars), 1))

    def _rebuild(self, spec: marks.XYPlot) -> None:
        self.clear()
        self._shape = _shape(spec)
        self._regions = [self._new_region(region) for region in spec.regions]
        self._bands = [self._new_band(curve) for curve in spec.curves if curve.low is not None]
        self._curves = [self._new_curve(curve) for curve in spec.curves]
        self._clouds = [self._new_cloud(cloud) for cloud in spec.points]
        self._bars = [self._new_bars(bars) for bars in spec.bars]
        self._dots, self._errors = pg.ScatterPlotItem(pxMode=True), {}
        self._cursor = pg.InfiniteLine(angle=90, pen=pg.mkPen(theme.color("text"), width=1, style=_DASHES))
        self._cursor.setZValue(-5)
        self._shade, self._outline = (
            self._new_shade(),
            pg.PlotCurveItem(pen=pg.mkPen(theme.color("text"), style=_DASHES)),
        )
        self._lit = pg.ScatterPlotItem(pxMode=True, size=9, pen=pg.mkPen(theme.color("text"), width=1.5), brush=None)
        self._ticks = pg.PlotCurveItem(pen=pg.mkPen(theme.color("text"), width=theme.stroke(1.5)))
        for item in (self._dots, self._cursor, self._shade, self._outline, self._lit, self._ticks):
            self.addItem(item, ignoreBounds=True)
        self.set_brush(self.brush if spec.brushes else None)
        written = _written(spec) + sum(bool(dot.label) for dot in spec.dots)
        ground = theme.color("surface")
        ground.setAlphaF(LABEL_ALPHA if spec.curves else 0.0)
        style = {"color": theme.color("secondary"), "anchor": (0.5, 0.5), "fill": ground}
        self._signs = [pg.TextItem(**style) for _ in range(written)]
        for label in self._signs:
            label.setFont(theme.pixel_font(theme.SMALL_PX))
            self.addItem(label, ignoreBounds=True)

    def _new_shade(self) -> pg.LinearRegionItem:
        ground = theme.color("focus")
        ground.setAlphaF(BRUSH_ALPHA)
        shade = pg.LinearRegionItem(movable=False, brush=ground, pen=pg.mkPen(None))
        shade.setZValue(5)
        shade.hide()
        return shade

    def _new_curve(self, curve: marks.Series) -> pg.PlotCurveItem:
        if curve.filled:
            item = pg.PlotCurveItem(pen=pg.mkPen(tone_color(curve.tone), width=theme.stroke(curve.width)))
            color = tone_color(curve.tone)
            color.setAlphaF(FILL_ALPHA)
            item.setFillLevel(0.0)
            item.setBrush(color)
        else:
            pen = line_pen(curve.tone, width=curve.width, dashed=curve.dashed, faint=curve.faint)
            # Smoothed over two rows of pixels, a line of one that is pale or a run's darkest shade could not be seen.
            smooth = not (curve.faint or marks.is_thin(curve.tone, curve.width))
            item = pg.PlotCurveItem(pen=pen, antialias=smooth)
        self.addItem(item, ignoreBounds=True)
        return item

    def _new_band(self, curve: marks.Series) -> tuple[pg.PlotCurveItem, pg.PlotCurveItem]:
        color = tone_color(curve.tone)
        edge = pg.mkPen(color, width=1, style=Qt.PenStyle.DotLine)
        ends = (pg.PlotCurveItem(pen=edge), pg.PlotCurveItem(pen=edge))
        color.setAlphaF(BAND_ALPHA)
        between = pg.FillBetweenItem(*ends, brush=color)
        between.setZValue(-7)
        for item in (*ends, between):
            self.addItem(item, ignoreBounds=True)
        return ends

    def _new_cloud(self, cloud: marks.Points) -> pg.ScatterPlotItem:
        color = cloud_color(cloud)
        shape = "d" if cloud.mark == "diamond" else "o"
        item = pg.ScatterPlotItem(pxMode=True, size=cloud.size, pen=None, brush=color, symbol=shape, tip=None)
        item.setZValue(-6)
        item.sigClicked.connect(lambda _item, spots: self._choose_point(spots))
        self.addItem(item, ignoreBounds=True)
        return item

    def _new_bars(self, bars: marks.Bars) -> tuple[pg.BarGraphItem, pg.ErrorBarItem]:
        item = HatchedBars(bars.tone)
        error = pg.ErrorBarItem(beam=0.0, pen=pg.mkPen(theme.color("text"), width=1))
        for part in (item, error):
            self.addItem(part, ignoreBounds=True)
        return item, error

    def _choose_point(self, spots: list[pg.SpotItem]) -> None:
        if len(spots) and spots[0].data() is not None:
            self.id_chosen.emit(int(spots[0].data()))

    def _new_region(self, region: marks.Region) -> tuple[pg.LinearRegionItem, pg.TextItem]:
        ground = tone_color("bad")
        ground.setAlphaF(0.12)
        item = pg.LinearRegionItem((region.low, region.high), movable=False, brush=ground, pen=pg.mkPen(None))
        item.setZValue(-10)
        label = pg.TextItem(region.name, color=tone_color("bad"), anchor=(0.5, 0))
        label.setFont(theme.pixel_font(theme.SMALL_PX))
        for part in (item, label):
            self.addItem(part, ignoreBounds=True)
        return item, label

    def _fill(self, spec: marks.XYPlot) -> None:
        for item, curve in zip(self._curves, spec.curves, strict=True):
            x, y = _on_axis(spec.x, curve.x), _on_axis(spec.y, curve.y)
            # A value that is not finite is a gap.
            item.setData(x, y, stepMode="center" if curve.stepped else None, connect="finite")
        banded = [curve for curve in spec.curves if curve.low is not None]
        for (low, high), curve in zip(self._bands, banded, strict=True):
            x = _on_axis(spec.x, curve.x)
            for end, values in ((low, curve.low), (high, curve.high)):
                if values is not None:
                    end.setData(x, _on_axis(spec.y, values))
        for (item, label), region in zip(self._regions, spec.regions, strict=True):
            item.setRegion((region.low, region.high))
            at_end = region.high >= spec.x.high
            label.setAnchor((1, 0) if at_end else (0.5, 0))
            label.setPos(region.high if at_end else (region.low + region.high) / 2, _at(spec.y, spec.y.high))
        for item, cloud in zip(self._clouds, spec.points, strict=True):
            x, y = _on_axis(spec.x, cloud.xy[:, 0]), _on_axis(spec.y, cloud.xy[:, 1])
            x, y = (y, x) if spec.lying else (x, y)
            item.setData(x=x, y=y, data=cloud.ids)
        self._fill_lit(spec)
        labels = iter(self._signs)
        self._fill_bars(spec, labels)
        self._fill_dots(spec, labels)
        self._place_cursor(spec)

    def _place_cursor(self, spec: marks.XYPlot) -> None:
        self._cursor.setVisible(math.isfinite(spec.cursor))
        if math.isfinite(spec.cursor):
            self._cursor.setValue(_at(spec.x, spec.cursor))

    def _fill_lit(self, spec: marks.XYPlot) -> None:
        clouds = spec.points if spec.ids_are == "pairs" else ()
        parts = [cloud.xy[np.isin(cloud.ids, self._marked_ids)] for cloud in clouds if cloud.ids is not None]
        xy = np.concatenate(parts) if parts and len(self._marked_ids) else np.zeros((0, 2))
        self._lit.setData(x=_on_axis(spec.x, xy[:, 0]), y=_on_axis(spec.y, xy[:, 1]))
        self._fill_ticks(spec)

    def lit(self) -> np.ndarray:
        """Return the places of the highlighted points, read from the item."""
        return np.column_stack(self._lit.getData())

    def ticked(self) -> np.ndarray:
        """Return the places on x that are ticked, read from the item."""
        x = self._ticks.xData
        return np.empty(0) if x is None or self.spec is None else _off_axis(self.spec.x, x[::2])

    def _fill_ticks(self, spec: marks.XYPlot) -> None:
        is_marked = spec.rug is not None and len(self._marked_ids) > 0
        at = spec.rug.x[np.isin(spec.rug.ids, self._marked_ids)] if is_marked and spec.rug else np.zeros(0)
        at = _on_axis(spec.x, at[np.isfinite(at)])[:MOST_TICKS]
        low, high = (_at(spec.y, end) for end in (spec.y.low, spec.y.high))
        ends = np.tile([low, low + TICK_SHARE * (high - low)], len(at))
        self._ticks.setData(np.repeat(at, 2), ends, connect="pairs")

    def _fill_bars(self, spec: marks.XYPlot, labels: Iterator[pg.TextItem]) -> None:
        wide = BARS_WIDE / max(len(spec.bars), 1)
        for index, ((item, error), bars) in enumerate(zip(self._bars, spec.bars, strict=True)):
            at = np.arange(len(bars.heights)) + (index - (len(spec.bars) - 1) / 2) * wide
            heights = np.asarray(bars.heights, dtype=np.float64)
            if spec.lying:
                item.setOpts(x=None, x0=0, width=heights, y=at, height=0.94 * wide)
            else:
                item.setOpts(x=at, height=heights, width=0.94 * wide)
            error.setVisible(bool(bars.low))
            if bars.low:
                low, high = np.asarray(bars.low), np.asarray(bars.high)
                error.setData(x=at, y=heights, top=high - heights, bottom=heights - low)
            if _written(spec):
                for x, top, height in zip(at, bars.high or bars.heights, heights, strict=True):
                    label = next(labels)
                    label.setText(marks.bar_text(height))
                    label.setAnchor((0.0 if height >= 0 else 1.0, 0.5) if spec.lying else (0.5, 1.0))
                    label.setPos(*((top, x) if spec.lying else (x, top)))

    def _fill_dots(self, spec: marks.XYPlot, labels: Iterator[pg.TextItem]) -> None:
        self._dots.setData(spots=[_spot(spec, dot) for dot in (*_marked(spec), *spec.dots)])
        barred = [dot for dot in spec.dots if math.isfinite(dot.low)]
        for item in self._errors.values():
            item.hide()
        for tone in dict.fromkeys(dot.tone for dot in barred):
            x, y, low, high = np.array([(dot.x, dot.y, dot.low, dot.high) for dot in barred if dot.tone == tone]).T
            pen = pg.mkPen(tone_color(tone), width=theme.stroke(2))
            reach = {"left": y - low, "right": high - y} if spec.lying else {"top": high - y, "bottom": y - low}
            none = dict.fromkeys({"left", "right", "top", "bottom"} - {*reach})
            positions = (y, x) if spec.lying else (_on_axis(spec.x, x), y)
            if tone not in self._errors:
                self._errors[tone] = pg.ErrorBarItem(beam=0.0)
                self.addItem(self._errors[tone], ignoreBounds=True)
            self._errors[tone].setData(x=positions[0], y=positions[1], **reach, **none, pen=pen)
            self._errors[tone].show()
        self._labeled = []
        for dot in spec.dots:
            if dot.label:
                label = next(labels)
                label.setText(dot.label)
                self._labeled.append((dot, label))
        self.place_labels()

    def place_labels(self) -> None:
        """Write the labels of markers next to them, none on another or on filled bars, where there is room.

        Where one that names a curve finds none, a legend names all of them.
        """
        spec, box = self.spec, self.getPlotItem().getViewBox()
        self.names_curves = any(dot.curve for dot, _ in self._labeled)
        if spec is None or not self._labeled:
            return
        at = np.array([self._seen(spec, dot) for dot, _ in self._labeled])
        rects = [label.boundingRect() for _, label in self._labeled]
        sizes = np.array([(rect.width(), rect.height()) for rect in rects])
        reaches = np.array([dot.size / 2 + 2 for dot, _ in self._labeled])
        outward = np.array([dot.outward for dot, _ in self._labeled]) * (1, -1)
        others = [self._seen(spec, dot) for dot in spec.dots if not dot.label]
        if sum(len(cloud.xy) for cloud in spec.points) <= MOST_AVOIDED:
            for cloud in spec.points:
                others += [self._seen(spec, marks.Marker("", cloud.tone, x, y)) for x, y in cloud.xy.tolist()]
        for curve in (curve for curve in spec.curves if curve.filled and curve.stepped):
            tops = zip((curve.x[1:] + curve.x[:-1]) / 2, curve.y, strict=True)
            others += [self._seen(spec, marks.Marker("", curve.tone, float(x), float(y))) for x, y in tops]
        sizes += (theme.BETWEEN if self.is_crowded else 0, 0)  # lest a legend, which takes height, comes and goes
        corners = places_beside(at, sizes, reaches, outward, (0, 0, box.width(), box.height()), np.array(others))
        seen = zip(self._labeled, corners, strict=True)
        self.is_crowded = any(dot.curve and corner is None for (dot, _), corner in seen)
        for (dot, label), (x, y), size, corner in zip(self._labeled, at, sizes, corners, strict=True):
            label.setVisible(corner is not None and not (self.by_legend and dot.curve))
            if corner is not None:
                label.setAnchor(((x - corner[0]) / size[0], (y - corner[1]) / size[1]))
                label.setPos(*((dot.y, dot.x) if spec.lying else (_at(spec.x, dot.x), _at(spec.y, dot.y))))
        self.crowded.emit()

    def _seen(self, spec: marks.XYPlot, dot: marks.Marker) -> tuple[float, float]:
        """Return where a marker is in the box of the axes, in pixels from its upper left corner."""
        box = self.getPlotItem().getViewBox()
        position = QPointF(dot.y, dot.x) if spec.lying else QPointF(_at(spec.x, dot.x), _at(spec.y, dot.y))
        at = box.mapFromView(position)
        return at.x(), at.y()

    def labels(self) -> list[tuple[str, QRectF]]:
        """Return the labels of markers that are seen, each with its rectangle on the scene."""
        visible = [label for _, label in self._labeled if label.isVisible()]
        return [(label.toPlainText(), label.mapRectToScene(label.boundingRect())) for label in visible]

    def hint_at(self, position: QPointF) -> str:
        """Return what is said of the marker at this place of the widget; empty where there is none."""
        spec, box = self.spec, self.getPlotItem().getViewBox()
        named = [dot for dot in (spec.dots if spec is not None else ()) if dot.hint or dot.label]
        if spec is None or not named:
            return ""
        inside = box.mapFromScene(self.mapToScene(position.toPoint()))
        away = [math.dist(self._seen(spec, dot), (inside.x(), inside.y())) - dot.size / 2 for dot in named]
        nearest = int(np.argmin(away))
        return (named[nearest].hint or named[nearest].label) if away[nearest] <= NEAR_PX else ""


def card_column(card: QWidget, *head: QWidget) -> QVBoxLayout:
    """Return the column layout of a card under its header; the last header widget stretches."""
    return layouts.column(layouts.row(*head[:-1], (head[-1], 1)), gap=theme.SPACE, of=card)


class XYPlotCard(QWidget):
    """A plot with a title, a legend and a readout under the pointer."""

    def __init__(self, panel: str, key: str, parent: QWidget | None = None) -> None:
        super().__init__(parent, objectName=f"lab-{panel}-{key}")
        self.title, self.note = heading(), layouts.elided(role="small")
        self.below = layouts.text(role="small", wrap=True)
        self.below.hide()
        self.legend, self.plot = Legend(), XYPlotWidget()
        self.entries: frozenset[object] = frozenset()
        self._repeats = False
        self.plot.pointed.connect(self._show_values)
        theme.theme().follow(self._show_legend)
        self.badge = RunBadge("", 0)
        self.title.setMinimumHeight(self.badge.sizeHint().height())  # beside a card with a badge, plots begin alike
        self._column = card_column(self, self.badge, self.title, self.note)
        for part in (self.below, self.legend):
            self._column.addWidget(part)
        self._column.addWidget(self.plot, 1)

    def fits_head(self, wide: int) -> bool:
        """Return whether title and note fit in one line of this width."""
        note = self.plot.spec.note if self.plot.spec is not None else ""
        note_px = self.note.fontMetrics().horizontalAdvance(f"{note} ") + theme.INSIDE
        return not note or self._before_title_px() + self.title.sizeHint().width() + note_px <= wide

    def title_lines(self, wide: int) -> int:
        """Return how many lines the title takes in this width: one, or two."""
        return 1 + (self._before_title_px() + self.title.sizeHint().width() > wide)

    def arrange_head(self, lines: int, *, below: bool) -> None:
        """Put the note after the title or below it, where it wraps, and give the title as many lines."""
        self.below.setVisible(below)
        self.title.set_lines(lines)
        self._show_values(math.nan)

    def _before_title_px(self) -> int:
        return 0 if self.badge.isHidden() else self.badge.sizeHint().width() + theme.INSIDE

    def show_mark(self, spec: marks.XYPlot) -> None:
        self.plot.show_plot(spec)
        self.plot.setAccessibleName(spec.title)
        self.plot.setAccessibleDescription(spec.in_words)
        show_badge(self.badge, spec.tone)
        self.title.setText(spec.title)
        self._show_values(math.nan)
        self._show_legend()

    def shown(self) -> Iterator[tuple[Any, ...]]:
        """Return the points of the plot's items."""
        return self.plot.shown()

    def _show_values(self, x: float) -> None:
        spec = self.plot.spec
        if spec is None:
            return
        inside = spec.x.low <= x <= spec.x.high and not spec.equal and not spec.bars
        self.below.setText(spec.note)
        self.note.setText(read_at(spec, x) if inside else "" if not self.below.isHidden() else spec.note)

    def name_curves(self, *, by_legend: bool) -> None:
        """Name the curves by a legend, or by labels next to them."""
        if by_legend != self.plot.by_legend:
            self.plot.by_legend = by_legend
            self.plot.place_labels()
            self._show_legend()

    def _show_legend(self) -> None:
        spec = self.plot.spec
        if spec is None:
            return
        curves = [curve for curve in spec.curves if curve.name and (spec.legend or self.plot.by_legend)]
        labels = spec.curve_labels if self.plot.by_legend else {}
        entries = []
        for c in curves:
            dash = () if c.filled or c.faint else marks.dash_of(c.tone, dashed=c.dashed)
            color = line_pen(c.tone, width=c.width).color().name()
            mark: Mark = "square" if c.filled else "line"
            entries.append(LegendEntry(labels.get(c.name, c.name), color, mark, dash=dash, width=c.width))
        entries += [
            LegendEntry(b.name, tone_color(b.tone).name(), "square", brush=bar_brush(b.tone))
            for b in spec.bars
            if b.name
        ]
        entries += [LegendEntry(p.name, cloud_color(p).name(), p.mark, size=p.size) for p in spec.points if p.name]
        for dot in spec.dots:
            square = dot.mark != "diamond" and marks.SYMBOLS.get(marks.pattern_of(dot.tone)) == "square"
            mark = "diamond" if dot.mark == "diamond" else "square" if square else "disc"
            entry = LegendEntry(dot.name, tone_color(dot.tone).name(), mark, size=dot.size)
            if dot.name and entry not in entries:
                entries.append(entry)
        self.legend.show_entries(entries)
        self.entries = frozenset((entry.words, entry.color, entry.dash) for entry in entries)
        self.legend.setVisible(len(entries) > 1 and not self._repeats)

    def hide_repeated(self, on: bool) -> None:
        """Hide the legend where a plot above has told all of it."""
        self._repeats = on
        self.legend.setVisible(len(self.entries) > 1 and not on)


def read_at(spec: marks.XYPlot, x: float) -> str:
    """Return the values of the curves at x: `0.52: InfoNCE 3.1, InfoLOOB 14.3`."""
    parts = []
    for curve in spec.curves:
        name = curve.hint or curve.name
        if not name or not len(curve.x) or not curve.x[0] <= x <= curve.x[-1]:
            continue
        if curve.stepped:
            y = float(curve.y[min(int(np.searchsorted(curve.x, x, side="right")) - 1, len(curve.y) - 1)])
        else:
            y = float(np.interp(x, curve.x, curve.y))
        parts.append(f"{name} {y:.3g}")
    where = f"{x:,.0f}" if spec.x.integer or spec.x.low >= 1 else f"{x:.2f}"
    return f"{where}: {', '.join(parts)}".replace("-", "−")


def _shape(spec: marks.XYPlot) -> object:
    """Return what determines which items exist; everything else is their data."""
    curves = tuple((c.tone, c.dashed, c.width, c.filled, c.faint, c.low is not None) for c in spec.curves)
    clouds, bars = (
        tuple((c.tone, c.size, c.mark, c.classes, c.at) for c in spec.points),
        tuple(b.tone for b in spec.bars),
    )
    signs = _written(spec) + sum(bool(d.label) for d in spec.dots)
    return curves, tuple(r.name for r in spec.regions), clouds, bars, signs, spec.lying, spec.brushes


def _scales(spec: marks.XYPlot) -> object:
    """Return what determines the axes."""
    return spec.x, spec.y, spec.equal, spec.names, spec.lying, len(spec.bars), _with_numbers(spec)


def _with_numbers(spec: marks.XYPlot) -> tuple[float, float]:
    """Return the ends of the axis of values, with room for the numbers at the bars."""
    low, high = (_at(spec.y, end) for end in spec.value_ends)
    if not _written(spec) or spec.y.log or spec.y.percent:
        return low, high
    ends = [end for bars in spec.bars for end in (bars.high or bars.heights) if math.isfinite(end)]
    room = (NUMBER_ROOM_LYING if spec.lying else NUMBER_ROOM) * (high - low)
    below = min(ends) - room if spec.lying and ends and min(ends) < 0 else low
    return min(low, below), max([high, *(end + room for end in ends if end >= 0)])


def _written(spec: marks.XYPlot) -> int:
    """Return how many bars are labeled with their number: all, or none if there are too many."""
    bars = len(spec.bars) * len(spec.names)
    return bars if bars <= MOST_WRITTEN else 0


def _marked(spec: marks.XYPlot) -> list[marks.Marker]:
    """Return a marker for every point of the series with markers."""
    return [
        marks.Marker("", curve.tone, float(x), float(y), size=5)
        for curve in spec.curves
        if curve.marked
        for x, y in zip(curve.x, curve.y, strict=True)
        if math.isfinite(y)
    ]


def _spot(spec: marks.XYPlot, dot: marks.Marker) -> dict[str, object]:
    paint = tone_color(dot.tone)
    ring = dot.mark == "ring"
    return {
        "pos": (dot.y, dot.x) if spec.lying else (_at(spec.x, dot.x), _at(spec.y, dot.y)),
        "size": dot.size,
        "symbol": _MARKS.get(dot.mark) or _SYMBOLS.get(marks.SYMBOLS.get(marks.pattern_of(dot.tone), ""), "o"),
        "brush": None if ring else pg.mkBrush(paint),
        "pen": pg.mkPen(paint, width=2) if ring else pg.mkPen(theme.color("surface"), width=1),
    }


def _at(axis: marks.Axis, value: float) -> float:
    return math.log10(max(value, 1e-300)) if axis.log else value


def _on_axis(axis: marks.Axis, values: np.ndarray) -> np.ndarray:
    return np.log10(np.maximum(values, 1e-300)) if axis.log else np.asarray(values)


def _off_axis(axis: marks.Axis, values: Any) -> np.ndarray:
    return 10.0 ** np.asarray(values, np.float64) if axis.log else np.asarray(values, np.float64)
