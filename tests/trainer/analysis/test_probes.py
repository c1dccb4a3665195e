"""Linear probes: the gradient, the optimum, and what they can and cannot predict."""

import math

import numpy as np
import pytest

from trainer.analysis.probes import fit_softmax, probe, softmax_loss


@pytest.fixture(scope="module")
def data() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    targets = rng.integers(0, 3, 90)
    return rng.standard_normal((90, 5)) + 1.2 * np.eye(3, 5)[targets], targets


@pytest.mark.usefixtures("small_blocks")
def test_loss_is_the_naive_one(data):
    rows, targets = data
    weights = np.random.default_rng(1).standard_normal((6, 3))
    naive = 0.0
    for row, target in zip(rows, targets):
        logits = [sum(row[k] * weights[k, c] for k in range(5)) + weights[5, c] for c in range(3)]
        naive += math.log(sum(map(math.exp, logits))) - logits[target]
    loss, gradient = softmax_loss(weights, rows, targets, 0.3)
    assert loss == pytest.approx(naive / 90 + 0.15 * sum(weights[k, c] ** 2 for k in range(5) for c in range(3)))
    for place in np.ndindex(6, 3):
        step = np.zeros((6, 3))
        step[place] = 1e-6
        up, down = (softmax_loss(weights + s, rows, targets, 0.3)[0] for s in (step, -step))
        assert gradient[place] == pytest.approx((up - down) / 2e-6, abs=1e-7)


def test_the_minimum_is_scikit_learns(data):
    linear = pytest.importorskip("sklearn.linear_model", reason="scikit-learn comes with the optional UMAP")
    rows, targets = data
    decay = 0.05
    theirs = linear.LogisticRegression(C=1 / (decay * len(rows)), tol=1e-10, max_iter=5000).fit(rows, targets)
    ours = fit_softmax(rows, targets, 3, decay=decay)
    difference = (rows @ ours[:-1] + ours[-1]) - theirs.decision_function(rows)
    # Logits are known up to a constant of each row.
    assert np.abs(difference - difference.mean(1, keepdims=True)).max() < 1e-4


def test_reads_what_is_there_and_not_what_is_not():
    rng = np.random.default_rng(0)
    words = np.array(["red", "green", "blue"])[rng.integers(0, 3, 600)]
    there = rng.standard_normal((600, 8))
    there[:, 0] += 6 * (words == "red")
    there[:, 1] += 6 * (words == "green")
    found, missed = probe(there, words), probe(rng.standard_normal((600, 8)), words)
    assert found.accuracy > 0.97
    assert missed.low < 1 / 3 < missed.high
    assert (found.fitted, found.tried, found.values) == (420, 180, 3)
    assert found.low < found.accuracy <= found.high
    assert found == probe(there, words)
    assert probe(1000 * there + 5, words).accuracy == found.accuracy


def test_a_direction_without_variance_is_left_alone():
    rng = np.random.default_rng(1)
    words = np.array(["a", "b"])[rng.integers(0, 2, 100)]
    rows = np.stack([np.where(words == "a", 1.0, -1.0), np.full(100, 0.3)], axis=1)
    assert probe(rows.astype(np.float16), words).accuracy == 1


def test_refusals_and_cancelling(data):
    rows, targets = data
    with pytest.raises(ValueError, match="2 values"):
        probe(rows, ["same"] * 90)
    with pytest.raises(ValueError, match="4 items"):
        probe(rows[:3], ["a", "b", "c"])

    def cancel(_share: float, _note: str) -> None:
        raise InterruptedError

    with pytest.raises(InterruptedError):
        probe(rows, targets.astype(str), progress=cancel)
