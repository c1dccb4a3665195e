"""Figures show the chart's contents: the data in the artists, then the texts, and one color."""

import io
from dataclasses import replace

import matplotlib.figure
import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.text import Text

from trainer.analysis import palette
from trainer.charts import marks
from trainer.charts.map import Placed, draw, embedding_maps, point_rows
from trainer.charts.metadata_columns import MetadataColumn, column
from trainer.charts.pair_colors import ColoredMap, pair_colors
from trainer.charts.snapshots import choose_snapshot
from trainer.render_mpl import panel
from trainer.render_mpl.style import class_colors, in_style
from trainer.render_mpl.xy_plot import draw_plot, tone_color


def words(figure) -> str:
    return "\n".join(text.get_text() for text in figure.findobj(Text))


@in_style
def saved(figure) -> bytes:
    target = io.BytesIO()
    figure.savefig(target, format="svg")
    return target.getvalue()


def drawn(charts):
    return panel.draw(draw(charts))


@pytest.fixture
def maps(charted):
    def made(color: str):
        placed = []
        for run in (1, 2):
            layout = np.random.default_rng(run).standard_normal((480, 2)).astype(np.float32)
            placed.append(Placed(choose_snapshot(charted, charted.runs.get(run)).folder, layout))
        return embedding_maps(charted, placed, color=color)

    return made


def test_maps_draw_discs_and_diamonds(maps):
    charts = maps("label")
    figure = drawn(charts)
    for axes, chart in zip(figure.axes, charts):
        images, texts = axes.collections
        assert np.allclose(images.get_offsets(), chart.images)
        assert np.allclose(texts.get_offsets(), chart.texts)
        colors = [to_hex(c) for c in images.get_facecolors()]
        assert colors == [class_colors(8)[i].lower() for i in chart.colors.place]
        assert len(images.get_paths()[0].vertices) > 10, "a disc is round"
        assert len(texts.get_paths()[0].vertices) == 5, "a diamond has four corners"
    for expected in ("image", "caption", "circle", "n = 240 pairs", "principal components", "Colored by class"):
        assert expected in words(figure)


def test_numbers_are_drawn_along_one_scale_with_a_bar(maps):
    values = np.arange(480.0)
    values[0] = np.nan
    colored = [ColoredMap(240, {"area": MetadataColumn(numbers=half)}) for half in np.split(values, 2)]
    pairs = zip(maps("modality"), pair_colors("area", colored), strict=True)
    first, second = (replace(chart, colors=colors) for chart, colors in pairs)
    figure = drawn([first, second])
    viridis = matplotlib.colormaps["viridis"]
    colors = [axes.collections[0].get_facecolors()[:, :3] for axes in figure.axes[:2]]
    assert np.allclose(colors[1][-1], viridis(1.0)[:3], atol=0.5 / 255)
    assert np.allclose(colors[0][1], viridis(0.0)[:3], atol=0.5 / 255)
    assert np.ptp(colors[0][0]) < 0.1, "a missing number is gray"
    assert not figure.axes[0].child_axes
    (bar,) = figure.axes[1].child_axes
    assert bar.get_ylabel() == "Area"
    assert bar.get_ylim() == (1.0, 479.0)
    assert "Colored by area; gray where it is missing." in words(figure).replace("\n", " ")
    header, rows = point_rows([first])
    assert [row[header.index("class")] for row in rows][:3] == ["", 1.0, 2.0]


def test_classes_of_different_data_share_their_colors(maps):
    words_of = (["circle", "square"] * 120, ["circle", "zebra"] * 120)
    colored = [ColoredMap(240, {"label": column(values)}) for values in words_of]
    pairs = zip(maps("modality"), pair_colors("label", colored), strict=True)
    figure = drawn([replace(chart, colors=colors) for chart, colors in pairs])
    names = ["circle", "square", "zebra"]
    colors = [to_hex(c) for c in figure.axes[1].collections[0].get_facecolors()[:2]]
    assert colors == [class_colors(len(names))[names.index(n)].lower() for n in ("circle", "zebra")]
    assert "zebra" in words(figure)


@pytest.mark.slow
def test_many_points_become_a_picture_and_few_stay_vectors(maps, monkeypatch):
    vectors = saved(drawn(maps("modality")))
    assert b"<image" not in vectors
    monkeypatch.setattr(panel, "MOST_VECTOR_POINTS", 100)
    figure = drawn(maps("modality"))
    layers = sorted(figure.axes[0].collections, key=lambda layer: layer.get_zorder())
    colors = [to_hex(layer.get_facecolors()[0]) for layer in layers]
    assert len(set(colors[:2])) == len(set(colors[-2:])) == 2, "texts do not hide images"
    assert sum(len(layer.get_offsets()) for layer in layers) == 480
    picture = saved(figure)
    assert b"<image" in picture
    assert "CLIP · s0" in picture.decode(), "the words stay words"


@pytest.mark.slow
def test_tables_hold_every_point_and_count(charted, maps):
    header, rows = point_rows(maps("label"))
    assert [len(row) for row in rows] == [len(header)] * (2 * 480)


def test_a_thin_line_is_as_light_on_paper_as_in_a_light_window():
    second = marks.shade("run_b", 1)
    line = np.linspace(0.0, 1.0, 5)
    axis = marks.Axis("share", 0.0, 1.0)
    seeds = tuple(marks.Series(f"{width}", second, line, line, width=width) for width in (1.0, 2.0))
    axes = matplotlib.figure.Figure().add_subplot()
    draw_plot(axes, marks.XYPlot("plot", "Plot", axis, axis, curves=seeds))
    drawn_in = {each.get_label(): to_hex(each.get_color()) for each in axes.lines}
    assert drawn_in == {"1.0": palette.thin(tone_color(second)), "2.0": tone_color(second).lower()}
    assert drawn_in["1.0"] != drawn_in["2.0"]


def test_colors_repeat_rather_than_end():
    assert len(set(class_colors(8))) == 8
    assert len(class_colors(300)) == 300
    assert len(set(class_colors(200))) == 200
