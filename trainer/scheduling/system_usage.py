"""System load and the trainers' share of it: read in milliseconds, without torch."""

from __future__ import annotations

import contextlib
import functools
import shutil
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from trainer.scheduling import gpu_usage
from trainer.scheduling.gpu_usage import Gpu

if TYPE_CHECKING:
    import psutil

_MIB: Final = 2**20
_LOCK: Final = threading.Lock()


class TrainerUsage(Struct, frozen=True):
    """The resources used by one trainer, including its helper processes."""

    run: int
    name: str
    percent: float  # CPU since the last reading; 100 is one core.
    rss_mib: float
    gpu_mib: float | None  # Memory on all GPUs; None where it cannot be told.


class SystemUsage(Struct, frozen=True):
    """The state of the computer at one moment.

    Attributes:
        cpu_percent: Of all cores together since the last reading.
        free_disk_mib, disk_mib: Of the disk that holds the workspace.
        without_gpu: Why no GPU is listed; empty when one is.
    """

    cpu_percent: float
    cores: int
    used_mib: float
    total_mib: float
    free_disk_mib: float
    disk_mib: float
    gpus: tuple[Gpu, ...]
    without_gpu: str
    jobs: tuple[TrainerUsage, ...]


def read(folder: Path, trainers: Sequence[tuple[int, str, int]] = ()) -> SystemUsage:
    """Read all values.

    Args:
        folder: On the disk to tell of.
        trainers: Number, name and process of each run at work.
    """
    import psutil

    memory = psutil.virtual_memory()
    disk = shutil.disk_usage(folder)
    gpus, why = gpu_usage.cards()
    jobs = (_job(run, name, pid, gpus) for run, name, pid in trainers)
    return SystemUsage(
        cpu_percent=psutil.cpu_percent(),
        cores=psutil.cpu_count() or 1,
        used_mib=(memory.total - memory.available) / _MIB,
        total_mib=memory.total / _MIB,
        free_disk_mib=disk.free / _MIB,
        disk_mib=disk.total / _MIB,
        gpus=gpus,
        without_gpu=why,
        jobs=tuple(job for job in jobs if job is not None),
    )


@functools.cache
def gpu_count() -> int:
    """Return how many GPUs the queue can assign; cached, because the number does not change."""
    listed, _ = gpu_usage.cards()
    if listed:
        return len(listed)
    # Linux lists them even where the library to ask them is not installed.
    folder = Path("/proc/driver/nvidia/gpus")
    return len(list(folder.iterdir())) if folder.is_dir() else 0


@functools.lru_cache(maxsize=256)
def _process(pid: int, _started: float) -> psutil.Process:
    """Return a cached object per process, because psutil measures CPU use since its last call."""
    import psutil

    return psutil.Process(pid)


def _job(run: int, name: str, pid: int, gpus: Sequence[Gpu]) -> TrainerUsage | None:
    import psutil

    with _LOCK:
        try:
            trainer = psutil.Process(pid)
            family = [trainer, *trainer.children(recursive=True)]
            percent = rss = 0.0
            for member in family:
                with contextlib.suppress(psutil.Error):
                    process_usage = _process(member.pid, member.create_time())
                    percent += process_usage.cpu_percent()
                    rss += process_usage.memory_info().rss / _MIB
        except psutil.Error:
            return None
    theirs = {member.pid for member in family}
    on_gpu = [mib for gpu in gpus for process, mib in gpu.processes.items() if process in theirs]
    return TrainerUsage(run, name, percent, rss, sum(on_gpu) if on_gpu else None)
