"""Changes between two embeddings, against double loops in float64."""

import math
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainer.analysis import embedding_similarity, hubness, rank_margins, search, tiled_ranks, tiles
from trainer.analysis.distinct import matching
from trainer.analysis.retrieval import ranks
from trainer.analysis.tiled_neighbors import nearest, neighbors_of_each


def unit(rng: np.random.Generator, n: int, d: int, dtype=np.float32) -> np.ndarray:
    rows = rng.standard_normal((n, d))
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(dtype)


def naive_standing(query, stored, groups):
    """Return naive ranks and margins; rows of one group are one item."""
    rank, margin = [], []
    for i in range(len(query)):
        cosines = [float(np.dot(query[i].astype(np.float64), s.astype(np.float64))) for s in stored]
        best = max(c for c, g in zip(cosines, groups) if g == groups[i])
        wrong = list({g: c for c, g in zip(cosines, groups) if g != groups[i]}.values())
        rank.append(1 + sum(c >= best for c in wrong))
        spread = float(np.std(wrong)) if len(wrong) >= 2 else 0.0
        margin.append((best - max(wrong)) / spread if spread > 1e-9 else math.nan)
    return np.array(rank), np.array(margin)


def cka(first: np.ndarray, second: np.ndarray) -> float:
    return embedding_similarity.cka_of_profiles(*map(embedding_similarity.cka_profile, (first, second)))


def rsa(first: np.ndarray, second: np.ndarray) -> float:
    return embedding_similarity.rsa_of_profiles(*map(embedding_similarity.rsa_profile, (first, second)))


@given(st.integers(1, 25), st.integers(1, 6), st.integers(0, 2**32 - 1), st.integers(1, 90))
def test_standing_is_the_double_loop(n: int, d: int, seed: int, edge: int):
    rng = np.random.default_rng(seed)
    groups = rng.integers(0, max(1, n // 2) + 1, n)
    query, stored = unit(rng, n, d, np.float64), unit(rng, n, d, np.float64)[groups % n]
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(tiled_ranks, "EDGE", edge)
        found = rank_margins.standing(query, stored, matching(groups % n).texts)
    rank, margin = naive_standing(query, stored, groups % n)
    assert found.rank.tolist() == rank.tolist()
    np.testing.assert_allclose(found.margin, margin, rtol=1e-6, atol=1e-9)
    assert ((found.margin > 0) == (found.rank == 1))[~np.isnan(found.margin)].all()


def test_standing_without_groups_and_with_diverged_rows_ranks_as_retrieval_does():
    rng = np.random.default_rng(3)
    query, stored = unit(rng, 40, 8), unit(rng, 40, 8)
    query[5], stored[9] = np.nan, np.nan
    texts = matching(rng.integers(0, 12, 40)).texts
    assert rank_margins.standing(query, stored).rank.tolist() == ranks(query, stored).tolist()
    assert rank_margins.standing(query, stored, texts).rank.tolist() == ranks(query, stored, texts).tolist()
    assert rank_margins.standing(query, stored).rank[5] == 40


@given(st.integers(1, 25), st.integers(1, 6), st.integers(0, 2**32 - 1), st.integers(1, 90))
def test_one_product_gives_the_standings_of_both_directions(n: int, d: int, seed: int, edge: int):
    rng = np.random.default_rng(seed)
    image, text = unit(rng, n, d, np.float64), unit(rng, n, d, np.float64)
    if n > 6:
        image[3], text[5] = np.nan, np.nan
    found_of = matching(rng.integers(0, max(1, n // 2) + 1, n), rng.integers(0, n, n))
    image, text = image[found_of.images.rows][found_of.images.place], text[found_of.texts.rows][found_of.texts.place]
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(tiled_ranks, "EDGE", edge)
        found, text_rank = rank_margins.both_standings(image, text, found_of)
    forth, back = (
        rank_margins.standing(image, text, found_of.texts),
        rank_margins.standing(text, image, found_of.images),
    )
    assert found.rank.tolist() == forth.rank.tolist()
    assert text_rank.tolist() == back.rank.tolist()
    np.testing.assert_allclose(found.margin, forth.margin, rtol=1e-6, atol=1e-9)


def test_one_query_stands_by_its_cosines_as_among_all_queries(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("trainer.analysis.tiles.CELLS", 40)
    rng = np.random.default_rng(4)
    query, stored = unit(rng, 60, 5), unit(rng, 60, 5)
    stored[20:30], query[7], stored[9] = stored[20], np.nan, np.nan
    texts = matching(rng.integers(0, 20, 60), rng.integers(0, 40, 60)).texts
    every = rank_margins.standing(query, stored, texts)
    cosines = rank_margins.cosines_with_all(query, stored)
    alone = [rank_margins.standing_of_one(cosines[row], texts, row) for row in range(60)]
    assert [rank for rank, _ in alone] == every.rank.tolist()
    np.testing.assert_allclose([margin for _, margin in alone], every.margin, rtol=1e-9, atol=1e-9)


def test_both_standings_of_more_lines_than_a_byte_counts_and_of_a_collapsed_model():
    rng = np.random.default_rng(8)
    image, text = unit(rng, 700, 4), unit(rng, 700, 4)
    found, text_rank = rank_margins.both_standings(image, text)
    assert text_rank.tolist() == rank_margins.standing(text, image).rank.tolist()
    assert text_rank.max() > 255
    same = unit(rng, 1, 5).repeat(600, axis=0)
    found, text_rank = rank_margins.both_standings(same, same)
    assert found.rank.tolist() == text_rank.tolist() == [600] * 600


def test_a_collapsed_model_stands_last_and_has_no_margin():
    same = np.ones((6, 3), np.float32) / np.sqrt(3).astype(np.float32)
    found = rank_margins.standing(same, same)
    assert found.rank.tolist() == [6] * 6
    assert np.isnan(found.margin).all()


def test_the_margin_does_not_see_how_an_objective_stretches_cosines():
    rng = np.random.default_rng(1)
    query, stored = unit(rng, 30, 6, np.float64), unit(rng, 30, 6, np.float64)
    before = rank_margins.standing(query, stored).margin
    # One more entry on both sides: cosines become 0.3 c + 0.7 without changing anything else.
    wide = [np.hstack([m * np.sqrt(0.3), np.full((30, 1), np.sqrt(0.7))]) for m in (query, stored)]
    np.testing.assert_allclose(rank_margins.standing(*wide).margin, before, rtol=1e-9, atol=1e-9)


def test_progress_may_cancel():
    def refuse(_share: float, _note: str) -> None:
        raise KeyboardInterrupt

    rows = unit(np.random.default_rng(0), 5, 3)
    for ask in (
        lambda: rank_margins.standing(rows, rows, None, refuse),
        lambda: rank_margins.both_standings(rows, rows, None, refuse),
        lambda: neighbors_of_each(rows, 2, progress=refuse),
        lambda: hubness.k_occurrence(rows, rows, 2, refuse),
        lambda: hubness.mean_of_nearest(rows, rows, 2, refuse),
    ):
        with pytest.raises(KeyboardInterrupt):
            ask()


@given(st.integers(1, 40), st.integers(1, 45), st.integers(0, 2**32 - 1))
def test_neighbors_are_those_of_the_double_loop(n: int, k: int, seed: int):
    rng = np.random.default_rng(seed)
    # Small whole numbers: products are exact, ties are everywhere and must go by row number.
    vectors = rng.integers(-2, 3, (n, 3)).astype(np.float64)
    found = neighbors_of_each(vectors, k)[0]
    assert found.shape == (n, min(k, n - 1))
    similarity = vectors @ vectors.T
    for i in range(n):
        others = sorted((j for j in range(n) if j != i), key=lambda j: (-similarity[i, j], j))
        assert found[i].tolist() == others[:k]


def test_neighbors_of_some_rows_in_tiles(monkeypatch):
    vectors = unit(np.random.default_rng(0), 30, 5)
    whole = neighbors_of_each(vectors, 4)[0]
    monkeypatch.setattr(embedding_similarity, "row_blocks", lambda r, c: tiles.row_blocks(r, c, cells=45))
    rows = np.array([3, 7, 29])
    assert np.array_equal(nearest(vectors[rows], vectors, 4, self_rows=rows)[0], whole[rows])
    vectors[2] = np.nan
    assert not (neighbors_of_each(vectors, 4)[0][[0, 1, 3]] == 2).any()


@given(st.integers(1, 12), st.integers(1, 6), st.integers(1, 6), st.integers(0, 2**32 - 1))
def test_jaccard_is_that_of_sets(n: int, k: int, j: int, seed: int):
    rng = np.random.default_rng(seed)
    first = np.array([rng.choice(10, k, replace=False) for _ in range(n)])
    second = np.array([rng.choice(10, j, replace=False) for _ in range(n)])
    expected = [len(set(a) & set(b)) / len(set(a) | set(b)) for a, b in zip(first.tolist(), second.tolist())]
    np.testing.assert_allclose(embedding_similarity.jaccard(first, second), expected)
    np.testing.assert_allclose(embedding_similarity.jaccard(second, first), expected)
    shared = [[x in b for x in a] for a, b in zip(first.tolist(), second.tolist())]
    assert embedding_similarity.shared_members(first, second).tolist() == shared


@given(st.integers(5, 30), st.integers(2, 5), st.integers(0, 3), st.integers(0, 2**32 - 1))
def test_procrustes_undoes_rotation_reflection_scale_shift_and_padding(n: int, d: int, more: int, seed: int):
    rng = np.random.default_rng(seed)
    first = rng.standard_normal((n, d))
    turn = np.linalg.qr(rng.standard_normal((d + more, d + more)))[0][:d]
    second = 3.7 * first @ turn + rng.standard_normal(d + more)
    np.testing.assert_allclose(embedding_similarity.procrustes_residuals(first, second), 0, atol=1e-6)
    assert cka(first, second) == pytest.approx(1, abs=1e-5)


def test_procrustes_is_the_least_of_many_rotations_and_its_mean_square_is_one_minus_r_squared():
    rng = np.random.default_rng(4)
    first = rng.standard_normal((50, 2))
    second = first @ np.array([[0.0, 1.0], [-1.0, 0.0]]) + 0.5 * rng.standard_normal((50, 2))
    residuals = embedding_similarity.procrustes_residuals(first, second)
    x, y = ((m - m.mean(0)) / np.sqrt(((m - m.mean(0)) ** 2).sum() / 50) for m in (first, second))
    least = math.inf
    for angle in np.linspace(0, 2 * np.pi, 721):
        for mirror in (1, -1):
            turn = np.array([[np.cos(angle), -np.sin(angle)], [mirror * np.sin(angle), mirror * np.cos(angle)]])
            scale = np.sum((x @ turn) * y) / 50
            least = min(least, float(np.mean(np.sum((scale * x @ turn - y) ** 2, axis=1))))
    assert np.mean(residuals**2) == pytest.approx(least, rel=1e-4)
    correlation = np.linalg.svd(x.T @ y / 50)[1].sum()
    assert np.mean(residuals**2) == pytest.approx(1 - correlation**2)


def test_a_moved_item_has_the_largest_residual():
    rng = np.random.default_rng(5)
    first = unit(rng, 200, 8)
    second = first.copy()
    second[17] = -second[17]
    assert embedding_similarity.procrustes_residuals(first, second).argmax() == 17
    assert np.isnan(embedding_similarity.procrustes_residuals(first, np.ones_like(first))).all()


def test_cka_is_that_of_centered_gram_matrices():
    rng = np.random.default_rng(6)
    first, second = rng.standard_normal((25, 4)), rng.standard_normal((25, 7))
    n = len(first)
    grams = []
    for side in (first, second):
        gram = np.array([[float(np.dot(a, b)) for b in side] for a in side])
        grams.append(gram - gram.mean(0) - gram.mean(1)[:, None] + gram.mean())
    hsic = [
        sum(a[i, j] * b[i, j] for i in range(n) for j in range(n))
        for a, b in ((grams[0], grams[1]), (grams[0], grams[0]), (grams[1], grams[1]))
    ]
    assert cka(first, second) == pytest.approx(hsic[0] / math.sqrt(hsic[1] * hsic[2]), abs=1e-5)
    assert math.isnan(cka(first, np.ones((25, 3), np.float32)))


@pytest.mark.parametrize("seed", range(3))
def test_no_similarity_of_equal_or_turned_rows_is_above_one(seed: int):
    rng = np.random.default_rng(seed)
    rows = unit(rng, 300, 24)
    turn = np.linalg.qr(rng.standard_normal((24, 24)))[0].astype(np.float32)
    ranked = embedding_similarity.rsa_profile(rows)
    for value in (
        cka(rows, rows),
        cka(rows, rows @ turn),
        embedding_similarity.rsa_of_profiles(ranked, ranked),
    ):
        # Sums of 300 products in float32.
        assert 1 - 4 * 300 * np.finfo(np.float32).eps < value <= 1


def test_rsa_is_spearman_of_the_cosines():
    from scipy.stats import spearmanr

    rng = np.random.default_rng(7)
    # Rows repeat, so that cosines are tied.
    first, second = (np.repeat(unit(rng, 9, width, np.float64), 2, axis=0) for width in (3, 5))
    pairs = [(i, j) for i in range(18) for j in range(i + 1, 18)]
    expected = spearmanr(*([round(rows[i] @ rows[j], 12) for i, j in pairs] for rows in (first, second)))[0]
    assert rsa(first, second) == pytest.approx(expected, abs=1e-9)
    assert rsa(first, first) == pytest.approx(1)
    assert math.isnan(rsa(first[:1], second[:1]))


@given(st.integers(1, 20), st.integers(1, 15), st.integers(1, 6), st.integers(0, 2**32 - 1))
def test_k_occurrence_is_counted(n: int, m: int, k: int, seed: int):
    rng = np.random.default_rng(seed)
    query, stored = rng.integers(-3, 4, (n, 4)).astype(float), rng.integers(-3, 4, (m, 4)).astype(float)
    counts = [0] * m
    for q in query:
        for j in sorted(range(m), key=lambda j: (-float(q @ stored[j]), j))[:k]:
            counts[j] += 1
    found = hubness.k_occurrence(query, stored, k)
    assert found.sum() == n * min(k, m)
    assert found.tolist() == counts


def test_skewness_is_the_third_moment():
    from scipy.stats import skew

    values = np.random.default_rng(8).exponential(size=100)
    assert hubness.skewness(values) == pytest.approx(skew(values))
    assert hubness.skewness(np.array([1, 2, 3])) == pytest.approx(0)
    assert math.isnan(hubness.skewness(np.array([4, 4])))
    assert math.isnan(hubness.skewness(np.empty(0)))


def test_csls_by_one_more_entry_orders_as_the_formula():
    rng = np.random.default_rng(9)
    query, stored = unit(rng, 12, 5, np.float64), unit(rng, 14, 5, np.float64)
    r_query, r_stored = hubness.mean_of_nearest(query, stored, 3), hubness.mean_of_nearest(stored, query, 3)
    cosine = query @ stored.T
    for i in range(12):
        assert r_query[i] == pytest.approx(np.mean(sorted(cosine[i])[-3:]))
    for j in range(14):
        assert r_stored[j] == pytest.approx(np.mean(sorted(cosine[:, j])[-3:]))
    csls = 2 * cosine - r_query[:, None] - r_stored[None, :]
    found = hubness.csls_queries(query) @ hubness.CslsVectors(stored, r_stored)[:].T
    np.testing.assert_allclose(2 * found - r_query[:, None], csls, atol=1e-12)
    assert np.array_equal(np.argsort(-found, axis=1), np.argsort(-csls, axis=1))


@given(st.integers(1, 200), st.integers(1, 30), st.integers(0, 2**32 - 1), st.sampled_from([np.float16, np.float32]))
def test_search_is_sorting_everything(n: int, k: int, seed: int, dtype):
    rng = np.random.default_rng(seed)
    stored = unit(rng, 6, 4, dtype)[rng.integers(0, 6, n)]
    query = unit(rng, 1, 4)[0]
    rows, scores = search.best_of(search.products(stored, query), k)
    every = [float(np.dot(s.astype(np.float32), query)) for s in stored]
    np.testing.assert_allclose(scores, [every[i] for i in rows], atol=1e-6)
    assert np.allclose(scores, sorted(every, reverse=True)[:k], atol=1e-6)
    assert len(set(rows.tolist())) == min(n, k)


def test_search_in_chunks_finds_the_best_and_sets_what_is_not_a_number_last():
    rng = np.random.default_rng(0)
    scores = rng.standard_normal(200_000).astype(np.float32)
    scores[::1000] = 5.0
    rows, best = search.best_of(scores, 50)
    assert rows.tolist() == list(range(0, 50_000, 1000))
    assert (best == 5).all()
    scores[0] = np.nan
    assert search.best_of(scores, 1)[0].tolist() == [1000]
    assert search.best_of(np.full(3, np.nan, np.float32), 2)[0].tolist() == [0, 1]
    assert len(search.best_of(scores, 0)[0]) == 0


def test_residuals_in_half_precision_are_measured_without_a_copy_in_single():
    rng = np.random.default_rng(2)
    first, second = unit(rng, 20_000, 32, np.float16), unit(rng, 20_000, 32, np.float16)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(tiles.row_blocks, "__kwdefaults__", {"cells": 2**14})
        tracemalloc.start()
        try:
            found = embedding_similarity.procrustes_residuals(first, second)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    assert peak < first.nbytes  # single precision takes twice as much
    exactly = embedding_similarity.procrustes_residuals(first.astype(np.float64), second.astype(np.float64))
    np.testing.assert_allclose(found, exactly, rtol=1e-5)
