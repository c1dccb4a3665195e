"""The only code that opens files of arrays: after checking their headers against their sizes.

These formats cannot unfold: a `.npy` is its numbers, byte for byte, so a header that agrees with the size of the file
bounds what is ever held. They are read in this process, and mapped where they may be large; a helper (see `read` of
this package) would only copy them. A `.npz` may be compressed, and has a limit on what it unfolds to.
"""

from __future__ import annotations

import io
import tempfile
import zipfile
from pathlib import Path
from typing import BinaryIO, Final

import numpy as np

from trainer.untrusted import files as untrusted_files
from trainer.untrusted.bounded import Unreadable
from trainer.untrusted.bounded.headers import NUMBERS, check_npy, check_safetensors, npy_header

_MOST_UNFOLDED: Final = 256 << 20
"""Bytes of all arrays of a `.npz`, beyond its own size."""
_MOST_MEMBERS: Final = 1_000
_WORDS: Final = "U"
_HEAD: Final = 256
_GAP: Final = 4
"""Rows between two that are wanted up to which they are read, too, rather than looked for."""
_OBJECTS: Final = b"'descr': '|O'"
"""How the header of an array of Python's objects begins, which is a pickle."""
_TENSOR_TYPES: Final = {
    **{"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2"},
    **{"I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "i1", "U8": "u1", "BOOL": "?"},
}

LED: Final = {".fvecs": "<f4", ".ivecs": "<i4", ".bvecs": "u1"}
"""Files of TEXMEX, each of whose rows begins with its width -> type of their numbers."""
COUNTED: Final = {
    **{".fbin": "<f4", ".hbin": "<f2", ".fp16bin": "<f2", ".f16bin": "<f2"},
    **{".u8bin": "u1", ".i8bin": "i1", ".ibin": "<i4"},
}
"""Files of big-ann-benchmarks, DiskANN and cuVS, which begin with rows and width -> type of their numbers."""
MOST_WIDTH: Final = 65_536
"""Numbers of a vector."""


def load_npy(path: Path | str, kinds: str = NUMBERS) -> np.ndarray:
    """Return the array in a `.npy`.

    Args:
        kinds: As for `check_npy`.

    Raises:
        Unreadable: As `check_npy`.
        OSError: It is missing, or no ordinary file.
    """
    check_npy(Path(path), kinds)
    return np.load(path, allow_pickle=False)


def map_npy(path: Path, kinds: str = NUMBERS, *, sparse: bool = False) -> np.memmap:
    """Return the array in a `.npy` as a read-only map; otherwise like `load_npy`, `sparse` as for `check_npy`."""
    check_npy(path, kinds, sparse=sparse)
    return np.load(path, mmap_mode="r", allow_pickle=False)


def rows_of(array: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return ascending rows of a whole array; those of a mapped one are read: a map of a file that shrinks is fatal.

    Raises:
        Unreadable: The file has become shorter.
        OSError: It is gone.
    """
    chosen = np.split(rows, 1 + np.flatnonzero(np.diff(rows) > _GAP)) if len(rows) else []
    if not isinstance(array, np.memmap):
        parts = [array[some[0] : some[-1] + 1] for some in chosen]
    else:
        assert isinstance(array.filename, Path)
        with untrusted_files.open_ordinary(array.filename) as file:
            parts = [_read_span(file, array, int(some[0]), int(some[-1]) + 1) for some in chosen]
    taken = [part if len(part) == len(some) else part[some - some[0]] for some, part in zip(chosen, parts)]
    return taken[0] if len(taken) == 1 else np.concatenate([array[:0], *taken])


def _read_span(file: BinaryIO, array: np.memmap, start: int, stop: int) -> np.ndarray:
    rows = np.empty((stop - start, *array.shape[1:]), array.dtype, "C" if array.flags.c_contiguous else "F")
    across = len(array) * array.itemsize
    lines = [(rows, start * array.strides[0])]
    if not array.flags.c_contiguous:
        lines = [(column, number * across + start * array.itemsize) for number, column in enumerate(rows.T)]
    for line, offset in lines:
        file.seek(array.offset + offset)
        if file.readinto(line.view(np.uint8).data) < line.nbytes:  # type: ignore[attr-defined]
            raise Unreadable(f"{Path(file.name).name} has become shorter since it was opened. Write it again.")
    return rows


def temporary_array(shape: tuple[int, ...], kind: type[np.floating]) -> np.memmap:
    """Return a writable array in a temporary file without a name, which is gone with its last use."""
    with tempfile.TemporaryFile() as file:
        return np.memmap(file, kind, "w+", shape=shape)


def map_safetensors(path: Path, *, most: int) -> dict[str, np.ndarray]:
    """Return the tensors in a `.safetensors` as read-only memory maps, by name; those of bfloat16 as uint16.

    Args:
        most: Tensors that it may have.

    Raises:
        Unreadable: As `check_safetensors`, or it has numbers of a type that numpy lacks.
        OSError: It is missing, or no ordinary file.
    """
    tensors = {}
    for name, span in check_safetensors(path, most=most, sparse=True).items():
        if span.dtype not in _TENSOR_TYPES:
            raise Unreadable(f"{path.name} has a tensor of type {span.dtype}, which is not read as vectors.")
        kind = np.dtype(_TENSOR_TYPES[span.dtype])
        # An empty file cannot be mapped.
        empty = 0 in span.shape
        tensors[name] = np.zeros(span.shape, kind) if empty else np.memmap(path, kind, "r", span.offset, span.shape)
    return tensors


def map_led_rows(path: Path) -> np.ndarray:
    """Return the `width` and `numbers` of each row of a file of TEXMEX as a read-only map; one width is checked.

    Raises:
        Unreadable: The size of the file does not fit the first row.
        OSError: It is missing, or no ordinary file.
    """
    (width,), size = _first_numbers(path, "<i4", 1)
    kind = np.dtype([("width", "<i4"), ("numbers", LED[path.suffix.lower()], (_width(path, width),))])
    if size % kind.itemsize:
        raise Unreadable(
            f"{path.name} has {size:,} bytes: {size // kind.itemsize:,} rows of {width:,} numbers, and "
            f"{size % kind.itemsize:,} bytes more. It was cut, or its rows are of different widths: copy it again."
        )
    return np.memmap(path, kind, "r")


def map_counted_rows(path: Path) -> np.ndarray:
    """Return the rows of a file that begins with their number and width as a read-only map; raises as the above."""
    (rows, width), size = _first_numbers(path, "<u4", 2)
    kind = np.dtype(COUNTED[path.suffix.lower()])
    claimed = 8 + rows * _width(path, width) * kind.itemsize
    if size != claimed:
        raise Unreadable(
            f"{path.name} has {size:,} bytes and claims {rows:,} rows of {width:,} numbers, which are {claimed:,}. "
            f"{'It was cut: copy it again' if size < claimed else 'Write it again'}."
        )
    return np.memmap(path, kind, "r", 8, (rows, width)) if rows else np.zeros((0, width), kind)


def _first_numbers(path: Path, kind: str, count: int) -> tuple[list[int], int]:
    """Return the whole numbers that a file begins with, and its size in bytes."""
    with untrusted_files.open_ordinary(path) as file:
        size, _ = file.seek(0, io.SEEK_END), file.seek(0)
        if size < 4 * count:
            raise Unreadable(f"{path.name} has {size:,} bytes, which hold no row. Copy it again.")
        return np.frombuffer(file.read(4 * count), kind).tolist(), size


def _width(path: Path, width: int) -> int:
    if not 1 <= width <= MOST_WIDTH:
        raise Unreadable(f"{path.name} claims rows of {width:,} numbers, where 1 to {MOST_WIDTH:,} are read.")
    return width


def load_npz(path: Path, *, most: int = _MOST_UNFOLDED, others: list[str] | None = None) -> dict[str, np.ndarray]:
    """Return the arrays in a `.npz`, by name.

    Args:
        most: Bytes that all arrays may have beyond the size of the file.
        others: Gets the names of arrays of objects, which are left out; None: they are refused.

    Raises:
        Unreadable: It is none, or an array claims what its member does not hold, or all of them unfold to too much.
        OSError: It is missing, or no ordinary file.
    """
    with untrusted_files.open_ordinary(path) as file:
        size = file.seek(0, io.SEEK_END)
        try:
            with zipfile.ZipFile(file) as archive:
                members = archive.infolist()
                unfolded = sum(member.file_size for member in members)
                if len(members) > _MOST_MEMBERS or unfolded > most + size:
                    raise Unreadable(
                        f"{path.name} has {size:,} bytes and its {len(members):,} arrays {unfolded:,} once they are "
                        "unpacked, which is too much."
                    )
                if any(info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) for info in members):
                    raise Unreadable(f"{path.name} is packed in a way that numpy never does. Write it again.")
                arrays = {}
                for member in members:
                    # Of a member, no more is ever unpacked than its directory claims.
                    content, name = archive.read(member), member.filename.removesuffix(".npy")
                    if others is not None and _OBJECTS in content[:_HEAD]:
                        others.append(name)
                    else:
                        arrays[name] = _array(path, content)
                return arrays
        except Unreadable:
            raise
        except Exception as error:  # whatever a damaged directory or member makes its reader raise
            reason = str(error).rstrip(".")[:300] or type(error).__name__
            raise Unreadable(f"{path.name} is not an archive of arrays, or it is damaged: {reason}.") from error


def _array(path: Path, content: bytes) -> np.ndarray:
    header, start = npy_header(path, io.BytesIO(content), len(content), NUMBERS + _WORDS)
    flat = np.frombuffer(content, header.dtype, offset=start)
    return flat.reshape(header.shape, order="F" if header.columns_first else "C").copy(order="K")
