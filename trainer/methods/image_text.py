"""Image-text pairs: both towers embed their half of the batch, and one objective compares the halves."""

from __future__ import annotations

import math
from abc import abstractmethod

import torch
from jaxtyping import Float
from torch import Tensor, nn

from trainer import config
from trainer.losses import cloob, info_nce
from trainer.methods.batch import Batch
from trainer.models import TwoTowers


class ImageText(nn.Module):
    """An objective of matched rows; what it learns besides the towers (a temperature) are its parameters."""

    def forward(self, towers: TwoTowers, batch: Batch) -> Float[Tensor, ""]:
        """Loss of a batch; the towers may compute in bfloat16, the objective does not."""
        return self.loss(towers.encode_image(batch.images), towers.encode_text(batch.tokens))

    @abstractmethod
    def loss(self, image: Float[Tensor, "n d"], text: Float[Tensor, "n d"]) -> Float[Tensor, ""]:
        """Loss of unit embeddings, row k of both being pair k."""

    @property
    @abstractmethod
    def inv_tau(self) -> float:
        """The inverse temperature as it is now."""

    def after_step(self) -> None:
        """Puts what the optimiser moved back into bounds."""


class ClipPairs(ImageText):
    """CLIP: symmetric InfoNCE; the logarithm of 1/tau is learned and clamped."""

    def __init__(self, choice: config.Clip) -> None:
        super().__init__()
        start = torch.tensor(math.log(choice.inv_tau))
        self.log_inv_tau = nn.Parameter(start, requires_grad=choice.learn_inv_tau)
        self._log_most = math.log(choice.inv_tau_max)

    def loss(self, image: Float[Tensor, "n d"], text: Float[Tensor, "n d"]) -> Float[Tensor, ""]:
        """Symmetric InfoNCE at the present temperature."""
        return info_nce(image, text, self.log_inv_tau.exp())

    @property
    def inv_tau(self) -> float:
        """The learned inverse temperature."""
        return self.log_inv_tau.detach().exp().item()

    def after_step(self) -> None:
        """1/tau stays between 1 and its clamp, as in CLIP."""
        with torch.no_grad():
            if self.log_inv_tau.requires_grad:
                self.log_inv_tau.clamp_(0.0, self._log_most)


class CloobPairs(ImageText):
    """CLOOB: Hopfield retrieval, then InfoLOOB, both at fixed temperatures; nothing is learned here."""

    def __init__(self, choice: config.Cloob) -> None:
        super().__init__()
        self._choice = choice

    def loss(self, image: Float[Tensor, "n d"], text: Float[Tensor, "n d"]) -> Float[Tensor, ""]:
        """Four retrievals, two InfoLOOBs."""
        return cloob(image, text, self._choice.inv_tau, self._choice.scale_hopfield)

    @property
    def inv_tau(self) -> float:
        """The fixed inverse temperature."""
        return self._choice.inv_tau
