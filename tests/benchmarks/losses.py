"""Peak memory and time of the losses, dense against tiled against open_clip, over the batch size.

The part that runs on a GPU needs torch and nothing else:

    python3 -m tests.benchmarks losses --device cuda
"""

from __future__ import annotations

import argparse
import contextlib
import json
import statistics
import subprocess
import sys
import threading
import time
import types
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from trainer.untrusted import safe_subprocess

OBJECTIVES: Final = ("clip", "open_clip", "cloob", "dhn_nce", "siglip")
FORMS: Final = {"open_clip": ("dense",)}
DENSE_TABLES: Final = {"clip": 5, "open_clip": 5, "cloob": 10, "dhn_nce": 10, "siglip": 5}
"""How many n x n float32 tables the dense form holds at its peak, rounded up."""
OPERATIONS: Final = {
    ("clip", "dense"): 6,
    ("clip", "tiled"): 8,
    ("open_clip", "dense"): 12,
    ("cloob", "dense"): 60,
    ("cloob", "tiled"): 72,
    ("dhn_nce", "dense"): 12,
    ("dhn_nce", "tiled"): 16,
    ("siglip", "dense"): 6,
    ("siglip", "tiled"): 8,
}
"""Floating-point operations of the matrix products of both passes, in n^2 d."""
SIZES: Final = {"cpu": (1024, 4096, 16_384, 32_768), "cuda": (65_536, 262_144)}
DIMENSIONS: Final = {"cpu": 512, "cuda": 1024}
ON_GPU: Final = ("clip", "cloob")


@dataclass(frozen=True)
class Measurement:
    """One loss, forward and backward, in a separate process.

    Attributes:
        objective: Which loss.
        form: `dense` or `tiled`.
        pairs: Batch size.
        dimension: Of the embeddings.
        seconds: Median time of a forward and backward pass; None where not run.
        peak_mib: Memory above the inputs', at its highest: the process's on a CPU, torch's on a GPU.
        device: `cpu`: float32 throughout. `cuda`: bfloat16 inputs, products summed in float32.
        share: Operations a second of the matrix products, over those of one large product on the same device.
        note: Why it was not run; empty if it was.
    """

    objective: str
    form: str
    pairs: int
    dimension: int
    seconds: float | None
    peak_mib: float | None
    device: str = "cpu"
    share: float | None = None
    note: str = ""


def measure(
    sizes: Sequence[int], *, dimension: int = 512, objectives: Sequence[str] = OBJECTIVES, device: str = "cpu"
) -> Iterator[Measurement]:
    """Yield every objective and form at every batch size; dense only within 60 % of free memory."""
    for pairs in sizes:
        for objective in objectives:
            for form in FORMS.get(objective, ("dense", "tiled")):
                yield _in_own_process(objective, form, pairs, dimension, device)


def _in_own_process(objective: str, form: str, pairs: int, dimension: int, device: str) -> Measurement:
    needed, free = DENSE_TABLES[objective] * 4 * pairs**2, _free_bytes(device)
    if form == "dense" and needed > 0.6 * free:
        note = f"not run: needs about {needed / 2**30:.0f} GiB, {free / 2**30:.0f} GiB are free"
        return Measurement(objective, form, pairs, dimension, None, None, device, note=note)
    call = safe_subprocess.python(str(Path(__file__).resolve()), objective, form, str(pairs), str(dimension), device)
    kept: dict[str, Any] = {"cwd": safe_subprocess.NEUTRAL, "env": safe_subprocess.environment()}
    outcome = subprocess.run(call, capture_output=True, text=True, check=False, **kept)
    if outcome.returncode:
        said = outcome.stderr.strip().splitlines()
        note = f"not run: {said[-1] if said else 'ended by the system'}"
        return Measurement(objective, form, pairs, dimension, None, None, device, note=note)
    return Measurement(**json.loads(outcome.stdout))


def _free_bytes(device: str) -> int:
    if device == "cuda":
        import torch

        return torch.cuda.mem_get_info()[0]
    import psutil

    return psutil.virtual_memory().available


def _loss(objective: str, form: str, pairs: int, device: str) -> Callable:
    if objective == "open_clip":
        from open_clip.loss import ClipLoss

        return lambda image, text: ClipLoss()(image, text, 14.0)
    _stand_in_for_jaxtyping()
    from trainer import losses
    from trainer.losses.tiles import TILE_CELLS

    # A tile of all rows is the dense form, whatever the size; None would choose by itself.
    tile = pairs if form == "dense" else max(16, TILE_CELLS[device] // pairs)
    return {
        "clip": lambda image, text: losses.info_nce(image, text, 14.0, tile=tile),
        "cloob": lambda image, text: losses.cloob(image, text, 30.0, 8.0, tile=tile),
        "dhn_nce": lambda image, text: losses.dhn_nce(image, text, 14.0, 0.15, 0.15, tile=tile),
        "siglip": lambda image, text: losses.siglip(image, text, 10.0, -10.0, tile=tile),
    }[objective]


def _stand_in_for_jaxtyping() -> None:
    """Replace jaxtyping's shapes by plain tensors if only torch is installed."""
    try:
        import jaxtyping  # noqa: F401
    except ModuleNotFoundError:

        class Shaped:
            def __class_getitem__(cls, item: tuple[Any, str]) -> Any:
                return item[0]

        stand_in: Any = types.ModuleType("jaxtyping")
        stand_in.Float = stand_in.Int = stand_in.Bool = Shaped
        sys.modules["jaxtyping"] = stand_in


class _PeakMemory(threading.Thread):
    """The peak resident memory of this process, sampled every 2 ms."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        import psutil

        self.process, self.running = psutil.Process(), True
        self.peak = self.before = self.process.memory_info().rss

    def __enter__(self) -> _PeakMemory:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.running = False
        self.join()

    def run(self) -> None:
        """Sample until told to stop."""
        while self.running:
            self.peak = max(self.peak, self.process.memory_info().rss)
            time.sleep(0.002)


class _PeakGpuMemory:
    """The peak memory that torch allocated on the GPU."""

    def __enter__(self) -> _PeakGpuMemory:
        import torch

        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        self.before = torch.cuda.memory_allocated()
        return self

    def __exit__(self, *_: object) -> None:
        import torch

        self.peak = torch.cuda.max_memory_allocated()


def measure_here(
    objective: str, form: str, pairs: int, dimension: int, device: str, *, rounded: bool | None = None
) -> Measurement:
    """Return one measurement in this process, which should be new because memory is not returned to the system.

    Args:
        objective: Which loss.
        form: `dense` or `tiled`.
        pairs: Batch size.
        dimension: Of the embeddings.
        device: `cpu` or `cuda`.
        rounded: Whether inputs and operands are bfloat16; None: on a GPU.
    """
    import torch
    import torch.nn.functional as F

    gpu = device == "cuda"
    rounded = gpu if rounded is None else rounded
    loss = _loss(objective, form, pairs, device)
    context = contextlib.nullcontext
    if rounded:
        from trainer.losses.precision import bfloat16_operands as context

    dtype = torch.bfloat16 if rounded else torch.float32

    def unit_rows(count: int) -> list[torch.Tensor]:
        rows = (F.normalize(torch.randn(count, dimension, device=device), dim=1).to(dtype) for _ in range(2))
        return [row.requires_grad_() for row in rows]

    def once(rows: list[torch.Tensor], of: Callable) -> float:
        for row in rows:
            row.grad = None
        start = time.perf_counter()
        with context():
            of(*rows).backward()
        if gpu:
            torch.cuda.synchronize()
        return time.perf_counter() - start

    once(unit_rows(32), _loss(objective, form, 32, device))  # the libraries' own buffers
    rows, seconds = unit_rows(pairs), []
    with (_PeakGpuMemory if gpu else _PeakMemory)() as memory:
        while len(seconds) < 3 and sum(seconds) < 60:
            seconds.append(once(rows, loss))
    took = statistics.median(seconds)
    share = OPERATIONS[objective, form] * pairs**2 * dimension / took / matrix_rate(device) if rounded else None
    peak = (memory.peak - memory.before) / 2**20
    return Measurement(objective, form, pairs, dimension, took, peak, device, share)


def matrix_rate(device: str, *, side: int | None = None) -> float:
    """Return operations per second of a large bfloat16 product summed in float32: the best of five."""
    import torch

    from trainer.losses.precision import product

    side = side or (8192 if device == "cuda" else 512)
    a, b = (torch.randn(side, side, device=device).bfloat16() for _ in range(2))
    product(a, b)
    best = float("inf")
    for _ in range(5):
        if device == "cuda":
            torch.cuda.synchronize()
        start = time.perf_counter()
        product(a, b)
        if device == "cuda":
            torch.cuda.synchronize()
        best = min(best, time.perf_counter() - start)
    return 2 * side**3 / best


HELP = "dense against tiled against open_clip: memory and time over the batch size"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what to measure, the device, and the sizes."""
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu", help="cuda: bfloat16 inputs (default: cpu)")
    parser.add_argument("--pairs", type=int, nargs="+", help="batch sizes (default: 1k to 32k, on a GPU 64k and 256k)")
    parser.add_argument("--dimension", type=int, help="of the embeddings (default: 512, on a GPU 1024)")
    parser.add_argument("--objectives", nargs="+", help="clip, open_clip, cloob, dhn_nce, siglip (default: all)")


def run(args: argparse.Namespace) -> int:
    """Print each row as soon as it is measured."""
    results = []
    if not args.json:
        print(f"{'objective':<10} {'form':<6} {'pairs':>7} {'seconds':>9} {'peak MiB':>9}  share of matrix rate")
    sizes, dimension = args.pairs or SIZES[args.device], args.dimension or DIMENSIONS[args.device]
    chosen = args.objectives or (ON_GPU if args.device == "cuda" else OBJECTIVES)
    for row in measure(sizes, dimension=dimension, objectives=chosen, device=args.device):
        results.append(asdict(row))
        if not args.json:
            measured = row.note or f"{row.seconds:9.3f} {row.peak_mib:9.0f}"
            share = "" if row.share is None else f"  {row.share:.0%}"
            print(f"{row.objective:<10} {row.form:<6} {row.pairs:>7} {measured}{share}", flush=True)
    if args.json:
        print(json.dumps(results, indent=2))
    return 0


if __name__ == "__main__":
    which, how, count, width, where = sys.argv[1:]
    print(json.dumps(asdict(measure_here(which, how, int(count), int(width), where))))
