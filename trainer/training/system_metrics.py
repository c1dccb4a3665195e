"""System load while a run trains."""

from __future__ import annotations

import contextlib
import os

import psutil
import torch

from trainer.scheduling import gpu_usage
from trainer.scheduling.gpu_usage import Gpu

_MIB = 2**20


def cards_of(where: torch.device) -> tuple[Gpu, ...]:
    """Return the cards of this computer that train with this process; none where they cannot be told from others."""
    if where.type == "mps":
        return gpu_usage.cards()[0][:1]
    listed = gpu_usage.cards()[0] if where.type == "cuda" else ()
    if len(listed) < 2:
        return listed
    local = int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
    current = where.index if where.index is not None else torch.cuda.current_device()
    buses = {_bus(number) for number in (range(min(local, torch.cuda.device_count())) if local > 1 else (current,))}
    return tuple(card for card in listed if card.bus in buses)


def _bus(number: int) -> str:
    properties = torch.cuda.get_device_properties(number)
    parts = [getattr(properties, f"pci_{name}_id", -1) for name in ("domain", "bus", "device")]
    return "?" if min(parts) < 0 else f"{parts[0]:04x}:{parts[1]:02x}:{parts[2]:02x}"


def load(where: torch.device) -> dict[str, float]:
    """Return CPU load since the last call, memory of this process, and GPU load and memory, by metric name."""
    values = {
        "system/cpu_percent": psutil.cpu_percent(),
        "system/memory_mib": psutil.Process().memory_info().rss / _MIB,
    }
    if where.type == "cuda":
        values["system/gpu_memory_mib"] = torch.cuda.memory_reserved(where) / _MIB
        # Needs NVIDIA's management library, which some drivers and containers lack.
        with contextlib.suppress(Exception):
            values["system/gpu_percent"] = float(torch.cuda.utilization(where))
    if where.type == "mps":
        values["system/gpu_memory_mib"] = torch.mps.driver_allocated_memory() / _MIB
    return values


def memory(where: torch.device) -> dict[str, float]:
    """Return this process's memory in MiB, of the computer and of a GPU, for the run's row."""
    values = {"rss_mib": psutil.Process().memory_info().rss / _MIB}
    if where.type == "cuda":
        values["gpu_mib"] = torch.cuda.memory_reserved(where) / _MIB
    return values
