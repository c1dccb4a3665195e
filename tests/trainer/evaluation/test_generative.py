"""Generative models next to a tower: what they learn, what is measured, the command and its refusals."""

import dataclasses
import itertools
import json
import math

import numpy as np
import pytest
import torch

from tests.trainer.evaluation.conftest import short
from trainer import config, data
from trainer.__main__ import main
from trainer.analysis.progress import silent
from trainer.charts import registry
from trainer.charts.spec import Request, Target
from trainer.errors import UserError
from trainer.evaluation import generative
from trainer.evaluation.generative import GenerativeRequest, bytes_of, compare_generative, width_of_cnn
from trainer.inference.model_cache import ModelCache
from trainer.models.decoder import Denoiser, parameters_of
from trainer.models.gated_pixel_cnn import GatedPixelCnn
from trainer.models.pixel_cnn import PixelCnn
from trainer.store.generative_results import (
    GenerativeComparison,
    ReadClasses,
    read_comparison,
    write_comparison,
)
from trainer.training.fit import fit

pytestmark = pytest.mark.slow

SMALL = GenerativeRequest(updates=3, batch=8, size=8, width=8, draws=2, most=5)


@pytest.fixture(scope="module")
def pairs(keeping):
    splits = data.load(keeping.runs.config_of(1).data, image_size=32, workspace_folder=keeping.folder, progress=silent)
    return splits.train, next(iter(splits.heldout.values()))


def test_pictures_of_their_own_size_keep_every_byte(pairs):
    train, _ = pairs
    assert (bytes_of(train.images, 32) == train.images.transpose(0, 3, 1, 2)).all()
    assert bytes_of(train.images, 16).shape == (64, 3, 16, 16)


def test_both_generative_models_have_about_as_many_parameters():
    for width in (16, 32):
        wanted = parameters_of(Denoiser(1, width))
        assert abs(parameters_of(PixelCnn(width_of_cnn(wanted))) - wanted) < 0.02 * wanted


@pytest.mark.nightly
def test_bits_fall_from_8_towards_what_the_pictures_hold():
    """Of a single gray nothing is to be said once it is known; untrained models say 8 bits, or more as a bound."""
    gray = np.full((4, 3, 8, 8), 77, np.uint8)
    few, many = (dataclasses.replace(SMALL, updates=updates, batch=2, draws=16) for updates in (1, 400))
    before, after = (generative.bits_of_cnn(generative.trained_cnn(gray, r, 20_000, silent), gray) for r in (few, many))
    assert before.mean() == pytest.approx(8, abs=0.1)
    assert after.mean() < 0.5
    before, after = (
        generative.bits_of_diffusion(generative.trained_denoiser(gray, r, silent), gray, r, silent) for r in (few, many)
    )
    assert after.mean() < before.mean() - 0.5


def test_the_command_says_the_question_of_every_number(keeping, pairs, capsys):
    train, held = pairs
    flags = ["--updates", "3", "--batch", "8", "--size", "8", "--width", "8", "--draws", "2", "--most", "5", "--json"]
    assert main(["generative", "1", *flags, "--workspace", str(keeping.folder)]) == 0
    found = json.loads(capsys.readouterr().out)
    labeled = [label for label in held.labels if label in set(train.labels)]
    asked = (found["split"], found["n_bits"], found["n_probe"], found["fitted"], found["classes"], found["training"])
    assert asked == (held.split, 5, len(labeled), 64, len(set(train.labels)), 64)
    assert [row["model"] for row in found["rows"]] == [
        "PixelCNN",
        "diffusion",
        "gated PixelCNN, by class",
        "clip at step 8",
    ]
    assert [row["bits"] is None for row in found["rows"]] == [False, False, False, True]
    for row in found["rows"]:
        right = row["accuracy"] * (5 if row["model"].startswith("gated") else len(labeled))
        assert right == pytest.approx(round(right))
        assert row["low"] <= row["accuracy"] <= row["high"]
    _check_the_chart(keeping, found, capsys)


def _check_the_chart(workspace, printed, capsys):
    """The tab draws what the command stored: its shares are counted here by a loop."""
    stored = read_comparison(workspace.runs.get(1).folder)
    assert dataclasses.asdict(dataclasses.replace(stored, by_class=None)).items() >= {"n_bits": 5, "updates": 3}.items()
    read = stored.by_class
    assert read.models == ("gated PixelCNN, by class", "clip at step 8")
    assert read.samples.shape == read.learned.shape == (len(read.classes[:8]), 2, 8, 8, 3)
    assert main(["analyze", "generative-classes", "1", "--json", "--workspace", str(workspace.folder)]) == 0
    capsys.readouterr()
    chart = registry.load("generative-classes")
    data = chart.result(workspace, Request((Target(1),)), chart.settings(), silent)
    panel = chart.panel(data, chart.settings())
    dots = [dot for dot in panel.mark("accuracy-0").dots if round(dot.x) == 0]
    for dot, answers in zip(dots, read.predicted.tolist(), strict=True):
        right = sum(answer == true for answer, true in zip(answers, read.truth.tolist(), strict=True))
        assert dot.y == pytest.approx(100 * right / len(read.truth))
    assert dots[0].y == pytest.approx(100 * printed["rows"][2]["accuracy"])
    drawn = panel.mark("drawn-0-1").cells
    assert [cell.caption for cell in drawn] == list(read.classes[:8])
    assert (drawn[0].pixels == read.samples[0, 1]).all()
    bits = panel.mark("models-0").lines
    assert bits[0].values[1] == f"{printed['rows'][0]['bits']:.3f}"


def test_a_damaged_result_is_none(keeping, tmp_path):
    classes = ReadClasses(
        ("a", "b"), ("Bayes",), np.zeros(3, int), np.zeros((1, 3), int), *[np.zeros((2, 1, 4, 4, 3), np.uint8)] * 2
    )
    comparison = GenerativeComparison("set", "held", 3, 3, 3, 2, 3, 4, 1, (), classes)
    run = tmp_path / "runs" / "0001"
    run.mkdir(parents=True)
    write_comparison(run, comparison)
    assert read_comparison(run) == comparison
    file = run / "generative" / "comparison.json"
    whole = json.loads(file.read_text(encoding="utf-8"))
    for classes in ({"classes": [], "models": ["Bayes"]}, {"classes": ["a"], "models": []}, {"classes": 3}):
        file.write_text(json.dumps(whole | {"by_class": classes}), encoding="utf-8")
        assert read_comparison(run) is None
    file.with_suffix(".npz").unlink()
    file.write_text(json.dumps(whole), encoding="utf-8")
    assert read_comparison(run) is None


def test_pictures_are_drawn_number_by_number_from_the_whole_picture():
    """Rows that cannot be seen are left out when drawing; a loop over the whole picture draws the same numbers."""
    torch.manual_seed(0)
    model = GatedPixelCnn(6, blocks=2, levels=4, condition=2).eval()
    condition = torch.eye(2)
    drawn = model.sample(condition, 9, count=2, generator=torch.Generator().manual_seed(1))
    chance, values = torch.Generator().manual_seed(1), torch.zeros((2, 3, 9, 9), dtype=torch.long)
    with torch.inference_mode():
        for row, column, color in itertools.product(range(9), range(9), range(3)):
            shares = model(values, condition)[:, color, :, row, column].softmax(dim=1)
            values[:, color, row, column] = torch.multinomial(shares, 1, generator=chance)[:, 0]
    assert (drawn == values).all()
    assert drawn.unique().tolist() == [0, 1, 2, 3]


def test_bayes_rule_is_that_of_a_loop():
    generator = np.random.default_rng(0)
    likelihoods, prior = -1000 + 3 * generator.standard_normal((6, 3)), np.array([0.6, 0.4, 0.0])
    predicted, marginal = generative.bayes_rule(likelihoods, prior)
    for row, chosen, total in zip(likelihoods, predicted, marginal, strict=True):
        joint = [math.exp(value + 1000) * share for value, share in zip(row, prior, strict=True)]
        assert chosen == joint.index(max(joint))
        assert chosen != 2, "a class that was never seen"
        assert total == pytest.approx(math.log(sum(joint)) - 1000, abs=1e-9)


@pytest.mark.nightly
def test_a_class_conditional_model_names_the_class_of_grays():
    """Dark and light pictures of one gray each: what it learned of a class decides."""
    pictures = np.concatenate([np.full((8, 3, 8, 8), gray, np.uint8) for gray in (40, 200)])
    classes = np.repeat([0, 1], 8)
    request = dataclasses.replace(SMALL, updates=400, batch=4)
    model = generative.trained_class_cnn(pictures, classes, 2, request, 20_000, silent)
    predicted, _ = generative.bayes_rule(generative.log_likelihoods(model, pictures, 2), np.array([0.5, 0.5]))
    assert (predicted == classes).all()


@pytest.mark.nightly
def test_the_table_is_a_function_of_the_seed(keeping):
    found = [compare_generative(ModelCache(keeping), [(1, None)], SMALL, silent) for _ in range(2)]
    assert found[0] == found[1]
    other = compare_generative(ModelCache(keeping), [(1, None)], dataclasses.replace(SMALL, seed=1), silent)
    assert other.rows[0].bits != found[0].rows[0].bits
    assert other.rows[3] == found[0].rows[3], "the run has no part in the seed"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"size": 20}, "multiples of 8"),
        ({"updates": 0}, "--updates 0: choose 1 to 1,000,000"),
        ({"batch": 65}, "64 training pictures are fewer than a batch of 65"),
        ({"split": "nowhere"}, "no held-out split 'nowhere'. Choose one of"),
    ],
)
def test_what_cannot_be_done_is_a_sentence(keeping, changes, words):
    with pytest.raises(UserError, match=words):
        compare_generative(ModelCache(keeping), [(1, None)], dataclasses.replace(SMALL, **changes), silent)


def test_runs_of_different_data_are_refused(keeping):
    other = dataclasses.replace(short("other", config.Clip()), data=config.Scenes(train_pairs=65, heldout_pairs=24))
    fit(keeping, keeping.runs.create(other))
    with pytest.raises(UserError, match="different data"):
        compare_generative(ModelCache(keeping), [(1, None), ("other", None)], SMALL, silent)
