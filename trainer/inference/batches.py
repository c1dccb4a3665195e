"""Embed many rows with two towers, in batches and without gradients."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final, TypeAlias

import numpy as np
import torch
from jaxtyping import Float, Int, UInt8
from torch import Tensor

from trainer.data.augment import normalized
from trainer.device import measuring, memory_format, sent
from trainer.models import TwoTowers
from trainer.models.backbone import backbone

AT_ONCE: Final = 256
"""Rows embedded together: enough to keep the device busy, few enough to keep memory flat."""

_PIXELS_AT_ONCE: Final = 2**20
"""Of pictures embedded together on a processor: one at 224 pixels is 12 at 64, and a stop waits for them."""

Alive: TypeAlias = Callable[[], object] | None
"""Called before every such part: somebody may wait for a sign of life."""


@torch.inference_mode()
def embed_images(
    towers: TwoTowers, images: UInt8[np.ndarray, "n s s 3"], where: torch.device, *, alive: Alive = None
) -> Float[np.ndarray, "n d"]:
    """Return unit float32 embeddings of whole images; callers set the towers to evaluation mode."""
    rows = []
    with measuring(where):
        for part in _keeping_alive(_parts(images, where), alive):
            pixels = normalized(sent(part, where)).contiguous(memory_format=memory_format(where))
            rows.append(towers.encode_image(pixels))
    return _joined(rows)


@torch.inference_mode()
def embed_features(
    towers: TwoTowers, images: UInt8[np.ndarray, "n s s 3"], where: torch.device, *, alive: Alive = None
) -> Float[np.ndarray, "n w"] | None:
    """Return float32 features before the projection, unnormalized; None if the tower's projection is unknown."""
    tower = None if towers.visual is None else backbone(towers.visual)
    if tower is None:
        return None
    rows = []
    with measuring(where):
        for part in _keeping_alive(_parts(images, where), alive):
            pixels = normalized(sent(part, where)).contiguous(memory_format=memory_format(where))
            features = tower(pixels if towers.colors is None else towers.colors(pixels))
            rows.append(features[0] if isinstance(features, tuple) else features)
    return _joined(rows)


@torch.inference_mode()
def embed_tokens(
    towers: TwoTowers, tokens: Int[Tensor, "n length"], where: torch.device, *, alive: Alive = None
) -> Float[np.ndarray, "n d"]:
    """Return unit float32 embeddings of token rows; callers set the towers to evaluation mode."""
    with measuring(where):
        return _joined([towers.encode_text(sent(part, where)) for part in _keeping_alive(tokens.split(AT_ONCE), alive)])


def _keeping_alive(parts: Iterable[Tensor], alive: Alive) -> Iterator[Tensor]:
    """Yield the parts, calling `alive` before each."""
    for part in parts:
        if alive is not None:
            alive()
        yield part


def _parts(images: UInt8[np.ndarray, "n s s 3"], where: torch.device) -> Iterator[UInt8[Tensor, "m s s 3"]]:
    size = at_once(images.shape[1], where)
    for start in range(0, len(images), size):
        # A copy, because the memory map is read-only and torch knows no such tensors.
        yield torch.from_numpy(np.array(images[start : start + size]))


def at_once(side: int, where: torch.device) -> int:
    """Return how many pictures of `side` pixels are embedded together: a power of two, as are the groups of callers."""
    if where.type != "cpu":
        return AT_ONCE
    most = max(8, _PIXELS_AT_ONCE // side**2)
    return min(AT_ONCE, 2 ** (most.bit_length() - 1))


def _joined(rows: list[Float[Tensor, "m d"]]) -> Float[np.ndarray, "n d"]:
    return torch.cat(rows).float().cpu().numpy() if rows else np.zeros((0, 0), np.float32)
