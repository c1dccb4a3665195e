"""System load of this very process and a fake GPU."""

import os
from types import SimpleNamespace

import pytest

from trainer.scheduling import system_usage


def test_this_process_is_read_as_a_job(tmp_path):
    system_usage.read(tmp_path, ((7, "me", os.getpid()),))
    sum(n * n for n in range(300_000))
    now = system_usage.read(tmp_path, ((7, "me", os.getpid()), (8, "nobody", 2**22 + 1)))
    assert [(job.run, job.name) for job in now.jobs] == [(7, "me")]
    assert now.jobs[0].percent > 0
    assert 5 < now.jobs[0].rss_mib < now.total_mib
    assert 0 < now.free_disk_mib <= now.disk_mib
    assert now.cores >= 1
    assert bool(now.gpus) != bool(now.without_gpu)


class NvmlError(Exception):
    pass


def _refuses(card):
    raise NvmlError("not supported")


# As much of nvidia-ml-py as is asked; a card that tells no power, as many in laptops.
LIBRARY = SimpleNamespace(
    NVMLError=NvmlError,
    NVML_TEMPERATURE_GPU=0,
    nvmlDeviceGetCount=lambda: 1,
    nvmlDeviceGetHandleByIndex=lambda number: number,
    nvmlDeviceGetName=lambda card: "Pretended",
    nvmlDeviceGetMemoryInfo=lambda card: SimpleNamespace(used=2**30, total=2**33),
    nvmlDeviceGetUtilizationRates=lambda card: SimpleNamespace(gpu=87),
    nvmlDeviceGetTemperature=lambda card, which: 61,
    nvmlDeviceGetPowerUsage=_refuses,
    nvmlDeviceGetComputeRunningProcesses=lambda card: [SimpleNamespace(pid=os.getpid(), usedGpuMemory=512 * 2**20)],
)


def test_a_gpu_is_read_and_what_it_does_not_tell_is_left_out(tmp_path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(system_usage, "_nvml", lambda: (LIBRARY, ""))
    now = system_usage.read(tmp_path, ((1, "me", os.getpid()),))
    (gpu,) = now.gpus
    assert (gpu.name, gpu.percent, gpu.used_mib, gpu.total_mib, gpu.celsius, gpu.watts) == (
        "Pretended",
        87,
        1024,
        8192,
        61,
        None,
    )
    assert now.jobs[0].gpu_mib == 512
