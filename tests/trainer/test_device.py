"""The trainer's settings of its process: freed memory is kept for the next step, threads that wait sleep."""

import os
import subprocess
import sys

import pytest
import torch

from tests.nightly import few_plain
from trainer import device

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


@pytest.mark.parametrize(("loaded", "expected"), [({}, [0, 10]), ({"trainer.api": None}, [])])
def test_the_priority_of_a_trainer_is_lowered_and_that_of_a_notebook_is_not(loaded, expected, monkeypatch):
    niceness = []
    monkeypatch.setattr(device.os, "nice", lambda more: niceness.append(more) or 0)
    monkeypatch.delitem(sys.modules, "trainer.api", raising=False)
    for name, module in loaded.items():
        monkeypatch.setitem(sys.modules, name, module)
    device.be_polite(torch.device("cpu"))
    device.be_polite(torch.device("cuda"))
    assert niceness == expected


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="glibc's setting")
@few_plain(1, "kept", [True, False])
def test_a_step_gets_no_new_pages_for_what_the_last_one_freed(kept: bool):
    done = subprocess.run([sys.executable, "-c", STEPS.format(kept=kept)], capture_output=True, check=True)
    assert (int(done.stdout) < 1000) is kept


@pytest.mark.slow
@few_plain(1, ("chosen", "policy"), [("", "PASSIVE"), ("ACTIVE", "ACTIVE")])
def test_waiting_threads_of_a_trainer_sleep_unless_told_otherwise(chosen, policy):
    environment = {name: value for name, value in os.environ.items() if name != "OMP_WAIT_POLICY"}
    environment |= {"OMP_WAIT_POLICY": chosen} if chosen else {}
    program = "import trainer.__main__, os, sys; print(os.environ['OMP_WAIT_POLICY'], 'torch' in sys.modules)"
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, env=environment)
    assert told.stdout.split() == [policy, "False"]  # OpenMP reads it when torch loads it
