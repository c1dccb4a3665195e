"""Curves of several runs over one axis, the logged values faint under smoothed ones, with a crosshair readout."""

from __future__ import annotations

import html
import math
from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np
import pyqtgraph as pg
from jaxtyping import Float
from msgspec import Struct
from PySide6.QtCore import QEvent, QPoint, QPointF, Qt, Signal
from PySide6.QtGui import QContextMenuEvent, QKeyEvent, QResizeEvent
from PySide6.QtWidgets import QFrame, QLabel, QVBoxLayout, QWidget

from explorer.event_loop.idle_scheduler import idle_scheduler
from explorer.theme import BETWEEN, INSIDE, SPACE, color, set_role, stroke, theme
from explorer.theme import faint as faint_of
from explorer.widgets import layouts
from explorer.widgets.accessible import announce
from explorer.widgets.elided_label import ElidedLabel, heading
from explorer.widgets.end_labels import MOST, EndLabel, EndLabels, give_room
from explorer.widgets.legend import Legend, LegendEntry
from explorer.widgets.plot import Plot
from explorer.widgets.wrapped_label import WrappedLabel
from trainer.charts.marks import CURVE_SYMBOLS, CURVE_SYMBOLS_SPARSE, Axis, axis_over

FEW_POINTS = 20
SYMBOLS = {"disc": ("o", 5), "square": ("s", 7), "triangle": ("t1", 9), "diamond": ("d", 10)}
"""Of pyqtgraph, with their sizes in pixels."""
"""Up to here every point gets a mark: a line through three evaluations must not look like three hundred."""
MOST_IN_LEGEND = 24
"""Curves that are too many for names at their ends have a legend; of more it would take the room of the plot."""
PANEL_WIDTH = 340
PANEL_HEIGHT = 210
HIGHEST = 1.0
"""Of its width, how high a panel becomes where there is room."""
ASPECT = 1.6
"""Width over height of a panel, as near as the room allows."""
SHARE_PAD = 1.5
"""Percent beyond 0 and 100 that an axis of shares may show."""
LEAST_SHARES = 10.0
"""Percent that an axis of shares spans at least: the first value of a training is no magnified 0.1."""
LEFT_PX = 44
"""Width of every left axis, or that of the widest number: of linked plots a wider one would hide the first steps."""
PREPARED = 4
NO_LABEL = Axis("", 0.0, 1.0)
"""The unit of a panel stands beside its title."""
ZOOMS = {Qt.Key.Key_Plus: 0.8, Qt.Key.Key_Equal: 0.8, Qt.Key.Key_Minus: 1.25}
STEPS = {Qt.Key.Key_Left: -1, Qt.Key.Key_Right: 1}


class CurveLine(Struct, frozen=True):
    """One curve."""

    key: int  # Tells it from the others of the panel and stays while its data grow.
    name: str  # For the crosshair.
    color: str  # `#rrggbb`.
    x: Float[np.ndarray, " n"]  # Ascending.
    raw: Float[np.ndarray, " n"]  # As logged.
    smooth: Float[np.ndarray, " n"]  # Drawn strongly over `raw`; `raw` itself where nothing is smoothed.
    # Strokes and gaps in line widths, by which it is told from others without its color; empty for solid.
    dash: tuple[float, ...] = ()
    symbol: int = 0  # Place in `CURVE_SYMBOLS`.


class CurvePlotData(Struct, frozen=True):
    """The curves of one quantity, which have their own vertical axis."""

    key: str  # Tells it from the other panels.
    title: str  # The quantity, and what sets the panel apart from another of the same quantity.
    unit: str  # Of the vertical axis; empty for a pure number.
    digits: int  # Decimals of a value read off the panel.
    lines: tuple[CurveLine, ...]  # May be empty: the panel then waits for the first value.
    waiting: str = "Waiting for the first step"  # What it says meanwhile.
    percent: bool = False  # The values are shares: there is no negative recall, and none above 100.
    until: float = -math.inf
    """Where the horizontal axis ends at least, the last step of a run that trains."""
    about: str = ""  # What stands behind the unit: n, or the chance level.
    axis: str = ""  # Panels of the same one share the range of their horizontal axis.


class UnitLabel(ElidedLabel):
    """A unit and what stands behind it, which the tool tip has where both do not fit: a part of a number is none."""

    unit = ""  # What is painted then.

    @property
    def elided(self) -> str:
        return self.text() if super().elided == self.text() else self.unit


def _span_of_constant(lines: Sequence[CurveLine]) -> float | None:
    """Return the length of the vertical axis if all values are equal, as in a file; None: by the values."""
    axis = axis_over("", [line.raw for line in lines])
    span = axis.high - axis.low
    values = [line.raw[np.isfinite(line.raw)] for line in lines]
    return span if len({*np.concatenate([*values, np.zeros(0)]).tolist()}) == 1 else None


class CurvePlot(QWidget):
    """One curve plot."""

    hovered = Signal(float)  # The x under the pointer, or NaN when it has left.
    zoomed = Signal()  # The person dragged the plot, or turned the wheel over it with Ctrl.
    reset_asked = Signal()  # The person clicked it twice.
    # The person wants a menu: where on the screen, and the point of each curve there.
    menu_asked = Signal(QPoint, object)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.panel: CurvePlotData | None = None
        self._curves: dict[int, tuple[pg.PlotDataItem, ...]] = {}
        self._spare: list[tuple[pg.PlotDataItem, ...]] = []
        self.title = heading()
        self.unit = UnitLabel()  # cut before the title is
        set_role(self.unit, "small")
        self.plot = Plot(self)
        self.plot.setMinimumHeight(PANEL_HEIGHT - 30)
        self.plot.getViewBox().setMouseEnabled(x=True, y=False)
        self.axis = self.plot.getPlotItem().getAxis("left")
        self.axis.setWidth(LEFT_PX)
        self.axis.outgrown.connect(self.axis.setWidth)
        self.plot.enableAutoRange(x=False, y=True)
        self.plot.setAutoVisible(y=True)
        self.plot.getViewBox().sigRangeChangedManually.connect(lambda _: self.zoomed.emit())
        self.plot.reset_asked.connect(self.reset_asked)
        self.plot.scene().sigMouseMoved.connect(self._moved)
        self.plot.viewport().installEventFilter(self)
        self.plot.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.plot.installEventFilter(self)
        self.names = EndLabels(self.plot)
        self._cross = pg.InfiniteLine(angle=90, movable=False)
        self._cross.hide()
        self.plot.addItem(self._cross, ignoreBounds=True)
        self._build()
        theme().follow(self._recolor)
        self._recolor()

    def drawing(self, panel: CurvePlotData) -> Iterator[None]:
        """Draw `panel`, with a yield after each curve; existing curves only receive new data."""
        self.panel = panel
        self.title.setText(panel.title)
        self.unit.unit = panel.unit
        self.unit.setText(f"{panel.unit}  {panel.about}".strip())
        self.plot.setAccessibleName(" ".join(filter(None, (panel.title, panel.unit, panel.about))))
        # A point at 0 or 100 is drawn as a whole; without one at 0 the axis begins there.
        lowest = min((np.nanmin(line.raw, initial=100.0) for line in panel.lines), default=0.0)
        low, high = (-SHARE_PAD * (lowest < SHARE_PAD), 100 + SHARE_PAD) if panel.percent else (None, None)
        span = LEAST_SHARES if panel.percent else _span_of_constant(panel.lines)
        self.plot.setLimits(yMin=low, yMax=high, minYRange=span, maxYRange=None if panel.percent else span)
        drawn = any(len(line.x) for line in panel.lines)
        self.waiting.setText(panel.waiting)
        self.waiting.setVisible(not drawn)
        for side in ("left", "bottom"):
            # Numbers on the axes of nothing would be made up.
            self.plot.getPlotItem().getAxis(side).setStyle(showValues=drawn)
        self._put_aside(set(self._curves) - {line.key for line in panel.lines})
        for line in panel.lines:
            self._draw(line)
            yield
        lines = [line for line in panel.lines if len(line.x)]
        ends = [f"{line.name}: {line.smooth[-1]:.{panel.digits}f} at {line.x[-1]:g}" for line in lines]
        self.plot.setAccessibleDescription("; ".join(ends) or panel.waiting)
        named = [EndLabel(line.name, line.color, *end) for line in lines if (end := _end_of(line)) is not None]
        self.names.show_labels(named)
        rest = lines if MOST < len(named) <= MOST_IN_LEGEND else []
        self.legend.show_entries([LegendEntry(line.name, line.color, "line", line.dash) for line in rest])
        self.legend.setVisible(bool(rest))
        self._fit_legend()

    def rest(self) -> None:
        """Clear the panel and hide until needed again."""
        self.hide()
        self.point_at(math.nan)
        self.plot.setXLink(None)
        self.plot.enableAutoRange(x=False, y=True)
        self._put_aside(set(self._curves))
        self.panel = None

    def _put_aside(self, keys: set[int]) -> None:
        """Hide curves and keep their items for reuse, because removing and creating one takes a millisecond each."""
        for key in keys:
            items = self._curves.pop(key)
            self._spare.append(items)
            for item in items:
                item.hide()
                item.clear()

    def curve(self, key: int) -> tuple[pg.PlotDataItem, ...] | None:
        """Return the raw and the smoothed curve, and its symbols, as pyqtgraph items."""
        return self._curves.get(key)

    def point_at(self, x: float) -> None:
        """Move the crosshair to `x` and read every curve there; NaN removes it."""
        if math.isnan(x) or self.panel is None:
            self._cross.hide()
            self.readout.hide()
            return
        self._cross.setValue(x)
        self._cross.show()
        rows = [(line, read_at(line, x)) for line in self.panel.lines]
        texts = [self._words(line, point) for line, point in rows if point is not None]
        self.readout.setText("<br>".join(texts))
        self.readout.setVisible(bool(texts))
        self._place_readout(x)

    # -- drawing -----------------------------------------------------------------------------------------------

    def _draw(self, line: CurveLine) -> None:
        if line.key not in self._curves:
            self._curves[line.key] = self._spare.pop() if self._spare else tuple(map(self._new_item, range(3)))
        raw, smooth, points = self._curves[line.key]
        smooth.show()
        faint, strong = faint_of(color(line.color)), color(line.color)
        same = line.raw is line.smooth
        raw.setData(line.x, line.raw)
        raw.setPen(pg.mkPen(faint, width=stroke(1)))
        raw.setVisible(not same)
        smooth.setData(line.x, line.smooth)
        pen = pg.mkPen(strong, width=stroke(2))
        pen.setCapStyle(Qt.PenCapStyle.RoundCap)  # square ends of single strokes stick out at the corners
        if line.dash:
            pen.setCapStyle(Qt.PenCapStyle.FlatCap)
            pen.setDashPattern(line.dash)
        # Single strokes would each begin with a dash.
        smooth.curve.setSegmentedLineMode("off" if line.dash else "on")
        smooth.setPen(pen)
        symbol, size_px = SYMBOLS[name := CURVE_SYMBOLS[line.symbol % len(CURVE_SYMBOLS)]]
        # The first experiment has a symbol where points are few, the others everywhere.
        each = max(1, len(line.x) // CURVE_SYMBOLS_SPARSE) if len(line.x) > FEW_POINTS else 1
        rows = slice(0, 0 if name == "disc" and each > 1 else None, each)
        points.setData(line.x[rows], line.smooth[rows], pen=None, symbol=symbol, symbolSize=size_px)
        points.setVisible(len(line.x[rows]) > 0)
        points.setSymbolBrush(strong)
        points.setSymbolPen(None)

    def _new_item(self, height: int) -> pg.PlotDataItem:
        # One sample a pixel instead of five: a dense curve is drawn as its extremes, and costs what a sparse one does.
        # Raw values are a pale line of one pixel: smoothed over two rows it could not be seen.
        item = pg.PlotDataItem(connect="finite", autoDownsampleFactor=1.0, antialias=height > 0)
        item.setZValue(height)
        # As single strokes: the outline of a thick path of noise takes Qt 30 times as long.
        item.curve.setSegmentedLineMode("on")
        self.plot.addItem(item)
        # After adding: a PlotItem gives what is added its own modes, which are off.
        item.setDownsampling(auto=True, method="peak")
        item.setClipToView(True)
        return item

    def _recolor(self) -> None:
        self._cross.setPen(pg.mkPen(color("secondary"), width=1, style=Qt.PenStyle.DashLine))

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.names.setGeometry(self.plot.rect())
        self._fit_legend()

    def _fit_legend(self) -> None:
        self.legend.setFixedHeight(self.legend.heightForWidth(self.width()))

    # -- reading off -------------------------------------------------------------------------------------------

    def eventFilter(self, watched: QWidget, event: QEvent) -> bool:
        if event.type() == QEvent.Type.Leave:
            self.hovered.emit(math.nan)
        if watched is self.plot and event.type() == QEvent.Type.KeyPress and isinstance(event, QKeyEvent):
            return self._take_key(Qt.Key(event.key()))
        return super().eventFilter(watched, event)

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        """Ask for a menu at the point under the pointer; by the menu key, at the crosshair."""
        box, x = self.plot.getViewBox(), self._cross.value()
        where = self.plot.mapToScene(self.plot.mapFrom(self, event.pos()))
        if event.reason() == QContextMenuEvent.Reason.Mouse and box.sceneBoundingRect().contains(where):
            x = box.mapSceneToView(where).x()
        elif not self._cross.isVisible():
            return
        lines = self.panel.lines if self.panel else ()
        points = {line.key: point[0] for line in lines if (point := read_at(line, x)) is not None}
        if points:
            self.menu_asked.emit(event.globalPos(), points)

    def _take_key(self, key: Qt.Key) -> bool:
        """Read the next point of every curve for left and right; plus and minus zoom, 0 shows all."""
        box = self.plot.getViewBox()
        if key in ZOOMS:
            box.scaleBy(x=ZOOMS[key])
            self.zoomed.emit()
        elif key == Qt.Key.Key_0:
            self.reset_asked.emit()
        elif key in STEPS and self.panel is not None and (x := self._next_x(STEPS[key])) is not None:
            self.hovered.emit(x)
            rows = [(line.name, read_at(line, x)) for line in self.panel.lines]
            values = [f"{name} {point[1]:.{self.panel.digits}f}" for name, point in rows if point is not None]
            announce(self.plot, f"{x:,.0f}: {', '.join(values)}")
        else:
            return False
        return True

    def _next_x(self, direction: int) -> float | None:
        series = [line.x for line in self.panel.lines if len(line.x)] if self.panel is not None else []
        if not series:
            return None
        xs = np.unique(np.concatenate(series))
        if not self._cross.isVisible():
            return float(xs[0 if direction > 0 else -1])
        now = self._cross.value()
        beyond = xs[xs > now] if direction > 0 else xs[xs < now][::-1]
        return float(beyond[0]) if len(beyond) else float(np.clip(now, xs[0], xs[-1]))

    def _moved(self, where: QPointF) -> None:
        box = self.plot.getViewBox()
        inside = box.sceneBoundingRect().contains(where)
        self.hovered.emit(box.mapSceneToView(where).x() if inside else math.nan)

    def _words(self, line: CurveLine, point: tuple[float, float]) -> str:
        digits = self.panel.digits if self.panel else 3
        unit = f" {self.panel.unit}" if self.panel and self.panel.unit else ""
        # Names are a person's words: escaped, because this label does read HTML.
        return (
            f'<span style="color:{line.color}">\u25cf</span> {html.escape(line.name)}&nbsp;&nbsp;'
            f"<b>{point[1]:.{digits}f}{unit}</b>"
        )

    def _place_readout(self, x: float) -> None:
        """Keep the readout inside the plot, opposite to the crosshair and away from curves."""
        self.readout.adjustSize()
        box, room = self.plot.getViewBox(), self.plot.geometry()
        (left, right), (low, high) = box.viewRange()
        middle = (left + right) / 2
        to_the_right = x < middle
        axis = int(self.plot.getPlotItem().getAxis("left").width())
        beside = room.right() - self.readout.width() - INSIDE if to_the_right else room.left() + axis + INSIDE
        halves = [line.smooth[(line.x > middle) == to_the_right] for line in self.panel.lines] if self.panel else []
        heights = np.concatenate(halves) if halves else np.zeros(0)
        heights = heights[np.isfinite(heights)]
        upper = not len(heights) or heights.mean() < (low + high) / 2
        ground = int(self.plot.getPlotItem().getAxis("bottom").height())
        below = room.bottom() - ground - self.readout.height() - INSIDE
        self.readout.move(beside, room.top() + INSIDE if upper else below)
        self.readout.raise_()

    def _build(self) -> None:
        self.legend = Legend()
        self.legend.hide()
        self.waiting = WrappedLabel(parent=self.plot)
        set_role(self.waiting, "secondary")
        self.waiting.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.waiting.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        centered = QVBoxLayout(self.plot)
        centered.addWidget(self.waiting)
        self.readout = QLabel(self, textFormat=Qt.TextFormat.RichText, objectName="curve-readout")
        self.readout.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self.readout.setFrameShape(QFrame.Shape.StyledPanel)
        self.readout.setProperty("role", "raised")
        self.readout.setContentsMargins(INSIDE, SPACE, INSIDE, SPACE)
        self.readout.hide()
        layouts.column(layouts.row(self.title, (self.unit, 1)), (self.plot, 1), self.legend, gap=SPACE, of=self)


class CurveGrid(QWidget):
    """A grid of plots, as many per row as fit, with a shared horizontal axis and crosshair."""

    drawn = Signal()  # Every curve of the panels last shown is.
    paused = Signal(bool)  # Whether a part of the curves is looked at that does not grow with them.
    menu_asked = Signal(QPoint, object)  # As that of a plot.

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._plots: dict[str, CurvePlot] = {}
        self._order: tuple[str, ...] = ()
        self._axes: tuple[str, ...] = ()
        self._columns = self._room = 0
        self._left: float = LEFT_PX
        self._zoomed = False
        self._spare: list[CurvePlot] = []
        self._work: Iterator[None] | None = None
        self._next: Iterator[None] | None = None
        # A plot takes 30 ms to make: one in a turn beforehand, or the first click on a run would be felt.
        idle_scheduler().later(self, self._prepare, unseen=True)
        self._grid = layouts.grid(BETWEEN, BETWEEN, of=self)

    @property
    def plots(self) -> dict[str, CurvePlot]:
        """The visible plots by key."""
        return dict(self._plots)

    @property
    def is_complete(self) -> bool:
        """Whether every curve of the panels last shown is drawn."""
        return self._work is None and self._next is None

    def show_panels(self, panels: Sequence[CurvePlotData], x: Axis) -> None:
        """Draw `panels` in this order over an axis like `x`; existing ones keep their zoom.

        Many curves take several turns of the event loop. Of panels that come meanwhile the newest are drawn after that.
        """
        self._next = self.showing(tuple(panels), x)
        if self._work is None:
            self._go_on()

    def _go_on(self) -> None:
        while self._work is not None or self._next is not None:
            if self._work is None:
                self._work, self._next = self._next, None
            try:
                for _ in self._work or ():
                    if idle_scheduler().is_full:
                        idle_scheduler().later(self, self._go_on)
                        return
            except Exception:
                # What failed is not gone on with: the next panels are drawn.
                self._work = None
                raise
            self._work = None

    def showing(self, panels: Sequence[CurvePlotData], x: Axis) -> Iterator[None]:
        """Draw `panels` as `show_panels` does, and yield where the rest can wait."""
        order, before = tuple(panel.key for panel in panels), self._order
        axes = tuple(panel.axis for panel in panels)
        for key in set(self._plots) - set(order):
            gone = self._plots.pop(key)
            # A change of size may come between two turns: it lays out the panels that are left.
            self._order = tuple(other for other in self._order if other != key)
            self._grid.removeWidget(gone)
            gone.rest()
            self._spare.append(gone)
            yield
        for panel in panels:
            if panel.key not in self._plots:
                if not self._spare:
                    self._spare.append(self._new_plot())
                    yield
                self._plots[panel.key] = self._spare.pop()
            yield from self._plots[panel.key].drawing(panel)
            self._plots[panel.key].plot.set_axes(x, NO_LABEL)
        if order != before:
            self._order, self._columns = order, 0
        if order != before or axes != self._axes:
            self._axes = axes
            self._link()
        if not self._zoomed:
            self._show_all()
        self._arrange()
        for curve_plot in self._plots.values():
            curve_plot.show()  # now that it has its cell: before, it would lie over the first one
        self._bound()
        self.drawn.emit()

    def reset_zoom(self) -> None:
        """Show all of every curve, also as they grow."""
        self._zoomed = False
        self.paused.emit(False)
        for curve_plot in self._plots.values():
            curve_plot.plot.enableAutoRange(x=False, y=True)
        self._show_all()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._arrange()
        self._bound()

    def fill(self, height: int) -> None:
        """Arrange the panels for as much room as there is below each other."""
        self._room = height
        self._arrange()
        self._bound()

    def _bound(self) -> None:
        """Keep the panels from becoming columns on a large screen, and the names of curves from taking a small one."""
        if self._order and self._columns:
            rows = -(-len(self._order) // self._columns)
            most = max(PANEL_HEIGHT, round(HIGHEST * self.width() / self._columns))
            self.setMaximumHeight(rows * (most + BETWEEN) - BETWEEN)
        for members in self._by_axis():
            give_room([each.names for each in members], self.width() // max(self._columns, 1))

    def _prepare(self) -> None:
        if len(self._spare) + len(self._plots) < PREPARED:
            self._spare.append(self._new_plot())
            idle_scheduler().later(self, self._prepare, unseen=True)

    def _new_plot(self) -> CurvePlot:
        curve_plot = CurvePlot(self)
        curve_plot.hide()
        curve_plot.axis.setWidth(self._left)
        curve_plot.axis.outgrown.connect(self._widen)
        curve_plot.hovered.connect(self._point_at)
        curve_plot.zoomed.connect(self._keep_zoom)
        curve_plot.reset_asked.connect(self.reset_zoom)
        curve_plot.menu_asked.connect(self.menu_asked)
        return curve_plot

    def _widen(self, left: float) -> None:
        """Give all left axes the width that one needs."""
        self._left = max(self._left, left)
        for curve_plot in (*self._plots.values(), *self._spare):
            curve_plot.axis.setWidth(self._left)

    def _keep_zoom(self) -> None:
        self._zoomed = True
        self.paused.emit(True)

    def _show_all(self) -> None:
        """Show the range of all panels of an axis; linked axes would follow the first panel's curves only."""
        for members in self._by_axis():
            panels = [curve_plot.panel for curve_plot in members if curve_plot.panel is not None]
            ends = [(line.x[0], line.x[-1]) for panel in panels for line in panel.lines if len(line.x)]
            if ends:
                first = min(a for a, _ in ends)
                last = max([*(b for _, b in ends), *(panel.until for panel in panels)])
                members[0].plot.setXRange(first, last if last > first else first + 1, padding=0.02)

    def _by_axis(self) -> list[list[CurvePlot]]:
        """Return the panels in their order, those of one horizontal axis together."""
        members: dict[str, list[CurvePlot]] = {}
        for key in self._order:
            panel = self._plots[key].panel
            members.setdefault(panel.axis if panel is not None else "", []).append(self._plots[key])
        return list(members.values())

    def _point_at(self, x: float) -> None:
        for curve_plot in self._plots.values():
            curve_plot.point_at(x)

    def _link(self) -> None:
        """Link the horizontal axes of panels, so that they zoom together; Tab goes through them in their order."""
        for first, *others in self._by_axis():
            first.plot.setXLink(None)
            for other in others:
                other.plot.setXLink(first.plot)
        for before, after in pairwise(self._plots[key].plot for key in self._order):
            QWidget.setTabOrder(before, after)

    def _arrange(self) -> None:
        columns = columns_for(len(self._order), self.width(), self._room)
        if columns == self._columns:
            return
        self._columns = columns
        for index, key in enumerate(self._order):
            self._grid.addWidget(self._plots[key], index // columns, index % columns)
        for column in range(self._grid.columnCount()):
            self._grid.setColumnStretch(column, 1 if column < columns else 0)
        rows = -(-len(self._order) // columns) if self._order else 0
        for row in range(self._grid.rowCount()):
            self._grid.setRowMinimumHeight(row, PANEL_HEIGHT if row < rows else 0)
            self._grid.setRowStretch(row, 1 if row < rows else 0)


def _end_of(line: CurveLine) -> tuple[float, float] | None:
    """Return where the last finite value of a line is drawn; None where it has none."""
    finite = np.flatnonzero(np.isfinite(line.smooth))
    return (float(line.x[finite[-1]]), float(line.smooth[finite[-1]])) if len(finite) else None


def columns_for(panels: int, width: int, height: int) -> int:
    """Return in how many columns panels fill a width and a height best: nearest to `ASPECT`, with even rows."""
    fitting = range(1, max(1, min(panels, width // PANEL_WIDTH)) + 1)
    even = {-(-panels // -(-panels // columns)) for columns in fitting if panels}

    def unlike(columns: int) -> float:
        high = max(PANEL_HEIGHT, height / -(-panels // columns))
        return abs(math.log(width / columns / high / ASPECT))

    return min(sorted(even), key=unlike, default=1)


def read_at(line: CurveLine, x: float) -> tuple[float, float] | None:
    """Return the point of the smoothed curve nearest to `x`; None for an empty curve."""
    if not len(line.x):
        return None
    after = int(np.searchsorted(line.x, x))
    near = [i for i in (after - 1, after) if 0 <= i < len(line.x)]
    nearest = min(near, key=lambda i: abs(line.x[i] - x))
    return float(line.x[nearest]), float(line.smooth[nearest])
