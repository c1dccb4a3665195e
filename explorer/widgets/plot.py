"""A pyqtgraph plot styled by the theme."""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from typing import Any, Final

import pyqtgraph as pg
from PySide6.QtCore import QRectF, Qt, Signal
from PySide6.QtGui import QFontMetrics, QMouseEvent, QWheelEvent
from PySide6.QtWidgets import QGraphicsItem, QWidget

from explorer import theme
from explorer.widgets.accessible import present
from explorer.widgets.deferred_paint import DeferredPaint
from explorer.widgets.plot_controls import do_without_menus
from trainer.analysis.number_text import tick_texts, whole
from trainer.charts.marks import Axis

pg.setConfigOptions(antialias=True, useOpenGL=False)
do_without_menus()


LEAST_WORDS_PX: Final = 40
"""An axis that is shorter has not been laid out yet."""
FIRST_TICK_PX: Final = 24, 16
"""What most tick labels take: until they are drawn, two plots side by side would else have their axes apart."""
EDGE_PX: Final = 18
"""Beyond its axis that a number may reach: pyqtgraph leaves out those at the ends, such as 100.0 %."""
LINE_PX: Final = theme.SMALL_PX + 4
"""From one number of a vertical axis to the next, at least."""


class _Axis(pg.AxisItem):
    """An axis whose title wraps to its room, without tick labels while its plot is empty: they look like results.

    Attributes:
        words: Its label; `names` are those of categories at 0, 1, 2...
        integer: Its ticks stand at whole numbers only.
        percent: It has none below 0 and above 100.
    """

    outgrown = Signal(float)  # A number needs this width, and would be left out in the fixed one.

    def __init__(self, *args: Any, **options: Any) -> None:
        self.words = ""
        self.names: tuple[str, ...] = ()
        self.integer = self.percent = False
        super().__init__(*args, **options)
        self.textWidth, self.textHeight = FIRST_TICK_PX

    def setLabel(self, text: str | None = None, *args: Any, **options: Any) -> None:
        """Set the label as pyqtgraph does, in two lines where one has no room."""
        self.words = text or ""
        super().setLabel(text, *args, **options)
        self._elide()

    def labelString(self) -> str:
        """Return the label as HTML, in which the text stands as it is: names of files and arms get here."""
        text = str(self.labelText)  # type: ignore[has-type]
        self.labelText = html.escape(text).replace("\n", "<br>")
        try:
            return super().labelString()
        finally:
            self.labelText = text

    def show_names(self, names: Sequence[str]) -> None:
        """Write the names of categories instead of numbers."""
        self.names = tuple(names)
        self._elide()

    def boundingRect(self) -> QRectF:
        x, y = (EDGE_PX, 0) if self.orientation in ("top", "bottom") else (0, EDGE_PX)
        return super().boundingRect().adjusted(-x, -y, x, y)

    def resizeEvent(self, ev: Any = None) -> None:
        self._elide()
        super().resizeEvent(ev)

    def _elide(self) -> None:
        along = self.orientation in ("top", "bottom")
        room = int(self.size().width() if along else self.size().height())
        metrics = QFontMetrics(theme.pixel_font(theme.SMALL_PX))
        if self.words and room > LEAST_WORDS_PX:
            lines = self.words, *_halves(self.words)
            lines = lines[:1] if metrics.horizontalAdvance(self.words) <= room else lines[1:]
            before, right = str(self.labelText).count("\n"), Qt.TextElideMode.ElideRight
            self.labelText = "\n".join(metrics.elidedText(line, right, room) for line in lines)
            self.label.setHtml(self.labelString())
            self.label.setTextWidth(-1)
            if len(lines) - 1 != before:
                self._adjustSize()
        if self.names:
            each = max(0, room // len(self.names) - theme.SPACE)
            middle = Qt.TextElideMode.ElideMiddle
            cut = [
                "\n".join(metrics.elidedText(line, middle, each) for line in name.split("\n")) for name in self.names
            ]
            self.setTicks([list(enumerate(cut if along and room > LEAST_WORDS_PX else self.names))])

    def tickSpacing(self, low: float, high: float, size: float) -> list[tuple[float, float]]:
        """Return what pyqtgraph does, but no numbers that touch: it writes two even where there is room for one.

        An axis of integers has ticks at whole numbers only.
        """
        levels = super().tickSpacing(low, high, size)
        if levels and self.integer:
            levels = [level for level in levels if level[0] >= 1] or [(1.0, 0.0)]
        number_px = LINE_PX
        if levels and self.orientation in ("top", "bottom"):
            longest = whole(max(abs(low), abs(high)))
            number_px = QFontMetrics(theme.pixel_font(theme.SMALL_PX)).horizontalAdvance(longest) + theme.INSIDE
        if not levels or (levels[0][0] < 1 and number_px != LINE_PX):
            return levels
        (step, offset), least = levels[0], number_px * abs(high - low) / max(size, 1.0)
        while step < least:
            step *= 2 if math.log10(step) % 1 < 0.2 or math.log10(step) % 1 > 0.6 else 2.5
        return [(step, offset), *(level for level in levels[1:] if level[0] < step)]

    def tickValues(self, low: float, high: float, size: float) -> list[tuple[float, list[float]]]:
        levels = super().tickValues(low, high, size)
        return [(step, [at for at in ticks if not self.percent or 0 <= at <= 100]) for step, ticks in levels]

    def tickStrings(self, values: list[float], scale: float, spacing: float) -> list[str]:
        view = self.linkedView()
        if view is not None and not any(_shows(item) for item in view.childGroup.childItems()):
            return [""] * len(values)
        long = {"most": 12} if self.orientation in ("top", "bottom") else {}
        return tick_texts([value * scale for value in values], **long)

    def _updateMaxTextSize(self, x: float) -> None:
        """Compute the space for tick labels from the current ticks alone; pyqtgraph also considers earlier ones."""
        self.textWidth = self.textHeight = 0
        if self.names and self.orientation in ("top", "bottom"):
            lines = 1 + max(name.count("\n") for name in self.names)
            # pyqtgraph takes a fifth off each line.
            x = max(x, lines * QFontMetrics(theme.pixel_font(theme.SMALL_PX)).lineSpacing() if lines > 1 else 0)
        super()._updateMaxTextSize(max(theme.SMALL_PX, 8 * math.ceil(x / 8)))
        if self.fixedWidth is not None and (needed := self.textWidth + theme.INSIDE) > self.fixedWidth:
            self.outgrown.emit(needed)


def _halves(text: str) -> list[str]:
    """Return the text in two lines, about equally long; in one where it has no space."""
    spaces = [at for at, letter in enumerate(text) if letter == " "]
    middle = min(spaces, key=lambda at: abs(2 * at - len(text)), default=len(text))
    return list(filter(None, (text[:middle], text[middle + 1 :])))


def _shows(item: QGraphicsItem) -> bool:
    """Return whether a plot item has something to show; a curve keeps its data in children."""
    if not item.isVisible():
        return False
    return not item.boundingRect().isEmpty() or any(_shows(child) for child in item.childItems())


class Plot(DeferredPaint, pg.PlotWidget):
    """A plot whose axes follow the theme: Inter with tabular figures, a faint grid, no pyqtgraph menu.

    The wheel scrolls the page that the plot stands on; with Ctrl it zooms where the plot can be zoomed. Subclasses
    paint their curves in `recolor`, which is called again whenever the theme changes.
    """

    reset_asked = Signal()  # A double click: all of the plot is to be seen again.

    def __init__(self, parent: QWidget | None = None) -> None:
        axes = {side: _Axis(side) for side in ("bottom", "left")}
        # Its menu would be 43 widgets that nobody ever sees, and most of the time that a plot takes to be made.
        super().__init__(parent, background=theme.color("surface"), axisItems=axes, enableMenu=False)
        self.defer_painting()
        # Dropped images belong to the window, whatever they are dropped on.
        self.setAcceptDrops(False)
        # Tab stops only where keys do something: a subclass that takes some says so.
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        present(self, "Chart")
        self._labels = {"bottom": "", "left": ""}
        item = self.getPlotItem()
        item.setMenuEnabled(False)
        item.getViewBox().setMenuEnabled(False)
        item.hideButtons()
        item.setContentsMargins(0, theme.SPACE + 2, EDGE_PX, 0)
        self.setFrameShape(pg.PlotWidget.Shape.NoFrame)
        for side in ("bottom", "left"):
            axis = item.getAxis(side)
            axis.setStyle(tickLength=0, tickTextOffset=6, maxTickLevel=0)
            axis.setTickFont(theme.pixel_font(theme.SMALL_PX))
        item.showGrid(x=True, y=True, alpha=0.14)
        self.recolor()
        theme.theme().follow(self.recolor)

    def set_axes(self, x: Axis, y: Axis) -> None:
        """Label the axes and set the kind of their ticks; their ranges stay."""
        for side, axis in (("bottom", x), ("left", y)):
            self._labels[side] = axis.label
            ticks = self.getPlotItem().getAxis(side)
            ticks.integer, ticks.percent = axis.integer, axis.percent
        self._label()

    def inputMethodQuery(self, query: Qt.InputMethodQuery) -> Any:
        """Return what a widget without a cursor does: a page then scrolls to all of the plot, not to a line of it."""
        return QWidget.inputMethodQuery(self, query)

    def wheelEvent(self, ev: QWheelEvent) -> None:
        if ev.modifiers() & Qt.KeyboardModifier.ControlModifier:
            super().wheelEvent(ev)
        else:
            ev.ignore()

    def mouseDoubleClickEvent(self, ev: QMouseEvent) -> None:
        super().mouseDoubleClickEvent(ev)
        self.reset_asked.emit()

    def recolor(self) -> None:
        """Apply the theme's current colors."""
        self.forget_painted()
        self.setBackground(theme.color("surface"))
        for side in ("bottom", "left"):
            axis = self.getPlotItem().getAxis(side)
            axis.setPen(pg.mkPen(theme.color("outline"), width=1))
            axis.setTextPen(pg.mkPen(theme.color("secondary")))
        self._label()

    def _label(self) -> None:
        if not self.accessibleName():
            self.setAccessibleName(" over ".join(filter(None, (self._labels["left"], self._labels["bottom"]))))
        style = {"color": theme.color("secondary").name(), "font-size": f"{theme.SMALL_PX}px"}
        for side, text in self._labels.items():
            axis = self.getPlotItem().getAxis(side)
            if text:
                # enableAutoSIPrefix(False) alone still scales: a second call shows 0.4 as 400 (pyqtgraph 0.14).
                axis.setLabel(text, siPrefixEnableRanges=((0.0, 0.0),), **style)
                axis.enableAutoSIPrefix(False)
            else:
                axis.showLabel(False)
