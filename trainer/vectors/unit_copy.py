"""Copy vectors as unit rows in one pass: each block is read, checked, brought to unit length, written and summed up.

A snapshot can be read without the files it was made of, so it holds a copy; nothing else is kept of the rows. Memory is
that of a block, and for half of the time the files' pages.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from jaxtyping import Bool, Float, Int

from trainer.analysis.half_precision import narrowed
from trainer.analysis.progress import Progress
from trainer.analysis.projection import ScatterSum
from trainer.analysis.unit_rows import checked_unit_rows
from trainer.analysis.worker_threads import single_blas_thread
from trainer.store.snapshot_files import ArrayFile
from trainer.untrusted import confined
from trainer.vectors.matrices import AT_ONCE, Matrix, VectorError
from trainer.vectors.step_files import Side

HALF_FROM: Final = 2**27
"""Numbers of a side from which on the copy of one in half precision is in half precision, too: 262,144 x 512."""


@dataclass(frozen=True)
class UnitCopy:
    """The rows that have a direction on both sides, on the disk.

    Attributes:
        sound: Which of the chosen rows these are.
        sides: Their files.
        scatter: Mean and scatter of the unit rows of all sides.
    """

    sound: Bool[np.ndarray, " k"]
    sides: dict[Side, ArrayFile]
    scatter: ScatterSum


# Its own threads wait for each other by spinning: beside other work the sums took half of the time of opening.
@single_blas_thread
def copy_unit_rows(
    sides: Mapping[Side, Matrix], rows: Int[np.ndarray, " k"], folder: Path, progress: Progress | None = None
) -> UnitCopy:
    """Write the unit rows of each side to a `.npy` in `folder`, without the rows that are no vectors on some side.

    Args:
        sides: One or two matrices of equal width.
        rows: Which of their rows, ascending.
        folder: On the disk of the snapshot; of this user alone.
        progress: Told after each block; raises to cancel.

    Raises:
        VectorError: Fewer than two rows are left.
    """
    width = next(iter(sides.values())).width
    scatter, sound, waited = ScatterSum(width), np.zeros(len(rows), bool), list[Future[None]]()
    with ExitStack() as stack, ThreadPoolExecutor(2) as beside:
        files = {side: _File(stack, folder / f"{side}.npy", matrix, len(rows)) for side, matrix in sides.items()}
        height = min(len(rows), AT_ONCE)
        # The sums read one while the next rows fill the other: the pages of fresh ones took as long as the sums.
        buffers = [[np.empty((height, width), np.float32) for _ in sides] for _ in range(1 + (height < len(rows)))]
        taken = zip(*(matrix.blocks(rows, height) for matrix in sides.values()), strict=True)
        for number, (block, blocks) in enumerate(zip(_blocks(len(rows), height), taken, strict=True)):
            if progress is not None:
                progress(block.start / len(rows), "reading vectors")
            checked = {
                side: checked_unit_rows(vectors, buffer[: block.stop - block.start])
                for side, vectors, buffer in zip(sides, blocks, buffers[number % len(buffers)], strict=True)
            }
            sound[block] = np.logical_and.reduce([is_sound for _, is_sound in checked.values()])
            for earlier in waited:
                earlier.result()
            units = [unit if sound[block].all() else unit[sound[block]] for unit, _ in checked.values()]
            # Half of the time goes into the sums, which the next block need not wait for; nor for the digests.
            waited = [beside.submit(_add_all, scatter, units)]
            for side, unit in zip(checked, units, strict=True):
                waited.append(beside.submit(files[side].digest.update, files[side].write(unit).data))
        for earlier in waited:
            earlier.result()
        if sound.sum() < 2:
            raise VectorError(
                "Fewer than two rows are vectors: the others are zero, or hold a value that is not a number."
            )
        return UnitCopy(sound, {side: file.finished() for side, file in files.items()}, scatter)


def _add_all(scatter: ScatterSum, blocks: list[np.ndarray]) -> None:
    for block in blocks:
        scatter.add(block)


def _blocks(count: int, height: int) -> Iterator[slice]:
    for start in range(0, count, height):
        yield slice(start, min(start + height, count))


class _File:
    """A `.npy` that is written row after row; its header has room for their number, which is known in the end.

    Attributes:
        digest: Gets what was written after the header.
    """

    def __init__(self, stack: ExitStack, path: Path, matrix: Matrix, most: int) -> None:
        half = matrix.half and most * matrix.width >= HALF_FROM
        self._dtype, self._width, self.path = np.dtype(np.float16 if half else np.float32), matrix.width, path
        self._rows, self._most, self.digest = 0, most, hashlib.sha256(_header(most, self._width, self._dtype))
        self._stream = stack.enter_context(io.BufferedWriter(confined.open_file(path.parent, path.name, "wb")))  # type: ignore[type-var]
        self._half = np.empty((0, self._width), np.float16)
        self._stream.write(_header(most, self._width, self._dtype))

    def write(self, unit: Float[np.ndarray, "b d"]) -> np.ndarray:
        """Write some more rows; return them as they are in the file."""
        rows = np.ascontiguousarray(unit)
        if self._dtype == np.float16:
            self._half = self._half if len(self._half) >= len(rows) else np.empty(rows.shape, np.float16)
            rows = narrowed(rows, self._half[: len(rows)])
        self._stream.write(rows.data)
        self._rows += len(unit)
        return rows

    def finished(self) -> ArrayFile:
        first, header = (_header(rows, self._width, self._dtype) for rows in (self._most, self._rows))
        if len(header) != len(first):  # numpy leaves room for a larger first number
            raise AssertionError("the header has another length")
        self._stream.seek(0)
        self._stream.write(header)
        self._stream.flush()
        sha256 = self.digest.hexdigest() if header == first else ""
        return ArrayFile(self.path, (self._rows, self._width), self._dtype, sha256)


def _header(rows: int, width: int, dtype: np.dtype) -> bytes:
    header: dict[str, Any] = {"descr": dtype.str, "fortran_order": False, "shape": (rows, width)}
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(stream, header)
    return stream.getvalue()
