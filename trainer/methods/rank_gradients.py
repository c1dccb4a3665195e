"""The gradient of a batch that several ranks share: gradient caching over processes.

Every rank embeds its own pairs, gathers the rows of all, and computes the whole loss; its rows take their share of
the gradient back into the towers, and the gradients of all ranks are added, never averaged. So no loss needs a form
for several processes, and none of them can be off by the number of processes.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn

from trainer.methods.batch import Batch
from trainer.methods.gradient_cache import Autocast, as_leaves, pull, random_state, replayed
from trainer.methods.method import Method
from trainer.methods.row_sharded import row_sharded, shards_rows
from trainer.models import TwoTowers
from trainer.ranks import Ranks


def backward_over_ranks(
    method: Method, towers: TwoTowers, batch: Batch, ranks: Ranks, *, autocast: Autocast, micro_batch: int = 0
) -> Float[Tensor, ""]:
    """Give every parameter the gradient of the whole batch's loss, the same on all ranks; return the detached loss.

    With as many parts as ranks, the bits are those of `backward` with the parts as micro-batches.

    Args:
        batch: This rank's pairs, as a part of the whole batch.
        autocast: Context of the forward passes.
        micro_batch: Pairs embedded at a time on this rank, each twice; 0: all its own at once.

    Raises:
        RankError: A rank is gone, or computed another loss.
    """
    parts = [batch] if not micro_batch or micro_batch >= len(batch) else list(batch.parts(micro_batch))
    states, rows = [], []
    for part in parts:
        states.append(random_state(part))
        with torch.set_grad_enabled(len(parts) == 1), autocast():
            rows.append(method.embed(towers, part))
    embedded = [torch.cat(pieces).detach() for pieces in zip(*rows, strict=True)]
    parameters = _learned(towers, method)
    of_compare: list[Tensor | None] = [None] * len(parameters)
    if shards_rows(method, len(batch.all)):
        leaves, starts = as_leaves(embedded), (0,) * len(embedded)
        # What the method learns gets a part from each rank, which are added like those of the towers.
        loss, gradients = row_sharded(method, leaves, batch, ranks)
        for leaf, gradient in zip(leaves, gradients, strict=True):
            leaf.grad = gradient.to(leaf.dtype)
    else:
        gathered, starts = ranks.gather(embedded)
        leaves = as_leaves(gathered)
        with autocast():
            loss = method.compare(leaves, batch.all)
        loss.backward()
        of_compare = _taken(parameters)
    if len(parts) == 1:
        pull(rows[0], leaves, starts)
    else:
        for part, state in zip(parts, states, strict=True):
            with replayed(state, part), autocast():
                again = method.embed(towers, part)
            starts = pull(again, leaves, starts)
    _add_up(parameters, of_compare, loss.detach(), ranks)
    return loss.detach()


def _learned(*modules: nn.Module) -> list[nn.Parameter]:
    """Return the parameters that learn, each once, in an order that is the same on all ranks."""
    named = {id(p): p for module in modules for p in module.parameters() if p.requires_grad}
    return list(named.values())


def _taken(parameters: Sequence[nn.Parameter]) -> list[Tensor | None]:
    """Return the gradients, which are removed: those of what only `compare` reads are whole on every rank."""
    taken = [parameter.grad for parameter in parameters]
    for parameter in parameters:
        parameter.grad = None
    return taken


def _add_up(
    parameters: Sequence[nn.Parameter], of_compare: Sequence[Tensor | None], loss: Float[Tensor, ""], ranks: Ranks
) -> None:
    """Add the gradients of all ranks to those that are whole already; one that no rank has stays None."""
    has = [parameter.grad is not None for parameter in parameters]
    flags = loss.new_tensor([float(flag) for flag in has], dtype=torch.float32)
    gathered = ranks.stacked(torch.cat([loss.float().view(1), flags]))
    ranks.check_alike(gathered[:, 0])
    some = (gathered[:, 1:].sum(0) > 0).tolist()
    chosen = [parameter for parameter, flag in zip(parameters, some, strict=True) if flag]
    # In the order of rows, whatever the layout of a kernel in memory.
    flat = [
        (parameter.grad if parameter.grad is not None else torch.zeros_like(parameter)).detach().reshape(-1)
        for parameter in chosen
    ]
    total = ranks.summed(torch.cat(flat)) if flat else loss.new_zeros(0)
    sums = dict(zip(map(id, chosen), total.split([len(flag) for flag in flat]), strict=True)) if flat else {}
    for parameter, compared in zip(parameters, of_compare, strict=True):
        parameter.grad = compared
        if id(parameter) in sums:
            # The layout of the parameter, as autograd has it: a norm adds up in the order of the memory.
            added = torch.empty_like(parameter).copy_(sums[id(parameter)].view_as(parameter))
            parameter.grad = added if compared is None else compared + added
