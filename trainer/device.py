"""Where a run computes, and how it behaves there."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import Final

import torch

from trainer.errors import UserError

NICENESS: Final = 10
"""Of a trainer on the CPU, so that the window stays smooth while every core trains."""


class DeviceError(UserError):
    """A device that is not there."""


def choose(wanted: str) -> torch.device:
    """The device to compute on; `auto` takes the first of cuda, mps and cpu.

    Raises:
        DeviceError: The device asked for is not there.
    """
    if wanted == "auto":
        return torch.device(next(name for name in ("cuda", "mps", "cpu") if _available(name)))
    if not _available(wanted):
        there = ", ".join(name for name in ("cuda", "mps", "cpu") if _available(name))
        raise DeviceError(f"device {wanted!r} is not available here; choose auto or one of {there}.")
    return torch.device(wanted)


def be_polite(device: torch.device) -> None:
    """On a CPU, steps back behind whatever the person is doing; elsewhere the CPU is hardly used."""
    if device.type == "cpu" and hasattr(os, "nice"):
        with contextlib.suppress(OSError):
            os.nice(max(0, NICENESS - os.nice(0)))


@contextlib.contextmanager
def autocast(device: torch.device) -> Iterator[None]:
    """bfloat16 on GPUs that compute in it; plain float32 elsewhere."""
    enabled = device.type == "cuda" and torch.cuda.is_bf16_supported()
    with torch.autocast(device.type, dtype=torch.bfloat16, enabled=enabled):
        yield


def memory_format(device: torch.device) -> torch.memory_format:
    """Channels last: faster convolutions on CPUs and on tensor cores; mps falls back to slow kernels with it."""
    return torch.contiguous_format if device.type == "mps" else torch.channels_last


def _available(name: str) -> bool:
    if name == "cuda":
        return torch.cuda.is_available()
    if name == "mps":
        return torch.backends.mps.is_available()
    return name == "cpu"
