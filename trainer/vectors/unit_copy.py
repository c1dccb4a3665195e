"""Copy vectors as unit rows in one pass: each block is read, checked, brought to unit length, written and summed up.

A snapshot can be read without the files it was made of, so it holds a copy; nothing else is kept of the rows. Memory is
that of a block, and for half of the time the files' pages.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from jaxtyping import Bool, Float, Int
from threadpoolctl import threadpool_limits

from trainer.analysis.progress import Progress
from trainer.analysis.projection import ScatterSum
from trainer.analysis.unit_rows import checked_unit_rows
from trainer.store.snapshot_files import ArrayFile
from trainer.untrusted import confined
from trainer.vectors.found import Matrix, VectorError
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
@threadpool_limits.wrap(limits=1, user_api="blas")
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
    scatter, sound, summed = ScatterSum(width), np.zeros(len(rows), bool), list[Future[None]]()
    with ExitStack() as stack, ThreadPoolExecutor(1) as summing:
        files = {side: _File(stack, folder / f"{side}.npy", matrix, len(rows)) for side, matrix in sides.items()}
        for block in _blocks(len(rows), min(matrix.at_once for matrix in sides.values())):
            if progress is not None:
                progress(block.start / len(rows), "reading vectors")
            checked = {side: checked_unit_rows(matrix.take(rows[block])) for side, matrix in sides.items()}
            sound[block] = np.logical_and.reduce([is_sound for _, is_sound in checked.values()])
            for earlier in summed:
                earlier.result()
            units = [unit if sound[block].all() else unit[sound[block]] for unit, _ in checked.values()]
            # Half of the time goes into the sums, which the next block need not wait for.
            summed = [summing.submit(scatter.add, unit) for unit in units]
            for side, unit in zip(checked, units, strict=True):
                files[side].write(unit)
        for earlier in summed:
            earlier.result()
        if sound.sum() < 2:
            raise VectorError(
                "Fewer than two rows are vectors: the others are zero, or hold a value that is not a number."
            )
        return UnitCopy(sound, {side: file.finished() for side, file in files.items()}, scatter)


def _blocks(count: int, height: int) -> Iterator[slice]:
    for start in range(0, count, height):
        yield slice(start, min(start + height, count))


class _File:
    """A `.npy` that is written row after row; its header has room for their number, which is known in the end."""

    def __init__(self, stack: ExitStack, path: Path, matrix: Matrix, most: int) -> None:
        half = matrix.half and most * matrix.width >= HALF_FROM
        self._dtype, self._width, self.path = np.dtype(np.float16 if half else np.float32), matrix.width, path
        self._rows = 0
        self._stream = stack.enter_context(io.BufferedWriter(confined.open_file(path.parent, path.name, "wb")))  # type: ignore[type-var]
        self._begin = self._write_header(most)

    def write(self, unit: Float[np.ndarray, "b d"]) -> None:
        self._stream.write(np.ascontiguousarray(unit, self._dtype).data)
        self._rows += len(unit)

    def finished(self) -> ArrayFile:
        self._stream.seek(0)
        if self._write_header(self._rows) != self._begin:  # numpy leaves room for a larger first number
            raise AssertionError("the header has another length")
        self._stream.flush()
        return ArrayFile(self.path, (self._rows, self._width), self._dtype)

    def _write_header(self, rows: int) -> int:
        header: dict[str, Any] = {"descr": self._dtype.str, "fortran_order": False, "shape": (rows, self._width)}
        np.lib.format.write_array_header_1_0(self._stream, header)
        return self._stream.tell()
