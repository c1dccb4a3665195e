"""Samplers of a negative for each anchor and positive: random, hard, semi-hard or distance-weighted."""

from __future__ import annotations

from typing import Final, Literal, get_args

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from trainer.device import sent

Sampler = Literal["random", "hard", "semi-hard", "distance-weighted"]

CUTOFF: Final = 0.5
"""Distances below it are weighted as if they were it: nearer negatives are mostly noise (Wu et al., lambda)."""
ADMISSIBLE: Final = 1.4
"""Distance-weighted sampling leaves out farther negatives: their margin loss is zero."""


def distances(embeddings: Float[Tensor, "n d"]) -> Float[Tensor, "n n"]:
    """Return Euclidean distances between all rows; a zero distance has zero gradient instead of NaN."""
    square = torch.cdist(embeddings, embeddings, compute_mode="donot_use_mm_for_euclid_dist").square()
    apart = square > 0
    return torch.where(apart, square, torch.ones_like(square)).sqrt() * apart


def positive_pairs(labels: Int[Tensor, " n"]) -> tuple[Int[Tensor, " m"], Int[Tensor, " m"]]:
    """Return anchors and positives: every ordered pair of different rows with the same label."""
    same = labels[:, None] == labels[None, :]
    return torch.nonzero(same.fill_diagonal_(False), as_tuple=True)


def negatives(
    distance: Float[Tensor, "n n"],
    labels: Int[Tensor, " n"],
    anchors: Int[Tensor, " m"],
    positives: Int[Tensor, " m"],
    *,
    sampler: Sampler,
    dimension: int,
    generator: torch.Generator | None = None,
) -> Int[Tensor, " m"]:
    """Return one row with another label for each anchor and positive.

    Args:
        distance: Between all rows; its gradient is not followed.
        labels: Class of each row; on the CPU, a GPU is not waited for.
        anchors: Rows that look for a negative.
        positives: The same-class partner of each anchor.
        sampler: `random`: uniform. `hard`: the nearest. `semi-hard`: the nearest beyond the positive, or the
            farthest where there is none (Schroff et al., FaceNet, 2015, https://arxiv.org/abs/1503.03832).
            `distance-weighted`: with probability inverse to the density of the distance on the sphere; uniform
            where no negative is admissible (Wu et al., Sampling Matters, 2017, https://arxiv.org/abs/1706.07567).
        dimension: Of the embedding; decides the density of distances.

    Raises:
        ValueError: An unknown sampler, or a batch of one class only.
    """
    if sampler not in get_args(Sampler):
        raise ValueError(f"unknown sampler {sampler!r}: choose one of {', '.join(get_args(Sampler))}")
    if len(anchors) and (labels == labels[0]).all():
        raise ValueError("every row of the batch has the same label: without a second class there is no negative")
    labels = sent(labels, distance.device)
    distance = distance.detach()[anchors]
    other = labels[anchors][:, None] != labels[None, :]
    if sampler == "hard":
        return distance.masked_fill(~other, torch.inf).argmin(dim=1)
    if sampler == "semi-hard":
        return semi_hard(distance, other, distance.gather(1, positives[:, None]))
    weights = other.to(distance.dtype)
    if sampler == "distance-weighted":
        weights = _inverse_density(distance, other, dimension)
    # What `torch.multinomial` draws, which first reads from the device whether the weights are finite.
    return (weights / torch.empty_like(weights).exponential_(1, generator=generator)).argmax(dim=1)


def log_density(distance: Float[Tensor, ...], dimension: int) -> Float[Tensor, ...]:
    """Return the log density (up to a constant) of the distance of two uniform points on the unit sphere.

    `q(d) ~ d^(n-2) (1 - d^2/4)^((n-3)/2)`, Wu et al. 2017, equation 6.
    """
    inner = (1 - distance.square() / 4).clamp(min=1e-8)  # at the antipode the logarithm would be infinite
    return (dimension - 2) * distance.log() + (dimension - 3) / 2 * inner.log()


def semi_hard(
    distance: Float[Tensor, "m n"], other: Bool[Tensor, "m n"], to_positive: Float[Tensor, "m 1"]
) -> Int[Tensor, " m"]:
    """Return the nearest of the others that lies beyond the positive, and the farthest where none does."""
    beyond = other & (distance > to_positive)
    nearest_beyond = distance.masked_fill(~beyond, torch.inf).argmin(dim=1)
    farthest = distance.masked_fill(~other, -torch.inf).argmax(dim=1)
    return torch.where(beyond.any(dim=1), nearest_beyond, farthest)


def _inverse_density(
    distance: Float[Tensor, "m n"], other: Bool[Tensor, "m n"], dimension: int
) -> Float[Tensor, "m n"]:
    admissible = other & (distance < ADMISSIBLE)
    log_weights = (-log_density(distance.clamp(min=CUTOFF), dimension)).masked_fill(~admissible, -torch.inf)
    none = ~admissible.any(dim=1, keepdim=True)
    # Uniform where nothing is admissible: dividing by the empty sum would be NaN.
    log_weights = torch.where(none, torch.where(other, 0.0, -torch.inf).to(log_weights), log_weights)
    return torch.softmax(log_weights, dim=1)
