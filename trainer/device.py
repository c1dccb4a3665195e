"""The device of a run, and its settings there."""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys
from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
import torch
from torch import Tensor

from trainer.errors import UserError

NICENESS: Final = 10
"""Of a trainer on the CPU, so that the window stays smooth while every core trains."""

FETCHED_AT_ONCE: Final = 2**28
"""Bytes that are copied from a GPU between two waits for it."""

_TRIM_THRESHOLD: Final = -1
_MMAP_THRESHOLD: Final = -3
"""Numbers of glibc's `mallopt`."""


def choose(chosen: str) -> torch.device:
    """Return the device to compute on; `auto` selects the first available of cuda, mps and cpu.

    Raises:
        UserError: The device asked for is not there.
    """
    if chosen == "auto":
        return torch.device(next(name for name in ("cuda", "mps", "cpu") if _available(name)))
    if not _available(chosen):
        available = ", ".join(name for name in ("cuda", "mps", "cpu") if _available(name))
        raise UserError(f"device {chosen!r} is not available here; choose auto or one of {available}.")
    return torch.device(chosen)


def be_polite(device: torch.device) -> None:
    """Lower the process priority on a CPU; other devices hardly use the CPU, and a notebook's process is its user's."""
    if device.type == "cpu" and hasattr(os, "nice") and "trainer.api" not in sys.modules:
        with contextlib.suppress(OSError):
            os.nice(max(0, NICENESS - os.nice(0)))


def keep_freed_memory(device: torch.device) -> None:
    """Keep freed memory in the process for the next step, on CPUs with glibc.

    By itself glibc returns large blocks to the system at once, which hands them out again zeroed, page by page: a
    fifth of a step of small towers. Numbers do not change, and the peak of the memory hardly does.
    """
    if device.type != "cpu" or not sys.platform.startswith("linux"):
        return
    with contextlib.suppress(OSError, AttributeError):  # another C library
        mallopt = ctypes.CDLL(None).mallopt
        # Older ones accept no more than 32 MiB.
        mallopt(_MMAP_THRESHOLD, 2**28) or mallopt(_MMAP_THRESHOLD, 2**25)
        mallopt(_TRIM_THRESHOLD, 2**31 - 1)


@contextlib.contextmanager
def autocast(device: torch.device) -> Iterator[None]:
    """Use bfloat16 on GPUs whose tensor cores compute in it, and float32 elsewhere, also where it is emulated."""
    enabled = device.type == "cuda" and torch.cuda.is_bf16_supported(including_emulation=False)
    with torch.autocast(device.type, dtype=torch.bfloat16, enabled=enabled):
        yield


@contextlib.contextmanager
def measuring(device: torch.device) -> Iterator[None]:
    """Compute whole float32 numbers, as what is measured needs: convolutions of a GPU round to TF32 otherwise."""
    rounds = torch.backends.cudnn.allow_tf32
    torch.backends.cudnn.allow_tf32 = rounds and device.type != "cuda"
    try:
        yield
    finally:
        torch.backends.cudnn.allow_tf32 = rounds


def sent(values: np.ndarray | Tensor, where: torch.device) -> Tensor:
    """Return the values on the device, to which a GPU copies them from pinned memory without a wait."""
    tensor = torch.from_numpy(values) if isinstance(values, np.ndarray) else values
    if where.type != "cuda" or tensor.device.type != "cpu":
        return tensor.to(where)
    # Pinned blocks come from a cache of torch's, which gives none out again before its copy has ended.
    return tensor.pin_memory().to(where, non_blocking=True)


def fetched(tensors: Sequence[Tensor]) -> list[Tensor]:
    """Return the tensors on the CPU, detached; of a GPU's many are copied for each wait."""
    if not any(tensor.is_cuda for tensor in tensors):
        return [tensor.detach().cpu() for tensor in tensors]
    copies: list[Tensor] = []
    for group in _groups(tensors):
        pinned = [_begun(tensor.detach()) for tensor in group]
        torch.cuda.synchronize()
        # Pinned memory is given back to its cache, and the next group takes it.
        copies += [tensor.clone() for tensor in pinned]
    return copies


def _groups(tensors: Sequence[Tensor]) -> Iterator[list[Tensor]]:
    """Yield the tensors in groups of at most `FETCHED_AT_ONCE` bytes, or of one."""
    group: list[Tensor] = []
    for tensor in tensors:
        if group and sum(other.nbytes for other in group) + tensor.nbytes > FETCHED_AT_ONCE:
            yield group
            group = []
        group.append(tensor)
    yield group


def _begun(tensor: Tensor) -> Tensor:
    if not tensor.is_cuda:
        return tensor
    return torch.empty_like(tensor, device="cpu", pin_memory=True).copy_(tensor, non_blocking=True)


def memory_format(device: torch.device) -> torch.memory_format:
    """Return channels last, which is faster on CPUs and tensor cores; mps has only slow kernels for it."""
    return torch.contiguous_format if device.type == "mps" else torch.channels_last


def _available(name: str) -> bool:
    if name == "cuda":
        return torch.cuda.is_available()
    if name == "mps":
        return torch.backends.mps.is_available()
    return name == "cpu"
