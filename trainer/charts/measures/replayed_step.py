"""What the chart of replays draws of word2vec: scores of words on both sides of an update, and its pairs."""

from __future__ import annotations

from typing import Final

import numpy as np
from jaxtyping import Float

from trainer.charts.marks import Bars, HeatMap, Mark, NumberRow, NumberTable, XYPlot, axis_over, categories, run_tone
from trainer.store.replay_records import WordReplay

MOST_BARS: Final = 14
MOST_ROWS: Final = 16
_UNITS: Final = {"negatives": "product", "full": "product", "hierarchical": "log-probability"}


def word_rows(record: WordReplay, name: str, index: int) -> list[tuple[Mark, ...]]:
    """Return the marks of one replayed update of word2vec, row by row."""
    return [_maps(record, name, index), (_gradients(record, name, index),), (_pairs(record, name, index),)]


def _maps(record: WordReplay, name: str, index: int) -> tuple[HeatMap, ...]:
    names = record.words[: len(record.scores[0])]
    ticks = tuple((float(at), word) for at, word in enumerate(names)) if len(names) <= MOST_BARS else ()
    unit = _UNITS.get(record.softmax, "score")
    return change_maps(index, record.scores, ("context", "center"), unit, note=name, names=names, ticks=ticks)


def change_maps(
    index: int,
    scores: Float[np.ndarray, "2 s s"],
    axes: tuple[str, str],
    unit: str,
    *,
    note: str,
    names: tuple[str, ...],
    ticks: tuple[tuple[float, str], ...] = (),
) -> tuple[HeatMap, ...]:
    """Return the scores before and after an update on one scale, and their difference; `axes` label x and y."""
    before, after = scores
    low, high = float(scores.min()), float(scores.max())
    reach = float(np.abs(after - before).max()) or 1.0
    high = high if high > low else low + 1
    return tuple(
        HeatMap(
            f"{key}-{index}", title, values, *axes, ticks, ticks, *ends, of,
            note=note, rows=names, columns=names, centered=key == "change",
        )
        for key, title, values, ends, of in (
            ("before", "Before the update", before, (low, high), unit),
            ("after", "After", after, (low, high), unit),
            ("change", "Change", after - before, (-reach, reach), f"change of the {unit}"),
        )
    )  # fmt: skip


def _gradients(record: WordReplay, name: str, index: int) -> XYPlot:
    inputs, outputs = record.gradients
    longest = np.argsort(-np.fmax(inputs, outputs), kind="stable")[:MOST_BARS]
    names = tuple(record.words[at] for at in longest.tolist())
    bars = [Bars("input vector", run_tone(index), tuple(inputs[longest].tolist()))]
    if np.isfinite(outputs).all():
        bars.append(Bars("output vector", "quiet", tuple(outputs[longest].tolist())))
    y = axis_over("gradient on a word", [bar.heights for bar in bars], include=(0,))
    title = "Gradient on each word"
    return XYPlot(f"gradients-{index}", title, categories("", names), y, bars=tuple(bars), names=names, note=name)


def _pairs(record: WordReplay, name: str, index: int) -> NumberTable:
    both, inverse, times = np.unique(record.pairs[:, :2], axis=0, return_inverse=True, return_counts=True)
    inverse = inverse.reshape(-1)
    before, after = (np.bincount(inverse, of, len(both)) / times for of in record.losses)
    rows = []
    for group in np.argsort(-before, kind="stable")[:MOST_ROWS].tolist():
        drawn = np.unique(record.pairs[inverse == group, 2:])
        negatives = ", ".join(record.words[at] for at in drawn[drawn >= 0].tolist())
        center, context = (record.words[at] for at in both[group].tolist())
        values = (context, f"{times[group]:,}", float(before[group]), float(after[group]), negatives or "–")
        rows.append(NumberRow(center, "", values, 3))
    left = len(both) - len(rows)
    note = f"The largest losses; and {left:,} more." if left else ""
    heads = ("positive", "times", "loss before", "after", "negatives")
    return NumberTable(f"pairs-{index}", f"{name}: pairs", heads, tuple(rows), badges=False, note=note)
