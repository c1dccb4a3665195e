"""What skip-gram learns from: positives, drawn negatives, and one step of gradient descent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from jaxtyping import Float
from msgspec import Struct

from trainer.analysis.skip_gram_pairs import drawn_negatives, gradient_step, noise_shares, positives, sentences_of
from trainer.charts import ChartError
from trainer.charts.marks import (
    Axis,
    Bars,
    Marker,
    NumberRow,
    NumberTable,
    Panel,
    Series,
    XYPlot,
    categories,
    one_number,
)
from trainer.charts.settings import held
from trainer.charts.spec import Chart, Progress, Request
from trainer.config.fields import option
from trainer.store import Workspace

METHOD: Final = """\
Skip-gram with negative sampling (Mikolov et al., 2013, https://arxiv.org/abs/1310.4546). A word and each word \
within the window of it are a positive pair. For each, k negatives are drawn with shares count^α; α = 3/4 draws rare \
words more often than they occur. The loss of a pair is −ln σ(c₊ · w) − Σ ln σ(−c₋ · w). One step of gradient \
descent moves w and c₊ towards each other, and w and each c₋ apart, by the share that is still wrong (Jurafsky and \
Martin, figure 6.14): here of vectors in two dimensions, drawn from the seed. word2vec runs (objective word2vec) \
draw in the same way from their training captions, where a negative that is the context is left out of the loss \
instead."""

TEXT: Final = (
    "a red circle above a blue square on sand. a blue circle on water at night. a green star left of a red square. "
    "a red moon on grass. a blue star above a moon. a circle on brick."
)
MOST_WORDS: Final = 14
MOST_ROWS: Final = 12


@dataclass(frozen=True)
class SkipGramSettings:
    """The text, the word, and how negatives are drawn."""

    text: str = option(TEXT, "Text", "Sentences, each ended by a full stop.")
    word: str = option("circle", "Word", "The center of the pairs.")
    window: int = option(2, "Window", "Words to each side that are positives.", low=1, high=10)
    negatives: int = option(2, "Negatives k", "Drawn for each positive.", low=1, high=20)
    power: float = option(0.75, "Power α", "0: all words alike; 1: as often as they occur.", low=0.0, high=1.0)
    rate: float = option(1.0, "Learning rate", "Of the step.", low=0.0, high=5.0)
    seed: int = option(0, "Seed", "Of the negatives and the vectors.", low=0, high=9999)


class SkipGramExamples(Struct, frozen=True):
    """The pairs of a word."""

    contexts: list[str]  # Positives, in the order of the text.
    drawn: list[list[str]]  # Negatives of each.
    counted: dict[str, float]  # Share of each word in the text, the most frequent first.
    shares: dict[str, float]  # Share of each word among negatives.


def compute(
    _workspace: Workspace | None, _request: Request, settings: SkipGramSettings, _progress: Progress
) -> SkipGramExamples:
    """Return the pairs of the word.

    Raises:
        ChartError: The text lacks the word, or it has no other word in its window.
    """
    sentences, word = sentences_of(settings.text), settings.word.strip().lower()
    contexts = positives(sentences, word, settings.window)
    if not contexts:
        raise ChartError(f"The text has no word next to {settings.word!r}. Write another text, or choose a word of it.")
    shares = noise_shares(sentences, settings.power)
    drawn = drawn_negatives(shares, contexts, settings.negatives, np.random.default_rng(settings.seed))
    return SkipGramExamples(contexts, drawn, noise_shares(sentences, 1.0), shares)


def draw(data: SkipGramExamples, settings: SkipGramSettings) -> Panel:
    """Draw how often words occur and are drawn, one step, and the pairs."""
    return Panel(
        title="Skip-gram",
        head=(held(settings),),
        rows=((_shares(data), _step(data, settings)), (_pairs(data, settings), _numbers(data, settings))),
    )


def _shares(data: SkipGramExamples) -> XYPlot:
    names = tuple(list(data.shares)[:MOST_WORDS])
    bars = tuple(
        Bars(name, tone, tuple(100 * of[word] for word in names))
        for name, tone, of in (("in the text", "quiet", data.counted), ("drawn", "first", data.shares))
    )
    high = 110 * max(max(data.counted.values()), max(data.shares.values()))
    return XYPlot("shares", "Words and negatives", categories("", names), Axis("%", 0, high), bars=bars, names=names)


def _vectors(data: SkipGramExamples, settings: SkipGramSettings) -> Float[np.ndarray, "n 2"]:
    return np.random.default_rng([settings.seed, 1]).standard_normal((2 + len(data.drawn[0]), 2))


def _step(data: SkipGramExamples, settings: SkipGramSettings) -> XYPlot:
    center, positive, *negatives = _vectors(data, settings)
    after = gradient_step(center, positive, np.array(negatives).reshape(-1, 2), settings.rate)
    names = (settings.word, data.contexts[0], *data.drawn[0])
    moves = [(center, after[0]), (positive, after[1]), *zip(negatives, after[2], strict=True)]
    tones = ("first", "second", *(["quiet"] * len(negatives)))
    curves, dots = [], []
    for name, tone, (start, end) in zip(names, tones, moves, strict=True):
        x, y = np.stack([start, end], axis=1)
        curves.append(Series("", tone, x, y))
        dots += [
            Marker("", tone, float(start[0]), float(start[1]), 6, mark="ring"),
            Marker("", tone, float(end[0]), float(end[1]), 9, label=name),
        ]
    reach = 1.15 * max(1.0, *(float(np.abs(move).max()) for move in moves))
    axis = Axis("", -reach, reach)
    note = "ring: before, disc: after"
    return XYPlot("step", "One step", axis, axis, tuple(curves), dots=tuple(dots), note=note, equal=True)


def _pairs(data: SkipGramExamples, settings: SkipGramSettings) -> NumberTable:
    rows = tuple(
        NumberRow(settings.word, "", (context, ", ".join(negatives)))
        for context, negatives in list(zip(data.contexts, data.drawn, strict=True))[:MOST_ROWS]
    )
    left = len(data.contexts) - len(rows)
    note = f"and {left:,} more" if left > 0 else ""
    return NumberTable("pairs", "Pairs", ("positive", "negatives"), rows, badges=False, note=note)


def _numbers(data: SkipGramExamples, settings: SkipGramSettings) -> NumberTable:
    center, positive, *negatives = _vectors(data, settings)
    wrong = np.array(negatives).reshape(-1, 2)
    first = gradient_step(center, positive, wrong, settings.rate)
    lines = (
        one_number("Loss before the step", first[3], 3),
        one_number("Loss after the step", gradient_step(*first[:3], 0.0)[3], 3),
        one_number("Positives", len(data.contexts), 0),
        one_number("Words of the text", len(data.shares), 0),
    )
    return NumberTable("numbers", "The step", ("value",), lines, badges=False)


CHART: Final = Chart(
    view="losslab",
    label="Skip-gram",
    question="Which pairs does word2vec learn from, and what does one step do?",
    cost="Computed from its settings alone: no data are read.",
    method=METHOD,
    settings=SkipGramSettings,
    needs="none",
    compute=compute,
    draw=draw,
)
