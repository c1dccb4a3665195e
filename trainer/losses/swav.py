"""SwAV: each view predicts the other's prototype assignments, which are balanced over the batch."""

from __future__ import annotations

import math

import torch
from jaxtyping import Float
from torch import Tensor

from trainer.losses.precision import full_precision


@full_precision
def swav(
    view_a: Float[Tensor, "n d"],
    view_b: Float[Tensor, "n d"],
    prototypes: Float[Tensor, "k d"],
    inv_tau: float | Float[Tensor, ""],
    *,
    epsilon: float = 0.05,
    rounds: int = 3,
) -> Float[Tensor, ""]:
    """Return the mean over directions and batch of the cross-entropy of one view's softmax with the other's code.

    `-sum_k q_k ln softmax_k(z C^T / tau)`, q the `codes` of the other view, which no gradient follows. Equations 1 and
    2 of Caron et al., Unsupervised Learning of Visual Features by Contrasting Cluster Assignments, 2020,
    https://arxiv.org/abs/2006.09882 (equation 1 is the sum of both directions; the authors' code takes their mean).

    Args:
        view_a: Unit rows, one augmentation of each image.
        view_b: Unit rows, another; row k shows the same image in both.
        prototypes: Unit rows C.
        inv_tau: Inverse temperature of the softmax.
        epsilon: Of the codes: how soft they are.
        rounds: Of Sinkhorn and Knopp's iteration.
    """
    scores = view_a @ prototypes.T, view_b @ prototypes.T
    targets = [codes(part.detach(), epsilon=epsilon, rounds=rounds) for part in scores]
    log_probabilities = [torch.log_softmax(inv_tau * part, dim=1) for part in scores]
    return (
        -((targets[1] * log_probabilities[0]).sum(dim=1).mean() + (targets[0] * log_probabilities[1]).sum(dim=1).mean())
        / 2
    )


def codes(scores: Float[Tensor, "n k"], *, epsilon: float, rounds: int) -> Float[Tensor, "n k"]:
    """Return soft assignments that distribute the rows evenly over the prototypes; each row sums to 1.

    `Diag(u) exp(scores / epsilon) Diag(v)`, u and v by Sinkhorn and Knopp's iteration: columns are scaled to n / k
    each, then rows to 1, `rounds` times. Caron et al., 2020, equation 5 and appendix A, in logarithms.
    """
    n, k = scores.shape
    logits = scores / epsilon
    for _ in range(rounds):
        logits = logits - torch.logsumexp(logits, dim=0, keepdim=True) + math.log(n / k)
        logits = logits - torch.logsumexp(logits, dim=1, keepdim=True)
    return logits.exp()
