"""Contrast and patterns, measured on the pixels of real widgets: 3:1 for marks, 4.5:1 for texts, in both themes."""

import itertools
from collections import Counter
from collections.abc import Iterator
from types import SimpleNamespace

import numpy as np
import pytest
from PySide6.QtCore import QObject, QRect, QRectF, Qt
from PySide6.QtGui import QColor, QImage, QPainter
from PySide6.QtWidgets import (
    QApplication,
    QCheckBox,
    QComboBox,
    QLabel,
    QLineEdit,
    QProgressBar,
    QPushButton,
    QSlider,
    QTableWidget,
    QTableWidgetItem,
    QWidget,
)

from explorer import theme
from explorer.models.runs import SHARE_ROLE, TONE_ROLE
from explorer.render_qt.xy_plot import XYPlotCard, tone_color
from explorer.theme.tokens import class_colors
from explorer.widgets.bars import BarChart, BarColumn
from explorer.widgets.cells import ProgressCell
from explorer.widgets.heat_table import HeatData, HeatTable
from explorer.widgets.legend import Legend, LegendEntry
from explorer.widgets.point_map.labels import Label, Labels, place_without_overlap
from explorer.widgets.point_map.point_map import PointMap
from explorer.widgets.run_badge import RunBadge
from explorer.widgets.switch import Switch
from tests.nightly import few_plain, nightly_except
from trainer.analysis import palette
from trainer.charts import marks
from trainer.charts.color_words import _ON_DARK, _ON_LIGHT

MARK, TEXT = 3.0, 4.5
WHOLES: list[QWidget] = []
"""What the shown widgets stand on; kept until the end of a test."""
RUNS = marks.RUN_TONES[: len(marks.HUES)]
TONES = (*RUNS, "quiet", "bad")


@pytest.fixture(scope="module")
def light_first(qapp: QApplication) -> Iterator[QApplication]:
    """Dress the application in the light theme, and again after the last test of this module."""
    theme.theme().apply(qapp, "light")
    yield qapp
    theme.theme().apply(qapp, "light")


@pytest.fixture(params=nightly_except(["light", "dark"], "light"))
def mode(light_first: QApplication, request: pytest.FixtureRequest) -> str:
    """Dress the application in a theme unless it is: applying one takes longer than these tests."""
    if theme.theme().mode != request.param:
        theme.theme().apply(light_first, request.param)
    return request.param


@pytest.fixture(autouse=True)
def _let_go() -> Iterator[None]:
    yield
    WHOLES.clear()


def pixels(qtbot, widget: QWidget, room: QRect | None = None) -> Counter[str]:
    """Return how often each color is among the pixels of a shown widget, or of a part of it."""
    # Grabbed with what it stands on: many widgets are transparent.
    room = room or widget.rect()
    image = (
        widget.window()
        .grab(QRect(widget.mapTo(widget.window(), room.topLeft()), room.size()))
        .toImage()
        .convertToFormat(QImage.Format.Format_RGB32)
    )
    raw = np.frombuffer(image.constBits(), np.uint8).reshape(image.height(), image.bytesPerLine() // 4, 4)
    flat = raw[:, : image.width(), :3].reshape(-1, 3)
    colors, counts = np.unique(flat, axis=0, return_counts=True)
    return Counter({f"#{r:02x}{g:02x}{b:02x}": int(n) for (b, g, r), n in zip(colors.tolist(), counts.tolist())})


def shown(qtbot, widget: QWidget, width: int = 320, height: int = 200) -> QWidget:
    """Show the widget at a size on the ground of a view."""
    whole = QWidget()
    theme.set_role(whole, "surface")
    qtbot.addWidget(whole)
    widget.setParent(whole)
    whole.resize(width, height)
    widget.setGeometry(0, 0, width, height)
    whole.show()
    widget.show()
    WHOLES.append(whole)
    qtbot.waitExposed(whole)
    qtbot.wait(30)
    return whole


def against(found: Counter[str]) -> tuple[str, float]:
    """Return the most frequent color, the ground, and the largest contrast of a pixel to it."""
    ground = found.most_common(1)[0][0]
    return ground, max(theme.contrast(color, ground) for color in found)


def plot(*, curves=(), bars=(), dots=(), points=(), names=()) -> marks.XYPlot:
    """Return a plot without texts on its axes."""
    x = marks.categories("", names) if names else marks.Axis("", 0, 10)
    kinds = {"curves": tuple(curves), "bars": tuple(bars), "dots": tuple(dots), "points": tuple(points)}
    return marks.XYPlot("one", "", x, marks.Axis("", 0, 1), names=names, **kinds)


X = np.linspace(0, 10, 30)


def drawn(tone: marks.Tone) -> dict[str, marks.XYPlot]:
    """Return every kind of mark in a tone."""
    line = marks.Series("", tone, X, np.full(30, 0.5))
    band = marks.Series("", tone, X, np.full(30, 0.5), low=np.full(30, 0.2), high=np.full(30, 0.8))
    return {
        "line": plot(curves=[line]),
        "dashed": plot(curves=[marks.Series("", tone, X, np.full(30, 0.5), dashed=True)]),
        "faint": plot(curves=[marks.Series("", tone, X, np.full(30, 0.5), faint=True, width=1)]),
        "band": plot(curves=[band]),
        "steps": plot(curves=[marks.Series("", tone, np.arange(11.0), np.full(10, 0.5), stepped=True, filled=True)]),
        "bars": plot(bars=[marks.Bars("", tone, (0.5, 0.7))], names=("a", "b")),
        "dot": plot(dots=[marks.Marker("", tone, 5, 0.5)]),
        "ring": plot(dots=[marks.Marker("", tone, 5, 0.5, mark="ring")]),
        "diamond": plot(dots=[marks.Marker("", tone, 5, 0.5, mark="diamond")]),
        "interval": plot(dots=[marks.Marker("", tone, 5, 0.5, size=1, low=0.1, high=0.9)]),
        "word of a dot": plot(dots=[marks.Marker("", tone, 5, 0.5, size=1, label="MMM HHH")]),
        "cloud": plot(points=[marks.Points("", tone, np.column_stack([X, np.full(30, 0.5)]))]),
    }


def inside(card: XYPlotCard) -> QRect:
    """Return where the plot draws its marks, without the axes."""
    box = card.plot.getViewBox().sceneBoundingRect().toRect().adjusted(4, 4, -4, -4)
    return QRect(box)


@pytest.mark.slow
@few_plain(1, "tone", nightly_except(TONES, "run_b"))
def test_every_mark_of_a_chart_can_be_seen(qtbot, mode: str, tone: marks.Tone) -> None:
    for kind, piece in drawn(tone).items():
        card = XYPlotCard("test", kind)
        shown(qtbot, card)
        card.plot.getPlotItem().showGrid(x=False, y=False)
        card.show_mark(piece)
        qtbot.wait(20)
        found = pixels(qtbot, card.plot, inside(card))
        # The grid and the smoothed edges are no marks: a color counts from ten pixels on.
        seen = Counter({color: n for color, n in found.items() if n >= 10})
        ground = theme.color("surface").name()
        least = TEXT if kind == "word of a dot" else MARK
        assert max(theme.contrast(color, ground) for color in seen) >= least, (kind, seen.most_common(4))


@pytest.mark.parametrize("mode", ["light", "dark"], indirect=True)
def test_the_thin_line_of_a_second_seed_can_be_seen(qtbot, mode: str) -> None:
    """It has the darkest shade of its hue, and lies over the band of its arm."""
    card = XYPlotCard("test", "thin")
    shown(qtbot, card)
    card.plot.getPlotItem().showGrid(x=False, y=False)
    for tone in RUNS[:3]:
        second = marks.shade(tone, 1)
        seed = marks.Series("", second, X, 0.5 + 0.01 * X, width=1.0)
        band = marks.Series("", tone, X, np.full(30, 0.1), low=np.full(30, -0.1), high=np.full(30, 1.1))
        card.show_mark(plot(curves=[seed, band]))
        qtbot.wait(20)
        found = pixels(qtbot, card.plot, inside(card))
        ground = found.most_common(1)[0][0]
        assert ground != theme.color("surface").name(), "it is the band"
        # Less than the strokes of the dashed mean, which is as long and twice as thick.
        strokes = Counter({c: n for c, n in found.items() if theme.contrast(c, ground) >= MARK})
        thin = palette.thin(tone_color(second).name(), theme.theme().dark)
        assert strokes[thin] >= 100, (tone, strokes.most_common(4))


def test_tones_of_runs_are_told_apart_without_their_colors() -> None:
    assert len({marks.dash_of(tone) for tone in RUNS}) == len(RUNS) - 1, "A and the first further tone are solid"
    assert marks.dash_of("run_a") != marks.dash_of("run_b")
    assert marks.dash_of("run_a", dashed=True) != marks.dash_of("run_b", dashed=True)
    assert marks.HATCHES["run_b"]
    assert "run_a" not in marks.HATCHES


@pytest.mark.slow
def test_b_is_dashed_in_a_plot_and_its_bars_are_hatched(qtbot, dressed) -> None:
    for kind in ("line", "bars"):
        shares = {}
        for tone in ("run_a", "run_b"):
            card = XYPlotCard("test", kind)
            shown(qtbot, card)
            card.plot.getPlotItem().showGrid(x=False, y=False)
            card.show_mark(drawn(tone)[kind])
            qtbot.wait(20)
            found = pixels(qtbot, card.plot, inside(card))
            shares[tone] = found[theme.color(tone).name()]
        assert 0 < shares["run_b"] < 0.92 * shares["run_a"], kind


@pytest.mark.parametrize("dark", [False, True])
def test_every_color_of_runs_and_classes_can_be_seen(dark: bool) -> None:
    grounds = palette.DARK_GROUNDS if dark else palette.LIGHT_GROUNDS
    tokens = theme.DARK if dark else theme.LIGHT
    assert grounds == (tokens.surface, tokens.background)
    named = _ON_DARK if dark else _ON_LIGHT
    for color in {*class_colors(8, dark), *class_colors(256, dark), *named.values(), tokens.outline, tokens.focus}:
        assert min(theme.contrast(color, ground) for ground in grounds) >= MARK, color
    assert len({*class_colors(200, dark)}) == 200
    assert len({*named.values()}) == len(named) - 2, "gray has two spellings, and what has no class is gray"


def test_the_colors_of_runs_are_told_apart_by_the_color_blind() -> None:
    """Machado et al. 2009, at full severity, in CIELAB: far above a just noticeable difference of 2.3."""
    deutan = [0.367322, 0.860646, -0.227968, 0.280085, 0.672501, 0.047413, -0.01182, 0.04294, 0.968881]
    protan = [0.152286, 1.052583, -0.204868, 0.114503, 0.786281, 0.099216, -0.003882, -0.048116, 1.051998]
    matrices = [np.eye(3), np.reshape(deutan, (3, 3)), np.reshape(protan, (3, 3))]
    for colors in (palette.ON_LIGHT, palette.ON_DARK):
        for matrix in matrices:
            places = [lab(color, matrix) for color in colors]
            least = min(float(np.linalg.norm(a - b)) for a, b in itertools.combinations(places, 2))
            assert least >= 8, (colors, least)
            assert np.linalg.norm(places[0] - places[1]) >= 40, "A and B"


def lab(color: str, matrix: np.ndarray) -> np.ndarray:
    """Return a color as seen through `matrix` (linear RGB), in CIELAB of D65."""
    channels = np.array(QColor(color).getRgbF()[:3])
    linear = np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
    seen = np.clip(matrix @ linear, 0, 1)
    xyz = [0.4124564, 0.3575761, 0.1804375, 0.2126729, 0.7151522, 0.072175, 0.0193339, 0.119192, 0.9503041]
    ratio = np.reshape(xyz, (3, 3)) @ seen / np.array([0.95047, 1, 1.08883])
    f = np.where(ratio > 0.008856, np.cbrt(ratio), 7.787 * ratio + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def controls() -> Iterator[tuple[str, QWidget, float]]:
    """Yield widgets with the least contrast of what is to be seen or read in them."""
    for role in ("", "secondary", "small", "heading", "good", "warn", "bad", "key"):
        label = QLabel("MMM WWW HHH")
        theme.set_role(label, role)
        yield f"label {role}", label, TEXT
    for role in ("", "primary", "quiet"):
        button = QPushButton("HHH MMM")
        theme.set_role(button, role)
        yield f"button {role}", button, TEXT
    field = QLineEdit()
    field.setPlaceholderText("HHHH MMMM")
    yield "placeholder", field, TEXT
    empty = QLineEdit()
    yield "edge of a field", empty, MARK
    box = QComboBox()
    box.addItem("HHH MMM")
    yield "choice", box, TEXT
    yield "box to check", QCheckBox(), MARK
    yield "switch", Switch(), MARK
    slider = QSlider(Qt.Orientation.Horizontal)
    yield "slider", slider, MARK
    progress = QProgressBar()
    progress.setRange(0, 100)
    progress.setValue(0)
    yield "empty progress", progress, MARK
    for place, letter in enumerate("AB"):
        yield f"badge {letter}", RunBadge(letter, place), TEXT


@pytest.mark.slow
def test_controls_and_texts_can_be_seen(qtbot, mode: str) -> None:
    faults = []
    for name, widget, least in controls():
        size = widget.sizeHint()
        shown(qtbot, widget, max(size.width(), 120) if name[:5] != "badge" else 20, max(size.height(), 20))
        found = pixels(qtbot, widget)
        ground, contrast = against(found)
        if contrast < least:
            faults.append(f"{name}: {contrast:.2f} on {ground}")
    assert not faults, "\n".join(faults)


@pytest.mark.slow
def test_progress_in_a_table_can_be_seen_before_it_begins(qtbot, mode: str) -> None:
    table = QTableWidget(1, 1)
    table.setItemDelegate(ProgressCell(share_role=SHARE_ROLE, tone_role=TONE_ROLE, parent=table))
    item = QTableWidgetItem("")
    item.setData(SHARE_ROLE, 0.0)
    item.setData(TONE_ROLE, "accent")
    table.setItem(0, 0, item)
    table.setColumnWidth(0, 280)
    table.horizontalHeader().hide()
    table.verticalHeader().hide()
    shown(qtbot, table)
    room = table.visualItemRect(item).adjusted(2, 2, -2, -2)
    ground, contrast = against(pixels(qtbot, table.viewport(), room))
    assert contrast >= MARK, ground


@pytest.mark.slow
def test_bars_that_are_not_the_largest_can_be_seen(qtbot, mode: str) -> None:
    for place in (0, 1):
        chart = BarChart()
        shown(qtbot, chart)
        chart.show_bars(["a", "b"], [BarColumn("", "", theme.run_shade(place, 0), (0.7, 0.3))])
        top = 52 + 32
        found = pixels(qtbot, chart, QRect(100, top + 4, 60, 24))
        assert max(theme.contrast(color, theme.color("surface").name()) for color in found) >= MARK


@pytest.mark.slow
def test_numbers_over_shaded_cells_can_be_read(qtbot, mode: str) -> None:
    values = np.linspace(0, 1, 12).reshape(3, 4)
    heat = HeatTable("test", "Test")
    shown(qtbot, heat, 420, 160)
    for color in ("run_a", "run_b", tone_color("first").name(), theme.run_shade(2, 0)):
        names = tuple("abc")
        heat.show_data(HeatData(names, tuple("wxyz"), values, values, lambda _r, _c, v: f"{v:.2f}", (color, color)))
        qtbot.wait(20)
        for row, column in itertools.product(range(3), range(4)):
            room = heat.visualRect(heat.model().index(row, column)).adjusted(6, 4, -6, -4)
            ground, contrast = against(pixels(qtbot, heat.viewport(), room))
            assert contrast >= TEXT, (color, row, column, ground, contrast)


@pytest.mark.slow
def test_marks_and_texts_of_a_legend_can_be_seen(qtbot, mode: str) -> None:
    for place in range(8):
        for mark in ("disc", "diamond", "line", "square"):
            legend = Legend()
            shown(qtbot, legend, 200, 24)
            legend.show_entries([LegendEntry("HHH", theme.run_shade(place, 0), mark)])
            assert against(pixels(qtbot, legend, QRect(0, 0, 18, 22)))[1] >= MARK
            assert against(pixels(qtbot, legend, QRect(22, 0, 60, 22)))[1] >= TEXT


@pytest.mark.slow
@few_plain(1, "dimmed", [False, True])
def test_words_on_a_map_can_be_read_also_behind_a_selection(qtbot, mode: str, dimmed: bool) -> None:
    points = PointMap()
    shown(qtbot, points)
    whole = np.zeros(2, np.int64)
    corners = np.array([(0.0, 0.0), (1.0, 1.0)])
    points.set_points(corners, diamond=whole > 0, color=whole, palette=np.zeros((1, 3), np.uint8))
    labels = Labels(points.layer, points)
    labels.show([Label("HHH MMM", 0.5, 0.5)])
    labels.dim(dimmed)
    qtbot.waitUntil(lambda: points.layer.is_sorted)
    qtbot.wait(20)
    ground, contrast = against(pixels(qtbot, points, points.rect().adjusted(110, 80, -110, -80)))
    assert contrast >= TEXT, ground


def test_words_on_points_of_their_own_color_can_be_read(qtbot, mode: str) -> None:
    """The name "white" on white points had a thin and translucent ground in dark."""
    paints = []
    labels = Labels(SimpleNamespace(add_overlay=paints.append, update=lambda: None, grid=None), QObject())
    labels.show([Label("HHH MMM", 0.5, 0.5)])
    image = QImage(120, 60, QImage.Format.Format_RGB32)
    image.fill(theme.color("text"))
    scene = SimpleNamespace(width=120, height=60, ratio=1.0, to_pixels=lambda _xy: np.array([[60.0, 30.0]]))
    painter = QPainter(image)
    paints[0](painter, scene)
    painter.end()
    colors = [image.pixelColor(column, row) for column in range(120) for row in range(60)]
    assert colors.count(theme.color("surface")) > 200, "of a translucent ground no pixel has the color"


def test_no_words_stand_on_a_picture() -> None:
    picture = QRectF(40, 40, 20, 20)
    (rect,) = place_without_overlap([(50.0, 50.0)], [(24.0, 12.0)], QRectF(0, 0, 100, 100), [picture])
    assert rect is not None
    assert not rect.intersects(picture)
