"""Batches of streamed images, decoded ahead of training by helper processes.

Which pairs a batch holds is decided here, and a helper only decodes: so a batch is a function of (seed, step) whatever
the number of helpers, and a resumed run sees what it would have seen.
"""

from __future__ import annotations

import itertools
import math
import queue
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Final

import numpy as np
from jaxtyping import Int, UInt8

from trainer.data.errors import DataError
from trainer.data.streamed_images import StreamedImages
from trainer.data.workers import processes
from trainer.errors import UserError
from trainer.images import Decoder, scratch_file
from trainer.store.run_log import HEARTBEAT_S

Rows = Int[np.ndarray, " batch"]
Pixels = UInt8[np.ndarray, "batch size size 3"]

_AHEAD: Final = 2
"""Batches that are asked of each helper before they are needed."""
_FEW: Final = 4


class _Ended(Exception):
    """The cache, or a batch, is no longer needed by this session."""


class BatchStream:
    """The batches of a training, in order.

    Attributes:
        news: A sentence for each picture that could be read when the run began and cannot any more, and what became of
            the cache; whoever tells them clears it.
        preparing: What is done of that cache, while it is made, as a part of a sentence.
    """

    def __init__(self, images: StreamedImages, upcoming: Callable[[int], Iterator[Rows]], *, workers: int = 0) -> None:
        """Create the stream without starting helpers.

        Args:
            images: Of the training split.
            upcoming: Rows of every batch from a step on.
            workers: Processes that decode; 0 for as many as there are cores.
        """
        self.news: list[str] = []
        self.preparing = ""
        self._images, self._upcoming = images, upcoming
        self._workers = workers or processes()
        self._threads: ThreadPoolExecutor | None = None
        self._decoders: queue.SimpleQueue[Decoder] = queue.SimpleQueue()
        self._coming: Iterator[Rows] = iter(())
        self._asked: deque[tuple[Rows, Future[tuple[Pixels, list[str]]]]] = deque()
        self._step = -1
        self._held: tuple[Rows, Pixels] | None = None
        self._broken: dict[int, str] = {}
        self._counted_at = -math.inf
        self._reads_kept = False
        self._closed, self._ended = threading.Event(), threading.Event()
        weakref.finalize(self, _close, self._decoders)

    def keep(self) -> None:
        """Begin to make the cache of listed images, by half of the cores, from which they are read once it is whole."""
        if self._images.keep is not None and self._images.kept is None:
            threading.Thread(target=self._keep, daemon=True, name="keep images").start()

    def end(self) -> None:
        """Stop the workers, and the making of the cache, which the next session continues."""
        self._ended.set()
        self.close()

    def _keep(self) -> None:
        assert self._images.keep is not None
        try:
            self._images.kept = cache = self._images.keep(self._go_on)
            lost = f"; {len(cache.reasons):,} of them cannot be read" if cache.reasons else ""
            self.news.append(f"all images are prepared now, and read from the cache{lost}")
        except _Ended:
            pass
        except (UserError, OSError) as error:
            self.news.append(f"the images are decoded again in every epoch, because they cannot be kept: {error}")
        self.preparing = ""

    def _go_on(self, share: float, note: str) -> None:
        if self._ended.is_set():
            raise _Ended
        # Each change of it is written to the run's row.
        if time.monotonic() - self._counted_at >= HEARTBEAT_S:
            self._counted_at = time.monotonic()
            self.preparing = f"{note[:1].lower()}{note[1:]}"

    @property
    def unreadable(self) -> dict[int, str]:
        """Row of each picture that is known not to be readable -> why."""
        return self._broken if self._images.kept is None else self._images.kept.reasons

    def batch(self, step: int) -> tuple[Rows, Pixels]:
        """Return the rows of a step and their images; an unreadable row is replaced by the next readable one.

        Raises:
            DataError: Most of them cannot be read, or nothing can be decoded.
        """
        if self._held is None or step != self._step:
            if self._held is None or step != self._step + 1 or self._reads_kept != (self._images.kept is not None):
                self._begin(step)
            rows, pixels, reasons = self._next()
            self._held = self._mended(rows, pixels, reasons), pixels
            self._step = step
        return self._held

    def close(self) -> None:
        """Stop the helpers."""
        self._held = None
        self._asked.clear()
        if self._threads is not None:
            self._closed.set()
            self._threads.shutdown(cancel_futures=True)
            self._threads = None
        _close(self._decoders)

    def _begin(self, step: int) -> None:
        self.close()
        self._coming = self._upcoming(step)
        self._reads_kept = self._images.kept is not None
        if not self._reads_kept:
            self._closed.clear()
            self._threads = ThreadPoolExecutor(self._workers, thread_name_prefix="decode batches")
            for _ in range(self._workers):
                self._decoders.put(Decoder())

    def _next(self) -> tuple[Rows, Pixels, list[str]]:
        if self._threads is None:
            rows = next(self._coming)
            return rows, *self._images.read(rows)
        for rows in itertools.islice(self._coming, _AHEAD * self._workers - len(self._asked)):
            self._asked.append((rows, self._threads.submit(self._decoded, rows)))
        rows, decoded = self._asked.popleft()
        try:
            return rows, *decoded.result()
        except (UserError, OSError) as error:
            raise DataError(f"Pictures cannot be decoded: {error}") from error

    def _decoded(self, rows: Rows) -> tuple[Pixels, list[str]]:
        """Return the pixels of a batch, and why some are black; by one helper."""
        images, reasons, decoder = self._images, [], self._decoders.get()
        try:
            with scratch_file(len(rows) * images.size**2 * 3) as file:
                locations = [images.locations[row] for row in rows]
                answers = decoder.decode(locations, size=images.size, file=file, preprocessing=images.preprocessing)
                for answer in answers:
                    if self._closed.is_set():
                        answers.close()
                        raise _Ended
                    reasons.append(answer.reason)
                return np.fromfile(file, np.uint8).reshape(len(rows), images.size, images.size, 3), reasons
        finally:
            self._decoders.put(decoder)

    def _mended(self, rows: Rows, pixels: Pixels, reasons: list[str]) -> Rows:
        """Return the rows with unreadable ones replaced, and update their pixels."""
        broken = [position for position, reason in enumerate(reasons) if reason]
        if not broken:
            return rows
        if len(broken) > max(_FEW, len(rows) // 2):
            raise DataError(
                f"{len(broken):,} of the {len(rows):,} images of a batch can no longer be read; the first: "
                f"{self._images.locations[rows[broken[0]]]}: {reasons[broken[0]]} Put them back and resume the run."
            )
        rows = rows.copy()
        for position in broken:
            self._lose(int(rows[position]), reasons[position])
        for position in broken:
            rows[position], pixels[position] = self._instead_of(int(rows[position]), set(rows.tolist()))
        return rows

    def _instead_of(self, row: int, taken: set[int]) -> tuple[int, UInt8[np.ndarray, "size size 3"]]:
        """Return the first readable row after `row` that is not in the batch; deterministic."""
        n = len(self._images)
        for other in ((row + step) % n for step in range(1, n)):
            if other in taken or other in self._broken:
                continue
            pixels, (reason,) = self._images.read(np.array([other]))
            if not reason:
                return other, pixels[0]
            self._lose(other, reason)
        raise DataError("No image outside the batch can be read any more. Put them back and resume the run.")

    def _lose(self, row: int, reason: str) -> None:
        if row not in self._broken:
            self._broken[row] = reason
            self.news.append(f"left out from now on: {self._images.locations[row]}: {reason}")


def _close(decoders: queue.SimpleQueue[Decoder]) -> None:
    while not decoders.empty():
        decoders.get().close()
