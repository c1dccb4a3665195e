"""Two augmented views of each image: SimCLR, DCL, SimSiam, BYOL and SwAV."""

from __future__ import annotations

import copy
import math
from typing import Any, ClassVar

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, Int, UInt8
from torch import Tensor, nn

from trainer import config
from trainer.data.view_effects import ViewEffects
from trainer.data.views import ViewStrength, augmented_view
from trainer.losses import byol, dcl, margin_triplet, nt_logistic, nt_xent, simsiam, swav
from trainer.methods.batch import Batch
from trainer.methods.method import Material, Method, needed, unless
from trainer.models import TwoTowers

Rows = tuple[Float[Tensor, "n d"], ...]


class TwoViews(Method):
    """Compares projections of two views; evaluation uses the layer before."""

    views: ClassVar[int] = 2

    def __init__(self, choice: Any, material: Material | None) -> None:
        super().__init__()
        material = needed(material)
        self._choice = choice
        self._seed = material.run.seed
        self._width = material.sizes.embed_dim
        self._look = view_strength(choice)

    def augmented(
        self, images: UInt8[Tensor, "n h w 3"], rows: Int[np.ndarray, " n"], *, epoch: int, view: int
    ) -> Float[Tensor, "n 3 h w"]:
        """Return one of the two views of each image in an epoch."""
        return augmented_view(images, rows, self._look, seed=self._seed, epoch=epoch, view=view)


class ProjectedViews(TwoViews):
    """Unit projections of both views by a projector without batch norm."""

    def __init__(self, choice: Any, material: Material | None) -> None:
        super().__init__(choice, material)
        self.projector = _projector(choice, self._width)

    def embed(self, towers: TwoTowers, batch: Batch) -> Rows:
        """Return unit projections of both views."""
        return tuple(
            F.normalize(self.projector(towers.features(view)).float(), dim=1)
            for view in (batch.images, batch.other_view)
        )


class SimClrViews(ProjectedViews):
    """SimCLR: one of the paper's three losses."""

    def compare(self, embedded: Rows, batch: Batch) -> Float[Tensor, ""]:
        """Return the configured loss."""
        choice, (first, second) = self._choice, embedded
        if choice.loss == "nt_xent":
            return nt_xent(first, second, choice.inv_tau)
        semi_hard = choice.negatives == "semi-hard"
        if choice.loss == "margin_triplet":
            return margin_triplet(first, second, choice.margin, semi_hard=semi_hard)
        return nt_logistic(first, second, choice.inv_tau, semi_hard=semi_hard)

    @property
    def inv_tau(self) -> float | None:
        """The fixed inverse temperature; None for the margin triplet."""
        return None if self._choice.loss == "margin_triplet" else self._choice.inv_tau


class DclViews(ProjectedViews):
    """DCL, or DCLW with weighted pairs."""

    def compare(self, embedded: Rows, batch: Batch) -> Float[Tensor, ""]:
        """Return the loss without the match in the denominator."""
        first, second = embedded
        return dcl(first, second, self._choice.inv_tau, sigma=self._choice.sigma if self._choice.weighted else None)

    @property
    def inv_tau(self) -> float:
        """The fixed inverse temperature."""
        return self._choice.inv_tau


class SwavViews(ProjectedViews):
    """SwAV: the prototypes are learned, and normalized after every step."""

    def __init__(self, choice: config.Swav, material: Material | None) -> None:
        super().__init__(choice, material)
        self.prototypes = nn.Parameter(F.normalize(torch.randn(choice.prototypes, choice.projection_dim), dim=1))

    def compare(self, embedded: Rows, batch: Batch) -> Float[Tensor, ""]:
        """Return the loss of each view's prediction of the other's code; prototypes are frozen in the first steps."""
        choice = self._choice
        prototypes = self.prototypes.detach() if batch.step < choice.frozen_steps else self.prototypes
        first, second = embedded
        return swav(first, second, prototypes, choice.inv_tau, epsilon=choice.epsilon, rounds=choice.rounds)

    @property
    def inv_tau(self) -> float:
        """The fixed inverse temperature of the prediction."""
        return self._choice.inv_tau

    def after_step(self) -> None:
        """Normalize the prototypes."""
        with torch.no_grad():
            self.prototypes.copy_(F.normalize(self.prototypes, dim=1))


class SimSiamViews(TwoViews):
    """SimSiam: three-layer projector, bottleneck predictor, batch norms in both."""

    def __init__(self, choice: config.SimSiam, material: Material | None) -> None:
        super().__init__(choice, material)
        hidden, width = choice.hidden_dim, choice.projection_dim
        self.projector = nn.Sequential(
            *_normed(self._width, hidden), *_normed(hidden, hidden),
            nn.Linear(hidden, width, bias=False), nn.BatchNorm1d(width, affine=False),
        )  # fmt: skip
        self.predictor = _perceptron(width, choice.predictor_dim, width)

    def embed(self, towers: TwoTowers, batch: Batch) -> Rows:
        """Return predictions of both views, then projections of both."""
        projections = [self.projector(towers.features(view)) for view in (batch.images, batch.other_view)]
        return tuple(rows.float() for rows in (*map(self.predictor, projections), *projections))

    def compare(self, embedded: Rows, batch: Batch) -> Float[Tensor, ""]:
        """Return minus the mean cosine of predictions and the other view's projections."""
        return simsiam(*embedded)


class ByolViews(TwoViews):
    """BYOL: an online network with a predictor, and a moving average of it without one."""

    def __init__(self, choice: config.Byol, material: Material | None) -> None:
        super().__init__(choice, material)
        self.projector = _perceptron(self._width, choice.hidden_dim, choice.projection_dim)
        self.predictor = _perceptron(choice.projection_dim, choice.predictor_dim, choice.projection_dim)
        self.slow_tower = slow_copy(needed(material).towers.visual)
        self.slow_projector = slow_copy(self.projector)

    def embed(self, towers: TwoTowers, batch: Batch) -> Rows:
        """Return online predictions of both views, then the target network's projections of both."""
        views = (batch.images, batch.other_view)
        predictions = [self.predictor(self.projector(towers.features(view))) for view in views]
        with torch.no_grad():
            targets = [self.slow_projector(self.slow_tower(view)) for view in views]
        return tuple(rows.float() for rows in (*predictions, *targets))

    def compare(self, embedded: Rows, batch: Batch) -> Float[Tensor, ""]:
        """Return the squared distance of unit predictions and targets, both ways."""
        return byol(*embedded)

    def follow(self, towers: TwoTowers, done: float, discarded: Float[Tensor, ""] | None = None) -> None:
        """Update the target network with `momentum`, which rises to 1 along half a cosine."""
        keep = self._choice.momentum
        if self._choice.momentum_to_one:
            keep = 1 - (1 - keep) * (math.cos(math.pi * done) + 1) / 2
        move(self.slow_tower, towers.visual, keep, discarded)
        move(self.slow_projector, self.projector, keep, discarded)


def view_strength(choice: config.TwoViews) -> ViewStrength:
    """Return how strongly the views of an objective differ."""
    effects = ViewEffects(rotate=choice.rotate, sobel=choice.sobel, noise=choice.noise, cutout=choice.cutout)
    return ViewStrength(choice.smallest_crop, choice.color, choice.gray, choice.blur, choice.flip, effects=effects)


def slow_copy(module: nn.Module) -> nn.Module:
    """Return a copy without gradients."""
    return copy.deepcopy(module).requires_grad_(False)


@torch.no_grad()
def move(slow: nn.Module, fast: nn.Module, keep: float, discarded: Float[Tensor, ""] | None = None) -> None:
    """Update `slow` as a moving average with weight `keep`; its batch statistics are not averaged.

    Args:
        slow: The average.
        fast: What it follows.
        keep: Weight of the average before the update.
        discarded: As of `Method.follow`.
    """
    share = unless(discarded, 1 - keep)
    for average, other in zip(slow.parameters(), fast.parameters(), strict=True):
        average.lerp_(other.detach(), share)


def _projector(choice: Any, width: int) -> nn.Module:
    """Return a projector without batch norm; SimCLR may do without its hidden layer, or without any."""
    kind = getattr(choice, "projector", "mlp")
    if kind == "none":
        return nn.Identity()
    if kind == "linear":
        return nn.Linear(width, choice.projection_dim)
    return nn.Sequential(
        nn.Linear(width, choice.hidden_dim), nn.ReLU(), nn.Linear(choice.hidden_dim, choice.projection_dim)
    )


def _perceptron(width: int, hidden: int, out: int) -> nn.Sequential:
    return nn.Sequential(*_normed(width, hidden), nn.Linear(hidden, out))


def _normed(width: int, out: int) -> tuple[nn.Module, ...]:
    return nn.Linear(width, out, bias=False), nn.BatchNorm1d(out), nn.ReLU()
