"""Density contours of a map of many points, each around a share of the visible points."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from jaxtyping import Float
from msgspec import Struct
from PySide6.QtCore import QObject, QPointF, Signal
from PySide6.QtGui import QColor, QPainter, QPen, QPolygonF

from explorer.theme import color, theme
from explorer.widgets.point_map.layer import PointLayer
from explorer.widgets.point_map.scene import MapScene
from explorer.widgets.point_map.worker import Worker

SHARES: Final = (0.9, 0.7, 0.5, 0.3, 0.1)
"""Each line is around the densest places that together hold this share of the points in sight."""
CELL_PX: Final = 6
"""Size of a cell of the density that the lines are drawn through, in device pixels."""
SPREAD: Final = (2.2, 16.0)
"""Least and greatest standard deviation of the smoothing, in cells; it is wider where points are few."""
SCOTT: Final = ((2e3, 0.95), (1e5, 0.5))
"""Points, and the share of Scott's width for so many; between them by the logarithm of the points."""
FROM: Final = 1_500
"""Fewer points in sight are marks that can be told apart: lines over them would only be in the way."""


class Lines(Struct, frozen=True):
    """Polylines in map coordinates, those of the first share first."""

    of: tuple[tuple[Float[np.ndarray, "m 2"], ...], ...] = ()


class Contours(QObject):
    """The contours of one map; hidden until `set_shown`, and while few points are visible."""

    arrived = Signal()  # Lines for what is in sight now are drawn.

    def __init__(self, layer: PointLayer, parent: QObject) -> None:
        super().__init__(parent)
        self._layer = layer
        self.shown = self._busy = self._again = False
        self.lines = Lines()
        self._worker = Worker(self)
        layer.drawn.connect(self._ask)
        layer.indexed.connect(self._forget)
        layer.add_overlay(self._paint)

    def set_shown(self, visible: bool) -> None:
        """Show or hide the lines."""
        self.shown = visible
        self._layer.keep_density(visible)
        self._forget()

    def _forget(self) -> None:
        self.lines = Lines()
        self._layer.update()

    def _ask(self) -> None:
        frame = self._layer.frame
        if not self.shown or frame is None or frame.density is None:
            return
        if self._busy:
            self._again = True
            return
        density, sight = frame.density, frame.sight
        if frame.visible < FROM or float(density.sum()) < FROM:
            self._forget()
            return
        self._busy = True
        box = (sight.left, sight.bottom, sight.right, sight.top)
        self._worker.do(lambda: _attempt(density, box), self._show)

    def _show(self, lines: Lines | Exception) -> None:
        self._busy = False
        if isinstance(lines, Exception):
            raise lines
        if self.shown:
            self.lines = lines
            self._layer.update()
            self.arrived.emit()
        if self._again:
            self._again = False
            self._ask()

    def _paint(self, painter: QPainter, scene: MapScene) -> None:
        if not self.lines.of:
            return
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        for level, lines in enumerate(self.lines.of):
            pen = QColor(color("text"))
            pen.setAlphaF((0.42 if theme().dark else 0.34) + 0.1 * level)
            painter.setPen(QPen(pen, 1.0))
            for line in lines:
                painter.drawPolyline(QPolygonF([QPointF(x, y) for x, y in scene.to_pixels(line).tolist()]))
        painter.restore()


def _attempt(density: np.ndarray, box: tuple[float, float, float, float]) -> Lines | Exception:
    """Return the lines, or the error; later requests continue either way."""
    try:
        return lines_of(density, box)
    except Exception as error:
        return error


def lines_of(
    density: Float[np.ndarray, "h w"],
    box: tuple[float, float, float, float],
    *,
    shares: Sequence[float] = SHARES,
    cell: int = CELL_PX,
    spread: float | None = None,
) -> Lines:
    """Return contours of a smoothed density, each around the densest cells that contain a share of the points.

    Args:
        density: Points per pixel, the first row on top.
        box: Left, bottom, right, top of the map that the pixels show.
        shares: Of the points inside each line, decreasing.
        cell: Pixels that are counted together, along a side.
        spread: Standard deviation of the Gaussian smoothing, in cells; None: by the number of points (`spread_of`).
    """
    from contourpy import contour_generator

    counts = counted(density, cell)
    cells = smoothed(counts, spread_of(counts) if spread is None else spread)
    levels = levels_of(cells, shares)
    left, bottom, right, top = box
    height, width = density.shape
    # Of the middles of the cells; one that sticks out at the right or below counts as whole.
    x = left + (np.arange(cells.shape[1]) + 0.5) * cell * (right - left) / width
    y = top - (np.arange(cells.shape[0]) + 0.5) * cell * (top - bottom) / height
    generator = contour_generator(x, y, cells)
    return Lines(tuple(tuple(generator.lines(level)) if level > 0 else () for level in levels))


def spread_of(cells: Float[np.ndarray, "h w"]) -> float:
    """Return a share of Scott's rule for a plane, in cells: the points' mean deviation times n^(-1/6).

    Half of it for very many, because they are in many groups and not in one (Scott, Multivariate Density Estimation,
    1992). Nearly all of it for some thousands: lines that follow single points tell nothing of where the others are.
    """
    n = float(cells.sum())
    if n <= 0:
        return SPREAD[0]
    deviations = []
    for axis in (0, 1):
        share, positions = cells.sum(axis=1 - axis) / n, np.arange(cells.shape[axis])
        middle = float(share @ positions)
        deviations.append(float(np.sqrt(share @ (positions - middle) ** 2)))
    share = np.interp(np.log(n), *zip(*((np.log(points), part) for points, part in SCOTT), strict=True))
    return float(np.clip(share * np.mean(deviations) * n ** (-1 / 6), *SPREAD))


def counted(density: Float[np.ndarray, "h w"], cell: int) -> Float[np.ndarray, "rows columns"]:
    """Return sums over square cells; incomplete cells are padded with zeros."""
    height, width = density.shape
    padded = np.pad(density.astype(np.float64), ((0, -height % cell), (0, -width % cell)))
    rows, columns = padded.shape[0] // cell, padded.shape[1] // cell
    return padded.reshape(rows, cell, columns, cell).sum(axis=(1, 3))


def smoothed(cells: Float[np.ndarray, "h w"], spread: float) -> Float[np.ndarray, "h w"]:
    """Apply a Gaussian blur; what moves over the edge is lost."""
    reach = int(np.ceil(3 * spread))
    kernel = np.exp(-0.5 * (np.arange(-reach, reach + 1) / spread) ** 2)
    kernel /= kernel.sum()
    padded = np.pad(cells, reach)
    across = sum(weight * padded[:, i : i + cells.shape[1]] for i, weight in enumerate(kernel))
    return sum(weight * across[i : i + cells.shape[0]] for i, weight in enumerate(kernel))


def levels_of(cells: Float[np.ndarray, "h w"], shares: Sequence[float]) -> list[float]:
    """Return for each share the greatest level whose denser cells contain that share of all; 0 if empty."""
    dense = np.sort(cells, axis=None)[::-1]
    held = dense.cumsum()
    if not held[-1] > 0:
        return [0.0] * len(shares)
    indices = np.searchsorted(held, np.asarray(shares) * held[-1])
    return [float(dense[min(index, len(dense) - 1)]) for index in indices]
