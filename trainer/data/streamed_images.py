"""Images decoded on each access, because storing them decoded takes too much space."""

from __future__ import annotations

import time
import weakref
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final

import numpy as np
from jaxtyping import Int, UInt8

from trainer.analysis.progress import Progress
from trainer.data.errors import DataError
from trainer.data.workers import processes
from trainer.images import Decoded, Decoder, Preprocessing, read_pictures, scratch_file

_BATCH: Final = 256
_MIN_PER_HELPER: Final = 16
"""Images; for fewer no other decoder process is started."""


@dataclass(frozen=True)
class KeptImages:
    """The prepared cache of listed images."""

    pixels: UInt8[np.ndarray, "m size size 3"]  # Of those that could be read.
    at: Int[np.ndarray, " n"]  # Row in `pixels` of each listed image; negative: it could not be read.
    reasons: dict[int, str]  # Row of each image that could not be read -> why.
    digests: Sequence[bytes] = ()  # Hash of each one's pixels.

    def read(self, rows: Int[np.ndarray, " k"]) -> tuple[UInt8[np.ndarray, "k size size 3"], list[str]]:
        """Return the pixels of some rows, and why some are black."""
        pixels = self.pixels[np.maximum(self.at[rows], 0)]
        pixels[self.at[rows] < 0] = 0
        return pixels, [self.reasons.get(row, "") for row in rows.tolist()]


class StreamedImages:
    """A replacement for the array of the prepared cache: same shape, same pixels for the same index.

    Attributes:
        locations: Text of each image's location.
        size: Side of an image, in pixels.
        why: Why they are not kept, as a part of a sentence.
        digests: Hash of each one's pixels; empty where that is not known.
        preprocessing: Of the published model that they are for; None for towers of our own.
        listed: Whether none was decoded before: some may be unreadable.
        keep: Makes the cache of listed images while they are trained on; None where there is no room, or it exists.
        kept: That cache, from when on it is whole.
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
        listed: bool = False,
        keep: Callable[[Progress], KeptImages] | None = None,
    ) -> None:
        self.locations, self.size, self.why, self.digests = locations, size, why, digests
        self.preprocessing = preprocessing
        self.listed, self.keep = listed, keep
        self.kept: KeptImages | None = None
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
        pixels, reasons = self.read(np.atleast_1d(rows))
        for row, reason in zip(np.atleast_1d(rows), reasons, strict=True):
            if reason:
                raise DataError(
                    f"{self.locations[row]} can no longer be read: {reason} Put it back; or start a new run, "
                    "which leaves it out."
                )
        return pixels[0] if rows.ndim == 0 else pixels

    def __iter__(self) -> Iterator[UInt8[np.ndarray, "size size 3"]]:
        for start in range(0, len(self), _BATCH):
            yield from self[start : start + _BATCH]

    def __array__(self, dtype: np.dtype | None = None, copy: bool | None = None) -> np.ndarray:
        if copy is False:
            raise ValueError("streamed images are decoded: there is no array to share")
        return self[:].astype(dtype or self.dtype, copy=False)

    def read(self, rows: Int[np.ndarray, " k"]) -> tuple[UInt8[np.ndarray, "k size size 3"], list[str]]:
        """Return the pixels of some rows, and why some are black."""
        if self.kept is not None:
            return self.kept.read(rows)
        pixels, answers = self.decoded([self.locations[row] for row in rows])
        return pixels, [answer.reason for answer in answers]

    def decoded(self, locations: Sequence[str]) -> tuple[UInt8[np.ndarray, "n size size 3"], list[Decoded]]:
        """Return pixels and outcome of each image; unreadable ones are black."""
        image_bytes = self.size * self.size * 3
        count = max(1, min(processes(), len(locations) // _MIN_PER_HELPER))
        self._decoders += [Decoder() for _ in range(count - len(self._decoders))]
        bounds = np.linspace(0, len(locations), count + 1).astype(int)
        with scratch_file(len(locations) * image_bytes) as file, ThreadPoolExecutor(count) as threads:

            def decode(helper: int) -> list[Decoded]:
                first, last = int(bounds[helper]), int(bounds[helper + 1])
                answers = self._decoders[helper].decode(
                    locations[first:last],
                    size=self.size,
                    file=file,
                    offset=first * image_bytes,
                    preprocessing=self.preprocessing,
                )
                return list(answers)

            answers = [answer for part in threads.map(decode, range(count)) for answer in part]
            pixels = np.fromfile(file, np.uint8).reshape(len(locations), self.size, self.size, 3)
        return pixels, answers


def _close(decoders: list[Decoder]) -> None:
    for decoder in decoders:
        decoder.close()


def readable(images: UInt8[np.ndarray, "n size size 3"] | StreamedImages, rows: Int[np.ndarray, " k"]) -> np.ndarray:
    """Return those of some rows whose images can be read; listed ones are decoded to know it."""
    if not isinstance(images, StreamedImages) or not images.listed:
        return rows
    return rows[[not reason for reason in images.read(rows)[1]]]


def pictures_ahead(
    locations: Sequence[str], size: int, preprocessing: Preprocessing | None
) -> Iterator[tuple[slice, UInt8[np.ndarray, "k size size 3"], list[str], float]]:
    """Yield parts of some images while all cores decode the next one.

    Yields:
        Which images, their pixels, why some are black, and the seconds for which this part was waited for.
    """
    if not locations:
        return
    if len(locations) < 2 * _MIN_PER_HELPER:
        pixels, answers = read_pictures(locations, size, preprocessing)
        yield slice(0, len(locations)), pixels, [answer.reason for answer in answers], 0.0
        return
    images = StreamedImages(locations, size, "", preprocessing=preprocessing)
    rows = np.arange(len(locations))
    waiting = deque(slice(start, min(start + _BATCH, len(rows))) for start in range(0, len(rows), _BATCH))
    with ThreadPoolExecutor(1) as thread:
        begun: deque[tuple[slice, Future]] = deque()
        while waiting or begun:
            while waiting and len(begun) < 2:
                part = waiting.popleft()
                begun.append((part, thread.submit(images.read, rows[part])))
            part, read = begun.popleft()
            began = time.perf_counter()
            pixels, reasons = read.result()
            yield part, pixels, reasons, time.perf_counter() - began
