import itertools
import math

import numpy as np
import pytest
import torch

from trainer.analysis.huffman import huffman_paths
from trainer.charts import registry
from trainer.charts.softmax_cost import SoftmaxCostSettings, path_length
from trainer.charts.spec import Request
from trainer.losses import skip_gram_tree


def test_equals_double_loop():
    generator = torch.Generator().manual_seed(0)
    scores = torch.randn(6, 4, dtype=torch.float64, generator=generator)
    signs = torch.where(torch.rand(6, 4, generator=generator) < 0.5, 1.0, -1.0).double()
    used = torch.rand(6, 4, generator=generator) < 0.7
    total = 0.0
    for i, j in itertools.product(range(6), range(4)):
        if used[i, j]:
            total += math.log1p(math.exp(-float(signs[i, j] * scores[i, j])))
    assert skip_gram_tree(scores, signs, used).item() == pytest.approx(total / 6, abs=1e-12)


def test_gradient():
    scores = torch.randn(3, 4, dtype=torch.float64, requires_grad=True)
    signs, used = torch.tensor([[1.0, -1, 1, 1]] * 3).double(), torch.tensor([[True, True, True, False]] * 3)
    assert torch.autograd.gradcheck(lambda rows: skip_gram_tree(rows, signs, used), [scores])


def test_probabilities_of_all_words_sum_to_one():
    """The tree is a distribution over the words, whatever the vectors."""
    paths = huffman_paths(np.array([9.0, 1, 4, 4, 2, 7, 1]))
    nodes = torch.randn(6, 3, dtype=torch.float64)
    center = torch.randn(3, dtype=torch.float64)
    scores = nodes[torch.from_numpy(paths.nodes)] @ center
    each = [
        skip_gram_tree(scores[[w]], torch.from_numpy(paths.signs)[[w]], torch.from_numpy(paths.used)[[w]])
        for w in range(7)
    ]
    assert sum(math.exp(-float(loss)) for loss in each) == pytest.approx(1, abs=1e-12)


def test_the_code_is_the_shortest():
    """Against every binary tree of five words, by all ways to merge two at a time."""
    counts = (10.0, 6.0, 2.0, 2.0, 1.0)

    def least(weights: tuple[float, ...]) -> float:
        if len(weights) == 1:
            return 0.0
        found = math.inf
        for a, b in itertools.combinations(range(len(weights)), 2):
            rest = tuple(w for at, w in enumerate(weights) if at not in (a, b))
            found = min(found, weights[a] + weights[b] + least((*rest, weights[a] + weights[b])))
        return found

    lengths = huffman_paths(np.array(counts)).lengths
    assert sum(c * n for c, n in zip(counts, lengths, strict=True)) == least(counts)
    assert sum(2.0 ** -int(n) for n in lengths) == 1


@pytest.mark.nightly
def test_the_chart_says_what_the_code_costs():
    chart, settings = registry.load("softmax-cost"), SoftmaxCostSettings(words=16, negatives=5)
    panel = chart.panel(chart.result(None, Request(), settings, lambda share, note: None), settings)
    shares = [1 / rank / sum(1 / r for r in range(1, 17)) for rank in range(1, 17)]
    lengths = huffman_paths(np.array(shares)).lengths
    expected = sum(s * n for s, n in zip(shares, lengths, strict=True))
    assert panel.mark("products").lines[0].values == pytest.approx((16, expected, 6))
    entropy = -sum(s * math.log2(s) for s in shares)
    assert entropy <= path_length(16) < entropy + 1
