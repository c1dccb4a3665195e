"""A peer that never stops talking: its output is bounded while it is read, and its errors hold nobody up."""

import os
import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numpy as np
import psutil
import pytest

from tests.nightly import few_plain
from trainer.places import ssh
from trainer.places.remote_host import OutOfReach, PlaceError, RemoteHost, parse
from trainer.untrusted import safe_subprocess

pytestmark = [
    pytest.mark.faults,
    pytest.mark.slow,
    pytest.mark.skipif(os.name == "nt", reason="the stand-ins are scripts of a shell"),
]
MOST_MIB = 64
"""Memory of this process that a peer may take; the bounds of both pipes and what Python adds are a quarter of it."""
PEERS = {
    "lines on standard output": "exec yes x",
    "lines on standard error": "exec yes x >&2",
    "both": "yes x >&2 & exec yes x",
    "one line without an end": "exec cat /dev/zero",
    "a child that goes on": "yes x & exit 0",
    "a child of another session": "setsid yes x & exit 0",
    "its own name": 'while :; do echo "$0"; echo "$0" >&2; done',
    "what it was told": 'cat; while :; do echo "$@"; done',
}


@pytest.fixture
def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], None]:
    """Return a function that puts a program of a name, first on the path, which runs a script of the shell."""
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)

    def make(program: str, script: str) -> None:
        (tmp_path / program).write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / program).chmod(0o700)

    return make


def _memory_mib() -> float:
    return psutil.Process().memory_info().rss / 2**20


def _children() -> list[psutil.Process]:
    return [child for child in psutil.Process().children(recursive=True) if child.name() in ("yes", "cat", "ssh")]


def test_a_peer_without_an_end(stand_in, faults) -> None:
    rng = np.random.default_rng(0)
    place: RemoteHost = parse("box", "ssh://nobody@box.invalid/usr/bin/python3")
    kinds = list(PEERS)
    good, count = 0, max(faults.times(50), len(kinds))
    for turn in range(count):
        kind = kinds[turn % len(kinds)] if turn < len(kinds) else str(rng.choice(kinds))
        stand_in("ssh", PEERS[kind])
        before = _memory_mib()
        with pytest.raises((PlaceError, OutOfReach)) as refusal:
            ssh.check_path(place, "/data")
        good += _memory_mib() - before < MOST_MIB and not _children() and len(str(refusal.value)) < 1_000
    faults.row(27, "a peer that never stops talking, on one or both pipes", "ended, told in a sentence", count, good)
    assert good == count


def test_the_sentence_names_the_peer_and_the_next_step(stand_in) -> None:
    stand_in("ssh", PEERS["lines on standard output"])
    with pytest.raises(
        PlaceError, match=r"box answers without an end: ssh printed more than 4 MiB.* See what its login"
    ):
        ssh.check_path(parse("box", "ssh://nobody@box.invalid/usr/bin/python3"), "/data")


@few_plain(1, "lines", [20, 4_000])
def test_an_upload_with_many_errors_ends(lines: int, stand_in, tmp_path: Path) -> None:
    stand_in("ssh", "exit 0")
    stand_in("rsync", f"yes 'rsync: Permission denied (13)' | head -n {lines} >&2; echo '  100%'; exit 23")
    place = parse("box", "ssh://nobody@box.invalid/usr/bin/python3")
    with pytest.raises(PlaceError, match=r"rsync to box ended with status 23: rsync: Permission denied \(13\)"):
        ssh.upload(place, tmp_path, "/data", lambda share: None)


def test_a_program_that_is_listened_to_may_print_errors_without_reading(stand_in) -> None:
    stand_in("ssh", "yes error | head -n 100000 >&2; echo heard; echo last >&2; exit 3")
    lines: list[str] = []
    with pytest.raises(PlaceError, match="box refused: last"):
        ssh.listen(parse("box", "ssh://nobody@box.invalid/usr/bin/python3"), ["train"], lines.append)
    assert lines == ["heard\n"]


@few_plain(1, "stream", ["stdout", "stderr"])
def test_output_up_to_the_bound_comes_whole_and_more_ends_the_process(stream: str) -> None:
    code = f"import sys; sys.{stream}.write('x' * int(sys.argv[1]))"
    answer = safe_subprocess.run(safe_subprocess.python("-c", code, "70000"), most=70_000)
    assert getattr(answer, stream) == b"x" * 70_000
    with pytest.raises(safe_subprocess.OutputTooLong, match="printed more than"):
        safe_subprocess.run(safe_subprocess.python("-c", code, "70001"), most=70_000)


def test_a_long_question_and_a_long_answer_at_once() -> None:
    content = os.urandom(1 << 20)
    answer = safe_subprocess.run([sys.executable, "-c", "import sys; sys.stdout.buffer.write(sys.stdin.buffer.read())"],
                                 input=content)  # fmt: skip
    assert answer.stdout == content
    # One that reads nothing of it is not waited for.
    assert safe_subprocess.run(["/bin/sh", "-c", "exit 4"], input=content).returncode == 4


def test_a_process_that_says_nothing_ends_with_all_it_started() -> None:
    with pytest.raises(subprocess.TimeoutExpired):
        safe_subprocess.run(["/bin/sh", "-c", "sleep 4711 & sleep 4711"], timeout=0.3)
    left = [child for child in psutil.Process().children(recursive=True) if "4711" in child.cmdline()]
    psutil.wait_procs(left, timeout=5)
    assert not [child for child in left if child.is_running()]


def test_memory_of_a_reader_does_not_grow_with_what_is_dropped() -> None:
    process = safe_subprocess.start(["/bin/sh", "-c", "head -c 50000000 /dev/zero; echo end"], stdout=subprocess.PIPE)
    assert process.stdout is not None
    tracemalloc.start()
    reader = safe_subprocess.PipeReader(process.stdout, 1_000)
    content = reader.content()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (len(content), content[-4:], process.wait()) == (1_000, b"end\n", 0)
    assert peak < 1 << 20
