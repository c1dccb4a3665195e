"""Gradient caching: exact gradients of a batch larger than memory, a few pairs at a time.

Gao et al., Scaling Deep Contrastive Learning Batch Size under Memory Limited Setup, 2021,
https://arxiv.org/abs/2101.06983
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager

import torch
from jaxtyping import Float
from torch import Tensor

from trainer.methods.batch import Batch
from trainer.methods.method import Method
from trainer.models import TwoTowers

Autocast = Callable[[], AbstractContextManager[None]]
Rows = tuple[Float[Tensor, "n _"], ...]


def backward(
    method: Method, towers: TwoTowers, batch: Batch, *, autocast: Autocast, micro_batch: int = 0
) -> Float[Tensor, ""]:
    """Add the gradient of the batch's loss to every parameter; return the detached loss.

    Args:
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
            states.append(random_state(part))
            rows.append(method.embed(towers, part))
    leaves = as_leaves([torch.cat(pieces) for pieces in zip(*rows, strict=True)])
    with autocast():
        loss = method.compare(leaves, batch)
    loss.backward()
    starts = (0,) * len(leaves)
    for part, state in zip(parts, states, strict=True):
        with replayed(state, part), autocast():
            again = method.embed(towers, part)
        starts = pull(again, leaves, starts)
    return loss.detach()


def as_leaves(tensors: Sequence[Tensor]) -> Rows:
    """Return the tensors as leaves that take a gradient, but for those that are no numbers (masks)."""
    return tuple(tensor.requires_grad_() if tensor.is_floating_point() else tensor for tensor in tensors)


def pull(rows: Rows, leaves: Rows, starts: tuple[int, ...]) -> tuple[int, ...]:
    """Add the gradient of the whole loss through some rows to every parameter; return where the next rows begin.

    Args:
        rows: With their graph.
        leaves: The same of the whole batch, with the gradient of the loss.
        starts: Where `rows` begin in each leaf.
    """
    terms = [
        (piece * leaf.grad[start : start + len(piece)]).sum()
        for piece, leaf, start in zip(rows, leaves, starts, strict=True)
        if piece.requires_grad and leaf.grad is not None
    ]
    if terms:
        # A scalar whose gradient in the towers is that of the whole loss through these rows.
        torch.stack(terms).sum().backward()
    return tuple(start + len(piece) for piece, start in zip(rows, starts, strict=True))


def random_state(batch: Batch) -> tuple[Tensor, Tensor | None]:
    """Return the state of the generators that a pass over the batch draws from."""
    where = _first(batch).device
    return torch.get_rng_state(), torch.cuda.get_rng_state(where) if where.type == "cuda" else None


@contextlib.contextmanager
def replayed(state: tuple[Tensor, Tensor | None], batch: Batch) -> Iterator[None]:
    """Replay random draws (dropout) from `state`, then restore the generators."""
    where = _first(batch).device
    with torch.random.fork_rng([where] if where.type == "cuda" else []):
        torch.set_rng_state(state[0])
        if state[1] is not None:
            torch.cuda.set_rng_state(state[1], where)
        yield


def _first(batch: Batch) -> Tensor:
    return batch.images if batch.images is not None else batch.tokens
