"""Distance-based losses, the density of distances on the sphere, and what samplers draw from it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Literal

import numpy as np
from jaxtyping import Float
from msgspec import Struct

from trainer.analysis.margins import (
    ADMISSIBLE,
    SAMPLERS,
    contrastive_matched,
    contrastive_unmatched,
    distances_to_uniform,
    drawn_distances,
    log_density,
    margin_matched,
    margin_unmatched,
    triplet,
)
from trainer.charts.marks import Axis, NumberTable, Panel, Series, Tone, XYPlot, one_number
from trainer.charts.settings import held
from trainer.charts.spec import Chart, Progress, Request
from trainer.config.fields import option
from trainer.store import Workspace

METHOD: Final = """\
Margins. d is the distance of unit vectors, 0 to 2. Contrastive: max(d − m₊, 0)²/2 for matched and max(m − d, \
0)²/2 for unmatched pairs (m₊ = 0: Hadsell et al., 2006, equation 4; above 0 double-margin: Lin et al., 2015). \
Triplet: max(d(a,p)² − d(a,n)² + m, 0) (FaceNet, 2015, equation 3). Margin: max(α + y (d − β), 0), y = 1 for \
matched and −1 for unmatched pairs (Wu et al., 2017, equation 7). Two random points in n dimensions lie at \
distance d with density q(d) ∝ d^(n−2) (1 − d²/4)^((n−3)/2) (equation 6): nearly always about √2. \
Distance-weighted sampling draws in inverse proportion to q, with cutoffs at 0.5 and 1.4. The histograms are 1,000 \
simulated anchors whose negatives are uniform on the sphere; real embeddings are not."""

SOURCE: Final = (
    "Hadsell et al., 2006, equation 4 (contrastive); Lin et al., DeepHash, 2015 (double-margin); "
    "Schroff et al., FaceNet, 2015, equation 3 (triplet); "
    "Wu et al., Sampling Matters in Deep Embedding Learning, 2017, equations 6 (density) and 7 (margin loss)."
)

DISTANCE: Final = np.linspace(0, 2, 401)
ANCHORS: Final = 1000
BINS: Final = np.linspace(0, 2, 51)
SEED: Final = 0
_TONES: Final[dict[str, Tone]] = {
    "random": "quiet",
    "hard": "second",
    "semi-hard": "fourth",
    "distance-weighted": "first",
}


@dataclass(frozen=True)
class LossMarginsSettings:
    """The margins of three losses, and the sphere from which negatives are drawn."""

    contrastive: float = option(
        1.0, "Contrastive margin", "Negatives beyond it no longer repel.", low=0.05, high=2.0, redraws=True
    )
    matched: float = option(
        0.0,
        "Margin of matched pairs",
        "Within it they no longer attract: double-margin.",
        low=0.0,
        high=1.9,
        redraws=True,
    )
    triplet: float = option(
        0.2, "Triplet margin", "By how much the positive must be nearer.", low=0.0, high=1.0, redraws=True
    )
    distances: Literal["squared", "plain"] = option(
        "squared", "Triplet distances", "FaceNet squares them; many libraries do not.", redraws=True
    )
    beta: float = option(
        1.2, "Boundary β", "Of the margin loss; learned per class in the paper.", low=0.1, high=1.9, redraws=True
    )
    alpha: float = option(0.2, "Margin α", "Half the gap around the boundary.", low=0.0, high=1.0, redraws=True)
    positive: float = option(
        0.9, "Distance of the positive", "Of the triplet's other pair, and where semi-hard begins.", low=0.0, high=2.0
    )
    dimension: int = option(8, "Dimension n", "Of the embedding; 128 in the paper.", low=3, high=1024, log=True)
    negatives: int = option(63, "Negatives of an anchor", "What a sampler may choose from.", low=2, high=512, log=True)


class SampledNegatives(Struct, frozen=True):
    """Distances of simulated anchors' negatives, and those that each sampler draws."""

    found: Float[np.ndarray, "anchors negatives"]
    drawn: Mapping[str, Float[np.ndarray, " anchors"]]


def negatives(
    _workspace: Workspace, _request: Request, settings: LossMarginsSettings, _progress: Progress
) -> SampledNegatives:
    """Return the samplers' draws for these settings."""
    distances = _distances(settings.negatives, settings.dimension)
    return SampledNegatives(distances, drawn_distances(distances, settings.positive, settings.dimension, seed=SEED))


def draw(data: SampledNegatives, settings: LossMarginsSettings) -> Panel:
    """Draw both sides of the three losses, the density of distances, and histograms of the drawn negatives."""
    drawn = data.drawn
    means = tuple(one_number(f"Mean drawn, {name}", float(drawn[name].mean()), 3) for name in SAMPLERS)
    admissible = one_number(
        f"Admissible (< {ADMISSIBLE})",
        float((data.found < ADMISSIBLE).mean()),
        3,
        "Share of negatives that distance-weighted sampling takes; where an anchor has none, it draws uniformly.",
    )
    numbers = NumberTable("numbers", "Negatives drawn", ("value",), (*means, admissible), badges=False)
    rows = (_both_sides(settings), (_density(settings), _drawn(settings, drawn)), (numbers,))
    return Panel(title="Loss margins", head=(held(settings),), rows=rows, notes=(SOURCE,))


def _both_sides(settings: LossMarginsSettings) -> tuple[XYPlot, XYPlot]:
    """Return the losses of matched and of unmatched pairs; the triplet's other pair stays where the setting says."""
    at, boundary, squared = settings.positive, (settings.beta, settings.alpha), settings.distances == "squared"
    attracted = (
        contrastive_matched(DISTANCE, settings.matched),
        triplet(DISTANCE, at, settings.triplet, squared=squared),
        margin_matched(DISTANCE, *boundary),
    )
    repelled = (
        contrastive_unmatched(DISTANCE, settings.contrastive),
        triplet(at, DISTANCE, settings.triplet, squared=squared),
        margin_unmatched(DISTANCE, *boundary),
    )

    def plot(key: str, title: str, pair: str, losses: Iterable[np.ndarray], other: str) -> XYPlot:
        kinds = zip(("contrastive", "triplet", "margin"), ("second", "fourth", "first"), losses, strict=True)
        curves = tuple(Series(name, tone, DISTANCE, loss) for name, tone, loss in kinds)
        x, y = Axis(f"distance of {pair} pair", 0, 2), Axis("loss", 0, 2.05)
        return XYPlot(key, title, x, y, curves, note=f"triplet with its {other} at {at:.2f}")

    return (
        plot("matched", "Matched pairs: pulled together", "a matched", attracted, "negative"),
        plot("unmatched", "Unmatched pairs: pushed apart", "an unmatched", repelled, "positive"),
    )


def _density(settings: LossMarginsSettings) -> XYPlot:
    densities: tuple[tuple[int, Tone], ...] = ((settings.dimension, "first"), (128, "quiet"))
    curves = tuple(
        Series(f"n = {n}", tone, DISTANCE, np.exp(log_density(DISTANCE, n)), dashed=tone == "quiet")
        for n, tone in densities
    )
    curves = curves[: 1 if settings.dimension == 128 else 2]
    highest = max(float(curve.y[:-2].max()) for curve in curves)
    x, y = Axis("distance of two random points", 0, 2), Axis("density q(d)", 0, 1.08 * highest)
    return XYPlot("density", "Distances on the sphere", x, y, curves, cursor=float(np.sqrt(2)), note="√2 dashed")


def _drawn(settings: LossMarginsSettings, drawn: Mapping[str, np.ndarray]) -> XYPlot:
    width = BINS[1] - BINS[0]
    shares = {name: np.histogram(drawn[name], BINS)[0] / (ANCHORS * width) for name in SAMPLERS}
    curves = tuple(Series(name, _TONES[name], BINS, shares[name], stepped=True) for name in SAMPLERS)
    highest = max(float(curve.y.max()) for curve in curves)
    note = f"{ANCHORS:,} anchors, {settings.negatives} uniform negatives each, seed {SEED}"
    x, y = Axis("distance of the negative drawn", 0, 2), Axis("density", 0, 1.08 * highest)
    return XYPlot("drawn", "What each sampler draws", x, y, curves, cursor=settings.positive, note=note)


@lru_cache(maxsize=8)
def _distances(negatives: int, dimension: int) -> Float[np.ndarray, "anchors negatives"]:
    """Return the distances, cached per sphere so that margin sliders stay fast."""
    distances = distances_to_uniform(ANCHORS, negatives, dimension=dimension, seed=SEED)
    distances.setflags(write=False)
    return distances


CHART: Final = Chart(
    view="losslab",
    label="Margins",
    question="Which distances does a margin act on, and which negatives are drawn?",
    cost="Computed from its settings alone: no data are read.",
    method=METHOD,
    settings=LossMarginsSettings,
    needs="none",
    compute=negatives,
    draw=draw,
    quick=False,
)
