"""What a pair of words costs in word2vec: full softmax, hierarchical softmax, negative sampling."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np

from trainer.analysis.huffman import huffman_paths
from trainer.charts.marks import Axis, NumberRow, NumberTable, Panel, Series, XYPlot
from trainer.charts.settings import held
from trainer.charts.spec import Chart, no_data
from trainer.config.fields import option

METHOD: Final = """\
Products with an output vector for one center and its context: the full softmax takes one for each of V words (Mikolov \
et al., 2013, https://arxiv.org/abs/1310.4546, equation 2), the hierarchical one for each decision on the path of the \
context in a Huffman tree (equation 3; mean over contexts drawn by frequency), negative sampling K + 1 (equation 4). \
Frequencies follow Zipf's law, 1 / rank.

Caveats: products are not time; a matrix of V rows is multiplied faster than as many single rows. Negative sampling \
does not estimate the softmax: its vectors are others. Train each with objective word2vec and the field Softmax."""

SIZES: Final = tuple(2**power for power in range(3, 17))


@dataclass(frozen=True)
class SoftmaxCostSettings:
    """The vocabulary and the negatives."""

    words: int = option(1024, "Words", "Size of the vocabulary in the table.", low=2, high=65_536, log=True)
    negatives: int = option(5, "Negatives", "Drawn for each pair.", low=1, high=100, log=True)


@lru_cache(maxsize=64)
def path_length(vocabulary: int) -> float:
    """Return the mean length of the Huffman paths of contexts drawn by Zipf's law."""
    shares = 1 / np.arange(1, vocabulary + 1)
    shares /= shares.sum()
    return float((huffman_paths(shares).lengths * shares).sum())


def draw(_data: None, settings: SoftmaxCostSettings) -> Panel:
    """Draw the products of a pair over the size of the vocabulary."""
    x = np.array(SIZES, np.float64)
    curves = (
        Series("full softmax", "first", x, x),
        Series("hierarchical softmax", "second", x, np.array([path_length(size) for size in SIZES])),
        Series("negative sampling", "third", x, np.full(len(x), settings.negatives + 1.0), dashed=True),
    )
    axes = (
        Axis("words", SIZES[0], SIZES[-1], log=True, integer=True),
        Axis("products of a pair", 1, SIZES[-1], log=True),
    )
    plot = XYPlot("cost", "Products of a center and a context", *axes, curves, cursor=float(settings.words))
    values = (float(settings.words), path_length(settings.words), settings.negatives + 1.0)
    line = NumberRow("Products", "Of one center and context.", values, 1)
    table = NumberTable(
        "products", f"{settings.words:,} words", ("Full", "Hierarchical", "Negative sampling"), (line,), badges=False
    )
    return Panel(title="Cost of word2vec's softmax", head=(held(settings),), rows=((plot,), (table,)))


CHART: Final = Chart(
    view="losslab",
    label="Softmax cost",
    question="What does a word pair cost by full or hierarchical softmax, or by sampling?",
    cost="Computed from its settings alone: no data are read.",
    method=METHOD,
    settings=SoftmaxCostSettings,
    needs="none",
    compute=no_data,
    draw=draw,
)
