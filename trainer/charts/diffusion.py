"""Forward diffusion: a picture and a density under more and more noise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from jaxtyping import Float
from msgspec import Struct

from trainer.analysis.diffusion import STEPS, cosine_alpha_bar, noised, smoothed_density
from trainer.charts.augmentations import SIZE, bytes_of, read_picture_option
from trainer.charts.marks import (
    Axis,
    HeatMap,
    ImageRow,
    NumberRow,
    NumberTable,
    Panel,
    RowImage,
    Series,
    XYPlot,
    one_number,
)
from trainer.charts.settings import held
from trainer.charts.spec import Chart, Progress, Request
from trainer.config.fields import option
from trainer.store import Workspace

METHOD: Final = """\
The forward process adds Gaussian noise until nothing is left: x_t = √ᾱ_t x_0 + √(1 − ᾱ_t) ε, a draw of the \
diffusion kernel q(x_t | x_0) = N(√ᾱ_t x_0, (1 − ᾱ_t) I) (Ho et al., 2020, https://arxiv.org/abs/2006.11239, \
equation 4), with the cosine schedule ᾱ_t that decoders are trained with (Nichol and Dhariwal, 2021, equation 17). \
The density of x_t is that of x_0, shrunk by √ᾱ_t and smoothed by the noise: here of a mixture of two Gaussians, in \
closed form. A decoder learns the way back; Decode shows what it draws."""

LEVELS: Final = (0, 100, 200, 300, 400, 500, 700, 1_000)
X: Final = np.linspace(-4, 4, 321)
MAPPED: Final = 101
"""Levels of the map of densities."""


@dataclass(frozen=True)
class DiffusionSettings:
    """The level, the picture and the mixture."""

    level: int = option(300, "Level t", "0: the picture; 1,000: noise.", low=0, high=STEPS, redraws=True)
    picture: str = option("", "Picture", "Path of an image; empty: a drawn scene.")
    distance: float = option(3.0, "Distance of the modes", "Of the mixture.", low=0.0, high=5.0, redraws=True)
    spread: float = option(0.25, "Width of a mode", "Its standard deviation.", low=0.05, high=1.0, redraws=True)
    share: float = option(0.35, "Share of the left mode", "Of the mixture.", low=0.0, high=1.0, redraws=True)
    seed: int = option(0, "Seed", "Of the noise.", low=0, high=9999)


class NoisedPicture(Struct, frozen=True):
    """A picture of -1 to 1, and the noise that is added to it."""

    picture: Float[np.ndarray, "h w 3"]
    noise: Float[np.ndarray, "h w 3"]


def compute(
    _workspace: Workspace | None, _request: Request, settings: DiffusionSettings, _progress: Progress
) -> NoisedPicture:
    """Return the picture and its noise.

    Raises:
        ChartError: The picture cannot be read.
    """
    picture = 2 * read_picture_option(settings.picture) - 1
    return NoisedPicture(picture, np.random.default_rng(settings.seed).standard_normal((SIZE, SIZE, 3)))


def draw(data: NoisedPicture, settings: DiffusionSettings) -> Panel:
    """Draw the picture at some levels and at the chosen one, and the smoothed densities."""
    alpha_bar = cosine_alpha_bar()
    left = float(alpha_bar[settings.level])
    levels = sorted({*LEVELS, settings.level})
    cells = tuple(_cell(data, float(alpha_bar[t]), f"t = {t:,}", chosen=t == settings.level) for t in levels)
    facts = (
        one_number("√ᾱ", np.sqrt(left), 4, "Share of the picture in x_t."),
        one_number("√(1 − ᾱ)", np.sqrt(1 - left), 4, "Standard deviation of the noise in x_t."),
        NumberRow("Signal to noise", "ᾱ / (1 − ᾱ).", (left / (1 - left) if left < 1 else "∞",), 4),
    )
    rows = (
        (ImageRow("forward", "Forward: q(x_t | x_0)", "quiet", cells),),
        (_density(settings, left), _schedule(alpha_bar, settings)),
        (_map(alpha_bar, settings), NumberTable("numbers", "At this level", ("value",), facts, badges=False)),
    )
    return Panel(title="Diffusion", head=(held(settings),), rows=rows)


def _cell(data: NoisedPicture, alpha_bar: float, name: str, *, chosen: bool) -> RowImage:
    pixels = bytes_of(np.clip((noised(data.picture, data.noise, alpha_bar) + 1) / 2, 0, 1))
    caption = f"√ᾱ = {np.sqrt(alpha_bar):.2f}"
    return RowImage(-1, "", caption, name, strong=chosen, pixels=pixels)


def _mixture(settings: DiffusionSettings, alpha_bar: float) -> Float[np.ndarray, " m"]:
    centers = np.array([-settings.distance / 2, settings.distance / 2])
    weights = np.array([settings.share, 1 - settings.share])
    return smoothed_density(X, centers, np.full(2, settings.spread), weights, alpha_bar)


def _density(settings: DiffusionSettings, alpha_bar: float) -> XYPlot:
    start, now, end = (_mixture(settings, share) for share in (1.0, alpha_bar, 0.0))
    curves = (
        Series("x_0", "quiet", X, start, dashed=True),
        Series("N(0, 1)", "second", X, end, dashed=True),
        Series(f"x_t, t = {settings.level:,}", "first", X, now),
    )
    y = Axis("density", 0, 1.08 * max(float(start.max()), float(now.max()), float(end.max())))
    return XYPlot("density", "Smoothed density", Axis("x", float(X[0]), float(X[-1])), y, curves)


def _schedule(alpha_bar: Float[np.ndarray, " levels"], settings: DiffusionSettings) -> XYPlot:
    level = np.arange(len(alpha_bar), dtype=float)
    curves = (
        Series("picture √ᾱ", "first", level, np.sqrt(alpha_bar)),
        Series("noise √(1 − ᾱ)", "second", level, np.sqrt(1 - alpha_bar)),
    )
    x = Axis("level t", 0, STEPS, integer=True)
    return XYPlot("schedule", "Picture and noise", x, Axis("share", 0, 1.05), curves, cursor=float(settings.level))


def _map(alpha_bar: Float[np.ndarray, " levels"], settings: DiffusionSettings) -> HeatMap:
    levels = np.linspace(0, STEPS, MAPPED).astype(int)
    values = np.stack([_mixture(settings, float(alpha_bar[t])) for t in levels], axis=1)[::-1]
    x_ticks = tuple((float(at), f"{levels[at]:,}") for at in range(0, MAPPED, 25))
    y_ticks = tuple((float(at), f"{X[::-1][at]:.0f}".replace("-", "−")) for at in range(0, len(X), 80))
    high = float(np.quantile(values, 0.99))
    return HeatMap(
        "densities", "Densities of all levels", values, "level t", "x", x_ticks, y_ticks, 0.0, high, "density"
    )


CHART: Final = Chart(
    view="losslab",
    label="Diffusion",
    question="What does the noise of a diffusion model leave of a picture, and of a density?",
    cost="Computed from its settings alone: no data are read.",
    method=METHOD,
    settings=DiffusionSettings,
    needs="none",
    compute=compute,
    draw=draw,
)
