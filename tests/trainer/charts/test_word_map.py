"""The map of words: which words, their nearest ones by a loop, and how well the map keeps them."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from trainer.analysis.word_neighbors import nearest_rows, neighbors_kept, tsne
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


def test_words_of_one_group_stay_together():
    """Four tight groups of ten: every neighbor of a word is of its group, in the map too."""
    rows = np.repeat(rng.normal(size=(4, 16)), 10, axis=0) + 0.05 * rng.normal(size=(40, 16))
    places = tsne(rows, perplexity=8, seed=0)
    near = np.array(naive_nearest(places - places.mean(0), 3))
    distance = ((places[:, None] - places[None]) ** 2).sum(2) + np.diag(np.full(40, np.inf))
    assert (distance.argsort(1)[:, :3] // 10 == np.arange(40)[:, None] // 10).all()
    assert near.shape == (40, 3)
    assert places == pytest.approx(tsne(rows, perplexity=8, seed=0)), "the same for the same seed"


def test_the_most_frequent_words_are_placed(charted):
    settings = WordMapSettings(words=12, method="PCA")
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
    data = found(charted, WordMapSettings(words=12, method="PCA"), (Target(2), Target(1)), turn)
    first, second = (one.places for one in data.found)
    assert second == pytest.approx(first, abs=1e-6)
    assert data.found[0].kept == pytest.approx(data.found[1].kept)
