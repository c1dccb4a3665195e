"""The interface of methods: a loss for each batch, and hooks between updates."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import ClassVar, TypeVar

import numpy as np
import torch
from jaxtyping import Float, Int, UInt8
from torch import Tensor, nn

from trainer import config
from trainer.data import Pairs
from trainer.data.order import batches
from trainer.data.tokenizers import AnyTokenizer
from trainer.errors import UserError
from trainer.methods.batch import Batch
from trainer.models import Architecture, TwoTowers


@dataclass(frozen=True)
class Material:
    """The inputs for creating a method."""

    run: config.Run
    pairs: Pairs  # The training split.
    tokenizer: AnyTokenizer  # The run's own.
    towers: TwoTowers  # As they are at the first step, for methods that keep a slow copy.
    # What the towers were built from, if the configuration does not tell it all.
    built_from: Architecture | None = None

    @property
    def sizes(self) -> Architecture:
        """The sizes of the towers."""
        return self.built_from or self.run.model


Thing = TypeVar("Thing")


def needed(material: Thing | None) -> Thing:
    """Return the material, or raise UserError if it is missing.

    Raises:
        UserError: There is none.
    """
    if material is None:
        raise UserError("This objective can be opened only with the data it is trained on.")
    return material


class Method(nn.Module):
    """An objective; what it learns or keeps besides the towers are its parameters and buffers."""

    # How many augmented views of each image it compares; with 1, the only crop is that of all methods.
    views: ClassVar[int] = 1
    reads_images: ClassVar[bool] = True  # Whether it needs the images of a batch.
    reads_texts: ClassVar[bool] = False  # Whether it needs the captions of a batch.
    # Whether images pass their batch norms in shuffled groups of the whole batch.
    shuffles_keys: ClassVar[bool] = False
    samples_sentences: bool = False  # Whether one sentence of each caption is drawn in an epoch.
    # Name -> number of what `begin_epoch` prepared, logged with the loss; none for most.
    epoch_numbers: Mapping[str, float] = MappingProxyType({})

    def forward(self, towers: TwoTowers, batch: Batch) -> Float[Tensor, ""]:
        """Return the loss of a batch; the towers may compute in bfloat16, the objective does not."""
        return self.compare(self.embed(towers, batch), batch)

    @abstractmethod
    def embed(self, towers: TwoTowers, batch: Batch) -> tuple[Float[Tensor, "n _"], ...]:
        """Return the tensors to compare, whose row k depends on pair k only (apart from batch norms)."""

    @abstractmethod
    def compare(self, embedded: tuple[Float[Tensor, "n _"], ...], batch: Batch) -> Float[Tensor, ""]:
        """Return the loss of an embedded batch."""

    @property
    def inv_tau(self) -> float | None:
        """The current inverse temperature, if there is one."""
        return None

    @property
    def learned_inv_tau(self) -> Float[Tensor, ""] | None:
        """The inverse temperature on the device that learns it, where it can be read together with a loss."""
        return None

    @property
    def takes_all_as_negatives(self) -> bool:
        """Whether all other captions of a batch are negatives of an image, right answers among them."""
        return False

    @property
    def inv_tau_limits(self) -> tuple[float, float] | None:
        """Where a learned inverse temperature is clamped; None where none is learned."""
        return None

    @property
    def logit_bias(self) -> float | None:
        """The current bias of logits that go through a sigmoid each; None where they go through a softmax."""
        return None

    def adopt(self, *, inv_tau: float | None, bias: float | None) -> None:
        """Start from a pretrained model's scale and bias, if this method learns them."""

    def order(self, n: int, batch_size: int, seed: int, epoch: int) -> Sequence[Int[np.ndarray, " batch"]]:
        """Return the rows of each batch of an epoch, as a pure function of the arguments."""
        return list(batches(n, batch_size, seed, epoch))

    def augmented(
        self, images: UInt8[Tensor, "n h w 3"], rows: Int[np.ndarray, " n"], *, epoch: int, view: int
    ) -> Float[Tensor, "n 3 h w"] | None:
        """Return one of the views of each image in an epoch; None: the random crop of all methods."""
        return None

    def begin_epoch(self, epoch: int) -> None:
        """Prepare an epoch before its first update."""

    def after_step(self) -> None:
        """Clamp what the optimizer has changed."""

    def follow(self, towers: TwoTowers, done: float, discarded: Float[Tensor, ""] | None = None) -> None:
        """Update moving averages of the towers after an update.

        Args:
            towers: As the update left them.
            done: The completed share of the run.
            discarded: 1 on the device if the update was not applied, and nothing may move; None: it was.
        """


def unless(discarded: Float[Tensor, ""] | None, share: float) -> float | Float[Tensor, ""]:
    """Return the share by which something moves: 0 on the device where the update was discarded."""
    return share if discarded is None else share * (1 - discarded)


def generator_of(seed: int, step: int, where: torch.device) -> torch.Generator:
    """Return a generator for one update, the same after a resume."""
    entropy = np.random.SeedSequence([seed, step, 0x5EED]).generate_state(1, np.uint64)
    return torch.Generator(where).manual_seed(int(entropy[0] >> np.uint64(1)))
