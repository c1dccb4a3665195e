"""Data efficiency as an experiment: arms over shares of the training pairs, their figure, and the command."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from tests.trainer.experiments.conftest import end
from trainer import config
from trainer.__main__ import main
from trainer.charts import experiment_verdict
from trainer.charts.outcome_by_field import outcome_by_field
from trainer.config import ConfigError, presets
from trainer.experiments.experiment import ablation, data_efficiency, from_toml, of_grid, read, to_toml
from trainer.experiments.verdict import judge
from trainer.scheduling import experiments

PRESETS = ("clip-scenes", "cloob-scenes")
SHARES = (0.25, 1.0, 0.5)


def made(**values):
    return data_efficiency([presets.preset(name) for name in PRESETS], SHARES, **values)


def test_arms_differ_in_the_share_and_take_equal_updates():
    found = made(seeds=2)
    told = [(arm.name, arm.run.data.train_share, arm.run.optimizer.epochs) for arm in found.arms]
    epochs = presets.preset("clip-scenes").optimizer.epochs
    assert told == [
        (f"{label}, {100 * share:g} %", share, round(epochs / share))
        for label in ("CLIP", "CLOOB")
        for share in (1.0, 0.5, 0.25)
    ]
    assert (found.least_seeds, found.most_seeds, found.control.name) == (2, 2, "CLIP, 100 %")
    assert {arm.run.optimizer.epochs for arm in made(updates=False).arms} == {epochs}
    assert from_toml(to_toml(found)) == found
    with pytest.raises(ConfigError, match="two shares"):
        data_efficiency([presets.preset("clip-scenes")], [1.0])


def test_the_figure_has_a_line_for_each_objective_over_its_training_pairs(workspace):
    found = made(seeds=3)
    experiments.begin(workspace, found)
    scores, generator = {}, np.random.default_rng(0)
    for row in workspace.runs.of_experiment(found.name):
        run = workspace.runs.config_of(row.id)
        value = float(generator.random())
        pairs = round(1_000 * run.data.train_share)
        scores.setdefault((run.objective.label, pairs), []).append(100 * value)
        workspace.runs.add_facts(row.id, {"train_pairs": pairs})
        end(workspace, row.id, {"image_to_text_R@1": value})
    plot = outcome_by_field(judge(workspace, found.name))
    assert [curve.name for curve in plot.curves] == ["CLIP", "CLOOB"]
    assert plot.x.label == "Training pairs"
    for curve, points in zip(plot.curves, plot.points, strict=True):
        assert curve.x.tolist() == [250, 500, 1000]
        for at, pairs in enumerate(curve.x):
            seeds = scores[curve.name, int(pairs)]
            low, high = np.clip(stats.t.interval(0.95, 2, loc=np.mean(seeds), scale=stats.sem(seeds)), 0, 100)
            assert (curve.low[at], curve.y[at], curve.high[at]) == pytest.approx((low, np.mean(seeds), high))
            assert points.xy[points.xy[:, 0] == pairs, 1].tolist() == pytest.approx(seeds)
    panel = experiment_verdict.CHART.panel(judge(workspace, found.name), experiment_verdict.ExperimentSettings())
    assert panel.mark("by-field").title.endswith("by training pairs")


def test_arms_without_the_field_are_lines_across_and_no_line_is_made_of_other_differences(workspace):
    from trainer.experiments.experiment import Arm, default_outcome, differing, Experiment  # noqa: I001

    cloob = presets.preset("cloob-scenes")
    arms = [Arm("CLIP", presets.preset("clip-scenes"))]
    arms += [Arm(f"share {s}", config.replace(cloob, "objective.retrieval_share", str(s))) for s in (0.25, 1.0)]
    outcome = default_outcome(cloob)
    found = Experiment(name="shares", arms=tuple(arms), outcome=outcome, fields=differing(arms))
    experiments.begin(workspace, found)
    for row in workspace.runs.of_experiment("shares"):
        end(workspace, row.id, {"image_to_text_R@1": {"CLIP": 0.5, "share 0.25": 0.3, "share 1.0": 0.1}[row.arm]})
    plot = outcome_by_field(judge(workspace, "shares"))
    line, across = plot.curves
    assert (line.x.tolist(), line.y.tolist()) == ([0.25, 1.0], pytest.approx([30, 10]))
    assert (across.name, across.dashed, set(across.y.tolist())) == ("CLIP", True, {50.0})
    four = ablation(presets.preset("clip-scenes"))
    workspace.experiments.add(four.name, to_toml(four))
    assert outcome_by_field(judge(workspace, four.name)) is None, "their temperatures come with their objectives"


def test_views_that_are_turned_blurred_and_cropped_together_are_no_line_over_one_of_these(workspace):
    found = read(Path(__file__).parents[2] / "benchmarks" / "studies" / "convirt_scenes_short.toml")
    experiments.begin(workspace, found)
    for row in workspace.runs.of_experiment(found.name):
        end(workspace, row.id, {"image_to_text_R@1": 0.5})
    assert outcome_by_field(judge(workspace, found.name)) is None


def test_a_grid_of_two_fields_has_a_line_for_each_value_of_the_second(workspace):
    run = replace(presets.preset("cloob-scenes"), name="base")
    found = of_grid(run, {"beta": ("4", "8"), "batch": ("32", "64")}, [0])
    experiments.begin(workspace, found)
    plot = outcome_by_field(judge(workspace, found.name))
    assert len(plot.curves) == 2
    assert len({curve.name for curve in plot.curves}) == 2


def test_the_command_makes_the_experiment_and_queues_it(workspace, capsys):
    space = ("--workspace", str(workspace.folder))
    words = ("data-efficiency", "--preset", "clip-scenes", "--shares", "0.5", "1", "--seeds", "2", "--queue")
    assert main([*words, "--set", "data.train_pairs=64", "--json", *space]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["experiment"] == "Data efficiency on Scenes"
    rows = workspace.runs.of_experiment(said["experiment"])
    assert [(row.arm, row.status) for row in rows] == [("CLIP, 100 %", "queued"), ("CLIP, 50 %", "queued")] * 2
    assert main([*words, "--out", "figure.doc", *space]) == 2
    assert "choose a name that ends in" in capsys.readouterr().err
    assert len(workspace.experiments.all()) == 1


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.nightly
def test_the_command_trains_and_shows_its_figure(workspace, capsys, tmp_path, trained_here):
    small = {"data.train_pairs": 128, "data.heldout_pairs": 16, "model.image_size": 32, "batch": 16}
    small |= {"optimizer.epochs": 1, "optimizer.warmup_steps": 1}
    changes = [word for name, value in small.items() for word in ("--set", f"{name}={value}")]
    figure, page = tmp_path / "figure.svg", tmp_path / "page.html"
    words = ("data-efficiency", "--preset", "clip-scenes", "--shares", "0.25", "1", "--seeds", "1")
    space = ("--workspace", str(workspace.folder))
    assert main([*words, *changes, "--out", str(figure), str(page), *space]) == 0
    told = capsys.readouterr().out
    assert "CLIP, 25 % against CLIP, 100 %" in told
    rows = workspace.runs.of_experiment("Data efficiency on Scenes")
    facts = [(row.facts["train_pairs"], row.step, row.status) for row in rows]
    assert facts == [(128, 8, "finished"), (32, 8, "finished")], "as many updates on fewer pairs"
    assert "Training pairs" in figure.read_text(encoding="utf-8")
