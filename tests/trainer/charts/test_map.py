"""Maps pair points with their items and refuse layouts of other snapshots."""

import dataclasses

import numpy as np
import pytest
from matplotlib.legend import Legend

from trainer.analysis.camera_3d import components, turned
from trainer.analysis.pair_ranks import rank_names
from trainer.analysis.projection import pca
from trainer.charts import ChartError
from trainer.charts import map as map_chart
from trainer.charts import pair_colors as module
from trainer.charts.figure_choices import FigureChoices, parts_of
from trainer.charts.map import MapChart, Placed, color_columns, draw, embedding_maps, point_rows, ranked_pairs
from trainer.charts.pair_changes import changes, map_values
from trainer.charts.pair_colors import AGREEMENT, ColoredMap, PairNumbers, pair_colors, pair_numbers
from trainer.charts.point_placement import PointPlacement, few_points
from trainer.charts.snapshots import choose_snapshot
from trainer.charts.spec import Request, targets_of
from trainer.cli.analyze import pairs as analyze_pairs
from trainer.cli.export.map import rows_of
from trainer.errors import UserError
from trainer.render_mpl import panel
from trainer.render_mpl.pair_map import class_names_on
from trainer.store import read_snapshot


@pytest.fixture
def folder(charted):
    return choose_snapshot(charted, charted.runs.get(1)).folder


def embedding_map(workspace, folder, layout, *, method="pca", color="modality") -> MapChart:
    """Return the map of one snapshot."""
    return embedding_maps(workspace, [Placed(folder, layout, method)], color=color)[0]


def test_images_come_first_then_texts(charted, folder):
    layout = np.arange(960, dtype=np.float32).reshape(480, 2)
    chart = embedding_map(charted, folder, layout)
    assert (chart.run, chart.name, chart.step, chart.n) == (1, "CLIP · s0", 240, 240)
    assert chart.images[0].tolist() == [0, 1]
    assert chart.texts[0].tolist() == [480, 481]
    assert len(chart.captions) == len(chart.paths) == 240
    assert chart.colors.names == ()


def test_a_map_of_no_more_points_than_neighbors_says_that_it_shows_nothing(charted, folder):
    for how, neighbors in ((PointPlacement(method="umap"), 15), (PointPlacement(method="tsne", neighbors=5), 15)):
        assert few_points(how.method, how.neighborhood, 4).startswith(
            f"4 points are too few for {how.words.split(',')[0]}"
        )
        assert few_points(how.method, how.neighborhood, neighbors)
        assert not few_points(how.method, how.neighborhood, neighbors + 1)
    assert not few_points("pca", PointPlacement().neighborhood, 4)
    chart = dataclasses.replace(
        embedding_map(charted, folder, np.zeros((480, 2), np.float32), method="umap"),
        n=2,
        neighborhood=PointPlacement(method="umap").neighborhood,
    )
    assert "4 points are too few for UMAP with 15 neighbors" in draw([chart]).notes[0]


def test_axes_say_their_share_of_the_variance(charted, folder):
    decomposition = pytest.importorskip("sklearn.decomposition")
    snapshot = read_snapshot(folder)
    both = np.concatenate([np.asarray(part, np.float64) for part in (snapshot.image, snapshot.text)])
    theirs = decomposition.PCA(2, svd_solver="full").fit(both)
    chart = embedding_map(charted, folder, pca(both))
    assert chart.shares == pytest.approx(theirs.explained_variance_ratio_.tolist(), abs=1e-5)
    drawn = panel.draw(draw([chart]))
    said = [axes.get_xlabel() for axes in drawn.axes if axes.get_xlabel()]
    assert said == [f"PC 1, {100 * chart.shares[0]:.0f} % of variance"]
    assert embedding_map(charted, folder, 9 * pca(both)).shares is None, "no projection"
    assert embedding_map(charted, folder, pca(both), method="umap").shares is None


def test_columns_color_pairs(charted, folder):
    layout = np.zeros((480, 2), dtype=np.float32)
    items = read_snapshot(folder).items
    for column, values in (("label", items.label), ("subject_color", items.metadata["subject_color"])):
        chart = embedding_map(charted, folder, layout, color=column)
        assert [chart.colors.names[i] for i in chart.colors.place] == values
        assert list(chart.colors.names) == sorted(set(values))
    # Every item has one split and one relation: nothing to tell apart.
    assert color_columns(items) == ("label", "subject_color", "caption")


def test_numbers_are_colored_along_a_scale(charted, folder, monkeypatch):
    items = read_snapshot(folder).items
    areas = [None, *(i / 2 for i in range(1, 240))]
    metadata = {**items.metadata, "area": areas, "few": [i % 3 for i in range(240)]}
    numbered = dataclasses.replace(items, metadata=metadata)
    snapshot = dataclasses.replace(read_snapshot(folder), items=numbered)
    monkeypatch.setattr(map_chart, "read_snapshot", lambda _: snapshot)
    layout = np.zeros((480, 2), dtype=np.float32)
    chart = embedding_map(charted, folder, layout, color="area")
    assert chart.colors.names == ()
    assert np.isnan(chart.colors.numbers[0])
    assert chart.colors.numbers[1:].tolist() == areas[1:]
    assert "area" in color_columns(numbered)
    # Few different numbers are classes.
    assert embedding_map(charted, folder, layout, color="few").colors.names == ("0", "1", "2")


def test_wrong_layouts_and_columns_are_refused(charted, folder):
    with pytest.raises(ChartError, match="do not belong together"):
        embedding_map(charted, folder, np.zeros((10, 2), dtype=np.float32))
    with pytest.raises(ChartError, match="no column 'taste' to color by; choose one of modality, label"):
        embedding_map(charted, folder, np.zeros((480, 2), dtype=np.float32), color="taste")


def naive_numbers(snapshot):
    """Return naive cosines and ranks: a wrong caption that ties counts as better, equal captions are one."""
    cosines = np.asarray(snapshot.image, np.float64) @ np.asarray(snapshot.text, np.float64).T
    captions, ranks = np.array(snapshot.items.caption), []
    for i, row in enumerate(cosines):
        right = captions == captions[i]
        ranks.append(1 + len(set(captions[~right & (row >= row[right].max())].tolist())))
    return np.diag(cosines), np.array(ranks)


def both_maps(charted, color):
    folders = [choose_snapshot(charted, charted.runs.get(run)).folder for run in (1, 2)]
    placed = [Placed(folder, np.zeros((480, 2), np.float32)) for folder in folders]
    return embedding_maps(charted, placed, color=color), [read_snapshot(folder) for folder in folders]


def test_the_legend_of_a_map_of_one_column_stands_clear_of_the_headings(charted):
    charts, _ = both_maps(charted, "label")
    figure = panel.draw(draw(charts), FigureChoices(width="1"))
    figure.draw_without_rendering()
    (legend,) = figure.findobj(Legend)
    headings = [text for axes in figure.axes for text in axes.texts if text.get_label() == "heading"]
    top = max(text.get_window_extent().y1 for text in headings)
    assert legend.get_window_extent().y0 - top >= 0.06 * figure.dpi


def test_agreement_rank_and_cosine_are_those_of_plain_loops(charted):
    charts, snapshots = both_maps(charted, "agreement")
    (_, rank_a), (_, rank_b) = map(naive_numbers, snapshots)
    said = [
        ("both right" if b == 1 else "only A right") if a == 1 else ("only B right" if b == 1 else "neither right")
        for a, b in zip(rank_a, rank_b, strict=True)
    ]
    for chart in charts:
        assert [chart.colors.names[i] for i in chart.colors.place] == said
    charts, _ = both_maps(charted, "rank")
    for chart, rank in zip(charts, (rank_a, rank_b), strict=True):
        bounds = {"1": (1, 1), "2–5": (2, 5), "6–10": (6, 10), "11–100": (11, 100), "over 100": (101, 10**9)}
        for group, place in zip(chart.colors.place, rank, strict=True):
            low, high = bounds[chart.colors.names[group]]
            assert low <= place <= high
        assert chart.colors.ordered
    charts, _ = both_maps(charted, "cosine")
    for chart, snapshot in zip(charts, snapshots, strict=True):
        assert chart.colors.numbers == pytest.approx(naive_numbers(snapshot)[0], abs=1e-5)
        assert chart.colors.own_scale


def test_agreement_needs_two_runs_of_the_same_pairs(charted, folder):
    with pytest.raises(ChartError, match="needs two runs"):
        embedding_map(charted, folder, np.zeros((480, 2), np.float32), color="agreement")


def test_many_pairs_are_ranked_among_a_sample_and_it_is_said(charted, folder, monkeypatch):
    monkeypatch.setattr(module, "MOST_RANKED", 100)
    monkeypatch.setattr(module, "CAPTIONS", 60)
    snapshot = read_snapshot(folder)
    numbers = pair_numbers(snapshot)
    assert (numbers.among, numbers.sampled) == (60, True)
    assert (numbers.rank <= naive_numbers(snapshot)[1]).all(), "fewer captions can only improve a rank"
    chart = embedding_map(charted, folder, np.zeros((480, 2), np.float32), color="rank")
    assert chart.colors.note == "ranks among 60 captions drawn at random"


def test_what_is_not_known_yet_is_gray():
    known = PairNumbers(np.zeros(3), np.array([1, 2, 3]), 3, 3)
    first, second = pair_colors(AGREEMENT, [ColoredMap(3, {}, known), ColoredMap(3, {})])
    assert first.place.tolist() == second.place.tolist() == [-1] * 3
    assert np.isnan(pair_colors("cosine", [ColoredMap(3, {})])[0].numbers).all()


def test_a_cloud_is_drawn_from_its_side(charted, folder):
    snapshot = read_snapshot(folder)
    xy, near = turned(components((snapshot.image, snapshot.text)), 30, 20)
    chart = embedding_maps(charted, [Placed(folder, xy, side=(30.0, 20.0), near=near)])[0]
    assert np.array_equal(chart.images, xy[:240])
    assert chart.side == (30.0, 20.0)


def test_isolated_classes_and_selected_pairs_stay_in_color(charted, folder):
    layout = np.random.default_rng(0).normal(size=(480, 2)).astype(np.float32)
    labels = read_snapshot(folder).items.label
    apart = layout + 20 * np.tile(np.unique(labels, return_inverse=True)[1], 2)[:, None]
    (mark,) = draw(embedding_maps(charted, [Placed(folder, apart)], color="label")).marks
    assert {dot.label for dot in class_names_on(mark)} == {*labels}, (
        "a file names classes where they are, as the window"
    )
    name = labels[3]
    placed = [Placed(folder, layout)] * 2
    charts = embedding_maps(charted, placed, color="label", isolate=[name], pairs=np.arange(100))
    for chart in charts:
        np.testing.assert_array_equal(chart.lit, [label == name and i < 100 for i, label in enumerate(labels)])
        assert chart.lit_note == f"only {name} in color; 100 selected pairs in color"
    header, rows = point_rows(charts)
    assert sum(row[header.index("in color")] for row in rows) == 4 * charts[0].lit_n
    (part,) = parts_of(draw(charts))
    assert (part.name, part.size) == ("map", "2 maps")
    drawn = panel.draw(draw(charts))
    grays = [c for c in drawn.axes[0].collections if len(c.get_offsets()) == 240 - charts[0].lit_n]
    assert len(grays) == 2
    assert f"n = {charts[0].lit_n}; the others gray" in "".join(text.get_text() for text in drawn.texts)
    few = panel.draw(draw(embedding_maps(charted, placed, color="label", pairs=np.arange(3))))
    (pale, _) = [c for c in few.axes[0].collections if len(c.get_offsets()) == 237]
    assert len(np.unique(pale.get_facecolors(), axis=0)) == len(set(labels[3:])), "beside a few the others keep a hue"
    assert "n = 3; the others pale" in "".join(text.get_text() for text in few.texts)
    with pytest.raises(ChartError, match="no class 'nothing'"):
        embedding_maps(charted, placed, color="label", isolate=["nothing"])
    with pytest.raises(ChartError, match="no pair 240"):
        embedding_maps(charted, placed, pairs=np.array([240]))


def test_what_changed_is_a_color_and_is_refused_without_a_second_run(charted, folder):
    layout = np.zeros((480, 2), np.float32)
    other = choose_snapshot(charted, charted.runs.get(2)).folder
    a, b = embedding_maps(charted, [Placed(folder, layout), Placed(other, layout)], color="image_rank_change")
    steps = [read_snapshot(one) for one in (folder, other)]
    found = map_values(changes(charted, (1, steps[0].step), (2, steps[1].step)))["image_rank_change"]
    np.testing.assert_array_equal(a.colors.numbers, found)
    np.testing.assert_array_equal(b.colors.numbers, found)
    assert a.colors.ends == (-a.colors.ends[1], a.colors.ends[1])
    assert a.colors.better == -1
    panel.draw(draw([a, b]))
    with pytest.raises(ChartError, match="needs two runs"):
        embedding_maps(charted, [Placed(folder, layout)], color="overlap")


def test_the_numbers_printed_are_those_of_the_colors(charted):
    a, b = (analyze_pairs.values(one) for one in ranked_pairs(charted, Request(targets_of([1, 2]))))
    assert a["n"] == b["n"] == 240
    assert sum(a[f"rank_{name}"] for name in rank_names()) == 240
    assert a["both_right"] + a["only_A_right"] == a["rank_1"]
    assert b["both_right"] + b["only_B_right"] == b["rank_1"]


def test_rows_of_a_command(tmp_path):
    np.save(tmp_path / "rows.npy", np.array([4, 2]))
    assert rows_of("0-2,7").tolist() == [0, 1, 2, 7]
    assert rows_of(str(tmp_path / "rows.npy")).tolist() == [2, 4]
    with pytest.raises(UserError, match="not pairs"):
        rows_of("many")
