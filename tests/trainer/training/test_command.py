import json
from argparse import Namespace

import pytest

from trainer import config
from trainer.__main__ import main
from trainer.cli.fit import configured
from trainer.config import presets
from trainer.store import Workspace


def test_the_two_presets_differ_in_the_objective_only():
    different = {key for key, _, _ in config.difference(presets.preset("clip-scenes"), presets.preset("cloob-scenes"))}
    assert {key.partition(".")[0] for key in different} == {"name", "objective"}


@pytest.mark.parametrize("name", sorted(presets.presets()))
def test_presets_are_valid_but_for_the_path_or_run_a_person_fills_in(name):
    run = presets.preset(name)
    if isinstance(run.objective, config.EmbeddingDecoder):
        with pytest.raises(config.ConfigError, match=r"objective\.of is empty"):
            config.check(run)
    elif isinstance(run.data, config.Scenes | config.Named):
        config.check(run)
    else:
        with pytest.raises(config.ConfigError, match=r"data\.path is empty"):
            config.check(run)


@pytest.mark.slow
def test_a_new_run_from_a_preset_is_trained_here(workspace, tmp_path, capsys):
    changes = {"data.train_pairs": 256, "data.heldout_pairs": 64, "model.image_size": 32, "model.image_width": 8}
    changes |= {"optimizer.batch_size": 64, "optimizer.epochs": 1, "device": "cpu", "watching.log_every": 1}
    sets = [part for field, value in changes.items() for part in ("--set", f"{field}={value}")]
    arguments = ["fit", "--preset", "clip-scenes", "--name", "mine", *sets, "--workspace", str(workspace.folder)]
    assert main([*arguments, "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert (answer["name"], answer["status"], answer["step"]) == ("mine", "finished", 4)
    assert workspace.runs.config_of(answer["id"]).optimizer.batch_size == 64
    assert workspace.runs.get(answer["id"]).preset == "clip-scenes"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([], "exactly one"),
        (["--preset", "nothing"], "no preset 'nothing'"),
        (["--preset", "clip-scenes", "--set", "optimizer.batch_size=many"], "not a whole number"),
        (["--preset", "clip-scenes", "--set", "optimizer.batch_size=1"], "at least 2"),
        (["--preset", "clip-scenes", "--set", "speed"], "FIELD=VALUE"),
        (["7"], "There is no workspace at"),
    ],
)
def test_a_mistake_is_a_sentence_and_makes_no_run(tmp_path, capsys, arguments, sentence):
    assert main(["fit", *arguments, "--workspace", str(tmp_path / "w")]) == 2
    assert sentence in capsys.readouterr().err
    assert Workspace(tmp_path / "w").runs.all() == []


def test_paths_are_kept_absolute_however_they_are_given(tmp_path, monkeypatch):
    """A resumed trainer may work in another folder than the one the run was created in."""
    monkeypatch.chdir(tmp_path)
    asked = Namespace(preset="clip-folder", config=None, table=None, data=None, name=None, folder="train")
    asked.workspace = Workspace(tmp_path / "w")
    asked.set = ["data.heldout_path=val"]
    data = configured(asked).data
    assert (data.path, data.heldout_path) == (str(tmp_path / "train"), str(tmp_path / "val"))
    asked.folder, asked.set = None, ["data=table", "data.path=pairs.csv"]
    assert configured(asked).data.path == str(tmp_path / "pairs.csv")
