"""A Ray cluster on this computer, started by a test."""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.trainer.places.test_ssh import wait
from trainer.places import bindings
from trainer.places.ray_jobs import RayJobs
from trainer.places.remote_host import PlaceError, parse


@contextlib.contextmanager
def cluster(storage: str, cpus: Sequence[int]) -> Iterator[Path]:
    """Start a head and further nodes as the place `lab`, and end them; yield the folder where they keep their files.

    Args:
        storage: Of the place.
        cpus: Of each node.
    """
    program = shutil.which("ray", path=str(Path(sys.executable).parent))
    if program is None:
        pytest.skip("Ray is not installed: pip install 'ray[default,data]'")
    port, dashboard = _free_port(), _free_port()
    folder = tempfile.mkdtemp(prefix="ray")  # sockets have short names
    place = parse("lab", f"ray://127.0.0.1:{dashboard}{sys.executable}?storage={storage}&cpus=1")
    first = ["--head", f"--port={port}", "--dashboard-host=127.0.0.1", f"--dashboard-port={dashboard}"]
    first += ["--disable-usage-stats", f"--temp-dir={folder}"]
    nodes = [_started(program, first, cpus[0])]
    bindings.add(place)
    try:
        wait(lambda: _answers(place), "the head did not come up")
        nodes += [_started(program, [f"--address=127.0.0.1:{port}"], count) for count in cpus[1:]]
        time.sleep(5 * len(cpus))
        yield Path(folder)
    finally:
        for node in reversed(nodes):
            os.killpg(node.pid, signal.SIGTERM)
            try:
                node.wait(30)
            except subprocess.TimeoutExpired:
                os.killpg(node.pid, signal.SIGKILL)
                node.wait()
        shutil.rmtree(folder, ignore_errors=True)
        bindings.remove("lab")


def _started(program: str, words: list[str], cpus: int) -> subprocess.Popen[bytes]:
    # A port of its own for each agent: jobs wait for ever for one whose port another Ray of this computer has.
    more = [f"--num-cpus={cpus}", f"--dashboard-agent-listen-port={_free_port()}", "--block"]
    # Else other work on this computer starves its workers.
    environment = os.environ | {"RAY_worker_niceness": "0"}
    return subprocess.Popen(
        [program, "start", *words, *more],
        start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment,
    )  # fmt: skip


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def _answers(place: Any) -> bool:
    try:
        return bool(RayJobs(place).version())
    except PlaceError:
        return False
