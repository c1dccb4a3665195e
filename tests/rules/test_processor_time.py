"""The rule of dear tests can fail, and a test is charged with the processes that it started alone."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests import fork_server, processor_time
from tests.child_times import ChildTimes
from tests.processor_time import LIMIT_S, MARGIN, above_limit

TEST = "tests/test_it.py::test_it"
ROOT = Path(__file__).parents[2]
MOST_DEAR = 22
"""Tests that may use more than the limit; it can only fall."""
DEAR_S = MARGIN * LIMIT_S + 1


@pytest.mark.parametrize(
    ("seconds", "pace", "listed", "above"),
    [
        (DEAR_S, 1.0, {}, True),
        (DEAR_S - 2, 1.0, {}, False),
        (DEAR_S, 1.5, {}, False),
        (3 * DEAR_S, 1.0, {TEST: {"seconds": 2 * DEAR_S, "why": "it trains"}}, False),
        (6 * DEAR_S, 1.0, {TEST: {"seconds": 2 * DEAR_S, "why": "it trains"}}, True),
    ],
    ids=["dear", "cheap", "slow computer", "listed", "dearer than listed"],
)
def test_a_dear_test_is_above_its_limit(
    monkeypatch: pytest.MonkeyPatch, seconds: float, pace: float, listed: dict[str, Any], above: bool
):
    monkeypatch.setattr(processor_time, "listed", lambda: listed)
    monkeypatch.setattr(processor_time, "pace", lambda: pace)
    assert (TEST in above_limit({TEST: seconds})) == above


def test_each_listed_test_exists_and_says_why():
    entries = processor_time.listed()
    assert len(entries) <= MOST_DEAR
    for name, entry in entries.items():
        file, _, function = name.partition("::")
        assert f"def {function.partition('[')[0]}(" in (ROOT / file).read_text(encoding="utf-8"), name
        assert entry["why"], name
        assert entry["seconds"] > LIMIT_S, name


@pytest.mark.slow
@pytest.mark.parametrize("how", ["wait", "poll"])
def test_a_process_counts_for_the_test_that_started_it(how: str):
    times = ChildTimes()
    times.begin()
    try:
        times.pay("first")
        busy = "import time\nwhile time.process_time() < 0.2: pass"
        process = subprocess.Popen([sys.executable, "-c", busy], stdout=subprocess.PIPE)
        times.pay("second")
        assert process.stdout
        process.stdout.read()  # it ends here, and is waited for below
        while getattr(process, how)() is None:
            pass
        assert times.foreign > 0.2
        assert times.pop("first") == times.foreign
        assert times.pop("second") == 0
    finally:
        times.end()


@pytest.mark.slow
@pytest.mark.skipif(not fork_server.AVAILABLE, reason="nothing is forked on this computer")
def test_what_a_server_forks_counts_for_the_test_that_asked(tmp_path: Path):
    times, server = ChildTimes(), fork_server.ForkServer()
    times.begin()
    try:
        times.pay("first")
        client = str(Path(fork_server.__file__).with_name("fork_client.py"))
        command = [sys.executable, "-P", "-m", "trainer", "runs", "--workspace", str(tmp_path)]
        process = subprocess.Popen([sys.executable, "-I", "-S", client, server.listens_at(), *command])
        times.pay("second")
        process.wait()
        assert times.pop("first") > times.foreign, "the client alone"
    finally:
        times.end()
        server.close()
