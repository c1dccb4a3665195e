"""ProtoNCE of PCL: InfoNCE against a queue, and against cluster prototypes at several granularities."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from trainer.losses.moco import moco
from trainer.losses.precision import full_precision


@full_precision
def proto_nce(
    query: Float[Tensor, "n d"],
    key: Float[Tensor, "n d"],
    queue: Float[Tensor, "q d"],
    prototypes: Sequence[Float[Tensor, "k d"]],
    assignments: Sequence[Int[Tensor, " n"]],
    concentrations: Sequence[Float[Tensor, " k"]],
    *,
    inv_tau: float = 5.0,
) -> Float[Tensor, ""]:
    """Return InfoNCE of each query's key against the queue, plus the mean prototype term over clusterings.

    Without clusterings it is MoCo's InfoNCE. Li et al., Prototypical Contrastive
    Learning of Unsupervised Representations, 2021, https://arxiv.org/abs/2005.04966, equation 11. Every prototype
    of the other clusters is a negative; the paper draws some of them.

    Args:
        query: Unit rows of the encoder.
        key: Unit rows of the momentum encoder; row k shows the same image.
        queue: Unit rows of earlier keys, the negatives.
        prototypes: For each clustering, its unit centroids; none before the warm-up ends.
        assignments: For each clustering, the centroid of each query.
        concentrations: For each clustering, the density estimate phi of its centroids.
        inv_tau: Inverse temperature of the instance term.
    """
    instance = moco(query, key, queue, inv_tau)
    if not prototypes:
        return instance
    terms = [
        F.cross_entropy(query @ centroids.to(query).T / phi.to(query), assigned)
        for centroids, assigned, phi in zip(prototypes, assignments, concentrations, strict=True)
    ]
    return instance + torch.stack(terms).mean()


def concentration(
    distance: Float[Tensor, " n"],
    assignment: Int[Tensor, " n"],
    clusters: int,
    *,
    tau: float = 0.2,
    smoothing: float = 10.0,
) -> Float[Tensor, " clusters"]:
    """Return each cluster's density estimate phi: small for dense clusters, with mean tau over the clusters.

    `sum d / (n ln(n + smoothing))`; clusters of fewer than two points get the largest estimate of the others, all are
    clipped to their 10th and 90th percentile and scaled to mean `tau`, as in https://github.com/salesforce/PCL.
    Li et al. 2021, equation 12 and appendix. There a cluster of equal points can have 0, by which the loss divides;
    here each has at least a hundredth of the largest, and `tau` where all are 0.

    Args:
        distance: Euclidean distance of each point to its centroid.
        assignment: Cluster of each point.
        tau: Mean of the result.
        smoothing: Alpha of the paper; keeps small clusters from looking dense.
    """
    count = assignment.new_zeros(clusters).index_add_(0, assignment, torch.ones_like(assignment))
    total = torch.zeros(clusters, dtype=distance.dtype, device=distance.device).index_add(0, assignment, distance)
    phi = total / count.clamp(min=1) / (count + smoothing).to(distance.dtype).log()
    phi = torch.where(count > 1, phi, 0.0)
    phi = torch.where(count > 1, phi, phi.max())
    phi = phi.clamp(torch.quantile(phi, 0.1), torch.quantile(phi, 0.9))
    most = phi.max()
    phi = phi.clamp(min=0.01 * most)
    return torch.where(most > 0, tau * phi / phi.mean(), tau)
