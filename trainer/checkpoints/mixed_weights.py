"""Weights between a model and what was fine-tuned from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor


def mixed(start: Mapping[str, Tensor], tuned: Sequence[Mapping[str, Tensor]], alpha: float) -> dict[str, Tensor]:
    """Return (1 - alpha) start + alpha mean of the tuned weights, in float64 and rounded once; counts are the last's.

    At 0 the start, and at 1 a single tuned model, are returned bit for bit.

    Wortsman et al., Robust fine-tuning of zero-shot models, 2022, https://arxiv.org/abs/2109.01903; of several models:
    Wortsman et al., Model soups, 2022, https://arxiv.org/abs/2203.05482 (the uniform soup is at 1).

    Raises:
        ValueError: The models have not the same weights; names the first that differs.
    """
    for model in tuned:
        differing = [
            name for name in start.keys() | model.keys()
            if name not in start or name not in model or start[name].shape != model[name].shape
        ]  # fmt: skip
        if differing:
            raise ValueError(min(differing))
    if alpha == 0 or not tuned:
        return dict(start)
    if alpha == 1 and len(tuned) == 1:
        return dict(tuned[0])
    return {name: _mixed(value, [model[name] for model in tuned], alpha) for name, value in start.items()}


def _mixed(start: Tensor, tuned: Sequence[Tensor], alpha: float) -> Tensor:
    if not start.is_floating_point():
        return tuned[-1]
    mean = torch.stack([value.double() for value in tuned]).mean(0)
    return ((1 - alpha) * start.double() + alpha * mean).to(start.dtype)
