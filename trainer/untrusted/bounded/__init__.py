"""Read untrusted tables in a helper process with limited memory and time, which protects this process."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Generator, Iterator, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final

from msgspec import Struct, field

from trainer.errors import UserError
from trainer.untrusted import safe_subprocess

if TYPE_CHECKING:
    import pyarrow as pa

MEMORY: Final = 400 * 2**20
"""Bytes that reading may take, beyond what the libraries that read take themselves (about 80 MiB)."""

CPU_S: Final = 2.0
"""Seconds of processor time for one batch of rows."""

UNENFORCED: Final = "CONTRASTIVE_EXPLORER_WATCHED"
"""Environment variable; when it is set, helpers are watched as where the system does not limit them."""

ENFORCED = sys.platform == "linux" and not os.environ.get(UNENFORCED)
"""Whether the system itself keeps the helper to its limits; elsewhere it is looked at every `LOOKS_EVERY_S`."""

LOOKS_EVERY_S: Final = 0.05

REFUSED: Final = 3
"""Exit status of a helper that tells why, in a line of JSON."""

WHOLE: Final = b"."
"""Follows the stream of a file that was read to its end."""


class Unreadable(UserError, ValueError):
    """A file that was refused; the message is the reason, as a sentence."""


class TablePart(Struct, frozen=True):
    """One file of a table: the reader's facts, and its rows, to be read before the next part."""

    facts: dict[str, Any]
    schema: pa.Schema
    rows: Iterator[pa.RecordBatch]


class _Helper(Struct):
    """A reader process, and why it was ended."""

    process: subprocess.Popen[bytes]
    memory: int
    cpu_s: float
    verdict: str = ""
    spent_s: float = 0.0
    """Processor time at the last batch."""
    over: threading.Event = field(default_factory=threading.Event)


def read(
    reader: str, files: Sequence[Path], options: dict[str, Any], *, memory: int = MEMORY, cpu_s: float = CPU_S
) -> Generator[TablePart, None, None]:
    """Yield a reader's result for each file, in order, while another process is reading.

    Args:
        reader: Module and function, `trainer.untrusted.bounded.parquet:parts`; called there with the path and the
            options, it returns facts, a schema and batches of that schema.
        memory: Bytes beyond those of the libraries.
        cpu_s: Seconds of processor time for one batch.

    Raises:
        Unreadable: The reader refuses a file, or reading it takes more than the limits.
    """
    import pyarrow as pa

    job = {"reader": reader, "files": [os.fspath(file.absolute()) for file in files], "options": options}
    with tempfile.TemporaryFile() as errors:
        helper = _start(job, errors, memory, cpu_s)
        try:
            for file in files:
                try:
                    stream = pa.ipc.open_stream(helper.process.stdout)
                    facts = json.loads((stream.schema.metadata or {}).get(b"facts", b"{}"))
                    yield TablePart(facts, stream.schema, _batches(stream, helper, errors, file))
                except (pa.ArrowException, OSError) as error:
                    raise Unreadable(_why(helper, errors, file)) from error
        finally:
            helper.over.set()
            helper.process.kill()
            helper.process.wait()
            for pipe in (helper.process.stdin, helper.process.stdout):
                if pipe is not None:
                    pipe.close()


def _batches(
    stream: pa.RecordBatchStreamReader, helper: _Helper, errors: IO[bytes], file: Path
) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa

    try:
        for batch in stream:
            helper.spent_s = _gauged(helper.process.pid)[0] if not ENFORCED else 0.0
            yield batch
        # A stream that was cut off between two batches looks like one that has ended.
        if helper.process.stdout is None or helper.process.stdout.read(1) != WHOLE:
            raise Unreadable(_why(helper, errors, file))
    except (pa.ArrowException, OSError) as error:
        raise Unreadable(_why(helper, errors, file)) from error


def _start(job: dict[str, Any], errors: IO[bytes], memory: int, cpu_s: float) -> _Helper:
    process = safe_subprocess.start_helper("trainer.untrusted.bounded.child", str(memory), str(cpu_s), errors=errors)
    assert process.stdin is not None
    with contextlib.suppress(OSError):  # it has ended: so does what it writes
        process.stdin.write(json.dumps(job).encode() + b"\n")
        process.stdin.flush()
    helper = _Helper(process, memory, cpu_s)
    if not ENFORCED:
        threading.Thread(target=_watch, args=(helper,), name=f"watch-{process.pid}", daemon=True).start()
    return helper


def _watch(helper: _Helper) -> None:
    """End a helper that exceeds its limits, where the system does not; runs in its own thread."""
    libraries = 160 * 2**20
    while not helper.over.wait(LOOKS_EVERY_S) and helper.process.poll() is None:
        spent_s, memory = _gauged(helper.process.pid)
        if memory > helper.memory + libraries:
            helper.verdict = _too_large(helper.memory)
        elif spent_s - helper.spent_s > helper.cpu_s + 1.0:  # which the libraries may take to load
            helper.verdict = _too_long(helper.cpu_s)
        if helper.verdict:
            helper.process.kill()
            return


def _gauged(pid: int) -> tuple[float, int]:
    """Return a process's CPU seconds and bytes of memory."""
    import psutil

    try:
        process = psutil.Process(pid)
        times = process.cpu_times()
        return times.user + times.system, process.memory_info().rss
    except psutil.Error:
        return 0.0, 0


def _why(helper: _Helper, errors: IO[bytes], file: Path) -> str:
    """Return why the helper ended before the end of the file."""
    try:
        code = helper.process.wait(timeout=10)
    except subprocess.TimeoutExpired:
        return f"{file.name} cannot be read: the process that reads tables sends something else."
    if helper.verdict:
        return f"{file.name} {helper.verdict}"
    errors.seek(0)
    last = errors.read().decode(errors="replace").strip().rpartition("\n")[2]
    if code == REFUSED:
        with contextlib.suppress(ValueError):
            answer = json.loads(last)
            return _too_large_file(file, helper) if answer.get("starved") else str(answer["reason"])
    if hasattr(signal, "SIGPROF") and code in (-signal.SIGPROF, -signal.SIGXCPU):
        return f"{file.name} {_too_long(helper.cpu_s)}"
    if code in (-getattr(signal, "SIGABRT", 6), -getattr(signal, "SIGKILL", 9)):
        return _too_large_file(file, helper)
    by = f" by {signal.Signals(-code).name}" if -code in set(signal.Signals) else f": {last}" if last else ""
    return f"{file.name} cannot be read: reading it ended the process that reads tables{by}. It is damaged."


def _too_large_file(file: Path, helper: _Helper) -> str:
    return f"{file.name} {_too_large(helper.memory)}"


def _too_large(memory: int) -> str:
    return (
        f"unfolds to more than the {memory / 2**20:.0f} MiB of memory that its reading may take: a few of its values, "
        "or rows held together, are very large. Write it again with smaller row groups and without such values."
    )


def _too_long(cpu_s: float) -> str:
    return (
        f"takes more than {cpu_s:.2g} seconds of processor time for a few rows, too much for a table of pairs. Write "
        "it again."
    )
