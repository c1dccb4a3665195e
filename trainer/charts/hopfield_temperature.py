"""The effect of beta on a Hopfield retrieval: the patterns it averages, and its dependence on batch size."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from trainer.analysis.hopfield import (
    circle_patterns,
    effective_number,
    effective_numbers,
    entropy,
    equal_self_weight_beta,
    retrieval_shares,
    self_weight,
)
from trainer.analysis.losses import hopfield_retrieval
from trainer.charts.marks import Axis, Bars, Marker, NumberTable, Panel, Series, ShadedTable, Tone, XYPlot, one_number
from trainer.charts.settings import held
from trainer.charts.spec import Chart, no_data
from trainer.config.fields import option

METHOD: Final = """\
Hopfield retrieval. A state retrieves softmax(β X ξ) X, made unit (Ramsauer et al., 2020, equation 3). exp(H) of the \
shares is how many patterns it averages. In a batch a state finds itself among N stored patterns; with the \
others at cosine c its share is 1 / (1 + (N − 1) exp(−β (1 − c))). The rule β = 8 + ln((N − 1) / 511) keeps that \
share at cosine 0 as it is at β = 8, N = 512; it is derived here, not taken from the paper."""

SOURCE: Final = (
    "Ramsauer et al., Hopfield Networks is All You Need, 2020, equation 3; Fürst et al., CLOOB, 2022, retrievals "
    "U and V. The rule β = 8 + ln((N − 1) / 511) is derived here, not from the paper."
)

BETAS: Final = np.geomspace(0.1, 200, 121)
SIZES: Final = np.geomspace(2, 65_536, 121)
GOLDEN_SIZES: Final = (64, 128, 512, 1024, 4096, 32_768)
PATTERNS: Final = 8
_CIRCLE: Final = np.linspace(0, 2 * math.pi, 181)


@dataclass(frozen=True)
class HopfieldTemperatureSettings:
    """Beta, a query among stored patterns, and a batch size."""

    beta: float = option(8.0, "Beta β", "Inverse temperature of the Hopfield retrieval.", low=0.1, high=200.0, log=True)
    angle: float = option(60.0, "Angle of the query", "In degrees; or drag the diamond.", low=0.0, high=360.0)
    seed: int = option(1, "Seed of the patterns", "Places the 8 stored patterns on the circle.", low=0, high=999)
    n: int = option(512, "Batch size N", "Patterns stored in training.", low=2, high=65_536, log=True)
    cosine: float = option(
        0.0,
        "Cosine of the others",
        "How near the other patterns of the batch lie; near 0.5 early on.",
        low=-0.2,
        high=0.95,
    )


def draw(_data: None, settings: HopfieldTemperatureSettings) -> Panel:
    """Draw weights of stored patterns, their effective number over beta, and self-weights over batch size."""
    stored = circle_patterns(PATTERNS, settings.seed)
    angle = math.radians(settings.angle)
    state = np.array([math.cos(angle), math.sin(angle)])
    shares = retrieval_shares(state, stored, settings.beta)
    weight = float(self_weight(settings.n, settings.beta, settings.cosine))
    facts = (
        one_number("Entropy H (nats)", entropy(shares), 4, f"Of the shares; at most ln 8 = {math.log(PATTERNS):.3f}."),
        one_number(
            "Effective patterns exp(H)", effective_number(shares), 3, "Patterns that are averaged.", strong=True
        ),
        one_number("Largest share", float(shares.max()), 4, "Of the nearest pattern."),
        one_number(
            "Self-weight in the batch", weight, 4, "A pattern's share in its own retrieval among N.", strong=True
        ),
        one_number("β of equal self-weight", float(equal_self_weight_beta(settings.n)), 2, "8 + ln((N − 1) / 511)."),
    )
    rows = (
        (_circle(stored, state, shares, settings.beta), _shares(shares)),
        (_number(stored, state, settings), _self_weights(settings)),
        (_golden(settings), NumberTable("numbers", "Hopfield retrieval", ("value",), facts, badges=False)),
    )
    return Panel(title="Hopfield temperature", head=(held(settings),), rows=rows, notes=(SOURCE,))


def _circle(stored: np.ndarray, state: np.ndarray, shares: np.ndarray, beta: float) -> XYPlot:
    mean = shares @ stored
    retrieved = hopfield_retrieval(state[None], stored, beta)[0]
    ring = Series("", "quiet", np.cos(_CIRCLE), np.sin(_CIRCLE), width=1)
    ray = Series("", "first", np.array([mean[0], retrieved[0]]), np.array([mean[1], retrieved[1]]))
    dots = [
        Marker("stored", "quiet", float(x[0]), float(x[1]), size=8 + 22 * float(share), label=str(i))
        for i, (x, share) in enumerate(zip(stored, shares, strict=True), start=1)
    ]
    dots += [
        Marker("weighted mean", "fourth", float(mean[0]), float(mean[1]), size=7),
        Marker("retrieved", "first", float(retrieved[0]), float(retrieved[1]), size=14, mark="ring"),
    ]
    dots += [Marker("query", "second", float(state[0]), float(state[1]), size=14, mark="diamond")]
    x = Axis("", -1.4, 1.4)
    return XYPlot("circle", "Stored patterns and query", x, x, (ring, ray), dots=tuple(dots), equal=True)


def _shares(shares: np.ndarray) -> XYPlot:
    names = tuple(str(i) for i in range(1, len(shares) + 1))
    x, y = Axis("stored pattern", -0.5, len(shares) - 0.5), Axis("share", 0, 1)
    return XYPlot(
        "shares", "What the query retrieves", x, y, bars=(Bars("", "first", tuple(map(float, shares))),), names=names
    )


def _number(stored: np.ndarray, state: np.ndarray, settings: HopfieldTemperatureSettings) -> XYPlot:
    curve = Series("exp(H)", "first", BETAS, effective_numbers(state, stored, BETAS))
    x, y = Axis("beta", BETAS[0], BETAS[-1], log=True), Axis("patterns", 0.8, PATTERNS + 0.4)
    return XYPlot("number", "Effective patterns", x, y, (curve,), cursor=settings.beta)


def _self_weights(settings: HopfieldTemperatureSettings) -> XYPlot:
    c = settings.cosine
    betas: tuple[tuple[float, Tone], ...] = ((8.0, "second"), (14.3, "fourth"))
    curves = [Series(f"β = {beta:g}", tone, SIZES, self_weight(SIZES, beta, c)) for beta, tone in betas]
    if settings.beta not in (8.0, 14.3):
        curves.append(Series(f"β = {settings.beta:g}", "first", SIZES, self_weight(SIZES, settings.beta, c)))
    rule = self_weight(SIZES, np.maximum(equal_self_weight_beta(SIZES), 0), c)
    curves.append(Series("β by the rule", "quiet", SIZES, rule, dashed=True))
    x, y = Axis("batch size N", SIZES[0], SIZES[-1], log=True), Axis("self-weight", 0, 1.04)
    title = "Self-weight against batch size"
    return XYPlot("self_weight", title, x, y, tuple(curves), cursor=float(settings.n), note=f"others at cosine {c:g}")


def _golden(settings: HopfieldTemperatureSettings) -> ShadedTable:
    sizes = np.array(GOLDEN_SIZES)
    lines: dict[str, float | np.ndarray] = {"β = 8": 8.0, "β = 14.3": 14.3, f"β = {settings.beta:g}": settings.beta}
    lines["rule"] = equal_self_weight_beta(sizes)
    values = np.array([self_weight(sizes, beta, settings.cosine) for beta in lines.values()])
    columns = tuple(f"{size:,}" for size in GOLDEN_SIZES)
    return ShadedTable("golden", "Self-weight by batch size", tuple(lines), columns, values, 3)


CHART: Final = Chart(
    view="losslab",
    label="Hopfield temperature",
    question="How many stored patterns does a Hopfield retrieval average?",
    cost="Computed from its settings alone: no data are read.",
    method=METHOD,
    settings=HopfieldTemperatureSettings,
    needs="none",
    compute=no_data,
    draw=draw,
    quick=True,
)
