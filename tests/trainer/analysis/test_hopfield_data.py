"""Hopfield retrieval over real patterns: naive loops, a falling energy, fixed points, weights at the beta of CLOOB."""

import math
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainer.analysis.hopfield import (
    effective_grid,
    effective_number,
    equal_self_weight_beta,
    fixed_point_kind,
    four_retrievals,
    matched_after_retrieval,
    measured_self_weights,
    retrieval_shares,
    self_weight,
    top_shares,
    updates,
)
from trainer.analysis.tiles import row_blocks


def _naive_shares(state, stored, beta):
    weights = [math.exp(beta * sum(a * b for a, b in zip(row, state))) for row in stored]
    return [w / sum(weights) for w in weights]


def test_energy_is_the_papers(unit):
    stored, state, beta = unit(20, 5), unit(1, 5, 3)[0], 3.0
    lse = math.log(sum(math.exp(beta * float(row @ state)) for row in stored)) / beta
    assert updates(state, stored, beta, most=0).energies[0] == pytest.approx(-lse + 0.5 + math.log(20) / beta + 0.5)


@given(st.integers(0, 50), st.floats(0.1, 100), st.integers(1, 30))
def test_every_update_lowers_the_energy(seed: int, beta: float, n: int):
    rng = np.random.default_rng(seed)
    stored = rng.standard_normal((n, 4))
    stored /= np.linalg.norm(stored, axis=1, keepdims=True)
    path = updates(rng.standard_normal(4), stored, beta)
    assert (np.diff(path.energies) <= 1e-9).all()
    assert path.energies.min() >= -1e-9
    assert ((path.numbers >= 1 - 1e-9) & (path.numbers <= n + 1e-6)).all()


def test_an_update_is_the_weighted_mean(unit):
    stored, state = unit(12, 4), unit(1, 4, 5)[0]
    path = updates(state, stored, 6.0, most=1)
    expected = sum(share * row for share, row in zip(_naive_shares(state, stored, 6.0), stored))
    assert np.allclose(path.states, [state, expected])
    assert path.numbers[0] == pytest.approx(effective_number(retrieval_shares(state, stored, 6.0)))
    assert not path.converged


def test_three_kinds_of_fixed_points():
    centers = np.eye(8)[:3]
    noise = np.random.default_rng(0).standard_normal((3, 10, 8))
    stored = (centers[:, None] + 0.1 * noise).reshape(-1, 8)
    stored /= np.linalg.norm(stored, axis=1, keepdims=True)
    kinds = {beta: fixed_point_kind(updates(stored[0], stored, beta).numbers[-1], 30) for beta in (0.5, 15, 2000)}
    assert kinds == {0.5: "global average", 15: "metastable", 2000: "single pattern"}
    group = updates(stored[0], stored, 15)
    assert group.converged
    assert 5 < group.numbers[-1] < 12


@pytest.mark.parametrize("beta", [4.0, 6.0, 9.0])
def test_the_fixed_point_is_that_of_a_loop_until_nothing_moves(unit, beta: float):
    """Where every update moves the state by nearly as much as the one before, a small step says little."""
    stored, state = unit(200, 6), unit(1, 6, 5)[0]
    path = updates(state, stored.astype(np.float32), beta, most=5_000)
    assert path.converged
    xi = np.float64(state)
    for _ in range(20_000):
        weights = np.exp(beta * (stored @ xi - (stored @ xi).max()))
        after = weights @ stored / weights.sum()
        if (moved := np.linalg.norm(after - xi)) < 1e-15:
            break
        xi = after
    assert moved < 1e-14
    weights = np.exp(beta * (stored @ xi - (stored @ xi).max()))
    shares = weights / weights.sum()
    number = np.exp(-(shares * np.log(shares)).sum())
    # 1e-5 from the limit by the promise of `updates`, times the slope of the number: below 4 beta n / 10 here.
    np.testing.assert_allclose(path.states[-1], xi, atol=4e-5)
    assert path.numbers[-1] == pytest.approx(number, rel=1e-3 * beta / 4)


def test_patterns_in_half_precision_are_never_copied_whole(unit, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(row_blocks, "__kwdefaults__", {"cells": 2**14})
    stored, state, betas = unit(20_000, 32).astype(np.float16), unit(1, 32, 5)[0], np.array([1.0, 30.0])
    tracemalloc.start()
    try:
        path, shares = updates(state, stored, 30.0), retrieval_shares(state, stored, 30.0)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < stored.nbytes  # single precision takes twice as much
    whole = stored.astype(np.float64)
    np.testing.assert_allclose(path.states, updates(state, whole, 30.0).states, atol=1e-6)
    np.testing.assert_allclose(shares, retrieval_shares(state, whole, 30.0), rtol=1e-6)
    grid = effective_grid(state[None].astype(np.float32), stored, betas)
    np.testing.assert_allclose(grid, effective_grid(state[None], whole, betas), rtol=1e-5)


@pytest.mark.parametrize(
    ("number", "n", "kind"),
    [
        (1.0, 1, "single pattern"),
        (1.5, 2, "single pattern"),
        (1.51, 2, "global average"),
        (5.0, 10, "metastable"),
        (5.01, 10, "global average"),
    ],
)
def test_bounds_of_the_kinds(number: float, n: int, kind: str):
    assert fixed_point_kind(number, n) == kind


def test_top_shares_and_the_rest():
    places, shares, rest = top_shares(np.array([0.1, 0.4, 0.1, 0.25, 0.15]), 3)
    assert places.tolist() == [1, 3, 4]
    assert shares.tolist() == [0.4, 0.25, 0.15]
    assert rest == pytest.approx(0.2)
    assert top_shares(np.array([1.0]), 5)[2] == 0


@pytest.mark.usefixtures("small_blocks")
def test_grid_equals_one_at_a_time(unit):
    states, stored, betas = unit(9, 6, 1), unit(40, 6, 2), np.array([0.1, 5.0, 100.0])
    naive = [[effective_number(retrieval_shares(s, stored, b)) for b in betas] for s in states]
    assert np.allclose(effective_grid(states, stored, betas), naive)
    with pytest.raises(InterruptedError):
        effective_grid(states, stored, betas, progress=_cancel)


def _cancel(_share: float, _note: str) -> None:
    raise InterruptedError


def test_four_retrievals_of_a_pair(pairs):
    image, text = pairs
    four = four_retrievals(image, text, 7, 8.0)
    ways = {"u_x": (image, image), "u_y": (text, image), "v_x": (image, text), "v_y": (text, text)}
    for place, (name, (asks, stored)) in enumerate(ways.items()):
        shares = _naive_shares(asks[7], stored, 8.0)
        mean = sum(share * row for share, row in zip(shares, stored))
        assert np.allclose(getattr(four, name), mean / np.linalg.norm(mean)), name
        assert four.own[place] == pytest.approx(shares[7])
    assert four.images == pytest.approx(float(four.u_x @ four.u_y))
    before, images, texts = matched_after_retrieval(image, text, 8.0)
    assert (before[7], images[7], texts[7]) == pytest.approx((four.before, four.images, four.texts))


def test_measured_self_weight_of_orthogonal_patterns_is_the_formula():
    stored = np.eye(512)
    sizes = np.array([2, 64, 128, 512])
    measured = measured_self_weights(stored, sizes, np.full(4, 8.0), anchors=20)
    assert measured == pytest.approx(self_weight(sizes, 8.0))
    assert measured[1:] == pytest.approx([0.979, 0.959, 0.854], abs=1e-3)
    ruled = measured_self_weights(stored, sizes, equal_self_weight_beta(sizes), anchors=20)
    assert ruled == pytest.approx(np.full(4, float(self_weight(512, 8.0))))
