"""A forked command is like one that is started."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from tests import fork_server

pytestmark = pytest.mark.slow
COMMAND = [sys.executable, "-P", "-m", "trainer"]


@pytest.fixture(params=["forked", "started"])
def run(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return how commands are run; where nothing can be forked, both are alike."""
    monkeypatch.setattr(fork_server, "enabled", request.param == "forked")
    return request.param


@pytest.mark.usefixtures("run")
def test_words_statuses_and_streams_are_alike(tmp_path: Path) -> None:
    options = {"cwd": tmp_path, "capture_output": True, "text": True, "check": False}
    done = subprocess.run([*COMMAND, "runs", "--json", "--workspace", "here"], **options)
    assert (done.returncode, done.stdout, done.stderr) == (0, "[]\n", "")
    done = subprocess.run([*COMMAND, "fit", "7", "--workspace", "here"], **options)
    assert (done.returncode, done.stdout) == (2, "")
    assert "There is no run '7'" in done.stderr


def test_a_process_is_a_child_with_its_own_command_line_and_dies_by_a_signal(run: str, tmp_path: Path) -> None:
    command = [*COMMAND, "serve", "--workspace", str(tmp_path)]
    options = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "start_new_session": True}
    with subprocess.Popen(command, env=os.environ | {"MARKED": "x"}, **options) as process:
        process.stdin.write(b"{}\n")
        process.stdin.flush()
        assert process.stdout.readline()
        seen = psutil.Process(process.pid)
        assert (seen.cmdline(), seen.ppid()) == (command, os.getpid())
        assert os.getsid(process.pid) == process.pid
        if run == "started":
            assert seen.environ()["MARKED"] == "x"
        process.send_signal(signal.SIGTERM)
    assert process.returncode == -signal.SIGTERM
