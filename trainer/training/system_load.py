"""System load while a run trains."""

from __future__ import annotations

import contextlib

import psutil
import torch

_MIB = 2**20


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
