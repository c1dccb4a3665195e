"""The measurements of the benchmark `map`: a real map, moved by mouse events."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyqtgraph as pg
from PySide6.QtCore import QEvent, QEventLoop, QPoint, QPointF, Qt, QTimer
from PySide6.QtGui import QMouseEvent, QPaintEvent, QWheelEvent
from PySide6.QtWidgets import QApplication, QHBoxLayout, QWidget

from explorer import theme
from explorer.widgets.point_map import PointMap, layer, rasterizer
from explorer.widgets.point_map.loading import load_kernels
from tests.benchmarks.cloud import Cloud, cloud, palette

MOUSE_MS: Final = 8
BEAT_MS: Final = 1
LONGEST_WAIT_S: Final = 120
LINKED_POINTS: Final = 1_000_000
STOCK_POINTS: Final = 1_000_000
CORNERS: Final = 200


class WatchedMap(PointMap):
    """A map that records when it is painted."""

    def __init__(self) -> None:
        super().__init__()
        self.paints: list[float] = []

    def paintEvent(self, ev: QPaintEvent) -> None:
        super().paintEvent(ev)
        self.paints.append(time.perf_counter())


class Drawing:
    """Counts images of the drawing threads, with the CPU time of each."""

    def __init__(self) -> None:
        self.cpu: list[float] = []
        self.sampled = 0

    @contextmanager
    def watched(self) -> Iterator[Drawing]:
        """Record while the context is active."""
        plain = rasterizer.draw

        def draw(request: rasterizer.RasterRequest) -> rasterizer.RasterImage:
            began = time.thread_time()
            picture = plain(request)
            self.cpu.append(time.thread_time() - began)
            self.sampled += picture.drawn < picture.visible
            return picture

        rasterizer.draw = draw
        try:
            yield self
        finally:
            rasterizer.draw = plain


def machine() -> dict[str, Any]:
    """Return the machine, and its load."""
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else None
    return {"processor": platform.machine(), "cores": os.cpu_count(), "load": load, "python": platform.python_version()}


def measure(points: int, *, size: tuple[int, int], seconds: float, stock: bool, pictures: str | None) -> dict[str, Any]:
    """Return all measurements of a map with this many points."""
    pg.setConfigOption("mouseRateLimit", -1)
    began = time.perf_counter()
    load_kernels()
    answer: dict[str, Any] = {"kernels_s": _round(time.perf_counter() - began)}
    data = cloud(points)
    shown = WatchedMap()
    shown.resize(*size)
    shown.show()
    _pass(0.2)
    answer |= _first_frame(shown, data)
    if pictures:
        _keep_pictures(shown, data, Path(pictures))
    answer |= _moved(shown, seconds)
    answer |= _asked(shown, data)
    answer |= _changed(shown, data)
    answer |= _at_4k(shown, seconds)
    shown.close()
    shown.deleteLater()
    answer |= _linked(cloud(min(points, LINKED_POINTS)), seconds)
    if stock:
        answer |= _stock(cloud(min(points, STOCK_POINTS)), size)
    return answer


def _first_frame(shown: WatchedMap, data: Cloud) -> dict[str, Any]:
    before, beats = _resident(), Beats()
    marks: dict[str, float] = {}
    shown.layer.indexed.connect(lambda: marks.setdefault("index", time.perf_counter()))
    shown.layer.framed.connect(lambda: marks.setdefault("frame", time.perf_counter()))
    shown.layer.framed.connect(lambda: marks.setdefault("drawn_first", shown.layer.frame.drawn))
    shown.layer.drawn.connect(lambda: marks.setdefault("exact", time.perf_counter()))
    began = time.perf_counter()
    with beats:
        shown.set_points(data.xy, diamond=data.text, color=data.cluster, palette=data.palette)
        at_once = time.perf_counter() - began
        _until(lambda: "exact" in marks and shown.paints[-1] > marks["exact"])
    first, exact = (next(paint for paint in shown.paints if paint > marks[mark]) - began for mark in ("frame", "exact"))
    _until_still(shown)
    grid = shown.layer.grid
    arrays = [grid.order, grid.start, grid.counts, grid.x, grid.y, shown.layer.arranged[1].ink]
    return {
        "index_s": _round(marks["index"] - began),
        "first_frame_s": _round(first),
        "first_frame_points": int(marks["drawn_first"]),
        "first_exact_frame_s": _round(exact),
        "set_points_ms": _round(1000 * at_once),
        "longest_gap_while_sorting_ms": _round(1000 * max(beats.gaps, default=0)),
        "bytes_a_point": _round(sum(array.nbytes for array in arrays) / len(data.xy)),
        "resident_bytes_a_point": _round((_resident() - before) / len(data.xy)),
    }


def _moved(shown: WatchedMap, seconds: float) -> dict[str, Any]:
    """Pan and zoom: gaps of the event loop, images, paints; sharp ones are rendered for the visible view."""
    answer: dict[str, Any] = {}
    gaps, frames, paints, cpu, sampled, gui, busy = [], 0, 0, [], 0, 0.0, 0.0
    gaps_of_paints: list[float] = []
    for name, hand in (("pan", _panning), ("zoom", _zooming)):
        shown.fit()
        _until_still(shown)
        shown.paints.clear()
        count: list[float] = []
        shown.layer.framed.connect(lambda count=count: count.append(time.perf_counter()))
        beats, drawing, began, used = Beats(), Drawing(), time.perf_counter(), time.thread_time()
        with beats, drawing.watched():
            hand(shown, seconds)
        took = time.perf_counter() - began
        answer[f"{name}_sharp_frames_per_s"] = _round(len(count) / took)
        answer[f"{name}_loop_gap_p95_ms"] = _round(1000 * float(np.percentile(beats.gaps, 95)))
        answer[f"{name}_frame_cpu_ms"] = _round(1000 * float(np.median(drawing.cpu)))
        gaps += beats.gaps
        gaps_of_paints += list(np.diff(shown.paints))
        frames, paints, sampled = frames + len(count), paints + len(shown.paints), sampled + drawing.sampled
        cpu += drawing.cpu
        gui, busy = gui + time.thread_time() - used, busy + took
    answer |= {
        "sharp_frames_per_s": _round(frames / busy),
        "loop_gap_median_ms": _round(1000 * float(np.median(gaps))),
        "loop_gap_p95_ms": _round(1000 * float(np.percentile(gaps, 95))),
        "loop_gap_max_ms": _round(1000 * float(np.max(gaps))),
        "paint_gap_median_ms": _round(1000 * float(np.median(gaps_of_paints))),
        "paint_gap_p95_ms": _round(1000 * float(np.percentile(gaps_of_paints, 95))),
        "paints_per_s": _round(paints / busy),
        "window_cpu_a_paint_ms": _round(1000 * gui / max(paints, 1)),
        "frame_cpu_ms": _round(1000 * float(np.median(cpu))),
        "share_of_frames_sampled": _round(sampled / max(len(cpu), 1)),
    }
    return answer | _every_point(shown, seconds)


def _every_point(shown: WatchedMap, seconds: float) -> dict[str, Any]:
    """Measure the same drag without a budget, where every point is read for every image."""
    shown.fit()
    _until_still(shown)
    budget, layer.MOVING_POINTS = layer.MOVING_POINTS, len(shown.layer.grid)
    drawing, began = Drawing(), time.perf_counter()
    try:
        with drawing.watched():
            _panning(shown, seconds)
    finally:
        layer.MOVING_POINTS = budget
    return {
        "every_point_frames_per_s": _round(len(drawing.cpu) / (time.perf_counter() - began)),
        "every_point_frame_cpu_ms": _round(1000 * float(np.median(drawing.cpu))),
    }


def _asked(shown: WatchedMap, data: Cloud) -> dict[str, Any]:
    """Measure hit tests under the pointer, and a lasso around half of the map."""
    rng = np.random.default_rng(1)
    spots = [shown.position(int(i)) for i in rng.integers(0, len(data.xy), 300)]
    hits = [_timed(lambda spot=spot: shown.pick(spot.x() + 3, spot.y() - 2)) for spot in spots]
    lassos = [_timed(lambda: shown.lasso(_outline(shown))) for _ in range(9)]
    return {
        "hit_test_ms": _round(1000 * float(np.median(hits))),
        "hit_test_p99_ms": _round(1000 * float(np.percentile(hits, 99))),
        "lasso_ms": _round(1000 * float(np.median(lassos))),
        "lasso_points": len(shown.lasso(_outline(shown))),
    }


def _changed(shown: WatchedMap, data: Cloud) -> dict[str, Any]:
    """Measure dimming, colors and theme: how long the window is blocked, and until they are visible."""
    half = np.zeros(len(data.xy), bool)
    half[::2] = True
    dark = {"light": "dark", "dark": "light"}
    changes: dict[str, Callable[[], object]] = {
        "select_half": lambda: shown.set_selected(half),
        "recolor": lambda: shown.set_colors(data.cluster[::-1].copy(), data.palette),
        "theme": lambda: setattr(theme.theme(), "mode", dark[theme.theme().mode]),
    }
    answer = {}
    for name, change in changes.items():
        beats = Beats()
        with beats:
            began = time.perf_counter()
            change()
            held = time.perf_counter() - began
            _until_still(shown)
        answer[f"{name}_held_ms"] = _round(1000 * max(held, max(beats.gaps, default=0)))
        answer[f"{name}_seen_ms"] = _round(1000 * (shown.paints[-1] - began))
    changes["theme"]()
    shown.set_selected(None)
    _until_still(shown)
    return answer


def _at_4k(shown: WatchedMap, seconds: float) -> dict[str, Any]:
    """Measure at 3840 x 2160: half the resolution while moving, full when still."""
    size = shown.size()
    shown.resize(3840, 2160)
    _pass(0.3)
    _until_still(shown)
    rest = (shown.layer.frame.image.width(), shown.layer.frame.image.height())
    widths: list[int] = []
    shown.layer.framed.connect(lambda: widths.append(shown.layer.frame.image.width()))
    shown.paints.clear()
    beats, began = Beats(), time.perf_counter()
    with beats:
        _panning(shown, max(seconds / 2, 1))
    took, moving = time.perf_counter() - began, len(widths)
    _until_still(shown)
    answer = {
        "uhd_frames_per_s": _round(moving / took),
        "uhd_loop_gap_median_ms": _round(1000 * float(np.median(beats.gaps))),
        "uhd_loop_gap_p95_ms": _round(1000 * float(np.percentile(beats.gaps, 95))),
        "uhd_paints_per_s": _round(len(shown.paints) / took),
        "uhd_width_while_moving": min(widths, default=0),
        "uhd_width_at_rest": rest[0],
    }
    shown.resize(size)
    _pass(0.3)
    _until_still(shown)
    return answer


def _linked(data: Cloud, seconds: float) -> dict[str, Any]:
    """Measure two linked maps: one is dragged and the other follows; a lasso reaches both."""
    both = QWidget()
    row = QHBoxLayout(both)
    a, b = WatchedMap(), WatchedMap()
    for shown in (a, b):
        row.addWidget(shown, 1)
    both.resize(1600, 900)
    both.show()
    for shown, xy in ((a, data.xy), (b, data.xy[:, ::-1].copy())):
        shown.set_points(xy, diamond=data.text, color=data.cluster, palette=data.palette)
        _until_still(shown)
    link = lambda: b.box.setRange(rect=a.box.viewRect(), padding=0)  # noqa: E731
    a.view_changed.connect(link)
    for shown in (a, b):
        shown.paints.clear()
    beats, began = Beats(), time.perf_counter()
    with beats:
        _panning(a, seconds)
    took = time.perf_counter() - began
    a.view_changed.disconnect(link)
    paints = [len(shown.paints) for shown in (a, b)]
    selecting = []
    for _ in range(5):
        began = time.perf_counter()
        mask = np.zeros(len(data.xy), bool)
        mask[a.lasso(_outline(a))] = True
        for shown in (a, b):
            shown.set_selected(mask)
        for shown in (a, b):
            _until_still(shown)
        selecting.append(max(a.paints[-1], b.paints[-1]) - began)
    answer = {
        "linked_points": len(data.xy),
        "linked_paints_per_s": _round(min(paints) / took),
        "linked_loop_gap_median_ms": _round(1000 * float(np.median(beats.gaps))),
        "linked_loop_gap_p95_ms": _round(1000 * float(np.percentile(beats.gaps, 95))),
        "lasso_to_linked_ms": _round(1000 * float(np.median(selecting))),
    }
    both.close()
    both.deleteLater()
    return answer


def _stock(data: Cloud, size: tuple[int, int]) -> dict[str, Any]:
    """Measure pyqtgraph's scatter plot of the same points in one color: creating it, and painting it once moved."""
    began = time.perf_counter()
    plot = pg.PlotWidget()
    plot.resize(*size)
    plot.addItem(pg.ScatterPlotItem(data.xy[:, 0], data.xy[:, 1], size=3, pen=None, pxMode=True))
    plot.show()
    plot.grab()
    made = time.perf_counter() - began
    box, frames = plot.getViewBox(), []
    for _ in range(5):
        box.translateBy(x=0.05, y=0.02)
        frames.append(_timed(plot.grab))
    plot.close()
    plot.deleteLater()
    return {
        "stock_points": len(data.xy),
        "stock_first_frame_s": _round(made),
        "stock_frame_ms": _round(1000 * float(np.median(frames))),
    }


# Hands and clocks -----------------------------------------------------------------------------------------------


class Beats:
    """Measures the time between iterations of the event loop."""

    def __init__(self) -> None:
        self.gaps: list[float] = []

    def __enter__(self) -> Beats:
        self._last = time.perf_counter()
        self._timer = QTimer(interval=BEAT_MS, timerType=Qt.TimerType.PreciseTimer)
        self._timer.timeout.connect(self._beat)
        self._timer.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._timer.stop()

    def _beat(self) -> None:
        now = time.perf_counter()
        self.gaps.append(now - self._last)
        self._last = now


def _panning(shown: WatchedMap, seconds: float) -> None:
    """Drag the map around, with 125 moves per second like a mouse."""
    middle = QPointF(shown.width() / 2, shown.height() / 2)
    left, none = Qt.MouseButton.LeftButton, Qt.MouseButton.NoButton
    began = time.perf_counter()

    def place() -> QPointF:
        turn = 2.0 * (time.perf_counter() - began)
        return middle + QPointF(0.3 * shown.width() * np.sin(turn), 0.25 * shown.height() * np.sin(1.7 * turn))

    _send(shown, QEvent.Type.MouseButtonPress, place(), left, left)
    _every(MOUSE_MS, seconds, lambda: _send(shown, QEvent.Type.MouseMove, place(), none, left))
    _send(shown, QEvent.Type.MouseButtonRelease, place(), left, none)


def _zooming(shown: WatchedMap, seconds: float) -> None:
    """Zoom in tenfold within a second, and out again, around a position."""
    place = QPointF(shown.width() * 0.55, shown.height() * 0.45)
    began = time.perf_counter()

    def turn() -> None:
        step = 16 if (time.perf_counter() - began) % 2 < 1 else -16
        event = QWheelEvent(
            place,
            QPointF(shown.viewport().mapToGlobal(place)),
            QPoint(0, 0),
            QPoint(0, step),
            Qt.MouseButton.NoButton,
            Qt.KeyboardModifier.NoModifier,
            Qt.ScrollPhase.NoScrollPhase,
            False,
        )
        QApplication.sendEvent(shown.viewport(), event)

    _every(2 * MOUSE_MS, seconds, turn)


def _send(shown: WatchedMap, kind: QEvent.Type, place: QPointF, button: Any, held: Any) -> None:
    across = shown.viewport().mapToGlobal(place)
    event = QMouseEvent(kind, place, across, button, held, Qt.KeyboardModifier.NoModifier)
    QApplication.sendEvent(shown.viewport(), event)


def _every(interval: int, seconds: float, call: Callable[[], object]) -> None:
    timer = QTimer(interval=interval, timerType=Qt.TimerType.PreciseTimer)
    timer.timeout.connect(call)
    timer.start()
    _pass(seconds)
    timer.stop()


def _pass(seconds: float) -> None:
    loop = QEventLoop()
    QTimer.singleShot(round(1000 * seconds), loop.quit)
    loop.exec()


def _until(there: Callable[[], bool]) -> None:
    began = time.perf_counter()
    while not there():
        if time.perf_counter() - began > LONGEST_WAIT_S:
            raise TimeoutError("the map did not answer")
        QApplication.processEvents(QEventLoop.ProcessEventsFlag.AllEvents, 5)
        time.sleep(0.0005)


def _until_still(shown: WatchedMap) -> None:
    """Wait until the map has painted everything requested, with every point read."""
    _until(lambda: shown.layer.still)
    painted = len(shown.paints)
    shown.viewport().update()
    _until(lambda: len(shown.paints) > painted)


def _outline(shown: WatchedMap) -> np.ndarray:
    """Return a wavy outline of 200 corners around the center half of the view."""
    view = shown.box.viewRect()
    turn = np.linspace(0, 2 * np.pi, CORNERS, endpoint=False)
    wave = 1 + 0.2 * np.sin(7 * turn)
    x = view.center().x() + 0.3 * view.width() * wave * np.cos(turn)
    return np.stack([x, view.center().y() + 0.3 * view.height() * wave * np.sin(turn)], axis=1)


def _keep_pictures(shown: WatchedMap, data: Cloud, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for mode in ("dark", "light"):
        theme.theme().mode = mode
        shown.set_colors(data.cluster, palette())
        _until_still(shown)
        shown.grab().save(str(folder / f"map-{len(data.xy)}-{mode}.png"))


def _timed(call: Callable[[], object]) -> float:
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def _resident() -> int:
    import psutil

    return psutil.Process().memory_info().rss


def _round(value: float) -> float:
    return float(f"{value:.3g}") if abs(value) < 100 else round(value)
