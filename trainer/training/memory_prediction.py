"""The memory that training takes on a graphics card, predicted before the start: an update of tensors without values.

The product's own forward and backward pass, clipping and optimizer run on fake tensors, which have sizes and no
values, so it takes seconds at any batch and needs no card. What is counted is the most that lives at one time, in
blocks of 512 bytes as torch's allocator gives them, with attention as fused kernels compute it. Measured against one
published number (`assets/docs/measurements/device.md`); a card adds its context, workspaces of convolutions and
fragmentation, for which `needed_bytes` adds a share.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import weakref
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from trainer import config, methods, models
from trainer.data import Pairs
from trainer.data.tokenizers import AnyTokenizer
from trainer.training import optimizer
from trainer.training.session import FitError, restrict

BLOCK: Final = 512
"""Bytes of which torch's allocator hands out whole multiples."""
CONTEXT: Final = 768 * 2**20
"""Bytes of a card's context and libraries: a guess, for no card has been measured."""
SHARE: Final = 0.1
"""Of the peak, for workspaces of convolutions and fragmentation: a guess."""
_GIB: Final = 2**30
LEAST_MICRO_BATCH: Final = 8
"""Pairs embedded at a time, below which nobody trains."""


@dataclass(frozen=True)
class MemoryPrediction:
    """The memory of one update."""

    peak_bytes: int  # The most that lives at one time.
    weights_bytes: int  # Of towers and objective.
    of_towers: bool = False  # Whether the towers alone were counted, because the objective reads values.

    @property
    def needed_bytes(self) -> int:
        """What a card must have free: the peak with what the prediction does not see."""
        return round(self.peak_bytes * (1 + SHARE)) + CONTEXT


@dataclass(frozen=True)
class Trained:
    """What is trained."""

    run: config.Run
    pairs: Pairs  # To train on, of which an objective may take its vocabulary or classes.
    tokenizer: AnyTokenizer  # Of the run.
    architecture: models.Architecture  # What the towers are built from.


def predict(trained: Trained, *, bfloat16: bool = True) -> MemoryPrediction | None:
    """Return the memory of an update of a run on a card; None where it cannot be predicted.

    Args:
        trained: Run, pairs and sizes.
        bfloat16: Whether the card computes in it; float32 otherwise.
    """
    for of_towers in (False, True):
        # An objective may read values, which fakes have not, and a tower what torch knows no fake of.
        with contextlib.suppress(Exception):
            return _predicted(trained, bfloat16, of_towers)
    return None


def micro_batch_that_fits(trained: Trained, free_bytes: int, *, bfloat16: bool = True) -> int | None:
    """Return the largest micro-batch, a power of two, with which the run fits; None if none does or is known."""
    choice = trained.run.optimizer
    size = 2 ** ((choice.micro_batch or choice.batch_size) - 1).bit_length() // 2
    while size >= LEAST_MICRO_BATCH:
        smaller = replace(trained, run=replace(trained.run, optimizer=replace(choice, micro_batch=size)))
        prediction = predict(smaller, bfloat16=bfloat16)
        if prediction is None:
            return None
        if prediction.needed_bytes <= free_bytes:
            return size
        size //= 2
    return None


def check_fits(trained: Trained, where: torch.device) -> int | None:
    """Return the bytes that a run needs on a graphics card; None where they are not known.

    Args:
        trained: Run, pairs and sizes.
        where: The device; one that is no card is not compared with.

    Raises:
        FitError: The card has fewer free.
    """
    if not trained.run.optimizer.epochs:
        return None
    bfloat16 = where.type != "cuda" or torch.cuda.is_bf16_supported(including_emulation=False)
    prediction = predict(trained, bfloat16=bfloat16)
    if prediction is None or where.type != "cuda":
        return None if prediction is None else prediction.needed_bytes
    free, _ = torch.cuda.mem_get_info(where)
    if prediction.needed_bytes > free:
        raise FitError(
            f"About {prediction.needed_bytes / _GIB:.1f} GiB of the graphics card's memory are needed, and "
            f"{free / _GIB:.1f} GiB are free. {proposal(trained, free, bfloat16=bfloat16)}"
        )
    return prediction.needed_bytes


def proposal(trained: Trained, free_bytes: int, *, bfloat16: bool = True) -> str:
    """Return a sentence with the micro-batch that fits; of a batch that is halved where none is known."""
    choice = trained.run.optimizer
    size = micro_batch_that_fits(trained, free_bytes, bfloat16=bfloat16)
    if size is not None:
        return f"Set Micro-batch to {size}, which is predicted to fit; batch and gradient stay the same."
    recompute = "" if choice.recompute else "Recompute activations, or train "
    return f"{recompute or 'Train '}batches of {max(2, choice.batch_size // 2)} pairs, or a smaller model."


class _Peak(TorchDispatchMode):
    """Counts the bytes of all storages that live."""

    def __init__(self) -> None:
        super().__init__()
        self.live = self.peak = 0
        self._known: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()

    def add(self, tensor: Tensor) -> None:
        storage = tensor.untyped_storage()
        if storage in self._known:
            return
        size = -(-storage.nbytes() // BLOCK) * BLOCK
        self._known[storage] = size
        self.live += size
        self.peak = max(self.peak, self.live)
        weakref.finalize(storage, self._remove, size)

    def _remove(self, size: int) -> None:
        self.live -= size

    def __torch_dispatch__(self, operation: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = operation(*args, **(kwargs or {}))
        for leaf in tree_leaves(result):
            if isinstance(leaf, Tensor):
                self.add(leaf)
        return result


@contextlib.contextmanager
def _wide_norms() -> Iterator[None]:
    """Compute layer norms of fakes in float32, as CUDA's autocast does and the CPU's does not."""
    plain = F.layer_norm

    def widened(values: Tensor, *arguments: Any, **options: Any) -> Tensor:
        narrow = isinstance(values, FakeTensor) and values.dtype is torch.bfloat16
        return plain(values.float() if narrow else values, *arguments, **options)

    F.layer_norm = widened  # type: ignore[assignment]
    try:
        yield
    finally:
        F.layer_norm = plain


def _predicted(trained: Trained, bfloat16: bool, of_towers: bool) -> MemoryPrediction:
    choice, peak = trained.run.optimizer, _Peak()
    towers, method = _modules(trained)
    fakes = FakeTensorMode(allow_non_fake_inputs=True)
    _emptied(towers, fakes)
    _emptied(method, fakes)
    with fakes, torch.autograd.set_multithreading_enabled(False):
        update = optimizer.build(nn.ModuleDict({"towers": towers, "method": method}), choice)
        for tensor in itertools.chain(*((*module.parameters(), *module.buffers()) for module in (towers, method))):
            peak.add(tensor)
        weights = peak.live
        learned = [parameter for group in update.param_groups for parameter in group["params"]]
        with peak, _wide_norms():
            average = [torch.empty_like(weight) for weight in towers.parameters()] if choice.average else []
            _give_moments(update, learned)
            _pass(trained, towers, method, bfloat16=bfloat16, of_towers=of_towers)
            optimizer.clip_gradients(learned, choice.clip_norm)
            update.step()
        del average
    return MemoryPrediction(peak.peak, weights, of_towers)


def _modules(trained: Trained) -> tuple[models.TwoTowers, methods.Method]:
    """Return what a session builds, in the mode that trains."""
    run = trained.run
    with torch.random.fork_rng(devices=[]):
        towers = models.build(trained.architecture, vocabulary=trained.tokenizer.size, towers=run.objective.towers)
        material = methods.Material(run, trained.pairs, trained.tokenizer, towers, trained.architecture)
        method = methods.build(run.objective, material)
        if run.objective.source is not None:
            towers.freeze_all()
        else:
            restrict(towers, run, None)
    if run.optimizer.recompute:
        models.recompute_blocks(towers)
    if isinstance(method, methods.ImageText):
        method.matching = None  # which rows are masked, only their numbers tell
    return towers.train(), method.train()


def _emptied(module: nn.Module, fakes: FakeTensorMode) -> None:
    """Give the module fakes of its parameters and buffers."""
    for part in module.modules():
        for name, parameter in part.named_parameters(recurse=False):
            fake = fakes.from_tensor(parameter.detach())
            part._parameters[name] = nn.Parameter(fake, requires_grad=parameter.requires_grad)
        for name, buffer in part.named_buffers(recurse=False):
            part._buffers[name] = fakes.from_tensor(buffer)


def _give_moments(update: torch.optim.Optimizer, learned: list[nn.Parameter]) -> None:
    """Let the optimizer have what it keeps from the first update on."""
    for parameter in learned:
        parameter.grad = torch.empty_like(parameter)
    update.step()
    update.zero_grad(set_to_none=True)


def _pass(
    trained: Trained, towers: models.TwoTowers, method: methods.Method, *, bfloat16: bool, of_towers: bool
) -> None:
    """Pass a batch forward and backward.

    Of micro-batches two are passed, and the rest of the batch lies beside them as its images and tokens do.
    """
    choice = trained.run.optimizer
    autocast = functools.partial(torch.autocast, "cpu", torch.bfloat16, enabled=bfloat16)
    micro = choice.micro_batch if choice.micro_batch < choice.batch_size else 0
    batch = _batch(trained, method, min(choice.batch_size, 2 * micro) if micro else choice.batch_size)
    rest = _batch(trained, method, choice.batch_size - len(batch)) if len(batch) < choice.batch_size else None
    for part in batch.parts(micro) if micro else (batch,):
        with autocast():
            rows = method.embed(towers, part)
            loss = (
                torch.stack([row.float().sum() for row in rows]).sum()
                if micro or of_towers
                else method.compare(rows, part)
            )
        loss.backward()
    if micro and not of_towers:
        leaves = [row.new_empty((choice.batch_size, *row.shape[1:])).requires_grad_() for row in rows]
        del rows, loss
        method.compare(tuple(leaves), replace(batch, rows=torch.arange(choice.batch_size))).backward()
    del rest


def _batch(trained: Trained, method: methods.Method, size: int) -> methods.Batch:
    side, length = trained.architecture.image_size, trained.architecture.context_length

    def images() -> Tensor:
        return torch.empty(size, 3, side, side).contiguous(memory_format=torch.channels_last)

    return methods.Batch(
        images() if method.reads_images else None,
        torch.zeros(size, length, dtype=torch.int64) if method.reads_texts else None,
        torch.arange(size),
        images() if method.views > 1 else None,
    )
