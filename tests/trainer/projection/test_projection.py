"""Projections: exact neighbors, reproducible UMAP, and the cache of layouts."""

import importlib
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from tests.cancelled import cancelled
from tests.nightly import few_plain
from trainer.analysis.neighbor_cells import neighbors_of_all
from trainer.analysis.projection import pca
from trainer.charts.point_placement import PointPlacement
from trainer.errors import UserError
from trainer.messages import Project
from trainer.projection import ProjectError, fitting, layout, layout_file, place_new, umap_layout
from trainer.projection.layouts import series
from trainer.projection.neighbors import distances_of, nearest_among, with_itself
from trainer.server.projection import answer_project
from trainer.store import Items, Workspace, write_snapshot

pytestmark = pytest.mark.slow


def unit_rows(n: int, d: int, seed: int = 0) -> np.ndarray:
    vectors = np.random.default_rng(seed).standard_normal((n, d)).astype(np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def snapshot_folder(folder: Path, image: np.ndarray, text: np.ndarray, *, step: int = 0, first: int = 0) -> Path:
    n = len(image)
    items = Items(np.arange(first, first + n), [""] * n, [""] * n, [""] * n, ["heldout"] * n)
    write_snapshot(
        folder, image=image, text=text, items=items, step=step, dataset="made", split="heldout", model="a run"
    )
    return folder


def clusters(n: int, seed: int = 0, d: int = 12) -> np.ndarray:
    """Return rows of five clusters; row i is in cluster i modulo 5."""
    centers = unit_rows(5, d, seed=4)
    vectors = centers[np.arange(n) % 5] + 0.25 * unit_rows(n, d, seed=seed)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


@pytest.mark.nightly
def test_umap_is_loaded_without_its_neighbor_search_which_others_still_get(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] in ("umap", "pynndescent")]:
        monkeypatch.delitem(sys.modules, name)
    vectors = unit_rows(60, 8)
    found = umap_layout(vectors, neighbors=10, min_dist=0.1, seed=0, progress=lambda *_: None)
    assert np.isfinite(found).all()
    assert not [name for name in sys.modules if name.startswith("pynndescent")]
    whole, distances = ModuleType("pynndescent"), ModuleType("pynndescent.distances")
    whole.NNDescent, distances.named_distances = dict, {"seuclidean": "a distance"}
    monkeypatch.setitem(sys.modules, "pynndescent", whole)
    monkeypatch.setitem(sys.modules, "pynndescent.distances", distances)
    umap = importlib.import_module("umap.umap_")
    assert umap.NNDescent(metric="cosine") == {"metric": "cosine"}
    assert umap.NNDescent is dict, "from then on it is the real one"
    assert "cosine" in umap.pynn_named_distances
    assert "nonsense" not in umap.pynn_named_distances
    assert umap.pynn_named_distances["seuclidean"] == "a distance"
    monkeypatch.delitem(sys.modules, "umap.umap_")
    monkeypatch.delitem(sys.modules, "umap")


def test_umap_is_reproducible_tells_progress_and_keeps_clusters_apart() -> None:
    centers = unit_rows(3, 12, seed=4)
    vectors = np.repeat(centers, 30, axis=0) + 0.1 * unit_rows(90, 12, seed=5)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    told: list[float] = []
    first, second = (
        umap_layout(vectors, neighbors=10, min_dist=0.1, seed=3, progress=lambda s, _: told.append(s)) for _ in range(2)
    )
    assert first.shape == (90, 2)
    assert first.dtype == np.float32
    assert np.array_equal(first, second)
    assert told[0] < 0.5
    assert max(told) == pytest.approx(1.0)
    distance = np.linalg.norm(first[:, None] - first[None], axis=2)
    np.fill_diagonal(distance, np.inf)
    assert np.mean(distance.argmin(axis=1) // 30 == np.arange(90) // 30) > 0.95


def test_whatever_the_progress_function_raises_ends_the_fit() -> None:
    with cancelled(lambda _share, note: "epoch" in note) as stop:
        umap_layout(unit_rows(80, 8), neighbors=10, min_dist=0.1, seed=0, progress=stop)


def test_euclidean_neighbors_and_those_among_others() -> None:
    vectors, others = unit_rows(23, 6), unit_rows(9, 6, seed=1)
    full = np.linalg.norm(others[:, None].astype(np.float64) - vectors[None], axis=2)
    told: list[float] = []
    indices, distances = nearest_among(others, 4, vectors, lambda share, _note: told.append(share))
    assert np.array_equal(indices, np.argsort(full, axis=1)[:, :4])
    assert np.allclose(np.sqrt(2 * distances), np.sort(full, axis=1)[:, :4], atol=1e-3)
    assert np.allclose(distances_of(1 - distances, "euclidean"), np.sqrt(2 * distances))
    assert told == sorted(told)
    indices, distances = with_itself(neighbors_of_all(vectors, 3, lambda *_: None))
    assert np.array_equal(indices[:, 0], np.arange(23))
    assert (distances[:, 0] == 0).all()
    assert (np.diff(distances, axis=1) >= 0).all()


def test_a_layout_is_computed_once_and_found_again(asked: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    snapshot = next(row for row in asked.results.snapshots(1) if row.split == "renderings")
    found = layout_file(asked.folder, snapshot.folder, PointPlacement(method="pca"))
    assert (found.images, found.texts, found.fitted) == (24, 24, 48)
    points = np.load(found.file)
    both = np.concatenate([np.load(snapshot.folder / "image.npy"), np.load(snapshot.folder / "text.npy")])
    assert np.allclose(points, pca(both.astype(np.float32), 2), atol=1e-4)

    def never(*_: object, **__: object) -> None:
        raise AssertionError("computed again")

    monkeypatch.setattr(fitting, "fit", never)
    assert np.array_equal(layout(asked.folder, snapshot.folder, PointPlacement(method="pca")), points)
    for other in ({"neighbors": 5}, {"metric": "euclidean"}, {"seed": 1}):
        with pytest.raises(AssertionError, match="computed again"):
            layout(asked.folder, snapshot.folder, PointPlacement(method="umap", **other))


def test_other_vectors_have_another_layout(asked: Workspace) -> None:
    one, two = (layout_file(asked.folder, asked.results.snapshots(run)[-1].folder) for run in (1, 2))
    assert one.file != two.file


@few_plain(1, "method", ["pca", "umap"])
def test_a_rotated_copy_faces_the_original(tmp_path: Path, method: str) -> None:
    image, text = clusters(60), clusters(60, seed=1)
    rotation = np.linalg.qr(np.random.default_rng(5).standard_normal((12, 12)))[0].astype(np.float32)
    first = snapshot_folder(tmp_path / "a", image, text)
    second = snapshot_folder(tmp_path / "b", image @ rotation, text @ rotation, step=7)
    found = layout_file(tmp_path, second, PointPlacement(method=method, neighbors=10), onto=(first,))
    a, b = layout(tmp_path, first, PointPlacement(method=method, neighbors=10)), np.load(found.file)
    radius = np.sqrt(((a - a.mean(0)) ** 2).sum(1).mean())
    off = np.median(np.linalg.norm(a - b, axis=1)) / radius
    assert off < (1e-3 if method == "pca" else 0.25)
    assert "aligned to a run, step 0" in found.note
    alone = layout(tmp_path, second, PointPlacement(method=method, neighbors=10))
    assert np.median(np.linalg.norm(a - alone, axis=1)) / radius > 2 * off + 0.1


def test_pairs_that_are_not_in_the_other_map_are_started_at_their_nearest(tmp_path: Path) -> None:
    image, text = clusters(80), clusters(80, seed=1)
    first = snapshot_folder(tmp_path / "a", image[:60], text[:60])
    second = snapshot_folder(tmp_path / "b", image[20:], text[20:], first=20)
    umap = PointPlacement(method="umap")
    a, b = layout(tmp_path, first, umap), layout(tmp_path, second, umap, onto=(first,))
    middles = lambda xy, offset: np.stack([xy[:60][(np.arange(60) + offset) % 5 == c].mean(0) for c in range(5)])  # noqa: E731
    nearest_of = np.linalg.norm(middles(b, 20)[:, None] - middles(a, 0)[None], axis=2).argmin(1)
    assert nearest_of.tolist() == [0, 1, 2, 3, 4]


def test_too_few_common_pairs_are_not_turned_and_the_note_says_so(tmp_path: Path) -> None:
    first = snapshot_folder(tmp_path / "a", clusters(20), clusters(20, seed=1))
    second = snapshot_folder(tmp_path / "b", clusters(20), clusters(20, seed=1), first=17)
    found = layout_file(tmp_path, second, onto=(first,))
    assert "not aligned: only 6 points are also in the other map" in found.note
    assert np.array_equal(np.load(found.file), layout(tmp_path, second))


def test_steps_of_a_series_face_the_next_one_and_runs_each_other(tmp_path: Path) -> None:
    steps = []
    for step, share in enumerate((0.5, 0.3, 0.1)):
        image, text = (clusters(50, seed=seed) + share * unit_rows(50, 12, seed=9 + seed) for seed in (0, 1))
        steps.append(snapshot_folder(tmp_path / f"{step}", image, text, step=step))
    flipped = snapshot_folder(tmp_path / "other run", -clusters(50), -clusters(50, seed=1), step=2)
    told: list[float] = []
    made = series(tmp_path, steps, PointPlacement(), progress=lambda share, _: told.append(share))
    other = series(tmp_path, [flipped], PointPlacement(), onto=steps[2])[0]
    assert len(made) == 3
    assert np.array_equal(np.load(made[2].file), layout(tmp_path, steps[2]))
    question = Project(snapshot=str(steps[2]), placement=PointPlacement(), series=tuple(map(str, steps[:2])))
    again = answer_project(tmp_path, question, lambda *_: None)
    assert again.layouts == tuple(str(one.file) for one in made[:2])
    assert again.layout == str(made[2].file)
    last, facing, alone = np.load(made[2].file), np.load(other.file), layout(tmp_path, flipped)
    assert np.median(np.linalg.norm(last - facing, axis=1)) < 0.3 * np.median(np.linalg.norm(last - alone, axis=1))


def test_of_too_many_points_a_sample_is_fitted_and_it_is_said(tmp_path: Path) -> None:
    folder = snapshot_folder(tmp_path / "a", clusters(60), clusters(60, seed=1))
    found = layout_file(tmp_path, folder, PointPlacement(method="umap"), most=70)
    assert found.fitted == 70
    assert "fitted on 70 of 120 points, the others placed at their nearest" in found.note
    xy, cluster = np.load(found.file), np.tile(np.arange(60) % 5, 2)
    distance = np.linalg.norm(xy[:, None] - xy[None], axis=2)
    np.fill_diagonal(distance, np.inf)
    assert np.mean(cluster[distance.argmin(1)] == cluster) > 0.95
    assert layout_file(tmp_path, folder, PointPlacement(method="umap")).fitted == 120
    assert layout_file(tmp_path, folder, PointPlacement(method="pca"), most=70).fitted == 120, "PCA needs no sample"


@few_plain(1, "method", ["pca", "umap"])
def test_new_points_stand_where_their_twins_do(tmp_path: Path, method: str) -> None:
    image, text = clusters(60), clusters(60, seed=1)
    folder = snapshot_folder(tmp_path / "a", image, text)
    found = layout_file(tmp_path, folder, PointPlacement(method=method))
    xy = np.load(found.file)
    assert np.allclose(place_new(folder, found, image[:7]), xy[:7], atol=1e-3)
    assert np.allclose(place_new(folder, found, text[:7], images=False), xy[60:67], atol=1e-3)
    placed = place_new(folder, found, clusters(10, seed=8))
    nearest_image = np.linalg.norm(placed[:, None] - xy[None, :60], axis=2).argmin(1)
    assert (nearest_image % 5).tolist() == [i % 5 for i in range(10)]
    with pytest.raises(ProjectError, match="3 numbers and those of the map 12"):
        place_new(folder, found, np.ones((1, 3)))


def test_components_of_very_many_rows_are_those_in_double_precision(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = fitting.normalize(np.float32(clusters(500)))
    exactly = fitting.fit(rows, PointPlacement(method="pca"), lambda *_: None).points
    monkeypatch.setattr(fitting, "MOST_DOUBLE", 1)
    monkeypatch.setattr(fitting, "pca", None)
    of_many = fitting.fit(rows, PointPlacement(method="pca"), lambda *_: None).points
    np.testing.assert_allclose(of_many, exactly, atol=2e-6)
    assert exactly.std() > 0.1


@few_plain(1, ("module", "method"), [("openTSNE", "tsne"), ("pacmap", "pacmap")])
def test_the_extras_keep_clusters_apart(tmp_path: Path, module: str, method: str) -> None:
    pytest.importorskip(module)
    folder = snapshot_folder(tmp_path / "a", clusters(40), clusters(40, seed=1))
    told: list[float] = []
    found = layout_file(tmp_path, folder, PointPlacement(method=method), progress=lambda share, _: told.append(share))
    again = layout(tmp_path / "elsewhere", folder, PointPlacement(method=method))
    assert np.array_equal(again, np.load(found.file)), "seeded"
    xy, cluster = np.load(found.file), np.tile(np.arange(40) % 5, 2)
    distance = np.linalg.norm(xy[:, None] - xy[None], axis=2)
    np.fill_diagonal(distance, np.inf)
    assert np.mean(cluster[distance.argmin(1)] == cluster) > 0.95
    assert told


def test_an_extra_that_is_not_installed_says_how_to_get_it(asked: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "openTSNE", None)
    with pytest.raises(UserError, match=r"t-SNE needs openTSNE.*--extra projections.*choose UMAP"):
        layout(asked.folder, asked.results.snapshots(1)[0].folder, PointPlacement(method="tsne", seed=5))


def test_coordinates_of_a_file_are_shown_as_they_are(tmp_path: Path) -> None:
    folder = snapshot_folder(tmp_path / "a", clusters(5), clusters(5, seed=1))
    xy = np.random.default_rng(0).normal(size=(10, 2)).astype(np.float32)
    np.save(tmp_path / "xy.npy", xy)
    lines = ["name,X, y"] + [f"p{i},{x!r},{y!r}" for i, (x, y) in enumerate(xy.tolist())]
    (tmp_path / "xy.csv").write_text("\n".join(lines))
    import pyarrow
    from pyarrow import parquet

    parquet.write_table(pyarrow.table({"y": xy[:, 1], "x": xy[:, 0]}), tmp_path / "xy.parquet")
    for suffix in ("npy", "csv", "parquet"):
        found = layout_file(tmp_path, folder, PointPlacement(method="file", coordinates=str(tmp_path / f"xy.{suffix}")))
        assert np.allclose(np.load(found.file), xy, atol=1e-6)
        assert found.note == f"coordinates of xy.{suffix}, shown as they are"


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("short.npy", np.zeros((9, 2)), "9 rows and the snapshot 10 points"),
        ("images.npy", np.zeros((5, 2)), "a row for each: first all images"),
        ("wide.npy", np.zeros((10, 3)), "10 x 3 values"),
        ("nan.npy", np.full((10, 2), np.nan), "10 rows of nan.npy have no number"),
        ("other.csv", "a,b\n1,2", "no columns x and y; its columns are a, b"),
        ("empty.csv", "", "cannot be read"),
        ("words.csv", "x,y\na,b", "cannot be read"),
        ("xy.txt", "", r"\.npy, \.csv, \.tsv, \.parquet"),
    ],
)
def test_coordinates_that_do_not_fit_are_refused(tmp_path: Path, name: str, content: object, words: str) -> None:
    folder = snapshot_folder(tmp_path / "a", clusters(5), clusters(5, seed=1))
    if isinstance(content, str):
        (tmp_path / name).write_text(content)
    else:
        np.save(tmp_path / name, content)
    with pytest.raises(ProjectError, match=words):
        layout_file(tmp_path, folder, PointPlacement(method="file", coordinates=str(tmp_path / name)))


def test_what_cannot_be_projected_is_refused(asked: Workspace, tmp_path: Path) -> None:
    with pytest.raises(ProjectError, match="pca, umap"):
        layout(asked.folder, asked.results.snapshots(1)[0].folder, PointPlacement(method="magic"))
    few = snapshot_folder(tmp_path / "few", unit_rows(1, 4), unit_rows(1, 4))
    with pytest.raises(ProjectError, match="at least 4"):
        layout(tmp_path, few)
    with pytest.raises(ProjectError, match="no snapshot in"):
        answer_project(tmp_path, Project(snapshot=str(tmp_path / "none"), placement=PointPlacement()), lambda *_: None)
