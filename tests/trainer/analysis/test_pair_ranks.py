"""Ranks among a sample against plain loops; agreement and groups of ranks by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainer.analysis.distinct import matching
from trainer.analysis.pair_ranks import AGREEMENTS, agreement, rank_groups, rank_names, ranks_among
from trainer.analysis.retrieval import ranks


def unit(rng: np.random.Generator, n: int, d: int = 5) -> np.ndarray:
    rows = rng.normal(size=(n, d)).astype(np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def naive(image: np.ndarray, text: np.ndarray, sample: np.ndarray, groups: np.ndarray) -> list[int]:
    """Return naive ranks; rows of one group are one text."""
    image, text = image.astype(np.float64), text.astype(np.float64)
    found = []
    for i in range(len(image)):
        right = [j for j in {i, *sample.tolist()} if groups[j] == groups[i]]
        best = max(image[i] @ text[j] for j in right)
        found.append(1 + len({groups[j] for j in sample if groups[j] != groups[i] and image[i] @ text[j] >= best}))
    return found


@given(seed=st.integers(0, 200), n=st.integers(1, 40), kinds=st.integers(1, 40))
def test_equals_plain_loops(seed: int, n: int, kinds: int):
    rng = np.random.default_rng(seed)
    groups = rng.integers(kinds, size=n)
    image, text = unit(rng, n), unit(rng, kinds)[groups]
    sample = np.sort(rng.choice(n, rng.integers(1, n + 1), replace=False))
    assert ranks_among(image, text, sample, matching(groups).texts).tolist() == naive(image, text, sample, groups)


def test_with_all_texts_it_is_the_rank():
    rng = np.random.default_rng(1)
    groups = rng.integers(200, size=300)
    image, text, texts = unit(rng, 300), unit(rng, 200)[groups], matching(groups).texts
    everything = np.arange(300)
    assert ranks_among(image, text, everything, texts).tolist() == ranks(image, text, texts).tolist()
    assert ranks_among(image, text, everything).tolist() == ranks(image, text).tolist()


def test_collapsed_and_broken_embeddings_rank_last():
    rows = np.tile(unit(np.random.default_rng(0), 1, 64), (50, 1))
    assert ranks_among(rows, rows, np.arange(50)).tolist() == [50] * 50
    rows = np.full((6, 3), np.nan, np.float32)
    assert ranks_among(rows, rows, np.arange(6)).tolist() == [6] * 6


def test_progress_can_end_it():
    def stop(_share: float, _note: str) -> None:
        raise InterruptedError

    rows = unit(np.random.default_rng(0), 10)
    with pytest.raises(InterruptedError):
        ranks_among(rows, rows, np.arange(10), progress=stop)


def test_agreement():
    found = agreement(np.array([1, 1, 7, 2]), np.array([1, 9, 1, 2]))
    assert [AGREEMENTS[i] for i in found] == ["both right", "only A right", "only B right", "neither right"]


def test_groups_of_ranks_have_names():
    places = rank_groups(np.array([1, 2, 5, 6, 10, 11, 100, 101, 10**6]))
    assert [rank_names()[i] for i in places] == [
        "1", "2–5", "2–5", "6–10", "6–10", "11–100", "11–100", "over 100", "over 100",
    ]  # fmt: skip
