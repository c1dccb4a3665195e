"""What a card does with our losses and steps: rates, errors, waits and memory next to what was predicted, resume.

It is meant for a card that nobody has seen: it ends in the minutes that it is given, what fails or does not fit is a
note of the one document that it writes, and it imports nothing that training does not. On a CPU it measures the same in
a small form, which shows that it runs and nothing about a card. Pairs are random pixels that lie ready in memory.
"""

from __future__ import annotations

import gc
import math
import statistics
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from trainer import config, device, losses
from trainer.analysis.progress import Progress
from trainer.checkpoints import checkpoint
from trainer.config import presets
from trainer.data import Pairs
from trainer.data.tokenizer import Tokenizer, train_tokenizer
from trainer.errors import UserError
from trainer.losses.precision import bfloat16_operands
from trainer.losses.tiles import TILE_CELLS
from trainer.models import Architecture, Blueprint
from trainer.scheduling import gpu_usage
from trainer.training import small_sessions
from trainer.training.memory_prediction import Trained, predict
from trainer.training.session import TrainingSession

OPERATIONS: Final = {"InfoNCE": (6, 8), "CLOOB": (60, 72), "open_clip": (12, 12)}
"""Floating-point operations of the matrix products of both passes in n^2 d: of the dense form, and of the tiled."""
FORMS: Final = {"InfoNCE": ("dense", "tiled"), "CLOOB": ("dense", "tiled"), "open_clip": ("dense",)}
SMALL: Final = (
    "This is a small form, because there is no CUDA GPU: it shows that everything runs, and says nothing about a card."
)
DENSE_TABLES: Final = 10
"""How many n x n tables of float32 a dense loss may hold."""
_TEXTS: Final[dict[str, Any]] = {
    "text_width": 512,
    "text_layers": 12,
    "text_heads": 8,
    "context_length": 77,
    "vocabulary": 49_408,
}
SIZES: Final = {
    "RN50": config.TinyTowers(image_size=224, image_width=64, image_layers=4, embed_dim=1_024, **_TEXTS),
    "ViT-B-32": config.TinyTowers(
        image_tower="vit", image_size=224, image_width=768, image_layers=12, patch_size=32, embed_dim=512, **_TEXTS
    ),
}
"""Of towers of open_clip, about, where it is not installed."""
_GIB: Final = 2**30
AHEAD: Final = 10
"""Updates of each loop in turn on a GPU."""
EXACT_PAIRS: Final = 4_096
"""Up to so many pairs gradients are compared with float64; those of more with the tiled form in float32."""
CLUSTERING: Final = 40
"""Waits at most when PCL clusters all images at the beginning of an epoch."""
SYNCHRONIZES: Final = "synchronizing CUDA operation"
"""What torch warns of where the program waits for the card."""


@dataclass(frozen=True)
class BenchSize:
    """How much is measured."""

    pairs: tuple[int, ...]  # Batch sizes of the losses.
    dimension: int
    # Name -> batch size of the steps; `tiny`, or a name of open_clip's, whose weights are random.
    towers: dict[str, int]
    steps: int  # Measured of each.
    repeats: int  # Of each loss.
    product: int = 1_024  # Rows of the squares of the large product.
    objectives: tuple[str, ...] = tuple(small_sessions.OBJECTIVES)  # Whose waits are counted, on a card.


ON_GPU: Final = BenchSize(
    (1_024, 4_096, 8_192, 16_384, 65_536, 262_144), 512, {"RN50": 256, "ViT-B-32": 256}, 20, 5, 8_192
)
ON_CPU: Final = BenchSize((256, 1_024), 128, {"tiny": 64}, 6, 3)


@dataclass(frozen=True)
class LossRate:
    """One loss forward and backward: bfloat16 operands summed in float32 on a GPU, float32 on a CPU."""

    objective: str
    form: str
    pairs: int
    seconds: float | None = None  # Median; None where it was not run.
    share: float | None = None  # Operations a second over those of one large product of the same kind on the device.
    error: float | None = None  # Largest difference of a gradient, over the largest gradient.
    peak_mib: float | None = None  # Memory above the inputs'; None on a CPU, where torch counts none.
    inputs_mib: float = 0.0  # Of both inputs.
    note: str = ""  # Why it was not run.


@dataclass(frozen=True)
class StepRate:
    """Whole updates of the same towers on the same pairs, in turns."""

    towers: str
    batch: int
    steps: int
    ours_s: float  # Median of an update of ours: crops, tokens, loss, check of the numbers, optimizer.
    open_clip_s: float  # Median of one as open_clip's loop makes it, from pictures that are cropped already.
    wait: float  # Share of our updates before their batch lay on the device.

    @property
    def ratio(self) -> float:
        """How many of ours fit in one of theirs; above 1 ours is faster."""
        return self.open_clip_s / self.ours_s


@dataclass(frozen=True)
class Waits:
    """How often the program waited for the card in the updates of an epoch, which are read together."""

    objective: str
    found: int | None  # As torch warned of it; None where it could not be counted.
    predicted: int  # At most, as the stand-in of a card counts them.
    note: str = ""  # Why it was not counted.


@dataclass(frozen=True)
class MemoryUse:
    """The most memory that lives at one time in an update."""

    towers: str
    batch: int
    predicted_mib: float | None = None  # Before it was made; None where it cannot be.
    found_mib: float | None = None  # By torch's own count; None where it counts none.
    note: str = ""  # Why it was not measured.


@dataclass(frozen=True)
class GpuBench:
    """All measurements."""

    device: str
    capability: str  # Of the card: `9.0`; empty on a CPU.
    bfloat16: bool  # Whether it computes in it, and does not only emulate it.
    total_mib: float | None
    torch: str
    threads: int
    seconds: float  # What all of it took.
    note: str  # What the numbers do not say.
    product: float  # Operations a second of one large matrix product.
    losses: tuple[LossRate, ...]
    waits: tuple[Waits, ...]
    memory: tuple[MemoryUse, ...]
    steps: tuple[StepRate, ...]
    failures: tuple[str, ...]  # What could not be measured, and why.
    # Whether a resumed training has the weights of one that was not interrupted, bit for bit.
    resume_equal: bool | None
    gauges: tuple[gpu_usage.Gpu, ...]  # What NVML reads of each GPU.
    without_gpu: str  # Why there are none.
    out_of_memory: str  # What became of a batch that does not fit.


class Stopwatch:
    """How much time is left, and what could not be measured.

    Attributes:
        failures: Sentences.
    """

    def __init__(self, minutes: float) -> None:
        self.began, self.failures = time.monotonic(), list[str]()
        self._until = self.began + 60 * minutes

    @property
    def left(self) -> float:
        """Seconds."""
        return self._until - time.monotonic()

    @contextmanager
    def trying(self, what: str, where: torch.device) -> Iterator[None]:
        """Note what fails in it: one thing that a card cannot do does not end the rest."""
        try:
            yield
        except Exception as error:
            self.failures.append(f"{what}: {type(error).__name__}: {str(error).splitlines()[0][:200] or 'no words'}")
        finally:
            _give_back(where)


def bench(
    where: torch.device, size: BenchSize, progress: Progress, *, minutes: float = 8.0, absent: str = ""
) -> GpuBench:
    """Measure everything, one after the other, for at most that many minutes; what is left out is noted.

    What is compared with a prediction comes first: an unknown card may be slow.
    """
    gpu, clock = where.type == "cuda", Stopwatch(minutes)
    device.keep_freed_memory(where)
    progress(0.0, "one large matrix product")
    product = _product(where, size)
    rates, waits, memory, steps = list[LossRate](), list[Waits](), list[MemoryUse](), list[StepRate]()
    equal: bool | None = None
    answer = "not tried: the time is up" if gpu else "not tried: a CPU's memory is that of everything else here"
    for at, name in enumerate(size.objectives if gpu else ()):
        progress(0.05 + 0.2 * at / len(size.objectives), f"waits of {name}")
        waits.append(waits_of(name, where, clock))
    for towers, batch in size.towers.items():
        progress(0.25, f"memory of {towers}")
        memory.append(_memory_of(towers, batch, where, clock))
    jobs = [(name, form, n) for n in size.pairs for name, forms in FORMS.items() for form in forms]
    for at, (name, form, n) in enumerate(jobs):
        progress(0.3 + 0.3 * at / len(jobs), f"{name}, {form}, {n:,} pairs")
        before = next((r.seconds * (n / r.pairs) ** 2 for r in reversed(rates)
                       if r.seconds and (r.objective, r.form) == (name, form)), 0.0)  # fmt: skip
        # A third of the time is for the steps.
        if before * (size.repeats + 2) > clock.left - 20 * minutes:
            rates.append(LossRate(name, form, n, note="not run: the time is up"))
        else:
            rates.append(_loss_rate(name, form, n, size, where, product))
    for at, (towers, batch) in enumerate(size.towers.items()):
        progress(0.6 + 0.2 * at / len(size.towers), f"steps of {towers}")
        if clock.left < 10 * minutes:
            clock.failures.append(f"steps of {towers}: not run: the time is up")
            continue
        with clock.trying(f"steps of {towers}", where):
            steps.append(_step_rate(towers, batch, size.steps, where, clock.left / 3))
    progress(0.8, "resume")
    towers, batch = next(iter(size.towers.items()))
    if clock.left > 5 * minutes:
        with clock.trying("resume", where):
            equal = resumes_equal(lambda: _session(towers, batch, 4, where), 2)
    gauges, why = gpu_usage.cards()
    progress(0.95, "a batch that does not fit")
    if gpu and clock.left > 2 * minutes:
        with clock.trying("memory that runs out", where):
            answer = _out_of_memory(where, size)
    capability = torch.cuda.get_device_capability(where) if gpu else ()
    return GpuBench(
        device=torch.cuda.get_device_name(where) if gpu else str(where),
        capability=".".join(map(str, capability)),
        bfloat16=gpu and torch.cuda.is_bf16_supported(including_emulation=False),
        total_mib=torch.cuda.mem_get_info(where)[1] / 2**20 if gpu else None,
        torch=torch.__version__,
        threads=torch.get_num_threads(),
        seconds=time.monotonic() - clock.began,
        note=" ".join(filter(None, ("" if gpu else SMALL, absent))),
        product=product,
        losses=tuple(rates),
        waits=tuple(waits),
        memory=tuple(memory),
        steps=tuple(steps),
        failures=tuple(clock.failures),
        resume_equal=equal,
        gauges=gauges,
        without_gpu=why,
        out_of_memory=answer,
    )


def _give_back(where: torch.device) -> None:
    gc.collect()
    if where.type == "cuda":
        torch.cuda.empty_cache()


def waits_of(name: str, where: torch.device, clock: Stopwatch) -> Waits:
    """Count what torch calls synchronizing in the second epoch of a little session."""
    predicted = 1 + CLUSTERING * (name == "pcl")
    if clock.left < 60:
        return Waits(name, None, predicted, "not run: the time is up")
    counted = None
    with clock.trying(f"waits of {name}", where):
        training = small_sessions.session(name, where)
        list(training.updates(small_sessions.UPDATES))
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always")
            torch.cuda.set_sync_debug_mode("warn")
            try:
                list(training.updates(small_sessions.UPDATES))
            finally:
                torch.cuda.set_sync_debug_mode("default")
        counted = sum(SYNCHRONIZES in str(warning.message) for warning in heard)
    return Waits(name, counted, predicted, "" if counted is not None else clock.failures[-1])


def _memory_of(towers: str, batch: int, where: torch.device, clock: Stopwatch) -> MemoryUse:
    """Predict the memory of an update, and make two."""
    if clock.left < 60:
        return MemoryUse(towers, batch, note="not run: the time is up")
    use = MemoryUse(towers, batch)
    with clock.trying(f"memory of {towers}", where):
        gpu = where.type == "cuda"
        bfloat16 = not gpu or torch.cuda.is_bf16_supported(including_emulation=False)
        run, pairs, tokenizer, sizes = _trained(towers, batch, 2)
        prediction = predict(Trained(run, pairs, tokenizer, sizes), bfloat16=bfloat16)
        use = replace(use, predicted_mib=None if prediction is None else prediction.peak_bytes / 2**20)
        if gpu:
            torch.cuda.reset_peak_memory_stats(where)
            before = torch.cuda.memory_allocated(where)
            training = TrainingSession(run, pairs, tokenizer, where, built_from=sizes)
            list(training.updates(2))
            peak = (torch.cuda.max_memory_allocated(where) - before) / 2**20
            use = replace(use, found_mib=peak or None)
    return use


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
    n, dtype = size.product, torch.bfloat16 if where.type == "cuda" else torch.float32
    square = torch.randn(n, n, device=where, dtype=dtype)
    return 2 * n**3 / _median(lambda: square @ square, where, size.repeats)


def open_clip_loss(image: Tensor, text: Tensor, scale: Tensor) -> Tensor:
    """Return what `ClipLoss` of open_clip does, by the products that it makes."""
    labels = torch.arange(len(image), device=image.device)
    across, down = scale * image @ text.T, scale * text @ image.T
    return (F.cross_entropy(across, labels) + F.cross_entropy(down, labels)) / 2


def _exact(name: str, rows: Sequence[Tensor], size: BenchSize) -> list[Tensor]:
    """Return the gradients in float64, of many pairs by the tiled form in float32."""
    dtype = torch.float64 if len(rows[0]) <= EXACT_PAIRS else torch.float32
    leaves = [row.detach().to(dtype).requires_grad_() for row in rows]
    form = "dense" if dtype == torch.float64 else "tiled"
    _loss_of(name, form, len(leaves[0]), leaves[0].device)(*leaves).backward()
    return [leaf.grad for leaf in leaves if leaf.grad is not None]


def _loss_of(name: str, form: str, n: int, where: torch.device) -> Callable[[Tensor, Tensor], Tensor]:
    if name == "open_clip":
        return lambda image, text: open_clip_loss(image, text, torch.tensor(14.0, device=where))
    # Of few pairs a tile of the usual size would hold them all.
    tile = n if form == "dense" else max(16, min(n // 4, TILE_CELLS.get(where.type, TILE_CELLS["cpu"]) // n))
    if name == "InfoNCE":
        return lambda image, text: losses.info_nce(image, text, 14.0, tile=tile)
    return lambda image, text: losses.cloob(image, text, 30.0, 8.0, tile=tile)


def _loss_rate(name: str, form: str, n: int, size: BenchSize, where: torch.device, product: float) -> LossRate:
    gpu = where.type == "cuda"
    rate = LossRate(name, form, n, inputs_mib=2 * n * size.dimension * (2 if gpu else 4) / 2**20)
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
        with bfloat16_operands() if gpu else nullcontext():
            loss(*rows).backward()

    try:
        expected = _exact(name, rows, size)
        once()
        error = max(
            float((row.grad.to(other.dtype) - other).abs().max() / other.abs().max())
            for row, other in zip(rows, expected, strict=True)
            if row.grad is not None
        )
        del expected
        if gpu:
            torch.cuda.reset_peak_memory_stats(where)
        before = torch.cuda.memory_allocated(where) if gpu else 0
        seconds = _median(once, where, size.repeats)
        peak = (torch.cuda.max_memory_allocated(where) - before) / 2**20 if gpu else None
    except torch.OutOfMemoryError:
        return replace(rate, note="out of memory")
    except Exception as problem:  # a compiler that a kernel needs, say
        return replace(rate, note=f"failed: {type(problem).__name__}: {(str(problem).splitlines() or [''])[0][:160]}")
    finally:
        _give_back(where)
    dense, tiled = OPERATIONS[name]
    operations = (dense if form == "dense" else tiled) * n**2 * size.dimension
    return replace(rate, seconds=seconds, share=operations / seconds / product, error=error, peak_mib=peak)


def _tiny() -> config.TinyTowers:
    """Return the towers of Scenes."""
    towers = presets.preset("clip-scenes").model
    assert isinstance(towers, config.TinyTowers)
    return towers


def _sizes(towers: str) -> Architecture:
    """Return the sizes of the towers; of open_clip's, those of its configuration, no weights."""
    if towers == "tiny":
        return _tiny()
    import open_clip

    if isinstance(open_clip.get_model_config, type):  # torch_alone has put a class there
        if towers not in SIZES:
            raise UserError(f"{towers} is a name of open_clip, which is not installed.")
        return SIZES[towers]
    return Blueprint("open_clip", open_clip.get_model_config(towers))


def _trained(towers: str, batch: int, steps: int) -> tuple[config.Run, Pairs, Tokenizer, Architecture]:
    """Return a training of CLIP on random pictures of one batch, with as many steps, and what it is made of."""
    sizes = _sizes(towers)
    run = presets.preset("clip-scenes")
    run = replace(run, optimizer=replace(run.optimizer, batch_size=batch, epochs=steps, warmup_steps=1))
    pixels = np.random.default_rng(0).integers(0, 256, (batch, sizes.image_size, sizes.image_size, 3), np.uint8)
    captions = [f"picture {at % 97} of {at % 89}" for at in range(batch)]
    empty = [""] * batch
    pairs = Pairs("random", "train", pixels, captions, empty, empty, {}, "")
    return run, pairs, train_tokenizer(captions, _tiny().vocabulary), sizes


def _session(towers: str, batch: int, steps: int, where: torch.device) -> TrainingSession:
    run, pairs, tokenizer, sizes = _trained(towers, batch, steps)
    return TrainingSession(run, pairs, tokenizer, where, built_from=sizes)


class OpenClipLoop:
    """An update as `train_one_epoch` of open_clip_train makes it: forward, ClipLoss, backward, clip, AdamW, clamp."""

    def __init__(self, session: TrainingSession, choice: config.Optimizer) -> None:
        self.logit_scale = nn.Parameter(torch.tensor(math.log(1 / 0.07), device=session.device))
        # Its training has no channels last: weights and pictures keep the layout that they are made in.
        self.towers = session.towers.to(memory_format=torch.contiguous_format)
        self._where = session.device
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
            loss = open_clip_loss(image, text, self.logit_scale.exp())
        loss.backward()
        nn.utils.clip_grad_norm_([p for group in self._optimizer.param_groups for p in group["params"]], self._clip)
        self._optimizer.step()
        with torch.no_grad():
            self.logit_scale.clamp_(0, math.log(100))


def _step_rate(towers: str, batch: int, steps: int, where: torch.device, seconds: float) -> StepRate:
    """Return both, some steps of each in turn, so that what else the computer does falls on both.

    On a GPU those are several, which either loop enqueues without waiting for the one before. No turn begins after so
    many seconds, but for the one that is measured.
    """
    began_all = time.monotonic()
    many = min(AHEAD, steps) if where.type == "cuda" else 1
    turns = -(-steps // many)
    ours = _session(towers, batch, (turns + 2) * many, where)
    other = _session(towers, batch, (turns + 2) * many, where)
    theirs = OpenClipLoop(other, presets.preset("clip-scenes").optimizer)
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
            if time.monotonic() - began_all > seconds:
                break
    median = {name: statistics.median(values) for name, values in took.items()}
    measured = len(took["ours"]) * many
    return StepRate(towers, batch, measured, median["ours"], median["theirs"], sum(waits) / sum(took["ours"]))


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
    """Ask for more than there is, and make a step afterwards; or report that the batch fitted."""
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
    lines += [bench.note] if bench.note else []
    for count in bench.waits:
        counted = "-" if count.found is None else count.found
        lines.append(f"{count.objective}: {counted} waits an epoch, {count.predicted} predicted {count.note}".rstrip())
    for use in bench.memory:
        measured, predicted = ("-" if mib is None else f"{mib:,.0f} MiB" for mib in (use.found_mib, use.predicted_mib))
        lines.append(
            f"memory of {use.towers}, batch {use.batch}: {measured}, predicted {predicted} {use.note}".rstrip()
        )
    lines.append(
        f"{'loss':<12}{'form':<8}{'pairs':>9}{'ms':>10}{'share':>8}{'error':>10}{'MiB':>9}  (share: of a large product)"
    )
    for rate in bench.losses:
        if rate.seconds is None:
            lines.append(f"{rate.objective:<12}{rate.form:<8}{rate.pairs:>9,}  {rate.note}")
            continue
        peak = "-" if rate.peak_mib is None else f"{rate.peak_mib:,.0f}"
        lines.append(
            f"{rate.objective:<12}{rate.form:<8}{rate.pairs:>9,}{1000 * rate.seconds:>10.1f}"
            f"{rate.share or 0:>8.1%}{rate.error or 0:>10.1e}{peak:>9}"
        )
    for step in bench.steps:
        lines.append(
            f"step of {step.towers}, batch {step.batch}: {1000 * step.ours_s:.0f} ms, open_clip's loop "
            f"{1000 * step.open_clip_s:.0f} ms ({step.ratio:.2f}x), waiting for data {100 * step.wait:.1f} %"
        )
    sentences = {True: "equal bit for bit", False: "DIFFERENT", None: "not tried"}
    lines.append(f"resumed training: {sentences[bench.resume_equal]}")
    lines += [f"GPU: {gauge}" for gauge in bench.gauges] or [f"gauges: {bench.without_gpu}"]
    lines.append(f"out of memory: {bench.out_of_memory}")
    lines += [f"failed: {sentence}" for sentence in bench.failures]
    lines.append(f"{bench.seconds:.0f} s")
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
