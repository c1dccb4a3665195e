"""The four retrievals of a pair, and what becomes of the cosines of all pairs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from trainer.analysis.hopfield import four_retrievals, matched_after_retrieval, retrieval_shares, top_shares
from trainer.charts.hopfield.shared import KEPT, Asked, Patterns, both_of, cell, minus, percent
from trainer.charts.marks import RUN_TONES, Axis, ImageRow, NumberRow, NumberTable, Series, XYPlot


def pair(gathered: Sequence[Patterns], asked: Asked) -> tuple[tuple, tuple[str, ...]]:
    """Cosines, own weights and pictures of the four: rows of pieces, and notes."""
    lines: list[dict[str, float]] = []
    histograms, cells, sampled = [], [], []
    for run in gathered:
        image, text, rows = both_of(run, asked)
        row = int(np.flatnonzero(rows == asked.query)[0])
        if len(rows) < run.pairs:
            sampled.append(f"{run.label}: {len(rows):,} of {run.pairs:,} pairs, drawn at random.")
        four = four_retrievals(image, text, row, asked.beta)
        before, images, texts = matched_after_retrieval(image, text, asked.beta)
        histograms.append(_matched(run, before, images, texts))
        names = ("U_x", "U_y", "V_x", "V_y")
        lines.append(
            {"cos(x, y)": four.before, "cos(U_x, U_y)": four.images, "cos(V_x, V_y)": four.texts}
            | {f"own weight in {name}": own for name, own in zip(names, four.own, strict=True)}
            | {f"patterns in {name}": number for name, number in zip(names, four.numbers, strict=True)}
            | {"n stored": float(len(rows))}
        )
        cells.append(_cells_of_pair(run, image, text, rows, row, asked.beta))
    numbers = NumberTable(
        "pair",
        f"Pair {asked.query}",
        tuple(run.label for run in gathered),
        tuple(
            NumberRow(
                name,
                _HINTS.get(name, ""),
                tuple(run[name] for run in lines),
                _pair_digits(name),
                name.startswith("cos"),
            )
            for name in lines[0]
        ),
    )
    strips = tuple((strip,) for pair in cells for strip in pair)
    note = (
        "U is retrieved from the images, V from the texts; x asks with the image, y with the text. CLOOB compares U_x "
        "with U_y and V_y with V_x instead of x with y. The pair itself is stored and not masked, as in training."
    )
    return ((numbers, *histograms), *strips), (note, *sampled)


_HINTS: Final = {
    "cos(x, y)": "Image and text before any retrieval.",
    "cos(U_x, U_y)": "What CLOOB's first InfoLOOB sees.",
    "cos(V_x, V_y)": "What CLOOB's second InfoLOOB sees.",
}


def _pair_digits(name: str) -> int:
    return 0 if name.startswith("n ") else 1 if name.startswith("patterns") else 3


def _cells_of_pair(
    run: Patterns, image: np.ndarray, text: np.ndarray, rows: np.ndarray, row: int, beta: float
) -> list[ImageRow]:
    """What both askers retrieve from images and from texts; a text is shown as the picture it belongs to."""
    strips = []
    ways = (
        ("U_x: the image asks the images", image[row], image),
        ("U_y: the text asks the images", text[row], image),
        ("V_x: the image asks the texts", image[row], text),
        ("V_y: the text asks the texts", text[row], text),
    )
    for name, asker, stored in ways:
        shares = retrieval_shares(asker.astype(np.float64), stored, beta).astype(np.float64)
        places, tops, rest = top_shares(shares, KEPT)
        cells = tuple(
            cell(run, int(rows[p]), float(s), strong=int(p) == row) for p, s in zip(places, tops, strict=True)
        )
        note = f"{percent(rest)} in the other {len(rows) - len(places):,}"
        title = f"{run.label} · {name}"
        strips.append(ImageRow(f"pair-{run.index}-{name[:3]}", title, RUN_TONES[run.index % 2], cells, note))
    return strips


def _matched(run: Patterns, before: np.ndarray, images: np.ndarray, texts: np.ndarray) -> XYPlot:
    edges = np.linspace(min(map(np.min, (before, images, texts))) - 0.01, 1.0 + 1e-6, 41)
    series = (("before", "quiet", before), ("U_x·U_y", "first", images), ("V_x·V_y", "second", texts))
    curves, top = [], 0.0
    for name, tone, values in series:
        share = 100 * np.histogram(np.clip(values, edges[0], 1.0), edges)[0] / len(values)
        top = max(top, float(share.max()))
        curves.append(Series(f"{name}, mean {minus(values.mean())}", tone, edges, share, stepped=True))
    x, y = Axis("cosine of matched pairs", float(edges[0]), 1.0), Axis("share of pairs (%)", 0, 1.05 * top)
    return XYPlot(f"matched-{run.index}", run.label, x, y, tuple(curves), note=f"n = {len(before):,} pairs")
