"""System load and the trainers' share of it: read in milliseconds, without torch."""

from __future__ import annotations

import contextlib
import functools
import shutil
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import psutil

_MIB: Final = 2**20
_LOCK: Final = threading.Lock()


@dataclass(frozen=True)
class Gpu:
    """One GPU at this moment; None if its driver does not tell.

    Attributes:
        percent: Share of the last interval in which it computed.
        used_mib, total_mib: Its memory.
        celsius: Its temperature.
        watts: What it draws.
        processes: Process number -> MiB of its memory.
    """

    number: int
    name: str
    percent: float | None
    used_mib: float | None
    total_mib: float | None
    celsius: float | None
    watts: float | None
    processes: dict[int, float]


@dataclass(frozen=True)
class TrainerUsage:
    """The resources used by one trainer, including its helper processes.

    Attributes:
        percent: CPU since the last reading; 100 is one core.
        rss_mib: Memory.
        gpu_mib: Memory on all GPUs; None where it cannot be told.
    """

    run: int
    name: str
    percent: float
    rss_mib: float
    gpu_mib: float | None


@dataclass(frozen=True)
class SystemUsage:
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
    gpus, why = graphics()
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


def graphics() -> tuple[tuple[Gpu, ...], str]:
    """Return the NVIDIA GPUs of this computer, or none and the reason."""
    library, why = _nvml()
    if library is None:
        return (), why
    try:
        return tuple(_gpu(library, number) for number in range(library.nvmlDeviceGetCount())), ""
    except library.NVMLError as error:
        return (), f"The NVIDIA driver does not answer ({error})."


@functools.cache
def gpu_count() -> int:
    """Return how many GPUs the queue can assign; cached, because the number does not change."""
    library, _ = _nvml()
    if library is not None:
        with contextlib.suppress(library.NVMLError):
            return int(library.nvmlDeviceGetCount())
    # Linux lists them even where the library to ask them is not installed.
    cards = Path("/proc/driver/nvidia/gpus")
    return len(list(cards.iterdir())) if cards.is_dir() else 0


@functools.cache
def _nvml() -> tuple[Any, str]:
    try:
        import pynvml
    except ImportError:
        return None, "No NVIDIA GPU is read: nvidia-ml-py is not installed (uv sync --extra gpu)."
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return None, "No NVIDIA GPU."
    return pynvml, ""


def _gpu(library: Any, number: int) -> Gpu:
    card = library.nvmlDeviceGetHandleByIndex(number)

    def ask(question: Any, *more: Any) -> Any:
        # Cards differ in what they tell; a gap is no reason to tell nothing.
        with contextlib.suppress(library.NVMLError):
            return question(card, *more)
        return None

    memory = ask(library.nvmlDeviceGetMemoryInfo)
    rates, power = ask(library.nvmlDeviceGetUtilizationRates), ask(library.nvmlDeviceGetPowerUsage)
    name = ask(library.nvmlDeviceGetName) or f"GPU {number}"
    processes = ask(library.nvmlDeviceGetComputeRunningProcesses) or []
    celsius = ask(library.nvmlDeviceGetTemperature, library.NVML_TEMPERATURE_GPU)
    return Gpu(
        number=number,
        name=name.decode() if isinstance(name, bytes) else str(name),
        percent=None if rates is None else float(rates.gpu),
        used_mib=None if memory is None else memory.used / _MIB,
        total_mib=None if memory is None else memory.total / _MIB,
        celsius=None if celsius is None else float(celsius),
        watts=None if power is None else power / 1000,
        processes={process.pid: (process.usedGpuMemory or 0) / _MIB for process in processes},
    )


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
