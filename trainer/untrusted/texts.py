"""Texts of strangers as UTF-8: compressed ones are unpacked, and UTF-16 is recoded, with and without its mark."""

from __future__ import annotations

import bz2
import codecs
import errno
import gzip
import io
import lzma
import re
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO, Final

from trainer.untrusted.files import open_ordinary

PACKED: Final = (".gz", ".bz2", ".xz")
"""How the name of a table ends that is compressed."""
_OPENERS: Final[dict[bytes, Callable[[BinaryIO], Any]]] = {
    rb"\x1f\x8b\x08": lambda file: gzip.GzipFile(fileobj=file),
    rb"BZh\d1AY&": bz2.BZ2File,
    rb"\xfd7zXZ\0": lzma.LZMAFile,
}
"""How a compressed file begins."""
_MOST_UNPACKED: Final = 8 << 30
"""Bytes of a compressed text."""
_BLOCK: Final = 1 << 16
_UTF16: Final = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_LEAST: Final = 4
"""Characters without accents that tell UTF-16 that has no mark."""
OF_WIDE: Final = "has no mark of UTF-16 and is read as such"


def plain_name(name: str) -> str:
    """Return the name of a file without the ending of its compression: `train.csv` of `train.csv.gz`."""
    ending = next((end for end in PACKED if name.lower().endswith(end)), "")
    return name[: len(name) - len(ending)]


def ending_of(path: Path) -> str:
    """Return the suffix of a file in small letters, below that of its compression."""
    return Path(plain_name(path.name)).suffix.lower()


def wide_encoding(begin: bytes) -> str:
    """Return the encoding of a text in UTF-16 by how it begins, marked or with every other byte 0; else nothing."""
    if begin.startswith(_UTF16):
        return "utf-16"
    some = begin[: 2 * _LEAST]
    halves = any(some[::2]), any(some[1::2])
    if len(some) < 2 * _LEAST or 0 in (some[::2] if halves[0] else some[1::2]):
        return ""
    return {(True, False): "utf-16-le", (False, True): "utf-16-be"}.get(halves, "")


def is_unmarked(path: Path) -> bool:
    """Return whether a text is UTF-16 without a mark that says so.

    Raises:
        OSError: As `open_text`.
    """
    with _unpacked(path) as file:
        return wide_encoding(file.read(_BLOCK)) not in ("", "utf-16")


def open_text(path: Path, encoding: str = "auto") -> BinaryIO:
    """Open a text for reading as UTF-8; one in another encoding than UTF-16 as its bytes, unless it is named.

    Raises:
        OSError: As `open_ordinary`; also later, where what is compressed is damaged or takes more than 8 GiB.
    """
    file = _unpacked(path)
    if encoding not in ("auto", "utf-8", "utf-8-sig", "utf8"):
        return io.BufferedReader(_Recoded(file, encoding), _BLOCK)
    begin = file.read(_BLOCK)
    wide = wide_encoding(begin)
    if file.seekable():
        file.seek(0)
    else:
        file.close()
        file = _unpacked(path)
    return io.BufferedReader(_Recoded(file, wide), _BLOCK) if wide else file


def _unpacked(path: Path) -> BinaryIO:
    file = open_ordinary(path)
    begin = file.read(8)
    file.seek(0)
    opener = next((opener for magic, opener in _OPENERS.items() if re.match(magic, begin)), None)
    return file if opener is None else io.BufferedReader(_Unpacked(path, opener(file), file), _BLOCK)


def with_line_ends(file: BinaryIO) -> BinaryIO:
    """Return a text in UTF-8 with LF where it has CR."""
    return io.BufferedReader(_Recoded(file, "utf-8-sig", only_lf=True), _BLOCK)


class _Chunks(io.RawIOBase):
    """A stream of chunks, none of which is held longer than it takes to be read."""

    def __init__(self, *files: BinaryIO) -> None:
        self._files, self._ready = files, b""

    def readable(self) -> bool:
        return True

    def close(self) -> None:
        for file in self._files:
            file.close()
        super().close()

    def readinto(self, buffer: Any) -> int:
        self._ready = self._ready or self._next()
        taken = self._ready[: len(buffer)]
        self._ready = self._ready[len(taken) :]
        buffer[: len(taken)] = taken
        return len(taken)

    def _next(self) -> bytes:
        """Return the next bytes; none at the end."""
        raise NotImplementedError


class _Unpacked(_Chunks):
    def __init__(self, path: Path, *files: BinaryIO) -> None:
        super().__init__(*files)
        self._path, self._count = path, 0

    def _next(self) -> bytes:
        try:
            part = self._files[0].read(_BLOCK)
        except (OSError, EOFError, zlib.error, lzma.LZMAError) as error:
            raise OSError(errno.EINVAL, "it is compressed, and damaged or cut off", str(self._path)) from error
        self._count += len(part)
        if self._count > _MOST_UNPACKED:
            raise OSError(errno.EFBIG, f"it unfolds to more than {_MOST_UNPACKED >> 30} GiB", str(self._path))
        return part


class _Recoded(_Chunks):
    """UTF-8 of another encoding; damaged bytes become U+FFFD."""

    def __init__(self, file: BinaryIO, encoding: str, *, only_lf: bool = False) -> None:
        super().__init__(file)
        self._only_lf = only_lf
        self._decoder = codecs.getincrementaldecoder(encoding)("replace")

    def _next(self) -> bytes:
        text, part = "", b"."
        while part and not text:
            part = self._files[0].read(_BLOCK)
            text = self._decoder.decode(part, final=not part)
        if self._only_lf:
            text = text.replace("\r\n", "\n").replace("\r", "\n")
        return text.encode("utf-8", "replace")
