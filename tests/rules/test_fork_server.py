"""A forked command is like one that is started."""

import os
import signal
import socket
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


@pytest.mark.skipif(not fork_server.AVAILABLE, reason="nothing is forked on this computer")
def test_a_server_forks_from_a_process_with_more_open_files_than_select_takes(tmp_path: Path) -> None:
    resource = pytest.importorskip("resource")
    if resource.getrlimit(resource.RLIMIT_NOFILE)[0] < 1100:
        pytest.skip("this process may not open 1,100 files")
    files, server = [os.open(os.devnull, os.O_RDONLY) for _ in range(1030)], fork_server.ForkServer()
    try:
        order = {"args": [*COMMAND, "runs", "--workspace", str(tmp_path)], "cwd": str(tmp_path), "session": False}
        child = server.fork(order | {"env": dict(os.environ)}, [0, 1, 2])
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    finally:
        server.close()
        for file in files:
            os.close(file)


@pytest.mark.skipif(not fork_server.AVAILABLE, reason="nothing is forked on this computer")
def test_a_client_that_ends_before_it_asks_leaves_the_server_to_others(tmp_path: Path) -> None:
    server = fork_server.ForkServer()
    try:
        address = server.listens_at()
        for _ in range(2):
            with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as client:
                client.connect("\0" + address)
        client_program = str(Path(fork_server.__file__).with_name("fork_client.py"))
        asked = [sys.executable, "-I", "-S", client_program, address, *COMMAND, "runs", "--workspace", str(tmp_path)]
        done = subprocess.run([*asked, "--json"], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout) == (0, "[]\n"), done.stderr
    finally:
        server.close()
