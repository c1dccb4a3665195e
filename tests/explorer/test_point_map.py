"""The point map against brute force, one pixel at a time, and under a real mouse."""

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator

import numpy as np
import pyqtgraph as pg
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from PySide6.QtCore import QEvent, QPoint, QPointF, Qt
from PySide6.QtGui import QColor, QMouseEvent
from PySide6.QtWidgets import QApplication

from explorer import theme
from explorer.widgets.point_map import PointMap, rasterizer
from explorer.widgets.point_map import grid as grid_module
from explorer.widgets.point_map import layer as layer_module
from explorer.widgets.point_map.grid import PointGrid, winding
from explorer.widgets.point_map.layer import PointLayer
from explorer.widgets.point_map.loading import load_kernels
from explorer.widgets.point_map.point_map import FEW
from tests.explorer.widgets import show_widget

pytestmark = pytest.mark.slow  # whichever test needs the kernels first has them compiled by a process

PALETTE = np.array([[200, 30, 30], [30, 160, 60], [40, 60, 220]], np.uint8)

places = arrays(
    np.float32,
    st.tuples(st.integers(0, 60), st.just(2)),
    elements=st.floats(-3, 3, width=16) | st.sampled_from([np.nan, np.inf]),
)
corners = arrays(np.float64, st.tuples(st.integers(3, 12), st.just(2)), elements=st.floats(-4, 4, width=16))


@pytest.mark.slow
@given(xy=places, polygon=corners)
@example(xy=np.array([[0, 2.6e-22], [0, 0]], np.float32), polygon=np.ones((3, 2)))
def test_lasso_is_brute_force(xy: np.ndarray, polygon: np.ndarray):
    exact = xy.astype(np.float64)
    with np.errstate(invalid="ignore"):
        expected = np.flatnonzero(np.isfinite(exact).all(axis=1) & (winding(exact, polygon) != 0))
    assert PointGrid(xy).in_polygon(polygon).tolist() == expected.tolist()


@pytest.mark.slow
@given(xy=places, corner=st.tuples(*[st.floats(-4, 4)] * 4))
def test_rectangle_is_brute_force(xy: np.ndarray, corner: tuple[float, float, float, float]):
    left, right = sorted(corner[:2])
    bottom, top = sorted(corner[2:])
    x, y = xy.astype(np.float64).T
    expected = np.flatnonzero((x >= left) & (x <= right) & (y >= bottom) & (y <= top))
    assert PointGrid(xy).in_rectangle(left, bottom, right, top).tolist() == expected.tolist()


@pytest.mark.slow
@given(xy=places, x=st.floats(-4, 4), y=st.floats(-4, 4), reach=st.floats(0.01, 3))
def test_nearest_is_brute_force(xy: np.ndarray, x: float, y: float, reach: float):
    exact = xy.astype(np.float64)
    distance = np.hypot(exact[:, 0] - x, exact[:, 1] - y)
    distance[~np.isfinite(distance)] = np.inf
    found = PointGrid(xy).nearest(x, y, reach=(reach, reach))
    if found < 0:
        assert not (distance < reach * (1 - 1e-9)).any()
    else:
        assert distance[found] <= reach * (1 + 1e-9)
        assert distance[found] == pytest.approx(distance.min())


@pytest.mark.parametrize("rounds", [1, 2])
def test_large_lasso_agrees_with_every_point_tested(rounds: int):
    """60,000 points fill cells that are decided as a whole; two rounds enclose the center twice."""
    xy = np.random.default_rng(3).normal(size=(60_000, 2)).astype(np.float32)
    turn = np.linspace(0, rounds * 2 * np.pi, 150)
    star = np.stack([np.cos(turn), np.sin(turn)], axis=1) * (1 + 0.3 * np.cos(3.5 * turn))[:, None]
    expected = np.flatnonzero(winding(xy.astype(np.float64), star) != 0)
    assert np.array_equal(PointGrid(xy).in_polygon(star), expected)
    assert 1_000 < len(expected) < 59_000


def test_overshooting_lasso_leaves_no_hole():
    twice = np.array([[0, 0], [2, 0], [2, 2], [0, 2], [0, 0], [2, 0], [2, 2], [0, 2]], np.float64)
    assert PointGrid(np.array([[1.0, 1.0], [3.0, 1.0]])).in_polygon(twice).tolist() == [0]


@pytest.fixture(scope="module")
def kernels() -> None:
    load_kernels()


@pytest.mark.slow
@given(xy=places | places.map(lambda xy: xy.astype(np.float64)), polygon=corners)
@example(xy=np.array([[0, 2.6e-22], [0, 0]], np.float32), polygon=np.ones((3, 2)))
def test_compiled_lasso_is_brute_force(kernels: None, xy: np.ndarray, polygon: np.ndarray):
    exact = xy.astype(np.float64)
    with np.errstate(invalid="ignore"):
        expected = np.flatnonzero(np.isfinite(exact).all(axis=1) & (winding(exact, polygon) != 0))
    grid = PointGrid(xy, kernels=load_kernels())
    assert grid.in_polygon(polygon).tolist() == expected.tolist()


@pytest.mark.slow
@given(xy=places, x=st.floats(-4, 4), y=st.floats(-4, 4), reach=st.floats(0.01, 3), hidden=st.integers(0, 5))
@example(xy=np.array([[0, 1e-32]] + 15 * [[1e-32, 1e-32]], np.float32), x=0.0, y=0.0, reach=1.0, hidden=0)
def test_compiled_picking_is_brute_force(kernels: None, xy: np.ndarray, x: float, y: float, reach: float, hidden: int):
    exact = xy.astype(np.float64)
    distance = np.hypot(exact[:, 0] - x, exact[:, 1] - y)
    allowed = np.arange(len(xy)) >= hidden
    distance[~np.isfinite(distance) | ~allowed] = np.inf
    grid = PointGrid(xy, kernels=load_kernels())
    found = grid.nearest(x, y, reach=(reach, reach), allowed=allowed)
    if found < 0:
        assert not (distance < reach * (1 - 1e-9)).any()
    else:
        assert distance[found] == pytest.approx(distance.min())


def test_picking_far_from_zero_is_exact(kernels: None):
    """Sorted positions are rounded to 32 bits; 100,000 points within a millionth of each other must stay exact."""
    rng = np.random.default_rng(5)
    xy = 1e6 + rng.random((100_000, 2)) * 1e-2
    xy[0] = 0
    grid = PointGrid(xy, kernels=load_kernels())
    for place in xy[rng.integers(1, len(xy), 40)]:
        assert np.array_equal(xy[grid.nearest(*place, reach=(0.05, 0.05))], place)


@pytest.fixture(scope="module")
def deep(kernels: None) -> PointGrid:
    """Return enough points for several levels, half of them in a small cluster, and a few outliers."""
    rng = np.random.default_rng(7)
    xy = rng.normal(size=(200_000, 2))
    xy[::2] *= 0.05
    xy[:20] = rng.uniform(5, 9, (20, 2))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(grid_module, "FIRST_LEVEL", 5_000)
        return PointGrid(xy.astype(np.float32), kernels=load_kernels())


def test_levels_are_a_sample_that_leaves_no_cell_out(deep: PointGrid):
    assert deep.levels == 4
    assert np.array_equal(np.sort(deep.order), np.arange(200_000))
    assert np.array_equal(deep.counts, np.diff(deep.start).reshape(deep.levels, -1).sum(axis=0))
    first = np.diff(deep.start)[: deep.side**2]
    assert np.array_equal(first > 0, deep.counts > 0)
    cell = ((deep.xy[deep.order] - deep.low) / deep.cell).clip(0, deep.side - 1).astype(np.int64)
    assert np.array_equal(
        cell @ (1, deep.side), np.repeat(np.arange(len(deep.start) - 1), np.diff(deep.start)) % deep.side**2
    )


def test_points_are_sorted_and_selected_alike_on_any_number_of_threads(
    deep: PointGrid, monkeypatch: pytest.MonkeyPatch
):
    star = np.stack([np.cos(np.arange(5) * 4 * np.pi / 5), np.sin(np.arange(5) * 4 * np.pi / 5)], axis=1)
    expected = np.flatnonzero(winding(deep.xy.astype(np.float64), star) != 0)
    look = rasterizer.PointStyle(np.arange(len(deep), dtype=np.uint16) % 3, deep.xy[:, 0] > 0, PALETTE)
    lit = rasterizer.States(lit=deep.xy[:, 1] > 0)
    ink = rasterizer.arrange(deep, look, lit, load_kernels()).ink
    monkeypatch.setattr(grid_module, "FIRST_LEVEL", 5_000)
    monkeypatch.setattr(grid_module, "_MANY", 0)
    for processors in (1, 3):
        monkeypatch.setattr(grid_module, "cores", lambda processors=processors: processors)
        grid = PointGrid(deep.xy, kernels=load_kernels())
        for name in ("counts", "start", "order", "x", "y"):
            assert np.array_equal(getattr(grid, name), getattr(deep, name))
        assert np.array_equal(rasterizer.arrange(grid, look, lit, load_kernels()).ink, ink)
        assert np.array_equal(grid.in_polygon(star), expected)


def test_numpy_sorts_into_the_same_cells(deep: PointGrid):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(grid_module, "FIRST_LEVEL", 5_000)
        plain = PointGrid(deep.xy)
    assert np.array_equal(plain.start, deep.start)
    assert np.array_equal(plain.counts, deep.counts)
    assert np.array_equal(np.sort(plain.order), np.sort(deep.order))


@pytest.mark.slow
def test_picking_in_several_levels_is_brute_force(deep: PointGrid):
    rng = np.random.default_rng(1)
    for place in rng.normal(size=(60, 2)) * rng.choice([0.05, 1, 4], (60, 1)):
        for reach in (0.002, 0.1, 2.0):
            allowed = rng.random(len(deep)) < 0.5
            distance = np.where(allowed, np.hypot(*(deep.xy - place).T), np.inf)
            found = deep.nearest(*place, reach=(reach, reach), allowed=allowed)
            assert (found < 0) == (distance.min() > reach)
            assert found < 0 or distance[found] == pytest.approx(distance.min(), rel=1e-9)


def pictures_of(deep: PointGrid, *, budget: int | None, **states: np.ndarray) -> rasterizer.RasterImage:
    color = (deep.xy[:, 0] > 0).astype(np.uint16)
    look = rasterizer.PointStyle(color, np.zeros(len(deep), bool), PALETTE)
    points = rasterizer.arrange(deep, look, rasterizer.States(**states), load_kernels())
    left, bottom, right, top = deep.bounds
    sight = rasterizer.Viewport(left, bottom, right, top, 220, 220)
    request = rasterizer.RasterRequest(deep, points, sight, ground=(255, 255, 255), budget=budget, wants_density=True)
    return rasterizer.render(request, load_kernels())


@pytest.mark.slow
def test_a_sampled_picture_is_close_to_the_whole_one(deep: PointGrid):
    """Every cell keeps its number of points, and cells are about as small as pixels here."""
    whole, part = pictures_of(deep, budget=None), pictures_of(deep, budget=60_000)
    assert whole.drawn == whole.visible == 200_000
    assert part.drawn < 60_000
    assert part.visible == 200_000
    # Points on the upper edges of the bounds fall just outside of the picture.
    assert part.density.sum() == pytest.approx(whole.density.sum(), abs=0.001 * 200_000)
    blocks = [picture.density.reshape(22, 10, 22, 10).sum(axis=(1, 3)) for picture in (whole, part)]
    assert np.abs(blocks[0] - blocks[1]).sum() / blocks[0].sum() < 0.05
    off = np.abs(whole.pixels.astype(int) - part.pixels.astype(int)).max(axis=2)
    assert off.mean() < 4
    assert np.sqrt((off**2).mean()) < 16
    # No stray goes missing: where the whole picture has a lone point, so has the sampled one nearby.
    assert (whole.density[:60, 160:] > 0).sum() == (part.density[:60, 160:] > 0).sum() > 5


def test_a_small_selection_is_drawn_whole_among_sampled_points(deep: PointGrid):
    lit = np.zeros(len(deep), bool)
    lit[np.random.default_rng(0).integers(0, len(deep), 400)] = True
    whole, part = (pictures_of(deep, budget=budget, lit=lit) for budget in (None, 60_000))
    assert part.drawn < part.visible
    assert whole.density.sum() == part.density.sum() >= lit.sum() - 2
    assert np.array_equal(whole.density, part.density)


def test_nothing_compiles_in_the_window(kernels: None):
    """The loaded kernels fit any types of positions and masks."""
    module = load_kernels()
    compiled = [part for name, part in vars(module).items() if hasattr(part, "signatures") and name[0] != "_"]
    before = [len(member.signatures) for member in compiled]
    assert min(before) > 0
    n = 1000
    for xy in (np.random.default_rng(0).random((n, 2)), np.ones((n, 2), np.float32), np.ones((n, 2), int)):
        xy.flags.writeable = False
        mask = np.arange(n) % 3 == 0
        mask.flags.writeable = False
        layer = PointLayer()
        layer.set_points(xy, diamond=mask)
        layer.set_colors(np.arange(n) % 2, PALETTE)
        layer.set_states(lit=mask, visible=mask)
        layer.grid.nearest(0.5, 0.5, reach=(1, 1), allowed=mask)
        layer.grid.in_polygon(np.array([[0, 0], [1, 0], [1, 1]]))
        for most in (0, n):
            sight = rasterizer.Viewport(0, 0, 1, 1, 30, 20)
            rasterizer.draw(rasterizer.RasterRequest(*layer.arranged, sight, most_stamps=most))
    assert [len(member.signatures) for member in compiled] == before


@pytest.fixture
def make_map(dressed: QApplication, qtbot, kernels: None) -> Callable[..., PointMap]:
    # Otherwise pyqtgraph drops the moves that a test sends faster than a hand can.
    pg.setConfigOption("mouseRateLimit", -1)

    def make(xy: np.ndarray, color: np.ndarray | None = None, *, texts: int = 0) -> PointMap:
        shown = show_widget(qtbot, PointMap(), 300, 300)
        n = len(xy)
        with qtbot.waitSignal(shown.drawn):
            shown.set_points(
                xy,
                diamond=np.arange(n) >= n - texts,
                color=np.zeros(n, np.int64) if color is None else color,
                palette=PALETTE,
            )
        return shown

    return make


@pytest.fixture
def shown(make_map) -> PointMap:
    return make_map(FOUR)


def settle(qtbot, shown: PointMap, change: Callable[[], None]) -> None:
    with qtbot.waitSignal(shown.drawn):
        change()


def pixel(shown: PointMap, point: int, *, right: int = 0) -> QColor:
    place = shown.position(point).toPoint() + QPoint(right, 0)
    return shown.grab().toImage().pixelColor(place)


def near(color: QColor, rgb: tuple[int, int, int] | np.ndarray, within: int = 40) -> bool:
    return all(abs(int(a) - int(b)) <= within for a, b in zip(color.getRgb()[:3], rgb, strict=True))


def test_each_point_has_its_color(qtbot, make_map):
    shown = make_map(np.array([[0.0, 0], [1, 0], [0, 1]]), np.array([0, 1, 2]))
    assert [near(pixel(shown, i), PALETTE[i]) for i in range(3)] == [True] * 3
    assert near(pixel(shown, 0, right=30), QColor(theme.theme().tokens.surface).getRgb()[:3], 2)


def test_beside_a_few_selected_points_the_others_keep_their_hue(qtbot, make_map):
    shown = make_map(np.array([[0.0, 0], [1, 0], [0, 1]]), np.array([0, 1, 2]))
    settle(qtbot, shown, lambda: shown.set_selected(np.array([False, True, False])))
    assert near(pixel(shown, 1), PALETTE[1])
    assert near(pixel(shown, 1, right=6), QColor(theme.theme().tokens.text).getRgb()[:3], 60), "has no outline"
    for i in (0, 2):
        pale = pixel(shown, i)
        assert abs(pale.hsvHue() - QColor(*map(int, PALETTE[i])).hsvHue()) < 8, "lost its hue"
        assert not near(pale, PALETTE[i]), "is not muted"
    settle(qtbot, shown, lambda: shown.set_selected(None))
    assert [near(pixel(shown, i), PALETTE[i]) for i in range(3)] == [True] * 3
    assert not shown.marks.large


def test_beside_many_selected_points_the_others_turn_gray_and_stay(qtbot, make_map):
    many = np.tile([[1.0, 0]], (FEW + 1, 1))
    shown = make_map(np.vstack([[[0.0, 0], [0, 1]], many]), np.array([0, 2, *[1] * (FEW + 1)]))
    settle(qtbot, shown, lambda: shown.set_selected(np.arange(FEW + 3) > 1))
    surface = QColor(theme.theme().tokens.surface).getRgb()[:3]
    assert near(pixel(shown, 2), PALETTE[1])
    for i in (0, 1):
        red, green, blue = pixel(shown, i).getRgb()[:3]
        assert max(red, green, blue) - min(red, green, blue) < 20, "not gray"
        assert not near(pixel(shown, i), surface, 5), "vanished"


def test_selected_points_stand_above_the_others(qtbot, make_map):
    crowd = np.zeros((400, 2))
    crowd[0] = [1, 1]
    shown = make_map(np.vstack([crowd, [[0, 0]]]), np.array([0] * 400 + [1]))
    settle(qtbot, shown, lambda: shown.set_selected(np.arange(401) == 400))
    # The frame before may only now have been finished.
    qtbot.waitUntil(lambda: near(pixel(shown, 400), PALETTE[1]))


def test_isolated_and_hidden_points(qtbot, make_map):
    shown = make_map(np.array([[0.0, 0], [1, 0], [0, 1]]), np.array([0, 1, 2]))
    settle(qtbot, shown, lambda: shown.set_isolated(np.array([True, False, False])))
    assert near(pixel(shown, 0), PALETTE[0])
    assert not near(pixel(shown, 1), PALETTE[1])
    settle(qtbot, shown, lambda: shown.set_shown(np.array([True, True, False])))
    assert near(pixel(shown, 2), QColor(theme.theme().tokens.surface).getRgb()[:3], 2)
    place = shown.position(2)
    assert shown.pick(place.x(), place.y()) == -1
    everything = np.array([[-9, -9], [9, -9], [9, 9], [-9, 9]], np.float64)
    assert shown.lasso(everything).tolist() == [0, 1]


def test_texts_are_diamonds(qtbot, make_map):
    shown = make_map(np.array([[0.0, 0.0], [1.0, 1.0]]), texts=1)
    ratio = {}
    picture = shown.grab().toImage()
    for point in (0, 1):
        center = shown.position(point).toPoint()
        size = [
            sum(near(picture.pixelColor(center + QPoint(k * dx, k * dy)), PALETTE[0], 60) for k in range(12))
            for dx, dy in ((1, 0), (1, 1))
        ]
        ratio[point] = size[1] / size[0]
    assert ratio[1] < ratio[0]


def test_density_keeps_both_classes_visible(qtbot, make_map):
    n = 2 * rasterizer.MOST_STAMPS
    xy = np.random.default_rng(0).normal(size=(n, 2))
    xy[n // 2 :, 0] += 8
    shown = make_map(xy, np.repeat([0, 1], n // 2))
    picture = shown.grab().toImage()
    for mean, color in (((0.0, 0.0), PALETTE[0]), ((8.0, 0.0), PALETTE[1])):
        place = shown.mapFromScene(shown.box.mapViewToScene(QPointF(*mean)))
        assert near(picture.pixelColor(place), color, 60)


def request_of(n: int, *, most_stamps: int = rasterizer.MOST_STAMPS, edge: int = 240) -> rasterizer.RasterRequest:
    """Return discs and diamonds of three colors, a quarter of them dimmed, some beyond the image's edge."""
    rng = np.random.default_rng(1)
    grid = PointGrid(rng.uniform(-0.05, 1.05, (n, 2)).astype(np.float32))
    look = rasterizer.PointStyle(rng.integers(0, 3, n).astype(np.uint16), np.arange(n) % 2 == 0, PALETTE)
    points = rasterizer.arrange(grid, look, rasterizer.States(lit=np.arange(n) % 4 != 0), None)
    return rasterizer.RasterRequest(grid, points, rasterizer.Viewport(0, 0, 1, 1, edge, edge), most_stamps=most_stamps)


def both_ways(request: rasterizer.RasterRequest) -> tuple[np.ndarray, np.ndarray]:
    """Return the images rendered by numpy and by the kernels."""
    return rasterizer.render(request, None).pixels, rasterizer.render(request, load_kernels()).pixels


@pytest.mark.parametrize("n", [3, 500, 6000])
def test_numpy_stamps_what_the_kernels_stamp(n: int):
    plain, fast = both_ways(request_of(n))
    off = np.abs(plain.astype(int) - fast.astype(int)).max(axis=2)
    assert (fast[..., 3] > 0).mean() > 0.0005, "there is something to compare"
    # Centers are rounded to a sixteenth of a pixel, which shows at edges only, and hardly.
    assert off.mean() <= 6
    assert np.median(off[fast[..., 3] > 0]) <= 8


@pytest.mark.parametrize("n", [4000, 60_000])
def test_numpy_and_kernels_draw_the_same_density(n: int):
    """With 4,000 points, colored ones are marks over the density of the others; with 60,000, another density."""
    plain, fast = both_ways(request_of(n, most_stamps=0))
    off = np.abs(plain.astype(int) - fast.astype(int)).max(axis=2)
    assert (fast[..., 3] > 0).mean() > 0.3, "there is something to compare"
    assert off.mean() <= 6
    if n > rasterizer.MOST_PLAIN_STAMPS:
        assert off.max() <= 4


SHOWS_A_MAP = """
import sys, time
import numpy as np
from PySide6.QtWidgets import QApplication
from explorer.widgets.point_map import PointMap

app = QApplication([])
n, drawn, end = int(sys.argv[1]), [], time.monotonic() + 90
shown = PointMap()
shown.layer.drawn.connect(lambda: drawn.append(n))
zeros = np.zeros(n, np.int64)
xy = np.random.default_rng(0).random((n, 2))
shown.set_points(xy, diamond=zeros > 0, color=zeros, palette=np.full((1, 3), 9, np.uint8))
shown.show()
while (not drawn or (n > 20_000 and "numba" not in sys.modules)) and time.monotonic() < end:
    app.processEvents()
    time.sleep(0.01)
print(bool(drawn), "numba" in sys.modules, flush=True)
import os
os._exit(0)
"""


@pytest.mark.slow
@pytest.mark.parametrize(("n", "loaded"), [(8192, "False"), (40_000, "True")])
def test_only_many_points_load_the_kernels(n: int, loaded: str):
    """Loading numba blocks the window, so 8,192 points are drawn without it."""
    words = [sys.executable, "-c", SHOWS_A_MAP, str(n)]
    environment = {**os.environ, "QT_QPA_PLATFORM": "offscreen"}
    done = subprocess.run(words, capture_output=True, text=True, env=environment, timeout=200)
    assert done.stdout.split() == ["True", loaded], done.stderr


def drag(shown: PointMap, way: list[QPointF], keys: Qt.KeyboardModifier = Qt.KeyboardModifier.NoModifier) -> None:
    left, none = Qt.MouseButton.LeftButton, Qt.MouseButton.NoButton
    steps = [(QEvent.Type.MouseButtonPress, way[0], left, left)]
    steps += [(QEvent.Type.MouseMove, place, none, left) for place in way]
    steps += [(QEvent.Type.MouseButtonRelease, way[-1], left, none)]
    for kind, place, button, held in steps:
        event = QMouseEvent(kind, place, shown.viewport().mapToGlobal(place), button, held, keys)
        QApplication.sendEvent(shown.viewport(), event)


def square_around(shown: PointMap, *points: int) -> tuple[QPointF, QPointF]:
    spots = [shown.position(i) for i in points]
    left, right = min(p.x() for p in spots) - 12, max(p.x() for p in spots) + 12
    top, bottom = min(p.y() for p in spots) - 12, max(p.y() for p in spots) + 12
    return QPointF(left, top), QPointF(right, bottom)


FOUR = np.array([[0.0, 0], [1, 0], [0, 1], [1, 1]])


def test_shift_drag_outlines_a_rectangle(qtbot, shown):
    start, end = square_around(shown, 0, 1)
    middle = (start + end) / 2
    with qtbot.waitSignal(shown.outlined) as seen:
        drag(shown, [start, middle, end], Qt.KeyboardModifier.ShiftModifier)
    assert seen.args[0].tolist() == [0, 1]
    assert seen.args[1] == "add"


def test_lasso_drag_with_ctrl_adds(qtbot, shown):
    shown.tool = "lasso"
    a, c = square_around(shown, 2)
    way = [a, QPointF(c.x(), a.y()), c, QPointF(a.x(), c.y()), a + QPointF(1, 1)]
    with qtbot.waitSignal(shown.outlined) as seen:
        drag(shown, way, Qt.KeyboardModifier.ControlModifier)
    assert seen.args[0].tolist() == [2]
    assert seen.args[1] == "add"
    assert len(shown.marks.outline) == 0, "the outline stays after the drag"


def test_drag_pans_and_fit_comes_back(qtbot, shown):
    before = shown.box.viewRect()
    with qtbot.waitSignal(shown.view_changed):
        drag(shown, [QPointF(150, 150), QPointF(170, 150), QPointF(200, 160)])
    moved = shown.box.viewRect()
    assert moved.center().x() < before.center().x()
    assert moved.width() == pytest.approx(before.width())
    shown.fit()
    assert shown.box.viewRect().center().x() == pytest.approx(before.center().x())


def test_click_and_hover(qtbot, shown):
    near_three = shown.position(3) + QPointF(9, 8)
    with qtbot.waitSignal(shown.clicked) as clicked:
        drag(shown, [near_three])
    assert clicked.args == [3, "replace"]
    none = Qt.MouseButton.NoButton
    for place in (near_three, shown.position(3) + QPointF(60, -40)):
        with qtbot.waitSignal(shown.hovered) as hovered:
            event = QMouseEvent(
                QEvent.Type.MouseMove, place, shown.viewport().mapToGlobal(place), none, none, Qt.KeyboardModifier(0)
            )
            QApplication.sendEvent(shown.viewport(), event)
        assert hovered.args == [3 if place == near_three else -1]


def test_hover_settles_after_dwelling_and_ends_after_grace(qtbot, shown):
    with qtbot.waitSignal(shown.settled, timeout=1000) as settled:
        shown.hover.move(shown.position(1))
    assert settled.args[0] == 1
    with qtbot.waitSignal(shown.hover_ended, timeout=1000):
        shown.hover.leave()


def test_the_hover_of_the_keyboard_ends_with_the_focus_and_with_the_view(qtbot, shown):
    for leave in (shown.clearFocus, shown.hide):
        shown.show()
        shown.setFocus()
        qtbot.waitUntil(shown.hasFocus)
        shown.hover.go_to(3)
        leave()
        assert shown.hover.point == -1


def test_hovered_pair_is_ringed(qtbot, shown):
    shown.set_hovered(0, 3)
    assert [(p.x(), p.y()) for p in shown.marks.rings] == [(0, 0), (1, 1)]
    ring = pixel(shown, 0, right=8)
    assert near(ring, QColor(theme.theme().tokens.text).getRgb()[:3], 90)
    shown.set_hovered()
    assert shown.marks.rings == []


def test_points_move_to_their_new_places(qtbot, shown):
    target = FOUR @ np.array([[0, 50.0], [50, 0]]) + 7
    shown.move_points(target)
    qtbot.waitUntil(lambda: np.array_equal(shown.layer.grid.xy, target), timeout=2000)
    assert shown.box.viewRect().contains(shown.layer.place(3))


def test_many_points_are_indexed_off_the_gui_thread(qtbot, make_map):
    xy = np.random.default_rng(2).normal(size=(150_000, 2))
    shown = make_map(xy)
    qtbot.waitUntil(lambda: len(shown.layer.grid) == len(xy), timeout=5000)
    place = shown.position(77)
    found = shown.pick(place.x(), place.y())
    assert np.hypot(*(xy[found] - xy[77])) < 0.05


def test_dark_theme_repaints(qtbot, shown):
    settle(qtbot, shown, lambda: setattr(theme.theme(), "mode", "dark"))
    corner = shown.grab().toImage().pixelColor(2, 2)
    assert near(corner, QColor(theme.DARK.surface).getRgb()[:3], 2)


LOADS_KERNELS = """
import sys
from explorer.widgets.point_map.loading import are_cached, load_kernels
load_kernels()
print(are_cached(), "numba" in sys.modules, "scipy.linalg" in sys.modules)
import scipy.linalg
print(scipy.linalg.det([[2.0]]))
"""


@pytest.mark.slow
@pytest.mark.nightly
def test_loading_the_kernels_leaves_scipys_algebra_alone(kernels: None):
    """Its import holds the GIL for 0.1 s; later imports still work."""
    done = subprocess.run([sys.executable, "-c", LOADS_KERNELS], capture_output=True, text=True, timeout=120)
    assert done.stdout.split() == ["True", "True", "False", "2.0"], done.stderr


def test_the_map_says_what_it_does_not_draw(qtbot, make_map, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(grid_module, "FIRST_LEVEL", 5_000)
    monkeypatch.setattr(layer_module, "MOVING_POINTS", 30_000)
    monkeypatch.setattr(layer_module, "cell_sums", lambda *_: ())  # as where the map is too close for them
    n = 150_000
    shown = make_map(np.random.default_rng(0).normal(size=(n, 2)))
    qtbot.waitUntil(lambda: shown.layer.still, timeout=5000)
    assert shown.note.words == ""
    words = []
    shown.layer.framed.connect(lambda: words.append(shown.note.words))
    drag(shown, [QPointF(150, 150), QPointF(160, 150), QPointF(165, 152)])
    qtbot.waitUntil(lambda: len(words) > 0 and shown.layer.still, timeout=5000)
    assert words[0].endswith("points drawn while the map moves")
    drawn, visible = (int(word.replace(",", "")) for word in words[0].split()[:3:2])
    assert 0 < drawn <= 30_000 < visible <= n
    assert words[-1] == ""
    assert shown.layer.frame.exact


@pytest.fixture
def sorting(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """Return what lets maps of more than 100,000 points sort them; a sample of 5,000 is drawn until then."""
    monkeypatch.setattr(layer_module, "SAMPLED_FIRST", 100_000)
    monkeypatch.setattr(layer_module, "SAMPLE", 5_000)
    let = threading.Event()

    class HeldGrid(PointGrid):
        def __init__(self, xy: np.ndarray, **how: object) -> None:
            if "progress" in how:
                let.wait(60)
            super().__init__(xy, **how)

    monkeypatch.setattr(layer_module, "PointGrid", HeldGrid)
    yield let
    let.set()


def shown_now(shown: PointMap, xy: np.ndarray) -> None:
    color = (xy[:, 0] > 0).astype(np.uint16)
    shown.set_points(xy, diamond=xy[:, 1] > 2, color=color, palette=PALETTE)


def test_a_sample_is_drawn_until_all_points_are_sorted(qtbot, shown: PointMap, sorting: threading.Event):
    layer = shown.layer
    xy = np.random.default_rng(0).normal(size=(150_000, 2)).astype(np.float32)
    shown_now(shown, xy)
    qtbot.waitUntil(lambda: layer.frame is not None and layer.is_sample, timeout=5000)
    grid, points = layer.arranged
    rows = grid_module.sample_rows(len(xy), 5_000)
    assert np.array_equal(rows // 30, np.arange(5_000)), "one of each thirty"
    assert np.array_equal(np.sort(grid.order), rows)
    assert np.allclose(np.stack([grid.x, grid.y], axis=1) + grid.low, xy[grid.order], atol=1e-6)
    assert np.array_equal(points.ink & 1, xy[grid.order, 0] > 0)
    assert grid.bounds == pytest.approx((*xy.min(axis=0), *xy.max(axis=0)))
    assert (layer.frame.drawn, layer.frame.visible, layer.frame.exact) == (5_000, 150_000, False)
    assert shown.note.words.startswith("A sample of 5,000 of 150,000 points until they are sorted: ")
    before = layer.frame.sight
    drag(shown, [QPointF(150, 150), QPointF(160, 150), QPointF(165, 152)])
    qtbot.waitUntil(lambda: not layer.moving and layer.frame.sight != before, timeout=5000)
    assert layer.is_sample
    everything = np.array([[-9, -9], [9, -9], [9, 9], [-9, 9]], np.float64)
    assert (shown.pick(150, 150), len(shown.lasso(everything))) == (-1, 0)
    shown.set_colors(np.full(len(xy), 2), PALETTE)
    qtbot.waitUntil(lambda: set(layer.arranged[1].ink & 3) == {2}, timeout=5000)
    sorting.set()
    qtbot.waitUntil(lambda: layer.still, timeout=10_000)
    assert (layer.frame.drawn, shown.note.words) == (layer.frame.visible, "")
    assert len(shown.lasso(everything)) == len(xy)


def test_after_the_sample_the_picture_is_the_one_without_it(qtbot, make_map, sorting: threading.Event, monkeypatch):
    xy = np.random.default_rng(0).normal(size=(150_000, 2)).astype(np.float32)
    pictures, sampled = [], []
    for first in (100_000, len(xy)):
        monkeypatch.setattr(layer_module, "SAMPLED_FIRST", first)
        shown = make_map(FOUR)
        shown.layer.sampled.connect(sorting.set)
        shown.layer.sampled.connect(lambda first=first: sampled.append(first))
        shown_now(shown, xy)
        qtbot.waitUntil(lambda shown=shown: shown.layer.still and shown.layer.is_sorted, timeout=10_000)
        pictures.append(shown.layer.frame.pixels)
    assert sampled == [100_000]
    assert np.array_equal(*pictures)


def test_a_sample_has_the_weight_of_all(kernels: None):
    xy = np.random.default_rng(0).normal(size=(200_000, 2)).astype(np.float32)
    look = rasterizer.PointStyle(np.zeros(len(xy), np.uint16), np.zeros(len(xy), bool), PALETTE)
    for module in (None, load_kernels()):
        pictures = []
        for grid in (PointGrid(xy, kernels=module), PointGrid.of_sample(xy, 50_000, kernels=module)):
            points = rasterizer.arrange(grid, look, rasterizer.States(), module)
            sight = rasterizer.Viewport(-2, -2, 2, 2, 60, 60)
            pictures.append(
                rasterizer.render(rasterizer.RasterRequest(grid, points, sight, wants_density=True), module)
            )
        whole, part = pictures
        assert part.visible == pytest.approx(whole.visible, rel=0.01)
        assert part.drawn < part.visible
        assert part.density.sum() == pytest.approx(whole.density.sum(), rel=0.01)


def test_points_set_before_are_no_others_of_the_same_number(qtbot, make_map, sorting: threading.Event, monkeypatch):
    monkeypatch.setattr(layer_module, "SAMPLED_FIRST", 200_000)
    sorting.set()
    xy = np.random.default_rng(0).normal(size=(50_000, 2))
    shown = make_map(xy)
    sorting.clear()
    shown_now(shown, xy + 9)
    frames = []
    shown.layer.framed.connect(lambda: frames.append(shown.layer.frame))
    qtbot.wait(50)
    assert frames == []
    assert shown.pick(150, 150) == -1
    sorting.set()
    qtbot.waitUntil(lambda: shown.layer.still, timeout=10_000)
    assert shown.pick(150, 150) >= 0


def test_a_new_theme_does_not_arrange_the_points_again(qtbot, make_map, monkeypatch: pytest.MonkeyPatch):
    shown = make_map(np.random.default_rng(0).normal(size=(50_000, 2)))
    qtbot.waitUntil(lambda: shown.layer.still, timeout=5000)
    arranged = shown.layer.arranged
    settle(qtbot, shown, lambda: setattr(theme.theme(), "mode", "dark"))
    assert shown.layer.arranged is arranged


def test_the_newest_of_many_moves_wins(qtbot, make_map):
    """With twenty new layouts a second, as from a rotating cloud, none waits for earlier ones; the last stays."""
    xy = np.random.default_rng(0).normal(size=(60_000, 2))
    shown = make_map(xy)
    for turn in np.linspace(0.1, 2, 12):
        last = xy @ np.array([[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]])
        shown.layer.move_points(last)
    qtbot.waitUntil(lambda: np.array_equal(shown.layer.grid.xy, last) and shown.layer.still, timeout=5000)
    assert shown.layer.arranged[0] is shown.layer.grid


def test_overlays_are_painted_in_the_places_of_the_map(qtbot, shown):
    scenes = []
    shown.layer.add_overlay(lambda _painter, scene: scenes.append(scene))
    shown.grab()
    places = scenes[-1].to_pixels(FOUR)
    for point in range(4):
        spot = shown.position(point)
        assert np.abs(places[point] - (spot.x(), spot.y())).max() <= 1


def test_points_of_a_rectangle_and_a_sample_of_them(qtbot, make_map):
    xy = np.random.default_rng(0).random((5000, 2))
    shown = make_map(xy)
    shown.set_shown(np.arange(5000) % 2 == 0)
    inside = np.flatnonzero(((xy > 0.2) & (xy < 0.6)).all(axis=1) & (np.arange(5000) % 2 == 0))
    assert np.array_equal(shown.layer.points_in(0.2, 0.2, 0.6, 0.6), inside)
    some = shown.layer.points_in(0.2, 0.2, 0.6, 0.6, most=50)
    assert len(some) == 50
    assert set(some) <= set(inside)
    assert shown.layer.visible_count() == 5000


def test_nothing_is_written_over_points_that_are_not_drawn_yet(qtbot, make_map):
    shown, painted = make_map(FOUR), []
    shown.layer.add_overlay(lambda *_: painted.append(shown.layer.frame is not None))
    shown.set_points(FOUR + 1, diamond=np.zeros(4, bool), color=np.zeros(4, np.uint16), palette=PALETTE)
    shown.grab()
    assert not painted
    qtbot.waitUntil(lambda: bool(painted))
    assert all(painted)
