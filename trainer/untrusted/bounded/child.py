"""The process that reads untrusted tables: `python -m trainer.untrusted.bounded.child MEMORY SECONDS`.

One job, a line of JSON; its answer is a stream of Arrow for each file. It ends with its limits, or when nobody listens.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import signal
import sys
from collections.abc import Iterator
from importlib.abc import MetaPathFinder
from pathlib import Path
from typing import Any

from trainer.untrusted.bounded import ENFORCED, REFUSED, WHOLE, Unreadable


class _NoPandas(MetaPathFinder):
    """Finds no pandas: the first array of pyarrow looks for it, for a third of a second, and no reader needs it."""

    def find_spec(self, name: str, *_: object) -> None:
        if name == "pandas":
            raise ModuleNotFoundError(name)


def main(memory: int, cpu_s: float) -> int:
    """Run one job and return the exit code."""
    job = json.loads(sys.stdin.readline())
    # A library that prints must not break the answers.
    answers = os.fdopen(os.dup(1), "wb")
    errors = os.fdopen(os.dup(2), "w", encoding="ascii")
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    module, _, name = job["reader"].partition(":")
    sys.meta_path.insert(0, _NoPandas())
    reader = getattr(importlib.import_module(module), name)
    import pyarrow as pa

    if ENFORCED:
        _limit(memory)
    try:
        for file in job["files"]:
            _timed(cpu_s)
            facts, schema, batches = reader(Path(file), job["options"])
            stream = pa.ipc.new_stream(answers, schema.with_metadata({"facts": json.dumps(facts)}))
            for batch in _each(batches, cpu_s):
                stream.write_batch(batch)
            stream.close()
            answers.write(WHOLE)
            answers.flush()
    except Unreadable as error:
        return _refuse(errors, {"reason": str(error)})
    except (MemoryError, pa.ArrowMemoryError):
        return _refuse(errors, {"starved": True})
    except BrokenPipeError:
        return 0
    except Exception as error:  # whatever a damaged file makes its reader raise
        if "alloc" in str(error).lower() or "memory" in str(error).lower():
            return _refuse(errors, {"starved": True})
        return _refuse(errors, {"reason": _cannot(Path(file), error)})
    return 0


def _each(batches: Iterator[Any], cpu_s: float) -> Iterator[Any]:
    """Yield the batches, each with its own time limit."""
    for batch in batches:
        yield batch
        _timed(cpu_s)


def _timed(cpu_s: float) -> None:
    if ENFORCED:
        # Its default ends the process, whatever C code runs.
        signal.setitimer(signal.ITIMER_PROF, cpu_s)


def _limit(memory: int) -> None:
    """Limit this process to `memory` more bytes, without core files."""
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
        most = pages * resource.getpagesize() + memory
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _cannot(file: Path, error: Exception) -> str:
    said = (error.strerror if isinstance(error, OSError) else "") or str(error)
    reason = said.splitlines()[0][:300] if said else type(error).__name__
    kind = " as Parquet" if file.suffix.lower() == ".parquet" else ""
    return f"{file} cannot be read{kind}: {reason.rstrip('.')}. Write it again, or choose another."


def _refuse(errors: Any, refusal: dict[str, Any]) -> int:
    errors.write(json.dumps(refusal) + "\n")
    errors.flush()
    return REFUSED


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        code = main(int(sys.argv[1]), float(sys.argv[2]))
        # Without the end of the interpreter: what a hostile file left behind is not looked at again.
        os._exit(code)
