"""The chart of measures over training: its plots and table against the stored snapshots."""

import contextlib
import math
from pathlib import Path

import numpy as np
import pytest

from tests.builders import writable_copy
from trainer.analysis.progress import silent
from trainer.charts import registry
from trainer.charts.settings import NoSettings
from trainer.charts.snapshot_curves import measure_plot, value_at
from trainer.charts.snapshot_series import MEASURES, MeasureCurve, TimelineRun, measure_name
from trainer.charts.spec import PerRun, Request, Target
from trainer.charts.timeline import curve_rows, timeline
from trainer.store import RunLog, Workspace, read_snapshot

CHART = registry.load("snapshot-curves")


@pytest.fixture
def found(charted: Workspace) -> PerRun:
    return CHART.result(charted, Request((Target(1), Target(2))), NoSettings(), silent)


@pytest.mark.slow
def test_every_measure_is_one_plot_of_both_runs(found: PerRun):
    panel = CHART.panel(found, NoSettings())
    for measure in MEASURES:
        plot = panel.mark(measure.key)
        shown = [one.run for one in found.found if measure.key in one.run.curves]
        assert [curve.name for curve in plot.curves] == [run.name for run in shown]
        for curve, run in zip(plot.curves, shown, strict=True):
            assert np.array_equal(curve.y, run.curves[measure.key].y, equal_nan=True)
            known = curve.y[np.isfinite(curve.y)]
            assert plot.y.low <= known.min()
            assert known.max() <= plot.y.high


@pytest.mark.slow
def test_the_table_tells_the_values_of_the_step(charted: Workspace, found: PerRun):
    step = found.found[0].run.steps[1]
    data = CHART.result(charted, Request((Target(1, step), Target(2, step))), NoSettings(), silent)
    panel = CHART.panel(data, NoSettings())
    rows = {line.words: line.values for line in panel.mark("values").lines}
    for place, one in enumerate(data.found):
        snapshot = read_snapshot(one.run.folders[1])
        image, text = (np.asarray(part, np.float64) for part in (snapshot.image, snapshot.text))
        distances = [float(((a - b) ** 2).sum()) for a, b in zip(image, text, strict=True)]
        assert rows["Alignment, n = 240"][place] == pytest.approx(sum(distances) / len(distances), rel=1e-4)
    assert panel.mark("gap").cursor == step


def test_each_measure_names_the_n_that_it_was_measured_on(tmp_path: Path, charted: Workspace):
    with contextlib.closing(writable_copy(charted.folder, tmp_path / "own")) as own:
        with RunLog.claim(own, 1) as log:
            log.scalars(240, {"val/modality_gap": 0.1})
        own.runs.add_facts(1, {"heldout_pairs": {"renderings": 999}})
        panel = CHART.panel(CHART.result(own, Request((Target(1),)), NoSettings(), silent), NoSettings())
        assert panel.mark("gap").title == "Modality gap, n = 999", "logged, of all pairs"
        assert panel.mark("uniformity").title == "Uniformity, images, n = 240", "of the pairs of the snapshot"
        assert measure_name(MEASURES[-1], []) == "Temperature", "no measure of pairs"
        assert "tau" not in [mark.key for mark in panel.marks], "the run has none"
        rows = curve_rows(timeline(own, [1]))
        at = rows[0].index("measured_on")
        assert {row[at] for row in rows[1] if row[rows[0].index("measure")] == "gap"} == {999}


def curve_of(*values: float) -> MeasureCurve:
    return MeasureCurve(np.arange(len(values), dtype=float) * 10, np.array(values), logged=False)


def test_a_value_is_the_last_known_one():
    curve = curve_of(0.5, math.nan, 0.7)
    assert value_at(curve, 15) == 0.5
    assert value_at(curve, 20) == 0.7
    assert math.isnan(value_at(curve, -1))
    assert math.isnan(value_at(None, 20))


def test_a_plot_of_nothing_has_axes():
    plot = measure_plot(MEASURES[1], [])
    assert plot.curves == ()
    assert plot.x.high > plot.x.low


def test_the_curves_of_a_film_are_those_of_the_chart(found: PerRun):
    import matplotlib.pyplot as plt

    from trainer.render_mpl.xy_plot import draw_small

    runs: list[TimelineRun] = [one.run for one in found.found]
    figure, axes = plt.subplots()
    plot = measure_plot(MEASURES[1], runs)
    draw_small(axes, plot)
    for line, curve in zip(axes.lines, plot.curves, strict=True):
        assert np.array_equal(line.get_ydata(), curve.y)
    assert axes.get_legend() is None
    plt.close(figure)
