"""The benchmark of word2vec's softmaxes measures all three and counts their products."""

import pytest
import torch  # noqa: F401  (its import starts a process, which a quick test may not)

from tests.benchmarks import softmaxes


def test_counts_the_products_of_a_pair_and_measures_each_kind():
    """Four words, 1 / rank: the tree has lengths 1, 2, 3, 3."""
    rows = softmaxes.measured(words=4, pairs=8, width=3, seeds=2)
    assert [row["kind"] for row in rows] == list(softmaxes.KINDS)
    mean = (1 * 1 + 2 / 2 + 3 / 3 + 3 / 4) / (1 + 1 / 2 + 1 / 3 + 1 / 4)
    assert [row["products"] for row in rows] == pytest.approx([6, 4, mean])
    assert all(len(row["milliseconds"]) == 2 for row in rows)
    assert "| 4 | hierarchical | 1.8 |" in softmaxes.table(rows)
