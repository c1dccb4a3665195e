"""PCL: a momentum encoder, a queue of its past embeddings, and clusters of all images, found anew every epoch."""

from __future__ import annotations

from typing import Final

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from trainer import config
from trainer.data.augment import normalized
from trainer.losses import concentration, proto_nce
from trainer.methods.batch import Batch
from trainer.methods.clusters import k_means
from trainer.methods.method import Material, MethodError, generator_of, needed
from trainer.methods.two_views import Rows, TwoViews, move, slow_copy
from trainer.models import TwoTowers, has_batch_norm

_IMAGES_AT_ONCE: Final = 256


class PclViews(TwoViews):
    """PCL; the momentum encoder, the queue, the prototypes and who belongs to them are buffers of the checkpoint.

    Where the tower has batch norms, keys pass in shuffled groups: MoCo's shuffling between devices (He et al., 2020,
    https://arxiv.org/abs/1911.05722, section 3.3) done on one. Otherwise a query and its key, normalized by the
    statistics of one and the same batch, could be matched by these statistics alone.

    Two things differ from https://github.com/salesforce/PCL. All other prototypes of a clustering are negatives, where
    it draws as many as its queue is long; and k-means runs once a clustering, where it keeps the best of five.
    """

    def __init__(self, choice: config.Pcl, material: Material | None) -> None:
        super().__init__(choice, material)
        material = needed(material)
        self._pairs = material.pairs
        sizes = [choice.clusters * 2**level for level in range(choice.clusterings)]
        if sizes[-1] > len(self._pairs):
            raise MethodError(
                f"The finest of {choice.clusterings} clusterings has {sizes[-1]:,} clusters for {len(self._pairs):,} "
                "training pairs. Choose fewer clusters or clusterings."
            )
        self.projector = nn.Sequential(
            nn.Linear(self._width, choice.hidden_dim), nn.ReLU(), nn.Linear(choice.hidden_dim, choice.projection_dim)
        )
        self.slow_tower = slow_copy(material.towers.visual)
        self.slow_projector = slow_copy(self.projector)
        width, n = choice.projection_dim, len(self._pairs)
        self.register_buffer("queue", F.normalize(torch.randn(choice.queue, width), dim=1))
        self.register_buffer("oldest", torch.tensor(0))
        self.register_buffer("clustered", torch.tensor(False))
        for level, size in enumerate(sizes):
            self.register_buffer(f"prototypes_{level}", torch.zeros(size, width))
            self.register_buffer(f"concentrations_{level}", torch.ones(size))
            self.register_buffer(f"assignments_{level}", torch.zeros(n, dtype=torch.long))
        self._keys: Float[Tensor, "n d"] | None = None
        self._groups = choice.key_groups if has_batch_norm(self.slow_tower) else 1

    def embed(self, towers: TwoTowers, batch: Batch) -> Rows:
        """Unit queries of one view, unit keys of the other by the momentum encoder."""
        query = F.normalize(self.projector(towers.features(batch.images)).float(), dim=1)
        with torch.no_grad():
            key = F.normalize(self.slow_projector(self._slow(batch)).float(), dim=1)
        return query, key

    def _slow(self, batch: Batch) -> Float[Tensor, "n d"]:
        """The other view by the momentum encoder, its batch norms seeing one shuffled group at a time."""
        views = batch.other_view
        groups = min(self._groups, len(views) // 2)
        if groups < 2:
            return self.slow_tower(views)
        generator = generator_of(self._seed, batch.step, torch.device("cpu"))
        order = torch.randperm(len(views), generator=generator).to(views.device)
        rows = torch.cat([self.slow_tower(part) for part in views[order].tensor_split(groups)])
        return rows[order.argsort()]

    def compare(self, embedded: Rows, batch: Batch) -> Float[Tensor, ""]:
        """InfoNCE against the queue, and, once there are clusters, against their prototypes."""
        query, key = embedded
        self._keys = key.detach()
        inv_tau = self._choice.inv_tau
        if not self.clustered:
            return proto_nce(query, self._keys, self.queue, (), (), (), inv_tau=inv_tau)
        found = [self._level(level) for level in range(self._choice.clusterings)]
        prototypes, concentrations, assignments = zip(*found, strict=True)
        own = [assigned[batch.rows] for assigned in assignments]
        return proto_nce(query, self._keys, self.queue, prototypes, own, concentrations, inv_tau=inv_tau)

    @property
    def inv_tau(self) -> float:
        """The fixed inverse temperature of the instance term."""
        return self._choice.inv_tau

    def follow(self, towers: TwoTowers, done: float) -> None:
        """The momentum encoder moves, and the batch's keys replace the oldest of the queue."""
        move(self.slow_tower, towers.visual, self._choice.momentum)
        move(self.slow_projector, self.projector, self._choice.momentum)
        start = int(self.oldest)
        self.queue[start : start + len(self._keys)] = self._keys
        self.oldest.fill_((start + len(self._keys)) % len(self.queue))

    def begin_epoch(self, epoch: int) -> None:
        """The E-step: clusters of all training images as the momentum encoder sees them, after the warm-up."""
        if epoch < self._choice.warmup_epochs:
            return
        points = self._all_images()
        for level in range(self._choice.clusterings):
            prototypes, concentrations, assignments = self._level(level)
            generator = torch.Generator().manual_seed(1_000_003 * self._seed + 1_009 * epoch + level)
            centers, nearest, distance = k_means(points, len(prototypes), generator=generator)
            concentrations.copy_(concentration(distance, nearest, len(centers), tau=1 / self._choice.inv_tau))
            prototypes.copy_(F.normalize(centers, dim=1))
            assignments.copy_(nearest)
        self.clustered.fill_(True)

    def _level(self, level: int) -> tuple[Tensor, Tensor, Tensor]:
        names = ("prototypes", "concentrations", "assignments")
        return tuple(getattr(self, f"{name}_{level}") for name in names)  # type: ignore[return-value]

    @torch.no_grad()
    def _all_images(self) -> Float[Tensor, "n d"]:
        """Unit embeddings of all training images, uncropped."""
        slow = (self.slow_tower, self.slow_projector)
        for module in slow:
            module.eval()
        images, rows = self._pairs.images, []
        for start in range(0, len(images), _IMAGES_AT_ONCE):
            pixels = torch.from_numpy(np.array(images[start : start + _IMAGES_AT_ONCE])).to(self.queue.device)
            rows.append(F.normalize(slow[1](slow[0](normalized(pixels))).float(), dim=1))
        for module in slow:
            module.train()
        return torch.cat(rows)
