"""Contours, labels, thumbnails and brush against plain loops; the Map's tools under a real mouse and keys."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyqtgraph as pg
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from PySide6.QtCore import QEvent, QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QMouseEvent
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from explorer import theme
from explorer.theme import class_colors, run_color
from explorer.views.map import MapView, appearance
from explorer.views.map.appearance import labels_of
from explorer.views.map.coloring import window_palette
from explorer.views.map.depth_shading import LEVELS, seen_from, shaded
from explorer.views.map.load import read_neighbors, read_one
from explorer.views.map.selecting import written_rows
from explorer.widgets.point_map.contours import counted, levels_of, lines_of, smoothed, spread_of
from explorer.widgets.point_map.grid import PointGrid
from explorer.widgets.point_map.labels import Label, place_without_overlap
from explorer.widgets.point_map.point_map import swept
from explorer.widgets.point_map.rasterizer import radius
from explorer.widgets.point_map.sprites import FEWEST_SHARE, without_overlap
from tests.explorer.conftest import unselected
from trainer.analysis.camera_3d import components, turned
from trainer.analysis.cluster_words import ClusterWords
from trainer.cli.export.map import rows_of
from trainer.store import read_snapshot

N = 48

places = arrays(np.float32, st.tuples(st.integers(0, 50), st.just(2)), elements=st.floats(-3, 3, width=32))


# Parts ----------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_few_points_are_larger_on_a_large_map_and_many_are_not():
    small, large = 400 * 600, 1100 * 1250
    assert radius(200, small) == 4.2
    assert radius(200, large) == 7
    assert radius(1_000, large) > 6
    assert radius(1_000_000, large) == radius(1_000_000, small) == 1.6


@given(
    xy=places,
    way=arrays(np.float64, st.tuples(st.integers(1, 8), st.just(2)), elements=st.floats(-4, 4, width=16)),
    radius=st.floats(0.05, 2),
)
def test_brush_is_brute_force(xy: np.ndarray, way: np.ndarray, radius: float):
    found = set(swept(PointGrid(xy), way, radius).tolist())
    for i, point in enumerate(xy.astype(np.float64)):
        distances = []
        for a, b in zip(way, way[1:] if len(way) > 1 else way, strict=False):
            length = float((b - a) @ (b - a))
            share = min(max(float((point - a) @ (b - a)) / length, 0), 1) if length > 0 else 0.0
            distances.append(float(np.hypot(*(point - a - share * (b - a)))))
        if abs(min(distances) - radius) > 1e-6:
            assert (i in found) == (min(distances) < radius)


@given(xy=places, seed=st.integers(0, 9), most=st.integers(1, 30))
def test_thumbnails_never_overlap_and_the_first_come_first(xy: np.ndarray, seed: int, most: int):
    first = np.random.default_rng(seed).random(len(xy)) < 0.3
    chosen = without_overlap(xy, first, 0.5, most=most)
    shown = xy[chosen].astype(np.float64)
    for i in range(len(shown)):
        for j in range(i):
            assert np.abs(shown[i] - shown[j]).max() >= 0.5
    if len(chosen) < most:
        for row in set(range(len(xy))) - set(chosen.tolist()):
            assert any(np.abs(xy[row].astype(np.float64) - p).max() < 0.5 for p in shown), "there was room for it"
    if first.any():
        assert np.flatnonzero(first)[0] in chosen


@given(middles=st.lists(st.tuples(st.floats(-50, 350), st.floats(-50, 250)), max_size=20))
def test_labels_never_overlap_and_stay_inside(middles: list[tuple[float, float]]):
    room = QRectF(0, 0, 300, 200)
    found = place_without_overlap(middles, [(60.0, 16.0)] * len(middles), room)
    shown = [place for place in found if place is not None]
    assert all(room.contains(place) for place in shown)
    assert not any(a.intersects(b) for i, a in enumerate(shown) for b in shown[:i])
    if middles and room.adjusted(30, 8, -30, -8).contains(*middles[0]):
        assert found[0].center() == QPointF(*middles[0]), "the first label stands where it belongs"


def test_contours_hold_their_shares_of_a_normal_cloud():
    """For a round Gaussian, the contour around a share s has radius sqrt(-2 ln(1 - s))."""
    points = np.random.default_rng(0).normal(size=(200_000, 2))
    density, *_ = np.histogram2d(-points[:, 1], points[:, 0], bins=400, range=[(-5, 5), (-5, 5)])
    lines = lines_of(density, (-5, -5, 5, 5), shares=(0.9, 0.5), cell=4, spread=1.5)
    for share, of in zip((0.9, 0.5), lines.of, strict=True):
        longest = max(of, key=len)
        radius = np.hypot(*longest.T)
        # Smoothing by 1.5 cells of 0.1 widens the cloud a little.
        assert radius.mean() == pytest.approx(np.sqrt(-2 * np.log(1 - share) * (1 + 0.15**2)), rel=0.03)
    assert lines_of(np.zeros((60, 60)), (0, 0, 1, 1)).of == ((),) * 5


def test_density_is_counted_and_blurred_as_written_out():
    rng = np.random.default_rng(1)
    density = rng.integers(0, 5, size=(13, 17)).astype(np.float32)
    cells = counted(density, 5)
    naive = [[density[5 * i : 5 * i + 5, 5 * j : 5 * j + 5].sum() for j in range(4)] for i in range(3)]
    assert cells.tolist() == naive
    kernel = np.exp(-0.5 * (np.arange(-3, 4) / 1.0) ** 2)
    kernel /= kernel.sum()
    blurred = np.zeros_like(cells)
    for i, j, a, b in np.ndindex(3, 4, 3, 4):
        if abs(i - a) <= 3 and abs(j - b) <= 3:
            blurred[i, j] += cells[a, b] * kernel[i - a + 3] * kernel[j - b + 3]
    assert smoothed(cells, 1.0) == pytest.approx(blurred)
    place = np.repeat(np.indices(cells.shape).reshape(2, -1), cells.ravel().astype(int), axis=1)
    scott = place.std(axis=1).mean() * place.shape[1] ** (-1 / 6)
    assert spread_of(50 * cells) == 2.2, "a fraction of a cell"
    assert spread_of(np.kron(cells, np.ones((20, 20))) / 400) == pytest.approx(20 * 0.95 * scott, rel=0.25)
    # Of a hundred thousand points half of it: they are in many groups.
    many = np.kron(cells, np.ones((60, 60))) * 1e5 / (3600 * cells.sum())
    assert spread_of(many) == pytest.approx(60 * 0.5 * place.std(axis=1).mean() * 1e5 ** (-1 / 6), rel=0.25)
    for share, level in zip((0.9, 0.2), levels_of(cells, (0.9, 0.2)), strict=True):
        assert cells[cells >= level].sum() >= share * cells.sum() > cells[cells > level].sum()


@pytest.mark.parametrize("dark", [False, True])
def test_images_and_texts_have_the_hue_of_neither_run(dressed, dark: bool):
    theme.theme().mode = "dark" if dark else "light"
    try:
        for a, b in [(0, 1), (2, 3), (0, 4), (3, 5), (2, 1)]:
            runs = [theme.run_shade(hue, tone) for hue, tone in ((a, 0), (b, 2))]
            hues = [QColor(color).hue() for color in (*runs, *window_palette(runs).modalities)]
            apart = [abs(hues[i] - hues[j]) for i in (0, 1) for j in (2, 3)]
            assert min(min(each, 360 - each) for each in apart) >= 25
        assert window_palette(class_colors(2)).modalities == tuple(class_colors(4)[2:])
    finally:
        theme.theme().mode = "light"


def test_words_stand_over_a_point_of_their_group():
    xy = np.array([[0, 0], [1, 0], [10, 10], [11, 10], [np.nan, 0]], np.float32)
    clusters = ClusterWords(np.array([0, 0, 1, 1, 1]), (("red", "ring"), ()), (2, 3), 5, 5)
    (label,) = labels_of(clusters, [np.array([0, 1]), np.array([2, 3, 4])], xy)
    assert (label.text, label.y) == ("red ring", 0)
    assert label.x in (0, 1)


def test_depth_is_told_in_equal_steps_and_the_farthest_are_palest():
    cloud = np.array([[0, 0, 1], [0, 0, 0], [0, 0, -1]], np.float32)
    seen = seen_from(cloud, 0, 0)
    assert seen.level.tolist() == [0, LEVELS // 2, LEVELS - 1]
    index, palette = shaded(np.array([0, 0, 0]), np.array([[200, 0, 0]], np.uint8), seen.level)
    assert palette[index[0]].tolist() == [200, 0, 0]
    green = palette[index][:, 1].astype(int)
    assert green[0] < green[1] < green[2]


# The view -------------------------------------------------------------------------------------------------------


class NoClient:
    """A client without a process."""

    def warm_up(self, *_: Any, **__: Any) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing, because there is no process."""


@pytest.fixture
def view(qtbot, show_view, monkeypatch: pytest.MonkeyPatch) -> MapView:
    # Moves that follow each other faster than a hand's would be dropped.
    monkeypatch.setitem(pg.CONFIG_OPTIONS, "mouseRateLimit", -1)
    shown = show_view(MapView, 1000, 640, client=NoClient())
    qtbot.addWidget(shown.details_pane)
    return spread(qtbot, shown)


def spread(qtbot: QtBot, shown: MapView) -> MapView:
    """Return the view with room between its points: a drag around one must not meet another."""
    qtbot.waitUntil(lambda: all(panel.numbers is not None for panel in shown.panels), timeout=5000)
    places = 10 * np.stack(np.divmod(np.arange(2 * N), 12), axis=1).astype(np.float32)
    for panel in shown.panels:
        panel.map.move_points(places, animated=False)
    return shown


@pytest.fixture(scope="module")
def _shared(share_view) -> Iterator[MapView]:
    shown = share_view(MapView, 1000, 640, lambda _: NoClient())
    yield shown
    shown.details_pane.close()


@pytest.fixture
def shared(qtbot, dressed, _shared: MapView, monkeypatch: pytest.MonkeyPatch) -> MapView:
    """Return the view of the tests that look, color and select, colored by class."""
    monkeypatch.setitem(pg.CONFIG_OPTIONS, "mouseRateLimit", -1)
    spread(qtbot, unselected(_shared))
    choose(_shared, "Class")
    return _shared


def drag(
    view: MapView, index: int, way: list[QPointF], keys: Qt.KeyboardModifier = Qt.KeyboardModifier.NoModifier
) -> None:
    """Perform a real drag with the left button over map `index`."""
    port = view.panels[index].map.viewport()
    kinds = [QEvent.Type.MouseButtonPress, *[QEvent.Type.MouseMove] * (len(way) - 1), QEvent.Type.MouseButtonRelease]
    for kind, place in zip(kinds, [*way, way[-1]], strict=True):
        button = Qt.MouseButton.NoButton if kind == QEvent.Type.MouseMove else Qt.MouseButton.LeftButton
        held = Qt.MouseButton.NoButton if kind == QEvent.Type.MouseButtonRelease else Qt.MouseButton.LeftButton
        QApplication.sendEvent(port, QMouseEvent(kind, place, port.mapToGlobal(place), button, held, keys))


def around(view: MapView, index: int, *points: int) -> list[QPointF]:
    """Return a closed path around these points, through the corners of their rectangle."""
    spots = [view.panels[index].map.position(p) for p in points]
    left, right = min(s.x() for s in spots) - 6, max(s.x() for s in spots) + 6
    top, bottom = min(s.y() for s in spots) - 6, max(s.y() for s in spots) + 6
    return [QPointF(left, top), QPointF(right, top), QPointF(right, bottom), QPointF(left, bottom), QPointF(left, top)]


def test_lasso_replaces_adds_and_removes_with_one_undo_each(qtbot, view: MapView):
    selection = view.context.selection
    qtbot.keyClick(view.panels[0].map, Qt.Key.Key_L)
    drag(view, 0, around(view, 0, 0, 1, 2))
    assert selection.pairs.tolist() == [0, 1, 2]
    drag(view, 1, around(view, 1, 5), Qt.KeyboardModifier.ShiftModifier)
    assert selection.pairs.tolist() == [0, 1, 2, 5]
    drag(view, 0, around(view, 0, 1, 2), Qt.KeyboardModifier.AltModifier)
    assert selection.pairs.tolist() == [0, 5]
    drag(view, 0, around(view, 0, N + 7))
    assert selection.pairs.tolist() == [7], "the text's point stands for its pair"
    for expected in ([0, 5], [0, 1, 2, 5], [0, 1, 2], []):
        selection.undo.undo()
        assert selection.pairs.tolist() == expected


def test_rectangle_and_brush(qtbot, view: MapView):
    selection = view.context.selection
    qtbot.keyClick(view.panels[0].map, Qt.Key.Key_R)
    corners = around(view, 0, 0, 1)
    drag(view, 0, [corners[0], corners[1], corners[2]])
    assert selection.pairs.tolist() == [0, 1]
    qtbot.keyClick(view.panels[0].map, Qt.Key.Key_B)
    for _ in range(9):
        qtbot.keyClick(view.panels[0].map, Qt.Key.Key_BracketLeft)
    shown = view.panels[0].map
    assert shown.box.brush_px == 4
    a, b = shown.position(3), shown.position(6)
    drag(view, 0, [a, (a + b) / 2, b])
    assert selection.pairs.tolist() == [3, 4, 5, 6]
    drag(view, 0, [shown.position(5)], Qt.KeyboardModifier.AltModifier)
    assert selection.pairs.tolist() == [3, 4, 6], "a click with the brush is a dot"
    assert len(shown.marks.brush) == 1


def test_shift_drags_a_rectangle_with_the_hand_too(view: MapView):
    corners = around(view, 0, 8, 9)
    before = view.panels[0].map.box.viewRect()
    drag(view, 0, [corners[0], corners[1], corners[2]], Qt.KeyboardModifier.ShiftModifier)
    assert view.context.selection.pairs.tolist() == [8, 9]
    assert view.panels[0].map.box.viewRect() == before


def test_invert_and_grow_by_key(qtbot, view: MapView):
    selection, shown = view.context.selection, view.panels[1].map
    selection.pairs = range(40)
    qtbot.keyClick(shown, Qt.Key.Key_I, Qt.KeyboardModifier.ControlModifier)
    assert selection.pairs.tolist() == list(range(40, 48))
    selection.pairs = [3]
    view.activateWindow()
    shown.setFocus()
    qtbot.keyClick(shown, Qt.Key.Key_G)
    qtbot.waitUntil(lambda: len(selection.pairs) > 1, timeout=3000)
    index = next((i for i, p in enumerate(view.panels) if p.map.hasFocus()), 0)
    image = np.asarray(read_snapshot(view.panels[index].side.row.folder).image, np.float64)
    naive = sorted(range(N), key=lambda j: -float(image[j] @ image[3]))[:11]
    assert selection.pairs.tolist() == sorted(naive)
    selection.undo.undo()
    assert selection.pairs.tolist() == [3]
    many = read_neighbors(view.panels[0].side, np.arange(N), 3)
    assert many.tolist() == list(range(N))


def choose(view: MapView, words: str) -> None:
    place = view.toolbar.color.findText(words)
    view.toolbar.color.setCurrentIndex(place)
    view.toolbar.color.activated.emit(place)


def test_agreement_has_the_runs_colors_and_counts(shared: MapView):
    choose(shared, "Run agreement")
    ranks = [panel.numbers.rank == 1 for panel in shared.panels]
    expected = {
        "both right": int((ranks[0] & ranks[1]).sum()),
        "only A right": int((ranks[0] & ~ranks[1]).sum()),
        "only B right": int((~ranks[0] & ranks[1]).sum()),
        "neither right": int((~ranks[0] & ~ranks[1]).sum()),
    }
    entries = shared.details_pane.legend.entries()
    assert {e.name: e.totals[0] for e in entries} == expected
    assert sum(expected.values()) == N
    assert len([v for v in expected.values() if v]) > 1, "the two runs differ"
    assert [e.color for e in entries][1:3] == [run_color(0, shared).lower(), run_color(1, shared).lower()]
    assert len({e.color for e in entries}) == 4
    assert shared.command()[-2:] == ["--color", "agreement"]


def test_rank_counts_each_map_and_cosine_has_a_scale_each(shared: MapView):
    choose(shared, "Rank of caption")
    for side, panel in enumerate(shared.panels):
        naive = [int(((panel.numbers.rank >= a) & (panel.numbers.rank <= b)).sum()) for a, b in ((1, 1), (2, 5))]
        assert [e.totals[side] for e in shared.details_pane.legend.entries()][:2] == naive
    choose(shared, "Cosine of pair")
    for scale, panel in zip((shared.details_pane.scale, shared.details_pane.scale_b), shared.panels, strict=True):
        assert scale.ends == (f"{panel.numbers.cosine.min():.4g}", f"{panel.numbers.cosine.max():.4g}")
    assert (shared.details_pane.scale.letter, shared.details_pane.scale_b.letter) == ("A", "B")
    assert "not comparable across runs" in shared.details_pane.note.text()


def test_the_legend_works_by_keyboard(qtbot, shared: MapView):
    legend, show_all = shared.details_pane.legend, shared.details_pane.show_all
    legend.setCurrentIndex(legend.model().index(1))
    qtbot.keyClick(legend, Qt.Key.Key_Down)
    assert (legend.currentIndex().row(), legend.chosen()) == (2, []), "the arrows only move"
    assert show_all.isHidden()
    size = shared.panels[0].size()
    qtbot.keyClick(legend, Qt.Key.Key_Space)
    assert legend.chosen() == [0, 1, 3]
    qtbot.waitUntil(lambda: (show_all.isVisible(), shared.panels[0].size()) == (True, size))
    qtbot.keyClick(legend, Qt.Key.Key_Left)
    qtbot.keyClick(legend, Qt.Key.Key_Space)
    assert legend.chosen() == [0, 3]
    qtbot.keyClick(legend, Qt.Key.Key_Escape)
    assert legend.chosen() == []
    qtbot.keyClick(legend, Qt.Key.Key_Return)
    assert legend.chosen() == [1]
    qtbot.mouseClick(show_all, Qt.MouseButton.LeftButton)
    assert (legend.chosen(), show_all.isHidden()) == ([], True)
    legend.selectAll()
    next(action for action in shared.actions_for_palette() if action.text() == "Show all classes").trigger()
    assert legend.chosen() == []


def test_a_hidden_class_has_no_name_on_the_map(qtbot, shared: MapView, monkeypatch) -> None:
    monkeypatch.setattr(appearance, "dominant_labels", lambda names, *_: [Label(name, 0.0, 0.0) for name in names])
    labels, legend = shared.panels[0].labels, shared.details_pane.legend
    names = [entry.name for entry in legend.entries()]
    shared.appearance.show_words()
    qtbot.waitUntil(lambda: [label.text for label in labels.labels] == names, timeout=5000)
    legend.setCurrentIndex(legend.model().index(1))
    qtbot.keyClick(legend, Qt.Key.Key_Space)
    qtbot.waitUntil(lambda: [label.text for label in labels.labels] == [names[0], *names[2:]], timeout=5000)
    qtbot.keyClick(legend, Qt.Key.Key_Escape)
    qtbot.waitUntil(lambda: [label.text for label in labels.labels] == names, timeout=5000)


def test_in_space_a_drag_turns_and_the_lasso_selects(qtbot, view: MapView):
    qtbot.keyClick(view.panels[0].map, Qt.Key.Key_K)
    qtbot.keyClick(view.panels[0].map, Qt.Key.Key_D)
    side = view.panels[0].side
    snapshot = read_snapshot(side.row.folder)
    cloud = components((snapshot.image, snapshot.text))
    layer = view.panels[0].map.layer
    qtbot.waitUntil(lambda: np.allclose(layer.grid.xy, turned(cloud, 30, 20)[0], atol=1e-5), timeout=4000)
    assert "seen from 30°/20°" in view.panels[0].note.text()
    drag(view, 0, [QPointF(100, 100), QPointF(110, 100), QPointF(150, 80)])
    azimuth, elevation = view.rotation.sides[0]
    assert (azimuth, elevation) != (30, 20)
    assert view.rotation.sides[1] == (30, 20), "not locked"
    expected = turned(cloud, azimuth, elevation)[0]
    qtbot.waitUntil(lambda: np.allclose(layer.grid.xy, expected, atol=1e-5), timeout=4000)
    assert view.command()[-5:-2] == ["--turn", f"{azimuth:g}", f"{elevation:g}"]
    view.panels[0].map.fit()
    qtbot.keyClick(view.panels[0].map, Qt.Key.Key_L)
    lowest = int(np.argmin(expected[:, 1]))
    drag(view, 0, around(view, 0, lowest))
    assert side.pair_of(lowest) in view.context.selection.pairs
    qtbot.keyClick(view.panels[0].map, Qt.Key.Key_D)
    qtbot.waitUntil(lambda: np.allclose(layer.grid.xy, side.xy), timeout=3000)
    assert "seen from" not in view.panels[0].note.text()


def test_locked_maps_move_and_turn_together(qtbot, view: MapView):
    a, b = (panel.map for panel in view.panels)
    assert view.toolbar.tools.lock.isChecked(), "at first"
    drag(view, 0, [QPointF(150, 150), QPointF(140, 150), QPointF(120, 150)])
    assert b.box.viewRect().center().x() == pytest.approx(a.box.viewRect().center().x(), abs=0.5)
    qtbot.keyClick(a, Qt.Key.Key_K)
    drag(view, 0, [QPointF(150, 150), QPointF(170, 150), QPointF(190, 160)])
    assert a.box.viewRect() != b.box.viewRect()
    qtbot.keyClick(a, Qt.Key.Key_K)
    drag(view, 0, [QPointF(150, 150), QPointF(140, 150), QPointF(110, 130)])
    one, other = a.box.viewRect(), b.box.viewRect()
    assert other.center().x() == pytest.approx(one.center().x(), abs=0.5)
    assert other.center().y() == pytest.approx(one.center().y(), abs=0.5)
    drag(view, 1, [QPointF(150, 150), QPointF(120, 150), QPointF(90, 130)])
    assert a.box.viewRect().center().x() == pytest.approx(b.box.viewRect().center().x(), abs=0.5)
    qtbot.keyClick(a, Qt.Key.Key_D)
    qtbot.waitUntil(lambda: all("seen from 30" in panel.note.text() for panel in view.panels), timeout=4000)
    drag(view, 1, [QPointF(100, 100), QPointF(110, 100), QPointF(150, 80)])
    assert view.rotation.sides[0] == view.rotation.sides[1] != (30, 20)


def test_thumbnails_come_near_and_go_far(qtbot, view: MapView):
    shown, sprites = view.panels[0].map, view.panels[0].sprites
    spot = shown.layer.place(5)
    shown.box.setRange(xRange=(spot.x() - 12, spot.x() + 12), yRange=(spot.y() - 12, spot.y() + 12), padding=0)
    qtbot.waitUntil(lambda: 5 in sprites.points, timeout=3000)
    assert (sprites.points < N).all(), "texts stay diamonds"
    side = view.panels[0].side
    qtbot.waitUntil(lambda: view.pictures.get(side.items.path[5]) is not None, timeout=3000)
    place = shown.position(5).toPoint()
    red = {0: (255, 0, 0), 1: (0, 128, 0), 2: (0, 0, 255)}[5 % 3]

    def pixel() -> tuple[int, ...]:
        return shown.grab().toImage().pixelColor(place).getRgb()[:3]

    qtbot.waitUntil(lambda: pixel() == red, timeout=3000)
    selected = np.arange(2 * N) % N == 6
    view.panels[0].select(selected)
    qtbot.waitUntil(lambda: pixel() != red, timeout=3000)
    view.panels[0].select(~selected)
    qtbot.waitUntil(lambda: pixel() == red, timeout=3000)
    view.panels[0].select(None)
    qtbot.waitUntil(lambda: pixel() == red, timeout=3000)
    # The other map has room for few, and shows them with this one.
    view.toolbar.tools.lock.setChecked(False)
    other, far = view.panels[1].sprites, view.panels[1].map.layer.grid.xy
    span = 20 * float(np.ptp(far))
    view.panels[1].map.box.setRange(xRange=(-span, span), yRange=(-span, span), padding=0)
    qtbot.waitUntil(lambda: 0 < other.share < FEWEST_SHARE, timeout=3000)
    assert len(other.points)
    qtbot.keyClick(shown, Qt.Key.Key_T)
    assert not len(sprites.points)
    assert not len(other.points)


def test_words_of_clusters_step_back_behind_a_selection_and_w_takes_them_away(qtbot, view: MapView):
    panel = view.panels[0]
    choose(view, "Modality")
    qtbot.waitUntil(lambda: len(panel.labels.labels) > 2, timeout=4000)
    ink = theme.color("text").rgb()

    def inked() -> int:
        image = panel.map.grab().toImage()
        return sum(image.pixel(x, y) == ink for x in range(image.width()) for y in range(image.height()))

    qtbot.waitUntil(lambda: inked() > 0, timeout=4000)
    panel.select(np.arange(panel.side.images + panel.side.texts) < 0)
    qtbot.waitUntil(lambda: inked() == 0, timeout=4000)
    panel.select(None)
    qtbot.waitUntil(lambda: inked() > 0, timeout=4000)
    said = {word for label in panel.labels.labels for word in label.text.split()}
    assert said & {"red", "green", "blue", "ring", "star", "heart", "cross"}
    qtbot.keyClick(panel.map, Qt.Key.Key_W)
    assert panel.labels.labels == ()


def test_one_of_very_many_pairs_is_ranked_when_it_is_asked_for(shared: MapView):
    panel = shared.panels[1]
    for row in (0, 17):
        one = read_one(panel.side, row)
        assert one.rank[0] == panel.numbers.rank[row]
        assert one.cosine[0] == pytest.approx(panel.numbers.cosine[row], abs=1e-6)
        assert one.among == N


def test_modality_is_never_a_runs_color(shared: MapView):
    choose(shared, "Modality")
    colors = [e.color for e in shared.details_pane.legend.entries()]
    assert not set(colors) & {run_color(0, shared).lower(), run_color(1, shared).lower()}
    assert colors == [c.lower() for c in class_colors(8)[2:4]]


def test_what_changed_colors_both_maps(qtbot, shared: MapView):
    """The colors and legend match the comparison of the two runs."""
    from explorer.views.map.shared_colors import columns_of
    from trainer.charts.pair_changes import changes, map_values
    from trainer.charts.pair_colors import CHANGED

    assert set(CHANGED) <= set(columns_of(shared.selecting.sides))
    a, b = (panel.side for panel in shared.panels)
    values = map_values(changes(shared.context.workspace, (a.run, a.row.step), (b.run, b.row.step)))
    for by in ("image_rank_change", "overlap"):
        shared.toolbar.offer_colors(columns_of(shared.selecting.sides), by)
        shared.appearance._choose()
        qtbot.waitUntil(lambda by=by: shared.panels[0].coloring.by == by and not shared.panels[0].coloring.unknown)
        index = shared.panels[0].coloring.index[: a.n].astype(float)
        # The greater the number, the farther along the scale; equal numbers have equal colors.
        order = np.argsort(values[by], kind="stable")
        assert (np.diff(index[order]) >= 0).all()
        np.testing.assert_array_equal(shared.panels[1].coloring.index, shared.panels[0].coloring.index)
        assert shared.command()[-2:] == ["--color", by]
    low, high = shared.details_pane.scale.ends
    assert float(low) <= float(high)


def test_the_export_has_what_is_isolated_and_selected(qtbot, view: MapView, tmp_path):
    view.context.selection.pairs = [*range(5), 9]
    view.details_pane.legend.setCurrentIndex(view.details_pane.legend.model().index(2))
    qtbot.keyClick(view.details_pane.legend, Qt.Key.Key_Return)
    entry = view.details_pane.legend.entries()[2]
    assert view.details_pane.selected.title.text() == f"Selected 6 · {entry.selected} shown"
    words = view.command()
    assert "--isolate" in words
    assert words[words.index("--pairs") + 1] == "0-4,9"
    odd = np.arange(1, 20_001, 2)
    file = written_rows(odd, tmp_path)
    np.testing.assert_array_equal(rows_of(file), odd)
    np.testing.assert_array_equal(rows_of(written_rows(np.array([3, 4, 5, 8]), tmp_path)), [3, 4, 5, 8])
