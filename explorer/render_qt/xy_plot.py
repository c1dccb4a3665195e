"""A plot of `trainer.charts.marks` on the screen, redrawn in place as settings change."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyqtgraph as pg
from PySide6.QtCore import QEvent, QPointF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QMouseEvent
from PySide6.QtWidgets import QHBoxLayout, QLabel, QVBoxLayout, QWidget

from explorer import theme
from explorer.widgets.elided_label import ElidedLabel
from explorer.widgets.legend import Legend, LegendEntry
from explorer.widgets.plot import Plot
from trainer.charts import marks

LEAST_HEIGHT = 118
BARS_WIDE = 0.7
MOST_WRITTEN = 16
"""More bars than these have no number written over them."""
_CLASSES = {"first": 2, "second": 3, "fifth": 4, "sixth": 5, "third": 6, "fourth": 7}
"""Places among the class colors: the first two are blue and orange, which mean runs A and B."""
FILL_ALPHA, BAND_ALPHA = 0.55, 0.18
_DASHES = Qt.PenStyle.DashLine


def tone_color(tone: marks.Tone) -> QColor:
    """The color of a series in the theme as it is now."""
    if tone in _CLASSES:
        return QColor(theme.class_colors(8)[_CLASSES[tone]])
    if tone in ("run_a", "run_b"):
        return theme.color(tone)
    return theme.color("bad" if tone == "bad" else "outline")


class XYPlotWidget(Plot):
    """Curves, bars, dots and shaded ranges over axes that stay where they are.

    Signals:
        dragged: Where the pointer is pressed or dragged, in units of the axes.
        id_chosen: The id of a clicked point.
        pointed: The x under the pointer, NaN when it has left.
    """

    dragged = Signal(float, float)
    pointed = Signal(float)
    id_chosen = Signal(int)

    def __init__(self, parent: QWidget | None = None) -> None:
        self.piece: marks.XYPlot | None = None
        self._shape: object = None
        self._curves: list[pg.PlotCurveItem] = []
        self._bands: list[tuple[pg.PlotCurveItem, pg.PlotCurveItem]] = []
        self._bars: list[tuple[pg.BarGraphItem, pg.ErrorBarItem]] = []
        self._clouds: list[pg.ScatterPlotItem] = []
        self._regions: list[tuple[pg.LinearRegionItem, pg.TextItem]] = []
        self._signs: list[pg.TextItem] = []
        self._dots, self._errors = pg.ScatterPlotItem(pxMode=True), pg.ErrorBarItem(beam=0.0)
        self._cursor = pg.InfiniteLine(angle=90)
        super().__init__(parent)
        self.getPlotItem().setMouseEnabled(x=False, y=False)
        self.setMouseTracking(True)
        self.setMinimumHeight(LEAST_HEIGHT)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)

    def show_plot(self, piece: marks.XYPlot) -> None:
        """Draws the piece; items that are there already only get their new data."""
        before, self.piece = self.piece, piece
        if before is None or (before.x, before.y, before.equal) != (piece.x, piece.y, piece.equal):
            self._scale(piece)
        if self._shape != _shape(piece):
            self._rebuild(piece)
        self._fill(piece)

    def recolor(self) -> None:
        super().recolor()
        if self.piece is not None:
            self._rebuild(self.piece)
            self._fill(self.piece)

    def shown(self) -> Iterator[tuple[Any, ...]]:
        """Series, x, y and the ends of the interval of everything drawn, read back from the items."""
        piece = self.piece
        if piece is None:
            return
        bands = iter(self._bands)
        for item, curve in zip(self._curves, piece.curves, strict=True):
            x, y = _off_axis(piece.x, item.xData), _off_axis(piece.y, item.yData)
            x = (x[1:] + x[:-1]) / 2 if curve.stepped else x
            ends = () if curve.low is None else [_off_axis(piece.y, end.yData) for end in next(bands)]
            yield from ((curve.name, *map(float, point)) for point in zip(x, y, *ends, strict=True))
        for item, cloud in zip(self._clouds, piece.points, strict=True):
            x, y = item.getData()
            places = zip(_off_axis(piece.x, x), _off_axis(piece.y, y), strict=True)
            yield from ((cloud.name, float(x), float(y)) for x, y in places)
        for (item, error), bars in zip(self._bars, piece.bars, strict=True):
            heights = np.asarray(item.opts["height"])
            ends = [heights - error.opts["bottom"], heights + error.opts["top"]] if bars.low else []
            yield from ((bars.name, *point) for point in zip(piece.names, heights, *ends, strict=True))
        yield from self._shown_dots(piece)

    def _shown_dots(self, piece: marks.XYPlot) -> Iterator[tuple[Any, ...]]:
        x, y = self._dots.getData()
        first = len(x) - len(piece.dots)
        bars = [self._errors.opts[end] for end in ("bottom", "top")] if self._errors.isVisible() else [[], []]
        errors = iter(zip(*bars, strict=True))
        for dot, at, height in zip(piece.dots, x[first:], y[first:], strict=True):
            place, height = float(_off_axis(piece.x, at)), float(_off_axis(piece.y, height))
            below, above = next(errors) if dot.low == dot.low else (None, None)
            if dot.name or dot.label:
                where = piece.names[round(place)] if piece.names else place
                interval = () if below is None else (height - below, height + above)
                yield (" ".join(filter(None, (dot.name, dot.label))), where, height, *interval)

    def sizeHint(self) -> QSize:
        return QSize(320, 150)

    def mousePressEvent(self, ev: QMouseEvent) -> None:
        self._drag(ev)

    def mouseMoveEvent(self, ev: QMouseEvent) -> None:
        if ev.buttons() & Qt.MouseButton.LeftButton:
            self._drag(ev)
        self.pointed.emit(self._place(ev).x())

    def mouseReleaseEvent(self, ev: QMouseEvent) -> None:
        ev.accept()

    def leaveEvent(self, ev: QEvent) -> None:
        super().leaveEvent(ev)
        self.pointed.emit(math.nan)

    def _drag(self, ev: QMouseEvent) -> None:
        place = self._place(ev)
        self.dragged.emit(place.x(), place.y())

    def _place(self, ev: QMouseEvent) -> QPointF:
        place = self.getPlotItem().getViewBox().mapSceneToView(QPointF(ev.position()))
        return QPointF(10.0 ** place.x(), place.y()) if self.piece and self.piece.x.log else place

    def _scale(self, piece: marks.XYPlot) -> None:
        self.set_labels(x=piece.x.label, y=piece.y.label)
        item = self.getPlotItem()
        item.setAspectLocked(piece.equal)
        for side, axis in (("bottom", piece.x), ("left", piece.y)):
            item.getAxis(side).setTicks([_log_ticks(axis)] if axis.log else None)
            item.getAxis(side).setVisible(not piece.equal)
        if piece.names:
            item.getAxis("bottom").setTicks([list(enumerate(piece.names))])
        item.showGrid(x=not (piece.equal or piece.bars), y=not piece.equal, alpha=0.14)
        for set_range, axis in ((self.setXRange, piece.x), (self.setYRange, piece.y)):
            set_range(_at(axis, axis.low), _at(axis, axis.high), padding=0)

    def _rebuild(self, piece: marks.XYPlot) -> None:
        self.clear()
        self._shape = _shape(piece)
        self._regions = [self._new_region(region) for region in piece.regions]
        self._bands = [self._new_band(curve) for curve in piece.curves if curve.low is not None]
        self._curves = [self._new_curve(curve) for curve in piece.curves]
        self._clouds = [self._new_cloud(cloud) for cloud in piece.points]
        self._bars = [self._new_bars(bars) for bars in piece.bars]
        self._dots, self._errors = pg.ScatterPlotItem(pxMode=True), pg.ErrorBarItem(beam=0.0)
        self._cursor = pg.InfiniteLine(angle=90, pen=pg.mkPen(theme.color("text"), width=1, style=_DASHES))
        self._cursor.setZValue(-5)
        for item in (self._errors, self._dots, self._cursor):
            self.addItem(item, ignoreBounds=True)
        written = _written(piece) + sum(bool(dot.label) for dot in piece.dots)
        self._signs = [pg.TextItem(color=theme.color("secondary"), anchor=(0.5, 0.5)) for _ in range(written)]
        for label in self._signs:
            label.setFont(theme.pixel_font(theme.SMALL_PX))
            self.addItem(label, ignoreBounds=True)

    def _new_curve(self, curve: marks.Series) -> pg.PlotCurveItem:
        style = _DASHES if curve.dashed else Qt.PenStyle.SolidLine
        color = tone_color(curve.tone)
        item = pg.PlotCurveItem(pen=pg.mkPen(color, width=curve.width, style=style))
        if curve.filled:
            color.setAlphaF(FILL_ALPHA)
            item.setFillLevel(0.0)
            item.setBrush(color)
        self.addItem(item, ignoreBounds=True)
        return item

    def _new_band(self, curve: marks.Series) -> tuple[pg.PlotCurveItem, pg.PlotCurveItem]:
        ends = (pg.PlotCurveItem(pen=None), pg.PlotCurveItem(pen=None))
        color = tone_color(curve.tone)
        color.setAlphaF(BAND_ALPHA)
        between = pg.FillBetweenItem(*ends, brush=color)
        between.setZValue(-7)
        for item in (*ends, between):
            self.addItem(item, ignoreBounds=True)
        return ends

    def _new_cloud(self, cloud: marks.Points) -> pg.ScatterPlotItem:
        color = theme.color("unselected") if cloud.tone == "quiet" else tone_color(cloud.tone)
        item = pg.ScatterPlotItem(pxMode=True, size=cloud.size, pen=None, brush=color, tip=None)
        item.setZValue(-6)
        item.sigClicked.connect(self._choose_point)
        self.addItem(item, ignoreBounds=True)
        return item

    def _new_bars(self, bars: marks.Bars) -> tuple[pg.BarGraphItem, pg.ErrorBarItem]:
        item = pg.BarGraphItem(x=[], height=[], width=0.7, brush=tone_color(bars.tone), pen=None)
        error = pg.ErrorBarItem(beam=0.0, pen=pg.mkPen(theme.color("text"), width=1))
        for part in (item, error):
            self.addItem(part, ignoreBounds=True)
        return item, error

    def _choose_point(self, _item: pg.ScatterPlotItem, spots: list[pg.SpotItem]) -> None:
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

    def _fill(self, piece: marks.XYPlot) -> None:
        for item, curve in zip(self._curves, piece.curves, strict=True):
            x, y = _on_axis(piece.x, curve.x), _on_axis(piece.y, curve.y)
            item.setData(x, y, stepMode="center" if curve.stepped else None)
        banded = [curve for curve in piece.curves if curve.low is not None]
        for (low, high), curve in zip(self._bands, banded, strict=True):
            x = _on_axis(piece.x, curve.x)
            for end, values in ((low, curve.low), (high, curve.high)):
                if values is not None:
                    end.setData(x, _on_axis(piece.y, values))
        for (item, label), region in zip(self._regions, piece.regions, strict=True):
            item.setRegion((region.low, region.high))
            at_end = region.high >= piece.x.high
            label.setAnchor((1, 0) if at_end else (0.5, 0))
            label.setPos(region.high if at_end else (region.low + region.high) / 2, _at(piece.y, piece.y.high))
        for item, cloud in zip(self._clouds, piece.points, strict=True):
            x, y = _on_axis(piece.x, cloud.xy[:, 0]), _on_axis(piece.y, cloud.xy[:, 1])
            item.setData(x=x, y=y, data=cloud.ids)
        labels = iter(self._signs)
        self._fill_bars(piece, labels)
        self._fill_dots(piece, labels)
        self._cursor.setVisible(math.isfinite(piece.cursor))
        if math.isfinite(piece.cursor):
            self._cursor.setValue(_at(piece.x, piece.cursor))

    def _fill_bars(self, piece: marks.XYPlot, labels: Iterator[pg.TextItem]) -> None:
        wide = BARS_WIDE / max(len(piece.bars), 1)
        for place, ((item, error), bars) in enumerate(zip(self._bars, piece.bars, strict=True)):
            at = np.arange(len(bars.heights)) + (place - (len(piece.bars) - 1) / 2) * wide
            heights = np.asarray(bars.heights, dtype=np.float64)
            item.setOpts(x=at, height=heights, width=0.94 * wide)
            error.setVisible(bool(bars.low))
            if bars.low:
                low, high = np.asarray(bars.low), np.asarray(bars.high)
                error.setData(x=at, y=heights, top=high - heights, bottom=heights - low)
            if _written(piece):
                for x, top, height in zip(at, bars.high or bars.heights, heights, strict=True):
                    label = next(labels)
                    label.setText(marks.bar_text(height))
                    label.setAnchor((0.5, 1.0))
                    label.setPos(x, top)

    def _fill_dots(self, piece: marks.XYPlot, labels: Iterator[pg.TextItem]) -> None:
        self._dots.setData(spots=[_spot(piece, dot) for dot in (*_marked(piece), *piece.dots)])
        barred = [dot for dot in piece.dots if math.isfinite(dot.low)]
        self._errors.setVisible(bool(barred))
        if barred:
            x, y, low, high = np.array([(dot.x, dot.y, dot.low, dot.high) for dot in barred]).T
            pen = pg.mkPen(theme.color("secondary"), width=1)
            self._errors.setData(x=_on_axis(piece.x, x), y=y, top=high - y, bottom=y - low, pen=pen)
        for dot in piece.dots:
            if dot.label:
                label = next(labels)
                label.setText(dot.label)
                label.setPos(1.17 * dot.x, 1.17 * dot.y)


def card_column(card: QWidget, *head: QWidget) -> QVBoxLayout:
    """The column of a card under its head: a title, and last what takes the rest of the line."""
    line = QHBoxLayout()
    line.setSpacing(theme.INSIDE)
    for widget in head:
        line.addWidget(widget, 1 if widget is head[-1] else 0)
    column = QVBoxLayout(card)
    column.setContentsMargins(0, 0, 0, 0)
    column.setSpacing(theme.SPACE)
    column.addLayout(line)
    return column


class XYPlotCard(QWidget):
    """A plot under its title, with what its colors mean and what lies under the pointer."""

    def __init__(self, panel: str, key: str, parent: QWidget | None = None) -> None:
        super().__init__(parent, objectName=f"lab-{panel}-{key}")
        self.title, self.note = QLabel(), ElidedLabel()
        self.title.setTextFormat(Qt.TextFormat.PlainText)
        theme.set_role(self.title, "strong")
        theme.set_role(self.note, "small")
        self.legend, self.plot = Legend(), XYPlotWidget()
        self.plot.pointed.connect(self._tell)
        theme.theme().follow(self._tell_legend)
        column = card_column(self, self.title, self.note)
        column.addWidget(self.legend)
        column.addWidget(self.plot, 1)

    def show_plot(self, piece: marks.XYPlot) -> None:
        """Shows the piece."""
        self.plot.show_plot(piece)
        self.plot.setAccessibleName(piece.title)
        self.title.setText(piece.title)
        self._tell(math.nan)
        self._tell_legend()

    def _tell(self, x: float) -> None:
        piece = self.plot.piece
        if piece is None:
            return
        inside = piece.x.low <= x <= piece.x.high and not piece.equal and not piece.bars
        self.note.setText(read_at(piece, x) if inside else piece.note)

    def _tell_legend(self) -> None:
        piece = self.plot.piece
        if piece is None:
            return
        entries = [
            LegendEntry(c.name, tone_color(c.tone).name(), "dashes" if c.dashed else "line")
            for c in piece.curves
            if c.name
        ]
        entries += [LegendEntry(b.name, tone_color(b.tone).name(), "disc") for b in piece.bars if b.name]
        entries += [LegendEntry(p.name, tone_color(p.tone).name(), "disc") for p in piece.points if p.name]
        marks = {"disc": "disc", "ring": "disc", "diamond": "diamond"}
        for dot in piece.dots:
            entry = LegendEntry(dot.name, tone_color(dot.tone).name(), marks[dot.mark])
            if dot.name and entry not in entries:
                entries.append(entry)
        self.legend.show_entries(entries)
        self.legend.setVisible(len(entries) > 1)


def read_at(piece: marks.XYPlot, x: float) -> str:
    """What the curves say at x: `0.52: InfoNCE 3.1, InfoLOOB 14.3`."""
    parts = []
    for curve in piece.curves:
        if not len(curve.x) or not curve.x[0] <= x <= curve.x[-1]:
            continue
        if curve.stepped:
            y = float(curve.y[min(int(np.searchsorted(curve.x, x, side="right")) - 1, len(curve.y) - 1)])
        else:
            y = float(np.interp(x, curve.x, curve.y))
        parts.append(f"{curve.name} {y:.3g}")
    where = f"{x:,.0f}" if piece.x.low >= 1 else f"{x:.2f}"
    return f"{where}: {', '.join(parts)}".replace("-", "−")


def _shape(piece: marks.XYPlot) -> object:
    """What decides which items there are; the rest is their data."""
    curves = tuple((c.tone, c.dashed, c.width, c.filled, c.low is not None) for c in piece.curves)
    clouds, bars = tuple((c.tone, c.size) for c in piece.points), tuple(b.tone for b in piece.bars)
    signs = _written(piece) + sum(bool(d.label) for d in piece.dots)
    return curves, tuple(r.name for r in piece.regions), clouds, bars, signs


def _written(piece: marks.XYPlot) -> int:
    """How many bars have their number over them: all of them, or none where they are many."""
    bars = len(piece.bars) * len(piece.names)
    return bars if bars <= MOST_WRITTEN else 0


def _marked(piece: marks.XYPlot) -> list[marks.Marker]:
    """The points of the series that mark every one."""
    return [
        marks.Marker("", curve.tone, float(x), float(y), size=5)
        for curve in piece.curves
        if curve.marked
        for x, y in zip(curve.x, curve.y, strict=True)
    ]


def _spot(piece: marks.XYPlot, dot: marks.Marker) -> dict[str, object]:
    paint = tone_color(dot.tone)
    ring = dot.mark == "ring"
    return {
        "pos": (_at(piece.x, dot.x), _at(piece.y, dot.y)),
        "size": dot.size,
        "symbol": "d" if dot.mark == "diamond" else "o",
        "brush": None if ring else pg.mkBrush(paint),
        "pen": pg.mkPen(paint, width=2) if ring else pg.mkPen(theme.color("surface"), width=1),
    }


def _at(axis: marks.Axis, value: float) -> float:
    return math.log10(max(value, 1e-300)) if axis.log else value


def _on_axis(axis: marks.Axis, values: np.ndarray) -> np.ndarray:
    return np.log10(np.maximum(values, 1e-300)) if axis.log else np.asarray(values)


def _off_axis(axis: marks.Axis, values: Any) -> np.ndarray:
    return 10.0 ** np.asarray(values, np.float64) if axis.log else np.asarray(values, np.float64)


def _log_ticks(axis: marks.Axis) -> list[tuple[float, str]]:
    return [(math.log10(value), words) for value, words in axis.ticks()]
