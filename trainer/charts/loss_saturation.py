"""Saturation of InfoNCE and not of InfoLOOB for a good match, and DHN-NCE's weights of negatives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from trainer.analysis.saturation import (
    dhn_loss,
    dhn_push,
    dhn_weights,
    info_loob_pull,
    info_nce_pull,
    match_factor,
    merge_ends,
    merged_loss,
    merged_pull,
    spread_cosines,
)
from trainer.charts.marks import Axis, NumberTable, Panel, Region, Series, XYPlot, one_number
from trainer.charts.settings import held
from trainer.charts.spec import Chart, no_data
from trainer.config.fields import option

METHOD: Final = """\
Saturation. One anchor with p the softmax probability of its match. InfoNCE pulls on the match with (1 − p) / τ, \
because the match is in its own denominator; InfoLOOB leaves it out and pulls with 1 / τ (Fürst et al., \
CLOOB, 2022: ∂InfoNCE = (1 − p) ∂InfoLOOB; shown without CLOOB's factor τ). DHN-NCE weighs negative j with W_j = \
(B − 1) softmax(β S)_j over the negatives (Koleilat et al., MedCLIP-SAM, 2024, equations 1–4) and is computed as \
−S + ln(B − 1) + lse((1 + β) S_j) − lse(β S_j). Its push on a negative can be below zero: the weights' \
normalizer then attracts easy negatives; with constant weights it cannot.

Why not the merge. Notes set W_ii = −1 to draw the match into the sum of the negatives. That turns ln b − ln a \
into ln(b − a): another loss, whose pull on the match is a / (b − a) instead of 1, and which is not a number once a \
> b. It is drawn in red to be recognized, and implemented nowhere else."""

SOURCE: Final = (
    "Fürst et al., CLOOB: Modern Hopfield Networks with InfoLOOB Outperform CLIP, 2022, gradients of both losses: "
    "∂InfoNCE = (1 − p) ∂InfoLOOB; Koleilat et al., MedCLIP-SAM, 2024, equations 1–4 (DHN-NCE, in its closed form)."
)

MATCHED: Final = np.linspace(-1, 1, 401)
LEAST_FACTOR: Final = 1e-8
MOST_CURVE: Final = 513
"""Points of a curve over the negatives; more are not seen."""


@dataclass(frozen=True)
class LossSaturationSettings:
    """One anchor, its match and its negatives."""

    match: float = option(0.6, "Cosine of the match", "Position of the dashed line.", low=-1.0, high=1.0)
    n: int = option(64, "Batch size N", "One match and N − 1 negatives.", low=2, high=32_768, log=True)
    tau: float = option(
        0.07, "Temperature τ", "Of the objective. CLOOB: 0.033; CLIP starts at 0.07.", low=0.01, high=1.0, log=True
    )
    negatives: float = option(
        0.0,
        "Cosine of the negatives",
        "Their mean. 0.4 and more: all embeddings in a narrow cone.",
        low=-0.5,
        high=0.95,
    )
    spread: float = option(
        0.3, "Spread of the negatives", "They lie evenly this far to both sides of their mean.", low=0.0, high=1.0
    )
    beta: float = option(
        0.15, "Hardness β (DHN-NCE)", "0 weighs all negatives equally. MedCLIP-SAM: 0.15.", low=0.0, high=2.0
    )


def draw(_data: None, settings: LossSaturationSettings) -> Panel:
    """Draw the pull on the match by its cosine, the factor between objectives, negative weights, a failing merge."""
    inv_tau, beta = 1 / settings.tau, settings.beta
    unmatched = spread_cosines(settings.n - 1, settings.negatives, settings.spread)
    match = np.array([settings.match])
    factor = float(match_factor(match, unmatched, inv_tau)[0])
    facts = (
        one_number("p of the match", 1 - factor, 4, "Its softmax probability among all N."),
        one_number("1 − p", factor, 4, "What is left of InfoLOOB's gradient in InfoNCE.", strong=True),
        one_number("Pull of InfoNCE", factor * inv_tau, 3, "(1 − p) / τ: size of ∂L / ∂cosine."),
        one_number("Pull of InfoLOOB", inv_tau, 3, "1 / τ, before CLOOB's factor τ."),
        one_number(
            "Gradient of the naive form",
            float(merged_pull(match, unmatched, inv_tau, beta)[0]),
            3,
            "On the logit, where DHN-NCE pulls with 1 whatever the match; NaN once a > b.",
        ),
    )
    rows = (
        (_pulls(settings, unmatched), _factor(settings, unmatched)),
        (_weights(settings, unmatched), _merge(settings, unmatched)),
        (NumberTable("numbers", "At the match", ("value",), facts, badges=False),),
    )
    return Panel(title="Loss saturation", head=(held(settings),), rows=rows, notes=(SOURCE,))


def _pulls(settings: LossSaturationSettings, unmatched: np.ndarray) -> XYPlot:
    inv_tau = 1 / settings.tau
    curves = (
        Series("InfoLOOB", "first", MATCHED, info_loob_pull(MATCHED, inv_tau)),
        Series("InfoNCE", "second", MATCHED, info_nce_pull(MATCHED, unmatched, inv_tau)),
    )
    y = Axis("|∂L / ∂cosine|", 0, 1.12 * inv_tau)
    return XYPlot("pulls", "Pull on the match", _cosine(), y, curves, cursor=settings.match)


def _factor(settings: LossSaturationSettings, unmatched: np.ndarray) -> XYPlot:
    values = match_factor(MATCHED, unmatched, 1 / settings.tau)
    curve = Series("1 − p", "second", MATCHED, values)
    y = Axis("1 − p", LEAST_FACTOR, 2, log=True)
    title = "Remaining gradient 1 − p"
    return XYPlot("factor", title, _cosine(), y, (curve,), cursor=settings.match)


def _weights(settings: LossSaturationSettings, unmatched: np.ndarray) -> XYPlot:
    inv_tau, beta = 1 / settings.tau, settings.beta
    rows = np.unique(np.linspace(0, len(unmatched) - 1, MOST_CURVE).round().astype(int))
    x = unmatched[rows]
    push = dhn_push(unmatched, inv_tau, beta)[rows]
    curves = (
        Series("weight", "first", x, dhn_weights(unmatched, inv_tau, beta)[rows]),
        Series("push, weights constant", "fourth", x, dhn_push(unmatched, inv_tau, beta, detach_weights=True)[rows]),
        Series("push", "second", x, push),
    )
    low = float(push.min())
    highest = max(float(curve.y.max()) for curve in curves)
    attracted = x[push < 0]
    regions = (Region("attracted", float(attracted[0]), float(attracted[-1])),) if len(attracted) > 1 else ()
    room = 0.08 * max(highest - min(low, 0), 1)
    note = f"{100 * (dhn_push(unmatched, inv_tau, beta) < 0).mean():.0f} % of negatives attracted"
    return XYPlot(
        "weights",
        "DHN-NCE: weight of a negative",
        Axis("cosine of the negative (hardness)", float(unmatched[0]) - 0.02, float(unmatched[-1]) + 0.02),
        Axis("times an average negative", min(low, 0) - room, max(highest, 1.2) + room),
        curves,
        regions,
        note=note,
    )


def _merge(settings: LossSaturationSettings, unmatched: np.ndarray) -> XYPlot:
    inv_tau, beta = 1 / settings.tau, settings.beta
    right = dhn_loss(MATCHED, unmatched, inv_tau, beta)
    end = merge_ends(unmatched, inv_tau, beta)
    # Up to the very end, where it falls to minus infinity.
    x = np.unique(np.append(MATCHED[end > MATCHED], [min(end, 1) - 10.0**-k for k in range(2, 12)]))
    x = x[(x >= -1) & (x < end)]
    curves = (
        Series("−S + ln b (DHN-NCE)", "first", MATCHED, right),
        Series("ln (b − a), W_ii = −1", "bad", x, merged_loss(x, unmatched, inv_tau, beta)),
    )
    regions = (Region("diverges", max(end, -1.0), 1.0),) if end < 1 else ()
    low, high = float(right[-1]), float(right[0])
    y = Axis("loss of the anchor", low - 0.05 * (high - low), high + 0.05 * (high - low))
    title = "Why the positive is excluded from the denominator"
    return XYPlot("merge", title, _cosine(), y, curves, regions, cursor=settings.match)


def _cosine() -> Axis:
    return Axis("cosine of the match", -1.0, 1.0)


CHART: Final = Chart(
    view="losslab",
    label="Saturation",
    question="How hard does an objective still pull once the match is recognized?",
    cost="Computed from its settings alone: no data are read.",
    method=METHOD,
    settings=LossSaturationSettings,
    needs="none",
    compute=no_data,
    draw=draw,
    quick=True,
)
