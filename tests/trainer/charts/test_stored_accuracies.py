"""Charts of stored accuracies: by the size of a run, and zero-shot against probe on each data set."""

import math

import numpy as np
import pytest

from trainer import config
from trainer.__main__ import main
from trainer.charts import ChartError, accuracy_by_size, probe_by_set, published_table
from trainer.charts.spec import Request, targets_of
from trainer.store import Question, RunLog, Workspace

ASKED = {"zero_shot": Question("zero_shot", 200, 10), "linear_probe": Question("linear_probe", 200, 10)}
SETS = {"photos": (0.9, 0.8), "sketches": (0.6, 0.2), "birds": (0.5, 0.45)}


def evaluated(workspace: Workspace, name: str, objective: config.Objective, parameters: int, lift: float) -> int:
    run = workspace.runs.create(config.Run(name=name, objective=objective))
    with RunLog.claim(workspace, run) as log:
        log.facts(parameters=parameters)
        log.status("finished")
    for step in (8, 16):
        for data, (probe, zero_shot) in SETS.items():
            metrics = {"linear_probe_acc1": probe + lift - (step == 8) * 0.1, "zero_shot_acc1": zero_shot}
            workspace.results.add_evaluation(run, step, data, "test", metrics, ASKED)
    return run


@pytest.fixture
def runs(workspace: Workspace) -> list[int]:
    return [
        evaluated(workspace, "views", config.SimClr(), 1_000_000, 0.0),
        evaluated(workspace, "classes", config.CrossEntropy(), 4_000_000, 0.05),
    ]


def test_runs_are_drawn_by_their_size_and_the_supervised_one_otherwise(workspace, runs, capsys):
    bare = workspace.runs.create(config.Run(name="bare"))
    settings = accuracy_by_size.AccuracyBySizeSettings("photos/linear_probe_acc1")
    data = accuracy_by_size.compute(workspace, Request(targets_of([*runs, bare])), settings, lambda *_: None)
    assert [(run.parameters, run.value) for run in data.runs] == [(1_000_000, 0.9), (4_000_000, pytest.approx(0.95))]
    panel = accuracy_by_size.draw(data, settings)
    plot = panel.mark("sizes")
    assert [(dot.x, dot.y, dot.mark) for dot in plot.dots] == [
        (1_000_000, pytest.approx(90), "disc"), (4_000_000, pytest.approx(95), "diamond")]  # fmt: skip
    assert plot.x.log
    assert plot.x.low < 1_000_000 < 4_000_000 < plot.x.high
    assert [row.values[0] for row in panel.mark("runs").lines] == [4.0, 1.0], "the most accurate first"
    assert panel.warnings == ("1 of the chosen runs has no such number or no size.",)
    with pytest.raises(ChartError, match="evaluate RUN --task linear_probe"):
        accuracy_by_size.compute(workspace, Request(targets_of([bare])), settings, lambda *_: None)
    words = ["analyze", "accuracy-by-size", *map(str, runs), "--outcome", "photos/linear_probe_acc1"]
    assert main([*words, "--workspace", str(workspace.folder)]) == 0
    assert "classes" in capsys.readouterr().out


def test_the_newest_step_of_each_data_set_is_drawn_and_correlated(workspace, runs):
    settings = probe_by_set.ProbeBySetSettings()
    data = probe_by_set.compute(workspace, Request(targets_of(runs)), settings, lambda *_: None)
    assert {(point.data, point.step) for point in data} == {(f"{name}, test", 16) for name in SETS}
    own = [point for point in data if point.place == 1]
    assert [point.probe for point in own] == pytest.approx([SETS[p.data.split(",")[0]][0] + 0.05 for p in own])
    r = np.corrcoef([p.probe for p in own], [p.zero_shot for p in own])[0, 1]
    assert probe_by_set.correlation(own) == pytest.approx(r, abs=1e-12)
    assert math.isnan(probe_by_set.correlation(own[:2]))
    panel = probe_by_set.draw(data, settings)
    gaps = {row.words: row.values[2] for row in panel.mark("gaps").lines}
    assert len(gaps) == 6
    sketches = [gap for name, gap in gaps.items() if name.startswith("sketches")]
    assert sorted(sketches) == pytest.approx([-45, -40])
    lacking = probe_by_set.ProbeBySetSettings("fine_tune_acc1")
    with pytest.raises(ChartError, match="has fine_tune_acc1 and zero_shot_acc1 of one data set"):
        probe_by_set.compute(workspace, Request(targets_of(runs)), lacking, lambda *_: None)


def test_own_runs_stand_starred_in_the_table_of_the_paper(workspace, capsys):
    runs = []
    for seed, value in enumerate((0.02, 0.03, 0.07)):
        runs.append(workspace.runs.create(config.Run(name=f"own {seed}", seed=seed), status="finished"))
        for step, lift in ((8, 0.5), (16, 0.0)):
            values = {"zero_shot_acc1": value + lift}
            workspace.results.add_evaluation(runs[-1], step, "GTSRB", "test", values, {"zero_shot": ASKED["zero_shot"]})
    settings = published_table.PublishedTableSettings("cc", ("own *",))
    data = published_table.compute(workspace, Request(targets_of(runs)), settings, lambda *_: None)
    assert data.columns[-1] == "own **"
    assert data.columns[0] == "CLIP RN50, 31 epochs"
    assert data.rows["GTSRB"][0].text == "7.66 ± 1.07", "as printed"
    spread = 100 * np.std([0.02, 0.03, 0.07], ddof=1)
    assert data.rows["GTSRB"][-1].text == f"4.00 ± {spread:.2f}"
    assert data.rows["Birdsnap"][-1] is None
    line = next(row for row in published_table.draw(data, settings).mark("published").lines if row.words == "GTSRB")
    assert line.best == {2}, "CLIP of 128 epochs"
    alone = published_table.PublishedTableSettings("cc")
    single = published_table.compute(workspace, Request(targets_of(runs[:1])), alone, lambda *_: None)
    assert single.rows["GTSRB"][-1].text == "2.00"
    other = published_table.PublishedTableSettings("linear_probe")
    with pytest.raises(ChartError, match="evaluated by linear_probe on"):
        published_table.compute(workspace, Request(targets_of(runs)), other, lambda *_: None)
    words = ["analyze", "published-table", str(runs[0]), "--group", "own *", "--workspace", str(workspace.folder)]
    assert main(words) == 0
    assert "7.66 ± 1.07" in capsys.readouterr().out
