"""Memory of an update on a card, predicted by tensors without values, and the micro-batch that fits."""

from dataclasses import replace

import numpy as np
import open_clip
import pytest
import torch

from tests.nightly import few_plain
from trainer import config
from trainer.data import Pairs
from trainer.data.tokenizer import train_tokenizer
from trainer.models.blueprint import Blueprint
from trainer.training import memory_prediction
from trainer.training.memory_prediction import Trained, check_fits, micro_batch_that_fits, predict
from trainer.training.session import FitError
from trainer.training.small_sessions import OBJECTIVES, TINY

pytestmark = pytest.mark.slow
GIB = 2**30
CAPTIONS = [f"picture {row % 7} of {row % 5}" for row in range(24)]
PAIRS = Pairs(
    "random", "train", np.zeros((24, 32, 32, 3), np.uint8), CAPTIONS, [f"c{row % 4}" for row in range(24)],
    [f"p{row}" for row in range(24)], {}, "",
)  # fmt: skip
READ_VALUES = {"triplet", "margin", "one_vs_all", "multiclass", "pairwise_ranking"}
"""Objectives whose towers alone are counted; word2vec is not predicted at all."""


def trained(objective: config.Objective | None = None, **optimizer: object) -> Trained:
    run = replace(TINY, objective=objective or config.Clip(), optimizer=replace(TINY.optimizer, **optimizer))
    return Trained(run, PAIRS, train_tokenizer(CAPTIONS, 256), run.model)


@few_plain(2, "name", OBJECTIVES)
def test_every_objective_is_predicted_without_a_change_of_generators(name: str):
    state = torch.get_rng_state()
    prediction = predict(trained(OBJECTIVES[name]))
    assert torch.equal(torch.get_rng_state(), state)
    if name == "word2vec":
        assert prediction is None
        return
    assert prediction is not None
    assert prediction.of_towers == (name in READ_VALUES)
    # Weights and activations at least; a slow copy of a tower has no gradients and moments.
    assert prediction.peak_bytes > 2 * prediction.weights_bytes


def published(**optimizer: object) -> Trained:
    of_clip = trained(**optimizer)
    vocabulary = type("Vocabulary", (), {"size": 49_408})()
    architecture = Blueprint("open_clip", open_clip.get_model_config("ViT-B-32"))
    return replace(of_clip, tokenizer=vocabulary, architecture=architecture)


@pytest.mark.nightly
def test_numbers_are_those_of_the_prototype_on_fakes_of_a_card():
    plain = predict(published(batch_size=256))
    recomputed = predict(published(batch_size=256, recompute=True))
    cached = predict(published(batch_size=4096, micro_batch=256))
    assert plain is not None
    assert recomputed is not None
    assert cached is not None
    # With CUDA's fakes and attention as fused kernels 10.3, with attention as matrices 3.2 and 15.1.
    assert plain.peak_bytes / GIB == pytest.approx(10.3, rel=0.05)
    assert recomputed.peak_bytes / GIB == pytest.approx(3.2, rel=0.1)
    assert 12 < cached.peak_bytes / GIB < 15.1


def test_a_run_that_does_not_fit_is_refused_with_a_micro_batch_that_does(monkeypatch: pytest.MonkeyPatch):
    large = trained(batch_size=64)
    predictions = {size: predict(trained(batch_size=64, micro_batch=size)) for size in (0, 32, 16, 8)}
    sizes = {size: prediction.needed_bytes for size, prediction in predictions.items()}
    assert sizes[0] > sizes[32] > sizes[16] > sizes[8]
    # A prediction takes a second, and what follows would make each of these several times.
    monkeypatch.setattr(memory_prediction, "predict", lambda of, **_: predictions[of.run.optimizer.micro_batch])
    free = sizes[16]
    assert micro_batch_that_fits(large, free) == 16
    assert micro_batch_that_fits(large, memory_prediction.CONTEXT) is None
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda including_emulation=True: True)
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda *_: (free, 2 * free))
    with pytest.raises(FitError, match="Set Micro-batch to 16, which is predicted to fit"):
        check_fits(large, torch.device("cuda"))
    assert check_fits(large, torch.device("cpu")) > free
