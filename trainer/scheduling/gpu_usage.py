"""Graphics cards as their drivers tell of them: NVIDIA by NVML, AMD by amdsmi or the kernel's files, Apple by ioreg."""

from __future__ import annotations

import contextlib
import functools
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol

from trainer.untrusted import files as untrusted_files
from trainer.untrusted import safe_subprocess

_MIB: Final = 2**20
_AMD: Final = "0x1002"
_IOREG: Final = ("ioreg", "-r", "-d", "1", "-c", "IOAccelerator", "-a")
_IOREG_S: Final = 5.0
_MOST_IOREG: Final = 1 << 22
DRM: Final = Path("/sys/class/drm")


@dataclass(frozen=True)
class Gpu:
    """One GPU at this moment; None where its driver does not tell."""

    number: int
    name: str
    percent: float | None  # Share of the last interval in which it computed.
    used_mib: float | None
    total_mib: float | None
    celsius: float | None
    watts: float | None
    processes: dict[int, float]  # Process number -> MiB of its memory.
    joules: float | None = None  # What it has used since some time in the past, by a counter of its own.
    bus: str = ""  # Where it is plugged in, as `0000:65:00`; empty where that is not told.


class Driver(Protocol):
    """What is read of the cards of one maker."""

    def cards(self) -> tuple[Gpu, ...]:
        """Return the cards at this moment; none where the driver does not answer."""


class Nvidia:
    """NVIDIA's cards, by the module `pynvml` of nvidia-ml-py."""

    def __init__(self, library: Any) -> None:
        self._library = library

    def cards(self) -> tuple[Gpu, ...]:
        """Return the cards at this moment."""
        with contextlib.suppress(self._library.NVMLError):
            return tuple(self._card(number) for number in range(self._library.nvmlDeviceGetCount()))
        return ()

    def _card(self, number: int) -> Gpu:
        nvml = self._library
        card = nvml.nvmlDeviceGetHandleByIndex(number)
        # Libraries and cards differ in what they tell; a gap is no reason to tell nothing.
        ask = functools.partial(_told, nvml.NVMLError, nvml)
        memory, rates = ask("nvmlDeviceGetMemoryInfo", card), ask("nvmlDeviceGetUtilizationRates", card)
        power, energy = ask("nvmlDeviceGetPowerUsage", card), ask("nvmlDeviceGetTotalEnergyConsumption", card)
        celsius = ask("nvmlDeviceGetTemperature", card, nvml.NVML_TEMPERATURE_GPU)
        processes = ask("nvmlDeviceGetComputeRunningProcesses", card) or []
        slot = getattr(ask("nvmlDeviceGetPciInfo", card), "busId", "")
        return Gpu(
            number=number,
            name=_text(ask("nvmlDeviceGetName", card)) or f"GPU {number}",
            percent=None if rates is None else float(rates.gpu),
            used_mib=None if memory is None else memory.used / _MIB,
            total_mib=None if memory is None else memory.total / _MIB,
            celsius=None if celsius is None else float(celsius),
            watts=None if power is None else power / 1000,
            processes={process.pid: (process.usedGpuMemory or 0) / _MIB for process in processes},
            joules=None if energy is None else energy / 1000,
            bus=_bus(_text(slot)),
        )


class Amd:
    """AMD's cards, by the module `amdsmi` of ROCm."""

    def __init__(self, library: Any) -> None:
        self._library = library

    def cards(self) -> tuple[Gpu, ...]:
        """Return the cards at this moment."""
        with contextlib.suppress(self._library.AmdSmiException):
            handles = self._library.amdsmi_get_processor_handles()
            return tuple(self._card(number, handle) for number, handle in enumerate(handles))
        return ()

    def _card(self, number: int, handle: Any) -> Gpu:
        smi = self._library
        ask = functools.partial(_told, smi.AmdSmiException, smi)
        asic, activity = ask("amdsmi_get_gpu_asic_info", handle), ask("amdsmi_get_gpu_activity", handle)
        memory, power = ask("amdsmi_get_gpu_vram_usage", handle), ask("amdsmi_get_power_info", handle)
        energy, listed = ask("amdsmi_get_energy_count", handle), ask("amdsmi_get_gpu_process_list", handle)
        kinds, now = smi.AmdSmiTemperatureType, smi.AmdSmiTemperatureMetric.CURRENT
        # Cards of data centers have no sensor at the edge.
        sensors = (ask("amdsmi_get_temp_metric", handle, kind, now) for kind in (kinds.EDGE, kinds.HOTSPOT))
        counted, step = _number(energy, "energy_accumulator", "power"), _number(energy, "counter_resolution")
        return Gpu(
            number=number,
            name=_text((asic or {}).get("market_name")) or f"GPU {number}",
            percent=_number(activity, "gfx_activity"),
            used_mib=_number(memory, "vram_used"),
            total_mib=_number(memory, "vram_total"),
            celsius=next((float(value) for value in sensors if isinstance(value, int | float)), None),
            watts=_number(power, "current_socket_power", "average_socket_power"),
            processes={
                process["pid"]: (_number(process.get("memory_usage"), "vram_mem") or 0) / _MIB
                for process in listed or ()
                if isinstance(process, dict) and "pid" in process
            },
            joules=None if counted is None or step is None else counted * step / 1e6,
            bus=_bus(_text(ask("amdsmi_get_gpu_device_bdf", handle))),
        )


class AmdFiles:
    """AMD's cards as the kernel's files tell of them, where amdsmi is not installed."""

    def __init__(self, folder: Path = DRM) -> None:
        self._folder = folder

    def cards(self) -> tuple[Gpu, ...]:
        """Return the cards at this moment."""
        devices = sorted(self._folder.glob("card[0-9]*/device"), key=lambda path: (len(path.parent.name), path))
        amd = [device for device in devices if _line(device / "vendor") == _AMD]
        return tuple(self._card(number, device) for number, device in enumerate(amd))

    def _card(self, number: int, device: Path) -> Gpu:
        sensors = next(iter(sorted(device.glob("hwmon/hwmon*"))), device)

        def read(file: Path, unit: float) -> float | None:
            text = _line(file)
            return float(text) / unit if text.removeprefix("-").isdecimal() else None

        draws = (read(sensors / name, 1e6) for name in ("power1_average", "power1_input"))
        return Gpu(
            number=number,
            name=_line(device / "product_name") or f"AMD GPU {number}",
            percent=read(device / "gpu_busy_percent", 1),
            used_mib=read(device / "mem_info_vram_used", _MIB),
            total_mib=read(device / "mem_info_vram_total", _MIB),
            celsius=read(sensors / "temp1_input", 1000),
            watts=next((watts for watts in draws if watts is not None), None),
            processes={},
            joules=read(sensors / "energy1_input", 1e6),
            bus=_bus(device.resolve().name),
        )


class Apple:
    """The GPU of a Mac by `ioreg`, and its energy by the module zeus_apple_silicon where that is installed."""

    def __init__(self, ask: Callable[[], bytes], monitor: Any = None) -> None:
        self._ask, self._monitor = ask, monitor
        self._joules = 0.0
        if monitor is not None:
            monitor.begin_window("gpu")

    def cards(self) -> tuple[Gpu, ...]:
        """Return the cards at this moment."""
        import plistlib

        try:
            listed = plistlib.loads(self._ask())
        except (plistlib.InvalidFileException, OSError, ValueError, subprocess.SubprocessError):
            return ()
        cards = [entry for entry in listed if isinstance(entry, dict) and "PerformanceStatistics" in entry]
        return tuple(self._card(number, entry) for number, entry in enumerate(cards))

    def _card(self, number: int, entry: dict[str, Any]) -> Gpu:
        statistics = entry["PerformanceStatistics"]
        used = _number(statistics, "In use system memory")
        return Gpu(
            number=number,
            name=_text(entry.get("model")) or f"GPU {number}",
            percent=_number(statistics, "Device Utilization %"),
            used_mib=None if used is None else used / _MIB,
            total_mib=None,  # it shares the computer's
            celsius=None,
            watts=None,
            processes={},
            joules=self._read_joules() if number == 0 else None,
        )

    def _read_joules(self) -> float | None:
        if self._monitor is None:
            return None
        self._joules += (self._monitor.end_window("gpu").gpu_mj or 0) / 1000
        self._monitor.begin_window("gpu")
        return self._joules


def cards() -> tuple[tuple[Gpu, ...], str]:
    """Return the GPUs of this computer, or none and the reason."""
    drivers, why = _drivers()
    listed = [card for driver in drivers for card in driver.cards()]
    if drivers and not listed:
        why = "The driver of the graphics card does not answer."
    return tuple(listed), "" if listed else why


@functools.cache
def _drivers() -> tuple[tuple[Driver, ...], str]:
    """Return what answers on this computer, and why nothing does."""
    drivers: list[Driver] = []
    why = "No GPU."
    with contextlib.suppress(ImportError):
        import pynvml

        with contextlib.suppress(pynvml.NVMLError):
            pynvml.nvmlInit()
            drivers.append(Nvidia(pynvml))
    if not drivers and Path("/proc/driver/nvidia/version").exists():
        why = "No NVIDIA GPU is read: nvidia-ml-py is not installed (uv sync --extra gpu)."
    if amd := _amd():
        drivers.append(amd)
    if sys.platform == "darwin":
        drivers.append(Apple(_ioreg, _apple_monitor()))
    return tuple(drivers), why


def _amd() -> Driver | None:
    if not AmdFiles().cards():
        return None
    try:
        import amdsmi  # a part of ROCm, in no lock file

        amdsmi.amdsmi_init()
        return Amd(amdsmi)
    except Exception:  # what it raises without a driver is of a class of its own
        return AmdFiles()


def _apple_monitor() -> Any:
    with contextlib.suppress(Exception):
        from zeus_apple_silicon import AppleEnergyMonitor

        return AppleEnergyMonitor()
    return None


def _ioreg() -> bytes:
    return safe_subprocess.run(list(_IOREG), timeout=_IOREG_S, most=_MOST_IOREG).stdout


def _told(refusal: type[Exception], library: Any, question: str, *arguments: Any) -> Any:
    with contextlib.suppress(refusal, AttributeError):
        return getattr(library, question)(*arguments)
    return None


def _number(record: Any, *names: str) -> float | None:
    """Return the first of the values that is a number: `N/A` stands where there is none."""
    values = (record.get(name) for name in names) if isinstance(record, dict) else ()
    return next((float(value) for value in values if isinstance(value, int | float)), None)


def _text(value: Any) -> str:
    text = value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value or "")
    return "" if text == "N/A" else text.rstrip("\0")


def _line(file: Path) -> str:
    with contextlib.suppress(OSError, ValueError):
        return untrusted_files.read_text(file).strip()
    return ""


def _bus(slot: str) -> str:
    """Return `0000:65:00` of `00000000:65:00.0`."""
    domain, _, rest = slot.lower().partition(".")[0].partition(":")
    return f"{domain[-4:]}:{rest}" if rest.count(":") == 1 else ""
