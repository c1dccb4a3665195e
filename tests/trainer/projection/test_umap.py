"""The own UMAP against umap-learn: the same graph, as good maps, and the same map on any number of threads."""

import re
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from tests.nightly import few_plain
from trainer.analysis import neighbor_cells, tiled_neighbors
from trainer.analysis.compiled import compiled
from trainer.analysis.map_quality import map_quality, quality_in_short
from trainer.analysis.neighbor_cells import neighbors_by_cells, neighbors_of_all
from trainer.analysis.projection import pca
from trainer.analysis.tiled_neighbors import KERNELS
from trainer.charts.point_placement import PointPlacement
from trainer.messages import Project
from trainer.projection import fitting, layouts
from trainer.projection.neighbors import distances_of, with_itself
from trainer.projection.umap import KERNELS as ARRANGING
from trainer.projection.umap import arranged, curve_of, fuzzy_graph, in_square
from trainer.projection.umap_learn import load_umap, umap_layout, warm_up
from trainer.server.projection import answer_project
from trainer.store import Items, write_snapshot

pytestmark = pytest.mark.slow


def silent(_share: float, _note: str) -> None:
    """Ignore it."""


def manifold(n: int, inside: int, d: int = 24) -> np.ndarray:
    """Return unit rows on a smooth manifold of a few dimensions, without clusters."""
    rng = np.random.default_rng(inside)
    hidden = np.tanh(rng.standard_normal((n, inside)) @ rng.standard_normal((inside, 32)) / np.sqrt(inside))
    rows = hidden @ rng.standard_normal((32, d))
    return np.float32(rows / np.linalg.norm(rows, axis=1, keepdims=True))


def clusters(n: int, count: int = 12, d: int = 24) -> np.ndarray:
    rng = np.random.default_rng(count)
    rows = rng.standard_normal((count, d))[rng.integers(0, count, n)] + 0.3 * rng.standard_normal((n, d))
    return np.float32(rows / np.linalg.norm(rows, axis=1, keepdims=True))


@few_plain(1, "method", ["umap-learn", "tsne"])
def test_a_map_says_how_many_neighbors_cells_found(monkeypatch: pytest.MonkeyPatch, method: str):
    if method == "tsne":
        pytest.importorskip("openTSNE")
    vectors, placement = clusters(300), PointPlacement(method=method)
    assert not fitting.fit(vectors, placement, silent).note
    monkeypatch.setattr(neighbor_cells, "MOST_EXACT", 100)
    for most in (300, 200):
        note = fitting.fit(vectors, placement, silent, most=most).note
        assert re.fullmatch(r"neighbors by cells, (\d\.\d{3}) of the true ones \(measured on \d+ points\)", note)
        assert quality_in_short(f"{note}; {map_quality(vectors, vectors[:, :2]).words}").endswith("of true neighbors")


def test_the_graph_is_that_of_umap_learn():
    vectors, reference = clusters(300), load_umap().umap_
    found = neighbors_of_all(vectors, 9, silent)
    rows, distances = with_itself(found)
    theirs, _, _ = reference.fuzzy_simplicial_set(vectors, 10, np.random.RandomState(0), "cosine", {}, rows, distances)
    ours = fuzzy_graph(found.rows, distances_of(found.cosines))
    assert abs(ours - theirs.tocsr()).max() < 2e-3
    assert curve_of(0.1) == pytest.approx(reference.find_ab_params(1.0, 0.1), rel=1e-6)


@few_plain(1, "vectors", [clusters(1_500), manifold(1_500, 4)], ids=["clusters", "manifold"])
def test_maps_are_as_good_as_those_of_umap_learn(vectors: np.ndarray):
    found = neighbors_of_all(vectors, 14, silent)
    graph = fuzzy_graph(found.rows, distances_of(found.cosines))
    ours = arranged(graph, in_square(pca(vectors)), min_dist=0.1, seed=0, progress=silent, epochs=500)
    theirs = umap_layout(vectors, neighbors=15, min_dist=0.1, seed=0, progress=silent)
    first, second = map_quality(vectors, ours), map_quality(vectors, theirs)
    assert first.kept > second.kept - 0.03
    assert first.trustworthiness > second.trustworthiness - 0.01


def test_the_same_seed_gives_the_same_map_on_any_number_of_threads_and_shows_it_on_the_way():
    vectors = clusters(501)
    found = neighbors_of_all(vectors, 14, silent)
    graph, begun = fuzzy_graph(found.rows, distances_of(found.cosines)), in_square(pca(vectors))
    seen: list[np.ndarray] = []
    first, second, other = (
        arranged(graph, begun, min_dist=0.1, seed=seed, progress=silent, epochs=30, workers=workers, show=seen.append)
        for seed, workers in ((0, 1), (0, 3), (1, 2))
    )
    assert np.array_equal(first, second)
    assert not np.array_equal(first, other)
    assert len(seen) == 9
    assert np.array_equal(seen[2], first)


def test_of_many_points_the_own_umap_fits_all_and_says_how(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(fitting, "BY_UMAP_LEARN", 100)
    from sklearn.manifold import trustworthiness

    vectors = clusters(400)
    told: list[float] = []
    fitted = fitting.fit(vectors, PointPlacement(method="umap"), lambda share, _: told.append(share), most=50)
    assert fitted.fitted == 400
    assert fitted.note == "arranged by this program in 200 epochs, exact neighbors"
    quality = map_quality(vectors, fitted.points)
    on_map = cdist(fitted.points, fitted.points)
    near = [np.argsort(distance, axis=1)[:, 1:16].tolist() for distance in (-vectors @ vectors.T, on_map)]
    kept = [len(set(a) & set(b)) for a, b in zip(*near, strict=True)]
    # Two neighbors may be nearly as far, and single precision tells them apart otherwise than double.
    assert quality.kept * 15 * 400 == pytest.approx(sum(kept), abs=2)
    reference = trustworthiness(vectors, fitted.points, n_neighbors=15, metric="cosine")
    assert quality.trustworthiness == pytest.approx(reference, abs=1e-6)
    assert reference > 0.9
    assert told == sorted(told)
    again = fitting.fit(vectors, PointPlacement(method="umap-learn"), silent, most=50)
    assert (again.fitted, again.note) == (50, "")


def test_the_recall_of_cells_is_the_measured_one(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(tiled_neighbors, "DOUBLE_CELLS", 0)
    vectors = clusters(3_000)
    found = neighbors_by_cells(vectors, 10)
    truth = neighbors_of_all(vectors, 10, silent).rows
    share = np.mean([len(set(a) & set(b)) / 10 for a, b in zip(found.rows.tolist(), truth.tolist(), strict=True)])
    assert found.recall == pytest.approx(share, abs=0.03)
    assert found.asked == neighbor_cells.ASKED
    assert f"{found.recall:.3f} of the true ones (measured on 300 points)" in found.words
    assert not (found.rows == np.arange(3_000)[:, None]).any()
    again = neighbors_by_cells(vectors, 10)
    assert np.array_equal(again.rows, found.rows)
    np.testing.assert_allclose(found.cosines, np.einsum("nkd,nd->nk", vectors[found.rows], vectors), atol=1e-5)


def test_a_map_takes_cells_for_fewer_points_only_where_they_find_enough(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(neighbor_cells, "_WORTH_CELLS", 500)
    found = neighbors_of_all(clusters(3_000), 10, quick=True)
    assert found.asked == neighbor_cells.ASKED
    assert found.recall >= neighbor_cells.WANTED
    # Without clusters a quarter of the cells misses some: then all are compared.
    hard = neighbors_of_all(manifold(1_000, 24), 10, quick=True)
    assert (hard.asked, hard.recall) == (0, 1.0)
    assert neighbors_of_all(clusters(600), 10).asked == 0


def test_very_many_rows_are_mapped(monkeypatch: pytest.MonkeyPatch):
    both = SimpleNamespace(image=clusters(50).astype(np.float16), text=clusters(40, 5).astype(np.float16))
    plain = layouts.unit_rows(both)
    monkeypatch.setattr(layouts, "_MOST_IN_MEMORY", 0)
    mapped = layouts.unit_rows(both)
    assert (plain.dtype, mapped.dtype, isinstance(mapped, np.memmap)) == (np.float32, np.float16, True)
    np.testing.assert_allclose(mapped, plain, atol=1e-3)
    np.testing.assert_allclose(pca(mapped, 2), pca(plain, 2), atol=5e-3)
    assert layouts.unit_rows(SimpleNamespace(image=None, text=both.text)) is both.text


def test_quality_is_that_of_the_loop(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("trainer.analysis.map_quality.EDGE", 7)
    vectors, points = clusters(60), np.random.default_rng(1).standard_normal((60, 2))
    k, n = 5, 60
    cosines = vectors.astype(np.float64) @ vectors.T
    distances = np.linalg.norm(points[:, None] - points[None], axis=2)
    kept, beyond = 0, 0
    for i in range(n):
        near = [j for j in np.argsort(-cosines[i]) if j != i]
        on_map = [j for j in np.argsort(distances[i]) if j != i][:k]
        kept += len(set(near[:k]) & set(on_map))
        beyond += sum(max(near.index(j) + 1 - k, 0) for j in on_map)
    found = map_quality(vectors, points, k=k)
    assert found.kept == pytest.approx(kept / n / k)
    assert found.trustworthiness == pytest.approx(1 - 2 * beyond / (n * k * (2 * n - 3 * k - 1)))


def test_points_on_the_way_are_written_where_the_window_looks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(fitting, "BY_UMAP_LEARN", 20)
    image, sketch = clusters(60), tmp_path / "sketch.npy"
    blank = [""] * 60
    items = Items(np.arange(60), blank, blank, blank, blank)
    folder = tmp_path / "ws" / "one"
    folder.parent.mkdir()
    write_snapshot(folder, image=image, text=None, items=items, step=0, dataset="d", split="s", model="m")
    seen: list[np.ndarray] = []
    answer = answer_project(
        folder.parent,
        Project(snapshot=str(folder), placement=PointPlacement(method="umap"), sketch=str(sketch)),
        lambda _share, _note: seen.append(np.load(sketch)) if sketch.exists() else None,
    )
    assert len(seen) > 150
    assert not np.array_equal(seen[0], seen[-1])
    assert np.array_equal(np.load(sketch), np.load(answer.layout))
    assert "arranged by this program in 200 epochs, exact neighbors" in answer.note
    assert "nearest are near on the map, trustworthiness" in answer.note


def test_warming_up_compiles_all_that_many_points_need():
    warm_up()
    # What only these call has no signatures of its own where they come from the cache.
    for module, names in ((KERNELS, ("keep", "keep_both")), (ARRANGING, ("weigh", "move"))):
        assert all(getattr(compiled(module), name).signatures for name in names)


def test_pulls_and_pushes_are_those_of_the_curve():
    kernels, (a, b) = compiled(ARRANGING), curve_of(0.1)
    table = kernels.curve_table(a, b)
    square = (10 ** np.random.default_rng(0).uniform(-10, 8, 500)).astype(np.float32)
    power = square.astype(float) ** b
    pull, push = -2 * a * b * power / (square * (a * power + 1)), 2 * b / ((0.001 + square) * (a * power + 1))
    for column, expected in enumerate((pull, push)):
        own = [kernels.read_off(table, bits, column) for bits in square.view(np.int32)]
        np.testing.assert_allclose(own, expected, rtol=5e-5)
    for beyond in (1e-30, 1e30):
        (bits,) = np.array([beyond], np.float32).view(np.int32)
        assert np.isfinite(kernels.read_off(table, bits, 0))
