import os
import subprocess
import sys
import time

import pytest

from trainer.images import scratch

pytestmark = pytest.mark.slow

KILLED = """
import os, signal, sys
from trainer.images import scratch
scratch._memory_folder = lambda size: sys.argv[1]
with scratch.scratch_file(64) as file:
    os.utime(file, (1, 1))
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(scratch, "_memory_folder", lambda size: str(tmp_path))
    return tmp_path


def test_a_scratch_file_is_zeros_and_is_gone_afterwards(folder):
    with scratch.scratch_file(10) as file:
        assert file.read_bytes() == bytes(10)
    assert list(folder.iterdir()) == []


@pytest.mark.skipif(os.name == "nt", reason="an open file is removed with its process there")
def test_that_of_a_killed_process_is_removed_by_the_next_and_those_in_use_stay(folder):
    subprocess.run([sys.executable, "-c", KILLED, str(folder)], timeout=60)
    (left,) = folder.iterdir()
    with scratch.scratch_file(10) as file:
        assert not left.exists()
        os.utime(file, (1, time.time() - 3600))
        with scratch.scratch_file(10):
            assert file.exists()
        (folder / f"{scratch.PREFIX}young").touch()
        scratch.remove_left_behind(folder)
        assert (folder / f"{scratch.PREFIX}young").exists(), "its maker may be about to lock it"
