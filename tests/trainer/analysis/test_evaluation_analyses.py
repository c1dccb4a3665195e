"""Significance, corruptions and linear probes against naive implementations, scipy and scikit-learn."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainer.analysis import corruptions, linear_probe, significance


def test_the_paired_interval_is_that_of_a_naive_bootstrap():
    rng = np.random.default_rng(1)
    a, b = rng.random(300) < 0.5, rng.random(300) < 0.62
    found = significance.paired_bootstrap(a, b)
    gap = b.astype(float) - a
    naive = [gap[rng.integers(0, 300, 300)].mean() for _ in range(4000)]
    assert found.difference == pytest.approx(gap.mean())
    assert (found.low, found.high) == pytest.approx(tuple(np.quantile(naive, [0.025, 0.975])), abs=0.012)
    # Values of which there are many take the other path; both are draws of the same thing.
    jitter = 1e-6 * rng.random(300)
    other = significance.paired_bootstrap(a.astype(float), b + jitter)
    assert (other.low, other.high) == pytest.approx((found.low, found.high), abs=0.012)


def test_equal_models_do_not_differ_and_empty_samples_have_no_interval():
    right = np.array([True, False, True])
    assert significance.paired_bootstrap(right, right) == significance.Paired(0.0, 0.0, 0.0, 3)
    assert significance.mcnemar(right, right) == significance.McNemar(0, 0, 1.0)
    assert significance.paired_bootstrap(right[:0], right[:0]).n == 0
    with pytest.raises(ValueError, match="same length"):
        significance.mcnemar(right, right[:2])


def test_newcombes_interval_is_that_of_his_paper():
    """Two examples of Newcombe 1998, method 10: both right, only the first, only the second, none."""
    for (both, only_a, only_b, none), (low, high) in {
        (36, 12, 2, 0): (0.0569, 0.3404),
        (54, 0, 0, 0): (-0.0664, 0.0664),
    }.items():
        a = np.repeat([True, True, False, False], [both, only_a, only_b, none])
        b = np.repeat([True, False, True, False], [both, only_a, only_b, none])
        # His difference is the first minus the second.
        found = significance.paired_difference(b, a)
        assert (found.low, found.high) == pytest.approx((low, high), abs=1e-4)
        assert found.difference == pytest.approx((only_a - only_b) / len(a))


@pytest.mark.parametrize(("n", "shares"), [(30, (0.97, 0.99)), (50, (0.90, 0.93)), (200, (0.6, 0.7))])
def test_the_paired_interval_holds_the_truth_also_near_the_ceiling(n: int, shares: tuple[float, float]):
    """The percentile bootstrap contained it in 45 and 88 of 100 samples of the first two."""
    rng, held = np.random.default_rng(n), 0
    for _ in range(400):
        luck = rng.random(n)
        a, b = luck < shares[0], np.where(rng.random(n) < 0.5, luck, rng.random(n)) < shares[1]
        found = significance.paired_difference(a, b)
        held += found.low <= shares[1] - shares[0] <= found.high
    assert held >= 372, "93 of 100"


def test_without_discordant_samples_the_interval_has_a_width():
    right = np.ones(40, bool)
    found = significance.paired_difference(right, right)
    assert found.low < 0 < found.high
    # Scores that are neither right nor wrong are resampled, as before.
    scores = np.linspace(0, 1, 40)
    assert significance.paired_difference(scores, scores + 0.1) == significance.paired_bootstrap(scores, scores + 0.1)


def test_mcnemar_is_the_binomial_test_of_the_discordant_samples():
    from scipy.stats import binomtest

    rng = np.random.default_rng(2)
    a, b = rng.random(80) < 0.4, rng.random(80) < 0.6
    found = significance.mcnemar(a, b)
    only_a = sum(x and not y for x, y in zip(a, b))
    only_b = sum(y and not x for x, y in zip(a, b))
    assert (found.only_a, found.only_b) == (only_a, only_b)
    assert found.p == pytest.approx(binomtest(only_a, only_a + only_b, 0.5).pvalue)


def test_groups_of_seeds_agree_with_scipy():
    from scipy import stats

    rng = np.random.default_rng(3)
    a, b = rng.normal(0.5, 0.02, 5), rng.normal(0.55, 0.05, 4)
    found = significance.compare_groups(a, b)
    welch = stats.ttest_ind(b, a, equal_var=False)
    interval = welch.confidence_interval()
    assert (found.welch, found.low, found.high) == pytest.approx((welch.pvalue, interval.low, interval.high))
    gaps = []
    pool = np.concatenate([a, b])
    for chosen in itertools.combinations(range(9), 5):
        rest = [i for i in range(9) if i not in chosen]
        gaps.append(abs(pool[list(chosen)].mean() - pool[rest].mean()))
    assert found.permutation == pytest.approx(np.mean(np.array(gaps) >= found.difference - 1e-12))


def test_three_seeds_each_cannot_be_more_certain_than_one_in_ten():
    found = significance.compare_groups(np.array([0.1, 0.11, 0.12]), np.array([0.9, 0.91, 0.92]))
    assert found.permutation == pytest.approx(0.1)
    assert found.welch < 1e-4
    with pytest.raises(ValueError, match="at least 2 runs"):
        significance.compare_groups(np.array([0.1]), np.array([0.1, 0.2]))


def test_large_groups_are_permuted_at_random():
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=12), rng.normal(size=12)
    p, pool = significance.permutation_p(a, b), np.concatenate([a, b])
    dealt = [rng.permutation(pool) for _ in range(10_000)]
    gaps = np.array([abs(row[:12].mean() - row[12:].mean()) for row in dealt])
    assert p == pytest.approx((gaps >= abs(a.mean() - b.mean()) - 1e-12).mean(), abs=0.03)
    assert significance.permutation_p(a, b + 9) == pytest.approx(1 / (1 + significance.EXACT))


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8))
def test_holm_never_lowers_a_p_and_keeps_the_order(values: list[float]):
    p = np.array(values)
    adjusted = significance.holm(p)
    assert (adjusted >= p).all()
    assert (adjusted <= 1).all()
    assert (np.diff(adjusted[np.argsort(p, kind="stable")]) >= 0).all()
    assert significance.holm(np.array([0.01, np.nan, 0.04])) == pytest.approx([0.02, np.nan, 0.04], nan_ok=True)


@pytest.mark.parametrize("kind", corruptions.KINDS)
def test_corruptions_grow_with_severity_and_depend_on_the_place_alone(kind: str):
    rng = np.random.default_rng(0)
    smooth = np.kron(rng.integers(0, 255, (6, 4, 4, 3)), np.ones((1, 8, 8, 1))).astype(np.uint8)
    kept = smooth.copy()
    change = []
    for severity in corruptions.SEVERITIES:
        whole = corruptions.corrupt(smooth, kind, severity)
        assert whole.shape == smooth.shape
        assert whole.dtype == np.uint8
        parts = [corruptions.corrupt(smooth[s : s + 2], kind, severity, first=s) for s in range(0, 6, 2)]
        assert (np.concatenate(parts) == whole).all()
        change.append(np.abs(whole.astype(int) - smooth).mean())
    assert (smooth == kept).all()
    assert all(more > less for less, more in itertools.pairwise(change))


def test_an_unknown_corruption_is_refused():
    with pytest.raises(ValueError, match="no corruption 'fog'"):
        corruptions.corrupt(np.zeros((1, 4, 4, 3), np.uint8), "fog", 1)


def _classes(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    targets = rng.integers(0, 3, n)
    means = np.random.default_rng(99).normal(size=(3, 8))
    return (means[targets] + 1.2 * rng.normal(size=(n, 8))).astype(np.float32), targets


@pytest.mark.slow
def test_the_probe_is_scikit_learns_logistic_regression():
    linear_model = pytest.importorskip("sklearn.linear_model")
    rows, targets = _classes(300)
    tried, _ = _classes(200, seed=5)
    decay = 1e-2
    reading = linear_probe.fit_reading(rows, targets, 3, decay=decay)
    scaled = (rows - rows.mean(0)) / rows.std(0)
    theirs = linear_model.LogisticRegression(C=1 / (decay * 300), tol=1e-8, max_iter=2000).fit(scaled, targets)
    logits = reading.logits(tried)
    ours = np.exp(logits - logits.max(1, keepdims=True))
    ours /= ours.sum(1, keepdims=True)
    assert ours == pytest.approx(theirs.predict_proba((tried - rows.mean(0)) / rows.std(0)), abs=2e-4)


def test_more_labels_read_better_and_a_class_without_enough_has_no_probe():
    rows, targets = _classes(600)
    tried, truth = _classes(1500, seed=5)
    whole = linear_probe.linear_probe(rows, targets, tried, 3)
    assert whole.fitted == 600
    assert whole.decay in linear_probe.DECAYS
    accuracy = np.mean(whole.predicted == truth)
    few = [
        np.mean(
            [
                np.mean(linear_probe.few_shot(rows, targets, tried, 3, shots=k, seed=s).predicted == truth)
                for s in range(3)
            ]
        )
        for k in (1, 16)
    ]
    assert few[0] < few[1] <= accuracy + 0.03
    assert linear_probe.few_shot(rows[:6], targets[:6], tried, 3, shots=16) is None


def test_a_fit_that_begins_elsewhere_ends_at_the_same_minimum():
    rows, targets = _classes(300)
    cold = linear_probe.fit_reading(rows, targets, 3, decay=1e-3)
    other = linear_probe.fit_reading(rows, targets, 3, decay=1.0)
    assert abs(other.weights - cold.weights).max() > 0.1
    warm = linear_probe.fit_reading(rows, targets, 3, decay=1e-3, start=other.weights)
    assert warm.logits(rows) - warm.logits(rows).mean(1, keepdims=True) == pytest.approx(
        cold.logits(rows) - cold.logits(rows).mean(1, keepdims=True), abs=1e-4
    )


def test_the_chosen_decay_reads_no_fewer_validation_rows_than_any_stronger_one():
    fitted, validated = _classes(120), _classes(400, seed=5)
    chosen = linear_probe.chosen_decay(fitted, validated, 3)
    right = {
        decay: np.mean(linear_probe.fit_reading(*fitted, 3, decay=decay).predict(validated[0]) == validated[1])
        for decay in linear_probe.DECAYS
    }
    assert all(right[decay] < right[chosen] for decay in right if decay > chosen)
    assert right[chosen] >= max(right.values()) - 0.01
