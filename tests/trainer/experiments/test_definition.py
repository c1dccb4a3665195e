"""Experiments as files: whole, checked with helpful words, and never an instruction."""

import dataclasses

import pytest

from tests.trainer.experiments.conftest import OUTCOME
from trainer import config
from trainer.config import ConfigError, presets
from trainer.experiments.experiment import (
    ablation,
    check_measured,
    differing,
    from_toml,
    of_presets,
    read,
    repeated,
    to_toml,
)
from trainer.scheduling import experiments

SHORT = """
name = "beta"
question = "Does a larger beta help?"
margin = 0.01
fields = ["objective.scale_hopfield"]
epochs = 2

[outcome]
metric = "image_to_text_R@1"
split = "renderings"

[[arm]]
name = "as published"
preset = "cloob-scenes"

[[arm]]
name = "14"
preset = "cloob-scenes"
set = { objective.beta = 14 }

[[secondary]]
metric = "image_to_text_median_rank"
split = "renderings"
"""


def test_a_short_file_becomes_a_whole_one_that_says_the_same():
    found = from_toml(SHORT)
    assert [arm.name for arm in found.arms] == ["as published", "14"]
    assert found.arms[1].run.objective.scale_hopfield == 14
    assert {arm.run.optimizer.epochs for arm in found.arms} == {2}
    assert found.secondaries[0].direction == "down"
    again = from_toml(to_toml(found))
    assert again == found
    assert "preset" not in to_toml(found)


def test_what_is_set_for_all_comes_before_what_is_set_for_one():
    found = from_toml(SHORT.replace("epochs = 2", 'set = { optimizer.epochs = 3, "objective.beta" = 9 }'))
    assert [arm.run.objective.scale_hopfield for arm in found.arms] == [9, 14]
    assert {arm.run.optimizer.epochs for arm in found.arms} == {3}
    with pytest.raises(ConfigError, match="write set ="):
        from_toml(SHORT.replace("epochs = 2", "set = 3"))


def test_seeds_and_names_of_its_runs():
    found = from_toml(SHORT)
    run = found.run_of(found.arms[1], 3)
    assert (run.seed, run.name) == (3, "beta, 14, seed 3")
    assert list(found.seeds) == [0, 1, 2, 3, 4]
    config.check(run)


def test_presets_and_a_repeated_run_make_experiments():
    duel = of_presets("duel", ("clip-scenes", "cloob-scenes"), OUTCOME)
    assert [arm.name for arm in duel.arms] == ["CLIP", "CLOOB"]
    assert "objective" in duel.fields
    grid = repeated(presets.preset("cloob-scenes"), "optimizer.batch_size", ("128", "256"), OUTCOME)
    assert [arm.run.optimizer.batch_size for arm in grid.arms] == [128, 256]
    assert grid.fields == ("optimizer.batch_size",) == differing(grid.arms)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("margin = 0.01", "margin = -1.0"), "margin"),
        (('preset = "cloob-scenes"\nset', 'preset = "clip-scenes"\nset'), "no such field"),
        (("set = { objective.beta = 14 }", ""), "is the same as"),
        (("{ objective.beta = 14 }", "{ objective.beta = 14, optimizer.batch_size = 64 }"), "also differs"),
        (('metric = "image_to_text_R@1"', 'metric = "loss"'), "losses of different objectives"),
        (('metric = "image_to_text_R@1"', 'metric = "modality_gap"'), "write up if more is better"),
        (('name = "14"', 'name = "as published"'), "Two arms"),
        (("epochs = 2", "epochs = 2\nrun_now = true"), "unknown field 'run_now'"),
        (("epochs = 2", "epochs = 2\nmost_seeds = 1000"), "most_seeds"),
        (('name = "beta"', "name = 7"), "name must be a text"),
        (('split = "renderings"\n\n[[arm]]', 'splitt = "x"\n\n[[arm]]'), "splitt"),
        (("[outcome]", "[outcome"), "not valid TOML"),
    ],
)
def test_what_is_wrong_is_told_with_what_to_do(change, words):
    assert change[0] in SHORT
    with pytest.raises(ConfigError, match=words):
        from_toml(SHORT.replace(*change, 1))


def test_unreadable_and_endless_files_are_refused(tmp_path):
    (tmp_path / "x.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError, match="UTF-8"):
        read(tmp_path / "x.toml")
    with pytest.raises(ConfigError, match="cannot be read"):
        read(tmp_path / "none.toml")
    with pytest.raises(ConfigError, match="characters"):
        from_toml("#" * 1_000_001)


def test_a_split_that_no_run_is_measured_on_is_refused_before_anything_trains(workspace):
    wrong = SHORT.replace('split = "renderings"', 'split = "test"')
    workspace.experiments.add("beta", to_toml(from_toml(wrong)))
    with pytest.raises(ConfigError, match="hold out renderings and combinations"):
        experiments.start(workspace, "beta")
    assert workspace.runs.all() == []
    elsewhere = wrong.replace('split = "test"', 'split = "test"\ndataset = "others"', 1)
    check_measured(from_toml(elsewhere))


def test_a_relative_folder_starts_where_the_command_does_and_a_missing_one_starts_nothing(
    workspace, tmp_path, monkeypatch
):
    file = tmp_path / "emoji.toml"
    folder = '[data]\nkind = "webdataset"\npath = "train"\n\n[outcome]'
    file.write_text(SHORT.replace("[outcome]", folder, 1).replace('split = "renderings"', 'split = "heldout"', 1))
    monkeypatch.chdir(tmp_path)
    experiment = read(file)
    assert {arm.run.data.path for arm in experiment.arms} == {str(tmp_path / "train")}
    workspace.experiments.add("beta", to_toml(experiment))
    with pytest.raises(ConfigError, match=r"data\.path is .*train, which does not exist"):
        experiments.start(workspace, "beta")
    assert workspace.runs.all() == []
    (tmp_path / "train").mkdir()
    assert experiments.start(workspace, "beta")


def test_arms_are_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        from_toml(SHORT).margin = 1.0  # type: ignore[misc]


def test_a_short_form_trains_all_of_its_seeds_and_its_runs_are_found_by_its_preset(workspace):
    made = ablation(presets.preset("clip-scenes"), seeds=2)
    assert from_toml(to_toml(made)) == made
    queued = [workspace.runs.get(run) for run in experiments.begin(workspace, made)]
    assert [(run.arm, run.preset, run.experiment) for run in queued] == [
        (arm.name, "ablation", "Ablation, co-occurrence 0") for arm in made.arms
    ] * 2
