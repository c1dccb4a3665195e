"""Clusters are found, and their words match the formula written out."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainer.analysis import cluster_words as module
from trainer.analysis.cluster_words import cluster_words, distinctive_words, nearest_center, words_of

THINGS = ("red ring", "blue heart", "green star")


def clouds(n: int = 300, noise: float = 0.1) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    kind = rng.integers(3, size=n)
    rows = np.eye(3, 8)[kind] + noise * rng.normal(size=(n, 8))
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32), kind


def test_groups_are_the_clouds_and_are_named_by_them():
    rows, kind = clouds()
    captions = [f"a photo of a {THINGS[i]} number {j}" for j, i in enumerate(kind)]
    found = cluster_words(rows, captions, k=3)
    for group in range(3):
        inside = kind[found.group == group]
        assert len(set(inside)) == 1
        assert set(found.words[group]) == set(THINGS[inside[0]].split())
        assert found.counts[group] == len(inside)
    assert list(found.counts) == sorted(found.counts, reverse=True)
    assert (found.fitted, found.read) == (300, 300)


def test_a_group_is_named_only_by_what_many_of_its_captions_hold():
    rows, kind = clouds(noise=0.0)
    captions = [f"thing{chr(97 + j % 26)} {'ring' if i == 0 and j % 2 else ''}" for j, i in enumerate(kind)]
    found = cluster_words(rows, captions, k=3)
    assert sorted(found.words) == [(), (), ("ring",)]
    found = cluster_words(rows, [f"{caption} on a table" for caption in captions], k=3)
    assert sorted(found.words) == [(), (), ("ring",)], "all captions hold “table”"
    assert set(cluster_words(rows[:2], ["red ring"] * 2, k=2).words) == {()}, "two captions say nothing of a cluster"


def test_samples_are_said_and_every_row_is_placed(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module, "MOST_FITTED", 60)
    monkeypatch.setattr(module, "MOST_READ", 50)
    rows, kind = clouds()
    found = cluster_words(rows, [THINGS[i] for i in kind], k=3)
    assert (found.fitted, found.read, len(found.group)) == (60, 50, 300)
    assert all(len(set(kind[found.group == group])) == 1 for group in range(3))


@pytest.mark.slow
@given(
    captions=st.lists(st.lists(st.sampled_from(["ring", "star", "blue", "the", "a", "7"]), max_size=5), min_size=1),
    seed=st.integers(0, 50),
)
def test_weights_are_the_formula(captions: list[list[str]], seed: int):
    group = np.random.default_rng(seed).integers(3, size=len(captions))
    texts = [" ".join(words) for words in captions]
    kept = [[w for w in words if w in ("ring", "star", "blue")] for words in captions]
    said = [[w for words, g in zip(kept, group, strict=True) if g == c for w in words] for c in range(3)]
    everything = [w for words in said for w in words]
    for c, words in enumerate(distinctive_words(texts, group, 3, most=3)):
        weight = {
            w: said[c].count(w) / len(said[c]) * math.log(1 + len(everything) / 3 / everything.count(w))
            for w in set(said[c])
            if said[c].count(w) / len(said[c]) >= everything.count(w) / len(everything) - 1e-12
        }
        assert set(words) == set(weight)
        assert [weight[w] for w in words] == pytest.approx(sorted(weight.values(), reverse=True))


def test_centers_by_plain_loops_and_odd_rows():
    rng = np.random.default_rng(3)
    rows, centers = rng.normal(size=(50, 4)).astype(np.float32), rng.normal(size=(6, 4))
    naive = [min(range(6), key=lambda c: ((rows[i] - centers[c]) ** 2).sum()) for i in range(50)]
    assert nearest_center(rows, centers).tolist() == naive
    assert cluster_words(np.ones((9, 2), np.float32), [""] * 9, k=5).counts == (9,)
    assert cluster_words(np.full((4, 2), np.nan, np.float32), [""] * 4, k=3).counts == (4,)


def test_words():
    assert words_of("A Photo of the RED ring, no. 7 <b>x</b>") == ["red", "ring", "no"]


def test_groups_of_the_same_words_are_told_apart_by_the_next():
    named = module.distinct_words([("sky", "night", "ring"), ("night", "sky", "star"), ("sand", "pink")], 2)
    assert named == (("sky", "night"), ("night", "star"), ("sand", "pink"))
    assert module.distinct_words([("sky",), ("sky",), ()], 2) == (("sky",), ("sky",), ())
