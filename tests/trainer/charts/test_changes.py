"""Changes, mispairs, representation similarity, hubs and search, from snapshots, against plain numpy."""

import csv
import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.builders import writable_copy
from trainer.__main__ import main
from trainer.analysis import sampling
from trainer.analysis.embedding_similarity import (
    jaccard,
    procrustes_residuals,
)
from trainer.analysis.tiled_neighbors import neighbors_of_each
from trainer.charts import ChartError
from trainer.charts import pair_changes as charts_changes
from trainer.charts.class_task import ClassTexts
from trainer.charts.hubness import Hubness, HubSettings, hubness
from trainer.charts.mispairs import mispairs
from trainer.charts.opened_snapshot import open_target
from trainer.charts.pair_changes import MEASURES, changes, map_values
from trainer.charts.representation_similarity import (
    RepresentationSettings,
    RepresentationSimilarity,
    representation_similarity,
)
from trainer.charts.search import search
from trainer.charts.snapshots import choose_snapshot
from trainer.charts.spec import Request, Target
from trainer.cli import _progress
from trainer.store import Items, Workspace, read_snapshot, write_snapshot

N = 240


def snapshot(workspace: Workspace, run: int, step: int | None = None):
    return read_snapshot(choose_snapshot(workspace, workspace.runs.get(run), step=step).folder)


@pytest.mark.slow
def test_every_measure_is_the_plain_one(charted: Workspace):
    told: list[float] = []
    found = changes(charted, (1, None), (2, None), k=5, progress=lambda share, _: told.append(share))
    assert told == sorted(told)
    assert set(found.values) == set(MEASURES)
    a, b = snapshot(charted, 1), snapshot(charted, 2)
    for side, s in (("a", a), ("b", b)):
        cosine = s.image.astype(np.float64) @ s.text.astype(np.float64).T
        captions = list(s.items.caption)
        first = [captions.index(caption) for caption in dict.fromkeys(captions)]
        equal = np.array([[x == y for y in captions] for x in captions])
        # Captions count once; the pictures all differ.
        for name, table, same in (("image_rank", cosine[:, first], equal[:, first]), ("text_rank", cosine.T, equal)):
            best = np.where(same, table, -np.inf).max(1)
            rank = 1 + ((table >= best[:, None] - 1e-12) & ~same).sum(1)
            assert found.values[f"{name}_{side}"].tolist() == rank.tolist()
        cosine, same = cosine[:, first], equal[:, first]
        wrong = np.where(same, np.nan, cosine)
        margin = (np.where(same, cosine, -np.inf).max(1) - np.nanmax(wrong, 1)) / np.nanstd(wrong, 1)
        np.testing.assert_allclose(found.values[f"margin_{side}"], margin, rtol=1e-4, atol=1e-5)
    near = [neighbors_of_each(s.image, 5)[0] for s in (a, b)]
    np.testing.assert_array_equal(found.values["overlap"], jaccard(*near))
    np.testing.assert_allclose(found.values["residual"], procrustes_residuals(b.image, a.image))
    labels = np.array(a.items.label)
    names = sorted(set(labels))
    verdicts = []
    for s in (a, b):
        means = np.stack([s.text[labels == name].mean(0) for name in names])
        verdicts.append((s.image @ (means / np.linalg.norm(means, axis=1, keepdims=True)).T).argmax(1))
    assert found.values["verdict"].tolist() == (verdicts[0] == verdicts[1]).tolist()
    assert f"{N} pairs of Scenes, unseen renderings" in found.note


def test_of_very_many_pairs_some_are_compared_with_all(charted: Workspace, monkeypatch: pytest.MonkeyPatch):
    whole = changes(charted, (1, None), (2, None), k=5)
    monkeypatch.setattr(charts_changes, "LEAST_DRAWN", 1)
    monkeypatch.setattr(charts_changes, "MOST_CELLS", 50 * N)
    found = changes(charted, (1, None), (2, None), k=5)
    assert (found.n, found.pairs, len(set(found.rows.tolist()))) == (50, N, 50)
    for key, values in found.values.items():
        np.testing.assert_allclose(values, whole.values[key][found.rows], rtol=1e-5, atol=1e-6, err_msg=key)
    np.testing.assert_array_equal(found.neighbors_b, whole.neighbors_b[found.rows])
    np.testing.assert_array_equal(found.verdict_a, whole.verdict_a[found.rows])
    assert f"50 of {N} pairs of Scenes, unseen renderings, drawn at random (seed 0), each compared" in found.note
    assert np.isnan(map_values(found)["overlap"]).sum() == N - 50


def test_verdicts_may_be_those_of_prompts(charted: Workspace):
    a, b = snapshot(charted, 1), snapshot(charted, 2)
    names = tuple(sorted(set(a.items.label)))[:-2]
    rng = np.random.default_rng(0)
    texts = [ClassTexts(run, 240, 10.0, names, ("a {}", "one {}"), rng.standard_normal((2, 6, 32))) for run in (1, 2)]
    found = changes(charted, (1, None), (2, None), texts=tuple(texts))
    known = np.isin(a.items.label, names)
    for s, one, verdict in ((a, texts[0], found.verdict_a), (b, texts[1], found.verdict_b)):
        unit = one.vectors / np.linalg.norm(one.vectors, axis=2, keepdims=True)
        expected = np.where(known, (s.image @ unit.sum(0).T / np.linalg.norm(unit.sum(0), axis=1)).argmax(1), -1)
        assert verdict.tolist() == expected.tolist()
    assert np.isnan(found.values["verdict"]).tolist() == (~known).tolist()
    assert found.verdict_by == "2 prompt templates of 6 classes"
    assert changes(charted, (1, None), (2, None)).verdict_by == "class-mean captions (8 classes)"


def test_a_run_against_itself_has_not_changed(charted: Workspace):
    found = changes(charted, (1, 80), (1, 80))
    assert (found.values["overlap"] == 1).all()
    assert (found.values["image_rank_change"] == 0).all()
    assert found.values["residual"].max() < 1e-4
    other = changes(charted, (1, 0), (1, None))
    assert (other.a.step, other.b.step) == (0, 240)
    assert other.values["overlap"].mean() < 1


def test_only_items_of_both_are_compared_by_their_ids(charted: Workspace, tmp_path: Path):
    workspace = writable_copy(charted.folder, tmp_path / "w")
    whole = snapshot(workspace, 2)
    rows = np.random.default_rng(0).permutation(N)[:100]
    items = whole.items
    kept = Items(
        items.id[rows],
        *([column[row] for row in rows] for column in (items.path, items.caption, items.label, items.split)),
    )
    about = {"step": 240, "dataset": "scenes", "split": "renderings", "model": "b"}
    write_snapshot(tmp_path / "part", image=whole.image[rows], text=whole.text[rows], items=kept, **about)
    chosen = choose_snapshot(workspace, workspace.runs.get(2))
    shutil.rmtree(chosen.folder)
    (tmp_path / "part").rename(chosen.folder)
    found = changes(workspace, (2, 160), (2, None))
    assert found.rows.tolist() == sorted(rows.tolist())
    assert "140 of A are not in B" in found.note
    values = map_values(found)["overlap"]
    assert len(values) == N
    assert np.isnan(values).sum() == 140
    np.testing.assert_array_equal(values[found.rows], found.values["overlap"])


def test_mispairs_are_the_worst_of_both_or_of_one(charted: Workspace):
    found = changes(charted, (1, 80), (2, 80))
    split = mispairs(found, share=0.1)
    sets = [set(places.tolist()) for places in (split.both, split.only_a, split.only_b)]
    assert sum(map(len, sets)) == len(set.union(*sets))
    bad = np.sqrt(found.values["image_rank_a"] * found.values["text_rank_a"])
    worst = {i for i in range(N) if sum(b < bad[i] for b in bad) / N >= 0.9 and bad[i] > 1}
    assert sets[0] | sets[1] == worst
    assert split.expected == pytest.approx(len(worst) * (len(sets[0]) + len(sets[2])) / N)
    order = np.minimum(*[[(b < x).mean() for x in b] for b in (split.badness_a, split.badness_b)])[split.both]
    assert (np.diff(order) <= 1e-12).all()
    with pytest.raises(ChartError, match="between 0 and 1"):
        mispairs(found, share=1.0)


def similar(workspace: Workspace, *targets: Target, **settings: int) -> RepresentationSimilarity:
    chosen = RepresentationSettings(**settings)
    return representation_similarity(workspace, Request(targets), chosen, lambda share, note: None)


def test_of_many_vectors_no_more_are_read_than_are_compared(charted: Workspace, monkeypatch: pytest.MonkeyPatch):
    n, read = snapshot(charted, 1).n, []

    class Counted(np.ndarray):
        def __getitem__(self, rows):
            read.append(len(np.atleast_1d(rows)))
            return np.asarray(self)[rows]

    def counted(folder: Path):
        whole = read_snapshot(folder)
        return replace(whole, image=whole.image.view(Counted), text=whole.text.view(Counted))

    monkeypatch.setattr("trainer.charts.representation_similarity.read_snapshot", counted)
    monkeypatch.setattr("trainer.charts.representation_similarity.MOST_ROWS", n // 4)
    assert set(similar(charted, Target(1), Target(2), steps=1, k=3).n.values()) == {n // 4}
    assert read
    assert max(read) <= n // 4


def hubs_of(workspace: Workspace, run: int, k: int = 10, *, exact: bool = False) -> Hubness:
    return hubness(workspace, Target(run), Request(), HubSettings(k=k, exact=exact), lambda share, note: None)


def test_of_many_texts_some_ask_for_hubs_unless_all_are_wanted(charted: Workspace, monkeypatch: pytest.MonkeyPatch):
    every = hubs_of(charted, 1)
    monkeypatch.setattr(sampling, "MOST_COSINES", 40 * N)
    monkeypatch.setattr(sampling, "FEWEST_ASKING", 10)
    some = hubs_of(charted, 1)
    assert (some.n, some.texts, some.images) == (40, every.texts, N)
    assert some.cosine.occurrences.sum() == 10 * 40
    assert (some.cosine.occurrences <= every.cosine.occurrences).all()
    assert np.array_equal(hubs_of(charted, 1, exact=True).cosine.occurrences, every.cosine.occurrences)


@pytest.mark.parametrize("target", ["image", "text"])
def test_search_is_sorting(charted: Workspace, target: str):
    s = snapshot(charted, 2)
    query, opened = s.text[17], open_target(charted, Target(2), Request())
    found = search(opened, query, target=target, k=12)
    stored = getattr(s, target)
    shows = list(s.items.caption if target == "text" else s.items.path)

    def sorted_once(scores: np.ndarray) -> list[int]:
        """Return the rows in order of their scores, of equal captions or pictures the best alone."""
        best: dict[str, int] = {}
        for row in np.argsort(-scores, kind="stable").tolist():
            best.setdefault(shows[row], row)
        return list(best.values())

    assert found.rows.tolist() == sorted_once(stored @ query)[:12]
    assert found.n == len(set(shows))
    everything = search(opened, query, target=target, k=10 * N)
    assert everything.rows.tolist() == sorted_once(stored @ query)
    np.testing.assert_allclose(found.cosines, (stored @ query)[found.rows], rtol=1e-6)
    hubs = search(opened, query, target=target, k=12, csls=True)
    captions = list(s.items.caption)
    distinct = [captions.index(caption) for caption in dict.fromkeys(captions)]
    other = s.text[distinct] if target == "image" else s.image
    offsets = np.sort(stored @ other.T, axis=1)[:, -10:].mean(1)
    expected = (stored @ query) - offsets / 2
    np.testing.assert_allclose(hubs.scores, expected[sorted_once(expected)[:12]], atol=1e-5)
    with pytest.raises(ChartError, match="different models"):
        search(opened, query[:-1])


@pytest.mark.slow
def test_commands_write_what_the_charts_say(charted: Workspace, tmp_path: Path, capsys):
    space = ["--workspace", str(charted.folder)]
    out = tmp_path / "c.csv"
    assert main(["export", "changes", "--runs", "1", "2", "--k", "5", "--records", "--out", str(out), *space]) == 0
    rows = list(csv.DictReader(out.open()))
    found = changes(charted, (1, None), (2, None), k=5)
    assert [int(row["image_rank_b"]) for row in rows] == found.values["image_rank_b"].tolist()
    assert sum(row["mispair"] == "both" for row in rows) == len(mispairs(found).both)
    for kind, extra in (("changes", []), ("representation-similarity", ["--steps", "2"]), ("hubness", [])):
        file = tmp_path / f"{kind}.svg"
        assert main(["export", kind, "--runs", "1", "2", *extra, "--out", str(file), *space]) == 0
        assert "CLIP" in file.read_text()
    assert (
        main(["export", "changes", "--runs", "1", "2", "2", "--step", "80", "80", "240", "--out", str(out), *space])
        == 0
    )
    assert {row["part"] for row in csv.DictReader(out.open())} >= {"pairs-1", "overlap-1", "pairs-2", "overlap-2"}
    assert main(["export", "changes", "--runs", "1", "--out", str(out), *space]) == 2
    assert "Choose two runs, or one run at two steps" in capsys.readouterr().err
    capsys.readouterr()


def test_a_slow_command_tells_its_progress_in_lines_beside_the_json(
    charted: Workspace, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(_progress, "EVERY_S", 0.0)
    out = str(tmp_path / "l.csv")
    words = ["export", "representation-similarity", "--runs", "1", "--json", "--out", out]
    assert main([*words, "--workspace", str(charted.folder)]) == 0
    told = capsys.readouterr()
    assert json.loads(told.out)["files"] == [out]
    assert "1 of 8 spaces" in told.err
    assert "8 of 8 spaces" in told.err
