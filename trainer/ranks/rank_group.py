"""The ranks of a run: they gather rows and gradients in rank order, so that every one computes the same numbers.

Nothing here averages and nothing differentiates through an exchange: what is gathered are plain numbers.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any, Final, TypeVar

import torch
import torch.distributed as dist
from jaxtyping import Float
from torch import Tensor

from trainer.errors import UserError
from trainer.ranks.peers import Peers, introduce_self
from trainer.scheduling.ranks import is_rank

_PATIENCE: Final = timedelta(days=7)
"""How long an exchange may take: how it ends early is that a peer is gone, which the sockets tell."""
_START_S: Final = 120.0
"""How long the ranks wait for each other at the start."""
_DISMISSED: Final = "dismissed"
_TOLD_S: Final = 3.0
"""How long is looked for the reason once an exchange has failed."""
_MOST_POLL_S: Final = 0.05
_APART: Final = 1e-3
"""Relative difference of two ranks' losses from which they do not train the same."""
_Result = TypeVar("_Result")


class RankError(UserError):
    """A run over several processes that cannot go on without one of them; the message names it."""


class Ranks:
    """This process among those that share the batches of a run.

    Attributes:
        rank: Of this process, from 0; 0 leads.
        size: How many there are.
        device: Where tensors must lie to be exchanged.
    """

    def __init__(self, rank: int, size: int, store: Any = None) -> None:
        self.rank, self.size = rank, size
        self.device = torch.device("cpu")
        self._store = store
        self._turn = 0
        self._peers = Peers(store, rank, size) if store is not None else None

    @property
    def leads(self) -> bool:
        """Whether this process writes the run's store."""
        return self.rank == 0

    def device_of(self, chosen: torch.device) -> torch.device:
        """Return this rank's device where the run chose `chosen`: of several GPUs, one each.

        Raises:
            RankError: There are fewer GPUs than ranks.
        """
        if chosen.type != "cuda":
            return chosen
        local, count = int(os.environ.get("LOCAL_RANK", "0")), torch.cuda.device_count()
        local_size = int(os.environ.get("LOCAL_WORLD_SIZE", self.size))
        if local_size > count:
            raise RankError(
                f"{local_size} processes need {local_size} GPUs, and this computer shows {count}. Choose "
                f"ranks={count}, or device=cpu."
            )
        self.device = torch.device("cuda", local)
        torch.cuda.set_device(self.device)
        return self.device

    def own(self, n: int) -> slice:
        """Return which of `n` rows are this rank's: the parts of `torch.tensor_split`, in rank order."""
        least, more = divmod(n, self.size)
        start = self.rank * least + min(self.rank, more)
        return slice(start, start + least + (self.rank < more))

    def gather(self, tensors: Sequence[Tensor]) -> tuple[tuple[Tensor, ...], tuple[int, ...]]:
        """Return each tensor with the rows of all ranks in rank order, and where this rank's rows begin in it.

        Bytes are exchanged, so that every type comes as it was. Rows may be of any number on each rank.
        """
        counts = torch.tensor([len(tensor) for tensor in tensors], dtype=torch.int64)
        all_counts = self._all(counts)
        gathered, starts = [], []
        for index, tensor in enumerate(tensors):
            most = int(all_counts[:, index].max())
            padded = tensor.new_zeros((most, *tensor.shape[1:]))
            padded[: len(tensor)] = tensor.detach()
            raw = self._all(padded.contiguous().view(-1).view(torch.uint8))
            padded_rows = raw.view(tensor.dtype).view(self.size, most, *tensor.shape[1:])
            gathered.append(
                torch.cat([part[: int(n)] for part, n in zip(padded_rows, all_counts[:, index], strict=True)])
            )
            starts.append(int(all_counts[: self.rank, index].sum()))
        return tuple(gathered), tuple(starts)

    def stacked(self, tensor: Tensor) -> Tensor:
        """Return the tensors of all ranks, which have one shape, along a new first dimension in rank order."""
        return self._all(tensor.detach().contiguous().view(-1)).view(self.size, *tensor.shape)

    def summed(self, local: Float[Tensor, " n"]) -> Float[Tensor, " n"]:
        """Return the sum over ranks, added in rank order: the same bits as one process that adds part by part.

        Each rank adds one share of the numbers, so that about twice their size is sent, as by a ring.
        """
        share = -(-len(local) // self.size)
        padded = local.new_zeros(share * self.size)
        padded[: len(local)] = local
        parts = torch.empty_like(padded)
        self._guarded(lambda: dist.all_to_all_single(parts, padded))
        total = parts.view(self.size, share)[0].clone()
        for part in parts.view(self.size, share)[1:]:
            total += part
        return self._all(total).view(-1)[: len(local)]

    def scattered(self, rows: Float[Tensor, "n d"]) -> Float[Tensor, "b d"]:
        """Return this rank's rows of the sum over ranks, added in rank order; all have as many rows."""
        sent = rows.contiguous()
        parts = torch.empty_like(sent)
        self._guarded(lambda: dist.all_to_all_single(parts, sent))
        first, *others = parts.view(self.size, -1, *rows.shape[1:])
        total = first.clone()
        for part in others:
            total += part
        return total

    def check_alike(self, losses: Float[Tensor, " size"]) -> None:
        """Check the losses of all ranks against each other.

        Raises:
            RankError: They differ, so the ranks do not train the same.
        """
        first = losses[0]
        apart = (losses - first).abs() > _APART * first.abs().clamp(min=1e-6)
        if bool(apart.any()):
            other = int(apart.nonzero()[0])
            raise RankError(
                f"Rank {other} of {self.size} computed the loss {float(losses[other]):.6g} where rank 0 computed "
                f"{float(first):.6g}: their data or versions differ. Check that they read the same files, then resume."
            )

    def lead(self) -> None:
        """Ask the others to make an update with this one.

        Raises:
            RankError: One of them is gone.
        """
        self.check_peers()
        self._say("update")

    def dismiss(self) -> None:
        """Notify the others that the training ends here; they may be gone."""
        with contextlib.suppress(RuntimeError):
            self._store.set(_DISMISSED, "")
            self._store.set(f"go/{self._turn + 1}", "end")

    def is_called(self) -> bool:
        """Wait for rank 0, however long it evaluates or pauses; return whether it wants another update.

        Raises:
            RankError: It is gone.
        """
        self._turn += 1
        key, pause = f"go/{self._turn}", 0.0005
        while not self._guarded(lambda: self._store.check([key])):
            self.check_peers()
            time.sleep(pause)
            pause = min(_MOST_POLL_S, 1.05 * pause)
        return self._guarded(lambda: self._store.get(key)) == b"update"

    def announced(self, key: str, value: str | None = None) -> str:
        """Return the value that rank 0 broadcasts; empty if it dismisses the others first. Rank 0 passes it.

        Raises:
            RankError: Rank 0 is gone, or failed before it told.
        """
        if value is not None:
            self._guarded(lambda: self._store.set(key, value))
            return value
        while not self._guarded(lambda: self._store.check([key])):
            if self._guarded(lambda: self._store.check([_DISMISSED])):
                return ""
            self.check_peers()
            time.sleep(_MOST_POLL_S)
        return self._guarded(lambda: self._store.get(key)).decode()

    def confess(self, reason: str) -> None:
        """Notify the others why this rank ends."""
        if self._peers is not None:
            self._peers.confess(reason)

    def check_peers(self, *, look: bool = False) -> None:
        """Check that all ranks are there.

        Args:
            look: Look now, instead of taking what was seen last.

        Raises:
            RankError: One is not.
        """
        if self._peers is not None and (trouble := self._peers.trouble(look=look)):
            raise RankError(trouble)

    def leave(self) -> None:
        """End the exchange of this process."""
        if self._peers is not None:
            self._peers.close()
        if dist.is_initialized():
            dist.destroy_process_group()

    def _say(self, what: str) -> None:
        self._turn += 1
        self._guarded(lambda: self._store.set(f"go/{self._turn}", what))
        if self._turn > 2:  # everybody has read the one before the last, for they took part in the last update
            self._guarded(lambda: self._store.delete_key(f"go/{self._turn - 2}"))

    def _all(self, tensor: Tensor) -> Tensor:
        """Return the flat tensors of all ranks, one a row."""
        where = tensor.device
        sent = tensor.to(self.device)
        rows = sent.new_empty((self.size, *sent.shape))
        if sent.numel():
            self._guarded(lambda: dist.all_gather_into_tensor(rows.view(-1), sent.view(-1)))
        return rows.to(where)

    def _guarded(self, exchange: Callable[[], _Result]) -> _Result:
        try:
            return exchange()
        except RuntimeError as error:
            raise RankError(self._why(error)) from error

    def _why(self, error: RuntimeError) -> str:
        """Return what is known of a failed exchange, once the peers had time to tell."""
        until = time.monotonic() + _TOLD_S
        while self._peers is not None and time.monotonic() < until:
            if trouble := self._peers.trouble(look=True):
                return trouble
            time.sleep(_MOST_POLL_S)
        return (
            f"The {self.size} processes of the run could not exchange their numbers: {str(error).splitlines()[0]} "
            "Resume continues from the last checkpoint."
        )


def join() -> Ranks | None:
    """Return this process among the ranks that `torch.distributed.run` started; None for a process on its own."""
    if not is_rank():
        return None
    store, rank, size = next(dist.rendezvous("env://", timeout=timedelta(seconds=_START_S)))
    introduce_self(store, rank)
    backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() and dist.is_nccl_available() else "gloo"
    dist.init_process_group(backend, store=store, rank=rank, world_size=size, timeout=_PATIENCE)
    return Ranks(rank, size, store)
