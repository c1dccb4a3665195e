"""Gradients of SimCLR's three losses on a negative, and which negatives are semi-hard."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from jaxtyping import Float
from msgspec import Struct

from trainer.analysis.margins import distances_to_uniform
from trainer.analysis.view_losses import nt_logistic_push, nt_xent_push, semi_hard, triplet_push
from trainer.charts.marks import Axis, NumberTable, Panel, Region, Series, XYPlot, one_number
from trainer.charts.settings import held
from trainer.charts.spec import Chart, Progress, Request
from trainer.config.fields import option
from trainer.store import Workspace

METHOD: Final = """\
Two views. s⁺ is the cosine of the two views of an image, s⁻ that of views of different images. Size of ∂L / ∂s⁻ for \
one negative: NT-Xent softmax(s / τ) / τ over the match and all negatives; NT-Logistic σ(s⁻ / τ) / τ; margin triplet \
1 where s⁻ > s⁺ − m, else 0 (Chen et al., SimCLR, 2020, table 2). Only NT-Xent weighs a negative by how hard it is \
among the others, so the other two need mining (section 5.1): the semi-hard negative of an anchor is the most \
similar one that is less similar than the match (Schroff et al., FaceNet, 2015); where none is, the least similar \
one. The histograms are 1,000 simulated anchors whose negatives are uniform on the sphere; real embeddings are not."""

SOURCE: Final = "Chen et al., SimCLR, 2020, table 2 and section 5.1; Schroff et al., FaceNet, 2015 (semi-hard)."
COSINE: Final = np.linspace(-1, 1, 401)
ANCHORS: Final = 1000
BINS: Final = np.linspace(-1, 1, 51)
SEED: Final = 0


@dataclass(frozen=True)
class LossViewsSettings:
    """The match, the losses' constants, and the sphere that negatives are drawn from."""

    match: float = option(0.5, "Cosine of the match", "Of the two views of an image.", low=-1.0, high=1.0, redraws=True)
    tau: float = option(
        0.2, "Temperature τ", "Of NT-Xent and NT-Logistic; they have 0.5 and 0.2 in the paper's table 5.",
        low=0.02, high=2.0, log=True, redraws=True,
    )  # fmt: skip
    margin: float = option(
        0.4, "Margin m", "Of the triplet: by how much the match leads.", low=0.0, high=2.0, redraws=True
    )
    dimension: int = option(8, "Dimension", "Of the embedding; 128 in the paper.", low=3, high=1024, log=True)
    negatives: int = option(62, "Negatives of an anchor", "2n − 2 in a batch of n images.", low=2, high=510, log=True)


class ViewNegatives(Struct, frozen=True):
    """Cosines of simulated anchors with their negatives."""

    cosines: Float[np.ndarray, "anchors negatives"]


def negatives(
    _workspace: Workspace, _request: Request, settings: LossViewsSettings, _progress: Progress
) -> ViewNegatives:
    """Return cosines with negatives that are uniform on the sphere."""
    distances = distances_to_uniform(ANCHORS, settings.negatives, dimension=settings.dimension, seed=SEED)
    return ViewNegatives(1 - np.square(distances) / 2)


def draw(data: ViewNegatives, settings: LossViewsSettings) -> Panel:
    """Draw the three gradients by the cosine of a negative, and the cosines of all and of semi-hard negatives."""
    chosen = semi_hard(settings.match, data.cosines)
    below = (data.cosines < settings.match).any(axis=1)
    active = chosen > settings.match - settings.margin
    first = data.cosines[0]
    shares = [
        float(push.max() / push.sum())
        for push in (
            nt_xent_push(first, settings.match, first[1:], 1 / settings.tau),
            nt_logistic_push(first, 1 / settings.tau),
        )
    ]
    lines = (
        one_number(
            "Anchors with a semi-hard negative", float(below.mean()), 3, "One that is less similar than the match."
        ),
        one_number("Semi-hard within the margin", float((active & below).mean()), 3, "The triplet pushes these."),
        one_number("Mean cosine, all", float(data.cosines.mean()), 3),
        one_number("Mean cosine, semi-hard", float(chosen.mean()), 3),
        one_number("Hardest negative in NT-Xent", shares[0], 3, "Its share of the push on all negatives of an anchor."),
        one_number("The same in NT-Logistic", shares[1], 3),
    )
    rows = (
        (_pushes(data, settings), _histogram(data.cosines, chosen, settings)),
        (NumberTable("numbers", "Negatives", ("value",), lines, badges=False),),
    )
    return Panel(title="Losses of two views", head=(held(settings),), rows=rows, notes=(SOURCE,))


def _pushes(data: ViewNegatives, settings: LossViewsSettings) -> XYPlot:
    inv_tau, others = 1 / settings.tau, data.cosines[0, 1:]
    curves = (
        Series("NT-Xent", "first", COSINE, nt_xent_push(COSINE, settings.match, others, inv_tau)),
        Series("NT-Logistic", "second", COSINE, nt_logistic_push(COSINE, inv_tau)),
        Series("margin triplet", "fourth", COSINE, triplet_push(COSINE, settings.match, settings.margin)),
    )
    low = max(-1.0, settings.match - settings.margin)
    region = (Region("semi-hard", low, settings.match),) if low < settings.match else ()
    y = Axis("|∂L / ∂s⁻|", 0, 1.12 * max(inv_tau, 1.0))
    x = Axis("cosine of a negative", -1, 1)
    return XYPlot("pushes", "Push on a negative", x, y, curves, cursor=settings.match, regions=region)


def _histogram(
    cosines: Float[np.ndarray, "m k"], chosen: Float[np.ndarray, " m"], settings: LossViewsSettings
) -> XYPlot:
    samples = (("all", "quiet", cosines.ravel()), ("semi-hard", "first", chosen))
    width = BINS[1] - BINS[0]
    curves = tuple(
        Series(name, tone, BINS, np.histogram(sample, BINS)[0] / (len(sample) * width), stepped=True)
        for name, tone, sample in samples
    )
    y = Axis("density", 0, 1.08 * max(float(curve.y.max()) for curve in curves))
    note = f"{ANCHORS:,} anchors, {settings.negatives} uniform negatives each, seed {SEED}"
    x = Axis("cosine of a negative", -1, 1)
    return XYPlot("drawn", "Which negatives count", x, y, curves, cursor=settings.match, note=note)


CHART: Final = Chart(
    view="losslab",
    label="Two views",
    question="How hard does each loss of two views push on a negative, and which ones need mining?",
    cost="Computed from its settings alone: no data are read.",
    method=METHOD,
    settings=LossViewsSettings,
    needs="none",
    compute=negatives,
    draw=draw,
    quick=False,
)
