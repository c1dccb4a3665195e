"""A training session: towers, method and optimizer over one training split, updated step by step."""

from __future__ import annotations

import functools
import math
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import numpy as np
import torch
from jaxtyping import Float, Int, UInt8
from torch import Tensor, nn

from trainer import config, data, device, methods, models, pretrained
from trainer.analysis.progress import Progress
from trainer.data import Pairs
from trainer.data.augment import random_crops
from trainer.data.batch_stream import BatchStream
from trainer.data.caption_tokens import CaptionTokens
from trainer.data.order import steps_per_epoch
from trainer.data.pairs import BATCH
from trainer.data.streamed_images import StreamedImages, readable
from trainer.data.tokenizers import AnyTokenizer
from trainer.errors import UserError
from trainer.models.lora import Adapter, attach
from trainer.pretrained.state_dict_formats import Learned
from trainer.ranks import Ranks, share_batch_norms
from trainer.training import optimizer
from trainer.training.device_images import DeviceImages, fits
from trainer.training.weight_average import WeightAverage

AHEAD_S: Final = 1.0
"""Seconds of updates that are enqueued on a GPU before their losses are read: so late a stop is heard."""


PREPARED_FIRST: Final = "prepared_first"
"""The fact that says what `prepared_first` was as the run began."""

MOST_PREPARED_FIRST: Final = 65_536
FEW_PREPARED_FIRST: Final = 2_048
"""Fewer pictures are prepared in less time than it takes to start what decodes them as they come."""

MIX_STEPS: Final = 100
"""Steps of a run that mixes others: alpha in percent."""


class FitError(UserError):
    """Training cannot continue; the message says why and what to change."""


def load_splits(
    run: config.Run,
    sizes: models.Architecture,
    workspace_folder: Path,
    progress: Progress,
    *,
    most_training: int | None = None,
    facts: Mapping[str, Any] = MappingProxyType({}),
) -> data.DataSplits:
    """Return the pairs of a run, with images as towers of these sizes take them.

    Args:
        progress: Called while pairs are read; may raise to cancel.
        most_training: At most so many training pairs, drawn once and for all; None: all.
        facts: Of the run, which tell how one that has begun reads its pairs.
    """
    return data.load(
        run.data,
        prepared_first=None if most_training is not None else prepared_first(run, facts),
        image_size=sizes.image_size,
        workspace_folder=workspace_folder,
        progress=progress,
        loading=run.loading,
        preprocessing=models.preprocessing_of(sizes),
        most_training=most_training,
    )


def prepared_first(run: config.Run, facts: Mapping[str, Any]) -> int | None:
    """Return how many training pictures are prepared before the first step; of more none is. None: all are.

    A run stays with what it began with: of pictures that are but listed, a broken one is replaced when its batch asks
    for it and not left out beforehand, so batches differ.
    """
    if not run.objective.compares_pairs:
        return None
    if "fingerprint" in facts:
        return facts.get(PREPARED_FIRST, MOST_PREPARED_FIRST)
    # Drawing takes longer than preparing. Equal pictures in different files are masked only where all are prepared.
    masks = getattr(run.objective, "mask_duplicates", False)
    return MOST_PREPARED_FIRST if run.data.is_drawn or masks else FEW_PREPARED_FIRST


@dataclass(frozen=True)
class Update:
    """The result of one update."""

    loss: float  # Of the batch, before the update.
    gradient_norm: float  # Before clipping.
    learning_rate: float  # Used by the update.
    data_s: float  # Seconds until the batch lay ready on the device.
    seconds: float  # Of the whole update.
    inv_tau: float | None = None  # The inverse temperature after the update; None where there is none.

    @property
    def made(self) -> bool:
        """Whether loss and gradient were finite, so that the weights were updated."""
        return math.isfinite(self.loss) and math.isfinite(self.gradient_norm)


class TrainingSession:
    """All training state; batch `step` is a function of (seed, step) alone.

    Attributes:
        method: How a batch becomes a loss.
        optimizer: AdamW or LARS over both.
        step: Updates made.
        total_steps: Updates in the whole run.
        micro_batch: Pairs embedded at a time; 0: all at once.
        batch_size: Pairs of an update.
        architecture: What the towers were built from.
        average: The moving average of the towers' weights; None without one.
        runs_ahead: Whether `updates` enqueues several before it reads the loss of the first: on GPUs, where the
            optimizer itself discards a step that is not finite, and so does what follows the weights.
    """

    def __init__(
        self,
        run: config.Run,
        pairs: Pairs,
        tokenizer: AnyTokenizer,
        where: torch.device,
        *,
        published: pretrained.ResolvedModel | None = None,
        built_from: models.Architecture | None = None,
        shared: Ranks | None = None,
        source: Mapping[str, Tensor] | None = None,
        learned: Learned | None = None,
        adapter: Adapter | None = None,
    ) -> None:
        """Create all parts.

        Args:
            pairs: The training split.
            published: A published model to begin with.
            built_from: Sizes of the towers where neither the configuration nor `published` tells them.
            shared: The processes that share each batch; None: this one has them for itself.
            source: Weights of the run that is decoded or started from; None where a checkpoint has them.
            learned: Temperature and bias of the run that is started from.
            adapter: Where LoRA begins; None: at nothing, with the sizes of the configuration.

        Raises:
            FitError: The objective cannot be trained by several processes.
        """
        torch.manual_seed(run.seed)
        self.architecture = built_from or (published.blueprint if published else run.model)
        towers = models.build(self.architecture, vocabulary=tokenizer.size, towers=run.objective.towers)
        if published is not None:
            pretrained.start_from(published, towers)
        if source is not None:
            towers.load_state_dict(source)
        if run.objective.source is not None:
            towers.freeze_all()
        else:
            restrict(towers, run, adapter)
        if run.optimizer.recompute:
            models.recompute_blocks(towers)
        if run.compile != "off":
            models.compile_blocks(towers.visual, towers.text, run.compile)
        self.towers = towers.to(where, memory_format=device.memory_format(where))
        material = methods.Material(run, pairs, tokenizer, self.towers, self.architecture)
        self.method = methods.build(run.objective, material).to(where)
        learned = published.learned if published is not None else learned
        if learned is not None:
            self.method.adopt(inv_tau=learned.inv_tau, bias=learned.bias)
        self._shared = shared
        if shared is not None:
            _share_batch_norms(self.towers, self.method, shared)
        averaged = run.optimizer.average > 0 and run.objective.source is None
        self.average = WeightAverage(self.towers, run.optimizer.average) if averaged else None
        rates = {"visual": run.tuning.image_rate, "text": run.tuning.text_rate}
        self.optimizer = optimizer.build(nn.ModuleDict(self.modules), run.optimizer, rates)
        self.device = where
        self.runs_ahead = shared is None and may_run_ahead(run.optimizer, where)
        self.step = 0
        epochs = run.optimizer.epochs
        # A model that is only opened and measured needs no whole batch.
        self._per_epoch = steps_per_epoch(len(pairs), batch_size=run.optimizer.batch_size) if epochs else 0
        self.total_steps = MIX_STEPS if run.tuning.mix else self._per_epoch * epochs
        self.micro_batch = run.optimizer.micro_batch
        self.batch_size = run.optimizer.batch_size
        self._run = run
        self._pairs = pairs
        sample = self.method.samples_sentences
        captions = pairs.captions if self.method.reads_texts and epochs else []
        length = self.architecture.context_length
        self._texts = CaptionTokens(captions, tokenizer, length, seed=run.seed, sample=sample)
        self._order: tuple[int, list[Int[np.ndarray, " batch"]]] = (-1, [])
        images = pairs.images
        if isinstance(images, StreamedImages) and images.kept is not None and not images.kept.reasons:
            images = images.kept.pixels
        streamed = isinstance(images, StreamedImages) and self.method.reads_images
        self._stream = BatchStream(images, self._upcoming, workers=run.workers) if streamed else None
        self._images = None
        if epochs and self.method.reads_images and not isinstance(images, StreamedImages):
            self._images = DeviceImages(images, where, resident=fits(images, where))
        self._update_s = 0.0

    def news(self) -> list[str]:
        """Return messages about images found to be unreadable since the last call."""
        if self._stream is None or not self._stream.news:
            return []
        news, self._stream.news = self._stream.news, []
        return news

    @property
    def unreadable(self) -> dict[int, str]:
        """Row of each listed picture that is known not to be readable -> why."""
        return self._stream.unreadable if self._stream is not None else {}

    @property
    def preparing(self) -> str:
        """What is done of the cache while it is made; empty where none is."""
        return self._stream.preparing if self._stream is not None else ""

    def keep_images(self) -> None:
        """Begin to make the cache of listed images, where another epoch reads it."""
        if self._stream is not None and self._run.optimizer.epochs > 1:
            self._stream.keep()

    def end(self) -> None:
        """Stop what decodes images."""
        if self._stream is not None:
            self._stream.end()

    @property
    def norm_rows(self) -> int:
        """Pairs over which batch norms take their statistics: those embedded at a time, on all ranks."""
        ranks = self._shared.size if self._shared is not None else 1
        return min(self.batch_size, self.micro_batch * ranks) if self.micro_batch else self.batch_size

    @property
    def modules(self) -> dict[str, nn.Module]:
        """The modules saved in a checkpoint, by the prefix of their weights."""
        average = {} if self.average is None else {"average": self.average.towers}
        return {"towers": self.towers, "method": self.method} | average

    @property
    def measured(self) -> models.TwoTowers:
        """The towers that are evaluated, kept and opened: the average of the weights, if there is one."""
        return self.towers if self.average is None else self.average.towers

    def copied_weights(self) -> dict[str, dict[str, Tensor]]:
        """Return a copy of all weights in the memory of the CPU, by module."""
        return {
            name: {key: value.detach().to("cpu", copy=True) for key, value in module.state_dict().items()}
            for name, module in self.modules.items()
        }

    def put_weights(self, copied: Mapping[str, Mapping[str, Tensor]]) -> None:
        """Set all weights to what `copied_weights` returned, bit by bit."""
        for name, module in self.modules.items():
            module.load_state_dict(copied[name])

    def update(self, batch: methods.Batch | None = None) -> Update:
        """Perform the next update, which is skipped if loss or gradient is not finite.

        Args:
            batch: As `batch` gave it for this step; None: made here.
        """
        began = time.perf_counter()
        reading, rate, data_s = self._gradients(batch)
        self._begin_images(self.step + 1)
        # One wait for the device a step: a NaN must not reach the weights.
        loss, norm = reading.tolist()
        if math.isfinite(loss) and math.isfinite(norm):
            self.optimizer.step()
            self._follow()
        return Update(loss, norm, rate, data_s, time.perf_counter() - began, self.method.inv_tau)

    def updates(self, most: int) -> Iterator[Update]:
        """Perform up to `most` updates of this epoch and yield them; one that is not finite is the last.

        Where the session runs ahead, all are enqueued before the loss of the first is read, and the device discards
        the step of one that is not finite and of all that follow it.
        """
        if not self.runs_ahead:
            yield self.update()
            return
        most = min(most, self._per_epoch - self.step % self._per_epoch)
        if self._update_s:
            most = min(most, int(AHEAD_S / self._update_s))
        yield from self._ahead(max(1, most))

    def _ahead(self, most: int) -> Iterator[Update]:
        began, first = time.perf_counter(), self.step
        readings, answers = [], []
        bad = torch.zeros((), device=self.device)
        for _ in range(most):
            reading, rate, data_s = self._gradients(None)
            bad = torch.maximum(bad, (~reading.isfinite().all()).float())
            # What torch's GradScaler sets: the fused optimizer then leaves weights and moments as they are.
            self.optimizer.found_inf = bad  # type: ignore[attr-defined]
            self.optimizer.step()
            self._follow(bad)
            learned = self.method.learned_inv_tau
            # Read with the losses: each read by itself is a wait.
            readings.append(reading if learned is None else torch.cat((reading, learned.to(reading.dtype).view(1))))
            answers.append((rate, data_s))
        self.optimizer.found_inf = None  # type: ignore[attr-defined]
        values = torch.stack(readings).tolist()
        self._update_s = (time.perf_counter() - began) / most
        for at, ((loss, norm, *learned), (rate, data_s)) in enumerate(zip(values, answers, strict=True)):
            inv_tau = learned[0] if learned else self.method.inv_tau
            update = Update(loss, norm, rate, data_s, self._update_s, inv_tau)
            self.step = first + at + update.made
            yield update
            if not update.made:
                return

    def _gradients(self, batch: methods.Batch | None) -> tuple[Float[Tensor, " 2"], float, float]:
        """Give every parameter its gradient; return loss and norm on the device, the rate, and the data's seconds."""
        began = time.perf_counter()
        choice = self._run.optimizer
        rate = self._rate()
        optimizer.set_learning_rate(self.optimizer, rate)
        batch = batch or self.batch()
        data_s = time.perf_counter() - began
        # A linear probe learns of what the model makes of pictures, so batch norms stay as they are meanwhile.
        self.towers.train(not self._probes)
        self.method.train()
        self.optimizer.zero_grad(set_to_none=True)
        loss = self._loss(batch)
        if self._probes:
            self._keep_below_last_layers()
        parameters = (p for group in self.optimizer.param_groups for p in group["params"])
        norm = optimizer.clip_gradients(parameters, choice.clip_norm)
        wide = loss if loss.dtype == torch.float64 else loss.float()
        return torch.stack((wide, norm.to(wide.dtype))), rate, data_s

    @property
    def _probes(self) -> bool:
        return self.step < self._run.tuning.probe_steps

    def _rate(self) -> float:
        """Return the learning rate of the next update: that of the probe, or of the schedule of what follows it.

        Kumar et al., Fine-Tuning can Distort Pretrained Features and Underperform Out-of-Distribution, 2022,
        https://arxiv.org/abs/2202.10054
        """
        tuning = self._run.tuning
        if self._probes:
            return tuning.probe_rate
        rest = self.total_steps - tuning.probe_steps
        return optimizer.learning_rate(self.step - tuning.probe_steps, total_steps=rest, choice=self._run.optimizer)

    def _keep_below_last_layers(self) -> None:
        """Forget the gradients of all but the last layer of each tower, so that nothing below changes."""
        for tower in (self.towers.visual, self.towers.text):
            for name, parameter in () if tower is None else tower.named_parameters():
                if not models.is_projection(name):
                    parameter.grad = None

    def _follow(self, bad: Tensor | None = None) -> None:
        """Count an update, and let what follows the weights follow them, unless `bad` is 1 on the device."""
        self.method.after_step()
        self.step += 1
        self.method.follow(self.towers, self.step / self.total_steps, bad)
        if self.average is not None:
            self.average.follow(self.towers, self.step, bad)

    def _begin_images(self, step: int) -> None:
        """Begin to copy the images of a step, where copies are made ahead."""
        if self._images is None or not self._images.copies_ahead:
            return
        epoch, position = divmod(step, self._per_epoch)
        if epoch == self._order[0]:
            rows = np.sort(self._order[1][position])
            self._images.begin(rows if self._shared is None else rows[self._shared.own(len(rows))])

    def _loss(self, batch: methods.Batch) -> Tensor:
        """Return the loss of a batch, with gradients in all parameters."""
        autocast, most = functools.partial(device.autocast, self.device), self.micro_batch
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
        return self._pairs.part(readable(self._pairs.images, np.sort(next(iter(drawn)))), split=BATCH)

    def batch(self) -> methods.Batch:
        """Return the batch of the next update, or this rank's part of it: a function of (seed, step)."""
        epoch, position = divmod(self.step, self._per_epoch)
        if position == 0:
            self.method.begin_epoch(epoch)
        if self._order[0] != epoch:
            drawn = self.method.order(len(self._pairs), self._run.optimizer.batch_size, self._run.seed, epoch)
            self._order = (epoch, list(drawn))
        # Sorted, a memory map is read front to back; which pairs meet in a batch stays the same.
        rows = np.sort(self._order[1][position])
        share = slice(None) if self._shared is None else self._shared.own(len(rows))
        images = other = None
        if self.method.reads_images:
            rows, mine, pictures = self._pictures(rows, share)
            images, other = self._views(pictures, mine, epoch)
        host_tokens = self._texts.of(rows, epoch) if self.method.reads_texts else None
        tokens = None if host_tokens is None else device.sent(host_tokens, self.device)
        indices = torch.from_numpy(rows)
        if self._shared is None:
            return methods.Batch(images, tokens, indices, other, self.step, host_tokens=host_tokens)
        everywhere = methods.Batch(None, tokens, indices, None, self.step, host_tokens=host_tokens)
        own_tokens = None if tokens is None else tokens[share]
        return methods.Batch(images, own_tokens, indices[share], other, self.step, everywhere, share.start)

    def _pictures(
        self, rows: Int[np.ndarray, " batch"], share: slice
    ) -> tuple[Int[np.ndarray, " batch"], Int[np.ndarray, " n"], UInt8[Tensor, "n s s 3"]]:
        """Return the rows of the whole batch, those of this rank, and the images of these."""
        if self._stream is None:
            assert self._images is not None
            return rows, rows[share], self._images.of(rows[share])
        mine, pixels = self._stream.batch(self.step)
        images = device.sent(pixels, self.device)
        if self._shared is None:
            return mine, mine, images
        # Every rank replaces what it finds to be unreadable: which rows the batch has, only all of them know.
        (gathered,), _ = self._shared.gather([torch.from_numpy(mine)])
        return gathered.numpy(), mine, images

    def _upcoming(self, step: int) -> Iterator[Int[np.ndarray, " batch"]]:
        """Yield the sorted rows of every batch from a step on, or this rank's part of them."""
        while step < self.total_steps:
            epoch, position = divmod(step, self._per_epoch)
            drawn = list(self.method.order(len(self._pairs), self._run.optimizer.batch_size, self._run.seed, epoch))
            for rows in map(np.sort, drawn[position:]):
                yield rows if self._shared is None else rows[self._shared.own(len(rows))]
            step += self._per_epoch - position

    def _views(
        self, images: UInt8[Tensor, "n s s 3"], rows: Int[np.ndarray, " n"], epoch: int
    ) -> tuple[Tensor, Tensor | None]:
        seed, layout = self._run.seed, device.memory_format(self.device)
        views = [self.method.augmented(images, rows, epoch=epoch, view=view) for view in range(self.method.views)]
        first, other = views[0], views[1] if len(views) > 1 else None
        if first is None:
            first = random_crops(images, rows, seed, epoch, self._run.optimizer.crop_scale)
        first = first.contiguous(memory_format=layout)
        return first, None if other is None else other.contiguous(memory_format=layout)


def restrict(towers: models.TwoTowers, run: config.Run, adapter: Adapter | None) -> None:
    """Freeze what a run does not train, and put LoRA where it is to learn."""
    tuning = run.tuning
    towers.freeze(getattr(run.model, "freeze", "none"))
    towers.freeze_lowest(image=tuning.freeze_image, text=tuning.freeze_text)
    towers.freeze_towers(image=tuning.image_rate == 0, text=tuning.text_rate == 0)
    if config.continues_training(run) and not tuning.update_norms:
        towers.hold_norms()
    if adapter is not None or tuning.lora_rank:
        rank, alpha = tuning.lora_rank, tuning.lora_alpha
        attach(towers, rank=rank, alpha=alpha, targets=tuning.lora_targets, adapter=adapter)


def may_run_ahead(choice: config.Optimizer, where: torch.device) -> bool:
    """Return whether updates can be enqueued, and one that is not finite is discarded by the device itself."""
    return where.type == "cuda" and choice.algorithm == "adamw"


def _share_batch_norms(towers: nn.Module, method: methods.Method, shared: Ranks) -> None:
    """Let batch norms see the rows of all ranks.

    Raises:
        FitError: Keys pass in shuffled groups of the whole batch, of which no rank has all images.
    """
    if method.shuffles_keys and models.has_batch_norm(towers):
        raise FitError(
            "The image tower has batch norms, and this objective passes its keys in shuffled groups of the whole "
            "batch, which several processes cannot do. Train it with ranks=1, or choose the ViT tower."
        )
    for module in (towers, method):
        share_batch_norms(module, shared)
