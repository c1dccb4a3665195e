"""What is drawn is what the chart holds: the data in the artists, then the words, at last one color."""

from __future__ import annotations

import dataclasses
import io
from dataclasses import replace

import matplotlib
import numpy as np
import pytest
from matplotlib.colors import to_hex

from trainer.charts.curves import curves
from trainer.charts.map import embedding_map
from trainer.charts.similarity import similarity
from trainer.charts.snapshots import choose_snapshot
from trainer.render_mpl import curves as curves_figure
from trainer.render_mpl import map as map_figure
from trainer.render_mpl import similarity as similarity_figure
from trainer.render_mpl.style import class_colors, in_style, run_color


def words(figure) -> str:
    found = [text.get_text() for axes in figure.axes for text in axes.findobj(match=lambda a: hasattr(a, "get_text"))]
    return "\n".join(
        [*found, *(t.get_text() for t in figure.texts), *(t.get_text() for g in figure.legends for t in g.get_texts())]
    )


@in_style
def saved(figure) -> bytes:
    target = io.BytesIO()
    figure.savefig(target, format="svg")
    return target.getvalue()


def test_curves_draw_raw_and_smooth_in_the_runs_colors(charted):
    chart = curves(charted, [1, 2], ["val/image_to_text_R@1", "train/loss"], smoothing=0.6)
    figure = curves_figure.draw(chart)
    recall, clip, cloob = figure.axes[:3]
    assert [to_hex(line.get_color()) for line in recall.lines] == [run_color(i).lower() for i in (0, 0, 1, 1)]
    raw, smooth = recall.lines[:2]
    assert np.allclose(raw.get_ydata(), 100 * chart.panels[0].series[0].raw)
    assert np.allclose(smooth.get_ydata(), 100 * chart.panels[0].series[0].smooth)
    assert raw.get_alpha() < 0.5
    assert len(clip.lines) == len(cloob.lines) == 2
    assert to_hex(cloob.lines[0].get_color()) == run_color(1).lower()
    for expected in ("n = 240 pairs", "Training loss, CLOOB", "clip-scenes", "cloob-scenes", "weight 0.6"):
        assert expected in words(figure)


def test_curves_that_diverge_have_gaps(charted):
    chart = curves(charted, [1], ["train/loss"])
    (series,) = chart.panels[0].series
    raw = series.raw.copy()
    raw[100:] = np.nan
    raw[50] = np.inf
    broken = dataclasses.replace(series, raw=raw, smooth=raw)
    panel = dataclasses.replace(chart.panels[0], series=(broken,))
    figure = curves_figure.draw(dataclasses.replace(chart, panels=(panel,)))
    assert np.isnan(figure.axes[0].lines[0].get_ydata()).any()
    assert b"<svg" in saved(figure)


@pytest.mark.slow
def test_similarity_draws_shares_and_prints_n(charted):
    chart = similarity(charted, [1, 2])
    figure = similarity_figure.draw(chart)
    for axes, run in zip(figure.axes, chart.runs):
        matched, unmatched = axes.patches
        assert np.allclose(matched.get_data().values.sum(), 100)
        assert np.allclose(unmatched.get_data().values, 100 * run.unmatched_counts / run.unmatched_counts.sum())
        assert np.array_equal(matched.get_data().edges, chart.edges)
    printed = words(figure)
    for run in chart.runs:
        assert f"AUC {run.auc:.4f}" in printed
        assert f"mean {run.mean_matched:.3f}" in printed
    assert "n = 2,400" in printed
    assert "not on one scale" in printed


@pytest.fixture
def maps(charted):
    def made(color: str):
        charts = []
        for run in (1, 2):
            layout = np.random.default_rng(run).standard_normal((480, 2)).astype(np.float32)
            charts.append(
                embedding_map(charted, choose_snapshot(charted, charted.runs.get(run)).folder, layout, color=color)
            )
        return charts

    return made


def test_maps_draw_discs_and_diamonds(maps):
    charts = maps("label")
    figure = map_figure.draw(charts)
    for axes, chart in zip(figure.axes, charts):
        images, texts = axes.collections
        assert np.allclose(images.get_offsets(), chart.images)
        assert np.allclose(texts.get_offsets(), chart.texts)
        colors = [to_hex(c) for c in images.get_facecolors()]
        assert colors == [class_colors(8)[i].lower() for i in chart.class_of]
        assert len(images.get_paths()[0].vertices) > 10, "a disc is round"
        assert len(texts.get_paths()[0].vertices) == 5, "a diamond has four corners"
    for expected in ("Images", "Texts", "circle", "n = 240 pairs", "principal components", "Colored by class"):
        assert expected in words(figure)


def test_numbers_are_drawn_along_one_scale_with_a_bar(maps):
    values = np.arange(240.0)
    first, second = (replace(c, color="area", numbers=values + 240 * i) for i, c in enumerate(maps("modality")))
    first.numbers[0] = np.nan
    figure = map_figure.draw([first, second])
    viridis = matplotlib.colormaps["viridis"]
    drawn = [axes.collections[0].get_facecolors()[:, :3] for axes in figure.axes[:2]]
    assert np.allclose(drawn[1][-1], viridis(1.0)[:3])
    assert np.allclose(drawn[0][1], viridis(0.0)[:3])
    assert np.ptp(drawn[0][0]) < 0.1, "a missing number is gray"
    bar = figure.axes[2]
    assert bar.get_ylabel() == "Area"
    assert bar.get_ylim() == (1.0, 479.0)
    assert "Colored by area; gray where it is missing." in words(figure)
    rows = map_figure.rows([first])
    place = rows.header.index("class")
    assert [row[place] for row in rows.rows][:3] == ["", 1.0, 2.0]


def test_classes_of_different_data_share_their_colors(maps):
    first, second = maps("label")
    fewer = replace(second, classes=("circle", "zebra"), class_of=np.arange(240) % 2)
    figure = map_figure.draw([first, fewer])
    names = sorted({*first.classes, "circle", "zebra"})
    colors = [to_hex(c) for c in figure.axes[1].collections[0].get_facecolors()[:2]]
    assert colors == [class_colors(len(names))[names.index(n)].lower() for n in ("circle", "zebra")]
    assert "zebra" in words(figure)


@pytest.mark.slow
def test_many_points_become_a_picture_and_few_stay_vectors(maps, monkeypatch):
    vectors = saved(map_figure.draw(maps("modality")))
    assert b"<image" not in vectors
    monkeypatch.setattr(map_figure, "MOST_VECTOR_POINTS", 100)
    picture = saved(map_figure.draw(maps("modality")))
    assert b"<image" in picture
    assert b"clip-scenes" in picture, "the words stay words"


@pytest.mark.slow
def test_tables_hold_every_point_and_count(charted, maps):
    points = map_figure.rows(maps("label"))
    rows = list(points.rows)
    assert len(rows) == 2 * 480
    assert all(len(row) == len(points.header) for row in rows)
    chart = similarity(charted, [1])
    table = similarity_figure.rows(chart)
    counted = [row[-1] for row in table.rows if row[table.header.index("what")] == "matched"]
    assert sum(counted) == 240
    logged = list(curves_figure.rows(curves(charted, [1, 2], ["train/loss"])).rows)
    assert len(logged) == 2 * 240


def test_colors_repeat_rather_than_end():
    assert len(set(class_colors(8))) == 8
    assert len(class_colors(300)) == 300
    assert len(set(class_colors(200))) == 200
