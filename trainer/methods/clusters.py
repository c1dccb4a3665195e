"""k-means in torch, on the device of the points."""

from __future__ import annotations

from typing import Final

import torch
from jaxtyping import Float, Int
from torch import Tensor

ROUNDS: Final = 20
_POINTS_AT_ONCE: Final = 8192


def k_means(
    points: Float[Tensor, "n d"], clusters: int, *, generator: torch.Generator, rounds: int = ROUNDS
) -> tuple[Float[Tensor, "k d"], Int[Tensor, " n"], Float[Tensor, " n"]]:
    """Return centers, each point's cluster, and its distance to the center, after Lloyd's iterations.

    Starts at points drawn at random; a cluster that loses all its points starts again at the point farthest from
    its center. Lloyd, Least squares quantization in PCM, 1982, https://doi.org/10.1109/TIT.1982.1056489

    Args:
        points: At least as many as clusters.
        clusters: How many.
        generator: On the CPU; decides the start.
        rounds: Updates of the centers, fewer once nothing changes.
    """
    start = torch.randperm(len(points), generator=generator)[:clusters].to(points.device)
    centers = points[start].clone()
    nearest, distance = _assigned(points, centers)
    for _ in range(rounds):
        count = torch.bincount(nearest, minlength=clusters)
        total = torch.zeros_like(centers).index_add_(0, nearest, points)
        centers = total / count.clamp(min=1)[:, None]
        empty = torch.nonzero(count == 0)[:, 0]
        centers[empty] = points[distance.topk(len(empty)).indices]
        before = nearest
        nearest, distance = _assigned(points, centers)
        if torch.equal(before, nearest):
            break
    return centers, nearest, distance


def _assigned(
    points: Float[Tensor, "n d"], centers: Float[Tensor, "k d"]
) -> tuple[Int[Tensor, " n"], Float[Tensor, " n"]]:
    nearest = [torch.cdist(part, centers).min(dim=1) for part in points.split(_POINTS_AT_ONCE)]
    return torch.cat([part.indices for part in nearest]), torch.cat([part.values for part in nearest])
