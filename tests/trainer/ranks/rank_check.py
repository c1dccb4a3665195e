"""Whether several processes make the same updates as one: losses and weights of both, side by side."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from torch import Tensor

from trainer import models, ranks
from trainer.training.session import FitError, TrainingSession

UPDATES: Final = 20
EQUAL: Final = 1e-6
"""Largest difference of two losses that counts as rounding, of losses above 1 their share: float32 has seven digits."""
EQUAL_NORMS: Final = 1e-5
"""The same with batch norms, whose variances are sums of squares: rounding is larger."""

MakeSession = Callable[[ranks.Ranks | None], TrainingSession]


@dataclass(frozen=True)
class UpdateDifference:
    """The largest differences over all updates made.

    Attributes:
        loss: Of the losses; of those above 1 as a share of them.
        weights: Of the weights and buffers after the last update.
    """

    loss: float
    weights: float


@dataclass(frozen=True)
class RankCheck:
    """Updates by several processes, compared with the same ones by one.

    Attributes:
        ranks: How many processes.
        updates: How many were made.
        whole: Against the undivided batch.
        parts: Against micro-batches of as many pairs as a rank has; None where batch norms see these only.
        batch_norm: Whether the model or the objective has batch norms.
    """

    ranks: int
    updates: int
    whole: UpdateDifference
    parts: UpdateDifference | None
    batch_norm: bool

    @property
    def equal(self) -> bool:
        """Whether no loss differs by more than rounding; bits of micro-batches are equal whatever these differ by."""
        exact = self.parts is not None and self.parts.loss == 0
        return exact or self.whole.loss <= (EQUAL_NORMS if self.batch_norm else EQUAL)


def check(make: MakeSession, shared: ranks.Ranks, updates: int = UPDATES) -> RankCheck | None:
    """Make updates on all ranks, then on rank 0 alone; return both compared, on other ranks None.

    Args:
        make: A new session at its first step, of these ranks or of one process.
        shared: This process and the others.
        updates: How many are made, at most as many as the run has.

    Raises:
        FitError: Loss or gradient is not finite.
    """
    training = make(shared)
    updates = min(updates, training.total_steps)
    together = _trace(training, updates)
    if not shared.leads:
        return None
    norms = any(models.has_batch_norm(module) for module in training.modules.values())
    whole = _difference(together, _trace(make(None), updates))
    parts = None
    if not norms:
        divided = make(None)
        divided.micro_batch = training.micro_batch or training.batch_size // shared.size
        parts = _difference(together, _trace(divided, updates))
    return RankCheck(shared.size, updates, whole, parts, norms)


def _trace(training: TrainingSession, updates: int) -> tuple[list[float], dict[str, Tensor]]:
    losses: list[float] = []
    for _ in range(updates):
        update = training.update()
        if not update.made:
            raise FitError(
                f"Loss or gradient of update {len(losses) + 1} is not finite, so nothing can be compared: choose a "
                "smaller learning rate or more warm-up."
            )
        losses.append(update.loss)
    weights = {f"{name}.{key}": value for name, m in training.modules.items() for key, value in m.state_dict().items()}
    return losses, {key: value.detach().double().cpu().clone() for key, value in weights.items()}


def _difference(
    shared: tuple[list[float], dict[str, Tensor]], alone: tuple[list[float], dict[str, Tensor]]
) -> UpdateDifference:
    losses = max((abs(a - b) / max(1.0, abs(b)) for a, b in zip(shared[0], alone[0], strict=True)), default=0.0)
    apart = [float((value - alone[1][key]).abs().max()) for key, value in shared[1].items() if value.numel()]
    return UpdateDifference(losses, max(apart, default=0.0))
