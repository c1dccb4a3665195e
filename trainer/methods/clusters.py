"""k-means in torch, on the device of the points."""

from __future__ import annotations

from typing import Final

import torch
from jaxtyping import Float, Int
from torch import Tensor

from trainer.device import sent

ROUNDS: Final = 20
_POINTS_AT_ONCE: Final = 8192


def k_means(
    points: Float[Tensor, "n d"], clusters: int, *, generator: torch.Generator, rounds: int = ROUNDS
) -> tuple[Float[Tensor, "k d"], Int[Tensor, " n"], Float[Tensor, " n"]]:
    """Return centers, each point's cluster, and its distance to the center, after Lloyd's iterations.

    Starts at points drawn at random; a cluster that loses all its points starts again at the point farthest from
    its center. A device is waited for once a round. Lloyd, Least squares quantization in PCM, 1982, https://doi.org/10.1109/TIT.1982.1056489

    Args:
        points: At least as many as clusters.
        clusters: How many.
        generator: On the CPU; decides the start.
        rounds: Updates of the centers, fewer once nothing changes.
    """
    start = torch.randperm(len(points), generator=generator)[:clusters]
    centers = points[sent(start, points.device)].clone()
    nearest, distance = _assigned(points, centers)
    before = torch.full_like(nearest, -1)
    for _ in range(rounds):
        count = nearest.new_zeros(clusters).index_add_(0, nearest, torch.ones_like(nearest))
        changed, lost = torch.stack(((nearest != before).any().long(), (count == 0).sum())).tolist()
        if not changed:
            break
        total = torch.zeros_like(centers).index_add_(0, nearest, points)
        centers = total / count.clamp(min=1)[:, None]
        if lost:
            empty = (count == 0).long().argsort(descending=True, stable=True)[:lost]
            centers[empty] = points[distance.topk(lost).indices]
        before = nearest
        nearest, distance = _assigned(points, centers)
    return centers, nearest, distance


def _assigned(
    points: Float[Tensor, "n d"], centers: Float[Tensor, "k d"]
) -> tuple[Int[Tensor, " n"], Float[Tensor, " n"]]:
    nearest = [torch.cdist(part, centers).min(dim=1) for part in points.split(_POINTS_AT_ONCE)]
    return torch.cat([part.indices for part in nearest]), torch.cat([part.values for part in nearest])
