"""The map of words: which words, their nearest ones by a loop, and how well the map keeps them."""

from collections import Counter

import numpy as np
import pytest

from trainer.analysis.word_neighbors import nearest_rows, neighbors_kept
from trainer.charts import ChartError
from trainer.charts.point_placement import PointPlacement
from trainer.charts.snapshots import choose_snapshot
from trainer.charts.spec import Request, Target
from trainer.charts.word_map import CHART, WordMapSettings
from trainer.store import read_snapshot

rng = np.random.default_rng(4)


def naive_nearest(rows: np.ndarray, count: int) -> list[list[int]]:
    found = []
    for i, row in enumerate(rows):
        cosines = {}
        for j, other in enumerate(rows):
            lengths = sum(x * x for x in row) ** 0.5 * sum(x * x for x in other) ** 0.5
            cosines[j] = sum(x * y for x, y in zip(row, other, strict=True)) / lengths
        del cosines[i]
        found.append(sorted(cosines, key=lambda j: -cosines[j])[:count])
    return found


def embed(word: str) -> tuple[float, ...]:
    return tuple(np.random.default_rng(sum(map(ord, word))).normal(size=8).tolist())


def found(
    workspace, settings: WordMapSettings, targets: tuple[Target, ...] = (Target(2),), turn: np.ndarray | None = None
):
    words = CHART.sentences(workspace, Request(targets), settings)
    rows = np.array([embed(word) for word in words])
    vectors = [
        tuple(map(tuple, (rows if turn is None or not place else rows @ turn).tolist()))
        for place in range(len(targets))
    ]
    return CHART.result(workspace, Request(targets, vectors=tuple(vectors)), settings, lambda *_: None)


def test_nearest_rows_and_what_a_map_keeps_equal_loops():
    rows, places = rng.normal(size=(9, 5)), rng.normal(size=(9, 2))
    near, cosines = nearest_rows(rows, 3)
    assert near.tolist() == naive_nearest(rows, 3)
    first = rows[0] @ rows[near[0, 0]] / np.linalg.norm(rows[0]) / np.linalg.norm(rows[near[0, 0]])
    assert cosines[0, 0] == pytest.approx(first)
    shared = 0
    for i, place in enumerate(places):
        distance = [sum((place - other) ** 2) if i != j else np.inf for j, other in enumerate(places)]
        shared += len({*near[i].tolist()} & {*sorted(range(9), key=lambda j: distance[j])[:3]})
    assert neighbors_kept(near, places) == pytest.approx(shared / 27)


def test_words_stand_where_the_process_of_projections_places_them(charted):
    """Eleven words on a line: each method but PCA takes the places of the request, and a missing one is told."""
    settings = WordMapSettings(words=11, method="umap", neighbors=5, seed=3)
    assert CHART.placement(settings) == PointPlacement(method="umap", neighbors=5, seed=3)
    assert CHART.placement(WordMapSettings()) is None
    words = CHART.sentences(charted, Request((Target(2),)), settings)
    vectors = (tuple(embed(word) for word in words),)
    line = tuple((float(at), 0.0) for at in range(11))
    data = CHART.result(charted, Request((Target(2),), vectors=vectors, places=(line,)), settings, lambda *_: None)
    assert data.found[0].places == pytest.approx(np.array(line))
    drawn = CHART.panel(data, settings)
    assert "UMAP, cosine, 5 neighbors" in drawn.mark("words-0").note
    assert "Distances between clusters are not meaningful." in drawn.notes
    for places, told in (((), "not placed yet"), (("Extra is missing.",), "Extra is missing")):
        with pytest.raises(ChartError, match=told):
            CHART.result(charted, Request((Target(2),), vectors=vectors, places=places), settings, lambda *_: None)


def test_the_most_frequent_words_are_placed(charted):
    settings = WordMapSettings(words=12, method="pca")
    data = found(charted, settings)
    one = data.found[0]
    captions = read_snapshot(choose_snapshot(charted, charted.runs.get(2)).folder).items.caption
    counts = Counter(word for caption in captions for word in {*caption.lower().split()})
    assert all(counts[word] == count for word, count in zip(one.words, one.counts, strict=True))
    assert list(one.counts) == sorted(one.counts, reverse=True)
    assert one.near.tolist() == naive_nearest(np.array([embed(word) for word in one.words]), one.near.shape[1])
    plot = CHART.panel(data, settings).mark("words-0")
    assert [dot.label for dot in plot.dots] == list(one.words)
    header, rows = CHART.records(data, settings)
    assert len(rows) == len(one.words)
    assert rows[0][header.index("nearest")].split() == [one.words[at] for at in one.near[0]]


def test_a_second_map_is_turned_onto_the_first(charted):
    """The same vectors, rotated: principal components are turned or mirrored, the drawn maps are equal."""
    turn = np.linalg.qr(rng.normal(size=(8, 8)))[0]
    data = found(charted, WordMapSettings(words=12, method="pca"), (Target(2), Target(1)), turn)
    first, second = (one.places for one in data.found)
    assert second == pytest.approx(first, abs=1e-6)
    assert data.found[0].kept == pytest.approx(data.found[1].kept)
