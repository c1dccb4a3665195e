"""A momentum encoder and a queue of its keys: MoCo, and the part of it that PCL shares."""

from __future__ import annotations

from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from trainer.device import sent
from trainer.losses import moco
from trainer.methods.batch import Batch
from trainer.methods.method import Material, generator_of, needed
from trainer.methods.two_views import Rows, TwoViews, move, slow_copy
from trainer.models import TwoTowers, has_batch_norm


class MomentumQueue(TwoViews):
    """Queries of one view, keys of the other by a momentum encoder; encoder and queue are buffers of the checkpoint.

    Where the tower has batch norms, keys pass in shuffled groups: MoCo's shuffling between devices (He et al., 2020,
    https://arxiv.org/abs/1911.05722, section 3.3) done on one. Otherwise a query and its key, normalized by the
    statistics of one and the same batch, could be matched by these statistics alone.
    """

    shuffles_keys: ClassVar[bool] = True
    queue: Tensor
    oldest: Tensor
    slow_tower: nn.Module

    def __init__(self, choice: Any, material: Material | None) -> None:
        super().__init__(choice, material)
        tower = needed(material).towers.visual
        assert tower is not None
        self.projector = nn.Sequential(
            nn.Linear(self._width, choice.hidden_dim), nn.ReLU(), nn.Linear(choice.hidden_dim, choice.projection_dim)
        )
        self.slow_tower = slow_copy(tower)
        self.slow_projector = slow_copy(self.projector)
        self.register_buffer("queue", F.normalize(torch.randn(choice.queue, choice.projection_dim), dim=1))
        self.register_buffer("oldest", torch.tensor(0))
        self._keys = self.queue[:0]
        self._groups = choice.key_groups if has_batch_norm(self.slow_tower) else 1

    def embed(self, towers: TwoTowers, batch: Batch) -> Rows:
        """Return unit queries of one view, and unit keys of the other by the momentum encoder."""
        assert batch.images is not None
        query = F.normalize(self.projector(towers.features(batch.images)).float(), dim=1)
        with torch.no_grad():
            key = F.normalize(self.slow_projector(self._slow(batch)).float(), dim=1)
        return query, key

    def _slow(self, batch: Batch) -> Float[Tensor, "n d"]:
        """Return the other view by the momentum encoder, with batch norms over one shuffled group at a time."""
        views = batch.other_view
        assert views is not None
        groups = min(self._groups, len(views) // 2)
        if groups < 2:
            return self.slow_tower(views)
        generator = generator_of(self._seed, batch.step, torch.device("cpu"))
        order = sent(torch.randperm(len(views), generator=generator), views.device)
        rows = torch.cat([self.slow_tower(part) for part in views[order].tensor_split(groups)])
        return rows[order.argsort()]

    @property
    def inv_tau(self) -> float:
        """The fixed inverse temperature of the instance term."""
        return self._choice.inv_tau

    def follow(self, towers: TwoTowers, done: float, discarded: Float[Tensor, ""] | None = None) -> None:
        """Update the momentum encoder, and replace the oldest keys of the queue by the batch's."""
        assert towers.visual is not None
        move(self.slow_tower, towers.visual, self._choice.momentum, discarded)
        move(self.slow_projector, self.projector, self._choice.momentum, discarded)
        # Where the oldest keys are, the device alone has to know.
        slots = (self.oldest + torch.arange(len(self._keys), device=self.queue.device)) % len(self.queue)
        keys = self._keys
        moved: int | Tensor = len(keys)
        if discarded is not None:
            keys = torch.where(discarded > 0, self.queue[slots], keys)
            moved = (len(keys) * (1 - discarded)).long()
        self.queue.index_copy_(0, slots, keys)
        self.oldest.add_(moved).remainder_(len(self.queue))


class MocoViews(MomentumQueue):
    """MoCo: the key of the same image among all keys of the queue."""

    def compare(self, embedded: Rows, batch: Batch) -> Float[Tensor, ""]:
        """Return InfoNCE against the queue."""
        query, key = embedded
        self._keys = key.detach()
        return moco(query, self._keys, self.queue, self._choice.inv_tau)
