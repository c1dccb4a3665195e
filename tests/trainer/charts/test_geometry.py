"""The geometry of a run is that of its snapshots."""

import itertools
import math

import numpy as np
import pytest

from tests.cancelled import cancelled
from trainer.charts import ChartError
from trainer.charts.geometry import CHART, PUBLISHED
from trainer.charts.measures import geometry as module
from trainer.charts.measures.geometry import GeometrySettings, sphere_density
from trainer.charts.settings import checked
from trainer.charts.snapshots import choose_snapshot
from trainer.charts.spec import PerRun, Request, targets_of
from trainer.store import Workspace, read_snapshot


@pytest.fixture(autouse=True)
def _few_draws(monkeypatch):
    monkeypatch.setattr(module, "DRAWS", 19)


def geometry(workspace: Workspace, *runs: int, steps=(), **settings) -> PerRun[module.Geometry]:
    request = Request(targets_of(runs, steps))
    return CHART.result(workspace, request, GeometrySettings(**settings), lambda share, note: None)


def test_angles_of_every_run_come_before_courses_and_these_before_p_values(charted):
    told = []
    request = Request(targets_of((1, 2)))
    parts = [*CHART.results(charted, request, GeometrySettings(), lambda share, _note: told.append(share))]
    known = [
        [(bool(run.course), math.isfinite(run.spreads["image"].p_ajne)) for run in part.found] for part in parts[:-1]
    ]
    bare, followed, whole = (False, False), (True, False), (True, True)
    assert known == [[bare], [bare] * 2, [followed, bare], [followed] * 2, [whole, followed], [whole] * 2]
    assert [part.mark("course").note for part in (CHART.panel(parts[1], GeometrySettings()),)] == ["computing…"]
    assert CHART.panel(parts[-1], GeometrySettings()).mark("course").note == "ring: step shown"
    assert told == sorted(told)
    assert max(told) <= 1


def test_a_sample_says_so_and_angles_are_of_all_its_pairs(charted):
    data = geometry(charted, 1, 2, most=200)
    panel = CHART.draw(data, GeometrySettings())
    (shown,) = panel.notes[panel.table_notes :]
    of_all = "Angles between all pairs of images, and of texts: 200 drawn at random."
    assert shown == of_all, "p and published values are told with the table"
    for run in data.found:
        assert (run.n, run.pairs) == (200, 240)
        assert [at.step for at in run.course["image"]] == [0, 80, 160, 240]
        snapshot = read_snapshot(choose_snapshot(charted, charted.runs.get(run.run)).folder)
        for name, spread in run.spreads.items():
            n = 200 if name == "image" else len(set(snapshot.items.caption))
            assert (spread.n, spread.n_tested, spread.d) == (n, n, 32)
            assert spread.angles.sum() == n * (n - 1) / 2
            assert spread.p_ajne >= 1 / 20
            degrees = (np.arange(180) + 0.5) @ spread.angle_density
            assert degrees == pytest.approx(spread.mean_angle, abs=0.5)
    assert sphere_density(32).sum() == pytest.approx(1)
    with pytest.raises(ChartError, match="1 is too small: choose at least 2"):
        checked(GeometrySettings(most=1))


def test_the_course_is_that_of_the_measure_chosen(charted):
    data = geometry(charted, 1, 2)
    _, lines = CHART.records(data, GeometrySettings())
    fields = {"angle": 6, "uniformity": 7, "resultant": 8, "ajne": 9}
    for course, column in fields.items():
        plot = CHART.draw(data, GeometrySettings(course=course)).mark("course")
        for curve, (run, modality) in zip(plot.curves, itertools.product((1, 2), ("image", "text")), strict=True):
            expected = [line[column] for line in lines if (line[0], line[4]) == (run, modality)]
            assert curve.y.tolist() == expected
            assert curve.x.tolist() == [0, 80, 160, 240]
    for run in data.found:
        for modality, spread in run.spreads.items():
            assert run.course[modality][-1].mean_angle == pytest.approx(spread.mean_angle)
            assert run.course[modality][-1].uniformity == pytest.approx(spread.uniformity)


def test_one_run_at_two_steps_has_one_course_and_both_are_marked(charted):
    plot = CHART.draw(geometry(charted, 1, steps=(80, 240)), GeometrySettings()).mark("course")
    assert len(plot.curves) == 2
    assert [(dot.tone, dot.x) for dot in plot.dots] == [("run_a", 80), ("run_a", 80), ("run_b", 240), ("run_b", 240)]


def test_published_values_stand_next_to_ours(charted):
    table = CHART.draw(geometry(charted, 1), GeometrySettings()).mark("published")
    assert [line.values[:2] for line in table.lines] == list(PUBLISHED.values())
    # A = n/4 - (n - 1) angle / 360
    for line in table.lines:
        for a, angle in zip(line.values[:2], line.values[2:], strict=True):
            assert a == pytest.approx(13_000 / 4 - 12_999 * angle / 360)


def test_the_work_can_be_cancelled(charted):
    with cancelled() as cancel:
        CHART.result(charted, Request(targets_of([1])), GeometrySettings(), cancel)
