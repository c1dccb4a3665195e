"""Batches of streamed images, decoded ahead of training by the worker processes of a DataLoader.

Which pairs a batch holds is decided here, and a worker only decodes: so a batch is a function of (seed, step) whatever
the number of workers, and a resumed run sees what it would have seen.
"""

from __future__ import annotations

import multiprocessing
import threading
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np
from jaxtyping import Int, UInt8
from torch.utils.data import DataLoader, Dataset, Sampler

from trainer.data.errors import DataError
from trainer.data.streamed_images import StreamedImages
from trainer.data.workers import processes
from trainer.errors import UserError
from trainer.images import Decoder, Preprocessing, scratch_file

Rows = Int[np.ndarray, " batch"]

_TRIES: Final = 3
"""How often workers are started for one batch."""
_FEW: Final = 4


class _Ended(Exception):
    """The cache is no longer needed by this session."""


class BatchStream:
    """The batches of a training, in order.

    Attributes:
        news: A sentence for each picture that could be read when the run began and cannot any more, and for each
            worker that was replaced, and what became of the cache; whoever tells them clears it.
    """

    def __init__(self, images: StreamedImages, upcoming: Callable[[int], Iterator[Rows]], *, workers: int = 0) -> None:
        """Create the stream without starting workers.

        Args:
            images: Of the training split.
            upcoming: Rows of every batch from a step on.
            workers: Processes that decode; 0 for as many as there are cores.
        """
        self.news: list[str] = []
        self._images, self._upcoming = images, upcoming
        self._workers = workers or processes()
        self._loading: Iterator[Any] | None = None
        self._asked: deque[Rows] = deque()
        self._step = -1
        self._held: tuple[Rows, UInt8[np.ndarray, "batch size size 3"]] | None = None
        self._broken: dict[int, str] = {}
        self._reads_kept = False
        self._ended = threading.Event()

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
            self._images.kept = self._images.keep(self._go_on)
            self.news.append("all images are prepared now, and read from the cache")
        except _Ended:
            pass
        except (UserError, OSError) as error:
            self.news.append(f"the images are decoded again in every epoch, because they cannot be kept: {error}")

    def _go_on(self, share: float, note: str) -> None:
        if self._ended.is_set():
            raise _Ended

    def batch(self, step: int) -> tuple[Rows, UInt8[np.ndarray, "batch size size 3"]]:
        """Return the rows of a step and their images; an unreadable row is replaced by the next readable one.

        Raises:
            DataError: Most of them cannot be read, or the workers were ended again and again.
        """
        if self._held is None or step != self._step:
            if self._loading is None or step != self._step + 1 or self._reads_kept != (self._images.kept is not None):
                self._begin(step)
            rows, pixels, reasons = self._next(step)
            self._held = self._mended(rows, pixels, reasons), pixels
            self._step = step
        return self._held

    def close(self) -> None:
        """Stop the workers."""
        self._loading, self._held = None, None
        self._asked.clear()

    def _begin(self, step: int) -> None:
        self.close()
        self._reads_kept = self._images.kept is not None
        if self._reads_kept:
            self._loading = self._from_cache(step)
            return
        # The workers come from a small process without threads: a fork of this one may hang, and would hold its locks.
        method = "forkserver" if "forkserver" in multiprocessing.get_all_start_methods() else "spawn"
        context = multiprocessing.get_context(method)
        if method == "forkserver":
            context.set_forkserver_preload(["trainer.data.batch_stream"])
        self._loading = iter(
            DataLoader(
                _Decoding(self._images.size, self._images.preprocessing),
                batch_size=None,
                sampler=_Ahead(self._places_from(step)),
                num_workers=self._workers,
                collate_fn=_as_it_is,
                multiprocessing_context=context,
            )
        )

    def _from_cache(self, step: int) -> Iterator[tuple[UInt8[np.ndarray, "batch size size 3"], list[str]]]:
        for rows in self._upcoming(step):
            self._asked.append(rows)
            yield self._images.read(rows)

    def _places_from(self, step: int) -> Iterator[list[str]]:
        for rows in self._upcoming(step):
            self._asked.append(rows)
            yield [self._images.locations[row] for row in rows]

    def _next(self, step: int) -> tuple[Rows, UInt8[np.ndarray, "batch size size 3"], list[str]]:
        for tried in range(1, _TRIES + 1):
            try:
                pixels, reasons = next(self._loading)
            except RuntimeError as error:  # how a DataLoader says that a worker has died
                if tried < _TRIES:
                    self.news.append(f"a decoding process was killed ({error}); another one continues")
                    self._begin(step)
                continue
            if isinstance(reasons, str):
                raise DataError(reasons)
            return self._asked.popleft(), pixels, reasons
        self.close()
        raise DataError(
            f"The decoding processes were killed {_TRIES} times in a row, most likely by the "
            f"system for lack of memory: there are {self._workers}. Set workers to fewer and resume the run."
        )

    def _mended(self, rows: Rows, pixels: UInt8[np.ndarray, "batch size size 3"], reasons: list[str]) -> Rows:
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


class _Ahead(Sampler):
    """The batches requested from the workers, slightly ahead of training."""

    def __init__(self, batches: Iterator[list[str]]) -> None:
        self._places = batches

    def __iter__(self) -> Iterator[list[str]]:
        return self._places


class _Decoding(Dataset):
    """A worker: a helper process with resource limits that decodes batches of images."""

    def __init__(self, size: int, preprocessing: Preprocessing | None) -> None:
        self._size, self._preprocessing = size, preprocessing
        self._decoder: Decoder | None = None

    def __getitem__(self, locations: list[str]) -> tuple[UInt8[np.ndarray, "n size size 3"] | None, list[str] | str]:
        """Return pixels and why some are black, or a message if nothing can be decoded."""
        self._decoder = self._decoder or Decoder()
        try:
            with scratch_file(len(locations) * self._size * self._size * 3) as file:
                answers = list(
                    self._decoder.decode(locations, size=self._size, file=file, preprocessing=self._preprocessing)
                )
                pixels = np.fromfile(file, np.uint8).reshape(len(locations), self._size, self._size, 3)
        except (UserError, OSError) as error:
            return None, f"Pictures cannot be decoded: {error}"
        return pixels, [answer.reason for answer in answers]


def _as_it_is(decoded: Any) -> Any:
    """Return arrays unchanged, because tensors would use shared memory, which is scarce in containers."""
    return decoded
