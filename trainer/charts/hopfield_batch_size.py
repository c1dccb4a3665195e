"""The self-weight of a pattern in its own Hopfield retrieval by the number of stored patterns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from jaxtyping import Float, Int
from msgspec import Struct

from trainer.analysis.geometry import weighted_sum
from trainer.analysis.hopfield import equal_self_weight_beta, measured_self_weights, self_weight
from trainer.analysis.similarity import matched_cosines
from trainer.charts.hopfield_patterns import (
    Patterns,
    StoredSettings,
    beta_setting,
    beta_words,
    head,
    minus,
    patterns,
    stored_words,
)
from trainer.charts.marks import Axis, Panel, Series, XYPlot, run_tone
from trainer.charts.measure import Measure, measure_table
from trainer.charts.spec import Chart, PerRun, Progress, Request, Target, per_run
from trainer.store import Workspace

ANCHORS: Final = 128
"""More would say the same to the second digit."""

NOTE: Final = (
    "Measured: batches drawn from the stored patterns. Formula: e^β / (e^β + N − 1), which holds where the others "
    "lie at cosine 0. The rule keeps the self-weight that β = 8 has at N = 512 there; it is derived here and "
    "assumes cosine 0: where others lie near (in a cone, or in clusters), the measured curve falls below it."
)


@dataclass(frozen=True)
class BatchSizeSettings(StoredSettings):
    """The stored patterns, and beta."""

    beta: float = beta_setting()


class SelfWeights(Struct, frozen=True):
    """Measured self-weights of one run.

    Attributes:
        sizes: Of the batches drawn from the stored patterns.
        rule: Beta by the rule, for each size.
        constant, ruled: Mean self-weight at the beta of the settings, and at that of the rule.
        cosine: Mean of two different patterns.
    """

    run: Patterns
    sizes: Int[np.ndarray, " m"]
    rule: Float[np.ndarray, " m"]
    constant: Float[np.ndarray, " m"]
    ruled: Float[np.ndarray, " m"]
    cosine: float


def self_weights(
    workspace: Workspace, target: Target, request: Request, settings: BatchSizeSettings, progress: Progress
) -> SelfWeights:
    """Return self-weights in batches of 2 to all stored patterns.

    Raises:
        ChartError: Nothing is stored.
    """
    run = patterns(workspace, target, request, settings, progress=progress)
    sizes = np.unique(np.geomspace(2, run.n, 25).round().astype(int)) if run.n > 1 else np.array([1])
    rule = np.maximum(equal_self_weight_beta(sizes), 0.1)
    progress(0.0, f"Self-weights of {run.name}")
    constant = measured_self_weights(run.stored, sizes, np.full(len(sizes), settings.beta), anchors=ANCHORS)
    progress(0.5, f"Self-weights of {run.name}")
    ruled = measured_self_weights(run.stored, sizes, rule, anchors=ANCHORS)
    return SelfWeights(run, sizes, rule, constant, ruled, _mean_cosine(run.stored))


def draw(data: PerRun[SelfWeights], settings: BatchSizeSettings) -> Panel:
    """Draw measured and theoretical self-weights, one plot per run, and the numbers of the whole snapshot."""
    runs = [weights.run for weights in data.found]
    plots = tuple(_plot(*each, settings.beta) for each in data.named)
    at_beta, rule = f"Self-weight at N = n, β = {settings.beta:g}", "β = 8 + ln((N − 1) / 511): not from the paper."
    near = "With all others at cosine c, β acts as β (1 − c)."
    measures: tuple[Measure[SelfWeights], ...] = (
        Measure(at_beta, "Mean share of a pattern in its own retrieval.", lambda weights: weights.constant[-1]),
        Measure("Self-weight at N = n, β by the rule", rule, lambda weights: weights.ruled[-1]),
        Measure("β by the rule at N = n", "8 + ln((N − 1) / 511), at least 0.1.", lambda weights: weights.rule[-1], 2),
        Measure("Mean cosine of two patterns", near, lambda weights: weights.cosine),
        Measure("n", "Patterns drawn from.", lambda weights: weights.run.n, 0),
    )
    return Panel(
        title="Hopfield retrieval: self-weight over batch size",
        head=head(runs, stored_words(runs, settings), beta_words(settings.beta)),
        rows=(plots, (measure_table("batch", "At the whole snapshot", data.labels, measures, data.found),)),
        notes=(NOTE,),
    )


def _plot(weights: SelfWeights, index: int, name: str, beta: float) -> XYPlot:
    tone, sizes, far = run_tone(index), weights.sizes.astype(float), np.geomspace(2, 65_536, 121)
    inside = f"formula, cosine {minus(weights.cosine, 2)}"
    curves = (
        Series(f"measured, β = {beta:g}", tone, sizes, weights.constant, width=2.5),
        Series("measured, β by the rule", "first", sizes, weights.ruled, width=2.5),
        Series(f"formula, β = {beta:g}, cosine 0", "quiet", far, self_weight(far, beta)),
        Series(inside, "quiet", far, self_weight(far, beta, weights.cosine), dashed=True),
    )
    x, y = Axis("batch size N", 2, 65_536, log=True), Axis("self-weight", 0, 1.04)
    note = f"n = {weights.run.n:,} {weights.run.side}, {ANCHORS} anchors"
    return XYPlot(f"self-{index}", f"Self-weight of {name}", x, y, curves, note=note, tone=tone)


def _mean_cosine(vectors: np.ndarray) -> float:
    """Return the mean cosine over pairs of different rows, in O(n d)."""
    n = len(vectors)
    if n < 2:
        return 0.0
    total = weighted_sum(vectors)
    diagonal = float(matched_cosines(vectors, vectors).sum(dtype=np.float64))
    return float((total @ total - diagonal) / n / (n - 1))


CHART: Final = Chart(
    view="hopfield",
    label="Batch size",
    question="How much of itself does a pattern retrieve, the more are stored?",
    cost="Grows with the stored patterns: 128 of them, drawn at random, ask in batches of up to all.",
    settings=BatchSizeSettings,
    compute=per_run(self_weights),
    draw=draw,
)
