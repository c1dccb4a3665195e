"""Images of batches on the training device: the whole split where it fits there, otherwise copied ahead of their step.

Crops, views and colors are then computed on the device from these 8-bit images.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import torch
from jaxtyping import Int, UInt8
from torch import Tensor

from trainer import device

Rows = Int[np.ndarray, " batch"]

SHARE: Final = 0.3
"""Of a GPU's free memory that the images of a split may take; the rest is for the model and its activations."""
_COPIED_AT_ONCE: Final = 2**28
"""Bytes copied at a time when a whole split is sent."""


class DeviceImages:
    """The prepared images of a split, given by rows on the device that trains.

    Attributes:
        copies_ahead: Whether `begin` copies beside what the device computes: on GPUs that do not hold all images.
    """

    def __init__(self, images: UInt8[np.ndarray, "n size size 3"], where: torch.device, *, resident: bool) -> None:
        """Create it, and copy all images if `resident`.

        Args:
            images: Of the split; a memory map is read as its rows are asked for.
            resident: Whether to keep all of them there; see `fits`.
        """
        self.copies_ahead = where.type == "cuda" and not resident
        self._images, self._where = images, where
        self._all = _copied(images, where) if resident else None
        self._stream = torch.cuda.Stream(where) if self.copies_ahead else None
        self._ahead: tuple[Rows, Tensor] | None = None

    def of(self, rows: Rows) -> UInt8[Tensor, "batch size size 3"]:
        """Return the images of these rows, in their order."""
        if self._all is not None:
            return self._all[device.sent(rows, self._where)]
        ahead, self._ahead = self._ahead, None
        if ahead is not None and np.array_equal(ahead[0], rows):
            return self._ready(ahead[1])
        return self._ready(self._begun(rows))

    def begin(self, rows: Rows) -> None:
        """Begin to copy the images of these rows, which are asked for next."""
        self._ahead = rows, self._begun(rows)

    def _begun(self, rows: Rows) -> Tensor:
        if self._stream is None:
            return device.sent(self._images[rows], self._where)
        with torch.cuda.stream(self._stream):
            return device.sent(self._images[rows], self._where)

    def _ready(self, copied: Tensor) -> Tensor:
        """Return it after the device has been told to wait for the copy; the program does not wait."""
        if self._stream is not None:
            computing = torch.cuda.current_stream(self._where)
            computing.wait_stream(self._stream)
            copied.record_stream(computing)
        return copied


def fits(images: UInt8[np.ndarray, "n size size 3"], where: torch.device) -> bool:
    """Return whether all images of a split fit in the memory of a GPU that also trains."""
    return where.type == "cuda" and images.nbytes <= SHARE * torch.cuda.mem_get_info(where)[0]


def _copied(images: UInt8[np.ndarray, "n size size 3"], where: torch.device) -> UInt8[Tensor, "n size size 3"]:
    copied = torch.empty(images.shape, dtype=torch.uint8, device=where)
    many = max(1, _COPIED_AT_ONCE // max(1, images[:1].nbytes))
    for start in range(0, len(images), many):
        copied[start : start + many] = torch.from_numpy(np.array(images[start : start + many]))
    return copied
