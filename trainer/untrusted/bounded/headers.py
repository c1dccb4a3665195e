"""Check the header of a `.npy` or `.safetensors` file against the file before it is mapped or read."""

from __future__ import annotations

import io
import json
import math
from pathlib import Path
from typing import Any, BinaryIO, Final

import numpy as np
from msgspec import Struct

from trainer.untrusted import files as untrusted_files
from trainer.untrusted.bounded import Unreadable

_MOST_NPY: Final = 10_000
"""Bytes of the header of a `.npy`: numpy itself parses no longer one."""
_MOST_AXES: Final = 32
NUMBERS: Final = "biuf"
"""Kinds of type of numbers and truth values, as `numpy.dtype.kind` names them."""
_MOST_SAFETENSORS: Final = 16 * 2**20
"""Bytes of the header of a `.safetensors`. The format allows 100 MB; 20,000 tensors need 6."""
_MOST_BYTES: Final = 2**63 - 1
_FREE: Final = 256 << 20
_TIMES: Final = 64
_BYTES: Final = {
    **dict.fromkeys(("BOOL", "U8", "I8", "F8_E5M2", "F8_E4M3"), 1),
    **dict.fromkeys(("U16", "I16", "F16", "BF16"), 2),
    **dict.fromkeys(("U32", "I32", "F32"), 4),
    **dict.fromkeys(("U64", "I64", "F64"), 8),
}
"""Bytes of a number of each type of a `.safetensors`."""


class TensorPlace(Struct, frozen=True):
    """Type, as `.safetensors` names it, and shape of a tensor, and the offset of its numbers in the file."""

    dtype: str
    shape: tuple[int, ...]
    offset: int


class Header(Struct, frozen=True):
    """Shape and type of the array in a `.npy`, and whether it is in Fortran order."""

    shape: tuple[int, ...]
    dtype: np.dtype
    columns_first: bool = False


def check_npy(path: Path, kinds: str = NUMBERS, *, sparse: bool = False) -> Header:
    """Return the contents of a `.npy` if its size matches its header, reading only the header.

    Args:
        kinds: The kinds of type that are taken, as `numpy.dtype.kind` names them.
        sparse: It may be empty on the disk, because only a few rows of it are ever read.

    Raises:
        Unreadable: It is no `.npy`, its header claims what cannot be, or more or less than the file has.
        OSError: It is missing, or no ordinary file.
    """
    with untrusted_files.open_ordinary(path) as file:
        size = file.seek(0, io.SEEK_END)
        file.seek(0)
        header, _ = npy_header(path, file, size, kinds)
    if not sparse:
        check_filled(path)
    return header


def npy_header(path: Path, file: BinaryIO, size: int, kinds: str = NUMBERS) -> tuple[Header, int]:
    """Return the header at the beginning of `file`, and the offset of the numbers.

    Args:
        path: Its name, for the words.
        file: Read from where it stands.
        size: Bytes that it has.
        kinds: As for `check_npy`.

    Raises:
        Unreadable: As `check_npy`.
    """
    header, start = _parsed(path, file, size)
    if header.dtype.kind not in kinds or header.dtype.itemsize == 0:
        raise Unreadable(
            f"{path.name} holds values of type {header.dtype}, where real numbers are expected. Save it as float32."
        )
    if len(header.shape) > _MOST_AXES or not all(type(length) is int and length >= 0 for length in header.shape):
        raise Unreadable(f"{path.name} has a header with the shape {_short(header.shape)}, which is invalid.")
    _check_length(path, start + math.prod(header.shape) * header.dtype.itemsize, size)
    return header, start


def _parsed(path: Path, file: BinaryIO, size: int) -> tuple[Header, int]:
    try:
        version = np.lib.format.read_magic(file)
        width = 2 if version == (1, 0) else 4
        length = int.from_bytes(file.read(width), "little")
        start = file.tell() + length
        if version not in ((1, 0), (2, 0)) or length > _MOST_NPY or start > size:
            raise Unreadable(
                f"{path.name} has {size:,} bytes and a header of {length:,} of version {version[0]}.{version[1]}, "
                "which is invalid."
            )
        file.seek(-width, io.SEEK_CUR)
        reader = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, columns_first, dtype = reader(file)
    except Unreadable:
        raise
    except Exception as error:  # whatever an evil header makes its reader raise
        raise Unreadable(f"{path.name} has a header that is not of an array: {_short(error)}.") from error
    return Header(shape, dtype, columns_first), start


def check_safetensors(path: Path, *, most: int, sparse: bool = False) -> dict[str, TensorPlace]:
    """Check that a `.safetensors` header describes exactly the bytes that follow it; reads only the header.

    Args:
        most: Tensors that it may have.
        sparse: As for `check_npy`.

    Returns:
        Where each tensor lies, by name.

    Raises:
        Unreadable: It does not.
        OSError: The file is missing, or no ordinary file.
    """
    with untrusted_files.open_ordinary(path) as file:
        size = file.seek(0, io.SEEK_END)
        file.seek(0)
        length = int.from_bytes(file.read(8), "little")
        if size < 8 or length > min(_MOST_SAFETENSORS, size - 8):
            raise Unreadable(f"{path.name} has {size:,} bytes and claims a header of {length:,}, which cannot be.")
        content = file.read(length)
    try:
        header = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise Unreadable(f"{path.name} has a header that is not JSON: {_short(error)}.") from error
    if not isinstance(header, dict):
        raise Unreadable(f"{path.name} has a header that names no tensors.")
    tensors = {name: about for name, about in header.items() if name != "__metadata__"}
    if len(tensors) > most:
        raise Unreadable(f"{path.name} has {len(tensors):,} tensors: too many; refusing to open it.")
    end = 0
    for first, last in sorted(_span(path, name, about) for name, about in tensors.items()):
        if first != end:
            raise Unreadable(
                f"{path.name} has a header whose tensors overlap or leave a gap at byte {min(first, end):,}."
            )
        end = last
    _check_length(path, 8 + length + end, size)
    if not sparse:
        check_filled(path)
    return {
        str(name): TensorPlace(about["dtype"], tuple(about["shape"]), 8 + length + about["data_offsets"][0])
        for name, about in tensors.items()
    }


def check_filled(path: Path) -> None:
    """Refuse sparse files: a terabyte of zeros may take no disk space.

    Files up to 256 MiB may be so, and larger ones up to 64 times the blocks that they take, for file systems compress.

    Raises:
        Unreadable: It is so.
        OSError: It is missing.
    """
    about = path.stat()
    # Windows does not tell, and some network file systems tell 0.
    taken = 512 * getattr(about, "st_blocks", 0)
    if taken and about.st_size > _FREE + _TIMES * taken:
        raise Unreadable(
            f"{path.name} claims {about.st_size:,} bytes and takes {taken:,} on the disk: nearly all of it is empty. "
            "Copy it again from where it was made."
        )


def _span(path: Path, name: str, about: Any) -> tuple[int, int]:
    """Return the begin and end of a tensor's bytes."""
    try:
        kind, shape, (first, last) = about["dtype"], about["shape"], about["data_offsets"]
        numbers = [*shape, first, last]
        sound = isinstance(shape, list) and all(
            type(number) is int and 0 <= number <= _MOST_BYTES for number in numbers
        )
        needed = math.prod(shape) * _BYTES[kind] if sound and len(shape) <= _MOST_AXES else -1
    except (TypeError, ValueError, KeyError) as error:
        raise Unreadable(f"{path.name} has a header that does not describe its tensor {_short(name)}.") from error
    if needed != last - first:
        raise Unreadable(
            f"{path.name} has a header whose tensor {_short(name)}, {_short(kind)} {_short(shape)}, does not fill "
            f"the bytes {_short(first)} to {_short(last)} that it names."
        )
    return first, last


def _check_length(path: Path, claimed: int, size: int) -> None:
    if claimed != size:
        claimed_size = f"{claimed:,}" if claimed <= _MOST_BYTES else "more than any file has"
        raise Unreadable(f"{path.name} has {size:,} bytes, but its header claims {claimed_size}.")


def _short(text: object) -> str:
    """Shorten text from a file to fit in a sentence."""
    return untrusted_files.spelled(str(text).rstrip(".")[:80])
