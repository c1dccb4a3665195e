"""Runs of different data have no axis and no table in common, whichever chart draws them."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.nightly import few_plain
from tests.two_runs import write_run_on_other_data, write_two_runs
from trainer import config
from trainer.charts.marks import NumberTable, XYPlot, run_tone
from trainer.charts.registry import load
from trainer.charts.spec import PerRun, Request, targets_of
from trainer.charts.timeline import draw, timeline
from trainer.store import Workspace


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory):
    folder: Path = tmp_path_factory.mktemp("different data")
    write_two_runs(folder, [(config.Run(name="good"), 0.2), (config.Run(name="bad"), 0.8)], curves=True)
    opened = Workspace(folder / "workspace")
    write_run_on_other_data(opened)
    yield opened
    opened.close()


CHARTS = ("gap", "similarity", "snapshot-curves", "geometry", "hubness", "embedding-spectrum", "hopfield-spectrum")


@few_plain(4, "name", CHARTS)
def test_runs_of_each_data_are_drawn_as_if_alone(workspace: Workspace, name: str):
    chart = load(name)
    settings = chart.settings()
    data = chart.result(workspace, Request(targets_of((1, 2, 3))), settings, lambda *_: None)
    panel = chart.panel(data, settings)
    alone = [chart.draw(PerRun(data.found[part], data.places[part]), settings) for part in (slice(2), slice(2, 3))]
    assert len({mark.key for mark in panel.marks}) == len(panel.marks)
    for number, drawn in enumerate(alone):
        for mark in drawn.marks:
            own = next((m for m in panel.marks if number and m.key == f"{mark.key}-1"), None) or panel.mark(mark.key)
            if isinstance(mark, XYPlot):
                assert (own.x, own.y) == (mark.x, mark.y)
                np.testing.assert_equal([curve.y for curve in own.curves], [curve.y for curve in mark.curves])
            elif isinstance(mark, NumberTable) and mark.badges:
                assert own.columns == mark.columns
                assert own.tones == tuple(map(run_tone, (0, 1) if number == 0 else (2,)))[: len(own.columns)]
    assert "own on own, held-out" in panel.warnings[0]
    both = chart.result(workspace, Request(targets_of((1, 2))), settings, lambda *_: None)
    keys = [mark.key for mark in chart.draw(both, settings).marks]
    assert [mark.key for mark in chart.panel(both, settings).marks] == keys, "runs of the same data stay together"


def test_curves_of_a_timeline_in_a_file_share_no_axis(workspace: Workspace):
    panel = draw(timeline(workspace, [1, 3]))
    assert panel.mark("gap").y != panel.mark("gap-1").y
    names = [[curve.name for curve in panel.mark(key).curves] for key in ("gap", "gap-1")]
    assert names == [["CLIP · good"], ["CLIP · own"]]
    assert panel.warnings[0].startswith("Different data: ")


def test_probes_of_different_data_share_no_plot_and_the_ablation_stays_with_its_data(workspace: Workspace):
    chart = load("attribute-probes")
    settings = replace(chart.settings(), independent=False, ablation=False)
    data = chart.result(workspace, Request(targets_of((1, 2))), settings, lambda *_: None)
    other = replace(data.found[0], run=3, name="CLIP · own", dataset="own", split="heldout")
    data = replace(data, found=(*data.found, other), places=(0, 1, 2))
    panel = chart.panel(data, settings)
    plots = [mark for mark in panel.marks if isinstance(mark, XYPlot)]
    assert {frozenset(dot.name for dot in plot.dots) for plot in plots} == {
        frozenset({"CLIP · good", "CLIP · bad"}),
        frozenset({"CLIP · own"}),
    }
    assert "own on own, held-out" in panel.warnings[0]
    elsewhere = replace(data.found[0], run=9, name="ablated", split="independent")
    parts = replace(data, ablation=(replace(other, name="alike"), elsewhere)).by_data()
    assert [[run.name for run in (*part.found, *part.ablation)] for part in parts] == [
        ["CLIP · good", "CLIP · bad"],
        ["CLIP · own", "alike"],
        ["ablated"],
    ]
