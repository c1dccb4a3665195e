"""The exponential moving average of the towers' weights over the updates of a run."""

from __future__ import annotations

import copy

import torch
from torch import Tensor

from trainer.models import TwoTowers


class WeightAverage:
    """Averaged towers, which only follow those that learn.

    Polyak & Juditsky, Acceleration of Stochastic Approximation by Averaging, 1992; with the warm-up of the decay as in
    TensorFlow's `ExponentialMovingAverage`: a fixed one would keep the random first weights for 1/(1 - decay) updates.

    Attributes:
        towers: The average; nothing of it learns.
    """

    def __init__(self, towers: TwoTowers, decay: float) -> None:
        """Begin with the towers as they are.

        Args:
            decay: Weight of the average before an update, once there were many; in (0, 1).
        """
        self.towers = copy.deepcopy(towers).requires_grad_(False).eval()
        self._decay = decay

    @torch.no_grad()
    def follow(self, towers: TwoTowers, step: int, discarded: Tensor | None = None) -> None:
        """Move towards the weights of an update, and batch statistics likewise.

        Args:
            towers: As the update left them.
            step: The number of the update, from 1.
            discarded: 1 on the device if the update was not applied, and the average must stay as it is.
        """
        share = 1 - min(self._decay, (1 + step) / (10 + step))
        weight = share if discarded is None else share * (1 - discarded)
        for average, current in zip(self.towers.state_dict().values(), towers.state_dict().values(), strict=True):
            if average.is_floating_point():
                average.lerp_(current, weight)
            else:  # the count of batches of a batch norm
                average.copy_(current)
