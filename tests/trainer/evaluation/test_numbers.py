from __future__ import annotations

import math

import numpy as np
import pytest

from trainer import config
from trainer.catalog import PromptSuite
from trainer.data import Pairs
from trainer.data.tokenizer import train_tokenizer
from trainer.evaluation import Embedded, HeldOut, measure
from trainer.methods import build

CAPTIONS = ["a red ring", "a blue star", "a red ring", "a green moon"]
LABELS = ["ring", "star", "ring", ""]
SUITE = PromptSuite("toy", ("moon", "ring", "star"), ("a {}", "one {}"), "", "")


def heldout(suite: PromptSuite | None = SUITE) -> HeldOut:
    images = np.zeros((4, 8, 8, 3), np.uint8)
    pairs = Pairs("toy", "held", images, CAPTIONS, LABELS, CAPTIONS, {}, "f")
    return HeldOut(pairs, prefix="val", suite=suite, tokenizer=train_tokenizer(CAPTIONS, 300), context_length=8)


def numbers(image, text, prompts=None, **kwargs) -> dict[str, float]:
    embedded = Embedded(np.float32(image), np.float32(text), None if prompts is None else np.float32(prompts))
    return measure(heldout(**kwargs), embedded, build(config.Clip(inv_tau=1.0)), batch_size=4)


def test_a_perfect_model_has_perfect_numbers():
    """Pairs 0 and 2 share a caption, so each is a right answer to the other."""
    rows = np.eye(4)[[0, 1, 0, 2]]
    prompts = np.repeat(np.eye(4)[[2, 0, 1]][:, None], 2, axis=1)
    found = numbers(rows, rows, prompts)
    for name in ("image_to_text_R@1", "text_to_image_R@1", "zero_shot_acc1", "auc_hard10", "matched_cosine"):
        assert found[name] == pytest.approx(1.0)
    assert found["image_to_text_median_rank"] == 1
    assert found["unmatched_cosine_hard10"] == pytest.approx(0.0)
    assert found["modality_gap"] == pytest.approx(0.0)


def test_a_collapsed_model_is_not_flattered():
    rows = np.ones((4, 3)) / math.sqrt(3)
    found = numbers(rows, rows)
    assert found["image_to_text_R@1"] == 0.0
    assert found["auc_hard10"] == pytest.approx(0.5)
    assert found["loss"] == pytest.approx(math.log(4), abs=1e-6)


def test_pairs_without_a_class_do_not_count_for_zero_shot():
    rows = np.eye(4)[[0, 1, 0, 2]]
    wrong = np.repeat(np.eye(4)[[0, 3, 1]][:, None], 2, axis=1)  # star right, both rings wrong, the moon not asked
    assert numbers(rows, rows, wrong)["zero_shot_acc1"] == pytest.approx(1 / 3)


def test_without_a_suite_there_is_no_zero_shot():
    rows = np.eye(4)
    assert "zero_shot_acc1" not in numbers(rows, rows, suite=None)
