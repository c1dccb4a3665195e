"""Fine-tune the image tower with a linear head on few labels, next to a probe of the frozen tower.

The table of SimCLR (Chen et al., 2020, https://arxiv.org/abs/2002.05709, 4.2 and appendix B.5): labels are a share of
each class, 1 % or 10 %. SGD with Nesterov momentum at 0.05 * batch / 256, crops alone, no weight decay, as there.
Unlike there the head begins as the linear probe on the same labels instead of zero (Kumar et al., Fine-Tuning can
Distort Pretrained Features, 2022), the rate falls on a cosine, epochs are fewer, and batch norms keep their statistics:
the budget is that of a desk.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, Int, UInt8
from torch import Tensor, nn

from trainer.analysis.linear_probe import ProbeFit, chosen_decay, fit_reading
from trainer.analysis.progress import Progress, silent
from trainer.data.augment import normalized, random_crops
from trainer.device import autocast, measuring, memory_format, sent
from trainer.models import TwoTowers
from trainer.models.backbone import backbone

SHARES: Final = {0.01: 30, 0.1: 10}
"""Share of the labels -> epochs over them (SimCLR: 60 and 30)."""
BATCH: Final = 64
RATE: Final = 0.05
"""Learning rate of a batch of 256; it grows and falls with the batch."""
MOMENTUM: Final = 0.9
CLIP: Final = 1.0
CROP: Final = 0.7
"""Smallest share of the image that a crop keeps; never mirrored, as in training."""
VALIDATED: Final = 5
"""Labels a class from which on a fifth of them chooses the decay of the probe."""
AT_ONCE: Final = 256


@dataclass(frozen=True)
class FineTuned:
    """Predictions of both for the test images, as logits per class."""

    tuned: Float[np.ndarray, "m c"]  # Of the tower that went on learning.
    linear: Float[np.ndarray, "m c"]  # Of the probe on the features of the tower as it was.
    labels: int  # How many were learned from.
    epochs: int  # Over these.


@dataclass(frozen=True)
class Some:
    """Rows of an image array that may be larger than memory."""

    images: UInt8[np.ndarray, "a s s 3"]
    rows: Int[np.ndarray, " n"]

    def __len__(self) -> int:
        return len(self.rows)

    def part(self, selected: slice | Int[np.ndarray, " m"]) -> UInt8[np.ndarray, "m s s 3"]:
        """Return a copy of the images in these places."""
        return np.array(self.images[self.rows[selected]])


def fine_tune(
    towers: TwoTowers,
    labeled: Some,
    targets: Int[np.ndarray, " n"],
    tried: Some,
    classes: int,
    *,
    where: torch.device,
    epochs: int,
    seed: int = 0,
    progress: Progress = silent,
) -> FineTuned:
    """Fine-tune a copy of the image tower with a head for `classes`; the towers stay unchanged.

    The same seed gives the same answers on the same machine; torch's own random state is left as it was.

    Args:
        towers: The model, whose image tower is copied.
        labeled: Images with known classes.
        targets: Their classes.
        tried: Images to read.
        where: Device of the towers.
        epochs: Over the labeled images; 0: the linear probe alone.
        seed: Of order and crops.
    """
    with torch.random.fork_rng(devices=[where] if where.type == "cuda" else []):
        torch.manual_seed(seed)
        tuned = _Tuned(towers, where)
        progress(0.0, "Fitting the head")
        features = tuned.features(labeled)
        reading = fit_reading(features, targets, classes, decay=_decay(features, targets, classes))
        linear = reading.logits(tuned.features(tried))
        tuned.begin_head(reading)
        _train(tuned, labeled, targets, where=where, epochs=epochs, seed=seed, progress=progress)
        answers = tuned.read(tried)
    return FineTuned(answers, linear, len(targets), epochs)


class _Tuned(nn.Module):
    """A tower and its head; batch norm and dropout stay in evaluation mode."""

    def __init__(self, towers: TwoTowers, where: torch.device) -> None:
        super().__init__()
        # What a run had frozen learns here, too.
        copied = copy.deepcopy(towers.visual).requires_grad_(True)
        self.tower = backbone(copied) or copied
        self.colors = towers.colors
        self.head: nn.Linear | None = None
        self._where = where
        self.eval()

    def begin_head(self, reading: ProbeFit) -> None:
        """Initialize the head with the probe's weights."""
        slope = reading.weights[:-1] / reading.scale[:, None]
        bias = reading.weights[-1] - reading.mean @ slope
        self.head = nn.Linear(*slope.shape).to(self._where)
        with torch.no_grad():
            self.head.weight.copy_(torch.from_numpy(slope.T.astype(np.float32)))
            self.head.bias.copy_(torch.from_numpy(bias.astype(np.float32)))

    def forward(self, pixels: Float[Tensor, "n 3 s s"]) -> Float[Tensor, "n c"]:
        """Return logits of normalized images."""
        return self.head(self._seen(pixels))

    def features(self, images: Some) -> Float[np.ndarray, "n w"]:
        """Return the head's input features for whole images."""
        return self._rows(images, self._seen)

    def read(self, images: Some) -> Float[np.ndarray, "n c"]:
        """Return logits of whole images."""
        return self._rows(images, self)

    def _seen(self, pixels: Float[Tensor, "n 3 s s"]) -> Float[Tensor, "n w"]:
        output = self.tower(pixels if self.colors is None else self.colors(pixels))
        return (output[0] if isinstance(output, tuple) else output).float()

    @torch.inference_mode()
    def _rows(self, images: Some, read: Callable[[Tensor], Tensor]) -> np.ndarray:
        rows = []
        with measuring(self._where):
            for start in range(0, len(images), AT_ONCE):
                part = sent(images.part(slice(start, start + AT_ONCE)), self._where)
                rows.append(read(normalized(part).contiguous(memory_format=memory_format(self._where))).float().cpu())
        return torch.cat(rows).numpy().astype(np.float64)


def _train(
    tuned: _Tuned,
    labeled: Some,
    targets: Int[np.ndarray, " n"],
    *,
    where: torch.device,
    epochs: int,
    seed: int,
    progress: Progress,
) -> None:
    batch = min(BATCH, len(targets))
    per_epoch = math.ceil(len(targets) / batch)
    steps = max(1, epochs * per_epoch)
    parameters = [p for p in tuned.parameters() if p.requires_grad]
    peak = RATE * batch / 256
    optimizer = torch.optim.SGD(parameters, lr=peak, momentum=MOMENTUM, nesterov=True)
    step = 0
    for epoch in range(epochs):
        order = np.random.default_rng((seed, epoch)).permutation(len(targets))
        for rows in np.array_split(order, per_epoch):
            for group in optimizer.param_groups:
                group["lr"] = peak * 0.5 * (1 + math.cos(math.pi * step / steps))
            rows = np.sort(rows)
            pixels = sent(labeled.part(rows), where)
            crops = random_crops(pixels, rows, seed, epoch, CROP).contiguous(memory_format=memory_format(where))
            with autocast(where):
                logits = tuned(crops)
            loss = F.cross_entropy(logits.float(), sent(targets[rows], where))
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            nn.utils.clip_grad_norm_(parameters, CLIP)
            optimizer.step()
            step += 1
            progress(step / steps, f"Fine-tuning on {len(targets):,} labels, epoch {epoch + 1} of {epochs}")


def _decay(features: np.ndarray, targets: np.ndarray, classes: int) -> float:
    """Select the decay on every fifth label of each class; with fewer labels per class return the middle one."""
    held = np.zeros(len(targets), bool)
    for value in np.unique(targets):
        members = np.flatnonzero(targets == value)
        if len(members) >= VALIDATED:
            held[members[::VALIDATED]] = True
    fitted, validated = ((features[part], targets[part]) for part in (~held, held))
    return chosen_decay(fitted, validated, classes)
