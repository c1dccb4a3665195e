"""k-means in torch, on the device of the points, and what one bad clustering among several does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import torch
from jaxtyping import Float, Int
from torch import Tensor

from trainer.device import sent

ROUNDS: Final = 20
_POINTS_AT_ONCE: Final = 8192


def k_means(
    points: Float[Tensor, "n d"], clusters: int, *, generator: torch.Generator
) -> tuple[Float[Tensor, "k d"], Int[Tensor, " n"], Float[Tensor, " n"]]:
    """Return centers, each point's cluster, and its distance to the center, after Lloyd's iterations.

    Starts at points drawn at random; a cluster that loses all its points starts again at the point farthest from
    its center. A device is waited for once a round. Lloyd, Least squares quantization in PCM, 1982, https://doi.org/10.1109/TIT.1982.1056489

    Args:
        points: At least as many as clusters.
        generator: On the CPU; decides the start.
    """
    start = torch.randperm(len(points), generator=generator)[:clusters]
    centers = points[sent(start, points.device)].clone()
    nearest, distance = _assigned(points, centers)
    before = torch.full_like(nearest, -1)
    for _ in range(ROUNDS):
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


Clustering = tuple[Float[Tensor, "k d"], Float[Tensor, " k"], Int[Tensor, " n"]]
"""Unit prototypes, their concentrations, and the cluster of each point."""


def judge_clusterings(
    points: Float[Tensor, "n d"], clusterings: Sequence[Clustering], shuffled: Int[Tensor, " n"]
) -> list[dict[str, float]]:
    """Return of each clustering its loss, and what its being random does to the mean over all.

    The mean of ProtoNCE's terms over M clusterings (Li et al., PCL, 2021, https://arxiv.org/abs/2005.04966, equation
    11) is what makes one bad clustering bearable: its gradient is a part in M of the whole.

    Args:
        points: Unit rows, embeddings of all images.
        clusterings: M of them.
        shuffled: An order of the points; a random clustering is a good one whose clusters are given in this order.

    Returns:
        `loss`: mean cross-entropy of the own prototype. `random_loss`: the same of the random clustering.
        `random_cosine`: cosine between the gradients of the mean over all M on the points, with the random one in the
        place of this one and without.
    """
    points = points.detach()
    order = sent(shuffled, points.device)
    losses, gradients = zip(*(_term(points, *clustering) for clustering in clusterings), strict=True)
    mean_gradient = torch.stack(gradients).mean(dim=0)
    judged = []
    for index, (prototypes, concentrations, assigned) in enumerate(clusterings):
        loss, gradient = _term(points, prototypes, concentrations, assigned[order])
        other = mean_gradient + (gradient - gradients[index]) / len(clusterings)
        cosine = torch.nn.functional.cosine_similarity(mean_gradient.flatten(), other.flatten(), dim=0)
        judged.append({"loss": losses[index], "random_loss": loss, "random_cosine": cosine.item()})
    return judged


def _term(
    points: Float[Tensor, "n d"],
    prototypes: Float[Tensor, "k d"],
    concentrations: Float[Tensor, " k"],
    assigned: Int[Tensor, " n"],
) -> tuple[float, Float[Tensor, "n d"]]:
    """Return the mean cross-entropy of the own prototype, and its gradient on the points."""
    log_shares = torch.log_softmax(points @ prototypes.T / concentrations, dim=1)
    index = assigned[:, None]
    pull = log_shares.exp().scatter_add(1, index, -torch.ones_like(log_shares[:, :1])) / concentrations
    return -log_shares.gather(1, index).mean().item(), pull @ prototypes / len(points)


def _assigned(
    points: Float[Tensor, "n d"], centers: Float[Tensor, "k d"]
) -> tuple[Int[Tensor, " n"], Float[Tensor, " n"]]:
    nearest = [torch.cdist(part, centers).min(dim=1) for part in points.split(_POINTS_AT_ONCE)]
    return torch.cat([part.indices for part in nearest]), torch.cat([part.values for part in nearest])
