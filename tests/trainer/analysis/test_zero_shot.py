"""Class weights, accuracies and confusion against naive loops."""

import numpy as np
import pytest

from trainer.analysis.zero_shot import class_ranks, class_weights, confusion, predict


def test_weights_are_unit_means_of_unit_prompts(unit):
    prompts = unit(12, 5).reshape(4, 3, 5) * np.array([1.0, 7.0, 0.2])[:, None]
    weights = class_weights(prompts)
    for row, own in zip(weights, prompts):
        mean = np.mean([p / np.linalg.norm(p) for p in own], axis=0)
        assert np.allclose(row, mean / np.linalg.norm(mean))
    opposite = np.stack([prompts[:, 0], -prompts[:, 0]], axis=1)
    assert (class_weights(opposite) == 0).all()


@pytest.mark.usefixtures("small_blocks")
def test_accuracy_and_confusion_equal_naive_loops(unit):
    image, weights = unit(80, 6, 1), unit(7, 6, 2)
    label = np.random.default_rng(0).integers(0, 7, 80)
    table = np.zeros((7, 7), dtype=int)
    hits = {1: 0, 3: 0}
    for i in range(80):
        order = sorted(range(7), key=lambda c: -float(image[i] @ weights[c]))
        table[label[i], order[0]] += 1
        for k in hits:
            hits[k] += label[i] in order[:k]
    assert (confusion(predict(image, weights), label, classes=7) == table).all()
    assert hits[1] == np.trace(table)
    ranks = class_ranks(image, weights, label)
    assert [int((ranks <= k).sum()) for k in (1, 3, 7)] == [hits[1], hits[3], 80]


def test_ties_and_empty_sets():
    same = np.ones((3, 2)) / np.sqrt(2)
    assert class_ranks(same, same, np.array([0, 1, 2])).tolist() == [3, 3, 3]
