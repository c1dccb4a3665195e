"""System load of this very process and a fake GPU."""

import os
import time

import pytest

from trainer.scheduling import system_usage
from trainer.scheduling.gpu_usage import Gpu


def test_this_process_is_read_as_a_job(tmp_path):
    system_usage.read(tmp_path, ((7, "me", os.getpid()),))
    # Linux counts a process's time in ticks of 10 ms, and a share of less is rounded to none.
    until = time.process_time() + 0.2
    while time.process_time() < until:
        sum(n * n for n in range(10_000))
    now = system_usage.read(tmp_path, ((7, "me", os.getpid()), (8, "nobody", 2**22 + 1)))
    assert [(job.run, job.name) for job in now.jobs] == [(7, "me")]
    assert now.jobs[0].percent > 0
    assert 5 < now.jobs[0].rss_mib < now.total_mib
    assert 0 < now.free_disk_mib <= now.disk_mib
    assert now.cores >= 1
    assert bool(now.gpus) != bool(now.without_gpu)


def test_a_process_has_the_memory_that_it_takes_of_a_gpu(tmp_path, monkeypatch: pytest.MonkeyPatch):
    gpu = Gpu(0, "Pretended", 87.0, 1024.0, 8192.0, 61.0, None, {os.getpid(): 512.0})
    monkeypatch.setattr(system_usage.gpu_usage, "cards", lambda: ((gpu,), ""))
    now = system_usage.read(tmp_path, ((1, "me", os.getpid()),))
    assert now.gpus == (gpu,)
    assert now.jobs[0].gpu_mib == 512
