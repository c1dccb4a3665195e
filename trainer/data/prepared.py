"""The prepared cache: every image of a split decoded once, then read as one memory map."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from jaxtyping import UInt8

from trainer.data.images import UnreadableImage, read_image
from trainer.data.once import written_once
from trainer.data.pairs import Source
from trainer.data.workers import spread

_VERSION: Final = 1
"""Raised when the decoder changes what it returns, so that older caches are not taken for its work."""

_CHUNK: Final = 256

_UNUSED_DAYS: Final = 30
"""After which a cache goes: every change of a data set leaves one behind."""

Progress = Callable[[float, str], None]


@dataclass(frozen=True)
class Prepared:
    """The decoded images of those sources that could be read."""

    images: UInt8[np.ndarray, "n size size 3"]
    rows: list[int]
    """Position of each image among the sources."""
    problems: list[tuple[str, str]]
    fingerprint: str
    """Of the decoded images alone."""


def prepare(sources: Sequence[Source], *, size: int, cache: Path, progress: Progress) -> Prepared:
    """The images of `sources` at `size`, from the cache if the same files were decoded before.

    The cache is known by paths, sizes, times and captions, so a changed, added or removed file makes a new one.

    Args:
        sources: In order.
        size: Side of the decoded square, in pixels.
        cache: Folder of all caches.
        progress: Told the share that is done.

    Raises:
        DataError: The cache cannot be written.
    """
    folder = cache / f"{_fingerprint(sources)}-{size}"
    written_once(
        folder,
        lambda unfinished: _decode_all(sources, size, unfinished, progress),
        lambda: progress(0.0, "Waiting for another run that prepares these images"),
    )
    os.utime(folder)
    _remove_unused(cache)
    facts = json.loads((folder / "prepared.json").read_text(encoding="utf-8"))
    images = np.load(folder / "images.npy", mmap_mode="r")
    problems = [(path, reason) for path, reason in facts["problems"]]
    return Prepared(images, facts["rows"], problems, facts["fingerprint"])


def _fingerprint(sources: Sequence[Source]) -> str:
    digest = hashlib.blake2b(f"{_VERSION}".encode(), digest_size=8)
    for source in sources:
        try:
            stat = source.path.stat()
            state = f"{stat.st_size} {stat.st_mtime_ns}"
        except OSError:
            state = "missing"
        digest.update(f"{source.path}\0{source.relative}\0{state}\0{source.caption}\0".encode("utf-8", "replace"))
    return digest.hexdigest()


def _remove_unused(cache: Path) -> None:
    for folder in cache.glob("*-*"):
        if not folder.name.startswith(".") and time.time() - folder.stat().st_mtime > _UNUSED_DAYS * 86_400:
            hidden = folder.with_name(f".{folder.name}.unfinished")
            # Renamed first, for what is half removed must not look whole. Where it is in use, some systems refuse.
            with contextlib.suppress(OSError):
                os.replace(folder, hidden)
                shutil.rmtree(hidden, ignore_errors=True)


@dataclass(frozen=True)
class _Part:
    """Images that one process decodes into its rows of the shared file."""

    file: Path
    first: int
    paths: tuple[Path, ...]
    size: int


def _decode(part: _Part) -> tuple[int, dict[int, str]]:
    """Fills the part's rows; returns how many, and the reason for each row left black."""
    images = np.load(part.file, mmap_mode="r+")
    reasons = {}
    for row, path in enumerate(part.paths, part.first):
        try:
            images[row] = read_image(path, part.size)
        except UnreadableImage as error:
            reasons[row] = str(error)
    return len(part.paths), reasons


def _decode_all(sources: Sequence[Source], size: int, folder: Path, progress: Progress) -> None:
    file = folder / "images.npy"
    _allocate(file, len(sources), size)
    parts = [
        _Part(file, first, tuple(source.path for source in sources[first : first + _CHUNK]), size)
        for first in range(0, len(sources), _CHUNK)
    ]
    reasons: dict[int, str] = {}
    done = 0
    for count, failed in spread(_decode, parts):
        reasons |= failed
        done += count
        progress(done / len(sources), f"Preparing images: {done:,} of {len(sources):,}")
    rows = [row for row in range(len(sources)) if row not in reasons]
    if reasons:
        _keep(file, rows)
    facts = {
        "rows": rows,
        "problems": [(sources[row].relative, reasons[row]) for row in sorted(reasons)],
        "fingerprint": _content(file),
    }
    (folder / "prepared.json").write_text(json.dumps(facts), encoding="utf-8")


def _allocate(file: Path, n: int, size: int) -> None:
    """Makes the file with all its blocks: on a full disk a map of a sparse file ends the process with SIGBUS."""
    images = np.lib.format.open_memmap(file, mode="w+", dtype=np.uint8, shape=(n, size, size, 3))
    del images
    if hasattr(os, "posix_fallocate"):
        with file.open("r+b") as opened:
            os.posix_fallocate(opened.fileno(), 0, os.fstat(opened.fileno()).st_size)


def _keep(file: Path, rows: Sequence[int]) -> None:
    """Rewrites the file with `rows` only."""
    everything = np.load(file, mmap_mode="r")
    shorter = file.with_suffix(".shorter.npy")
    kept = np.lib.format.open_memmap(shorter, mode="w+", dtype=np.uint8, shape=(len(rows), *everything.shape[1:]))
    for part in _slices(len(rows)):
        kept[part] = everything[rows[part]]
    kept.flush()
    del everything, kept
    os.replace(shorter, file)


def _content(file: Path) -> str:
    images = np.load(file, mmap_mode="r")
    digest = hashlib.blake2b(repr(images.shape).encode(), digest_size=16)
    for part in _slices(len(images)):
        digest.update(np.ascontiguousarray(images[part]).data)
    return digest.hexdigest()


def _slices(n: int) -> Iterator[slice]:
    return (slice(first, first + _CHUNK) for first in range(0, n, _CHUNK))
