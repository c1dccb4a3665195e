"""Block means are means of cosines, and orders place similar rows together."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainer.analysis import similarity_matrix
from trainer.analysis.similarity_matrix import block_means, group_means, leaf_order, seriate, spans


@pytest.mark.usefixtures("small_blocks")
def test_block_means_equal_the_means_of_the_cells(pairs):
    image, text = pairs
    order = np.random.default_rng(0).permutation(60)
    rows, columns = spans(order, 7, 55, 5), spans(order, 0, 60, 9)
    dense = image @ text.T
    naive = [[np.mean([dense[i, j] for i in r for j in c]) for c in columns] for r in rows]
    assert np.allclose(block_means(image, text, rows, columns), naive, atol=1e-6)
    assert np.allclose(block_means(image, text, order[:4], order[5:9]), dense[np.ix_(order[:4], order[5:9])], atol=1e-6)
    assert group_means(image, []).shape == (0, 8)


@given(st.integers(1, 200), st.integers(1, 50), st.integers(0, 200), st.integers(0, 200))
def test_spans_hold_every_item_once(n: int, most: int, first: int, last: int):
    order = np.random.default_rng(n).permutation(n)
    cut = spans(order, min(first, n), min(last, n), most)
    expected = order[min(first, n) : min(last, n)]
    assert np.array_equal(np.concatenate(cut) if cut else expected[:0], expected)
    assert len(cut) <= most
    assert not cut or max(map(len, cut)) - min(map(len, cut)) <= 1


def test_a_circle_is_walked_around():
    """The order of shuffled points on a half circle must be that of their angles, in either direction."""
    rng = np.random.default_rng(0)
    angles = rng.permutation(np.linspace(0, 2.5, 40))
    order = leaf_order(np.stack([np.cos(angles), np.sin(angles)], axis=1))
    walked = np.diff(angles[order])
    assert (walked > 0).all() or (walked < 0).all()


@pytest.mark.parametrize("labeled", [True, False])
@pytest.mark.parametrize("leaves", [512, 8])
def test_classes_stand_together(monkeypatch, unit, labeled: bool, leaves: int):
    monkeypatch.setattr(similarity_matrix, "LEAVES", leaves)
    kinds = np.random.default_rng(0).permutation(np.repeat(np.arange(5), 30))
    rows = np.eye(8)[kinds] + 0.25 * unit(150, 8)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    order = seriate(rows, [f"kind {k}" for k in kinds] if labeled else None)
    assert sorted(order) == list(range(150))
    assert (np.diff(kinds[order]) != 0).sum() <= (4 if labeled or leaves == 512 else 20)
