"""Two augmented views of each image: SimCLR, SimSiam and BYOL."""

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
from trainer.data.views import ViewStrength, augmented_view
from trainer.losses import byol, margin_triplet, nt_logistic, nt_xent, simsiam
from trainer.methods.batch import Batch
from trainer.methods.method import Material, Method, needed
from trainer.models import TwoTowers

Rows = tuple[Float[Tensor, "n d"], ...]


class TwoViews(Method):
    """Compares projections of two views; the embedding that is evaluated is the layer before."""

    views: ClassVar[int] = 2

    def __init__(self, choice: Any, material: Material | None) -> None:
        super().__init__()
        material = needed(material)
        self._choice = choice
        self._seed = material.run.seed
        self._width = material.sizes.embed_dim
        self._look = ViewStrength(choice.smallest_crop, choice.color, choice.gray, choice.blur, choice.flip)

    def augmented(
        self, images: UInt8[Tensor, "n h w 3"], rows: Int[np.ndarray, " n"], *, epoch: int, view: int
    ) -> Float[Tensor, "n 3 h w"]:
        """One of the two views of each image in an epoch."""
        return augmented_view(images, rows, self._look, seed=self._seed, epoch=epoch, view=view)


class SimClrViews(TwoViews):
    """SimCLR: a projector without batch norm, and one of the paper's three losses."""

    def __init__(self, choice: config.SimClr, material: Material | None) -> None:
        super().__init__(choice, material)
        self.projector = nn.Sequential(
            nn.Linear(self._width, choice.hidden_dim), nn.ReLU(), nn.Linear(choice.hidden_dim, choice.projection_dim)
        )

    def embed(self, towers: TwoTowers, batch: Batch) -> Rows:
        """Unit projections of both views."""
        return tuple(
            F.normalize(self.projector(towers.features(view)).float(), dim=1)
            for view in (batch.images, batch.other_view)
        )

    def compare(self, embedded: Rows, batch: Batch) -> Float[Tensor, ""]:
        """The loss that was chosen."""
        if self._choice.loss == "margin_triplet":
            return margin_triplet(*embedded, self._choice.margin)
        loss = nt_xent if self._choice.loss == "nt_xent" else nt_logistic
        return loss(*embedded, self._choice.inv_tau)

    @property
    def inv_tau(self) -> float | None:
        """The fixed inverse temperature; None for the margin triplet."""
        return None if self._choice.loss == "margin_triplet" else self._choice.inv_tau


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
        """Predictions of both views, then projections of both."""
        projections = [self.projector(towers.features(view)) for view in (batch.images, batch.other_view)]
        return tuple(rows.float() for rows in (*map(self.predictor, projections), *projections))

    def compare(self, embedded: Rows, batch: Batch) -> Float[Tensor, ""]:
        """Minus the mean cosine of predictions and the other view's projections."""
        return simsiam(*embedded)


class ByolViews(TwoViews):
    """BYOL: an online network with a predictor, and a slow copy of it without."""

    def __init__(self, choice: config.Byol, material: Material | None) -> None:
        super().__init__(choice, material)
        self.projector = _perceptron(self._width, choice.hidden_dim, choice.projection_dim)
        self.predictor = _perceptron(choice.projection_dim, choice.predictor_dim, choice.projection_dim)
        self.slow_tower = slow_copy(needed(material).towers.visual)
        self.slow_projector = slow_copy(self.projector)

    def embed(self, towers: TwoTowers, batch: Batch) -> Rows:
        """Online predictions of both views, then the slow copy's projections of both."""
        views = (batch.images, batch.other_view)
        predictions = [self.predictor(self.projector(towers.features(view))) for view in views]
        with torch.no_grad():
            targets = [self.slow_projector(self.slow_tower(view)) for view in views]
        return tuple(rows.float() for rows in (*predictions, *targets))

    def compare(self, embedded: Rows, batch: Batch) -> Float[Tensor, ""]:
        """Squared distance of unit predictions and targets, both ways."""
        return byol(*embedded)

    def follow(self, towers: TwoTowers, done: float) -> None:
        """The slow copy keeps `momentum` of itself, a share that rises to 1 along half a cosine."""
        keep = self._choice.momentum
        if self._choice.momentum_to_one:
            keep = 1 - (1 - keep) * (math.cos(math.pi * done) + 1) / 2
        move(self.slow_tower, towers.visual, keep)
        move(self.slow_projector, self.projector, keep)


def slow_copy(module: nn.Module) -> nn.Module:
    """A copy that no optimizer moves."""
    return copy.deepcopy(module).requires_grad_(False)


@torch.no_grad()
def move(slow: nn.Module, fast: nn.Module, keep: float) -> None:
    """Every parameter of `slow` becomes `keep` of itself and the rest of `fast`; batch statistics stay its own."""
    for own, other in zip(slow.parameters(), fast.parameters(), strict=True):
        own.lerp_(other.detach(), 1 - keep)


def _perceptron(width: int, hidden: int, out: int) -> nn.Sequential:
    return nn.Sequential(*_normed(width, hidden), nn.Linear(hidden, out))


def _normed(width: int, out: int) -> tuple[nn.Module, ...]:
    return nn.Linear(width, out, bias=False), nn.BatchNorm1d(out), nn.ReLU()
