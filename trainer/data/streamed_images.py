"""Images decoded on each access, because storing them decoded takes too much space."""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final

import numpy as np
from jaxtyping import Int, UInt8

from trainer.data.errors import DataError
from trainer.data.workers import processes
from trainer.images import Decoded, Decoder, Preprocessing, scratch_file

_AT_ONCE: Final = 256
_WORTH_A_HELPER: Final = 16
"""Images; for fewer no other helper is started."""


class StreamedImages:
    """A replacement for the array of the prepared cache: same shape, same pixels for the same index.

    Attributes:
        places: Text of each image's location.
        size: Side of an image, in pixels.
        why: Why they are not kept, as a part of a sentence.
        digests: Hash of each one's pixels; empty where that is not known.
        preprocessing: Of the published model that they are for; None for towers of our own.
        dtype: Of the pixels.
    """

    dtype = np.dtype(np.uint8)

    def __init__(
        self,
        locations: Sequence[str],
        size: int,
        why: str,
        *,
        digests: Sequence[bytes] = (),
        preprocessing: Preprocessing | None = None,
    ) -> None:
        self.locations, self.size, self.why, self.digests = locations, size, why, digests
        self.preprocessing = preprocessing
        self._decoders: list[Decoder] = []
        weakref.finalize(self, _close, self._decoders)

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """The shape, like an array's."""
        return len(self.locations), self.size, self.size, 3

    @property
    def ndim(self) -> int:
        """The number of dimensions, like an array's."""
        return 4

    def __len__(self) -> int:
        return len(self.locations)

    def __getitem__(self, key: int | slice | Int[np.ndarray, " k"]) -> np.ndarray:
        """Return the images of these rows, decoded by as many helper processes as there are cores.

        Raises:
            DataError: One of them can no longer be read.
        """
        rows = np.arange(len(self))[key]
        pixels, answers = self.decoded([self.locations[row] for row in np.atleast_1d(rows)])
        for row, answer in zip(np.atleast_1d(rows), answers, strict=True):
            if answer.reason:
                raise DataError(
                    f"{self.locations[row]} can no longer be read: {answer.reason} Put it back; or start a new run, "
                    "which leaves it out."
                )
        return pixels[0] if rows.ndim == 0 else pixels

    def __iter__(self) -> Iterator[UInt8[np.ndarray, "size size 3"]]:
        for start in range(0, len(self), _AT_ONCE):
            yield from self[start : start + _AT_ONCE]

    def __array__(self, dtype: np.dtype | None = None, copy: bool | None = None) -> np.ndarray:
        if copy is False:
            raise ValueError("streamed images are decoded: there is no array to share")
        return self[:].astype(dtype or self.dtype, copy=False)

    def decoded(self, locations: Sequence[str]) -> tuple[UInt8[np.ndarray, "n size size 3"], list[Decoded]]:
        """Return pixels and outcome of each image; unreadable ones are black."""
        room = self.size * self.size * 3
        count = max(1, min(processes(), len(locations) // _WORTH_A_HELPER))
        self._decoders += [Decoder() for _ in range(count - len(self._decoders))]
        bounds = np.linspace(0, len(locations), count + 1).astype(int)
        with scratch_file(len(locations) * room) as file, ThreadPoolExecutor(count) as threads:

            def decode(share: int) -> list[Decoded]:
                first, last = int(bounds[share]), int(bounds[share + 1])
                answers = self._decoders[share].decode(
                    locations[first:last],
                    size=self.size,
                    file=file,
                    offset=first * room,
                    preprocessing=self.preprocessing,
                )
                return list(answers)

            answers = [answer for part in threads.map(decode, range(count)) for answer in part]
            pixels = np.fromfile(file, np.uint8).reshape(len(locations), self.size, self.size, 3)
        return pixels, answers


def _close(decoders: list[Decoder]) -> None:
    for decoder in decoders:
        decoder.close()
