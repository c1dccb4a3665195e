"""Optimization follows what the weights are, in every way a run is made."""

from dataclasses import replace
from pathlib import Path

import pytest

from trainer import api, config
from trainer.config import presets
from trainer.data.new_run import new_run
from trainer.experiments.experiment import changed

PRETRAINED = ("model=open_clip", "model.name=ViT-B-32", "model.pretrained=laion2b_s34b_b79k")
NAMED = "optimizer.learning_rate=1e-3"
SUITED = {"learning_rate": 1e-5, "weight_decay": 0.1, "warmup_steps": 100, "layer_decay": 0.75}


def optimizer(run: config.Run) -> dict[str, float]:
    return {name: getattr(run.optimizer, name) for name in SUITED}


@pytest.mark.parametrize(
    ("name", "pretrained", "expected"),
    [
        ("RN50", "", False),
        ("RN50", "openai", True),
        ("hf-hub:somebody/model", "", True),
        ("local-dir:model", "", True),
        ("epoch_3.pt", "", True),
        ("runs/mine", "", True),
        ("ViT-B-16-SigLIP2-256", "", False),
    ],
)
def test_weights_are_pretrained_where_there_are_any(name: str, pretrained: str, expected: bool) -> None:
    assert config.is_pretrained(config.OpenClip(name=name, pretrained=pretrained)) is expected
    assert not config.is_pretrained(config.TinyTowers())


def test_every_way_to_make_a_run_of_pretrained_weights_gives_it_their_optimization(tmp_path: Path) -> None:
    scratch = presets.preset("clip-scenes")
    assert scratch.optimizer.learning_rate == 1e-3
    made = [new_run(tmp_path, preset="clip-scenes", changes=PRETRAINED), changed(scratch, PRETRAINED)]
    text = config.to_toml(replace(scratch, model=config.OpenClip(name="RN50", pretrained="openai")))
    lines = [line for line in text.splitlines() if line.partition(" =")[0] not in SUITED]
    made.append(config.from_toml("\n".join(lines)))
    for run in made:
        assert optimizer(run) == SUITED
        assert run.optimizer.batch_size == scratch.optimizer.batch_size
        told = "learning rate 1e-05, layer-wise 0.75, 100 steps of warm-up (from nothing: 0.001)"
        assert told in config.weights_words(run)
    # What is written in a file was asked for by name, a copy keeps what it has, and random weights what suits them.
    assert config.from_toml(text).optimizer.learning_rate == 1e-3
    assert config.by_weights(made[0], replace(made[0], name="copy"), ()) == replace(made[0], name="copy")
    assert changed(scratch, PRETRAINED[:2]).optimizer == scratch.optimizer
    assert config.weights_words(scratch) == ""


@pytest.mark.parametrize(
    "changes", [("optimizer.learning_rate=1e-3", *PRETRAINED), (*PRETRAINED, "optimizer.learning_rate=1e-3")]
)
def test_a_rate_that_is_asked_for_by_name_is_taken_and_said(tmp_path: Path, changes: tuple[str, ...]) -> None:
    scratch = presets.preset("clip-scenes")
    for run in (new_run(tmp_path, preset="clip-scenes", changes=changes), changed(scratch, changes)):
        assert optimizer(run) == SUITED | {"learning_rate": 1e-3}
        assert "as asked for by name. So fast a rate is one of training from nothing" in config.weights_words(run)


def test_a_configuration_with_the_rate_of_random_weights_is_refused(tmp_path: Path) -> None:
    published = config.Run(model=config.OpenClip(name="RN50", pretrained="openai"))
    for run in (published, config.Run(tuning=config.Tuning(start="1"))):
        with pytest.raises(config.ConfigError, match=r"0\.001 is that of training from nothing.*\*\*FINE_TUNING"):
            api.fit(config=run, workspace=tmp_path)


def test_a_start_and_lora_have_rates_of_their_own(tmp_path: Path) -> None:
    scratch = presets.preset("clip-scenes")
    tuned = new_run(tmp_path, preset="clip-scenes", changes=("tuning.start=7",))
    assert optimizer(tuned) == SUITED
    lora = new_run(tmp_path, preset="clip-scenes", changes=("tuning.start=7", "tuning.lora_rank=4"))
    assert optimizer(lora) == SUITED | dict(config.LORA)
    stated = new_run(tmp_path, base=tuned, changes=("tuning.lora_rank=4", "optimizer.learning_rate=5e-5"))
    assert optimizer(stated) == SUITED | dict(config.LORA) | {"learning_rate": 5e-5}
    with pytest.raises(config.ConfigError, match=r"tuning\.lora_rank is for a run that continues from another"):
        config.check(replace(scratch, tuning=config.Tuning(lora_rank=4)))


def test_alphas_are_percents_with_both_ends() -> None:
    assert config.Tuning(alphas=".25, .5 1").percents == (0, 25, 50, 100)
    for wrong in ("2", "a", ".333"):
        with pytest.raises(config.ConfigError, match=r"tuning\.alphas"):
            _ = config.Tuning(alphas=wrong).percents
