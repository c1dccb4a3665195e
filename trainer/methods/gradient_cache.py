"""Gradient caching: exact gradients of a batch larger than memory, a few pairs at a time.

Gao et al., Scaling Deep Contrastive Learning Batch Size under Memory Limited Setup, 2021,
https://arxiv.org/abs/2101.06983
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

import torch
from jaxtyping import Float
from torch import Tensor

from trainer.methods.batch import Batch
from trainer.methods.method import Method
from trainer.models import TwoTowers

Autocast = Callable[[], AbstractContextManager[None]]


def backward(
    method: Method, towers: TwoTowers, batch: Batch, *, autocast: Autocast, micro_batch: int = 0
) -> Float[Tensor, ""]:
    """Add the gradient of the batch's loss to every parameter; return the detached loss.

    Args:
        method: The objective.
        towers: The model.
        batch: All pairs that are compared with each other.
        autocast: Context of the forward passes.
        micro_batch: Pairs embedded at a time, each twice; 0: all at once. Loss and gradient are the same either
            way, unless the towers or the heads of the objective (SimSiam, BYOL) have batch norms, which see the
            micro-batch only.
    """
    if not micro_batch or micro_batch >= len(_first(batch)):
        with autocast():
            loss = method(towers, batch)
        loss.backward()
        return loss.detach()
    parts = list(batch.parts(micro_batch))
    states, rows = [], []
    with torch.no_grad(), autocast():
        for part in parts:
            states.append(_random_state(part))
            rows.append(method.embed(towers, part))
    leaves = tuple(torch.cat(pieces).requires_grad_() for pieces in zip(*rows, strict=True))
    with autocast():
        loss = method.compare(leaves, batch)
    loss.backward()
    for place, (part, state) in enumerate(zip(parts, states, strict=True)):
        with _replayed(state, part), autocast():
            again = method.embed(towers, part)
        _surrogate(again, leaves, place * micro_batch).backward()
    return loss.detach()


def _surrogate(
    rows: tuple[Float[Tensor, "m _"], ...], leaves: tuple[Float[Tensor, "n _"], ...], start: int
) -> Float[Tensor, ""]:
    """Return a scalar whose gradient in the towers is that of the whole loss through these rows."""
    terms = [
        (piece * leaf.grad[start : start + len(piece)]).sum()
        for piece, leaf in zip(rows, leaves, strict=True)
        if piece.requires_grad and leaf.grad is not None
    ]
    return torch.stack(terms).sum()


def _random_state(batch: Batch) -> tuple[Tensor, Tensor | None]:
    where = _first(batch).device
    return torch.get_rng_state(), torch.cuda.get_rng_state(where) if where.type == "cuda" else None


@contextlib.contextmanager
def _replayed(state: tuple[Tensor, Tensor | None], batch: Batch) -> Iterator[None]:
    """Replay random draws (dropout) from `state`, then restore the generators."""
    where = _first(batch).device
    with torch.random.fork_rng([where] if where.type == "cuda" else []):
        torch.set_rng_state(state[0])
        if state[1] is not None:
            torch.cuda.set_rng_state(state[1], where)
        yield


def _first(batch: Batch) -> Tensor:
    return batch.images if batch.images is not None else batch.tokens
