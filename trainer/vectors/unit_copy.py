"""Copy vectors as unit rows in one pass: each block is read, checked, brought to unit length, written and summed up.

A snapshot can be read without the files it was made of, so it holds a copy; nothing else is kept of the rows. Memory is
that of a block, and for half of the time the files' pages.
"""

from __future__ import annotations

import hashlib
import io
import os
from collections import deque
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from jaxtyping import Bool, Float, Int

from trainer.analysis.half_precision import stored_unit_rows
from trainer.analysis.progress import Progress, silent
from trainer.analysis.projection import ScatterSum
from trainer.analysis.tiles import row_blocks
from trainer.analysis.unit_rows import checked_unit_rows
from trainer.analysis.worker_threads import single_blas_thread
from trainer.store.snapshot_files import ArrayFile
from trainer.untrusted import confined
from trainer.vectors.matrices import AT_ONCE, Matrix, VectorError
from trainer.vectors.step_files import Side

HALF_FROM: Final = 2**27
"""Numbers of a side from which on the copy of half precision is in half precision, too: 262,144 x 512."""

AHEAD: Final = 2
"""Blocks that each maker has or waits for; as many again of all of them together are written meanwhile."""
SYNCED_AFTER: Final = 2**26
"""Bytes of a file after which the disk is told to store them: at the end alone it takes a quarter of a second a GB."""


@dataclass(frozen=True)
class UnitCopy:
    """The rows that have a direction on both sides, on the disk."""

    sound: Bool[np.ndarray, " k"]  # Which of the chosen rows these are.
    sides: dict[Side, ArrayFile]  # Their files.
    scatter: ScatterSum  # Mean and scatter of the unit rows of all sides.


# Its own threads wait for each other by spinning: beside other work the sums took half of the time of opening.
@single_blas_thread
def copy_unit_rows(
    sides: Mapping[Side, Matrix], rows: Int[np.ndarray, " k"], folder: Path, progress: Progress = silent
) -> UnitCopy:
    """Write the unit rows of each side to a `.npy` in `folder`, without the rows that are no vectors on some side.

    Two threads check and sum up every second block each, whatever the processors: the sums are the same each time. A
    thread for each file writes and takes the digest, which is a third of the work; this one reads.

    Args:
        sides: One or two matrices of equal width.
        rows: Which of their rows, ascending.
        folder: On the disk of the snapshot; of this user alone.

    Raises:
        VectorError: Fewer than two rows are left.
    """
    sound = np.zeros(len(rows), bool)
    height = min(len(rows), AT_ONCE)
    makers = [_BlockMaker(sides, height, len(rows)) for _ in range(1 + (height < len(rows)))]
    with ExitStack() as stack:
        # One for each: the blocks of a maker come one after the other.
        threads = [stack.enter_context(ThreadPoolExecutor(1)) for _ in makers]
        width, dtype = makers[0].width, makers[0].dtype
        files = {side: _File(stack, folder / f"{side}.npy", width, dtype, len(rows)) for side in sides}
        disk = stack.enter_context(ThreadPoolExecutor(1))  # Waits before the files are closed.
        writers = [stack.enter_context(ThreadPoolExecutor(1)) for _ in files]
        waited = deque[tuple[slice, Future[tuple[np.ndarray, list[np.ndarray]]]]]()
        writing = deque[list[Future[None]]]()

        def write() -> None:
            block, made = waited.popleft()
            sound[block], units = made.result()
            parts = zip(writers, files.values(), units, strict=True)
            writing.append([writer.submit(file.write, unit, disk) for writer, file, unit in parts])
            if len(writing) > len(makers):  # their buffers are used next
                wait()

        def wait() -> None:
            for part in writing.popleft():
                part.result()

        taken = zip(*(matrix.blocks(rows, height) for matrix in sides.values()), strict=True)
        for number, (block, blocks) in enumerate(zip(row_blocks(len(rows), 1, cells=height), taken, strict=True)):
            progress(block.start / len(rows), "reading vectors")
            if len(waited) == AHEAD * len(makers):
                write()
            turn = number % len(makers)
            waited.append((block, threads[turn].submit(makers[turn].made, blocks)))
        while waited:
            write()
        while writing:
            wait()
        if sound.sum() < 2:
            raise VectorError(
                "Fewer than two rows are vectors: the others are zero, or hold a value that is not a number."
            )
        scatter = makers[0].scatter
        for other in makers[1:]:
            scatter.join(other.scatter)
        return UnitCopy(sound, {side: file.finished() for side, file in files.items()}, scatter)


class _BlockMaker:
    """Checks blocks, brings them to unit length and sums them up, in buffers of its own.

    Fresh pages took as long as the sums.
    """

    def __init__(self, sides: Mapping[Side, Matrix], height: int, most: int) -> None:
        self.width = next(iter(sides.values())).width
        self.scatter = ScatterSum(self.width)
        half = all(matrix.half for matrix in sides.values()) and most * self.width >= HALF_FROM
        self.dtype = np.dtype(np.float16 if half else np.float32)
        self._rows = np.empty((height * len(sides), self.width), np.float32)
        self._stored = [[np.empty((height, self.width), self.dtype) for _ in sides] for _ in range(AHEAD + 1)]

    def made(self, blocks: Sequence[Float[np.ndarray, "b d"]]) -> tuple[Bool[np.ndarray, " b"], list[np.ndarray]]:
        """Return which rows are vectors on all sides, and these as they are stored: valid for `AHEAD` more calls."""
        n, origin = len(blocks[0]), self.scatter.origin
        # The rows of all sides lie one after the other: they are summed up at once.
        units = [self._rows[n * number :][:n] for number in range(len(blocks))]
        self._stored.append(self._stored.pop(0))
        made = [stored[:n] for stored in self._stored[-1]]
        if self.dtype == np.float16:
            zero = np.zeros(self.width, np.float32)
            start = zero if origin is None else origin
            checked = [stored_unit_rows(rows, start, *out) for rows, *out in zip(blocks, made, units, strict=True)]
        else:
            checked = [checked_unit_rows(rows, unit)[1] for rows, unit in zip(blocks, units, strict=True)]
            for stored, unit in zip(made, units, strict=True):
                stored[...] = unit
        sound, summed = np.logical_and.reduce(checked), self._rows[: n * len(blocks)]
        if not sound.all():
            made, summed = [stored[sound] for stored in made], np.concatenate([unit[sound] for unit in units])
        if self.dtype == np.float16 and origin is not None:
            self.scatter.add_centered(summed)
        else:
            self.scatter.add(summed, spare=True)
        return sound, made


class _File:
    """A `.npy` that is written row after row; its header has room for their number, which is known in the end."""

    def __init__(self, stack: ExitStack, path: Path, width: int, dtype: np.dtype, most: int) -> None:
        self._dtype, self._width, self.path = dtype, width, path
        self._rows, self._header = 0, _header(most, width, dtype)
        self._syncs, self._unsynced = list[Future[None]](), 0
        self._digest = hashlib.sha256(self._header)
        self._stream = stack.enter_context(io.BufferedWriter(confined.open_file(path.parent, path.name, "wb")))  # type: ignore[type-var]
        self._stream.write(self._header)

    def write(self, rows: np.ndarray, disk: Executor) -> None:
        """Write some more rows; `disk` stores them meanwhile."""
        self._digest.update(rows.data)
        self._stream.write(rows.data)
        self._rows += len(rows)
        self._unsynced += rows.nbytes
        if self._unsynced >= SYNCED_AFTER:
            self._syncs.append(disk.submit(os.fsync, self._stream.fileno()))
            self._unsynced = 0

    def finished(self) -> ArrayFile:
        for sync in self._syncs:
            sync.result()
        header = _header(self._rows, self._width, self._dtype)
        assert len(header) == len(self._header), "numpy leaves room for a larger first number"
        self._stream.seek(0)
        self._stream.write(header)
        self._stream.close()
        sha256 = self._digest.hexdigest() if header == self._header else ""
        return ArrayFile(self.path, (self._rows, self._width), self._dtype, sha256)


def _header(rows: int, width: int, dtype: np.dtype) -> bytes:
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(stream, {"descr": dtype.str, "fortran_order": False, "shape": (rows, width)})
    return stream.getvalue()
