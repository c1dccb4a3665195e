"""Which of several processes of one training this is, as its launcher says in the environment."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

_RANKS: Final = (
    ("RANK", "WORLD_SIZE"),
    ("SLURM_PROCID", "SLURM_NTASKS"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
)
"""Variables of a rank and of the number of processes, in the order in which they are believed."""


@dataclass(frozen=True)
class ProcessRank:
    """A process of a training."""

    is_first: bool  # Whether it is the one that writes: rank 0, or the only process.
    size: int  # How many processes there are; 1 where nothing says so.
    name: str = "0"  # Its rank, or node and rank there; no other process of the training has it.


def process_rank(environment: Mapping[str, str] = os.environ) -> ProcessRank:
    """Return the rank of this process by torchrun, SLURM, Open MPI, or a local rank with the rank of its node.

    Lightning sets `LOCAL_RANK` alone, and in later processes only; without any variable it is the only one.
    """
    for name, of_size in _RANKS:
        if (rank := _number(environment, name)) is not None:
            return ProcessRank(rank == 0, _number(environment, of_size) or 1, str(rank))
    local, node = _number(environment, "LOCAL_RANK") or 0, _number(environment, "NODE_RANK") or 0
    return ProcessRank(local == node == 0, _number(environment, "WORLD_SIZE") or 1, f"{node}.{local}")


def _number(environment: Mapping[str, str], name: str) -> int | None:
    text = environment.get(name, "")
    return int(text) if text.isascii() and text.isdigit() else None
