"""Pairs along two axes of texts, against products in double precision."""

import numpy as np
import pytest

from trainer.charts import ChartError
from trainer.charts.axes import CHART, AxesSettings, AxisText, pairs_inside
from trainer.charts.snapshots import choose_snapshot
from trainer.charts.spec import Request, Target
from trainer.store import read_snapshot

X, Y = "a red ring; a red disc - a blue ring", "a ring"


def embed(texts) -> np.ndarray:
    rows = np.stack([np.random.default_rng(sum(map(ord, text))).normal(size=32) for text in texts])
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def found(workspace, settings: AxesSettings):
    texts = CHART.sentences(workspace, Request((Target(2),)), settings)
    request = Request((Target(2),), vectors=(tuple(map(tuple, embed(texts).tolist())),))
    return CHART.result(workspace, request, settings, lambda *_: None)


def test_points_are_inner_products_with_unit_directions(charted):
    line = AxisText.parse(X)
    assert (line.plus, line.minus) == (("a red ring", "a red disc"), ("a blue ring",))
    data = found(charted, AxesSettings(X, Y))
    snapshot = read_snapshot(choose_snapshot(charted, charted.runs.get(2)).folder)
    direction = embed(line.plus).mean(0) - embed(line.minus).mean(0)
    for rows, points in ((snapshot.image, data.found[0].images), (snapshot.text, data.found[0].texts)):
        naive = [sum(float(a) * float(b) for a, b in zip(row, direction)) / np.linalg.norm(direction) for row in rows]
        assert np.allclose(points[:, 0], naive, atol=1e-5)
    values = CHART.numbers(data, AxesSettings(X, Y))[0]
    assert values["mean_text_x"] == pytest.approx(np.mean(naive), abs=1e-5)
    header, records = CHART.records(data, AxesSettings(X, Y))
    assert len(records) == 2 * data.found[0].n
    assert header[-2:] == ("x", "y")


def test_a_rectangle_holds_the_pairs_with_a_point_inside(charted):
    data = found(charted, AxesSettings(X, Y))
    run, middle = data.found[0], float(np.median(data.found[0].texts[:, 1]))
    inside = pairs_inside(data, "axes-0", (-2.0, 2.0, -2.0, middle))
    naive = [pair for pair in range(run.n) if min(run.images[pair, 1], run.texts[pair, 1]) <= middle]
    assert inside.tolist() == naive


def test_axes_without_a_direction_are_refused(charted):
    with pytest.raises(ChartError, match="are the same"):
        found(charted, AxesSettings("a ring - a ring", Y))
    with pytest.raises(ChartError, match="needs a sentence"):
        found(charted, AxesSettings(" - a ring", Y))


def test_classes_share_the_colors_of_the_map(charted):
    data = found(charted, AxesSettings(X, Y))
    (plot,) = CHART.panel(data, AxesSettings(X, Y)).marks
    classes = data.found[0].classes
    drawn = sum(len(cloud.xy) for cloud in plot.points)
    assert drawn == 2 * data.found[0].n
    for cloud in plot.points if classes else ():
        assert {data.found[0].labels[pair] for pair in cloud.ids} <= {cloud.classes[cloud.at]}
