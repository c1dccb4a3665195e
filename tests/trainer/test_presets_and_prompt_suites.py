import json
from dataclasses import replace
from pathlib import Path
from typing import get_args, get_type_hints

import pytest

from trainer import config, prompt_suites
from trainer.config import default_paths, presets
from trainer.errors import UserError


@pytest.fixture
def assets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(default_paths, "assets_dir", lambda: tmp_path)
    for name in ("presets", "prompts"):
        (tmp_path / name).mkdir()
    return tmp_path


def test_the_presets_that_ship_may_start():
    for name, run in presets.presets().items():
        # The others wait for a person's folder, or for the run to decode.
        if isinstance(run.data, config.Scenes) and not isinstance(run.objective, config.EmbeddingDecoder):
            config.check(run)
        assert presets.preset(name) == run


def test_presets_come_in_the_order_of_their_objectives():
    """The first preset that can start is shown first in a new run."""
    names = list(presets.presets())
    ready = [name for name in names if isinstance(presets.preset(name).data, config.Scenes)]
    assert ready[:3] == ["clip-scenes", "cloob-half-scenes", "cloob-scenes"]
    assert names[0].startswith("clip-")
    assert names[-3:] == ["word2vec-scenes", "decoder-emoji", "decoder-scenes"]


def test_presets_of_scenes_have_one_budget():
    runs = [
        run for name, run in presets.presets().items() if name.endswith("-scenes") and run.objective.towers != "source"
    ]
    # ConVIRT's own projections are the difference that its second preset is for.
    budgets = {
        (replace(run.model, projection="linear"), run.optimizer.batch_size, run.optimizer.epochs, run.data)
        for run in runs
    }
    assert len(budgets) == 1
    assert len(runs) >= 10


def test_the_prompt_suites_that_ship_have_classes_and_templates():
    for suite in prompt_suites.prompt_suites().values():
        assert suite.classes
        assert all(template.count("{}") == 1 for template in suite.templates)
        assert suite.source
        assert suite.license
        assert {*suite.folders.values()} <= {*suite.classes}
        # Two classes of ImageNet each share a name with another, in OpenAI's list.
        assert len({*suite.classes}) == len(suite.classes) - 2 * (suite.name == "imagenet")


COUNTS = {"CIFAR10": 10, "CIFAR100": 100, "MNIST": 10, "FashionMNIST": 10, "Flowers102": 102, "GTSRB": 43}
COUNTS |= {"Country211": 211, "StanfordCars": 196, "STL10": 10}
"""Classes of each data set, as its authors count them."""


@pytest.mark.parametrize("name", get_args(get_type_hints(config.Named)["name"]))
def test_every_data_set_by_name_has_the_published_names_of_its_classes(name: str):
    """An entry of `Named` without a row here, or without a suite, has no names: it would be asked by numbers."""
    from torchvision import datasets

    suite = prompt_suites.published_suite(name)
    assert len(suite.classes) == COUNTS[name]
    theirs = getattr(getattr(datasets, name), "classes", None)
    if isinstance(theirs, list):
        words = [str(one).rpartition(" - ")[2] for one in theirs]
        assert len(words) == COUNTS[name]
        same = [
            prompt_suites.plain_name(a) == prompt_suites.plain_name(b)
            for a, b in zip(words, suite.classes, strict=True)
        ]
        # The orders agree; CLIP respells two flowers, and digits are numbers there.
        assert sum(same) >= (0 if name == "MNIST" else len(words) - 2)


def test_imagenet_is_that_of_open_clip_to_the_letter():
    from open_clip import IMAGENET_CLASSNAMES, OPENAI_IMAGENET_TEMPLATES

    suite = prompt_suites.prompt_suites()["imagenet"]
    assert list(suite.classes) == list(IMAGENET_CLASSNAMES)
    assert [*suite.templates] == [template("{}") for template in OPENAI_IMAGENET_TEMPLATES]
    assert len(suite.templates) == 80


def test_a_stored_question_is_read_again_and_anything_else_is_none():
    suites = prompt_suites.prompt_suites()
    own = prompt_suites.learned_suite("pets", ["a cat.", "an owl."], ["cat", "owl"])
    assert (own.templates, own.worded) == (("a(n) {}.",), "captions")
    for suite in (suites["imagenet"], own):
        facts = json.loads(json.dumps(prompt_suites.suite_facts(suite)))
        read = prompt_suites.suite_of_facts(facts)
        assert (read.classes, read.templates, read.worded) == (suite.classes, suite.templates, suite.worded)
    # A bundled suite is told by its name alone: a run's row stays short.
    assert len(json.dumps(prompt_suites.suite_facts(suites["imagenet"]))) < 4_000
    for damaged in (None, [], {"suite": 1}, {**prompt_suites.suite_facts(own), "templates": ["a cat"]}):
        assert prompt_suites.suite_of_facts(damaged) is None


def test_free_captions_are_asked_by_published_prompts_or_the_plain_sentence():
    captions, labels = ["my old friend", "on the table"], ["cat", "dog"]
    assert prompt_suites.learned_suite("mine", captions, labels).templates == ("a photo of a(n) {}.",)
    suite = prompt_suites.learned_suite("cifar10", captions, labels)
    assert suite == prompt_suites.prompt_suites()["cifar10"]
    # A model that learned no caption of the data is asked the published prompts.
    own = prompt_suites.learned_suite("cifar10", ["a cat", "a dog"], labels)
    assert own.templates == ("a {}",)
    assert prompt_suites.untrained_suite(own) == suite
    assert prompt_suites.learned_suite("mine", ["a cat"], ["cat"]) is None


def test_an_unknown_preset_names_the_known_ones(assets):
    (assets / "presets" / "one.toml").write_text(config.to_toml(config.Run()))
    with pytest.raises(config.ConfigError, match="no preset 'two'; choose one of one"):
        presets.preset("two")
    assert presets.presets() == {"one": config.Run()}


def test_a_suite_is_read_and_a_damaged_one_is_named(assets):
    path = assets / "prompts" / "animals.json"
    path.write_text(json.dumps({"classes": ["cat"], "templates": ["a {}."], "source": "us", "license": "MIT"}))
    assert prompt_suites.prompt_suites() == {
        "animals": prompt_suites.PromptSuite("animals", ("cat",), ("a {}.",), "us", "MIT"),
    }
    path.write_text("[]")
    with pytest.raises(UserError, match=r"animals\.json cannot be read"):
        prompt_suites.prompt_suites()


def test_the_environment_chooses_the_workspace(monkeypatch, tmp_path):
    monkeypatch.setenv(default_paths.WORKSPACE_VARIABLE, str(tmp_path))
    assert default_paths.default_workspace() == tmp_path
    monkeypatch.delenv(default_paths.WORKSPACE_VARIABLE)
    assert default_paths.default_workspace().name == "contrastive-explorer"


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(default_paths, "user_folder", lambda: tmp_path / "user")
    return tmp_path / "user"


def test_an_own_preset_is_one_for_every_command(own: Path):
    run = config.Run(name="mine", seed=7)
    presets.save_preset(" my preset ", run)
    assert presets.preset("my preset") == run
    assert presets.user_presets() == {"my preset": run}
    assert "my preset" not in presets.presets()
    presets.remove_preset("my preset")
    assert presets.user_presets() == {}


@pytest.mark.parametrize("name", ["", "../out", "a/b", "a" * 61, ".hidden", "clip-scenes"])
def test_a_name_that_cannot_be_a_preset_is_refused(own: Path, name: str):
    with pytest.raises(config.ConfigError, match="name"):
        presets.save_preset(name, config.Run())
    assert not own.exists()


def test_a_damaged_own_preset_hides_no_other(own: Path):
    presets.save_preset("good", config.Run())
    (own / "presets" / "bad.toml").write_text("[optimizer", encoding="utf-8")
    assert list(presets.user_presets()) == ["good"]
    with pytest.raises(config.ConfigError, match="TOML"):
        presets.preset("bad")
