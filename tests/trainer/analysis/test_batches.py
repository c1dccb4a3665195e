"""Batch analysis: naive weights, the identity of CLOOB's paper, torch's gradients, false negatives."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainer.analysis.batches import alike_limit, batch, likely_false_negatives, pull_lengths, seen_by
from trainer.analysis.losses import hopfield_retrieval
from trainer.analysis.units import units_of_numbers


def test_weights_are_naive_softmaxes(pairs):
    image, text = pairs[0][:12], pairs[1][:12]
    found = batch(image, text, 10.0)
    for i in range(12):
        logits = [10 * float(image[i] @ text[j]) for j in range(12)]
        whole = sum(map(math.exp, logits))
        rest = whole - math.exp(logits[i])
        assert np.allclose(found.infonce[i], [math.exp(v) / whole for v in logits])
        assert np.allclose(found.infoloob[i], [0 if j == i else math.exp(v) / rest for j, v in enumerate(logits)])
        assert found.unsaturated[i] == pytest.approx(rest / whole)


@pytest.mark.slow
@given(st.integers(2, 20), st.integers(0, 99), st.floats(0.1, 100))
def test_infonce_is_infoloob_times_what_is_unsaturated(n: int, seed: int, inv_tau: float):
    rng = np.random.default_rng(seed)
    x, y = rng.standard_normal((2, n, 5))
    found = batch(x, y, inv_tau)
    others = ~np.eye(n, dtype=bool)
    scaled = found.infoloob * found.unsaturated[:, None]
    assert np.allclose(found.infonce[others], scaled[others], atol=1e-12)
    assert np.allclose(found.infoloob.sum(1), 1)
    ours, loob = pull_lengths(found, y)
    naive = np.linalg.norm(found.infonce @ y - y, axis=1)
    assert np.allclose(ours, naive, atol=1e-9)
    assert (ours <= loob + 1e-12).all()


def test_pulls_are_the_gradients_of_the_losses(pairs):
    torch = pytest.importorskip("torch")
    image, text = (torch.from_numpy(p[:10].copy()) for p in pairs)
    image.requires_grad_()
    logits = 10 * image @ text.T
    (-torch.log_softmax(logits, 1).diagonal().sum() / 10).backward()
    infonce = image.grad.norm(dim=1).numpy()
    image.grad = None
    logits = 10 * image @ text.T
    rest = logits.masked_fill(torch.eye(10, dtype=bool), -torch.inf)
    ((torch.logsumexp(rest, 1) - logits.diagonal()).sum() / 10).backward()
    found = batch(pairs[0][:10], pairs[1][:10], 10.0)
    ours, loob = pull_lengths(found, pairs[1][:10])
    assert np.allclose(ours, infonce)
    assert np.allclose(loob, image.grad.norm(dim=1).numpy())


def test_saturation_keeps_digits_where_p_is_one():
    found = batch(np.eye(4), np.eye(4), 100.0)
    assert found.unsaturated == pytest.approx(np.full(4, 3 * math.exp(-100)))


def test_what_an_objective_sees(pairs):
    image, text = pairs
    assert seen_by(image, text, None, "images")[1] is text
    u_x, u_y = seen_by(image, text, 8.0, "images")
    assert np.allclose(u_x, hopfield_retrieval(image, image, 8.0))
    assert np.allclose(u_y, hopfield_retrieval(text, image, 8.0))
    v_y, v_x = seen_by(image, text, 8.0, "texts")
    assert np.allclose(v_y, hopfield_retrieval(text, text, 8.0))
    assert np.allclose(v_x, hopfield_retrieval(image, text, 8.0))


def test_likely_false_negatives(unit):
    image, text = unit(24, 64, 1), unit(24, 64, 2)
    text[4] = text[1]
    image[5] = image[2]
    captions = np.arange(24)
    captions[3] = 0
    units = units_of_numbers(np.arange(24), captions)
    found = batch(image, text, 10.0)
    rows = likely_false_negatives(found, image, text, units)
    reasons = {tuple(sorted(row[:2])): row[4] for row in rows}
    assert reasons == {(0, 3): "same caption", (1, 4): "texts alike", (2, 5): "images alike"}
    assert [row[2] for row in rows] == sorted((row[2] for row in rows), reverse=True)
    for anchor, sample, weight, _, _ in rows:
        assert weight == found.infoloob[anchor, sample] >= found.infoloob[sample, anchor]


def test_right_answers_are_no_negatives_where_a_run_masks_them(unit):
    """Five pairs of three pictures; the last caption is that of the first picture, too."""
    image, text = unit(5, 8, 1), unit(5, 8, 2)
    units = units_of_numbers(np.array([0, 0, 1, 2, 0]), np.array([0, 1, 2, 3, 3]))
    right = units.right(np.arange(5), np.arange(5))
    assert right.tolist() == [
        [True, True, False, True, True],
        [True, True, False, True, True],
        [False, False, True, False, False],
        [False, False, False, True, True],
        [True, True, False, True, True],
    ]
    found = batch(image, text, 10.0, right)
    logits = 10 * image @ text.T
    for i in range(5):
        negatives = [j for j in range(5) if not right[i, j]]
        rest = sum(math.exp(logits[i, j]) for j in negatives)
        assert found.unsaturated[i] == pytest.approx(rest / (rest + math.exp(logits[i, i])))
        for j in range(5):
            expected = math.exp(logits[i, j]) / rest if j in negatives else 0.0
            assert found.infoloob[i, j] == pytest.approx(expected)
    alone = batch(image, text, 10.0, np.ones((5, 5), bool))
    assert alone.unsaturated.tolist() == [0.0] * 5, "without a negative nothing is left to push"
    listed = likely_false_negatives(batch(image, text, 10.0), image, text, units)
    assert {(*sorted(row[:2]), row[4]) for row in listed} >= {(0, 1, "same picture"), (3, 4, "same caption")}
    left = likely_false_negatives(found, image, text, units, masked=True)
    assert not any(right[i, j] and right[j, i] for i, j, *_ in left)


@pytest.mark.parametrize("cone", [0.0, 20.0])
def test_no_cosine_means_the_same_in_two_runs(unit, cone):
    """In a narrow cone all cosines are above .99: one pair that is nearer than all others is listed, and no other."""
    image, text = (rows + cone * np.eye(64)[0] for rows in (unit(40, 64, 1), unit(40, 64, 2)))
    text[7] = text[3] + 0.01 * np.eye(64)[1]
    image, text = (rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in (image, text))
    cosines = (text @ text.T)[np.triu_indices(40, 1)]
    assert (np.median(cosines) > 0.99) == (cone > 0)
    listed = likely_false_negatives(
        batch(image, text, 10.0), image, text, units_of_numbers(np.arange(40), np.arange(40))
    )
    assert [sorted(row[:2]) for row in listed] == [[3, 7]]
    distances = np.sort(np.log(1 - cosines))
    quartile, median = np.quantile(distances, [0.25, 0.5])
    assert alike_limit(cosines) == pytest.approx(1 - math.exp(median - 7 * (median - quartile)))


def test_a_run_whose_cosines_are_all_equal_lists_nothing():
    assert alike_limit(np.zeros(0)) == math.inf
    different = np.eye(8)
    units = units_of_numbers(np.arange(8), np.arange(8))
    assert likely_false_negatives(batch(different, different, 10.0), different, different, units) == []


def test_one_pair_is_no_batch():
    with pytest.raises(ValueError, match="2 pairs"):
        batch(np.eye(1), np.eye(1), 10.0)
