"""The share of a pattern in its own retrieval, the more are stored."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from trainer.analysis.hopfield import equal_self_weight_beta, measured_self_weights, self_weight
from trainer.charts.hopfield.shared import Asked, Patterns, minus
from trainer.charts.marks import RUN_TONES, Axis, NumberRow, NumberTable, Series, XYPlot


def batch(gathered: Sequence[Patterns], asked: Asked) -> tuple[tuple, tuple[str, ...]]:
    """Self-weights measured and by the formula: rows of pieces, and notes."""
    plots, lines = [], []
    for run in gathered:
        vectors = run.stored
        sizes = np.unique(np.geomspace(2, len(vectors), 25).round().astype(int)) if len(vectors) > 1 else np.array([1])
        rule = np.maximum(equal_self_weight_beta(sizes), 0.1)
        # More anchors would say the same to the second digit.
        constant = measured_self_weights(vectors, sizes, np.full(len(sizes), asked.beta), anchors=128)
        ruled = measured_self_weights(vectors, sizes, rule, anchors=128)
        cosine = _mean_cosine(vectors)
        far = np.geomspace(2, 65_536, 121)
        tone = RUN_TONES[run.index % 2]
        curves = (
            Series(f"measured, β = {asked.beta:g}", tone, sizes.astype(float), constant, width=2.5),
            Series("measured, β by the rule", "first", sizes.astype(float), ruled, width=2.5),
            Series(f"formula, β = {asked.beta:g}, cosine 0", "quiet", far, self_weight(far, asked.beta)),
            Series(
                f"formula, cosine {minus(cosine, 2)}", "quiet", far, self_weight(far, asked.beta, cosine), dashed=True
            ),
        )
        x, y = Axis("batch size N", 2, 65_536, log=True), Axis("self-weight", 0, 1.04)
        title = f"Self-weight of {run.label}"
        plots.append(XYPlot(f"self-{run.index}", title, x, y, curves, note=f"n = {run.n:,} {run.side}, 128 anchors"))
        lines.append((constant[-1], ruled[-1], float(rule[-1]), cosine, float(len(vectors))))
    columns = tuple(run.label for run in gathered)
    words = (
        (f"Self-weight at N = n, β = {asked.beta:g}", "Mean share of a pattern in its own retrieval.", 3),
        ("Self-weight at N = n, β by the rule", "β = 8 + ln((N − 1) / 511): not from the paper.", 3),
        ("β by the rule at N = n", "8 + ln((N − 1) / 511), at least 0.1.", 2),
        ("Mean cosine of two patterns", "With all others at cosine c, β acts as β (1 − c).", 3),
        ("n", "Patterns drawn from.", 0),
    )
    table = tuple(NumberRow(w, h, tuple(float(line[i]) for line in lines), d) for i, (w, h, d) in enumerate(words))
    notes = (
        "Measured: batches drawn from the stored patterns. Formula: e^β / (e^β + N − 1), which holds where the others "
        "lie at cosine 0. The rule keeps the self-weight that β = 8 has at N = 512 there; it is derived here and "
        "assumes cosine 0: where others lie near (in a cone, or in clusters), the measured curve falls below it.",
    )
    return (tuple(plots), (NumberTable("batch", "At the whole snapshot", columns, table),)), notes


def _mean_cosine(vectors: np.ndarray) -> float:
    """Mean over pairs of different rows, in O(n d)."""
    n = len(vectors)
    if n < 2:
        return 0.0
    total = vectors.sum(0, dtype=np.float64)
    own = float(np.einsum("nd,nd->", vectors, vectors, dtype=np.float64))
    return float((total @ total - own) / n / (n - 1))
