"""PCL: a momentum encoder, a queue of its past embeddings, and clusters of all images, updated every epoch."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from trainer import config, device
from trainer.analysis.prototypes import purity_of
from trainer.data.augment import normalized
from trainer.errors import UserError
from trainer.losses import concentration, proto_nce
from trainer.methods.batch import Batch
from trainer.methods.clusters import judge_clusterings, k_means
from trainer.methods.method import Material, needed
from trainer.methods.momentum_queue import MomentumQueue
from trainer.methods.two_views import Rows

_IMAGES_AT_ONCE: Final = 256


class PclViews(MomentumQueue):
    """PCL; in addition to MoCo's encoder and queue, prototypes and assignments are buffers of the checkpoint.

    Two things differ from https://github.com/salesforce/PCL. All other prototypes of a clustering are negatives, where
    it draws as many as its queue is long; and k-means runs once a clustering, where it keeps the best of five.
    """

    def __init__(self, choice: config.Pcl, material: Material | None) -> None:
        self._pairs = needed(material).pairs
        sizes = [choice.clusters * 2**level for level in range(choice.clusterings)]
        if sizes[-1] > len(self._pairs):
            raise UserError(
                f"The finest of {choice.clusterings} clusterings has {sizes[-1]:,} clusters for {len(self._pairs):,} "
                "training pairs. Choose fewer clusters or clusterings."
            )
        super().__init__(choice, material)
        width, n = choice.projection_dim, len(self._pairs)
        self.register_buffer("clustered", torch.tensor(False))
        self._has_clusters = False
        self.epoch_numbers: dict[str, float] = {}
        for level, size in enumerate(sizes):
            self.register_buffer(f"prototypes_{level}", torch.zeros(size, width))
            self.register_buffer(f"concentrations_{level}", torch.ones(size))
            self.register_buffer(f"assignments_{level}", torch.zeros(n, dtype=torch.long))

    def compare(self, embedded: Rows, batch: Batch) -> Float[Tensor, ""]:
        """Return InfoNCE against the queue, and, once there are clusters, against their prototypes."""
        query, key = embedded
        self._keys = key.detach()
        inv_tau = self._choice.inv_tau
        if not self._has_clusters:
            return proto_nce(query, self._keys, self.queue, (), (), (), inv_tau=inv_tau)
        assert batch.rows is not None
        levels = [self._level(level) for level in range(self._choice.clusterings)]
        prototypes, concentrations, assignments = zip(*levels, strict=True)
        clusters = [assigned[device.sent(batch.rows, assigned.device)] for assigned in assignments]
        return proto_nce(query, self._keys, self.queue, prototypes, clusters, concentrations, inv_tau=inv_tau)

    def begin_epoch(self, epoch: int) -> None:
        """Perform the E-step after the warm-up: cluster all training images by the momentum encoder."""
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
        self._has_clusters = True
        self.epoch_numbers = self._judged(points, epoch)

    def _judged(self, points: Float[Tensor, "n d"], epoch: int) -> dict[str, float]:
        levels = [self._level(level) for level in range(self._choice.clusterings)]
        generator = torch.Generator().manual_seed(1_000_003 * self._seed + epoch)
        shuffled = torch.randperm(len(points), generator=generator)
        every = judge_clusterings(points, levels, shuffled)
        numbers: dict[str, float] = {}
        for (prototypes, _, assignments), judged in zip(levels, every, strict=True):
            purity, _ = purity_of(assignments.cpu().numpy(), self._pairs.labels, len(prototypes))
            named = {"purity": purity} | judged
            numbers |= {
                f"clusters{len(prototypes)}_{name}": number for name, number in named.items() if math.isfinite(number)
            }
        return numbers

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *rest: Any) -> None:
        """Load the buffers; whether there are clusters is read from the checkpoint, not from the device every step."""
        super()._load_from_state_dict(state_dict, prefix, *rest)
        self._has_clusters = bool(state_dict.get(f"{prefix}clustered", False))

    def _level(self, level: int) -> tuple[Tensor, Tensor, Tensor]:
        names = ("prototypes", "concentrations", "assignments")
        return tuple(getattr(self, f"{name}_{level}") for name in names)  # type: ignore[return-value]

    @torch.no_grad()
    def _all_images(self) -> Float[Tensor, "n d"]:
        """Return unit embeddings of all training images, uncropped."""
        slow = (self.slow_tower, self.slow_projector)
        for module in slow:
            module.eval()
        images, rows = self._pairs.images, []
        for start in range(0, len(images), _IMAGES_AT_ONCE):
            pixels = device.sent(np.array(images[start : start + _IMAGES_AT_ONCE]), self.queue.device)
            rows.append(F.normalize(slow[1](slow[0](normalized(pixels))).float(), dim=1))
        for module in slow:
            module.train()
        return torch.cat(rows)
