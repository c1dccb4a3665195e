"""A process with preloaded modules that forks a child with limits for each file to open.

Run as a module: the names of hostile files come in on standard input, one JSON line a result goes out. An order is
`trainer` with the arguments of the command, or `call` with the name of a function in `ways` and its arguments. So the
time of a trial is that of the opening alone, and a file that takes all memory or never ends takes only its child with
it.
"""

import contextlib
import json
import mmap
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

CEILING = 3 << 30
"""Bytes of address space a child may take on top of what it has: beyond the promise, below what hurts a machine."""
PATIENCE_S = 15.0


@dataclass(frozen=True)
class Trial:
    """The outcome of an attempt.

    Attributes:
        code: Exit status; 2 is a refusal in words, negative a signal.
        words: What was said, both streams.
        cpu_s: Processor time of the child and of its own children.
        wall_s: From the order to the end; of little meaning on a busy machine.
        peak_mib: Most memory at a time, above what it began with.
    """

    name: str
    code: int
    words: str
    cpu_s: float
    wall_s: float
    peak_mib: float


def trials(names: Sequence[str], folder: Path, canary: Path) -> list[Trial]:
    """Create malicious files and open each in its own child, one after the other.

    Args:
        names: Of the cases of `hostile`.
        folder: Where they are made and the children work.
        canary: What code would touch that runs.
    """
    here = Path(__file__)
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": f"{here.parents[3]}:{here.parents[1]}"}
    answer = subprocess.run(
        [sys.executable, "-P", "-m", "tests.faults.corpus.warm"],
        input=json.dumps([list(names), str(canary)]),
        capture_output=True,
        text=True,
        cwd=folder,
        env=environment,
        check=True,
    )
    return [Trial(**json.loads(line)) for line in answer.stdout.splitlines()]


def _main() -> None:
    names, canary = json.load(sys.stdin)
    os.environ |= {"HF_ENDPOINT": "http://127.0.0.1:9", "QT_QPA_PLATFORM": "offscreen", "HF_HUB_OFFLINE": "1"}
    if hub := sys.modules.get("huggingface_hub.constants"):  # which the process that forked this one has imported
        hub.HF_HUB_OFFLINE = True
    _warm()
    from corpus.hostile import CASES, Place

    for number, name in enumerate(names):
        place = Place(Path(f"{number:03}").absolute(), Path(canary))
        place.folder.mkdir()
        order = CASES[name](place) | {"name": name}
        print(json.dumps(_tried(order)), flush=True)
        shutil.rmtree(place.folder, ignore_errors=True)


def _warm() -> None:
    """Preload the modules for opening without creating threads, which a fork would lose."""
    import corpus.hostile
    import numpy as np
    import open_clip
    import pyarrow.csv
    import pyarrow.parquet
    import safetensors
    import torch
    from PIL import Image

    import explorer.import_sheet.dropped_files
    import explorer.thumbnails
    import trainer.__main__ as command
    import trainer.config
    import trainer.data
    import trainer.projection
    import trainer.training.fit
    from trainer.store import Workspace

    torch.set_num_threads(1)
    Image.init()
    with tempfile.TemporaryDirectory() as folder:
        Workspace(Path(folder)).runs.all()
    command.argument_parser([])
    explorer_parts = (explorer.thumbnails, explorer.import_sheet.dropped_files)
    trainer_parts = (corpus.hostile, trainer.config, trainer.data, trainer.training.fit, trainer.projection)
    assert all((np, open_clip, pyarrow.csv, pyarrow.parquet, safetensors, explorer_parts, trainer_parts))


def _tried(order: dict[str, Any]) -> dict[str, Any]:
    with tempfile.TemporaryFile() as said, mmap.mmap(-1, 8) as began_with:
        began = time.monotonic()
        child = os.fork()
        if child == 0:
            # A fork has less than its parent: the pages of libraries come when they are used, and count here.
            began_with[:] = _resident().to_bytes(8, "little")
            _child(order, said.fileno())
        code, usage = _waited(child, began + PATIENCE_S)
        wall = time.monotonic() - began
        had = int.from_bytes(began_with[:], "little")
        said.seek(0)
        words = said.read(20_000).decode("utf-8", "replace")
    peak = max(0.0, usage.ru_maxrss / 1024 - had / 2**20)
    cpu = usage.ru_utime + usage.ru_stime
    return Trial(order["name"], code, words, round(cpu, 3), round(wall, 3), round(peak, 1)).__dict__


def _child(order: dict[str, Any], said: int) -> None:
    code = 1
    try:
        os.setsid()
        os.dup2(said, 1)
        os.dup2(said, 2)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        sys.stdout = os.fdopen(1, "w", encoding="utf-8", closefd=False)
        sys.stderr = os.fdopen(2, "w", encoding="utf-8", closefd=False)
        resource.setrlimit(resource.RLIMIT_AS, (_virtual() + CEILING,) * 2)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        code = _obeyed(order)
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else 1
    except BaseException:
        traceback.print_exc()
    finally:
        with contextlib.suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


def _obeyed(order: dict[str, Any]) -> int:
    from trainer import device
    from trainer.errors import UserError

    device.be_polite = lambda where: None
    if "trainer" in order:
        from trainer.__main__ import main

        return main(order["trainer"])
    from corpus import ways

    name, *arguments = order["call"]
    try:
        getattr(ways, name)(*arguments)
    except UserError as problem:
        print(problem)
        return 2
    return 0


def _waited(child: int, until: float) -> tuple[int, resource.struct_rusage]:
    while True:
        done, status, usage = os.wait4(child, os.WNOHANG)
        if done:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child, signal.SIGKILL)  # whatever it left behind
            return os.waitstatus_to_exitcode(status), usage
        if time.monotonic() > until:
            os.killpg(child, signal.SIGKILL)
            _, status, usage = os.wait4(child, 0)
            return os.waitstatus_to_exitcode(status), usage
        time.sleep(0.003)


def _resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def _virtual() -> int:
    return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()


if __name__ == "__main__":
    _main()
