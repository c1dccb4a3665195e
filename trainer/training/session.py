"""A training session: towers, method and optimizer over one training split, updated step by step."""

from __future__ import annotations

import functools
import math
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Int, UInt8
from torch import Tensor, nn

from trainer import config, device, methods, models, pretrained
from trainer.data import Pairs
from trainer.data.augment import random_crops
from trainer.data.lazy_images import StreamedImages
from trainer.data.loader import BatchStream
from trainer.data.order import steps_per_epoch
from trainer.data.pairs import BATCH
from trainer.data.published_tokenizers import AnyTokenizer
from trainer.data.sentences import CaptionTokens
from trainer.errors import UserError
from trainer.losses.fused import fused_losses
from trainer.methods.momentum_queue import MomentumQueue
from trainer.ranks import Ranks, share_batch_norms
from trainer.training import optimizer


class FitError(UserError):
    """Training cannot continue; the message says why and what to change."""


@dataclass(frozen=True)
class Update:
    """The result of one update.

    Attributes:
        loss: Of the batch, before the update.
        gradient_norm: Before clipping.
        learning_rate: Used by the update.
        data_s: Seconds until the batch lay ready on the device.
        seconds: Of the whole update.
    """

    loss: float
    gradient_norm: float
    learning_rate: float
    data_s: float
    seconds: float

    @property
    def made(self) -> bool:
        """Whether loss and gradient were finite, so that the weights were updated."""
        return math.isfinite(self.loss) and math.isfinite(self.gradient_norm)


class TrainingSession:
    """All training state; batch `step` is a function of (seed, step) alone.

    Attributes:
        towers: The model.
        method: How a batch becomes a loss.
        optimizer: AdamW or LARS over both.
        step: Updates made.
        total_steps: Updates in the whole run.
        micro_batch: Pairs embedded at a time; 0: all at once.
        batch_size: Pairs of an update.
        architecture: What the towers were built from.
    """

    def __init__(
        self,
        run: config.Run,
        pairs: Pairs,
        tokenizer: AnyTokenizer,
        where: torch.device,
        *,
        found: pretrained.ResolvedModel | None = None,
        built_from: models.Architecture | None = None,
        shared: Ranks | None = None,
        source: Mapping[str, Tensor] | None = None,
    ) -> None:
        """Create all parts.

        Args:
            run: The configuration.
            pairs: The training split.
            tokenizer: The run's own.
            where: The device.
            found: A published model to begin with.
            built_from: Sizes of the towers where neither the configuration nor `found` tells them.
            shared: The processes that share each batch; None: this one has them for itself.
            source: Weights of the run that is decoded; None where a checkpoint has them.

        Raises:
            FitError: The objective cannot be trained by several processes.
        """
        torch.manual_seed(run.seed)
        self.architecture = built_from or (found.blueprint if found else run.model)
        towers = models.build(self.architecture, vocabulary=tokenizer.size, towers=run.objective.towers)
        if found is not None:
            pretrained.start_from(found, towers)
        towers.freeze(getattr(run.model, "freeze", "none"))
        if run.objective.towers == "source":
            towers.load_state_dict(source or towers.state_dict())
            towers.freeze_all()
        if run.optimizer.recompute:
            models.recompute_blocks(towers)
        self.towers = towers.to(where, memory_format=device.memory_format(where))
        material = methods.Material(run, pairs, tokenizer, self.towers, self.architecture)
        self.method = methods.build(run.objective, material).to(where)
        if found is not None:
            self.method.adopt(inv_tau=found.learned.inv_tau, bias=found.learned.bias)
        self._shared = shared
        if shared is not None:
            _share_batch_norms(self.towers, self.method, shared)
        self.optimizer = optimizer.build(nn.ModuleDict(self.modules), run.optimizer)
        self.device = where
        self.step = 0
        epochs = run.optimizer.epochs
        # A model that is only opened and measured needs no whole batch.
        self._per_epoch = steps_per_epoch(len(pairs), batch_size=run.optimizer.batch_size) if epochs else 0
        self.total_steps = self._per_epoch * epochs
        self.micro_batch = run.optimizer.micro_batch
        self.batch_size = run.optimizer.batch_size
        self._run = run
        self._pairs = pairs
        sample = getattr(self.method, "samples_sentences", False)
        captions = pairs.captions if self.method.reads_texts and epochs else []
        length = self.architecture.context_length
        self._texts = CaptionTokens(captions, tokenizer, length, seed=run.seed, sample=sample)
        self._order: tuple[int, list[Int[np.ndarray, " batch"]]] = (-1, [])
        streamed = isinstance(pairs.images, StreamedImages) and self.method.reads_images
        self._stream = BatchStream(pairs.images, self._upcoming, workers=run.workers) if streamed else None

    def news(self) -> list[str]:
        """Return messages about images found to be unreadable since the last call."""
        if self._stream is None or not self._stream.news:
            return []
        news, self._stream.news = self._stream.news, []
        return news

    @property
    def norm_rows(self) -> int:
        """Pairs over which batch norms take their statistics: those embedded at a time, on all ranks."""
        ranks = self._shared.size if self._shared is not None else 1
        return min(self.batch_size, self.micro_batch * ranks) if self.micro_batch else self.batch_size

    @property
    def modules(self) -> dict[str, nn.Module]:
        """The modules saved in a checkpoint, by the prefix of their weights."""
        return {"towers": self.towers, "method": self.method}

    def update(self, batch: methods.Batch | None = None) -> Update:
        """Perform the next update, which is skipped if loss or gradient is not finite.

        Args:
            batch: As `batch` gave it for this step; None: made here.
        """
        began = time.perf_counter()
        choice = self._run.optimizer
        rate = optimizer.learning_rate(self.step, total_steps=self.total_steps, choice=choice)
        optimizer.set_learning_rate(self.optimizer, rate)
        batch = batch or self.batch()
        data_s = time.perf_counter() - began

        self.towers.train()
        self.method.train()
        self.optimizer.zero_grad(set_to_none=True)
        loss = self._loss(batch)
        parameters = (p for group in self.optimizer.param_groups for p in group["params"])
        norm = optimizer.clip_gradients(parameters, choice.clip_norm)
        # One wait for the device a step: a NaN must not reach the weights.
        loss_value, norm_value = torch.stack((loss.float(), norm.float())).tolist()
        if math.isfinite(loss_value) and math.isfinite(norm_value):
            self.optimizer.step()
            self.method.after_step()
            self.step += 1
            self.method.follow(self.towers, self.step / self.total_steps)
        return Update(loss_value, norm_value, rate, data_s, time.perf_counter() - began)

    def _loss(self, batch: methods.Batch) -> Tensor:
        """Return the loss of a batch, with gradients in all parameters."""
        autocast, most = functools.partial(device.autocast, self.device), self.micro_batch
        with fused_losses(self._run.loss_kernels == "triton"):
            if self._shared is None:
                return methods.backward(self.method, self.towers, batch, autocast=autocast, micro_batch=most)
            return methods.backward_over_ranks(
                self.method, self.towers, batch, self._shared, autocast=autocast, micro_batch=most
            )

    def first_batch(self) -> Pairs:
        """Return the pairs of the first step with uncropped images, as an example of a training batch.

        Of a model that is only measured, and of fewer pairs than a batch has, all of them.
        """
        if not self._per_epoch and len(self._pairs) < self._run.optimizer.batch_size:
            return self._pairs.part(np.arange(len(self._pairs)), split=BATCH)
        drawn = self.method.order(len(self._pairs), self._run.optimizer.batch_size, self._run.seed, 0)
        return self._pairs.part(np.sort(next(iter(drawn))), split=BATCH)

    def batch(self) -> methods.Batch:
        """Return the batch of the next update, or this rank's part of it: a function of (seed, step)."""
        epoch, place = divmod(self.step, self._per_epoch)
        if place == 0:
            self.method.begin_epoch(epoch)
        if self._order[0] != epoch:
            drawn = self.method.order(len(self._pairs), self._run.optimizer.batch_size, self._run.seed, epoch)
            self._order = (epoch, list(drawn))
        # Sorted, a memory map is read front to back; which pairs meet in a batch stays the same.
        rows = np.sort(self._order[1][place])
        own = slice(None) if self._shared is None else self._shared.own(len(rows))
        images = other = None
        if self.method.reads_images:
            rows, mine, pixels = self._pixels(rows, own)
            images, other = self._views(pixels, mine, epoch)
        tokens = self._texts.of(rows, epoch).to(self.device) if self.method.reads_texts else None
        placed = torch.from_numpy(rows).to(self.device)
        if self._shared is None:
            return methods.Batch(images, tokens, placed, other, self.step)
        whole = methods.Batch(None, tokens, placed, None, self.step)
        told = None if tokens is None else tokens[own]
        return methods.Batch(images, told, placed[own], other, self.step, whole, own.start)

    def _pixels(
        self, rows: Int[np.ndarray, " batch"], own: slice
    ) -> tuple[Int[np.ndarray, " batch"], Int[np.ndarray, " n"], UInt8[np.ndarray, "n s s 3"]]:
        """Return the rows of the whole batch, those of this rank, and the images of these."""
        if self._stream is None:
            return rows, rows[own], self._pairs.images[rows[own]]
        mine, pixels = self._stream.batch(self.step)
        if self._shared is None:
            return mine, mine, pixels
        # Every rank replaces what it finds to be unreadable: which rows the batch has, only all of them know.
        (gathered,), _ = self._shared.gather([torch.from_numpy(mine)])
        return gathered.numpy(), mine, pixels

    def _upcoming(self, step: int) -> Iterator[Int[np.ndarray, " batch"]]:
        """Yield the sorted rows of every batch from a step on, or this rank's part of them."""
        while step < self.total_steps:
            epoch, place = divmod(step, self._per_epoch)
            drawn = list(self.method.order(len(self._pairs), self._run.optimizer.batch_size, self._run.seed, epoch))
            for rows in map(np.sort, drawn[place:]):
                yield rows if self._shared is None else rows[self._shared.own(len(rows))]
            step += self._per_epoch - place

    def _views(
        self, pixels: UInt8[np.ndarray, "n s s 3"], rows: Int[np.ndarray, " n"], epoch: int
    ) -> tuple[Tensor, Tensor | None]:
        images = torch.from_numpy(pixels).to(self.device)
        seed, layout = self._run.seed, device.memory_format(self.device)
        views = [self.method.augmented(images, rows, epoch=epoch, view=view) for view in range(self.method.views)]
        first, other = views[0], views[1] if len(views) > 1 else None
        if first is None:
            first = random_crops(images, rows, seed, epoch, self._run.optimizer.crop_scale)
        first = first.contiguous(memory_format=layout)
        return first, None if other is None else other.contiguous(memory_format=layout)


def _share_batch_norms(towers: nn.Module, method: nn.Module, shared: Ranks) -> None:
    """Let batch norms see the rows of all ranks.

    Raises:
        FitError: Keys pass in shuffled groups of the whole batch, of which no rank has all images.
    """
    if isinstance(method, MomentumQueue) and models.has_batch_norm(towers):
        raise FitError(
            "The image tower has batch norms, and this objective passes its keys in shuffled groups of the whole "
            "batch, which several processes cannot do. Train it with ranks=1, or choose the ViT tower."
        )
    for module in (towers, method):
        share_batch_norms(module, shared)
