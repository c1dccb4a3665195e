"""The sparse dictionary: gradients against differences, selection against a loop, and planted concepts."""

import numpy as np
import pytest

from tests.nightly import few_plain
from trainer.analysis import sparse_dictionary as dictionaries

rng = np.random.default_rng(5)


def naive_codes(rows: np.ndarray, encoder: np.ndarray, bias: np.ndarray, active: int) -> np.ndarray:
    codes = np.zeros((len(rows), len(bias)))
    for i, row in enumerate(rows):
        values = [sum(row[d] * encoder[d, m] for d in range(len(row))) + bias[m] for m in range(len(bias))]
        for m in sorted(range(len(values)), key=lambda m: -values[m])[:active]:
            codes[i, m] = max(values[m], 0)
    return codes


def problem(n: int = 5, d: int = 6, m: int = 7) -> tuple[np.ndarray, ...]:
    """Return rows, encoder, bias, decoder and offset."""
    shapes = ((n, d), (d, m), (m,), (m, d), (d,))
    return tuple(rng.standard_normal(shape) for shape in shapes)


@pytest.mark.parametrize("active", [1, 3, 7, 20])
def test_loss_and_codes_equal_a_naive_double_loop(active: int) -> None:
    rows, *weights = problem()
    encoder, bias, decoder, offset = weights
    expected = naive_codes(rows - offset, encoder, bias, active)
    loss, _, codes = dictionaries.gradients(rows, tuple(weights), active)
    assert codes == pytest.approx(expected, abs=1e-12)
    total = 0.0
    for i, row in enumerate(rows):
        for d in range(len(row)):
            total += (sum(expected[i, m] * decoder[m, d] for m in range(len(bias))) + offset[d] - row[d]) ** 2
    assert loss == pytest.approx(total / len(rows), abs=1e-10)
    found = dictionaries.SparseDictionary(encoder, bias - offset @ encoder, decoder, offset, (6,), active)
    assert found.codes(rows) == pytest.approx(expected, abs=1e-9)
    assert found.rebuilt(codes) == pytest.approx(codes @ decoder + offset)


def test_gradients_equal_central_differences() -> None:
    rows, *weights = problem()
    _, found, _ = dictionaries.gradients(rows, tuple(weights), 3)
    for weight, gradient in zip(weights, found, strict=True):
        for place in np.ndindex(weight.shape):
            values = []
            for step in (1e-6, -1e-6):
                weight[place] += step
                values.append(dictionaries.gradients(rows, tuple(weights), 3)[0])
                weight[place] -= step
            assert gradient[place] == pytest.approx((values[0] - values[1]) / 2e-6, abs=1e-5)


def test_of_equal_values_the_first_are_taken() -> None:
    codes = dictionaries.strongest(np.array([[1.0, 2.0, 1.0, 1.0], [0.0, -1.0, 0.0, -2.0]]), 2)
    assert codes.tolist() == [[1, 2, 0, 0], [0, 0, 0, 0]]


def test_shares_are_relative_norms_of_each_space() -> None:
    decoder = np.array([[3.0, 4.0, 0, 0], [0, 0, 1.0, 0], [0, 1.0, 0, 3.0]])
    found = dictionaries.SparseDictionary(decoder.T, np.zeros(3), decoder, np.zeros(4), (2, 2), 1)
    assert found.shares() == pytest.approx(np.array([[1, 0], [0, 1], [0.25, 0.75]]))


def test_matching_is_one_to_one_and_finds_a_permutation() -> None:
    decoder = rng.standard_normal((6, 9))
    order = rng.permutation(6)
    to, cosines = dictionaries.matched(decoder, 2 * decoder[order])
    assert order[to].tolist() == list(range(6))
    assert cosines == pytest.approx(np.ones(6))
    to, cosines = dictionaries.matched(decoder, decoder[:4])
    assert sorted(to[to >= 0]) == [0, 1, 2, 3]
    assert (cosines[to < 0] == 0).all()


def test_principal_components_and_explained_variance_equal_the_singular_values() -> None:
    rows = rng.standard_normal((40, 6)) * np.array([5, 3, 2, 1, 0.5, 0.1])
    rows -= rows.mean(axis=0)
    directions = dictionaries.principal(rows, 2)
    assert directions @ directions.T == pytest.approx(np.eye(2), abs=1e-12)
    squares = np.linalg.svd(rows, compute_uv=False) ** 2
    share = dictionaries.explained(rows, rows @ directions.T @ directions)
    assert share == pytest.approx(squares[:2].sum() / squares.sum(), abs=1e-12)


def planted(n: int, widths: tuple[int, int], concepts: int, seed: int, noise: float) -> tuple[np.ndarray, ...]:
    """Return rows of three concepts each, the concepts, and whose they are: of four, one of A, one of B, two shared."""
    generator = np.random.default_rng(seed)
    parts = [generator.standard_normal((concepts, width)) for width in widths]
    first, second = (part / np.linalg.norm(part, axis=1, keepdims=True) for part in parts)
    kind = np.arange(concepts) % 4
    first[kind == 1], second[kind == 0] = 0, 0
    directions = np.concatenate([first, second], axis=1)
    codes = np.zeros((n, concepts))
    for row in codes:
        row[generator.choice(concepts, 3, replace=False)] = generator.uniform(0.5, 1.5, 3)
    rows = codes @ directions
    rows -= rows.mean(axis=0)
    deviation = np.sqrt((rows**2).sum(axis=1).mean() / rows.shape[1])
    return rows + noise * deviation * generator.standard_normal(rows.shape), directions, np.minimum(kind, 2)


@pytest.mark.slow
@few_plain(1, "seed", [0, 1])
def test_planted_concepts_are_found_with_their_owner(seed: int) -> None:
    """At noise of .3 of the rows' deviation in each direction, at least 95 % at a cosine of .9 and the right owner."""
    rows, directions, kind = planted(3_000, (48, 32), 32, seed, 0.3)
    found = dictionaries.fit(rows, widths=(48, 32), concepts=48, active=4, steps=600, seed=seed)
    to, cosines = dictionaries.matched(directions, found.decoder)
    second = found.shares()[to, 1]
    owner = np.where(second < 0.3, 0, np.where(second > 0.7, 1, 2))
    assert ((cosines >= 0.9) & (owner == kind)).mean() >= 0.95
    codes = found.codes(rows.astype(np.float32))
    assert (codes > 0).sum(axis=1).max() <= 4
    # Noise of .3 deviations is .09 of the variance, and 4 of 80 directions of it can be followed at most.
    assert dictionaries.explained(rows, found.rebuilt(codes)) > 0.88


def test_the_decoder_is_that_of_least_squares() -> None:
    rows, *_ = planted(300, (8, 8), 8, 0, 0.1)
    found = dictionaries.fit(rows, widths=(8, 8), concepts=10, active=3, steps=60)
    codes = np.float64(found.codes(np.float32(rows)))
    used = (codes > 0).sum(axis=0) > 20
    best = np.linalg.lstsq(np.column_stack([codes, np.ones(len(codes))]), rows, rcond=None)[0]
    left, least = (
        ((rows - one) ** 2).sum() for one in (found.rebuilt(codes), np.column_stack([codes, np.ones(300)]) @ best)
    )
    assert left == pytest.approx(least, rel=1e-3)
    assert used.any()


def test_the_same_seed_gives_the_same_dictionary_and_cancelling_ends_it() -> None:
    rows, *_ = planted(200, (8, 8), 8, 0, 0.1)
    first, again = (dictionaries.fit(rows, widths=(8, 8), concepts=12, active=3, steps=40, seed=3) for _ in range(2))
    other = dictionaries.fit(rows, widths=(8, 8), concepts=12, active=3, steps=40, seed=4)
    assert first.decoder == pytest.approx(again.decoder, abs=1e-5)
    assert not np.allclose(first.decoder, other.decoder, atol=1e-2)

    def stop(share: float, note: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        dictionaries.fit(rows, widths=(8, 8), concepts=12, active=3, steps=40, progress=stop)
