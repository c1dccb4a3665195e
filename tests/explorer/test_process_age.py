"""The age of a process lies between what it slept and what passed outside."""

import subprocess
import sys
import time

import pytest

SLEEPS = """
import time
time.sleep(0.3)
from explorer.event_loop.process_age import process_age_s
print(process_age_s())
"""
TICK_S = 0.01


@pytest.mark.slow
def test_the_age_of_a_process_counts_from_its_start():
    began = time.monotonic()
    printed = subprocess.run([sys.executable, "-c", SLEEPS], capture_output=True, text=True, check=True, timeout=120)
    assert 0.3 - TICK_S <= float(printed.stdout) <= time.monotonic() - began + TICK_S
