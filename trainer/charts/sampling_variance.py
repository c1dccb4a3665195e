"""Why a sampler of negatives matters: noise of the gradient by distance, and what each sampler draws of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
from jaxtyping import Float

from trainer.analysis.gradient_noise import direction_variance
from trainer.analysis.margins import SAMPLERS, distances_to_uniform, drawn_distances, log_density
from trainer.charts.marks import Axis, NumberRow, NumberTable, Panel, Series, Tone, XYPlot, heading_row
from trainer.charts.settings import held
from trainer.charts.spec import Chart, Progress, Request
from trainer.config.fields import option
from trainer.store import Workspace

METHOD: Final = """\
The gradient that a negative at distance d puts on an anchor points along their difference h. With noise z of \
deviation s in each direction (dropout, crops) the direction is (h + z) / |h + z|; its total variance is \
1 - |E u|^2, computed exactly. Near negatives, which hard sampling draws, have gradients of nearly random direction; \
far ones, of which there are most (density q, n dimensions), have none, as their loss is 0 (Wu et al., Sampling \
Matters in Deep Embedding Learning, 2017, https://arxiv.org/abs/1706.07567, section 4 and figure 3).

Active: share of the draws whose loss is above 0. Noise: mean variance of the direction over the active draws, \
weighted by the square of the gradient's length: contrastive m - d, triplet (plain distances) and margin loss 1.

Caveats: negatives are uniform on the sphere, which those of a trained model are not. The paper's figure is of one \
network's gradients; this one is of the directions alone."""

DISTANCE: Final = np.linspace(0.01, 2, 200)
ANCHORS: Final = 1_000
SEED: Final = 0
LEVELS: Final[tuple[tuple[float, Tone], ...]] = ((0.5, "quiet"), (1.0, "first"), (2.0, "second"))
"""Multiples of the noise that are drawn."""


@dataclass(frozen=True)
class SamplingVarianceSettings:
    """The noise, the sphere and the margins."""

    noise: float = option(0.05, "Noise", "Deviation of an embedding in each direction.", low=0.001, high=0.5, log=True)
    dimension: int = option(128, "Dimension n", "Of the embedding; 128 in the paper.", low=3, high=1024, log=True)
    negatives: int = option(511, "Negatives of an anchor", "A sampler's choice.", low=2, high=2048, log=True)
    positive: float = option(1.0, "Distance of the positive", "Where semi-hard begins.", low=0.0, high=2.0)
    contrastive: float = option(1.0, "Contrastive margin", "Negatives beyond it have no loss.", low=0.05, high=2.0)
    triplet: float = option(0.2, "Triplet margin", "By how much the positive must be nearer.", low=0.0, high=1.0)
    beta: float = option(1.2, "Boundary β", "Of the margin loss.", low=0.1, high=1.9)
    alpha: float = option(0.2, "Margin α", "Half the gap around the boundary.", low=0.0, high=1.0)


Drawn = Mapping[str, Float[np.ndarray, " anchors"]]


def compute(_workspace: Workspace, _request: Request, settings: SamplingVarianceSettings, _progress: Progress) -> Drawn:
    """Return the distances that each sampler draws."""
    distances = distances_to_uniform(ANCHORS, settings.negatives, dimension=settings.dimension, seed=SEED)
    return drawn_distances(distances, settings.positive, settings.dimension, seed=SEED)


def lengths(distance: Float[np.ndarray, " m"], settings: SamplingVarianceSettings) -> dict[str, np.ndarray]:
    """Return the length of each loss's gradient on the anchor by its negative at these distances."""
    return {
        "contrastive": np.maximum(settings.contrastive - distance, 0),
        "triplet": (settings.positive - distance + settings.triplet > 0).astype(float),
        "margin": (settings.alpha + settings.beta - distance > 0).astype(float),
    }


def noise_of(distance: Float[np.ndarray, " m"], length: np.ndarray, settings: SamplingVarianceSettings) -> float:
    """Return the mean variance of the direction, weighted by the squared length; NaN where all lengths are 0."""
    weight = length**2
    variance = direction_variance(distance, settings.noise, settings.dimension)
    return float((weight * variance).sum() / weight.sum()) if weight.sum() else float("nan")


def draw(data: Drawn, settings: SamplingVarianceSettings) -> Panel:
    """Draw the variance and the density over the distance, and active share and noise of each sampler and loss."""
    curves = tuple(
        Series(
            f"noise {times * settings.noise:g}",
            tone,
            DISTANCE,
            direction_variance(DISTANCE, times * settings.noise, settings.dimension),
        )
        for times, tone in LEVELS
    )
    x = Axis("distance of the negative", 0, 2)
    variance = XYPlot("variance", "Variance of the gradient's direction", x, Axis("1 - |E u|²", 0, 1), curves)
    density = np.exp(log_density(DISTANCE, settings.dimension))
    density /= density.sum() * (DISTANCE[1] - DISTANCE[0])
    y = Axis("density", 0, 1.05 * float(density.max()))
    uniform = XYPlot("density", "Where negatives lie", x, y, (Series("", "first", DISTANCE, density),))
    lines = []
    for loss in ("contrastive", "triplet", "margin"):
        lines.append(heading_row(loss.capitalize()))
        losses = [lengths(data[name], settings)[loss] for name in SAMPLERS]
        active = tuple(100 * float((of_sampler > 0).mean()) for of_sampler in losses)
        lines.append(NumberRow(f"Active, {loss} (%)", "Draws with a loss above 0.", active, 1))
        noise = tuple(
            noise_of(data[name], of_sampler, settings) for name, of_sampler in zip(SAMPLERS, losses, strict=True)
        )
        lines.append(NumberRow(f"Noise, {loss}", "Variance of the direction of active draws.", noise, 3))
    lines.append(heading_row("All losses"))
    lines.append(NumberRow("Mean distance", "Of the draws.", tuple(float(data[name].mean()) for name in SAMPLERS), 3))
    table = NumberTable("samplers", "Samplers", tuple(SAMPLERS), tuple(lines), badges=False)
    return Panel(title="Gradient variance of samplers", head=(held(settings),), rows=((variance, uniform), (table,)))


CHART: Final = Chart(
    view="losslab",
    label="Sampling",
    question="How noisy is the gradient of the negatives that a sampler draws?",
    cost="Computed from its settings alone: no data are read.",
    method=METHOD,
    settings=SamplingVarianceSettings,
    needs="none",
    compute=compute,
    draw=draw,
)
