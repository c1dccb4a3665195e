"""One plot of the lab on the screen: the pieces of `trainer.charts.lab`, redrawn in place as sliders move."""

from __future__ import annotations

import math

import numpy as np
import pyqtgraph as pg
from PySide6.QtCore import QEvent, QPointF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QMouseEvent
from PySide6.QtWidgets import QHBoxLayout, QLabel, QVBoxLayout, QWidget

from explorer import theme
from explorer.widgets.elided_label import ElidedLabel
from explorer.widgets.legend import Legend, LegendEntry
from explorer.widgets.plot import Plot
from trainer.charts.lab import pieces

LEAST_HEIGHT = 118
_CLASSES = {"first": 2, "second": 3, "third": 6, "fourth": 7}
"""Places among the class colours: the first two are blue and orange, which mean runs A and B."""


def tone_colour(tone: pieces.Tone) -> QColor:
    """The colour of a series in the theme as it is now."""
    if tone in _CLASSES:
        return QColor(theme.class_colours(8)[_CLASSES[tone]])
    if tone in ("run_a", "run_b"):
        return theme.colour(tone)
    return theme.colour("bad" if tone == "bad" else "outline")


class LabPlot(Plot):
    """Curves, bars, dots and shaded ranges over axes that stay where they are.

    Signals:
        dragged: Where the pointer is pressed or dragged, in units of the axes.
        pointed: The x under the pointer, NaN when it has left.
    """

    dragged = Signal(float, float)
    pointed = Signal(float)

    def __init__(self, parent: QWidget | None = None) -> None:
        self.piece: pieces.Plot | None = None
        self._shape: object = None
        self._curves: list[pg.PlotCurveItem] = []
        self._regions: list[tuple[pg.LinearRegionItem, pg.TextItem]] = []
        self._signs: list[pg.TextItem] = []
        self._dots = self._bars = self._cursor = self._cloud = None
        super().__init__(parent)
        self.getPlotItem().setMouseEnabled(x=False, y=False)
        self.setMouseTracking(True)
        self.setMinimumHeight(LEAST_HEIGHT)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)

    def show_plot(self, piece: pieces.Plot) -> None:
        """Draws the piece; items that are there already only get their new data."""
        before, self.piece = self.piece, piece
        if before is None or (before.x, before.y, before.equal) != (piece.x, piece.y, piece.equal):
            self._scale(piece)
        if self._shape != _shape(piece):
            self._rebuild(piece)
        self._fill(piece)

    def recolour(self) -> None:
        super().recolour()
        if self.piece is not None:
            self._rebuild(self.piece)
            self._fill(self.piece)

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

    def _scale(self, piece: pieces.Plot) -> None:
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

    def _rebuild(self, piece: pieces.Plot) -> None:
        self.clear()
        self._shape = _shape(piece)
        self._regions = [self._new_region(region) for region in piece.regions]
        self._curves = [self._new_curve(curve) for curve in piece.curves]
        self._bars = pg.BarGraphItem(x=[], height=[], width=0.7, brush=tone_colour("first"), pen=None)
        self._cloud = pg.ScatterPlotItem(pxMode=True, size=4, pen=None, brush=theme.colour("unselected"))
        self._cloud.setZValue(-6)
        self._dots = pg.ScatterPlotItem(pxMode=True)
        self._cursor = pg.InfiniteLine(angle=90, pen=pg.mkPen(theme.colour("text"), width=1, style=_DASHES))
        self._cursor.setZValue(-5)
        for item in (self._cloud, self._bars, self._dots, self._cursor):
            self.addItem(item, ignoreBounds=True)
        written = len(piece.bars) + sum(bool(dot.label) for dot in piece.dots)
        self._signs = [pg.TextItem(color=theme.colour("secondary"), anchor=(0.5, 0.5)) for _ in range(written)]
        for label in self._signs:
            label.setFont(theme.pixel_font(theme.SMALL_PX))
            self.addItem(label, ignoreBounds=True)

    def _new_curve(self, curve: pieces.Curve) -> pg.PlotCurveItem:
        style = Qt.PenStyle.DashLine if curve.dashed else Qt.PenStyle.SolidLine
        item = pg.PlotCurveItem(pen=pg.mkPen(tone_colour(curve.tone), width=curve.width, style=style))
        self.addItem(item, ignoreBounds=True)
        return item

    def _new_region(self, region: pieces.Region) -> tuple[pg.LinearRegionItem, pg.TextItem]:
        ground = tone_colour("bad")
        ground.setAlphaF(0.12)
        item = pg.LinearRegionItem((region.low, region.high), movable=False, brush=ground, pen=pg.mkPen(None))
        item.setZValue(-10)
        label = pg.TextItem(region.name, color=tone_colour("bad"), anchor=(0.5, 0))
        label.setFont(theme.pixel_font(theme.SMALL_PX))
        for part in (item, label):
            self.addItem(part, ignoreBounds=True)
        return item, label

    def _fill(self, piece: pieces.Plot) -> None:
        for item, curve in zip(self._curves, piece.curves, strict=True):
            x = np.log10(curve.x) if piece.x.log else curve.x
            y = np.log10(np.maximum(curve.y, 1e-300)) if piece.y.log else curve.y
            item.setData(x, y, stepMode="center" if curve.stepped else None)
        for (item, label), region in zip(self._regions, piece.regions, strict=True):
            item.setRegion((region.low, region.high))
            at_end = region.high >= piece.x.high
            label.setAnchor((1, 0) if at_end else (0.5, 0))
            label.setPos(region.high if at_end else (region.low + region.high) / 2, _at(piece.y, piece.y.high))
        self._bars.setOpts(x=list(range(len(piece.bars))), height=list(piece.bars))
        if piece.cloud is not None:
            self._cloud.setData(*piece.cloud.T)
        self._fill_dots(piece)
        self._cursor.setVisible(math.isfinite(piece.cursor))
        if math.isfinite(piece.cursor):
            self._cursor.setValue(_at(piece.x, piece.cursor))

    def _fill_dots(self, piece: pieces.Plot) -> None:
        self._dots.setData(spots=[_spot(dot) for dot in piece.dots])
        labels = iter(self._signs)
        for place, height in enumerate(piece.bars):
            label = next(labels)
            label.setText(f"{height:.3f}")
            label.setAnchor((0.5, 1.0))
            label.setPos(place, height)
        for dot in piece.dots:
            if dot.label:
                label = next(labels)
                label.setText(dot.label)
                label.setPos(1.17 * dot.x, 1.17 * dot.y)


_DASHES = Qt.PenStyle.DashLine


class PlotCard(QWidget):
    """A plot under its title, with what its colours mean and what lies under the pointer."""

    def __init__(self, panel: str, key: str, parent: QWidget | None = None) -> None:
        super().__init__(parent, objectName=f"lab-{panel}-{key}")
        self.title, self.note = QLabel(), ElidedLabel()
        self.title.setTextFormat(Qt.TextFormat.PlainText)
        theme.set_role(self.title, "strong")
        theme.set_role(self.note, "small")
        self.legend, self.plot = Legend(), LabPlot()
        self.plot.pointed.connect(self._tell)
        theme.theme().follow(self._tell_legend)
        head = QHBoxLayout()
        head.setSpacing(theme.INSIDE)
        head.addWidget(self.title)
        head.addWidget(self.note, 1)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(theme.SPACE)
        column.addLayout(head)
        column.addWidget(self.legend)
        column.addWidget(self.plot, 1)

    def show_plot(self, piece: pieces.Plot) -> None:
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
            LegendEntry(c.name, tone_colour(c.tone).name(), "dashes" if c.dashed else "line")
            for c in piece.curves
            if c.name
        ]
        marks = {"disc": "disc", "ring": "disc", "diamond": "diamond"}
        for dot in piece.dots:
            entry = LegendEntry(dot.name, tone_colour(dot.tone).name(), marks[dot.mark])
            if dot.name and entry not in entries:
                entries.append(entry)
        self.legend.show_entries(entries)
        self.legend.setVisible(len(entries) > 1)


def read_at(piece: pieces.Plot, x: float) -> str:
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


def _shape(piece: pieces.Plot) -> object:
    """What decides which items there are; the rest is their data."""
    curves = tuple((c.tone, c.dashed, c.width) for c in piece.curves)
    return curves, tuple(r.name for r in piece.regions), len(piece.bars), sum(bool(d.label) for d in piece.dots)


def _spot(dot: pieces.Dot) -> dict[str, object]:
    paint = tone_colour(dot.tone)
    ring = dot.mark == "ring"
    return {
        "pos": (dot.x, dot.y),
        "size": dot.size,
        "symbol": "d" if dot.mark == "diamond" else "o",
        "brush": None if ring else pg.mkBrush(paint),
        "pen": pg.mkPen(paint, width=2) if ring else pg.mkPen(theme.colour("surface"), width=1),
    }


def _at(axis: pieces.Axis, value: float) -> float:
    return math.log10(value) if axis.log else value


def _log_ticks(axis: pieces.Axis) -> list[tuple[float, str]]:
    return [(math.log10(value), words) for value, words in axis.ticks()]
