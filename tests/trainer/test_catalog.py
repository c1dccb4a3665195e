import json
from dataclasses import replace
from pathlib import Path

import pytest

from trainer import catalog, config


@pytest.fixture
def assets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(catalog, "assets_dir", lambda: tmp_path)
    for name in ("presets", "prompts"):
        (tmp_path / name).mkdir()
    return tmp_path


def test_the_presets_that_ship_may_start():
    for name, run in catalog.presets().items():
        # The others wait for a person's folder, or for the run to decode.
        if isinstance(run.data, config.Scenes) and not isinstance(run.objective, config.EmbeddingDecoder):
            config.check(run)
        assert catalog.preset(name) == run


def test_presets_come_in_the_order_of_their_objectives():
    """The first preset that can start is shown first in a new run."""
    names = list(catalog.presets())
    ready = [name for name in names if isinstance(catalog.preset(name).data, config.Scenes)]
    assert ready[:3] == ["clip-scenes", "cloob-half-scenes", "cloob-scenes"]
    assert names[0].startswith("clip-")
    assert names[-3:] == ["word2vec-scenes", "decoder-emoji", "decoder-scenes"]


def test_presets_of_scenes_have_one_budget():
    runs = [
        run for name, run in catalog.presets().items() if name.endswith("-scenes") and run.objective.towers != "source"
    ]
    # ConVIRT's own projections are the difference that its second preset is for.
    budgets = {
        (replace(run.model, projection="linear"), run.optimizer.batch_size, run.optimizer.epochs, run.data)
        for run in runs
    }
    assert len(budgets) == 1
    assert len(runs) >= 10


def test_the_prompt_suites_that_ship_have_classes_and_templates():
    for suite in catalog.prompt_suites().values():
        assert suite.classes
        assert all(template.count("{}") == 1 for template in suite.templates)


def test_an_unknown_preset_names_the_known_ones(assets):
    (assets / "presets" / "one.toml").write_text(config.to_toml(config.Run()))
    with pytest.raises(config.ConfigError, match="no preset 'two'; choose one of one"):
        catalog.preset("two")
    assert catalog.presets() == {"one": config.Run()}


def test_a_suite_is_read_and_a_damaged_one_is_named(assets):
    path = assets / "prompts" / "animals.json"
    path.write_text(json.dumps({"classes": ["cat"], "templates": ["a {}."], "source": "us", "license": "MIT"}))
    assert catalog.prompt_suites() == {
        "animals": catalog.PromptSuite("animals", ("cat",), ("a {}.",), "us", "MIT"),
    }
    path.write_text("[]")
    with pytest.raises(catalog.CatalogError, match=r"animals\.json cannot be read"):
        catalog.prompt_suites()


def test_the_environment_chooses_the_workspace(monkeypatch, tmp_path):
    monkeypatch.setenv(catalog.WORKSPACE_VARIABLE, str(tmp_path))
    assert catalog.default_workspace() == tmp_path
    monkeypatch.delenv(catalog.WORKSPACE_VARIABLE)
    assert catalog.default_workspace().name == "contrastive-explorer"


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(catalog, "user_folder", lambda: tmp_path / "user")
    return tmp_path / "user"


def test_an_own_preset_is_one_for_every_command(own: Path):
    run = config.Run(name="mine", seed=7)
    catalog.save_preset(" my preset ", run)
    assert catalog.preset("my preset") == run
    assert catalog.user_presets() == {"my preset": run}
    assert "my preset" not in catalog.presets()
    catalog.remove_preset("my preset")
    assert catalog.user_presets() == {}


@pytest.mark.parametrize("name", ["", "../out", "a/b", "a" * 61, ".hidden", "clip-scenes"])
def test_a_name_that_cannot_be_a_preset_is_refused(own: Path, name: str):
    with pytest.raises(config.ConfigError, match="name"):
        catalog.save_preset(name, config.Run())
    assert not own.exists()


def test_a_damaged_own_preset_hides_no_other(own: Path):
    catalog.save_preset("good", config.Run())
    (own / "presets" / "bad.toml").write_text("[optimizer", encoding="utf-8")
    assert list(catalog.user_presets()) == ["good"]
    with pytest.raises(config.ConfigError, match="TOML"):
        catalog.preset("bad")
