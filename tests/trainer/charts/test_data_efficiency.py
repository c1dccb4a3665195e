"""Data efficiency of groups: pairs seen are updates times batch size; the level, the budget and the files."""

import csv
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from trainer import config
from trainer.__main__ import main
from trainer.charts import ChartError
from trainer.charts.data_efficiency import EfficiencySettings, values
from trainer.charts.measures.data_efficiency import efficiency, measured_data
from trainer.store import Question, Workspace

pytestmark = pytest.mark.slow

STEPS = (0, 10, 20, 30)
CLIP = np.array([[0.1, 0.40, 0.60, 0.70], [0.1, 0.44, 0.64, 0.74], [0.1, 0.42, 0.62, 0.72]])
BAG = np.array([[0.1, 0.15, 0.30, 0.41], [0.1, 0.17, 0.30, 0.43], [0.1, 0.16, 0.30, 0.42]])

ASKED = {"zero_shot": Question("zero_shot", 500, 10)}


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """Return three seeds of each; the bag of words learns in batches of 64, CLIP in batches of 32."""
    workspace = Workspace(tmp_path_factory.mktemp("efficiency"))
    for name, objective, scores, batch in (("clip", config.Clip(), CLIP, 32), ("bag", config.Multiclass(), BAG, 64)):
        for seed, curve in enumerate(scores.tolist()):
            choice = replace(config.Run().optimizer, batch_size=batch)
            run = config.Run(name=f"{name} seed {seed}", seed=seed, objective=objective, optimizer=choice)
            number = workspace.runs.create(run, experiment="duel", arm=name, status="finished")
            for step, value in zip(STEPS, curve, strict=True):
                workspace.results.add_evaluation(number, step, "toys", "val", {"zero_shot_acc1": value}, ASKED)
    lone = workspace.runs.create(config.Run(name="other"), status="finished")
    workspace.results.add_evaluation(lone, 5, "elsewhere", "test", {"zero_shot_acc1": 0.5})
    return workspace


def test_pairs_seen_level_and_budget(trained: Workspace):
    chart = efficiency(trained, ["clip*", "bag*"])
    clip, bag = chart.groups
    assert (chart.dataset, chart.split, chart.n, chart.words) == ("toys", "val", 500, True)
    assert clip.band.pairs.tolist() == [0, 320, 640, 960]
    assert bag.band.pairs.tolist() == [0, 640, 1280, 1920]
    assert clip.band.mean == pytest.approx(CLIP.mean(0))
    assert clip.band.std == pytest.approx(CLIP.std(0, ddof=1))
    # The best mean of the bag is 42 %; CLIP has it after its second measurement.
    assert chart.level == pytest.approx(0.42)
    assert (clip.reached, bag.reached) == (pytest.approx(320), pytest.approx(1920))
    assert chart.all_reach
    # Both were measured at 640 pairs: 20 updates of the one, 10 of the other.
    assert chart.budget == 640
    assert (chart.test.mean_a, chart.test.mean_b) == (pytest.approx(0.62), pytest.approx(0.16))
    assert chart.test.welch < 1e-3
    sentence = chart.sentence()
    assert "clip reaches a mean of 42.0 % after 320 pairs, bag after 1,920 (interpolated linearly)" in sentence
    assert "times as" not in sentence, "a ratio would need an interval"


def test_an_experiment_stands_for_its_arms(trained: Workspace):
    by_arm, by_name = efficiency(trained, ["duel"]), efficiency(trained, ["clip*", "bag*"])
    assert [group.pattern for group in by_arm.groups] == ["clip", "bag"]
    for arm, named in zip(by_arm.groups, by_name.groups, strict=True):
        assert arm.band.mean.tolist() == named.band.mean.tolist()
        assert arm.reached == named.reached


def test_figure_rows_and_commands_say_the_same(trained: Workspace, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    where = ["--workspace", str(trained.folder)]
    groups = ["--group", "clip*", "--group", "bag*"]
    files = [tmp_path / name for name in ("e.svg", "e.png", "e.csv")]
    assert main(["export", "data-efficiency", *groups, "--out", *map(str, files), *where]) == 0
    assert all(file.stat().st_size > 500 for file in files)
    assert "Pairs seen" in files[0].read_text(encoding="utf-8")
    rows = list(csv.DictReader(files[2].open(encoding="utf-8")))
    means = [float(row["y"]) for row in rows if row["series"].startswith("clip (CLIP) · 3 seeds")]
    assert means == pytest.approx((100 * CLIP.mean(0)).tolist())
    assert main(["export", "data-efficiency", *groups, "--records", "--out", str(files[2]), *where]) == 0
    assert len(list(csv.DictReader(files[2].open(encoding="utf-8")))) == 24
    capsys.readouterr()
    assert main(["analyze", "data-efficiency", *groups, "--json", *where]) == 0
    told = json.loads(capsys.readouterr().out)["runs"]
    assert told[1]["pairs_seen"] == [0, 640, 1280, 1920]
    assert told[0]["best"] == pytest.approx(CLIP.mean(0)[-1])
    assert main(["analyze", "data-efficiency", *groups, *where]) == 0
    assert "0.7200" in capsys.readouterr().out


def test_what_cannot_be_drawn_is_said(trained: Workspace):
    with pytest.raises(ChartError, match="No run is called siglip"):
        efficiency(trained, ["siglip*"])
    with pytest.raises(ChartError, match="not measured of all groups on one data set"):
        efficiency(trained, ["clip*", "other"])
    with pytest.raises(ChartError, match="not measured of clip"):
        efficiency(trained, ["clip*"], measure="knn_acc1")
    assert measured_data(trained, ["clip*", "bag*"]) == {("toys", "val"): ["zero_shot_acc1"]}
    alone = efficiency(trained, ["other"])
    assert (alone.all_reach, alone.test, len(alone.groups)) == (False, None, 1)
    assert values(alone, EfficiencySettings())[0]["pairs_seen"] == [5 * 128]
