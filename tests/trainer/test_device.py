"""The trainer's settings of the C library: memory freed by one step is reused by the next."""

from __future__ import annotations

import subprocess
import sys

import pytest

STEPS = """
import resource, torch
from trainer import device
if {kept}:
    device.keep_freed_memory(torch.device("cpu"))
def step():
    blocks = [torch.zeros(2_000_000) for _ in range(8)]
    return torch.stack(blocks).sum()
for _ in range(4):
    step()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(10):
    step()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="glibc's setting")
def test_a_step_gets_no_new_pages_for_what_the_last_one_freed():
    faults = [
        int(subprocess.run([sys.executable, "-c", STEPS.format(kept=kept)], capture_output=True, check=True).stdout)
        for kept in (True, False)
    ]
    assert faults[0] < 1000 < faults[1]
