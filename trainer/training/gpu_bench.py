"""What a device does with our losses and steps, next to open_clip's own loop: rates, waiting, resume, gauges, memory.

It is meant for a GPU. On a CPU it measures the same in a small form, which shows that it runs and nothing about a card.
Pairs are random pixels that lie ready in memory: what is measured is the device, not a disk.
"""

from __future__ import annotations

import math
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from trainer import catalog, config, device, losses
from trainer.analysis.progress import Progress
from trainer.checkpoints import checkpoint
from trainer.data import Pairs
from trainer.data.tokenizer import train_tokenizer
from trainer.losses.fused import fused_losses
from trainer.losses.precision import bfloat16_operands
from trainer.losses.tiles import TILE_CELLS
from trainer.models import Architecture, Blueprint
from trainer.scheduling import system_usage
from trainer.training.session import TrainingSession

OPERATIONS: Final = {"InfoNCE": (6, 8), "CLOOB": (60, 72), "open_clip": (12, 12)}
"""Floating-point operations of the matrix products of both passes in n^2 d: of the dense form, and of the tiled."""
FORMS: Final = {"InfoNCE": ("dense", "tiled", "fused"), "CLOOB": ("dense", "tiled", "fused"), "open_clip": ("dense",)}
SMALL: Final = (
    "a small form, because there is no CUDA GPU: it shows that everything runs, and says nothing about a card"
)
DENSE_TABLES: Final = 10
"""How many n x n tables of float32 a dense loss may hold."""
_GIB: Final = 2**30
AHEAD: Final = 10
"""Updates of each loop in turn on a GPU."""


@dataclass(frozen=True)
class BenchSize:
    """How much is measured.

    Attributes:
        pairs: Batch sizes of the losses.
        dimension: Of their embeddings.
        towers: Name -> batch size of the steps; `tiny`, or a name of open_clip's, whose weights are random.
        steps: Measured of each.
        repeats: Of each loss.
    """

    pairs: tuple[int, ...]
    dimension: int
    towers: dict[str, int]
    steps: int
    repeats: int


ON_GPU: Final = BenchSize((1_024, 4_096, 8_192, 16_384, 65_536, 262_144), 512, {"RN50": 256, "ViT-B-32": 256}, 20, 5)
ON_CPU: Final = BenchSize((256, 1_024), 128, {"tiny": 64}, 6, 3)


@dataclass(frozen=True)
class LossRate:
    """One loss forward and backward: bfloat16 operands summed in float32 on a GPU, float32 on a CPU.

    Attributes:
        seconds: Median; None where it was not run.
        share: Operations a second over those of one large product of the same kind on the device.
        peak_mib: Memory above the inputs'; None on a CPU, where torch counts none.
        inputs_mib: Of both inputs.
        note: Why it was not run.
    """

    objective: str
    form: str
    pairs: int
    seconds: float | None = None
    share: float | None = None
    peak_mib: float | None = None
    inputs_mib: float = 0.0
    note: str = ""


@dataclass(frozen=True)
class StepRate:
    """Whole updates of the same towers on the same pairs, in turns.

    Attributes:
        ours_s: Median of an update of ours: crops, tokens, loss, check of the numbers, optimizer.
        open_clip_s: Median of one as open_clip's loop makes it, from pictures that are cropped already.
        wait: Share of our updates before their batch lay on the device.
    """

    towers: str
    batch: int
    steps: int
    ours_s: float
    open_clip_s: float
    wait: float

    @property
    def ratio(self) -> float:
        """How many of ours fit in one of theirs; above 1 ours is faster."""
        return self.open_clip_s / self.ours_s


@dataclass(frozen=True)
class GpuBench:
    """All measurements.

    Attributes:
        note: What the numbers do not say.
        product: Operations a second of one large matrix product.
        resume_equal: Whether a resumed training has the weights of one that was not interrupted, bit for bit.
        gauges: What NVML reads of each GPU.
        without_gpu: Why there are none.
        out_of_memory: What became of a batch that does not fit.
    """

    device: str
    torch: str
    threads: int
    note: str
    product: float
    losses: tuple[LossRate, ...]
    steps: tuple[StepRate, ...]
    resume_equal: bool
    gauges: tuple[system_usage.Gpu, ...]
    without_gpu: str
    out_of_memory: str


def bench(where: torch.device, size: BenchSize, progress: Progress) -> GpuBench:
    """Measure everything, one after the other."""
    gpu = where.type == "cuda"
    device.keep_freed_memory(where)
    progress(0.0, "one large matrix product")
    product = _product(where, size)
    rates = []
    jobs = [(name, form, n) for n in size.pairs for name, forms in FORMS.items() for form in forms]
    for at, (name, form, n) in enumerate(jobs):
        progress(0.5 * at / len(jobs), f"{name}, {form}, {n:,} pairs")
        rates.append(_loss_rate(name, form, n, size, where, product))
    steps = []
    for at, (towers, batch) in enumerate(size.towers.items()):
        progress(0.5 + 0.3 * at / len(size.towers), f"steps of {towers}")
        steps.append(_step_rate(towers, batch, size.steps, where))
    progress(0.8, "resume")
    towers, batch = next(iter(size.towers.items()))
    equal = resumes_equal(lambda: _session(towers, batch, 6, where), 3)
    gauges, why = system_usage.graphics()
    progress(0.95, "a batch that does not fit")
    answer = _out_of_memory(where, size) if gpu else "not tried: a CPU's memory is that of everything else here"
    name = torch.cuda.get_device_name(where) if gpu else str(where)
    return GpuBench(
        name, torch.__version__, torch.get_num_threads(), "" if gpu else SMALL, product, tuple(rates), tuple(steps),
        equal, gauges, why, answer,
    )  # fmt: skip


def _wait(where: torch.device) -> None:
    if where.type == "cuda":
        torch.cuda.synchronize(where)


def _median(once: Callable[[], object], where: torch.device, repeats: int) -> float:
    """Return the median seconds after a first one that is not counted."""
    took = []
    for _ in range(repeats + 1):
        _wait(where)
        began = time.perf_counter()
        once()
        _wait(where)
        took.append(time.perf_counter() - began)
    return statistics.median(took[1:])


def _product(where: torch.device, size: BenchSize) -> float:
    n, dtype = (8_192, torch.bfloat16) if where.type == "cuda" else (1_024, torch.float32)
    square = torch.randn(n, n, device=where, dtype=dtype)
    return 2 * n**3 / _median(lambda: square @ square, where, size.repeats)


def _loss_of(name: str, form: str, n: int, where: torch.device) -> Callable[[Tensor, Tensor], Tensor]:
    if name == "open_clip":
        from open_clip.loss import ClipLoss

        return lambda image, text: ClipLoss()(image, text, 14.0)
    # Of few pairs a tile of the usual size would hold them all.
    tile = n if form == "dense" else max(16, min(n // 4, TILE_CELLS.get(where.type, TILE_CELLS["cpu"]) // n))
    if name == "InfoNCE":
        return lambda image, text: losses.info_nce(image, text, 14.0, tile=tile)
    return lambda image, text: losses.cloob(image, text, 30.0, 8.0, tile=tile)


def _loss_rate(name: str, form: str, n: int, size: BenchSize, where: torch.device, product: float) -> LossRate:
    gpu = where.type == "cuda"
    rate = LossRate(name, form, n, inputs_mib=2 * n * size.dimension * (2 if gpu else 4) / 2**20)
    if form == "fused" and not gpu:
        return replace(rate, note="not run: Triton's kernels need a CUDA GPU")
    needed = DENSE_TABLES * 4 * n**2
    if form == "dense" and gpu and needed > 0.9 * torch.cuda.mem_get_info(where)[0]:
        return replace(rate, note=f"not run: may need {needed / _GIB:,.0f} GiB")
    dtype = torch.bfloat16 if gpu else torch.float32
    generator = torch.Generator(where).manual_seed(0)
    rows = [
        F.normalize(torch.randn(n, size.dimension, device=where, generator=generator), dim=1).to(dtype).requires_grad_()
        for _ in range(2)
    ]
    loss = _loss_of(name, form, n, where)

    def once() -> None:
        for row in rows:
            row.grad = None
        with bfloat16_operands() if gpu else nullcontext(), fused_losses(form == "fused"):
            loss(*rows).backward()

    try:
        if gpu:
            torch.cuda.reset_peak_memory_stats(where)
        before = torch.cuda.memory_allocated(where) if gpu else 0
        seconds = _median(once, where, size.repeats)
        peak = (torch.cuda.max_memory_allocated(where) - before) / 2**20 if gpu else None
    except torch.OutOfMemoryError:
        torch.cuda.empty_cache()
        return replace(rate, note="out of memory")
    dense, tiled = OPERATIONS[name]
    operations = (dense if form == "dense" else tiled) * n**2 * size.dimension
    return replace(rate, seconds=seconds, share=operations / seconds / product, peak_mib=peak)


def _tiny() -> config.TinyTowers:
    """Return the towers of Scenes."""
    towers = catalog.preset("clip-scenes").model
    assert isinstance(towers, config.TinyTowers)
    return towers


def _sizes(towers: str) -> Architecture:
    """Return the sizes of the towers; of open_clip's, those of its configuration, no weights."""
    if towers == "tiny":
        return _tiny()
    from open_clip import get_model_config

    return Blueprint("open_clip", get_model_config(towers))


def _session(towers: str, batch: int, steps: int, where: torch.device) -> TrainingSession:
    """Return a training of CLIP on random pictures, with as many steps."""
    sizes = _sizes(towers)
    run = catalog.preset("clip-scenes")
    run = replace(run, optimizer=replace(run.optimizer, batch_size=batch, epochs=1, warmup_steps=1))
    n = batch * steps
    pixels = np.random.default_rng(0).integers(0, 256, (n, sizes.image_size, sizes.image_size, 3), np.uint8)
    captions = [f"picture {at % 97} of {at % 89}" for at in range(n)]
    empty = [""] * n
    pairs = Pairs("random", "train", pixels, captions, empty, empty, {}, "")
    tokenizer = train_tokenizer(captions, _tiny().vocabulary)
    return TrainingSession(run, pairs, tokenizer, where, built_from=sizes)


class OpenClipLoop:
    """An update as `train_one_epoch` of open_clip_train makes it: forward, ClipLoss, backward, clip, AdamW, clamp."""

    def __init__(self, session: TrainingSession, choice: config.Optimizer) -> None:
        from open_clip.loss import ClipLoss

        self.logit_scale = nn.Parameter(torch.tensor(math.log(1 / 0.07), device=session.device))
        # Its training has no channels last: weights and pictures keep the layout that they are made in.
        self.towers = session.towers.to(memory_format=torch.contiguous_format)
        self._loss, self._where = ClipLoss(), session.device
        named = [*self.towers.named_parameters(), ("logit_scale", self.logit_scale)]
        plain = [p for name, p in named if p.ndim < 2 or "bn" in name or "bias" in name or "logit_scale" in name]
        ids = {id(p) for p in plain}
        groups = [
            {"params": plain, "weight_decay": 0.0},
            {"params": [p for _, p in named if id(p) not in ids], "weight_decay": choice.weight_decay},
        ]
        self._optimizer = torch.optim.AdamW(
            groups, lr=choice.learning_rate, betas=(choice.beta1, choice.beta2), eps=choice.epsilon
        )
        self._clip = choice.clip_norm

    def update(self, images: Tensor, tokens: Tensor) -> None:
        """Make one from a batch that lies in the memory of the computer, cropped and in floating point."""
        images, tokens = (part.to(self._where, non_blocking=True) for part in (images, tokens))
        self.towers.train()
        self._optimizer.zero_grad()
        with device.autocast(self._where):
            image, text = self.towers.encode_image(images), self.towers.encode_text(tokens)
            loss = self._loss(image, text, self.logit_scale.exp())
        loss.backward()
        nn.utils.clip_grad_norm_([p for group in self._optimizer.param_groups for p in group["params"]], self._clip)
        self._optimizer.step()
        with torch.no_grad():
            self.logit_scale.clamp_(0, math.log(100))


def _step_rate(towers: str, batch: int, steps: int, where: torch.device) -> StepRate:
    """Return both, some steps of each in turn, so that what else the computer does falls on both.

    On a GPU those are several, which either loop enqueues without waiting for the one before.
    """
    many = AHEAD if where.type == "cuda" else 1
    turns = -(-steps // many)
    ours = _session(towers, batch, (turns + 2) * many, where)
    other = _session(towers, batch, (turns + 2) * many, where)
    theirs = OpenClipLoop(other, catalog.preset("clip-scenes").optimizer)
    took: dict[str, list[float]] = {"ours": [], "theirs": []}
    waits = []
    for turn in range(turns + 2):
        ready = []
        for _ in range(many):
            made = other.batch()
            assert made.images is not None
            assert made.tokens is not None
            ready.append((made.images.cpu().contiguous(), made.tokens.cpu()))
            other.step += 1
        _wait(where)
        began = time.perf_counter()
        until = ours.step + many
        updates = [update for _ in range(many) if ours.step < until for update in ours.updates(until - ours.step)]
        _wait(where)
        middle = time.perf_counter()
        for images, tokens in ready:
            theirs.update(images, tokens)
        _wait(where)
        if turn >= 2:
            took["ours"].append((middle - began) / many)
            took["theirs"].append((time.perf_counter() - middle) / many)
            waits.append(sum(update.data_s for update in updates) / many)
    median = {name: statistics.median(values) for name, values in took.items()}
    return StepRate(towers, batch, turns * many, median["ours"], median["theirs"], sum(waits) / sum(took["ours"]))


def resumes_equal(begin: Callable[[], TrainingSession], at: int) -> bool:
    """Return whether a training that is saved, loaded and continued ends at the bits of one that was not.

    Args:
        begin: Makes the same training anew.
        at: Step of the checkpoint.
    """
    uninterrupted, first = begin(), begin()
    for _ in range(uninterrupted.total_steps):
        uninterrupted.update()
    for _ in range(at):
        first.update()
    with tempfile.TemporaryDirectory() as folder:
        state = {"step": first.step, "optimizer": first.optimizer.state_dict()}
        saved = checkpoint.save(Path(folder) / "checkpoints", modules=first.modules, training=state, tokenizer="{}")
        second, loaded = begin(), checkpoint.load(saved)
    checkpoint.restore(loaded, modules=second.modules, optimizer=second.optimizer)
    second.step = loaded.step
    while second.step < second.total_steps:
        second.update()
    return all(
        torch.equal(value, other)
        for name, module in uninterrupted.modules.items()
        for value, other in zip(module.state_dict().values(), second.modules[name].state_dict().values(), strict=True)
    )


def _out_of_memory(where: torch.device, size: BenchSize) -> str:
    """Ask for more than there is, and make a step afterwards."""
    n = int((torch.cuda.mem_get_info(where)[1] / 4) ** 0.5)
    try:
        rows = torch.randn(n, 64, device=where, requires_grad=True)
        losses.info_nce(F.normalize(rows, dim=1), F.normalize(rows, dim=1), 14.0, tile=n).backward()
    except torch.OutOfMemoryError as error:
        del rows
        torch.cuda.empty_cache()
        towers, batch = next(iter(size.towers.items()))
        made = _session(towers, batch, 1, where).update().made
        return f"{str(error).split('. ')[0]}; the next step was {'made' if made else 'not made'}"
    return f"{n:,} pairs fitted"


def as_text(bench: GpuBench) -> str:
    """Return the measurements as lines."""
    lines = [f"{bench.device}, torch {bench.torch}, {bench.threads} threads; {bench.product / 1e12:.2f} TFLOP/s"]
    lines += [f"This is {bench.note}."] if bench.note else []
    lines.append(f"{'loss':<12}{'form':<8}{'pairs':>9}{'ms':>10}{'share':>8}{'MiB':>9}  (share: of one large product)")
    for rate in bench.losses:
        if rate.seconds is None:
            lines.append(f"{rate.objective:<12}{rate.form:<8}{rate.pairs:>9,}  {rate.note}")
            continue
        peak = "-" if rate.peak_mib is None else f"{rate.peak_mib:,.0f}"
        lines.append(
            f"{rate.objective:<12}{rate.form:<8}{rate.pairs:>9,}{1000 * rate.seconds:>10.1f}"
            f"{rate.share or 0:>8.1%}{peak:>9}"
        )
    for step in bench.steps:
        lines.append(
            f"step of {step.towers}, batch {step.batch}: {1000 * step.ours_s:.0f} ms, open_clip's loop "
            f"{1000 * step.open_clip_s:.0f} ms ({step.ratio:.2f}x), waiting for data {100 * step.wait:.1f} %"
        )
    lines.append(f"resumed training: {'equal bit for bit' if bench.resume_equal else 'DIFFERENT'}")
    lines += [f"GPU: {gauge}" for gauge in bench.gauges] or [f"gauges: {bench.without_gpu}"]
    lines.append(f"out of memory: {bench.out_of_memory}")
    return "\n".join(lines)


def chosen_size(where: torch.device, pairs: Sequence[int], towers: Sequence[str], batch: int, steps: int) -> BenchSize:
    """Return what is measured on a device, with what the caller changes; 0 and empty: the usual."""
    usual = ON_GPU if where.type == "cuda" else ON_CPU
    named = {name: usual.towers.get(name, next(iter(usual.towers.values()))) for name in towers} or usual.towers
    return replace(
        usual,
        pairs=tuple(pairs) or usual.pairs,
        towers={name: batch or default for name, default in named.items()},
        steps=steps or usual.steps,
    )
