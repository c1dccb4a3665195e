"""Peak memory and time of the losses, dense against tiled against open_clip, over the batch size."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Final

import psutil

OBJECTIVES: Final = ("clip", "open_clip", "cloob", "dhn_nce", "sigmoid")
FORMS: Final = {"clip": ("dense", "tiled"), "open_clip": ("dense",)}
DENSE_TABLES: Final = {"clip": 5, "open_clip": 5, "cloob": 10, "dhn_nce": 10, "sigmoid": 5}
"""How many n x n float32 tables the dense form holds at its peak (LOSSES.md 3.2, rounded up)."""


@dataclass(frozen=True)
class Measurement:
    """One loss, forward and backward, in a process of its own.

    Attributes:
        objective: Which loss.
        form: `dense` or `tiled`.
        pairs: Batch size.
        dimension: Of the embeddings.
        seconds: Median time of a forward and backward pass; None where not run.
        peak_mib: Resident memory above the inputs', at its highest; None where not run.
        note: Why it was not run; empty if it was.
    """

    objective: str
    form: str
    pairs: int
    dimension: int
    seconds: float | None
    peak_mib: float | None
    note: str = ""


def measure(
    sizes: list[int], *, dimension: int = 512, objectives: tuple[str, ...] = OBJECTIVES
) -> Iterator[Measurement]:
    """Every objective and form at every batch size, one after the other; dense only in 60 % of free memory."""
    for pairs in sizes:
        for objective in objectives:
            for form in FORMS.get(objective, ("dense", "tiled")):
                yield _in_own_process(objective, form, pairs, dimension)


def _in_own_process(objective: str, form: str, pairs: int, dimension: int) -> Measurement:
    needed, free = DENSE_TABLES[objective] * 4 * pairs**2, psutil.virtual_memory().available
    if form == "dense" and needed > 0.6 * free:
        note = f"not run: needs about {needed / 2**30:.0f} GiB, {free / 2**30:.0f} GiB are free"
        return Measurement(objective, form, pairs, dimension, None, None, note)
    call = [sys.executable, "-m", "trainer.bench.losses", objective, form, str(pairs), str(dimension)]
    outcome = subprocess.run(call, capture_output=True, text=True, check=False)
    if outcome.returncode:
        note = (
            f"not run: {outcome.stderr.strip().splitlines()[-1] if outcome.stderr.strip() else 'ended by the system'}"
        )
        return Measurement(objective, form, pairs, dimension, None, None, note)
    return Measurement(**json.loads(outcome.stdout))


def _loss(objective: str, form: str, pairs: int) -> Callable:
    from trainer import losses

    if objective == "open_clip":
        from open_clip.loss import ClipLoss

        return lambda image, text: ClipLoss()(image, text, 14.0)
    # A tile of all rows is the dense form, whatever the size; None would choose by itself.
    tile = pairs if form == "dense" else max(16, 4 * 2**20 // pairs)
    return {
        "clip": lambda image, text: losses.info_nce(image, text, 14.0, tile=tile),
        "cloob": lambda image, text: losses.cloob(image, text, 30.0, 8.0, tile=tile),
        "dhn_nce": lambda image, text: losses.dhn_nce(image, text, 14.0, 0.15, 0.15, tile=tile),
        "sigmoid": lambda image, text: losses.sigmoid(image, text, 10.0, -10.0, tile=tile),
    }[objective]


class _PeakMemory(threading.Thread):
    """The most resident memory of this process while it runs, read every 2 ms."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.process, self.running = psutil.Process(), True
        self.peak = self.process.memory_info().rss

    def run(self) -> None:
        while self.running:
            self.peak = max(self.peak, self.process.memory_info().rss)
            time.sleep(0.002)


def _measure_here(objective: str, form: str, pairs: int, dimension: int) -> Measurement:
    import torch
    import torch.nn.functional as F

    loss = _loss(objective, form, pairs)
    small = F.normalize(torch.randn(2, 32, dimension), dim=2)
    _loss(objective, form, 32)(small[0].requires_grad_(), small[1]).backward()  # the libraries' own buffers
    rows = [F.normalize(torch.randn(pairs, dimension), dim=1).requires_grad_() for _ in range(2)]
    baseline, seconds = psutil.Process().memory_info().rss, []
    watch = _PeakMemory()
    watch.start()
    while len(seconds) < 3 and sum(seconds) < 60:
        for row in rows:
            row.grad = None
        start = time.perf_counter()
        loss(*rows).backward()
        seconds.append(time.perf_counter() - start)
    watch.running = False
    watch.join()
    peak = (watch.peak - baseline) / 2**20
    return Measurement(objective, form, pairs, dimension, statistics.median(seconds), peak)


if __name__ == "__main__":
    name, shape, count, width = sys.argv[1:]
    print(json.dumps(asdict(_measure_here(name, shape, int(count), int(width)))))
