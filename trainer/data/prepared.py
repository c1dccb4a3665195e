"""The prepared cache: every image of a split decoded once, then read as a memory map.

Where it does not fit, images are decoded whenever they are asked for (`lazy_images`): the first time all of them are
decoded as well, to know which ones can be read and what the pixels are, but only that is kept.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import queue
import shutil
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
from jaxtyping import UInt8

from trainer.analysis.progress import Progress
from trainer.data.atomic_folder import written_once
from trainer.data.kept_pairs import HEX, column, once
from trainer.data.pairs import DataError, Source
from trainer.data.streamed_images import KeptImages, StreamedImages
from trainer.data.workers import processes
from trainer.images import Decoder, Location, Preprocessing, borrowed, file_of, size_of
from trainer.store import derived
from trainer.store.disk import SPARE, room_for_cache
from trainer.store.files import make_folders
from trainer.store.picture_paths import relative_to
from trainer.untrusted import confined
from trainer.untrusted import files as untrusted_files
from trainer.untrusted.bounded.arrays import map_npy

_VERSION: Final = 2
"""Raised when the decoder changes what it returns, so that older caches are not taken for its work."""

_CHUNK: Final = 256

_UNUSED_DAYS: Final = 30
"""After which a cache goes: every change of a data set leaves one behind."""

_DIGESTS: Final = "digests.bin"

Loading = Literal["auto", "prepared", "streamed"]


@dataclass(frozen=True)
class Prepared:
    """The decoded images of the readable sources."""

    images: UInt8[np.ndarray, "n size size 3"] | StreamedImages
    rows: Sequence[int]
    """Position of each image among the sources."""
    problems: list[tuple[str, str]]
    remarks: list[tuple[str, str]]
    """What was odd about pictures that are used, and put right."""
    fingerprint: str
    """Of the decoded images alone; of listed ones, of their names and sizes."""


def prepare(
    sources: Sequence[Source],
    *,
    size: int,
    cache: Path,
    progress: Progress,
    loading: Loading = "auto",
    preprocessing: Preprocessing | None = None,
    helpers: int = 0,
) -> Prepared:
    """Return the images of `sources` at `size`, from the cache if the same files were decoded before.

    The cache is known by paths, sizes, times and captions, so a changed, added or removed file makes a new one. What
    an interrupted run had decoded is not decoded again.

    Args:
        sources: In order.
        size: Side of the decoded square, in pixels.
        cache: Folder of all caches.
        loading: "prepared": from the cache. "streamed": decoded anew each time. "auto": streamed if the cache would
            take most of the free space.
        preprocessing: Of the published model that they are for; None for towers of our own.
        helpers: Processes that decode; 0 for as many as there are cores.

    Raises:
        DataError: The cache cannot be written, or there is no room for it.
    """
    folder = _folder(sources, size, cache, preprocessing)
    why = _why_streamed(loading, folder, bytes_needed(len(sources), size))
    if why and not folder.is_dir():
        folder = _streamed(folder)
    written_once(
        folder,
        lambda unfinished: _decode_all(
            sources, size, unfinished, progress, keep=not why, preprocessing=preprocessing, helpers=helpers
        ),
        lambda: progress(0.0, "Waiting for another run that prepares these images"),
        keep_unfinished=True,
    )
    if not derived.is_look_only(cache.parent):
        os.utime(folder)
        _remove_unused(cache, folder)
    facts = _facts_of(folder, len(sources))
    problems, remarks = ([(path, reason) for path, reason in facts[kind]] for kind in ("problems", "remarks"))
    images: np.ndarray | StreamedImages
    if why:
        locations = [str(sources[row].path) for row in facts["rows"]]
        digests = _digests(folder / _DIGESTS, len(locations))
        images = StreamedImages(locations, size, why, digests=digests, preprocessing=preprocessing)
    else:
        images = map_npy(folder / "images.npy", "u")
        if images.shape != (len(facts["rows"]), size, size, 3):
            raise _damaged(folder)
    return Prepared(images, facts["rows"], problems, remarks, facts["fingerprint"])


def listed_images(
    sources: Sequence[Source],
    *,
    size: int,
    cache: Path,
    progress: Progress,
    loading: Loading = "auto",
    preprocessing: Preprocessing | None = None,
) -> Prepared:
    """Return the images of all sources, readable or not, with arguments as `prepare` has; none is decoded.

    Row i is source i whether there is a cache or not, so that batches do not depend on that. What makes the cache
    comes with them; only with "prepared" it is made first.
    """
    folder = _folder(sources, size, cache, preprocessing)
    why = _why_streamed(loading, folder, bytes_needed(len(sources), size))

    def keep(progress: Progress, helpers: int = max(1, processes() // 2)) -> KeptImages:
        prepared = prepare(
            sources,
            size=size,
            cache=cache,
            progress=progress,
            loading="prepared",
            preprocessing=preprocessing,
            helpers=helpers,
        )
        assert isinstance(prepared.images, np.ndarray)
        at = np.full(len(sources), -1)
        at[prepared.rows] = np.arange(len(prepared.rows))
        # Problems are told in the order of their rows.
        lost = zip(np.flatnonzero(at < 0).tolist(), prepared.problems, strict=True)
        digests = digests_of(sources, size=size, cache=cache, preprocessing=preprocessing)
        return KeptImages(prepared.images, at, {row: reason for row, (_, reason) in lost}, digests)

    locations = column(sources, lambda source: str(source.path))
    images = StreamedImages(
        locations, size, why or "they are not prepared yet", preprocessing=preprocessing, listed=True
    )
    if loading == "prepared" or (not why and folder.is_dir()):
        images.kept = keep(progress, 0)
    elif not why:
        images.keep = keep
    content = once(sources, f"names and sizes, for pictures of {size}", HEX, lambda: _listed_content(sources, size))
    return Prepared(images, range(len(sources)), [], [], content)


def _listed_content(sources: Sequence[Source], size: int) -> str:
    digest = hashlib.blake2b(repr((len(sources), size)).encode(), digest_size=16)
    for source in sources:
        digest.update(f"{source.relative}\0{size_of(source.path)}\0".encode("utf-8", "replace"))
    return digest.hexdigest()


def _facts_of(folder: Path, n: int) -> dict[str, Any]:
    """Return what is stored with the prepared images of `n` sources.

    Raises:
        DataError: It is not what was written.
    """
    try:
        facts = untrusted_files.read_json(folder / "prepared.json", untrusted_files.MOST_FACTS)
        rows, remarks = facts["rows"], [*facts["problems"], *facts["remarks"]]
        sound = isinstance(rows, list) and all(type(row) is int and 0 <= row < n for row in rows)
        sound = sound and all(isinstance(text, str) for path, text in remarks for text in (path, text))
        if sound and isinstance(facts["fingerprint"], str):
            return facts
    except (OSError, ValueError, KeyError, TypeError):
        pass
    raise _damaged(folder)


def _damaged(folder: Path) -> DataError:
    return DataError(f"The prepared images in {folder} are damaged. Remove that folder: they are decoded again.")


def digests_of(
    sources: Sequence[Source], *, size: int, cache: Path, preprocessing: Preprocessing | None = None
) -> list[bytes]:
    """Return the pixel hash of each readable source, in order; empty if they are not prepared.

    Nothing is decoded: a cache that is not there any more knows of none.
    """
    cached = _folder(sources, size, cache, preprocessing)
    for folder in (cached, _streamed(cached)):
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
            facts = untrusted_files.read_json(folder / "prepared.json", untrusted_files.MOST_FACTS)
            if digests := _digests(folder / _DIGESTS, len(facts["rows"])):
                return digests
    return []


def _folder(sources: Sequence[Source], size: int, cache: Path, preprocessing: Preprocessing | None) -> Path:
    """Return the cache of these sources, known by where they lie in the workspace."""
    ending = f"-{size}{f'-{preprocessing.name}' if preprocessing else ''}"
    # Kept pairs are those of the same files: another time or size of one, and they are listed again.
    what = f"files as {_VERSION} names them from {cache.parent.absolute()}"
    folder = cache / f"{once(sources, what, HEX, lambda: _fingerprint(sources, cache.parent))}{ending}"
    is_prepared = folder.is_dir() or _streamed(folder).is_dir()
    return folder if is_prepared else derived.place(cache.parent, folder)


def _streamed(folder: Path) -> Path:
    return folder.with_name(f"{folder.name}-streamed")


def _why_streamed(loading: Loading, folder: Path, needed: int) -> str:
    """Return why the images are not cached, as part of a sentence; empty if they are."""
    if loading == "streamed":
        return "that was chosen"
    begun = folder.with_name(f".{folder.name}.unfinished") / "images.npy"  # has its room already
    if loading == "prepared" or folder.is_dir() or begun.is_file():
        return ""
    try:
        make_folders(folder.parent)
        free = shutil.disk_usage(folder.parent).free
    except OSError:  # which `written_once` will tell
        return ""
    if needed <= room_for_cache(free):
        return ""
    return f"prepared, they would need {needed / 2**20:,.0f} of the {free / 2**20:,.0f} MiB that are free"


def bytes_needed(n: int, size: int) -> int:
    """Return the disk space of `n` decoded images in bytes."""
    return n * size * size * 3


def _fingerprint(sources: Sequence[Source], workspace: Path) -> str:
    digest = hashlib.blake2b(f"{_VERSION}".encode(), digest_size=8)
    states: dict[Path, str] = {}  # a tar is looked at once, not once for each of its members
    for source in sources:
        file = file_of(source.path)
        if file not in states:
            states[file] = _state(file)
        named = relative_to(workspace, str(source.path))
        line = f"{named}\0{source.relative}\0{states[file]}\0{source.caption}\0"
        digest.update(line.encode("utf-8", "replace"))
    return digest.hexdigest()


def _state(file: Path) -> str:
    try:
        stat = file.stat()
    except OSError:
        return "missing"
    return f"{stat.st_size} {stat.st_mtime_ns}"


def _remove_unused(cache: Path, used: Path) -> None:
    for folder in cache.glob("*-*"):
        # The clock of a file system may be days behind this one: what was just used would look unused.
        if folder == used:
            continue
        # Where it is in use, some systems refuse; another process may be at it, too.
        with contextlib.suppress(OSError):
            if folder.is_dir() and time.time() - folder.stat().st_mtime > _UNUSED_DAYS * 86_400:
                # Renamed first, for what is half removed must not look whole.
                hidden = folder.with_name(f".{folder.name.strip('.')}.removed")
                confined.replace(cache, folder.name, hidden.name)
                confined.remove_tree(cache, hidden.name)


@dataclass(frozen=True)
class Part:
    """Images that one helper decodes into their rows of the shared file, or only for their hashes."""

    file: Path | None
    offset: int
    """Where the first one's pixels begin, in bytes."""
    first: int
    places: tuple[Location, ...]
    size: int
    preprocessing: Preprocessing | None = None


@dataclass(frozen=True)
class DonePart:
    """The result of a part: rows left black and why, and rows with remarks."""

    first: int
    count: int
    reasons: dict[int, str]
    remarks: dict[int, str]
    digests: str
    """Of the pixels of each row that is not black, one after the other."""


class _Ended(Exception):
    """The images are no longer needed."""


def decode_part(part: Part, decoder: Decoder, ended: threading.Event) -> DonePart:
    """Fill the part's rows."""
    reasons, remarks, digests = {}, {}, []
    answers = decoder.decode(
        part.places,
        size=part.size,
        file=part.file,
        offset=part.offset,
        sync=part.file is not None,
        preprocessing=part.preprocessing,
    )
    for row, decoded in enumerate(answers, part.first):
        if ended.is_set():
            answers.close()
            raise _Ended
        if decoded.reason:
            reasons[row] = decoded.reason
            continue
        digests.append(decoded.digest)
        if decoded.remarks:
            remarks[row] = decoded.remarks
    return DonePart(part.first, len(part.places), reasons, remarks, "".join(digests))


def _decoded(parts: Sequence[Part], helpers: int) -> Iterator[DonePart]:
    """Yield each part as it is finished."""
    count = min(helpers or processes(), len(parts))
    ended = threading.Event()
    with ExitStack() as lent, ThreadPoolExecutor(max(1, count)) as threads:
        free: queue.SimpleQueue[Decoder] = queue.SimpleQueue()
        for _ in range(count):
            free.put(lent.enter_context(borrowed()))

        def decode(part: Part) -> DonePart:
            decoder = free.get()
            try:
                return decode_part(part, decoder, ended)
            finally:
                free.put(decoder)

        futures = [threads.submit(decode, part) for part in parts]
        try:
            for future in as_completed(futures):
                yield future.result()
        finally:
            ended.set()
            threads.shutdown(wait=True, cancel_futures=True)


def _decode_all(
    sources: Sequence[Source],
    size: int,
    folder: Path,
    progress: Progress,
    *,
    keep: bool,
    preprocessing: Preprocessing | None,
    helpers: int,
) -> None:
    file, journal = (folder / "images.npy" if keep else None), folder / "decoded.jsonl"
    finished, start = _begin(file, journal, len(sources), size)
    parts = {
        first: Part(
            file, start + bytes_needed(first, size), first, tuple(source.path for source in chunk), size, preprocessing
        )
        for first, chunk in ((first, sources[first : first + _CHUNK]) for first in range(0, len(sources), _CHUNK))
    }
    done = sum(part.count for part in finished)
    waiting = [part for first, part in parts.items() if first not in {part.first for part in finished}]
    doing = "Preparing images" if keep else "Scanning all images"
    with _appended(journal) as written:
        for part in _decoded(waiting, helpers):
            finished.append(part)
            written.write(json.dumps(asdict(part)) + "\n")
            written.flush()
            done += part.count
            progress(done / len(sources), f"{doing}: {done:,} of {len(sources):,}")
    reasons = {int(row): reason for part in finished for row, reason in part.reasons.items()}
    remarks = {int(row): reason for part in finished for row, reason in part.remarks.items()}
    rows = [row for row in range(len(sources)) if row not in reasons]
    if reasons and file is not None:
        _keep(file, rows)
    facts = {
        "rows": rows,
        "problems": [(sources[row].relative, reasons[row]) for row in sorted(reasons)],
        "remarks": [(sources[row].relative, remarks[row]) for row in sorted(remarks)],
        "fingerprint": _content(finished, len(rows), size),
    }
    confined.write(folder, _DIGESTS, b"".join(bytes.fromhex(part.digests) for part in _in_order(finished)))
    confined.write(folder, "prepared.json", json.dumps(facts).encode())
    confined.remove(folder, journal.name)


def _appended(journal: Path) -> io.TextIOWrapper:
    file = confined.open_file(journal.parent, journal.name, "ab")
    return io.TextIOWrapper(io.BufferedWriter(file), encoding="utf-8")  # type: ignore[type-var]


def _begin(file: Path | None, journal: Path, n: int, size: int) -> tuple[list[DonePart], int]:
    """Return the parts already decoded before an interruption, and the pixel offset in the new or existing file."""
    if file is None:
        return list(_finished(journal)) if journal.exists() else [], 0
    with contextlib.suppress(OSError, ValueError):
        images = map_npy(file, "u")
        if images.shape == (n, size, size, 3):
            return list(_finished(journal)), images.offset
    confined.remove(journal.parent, journal.name)
    _check_room(file.parent, bytes_needed(n, size))
    _allocate(file, n, size)
    return [], map_npy(file, "u").offset


def _finished(journal: Path) -> Iterator[DonePart]:
    """Yield the parts in the journal, up to a truncated line."""
    for line in untrusted_files.read_text(journal, untrusted_files.MOST_FACTS).splitlines():
        try:
            yield DonePart(**json.loads(line))
        except (ValueError, TypeError):
            return


def _check_room(folder: Path, needed: int) -> None:
    free = shutil.disk_usage(folder).free
    if needed > free - SPARE:
        raise DataError(
            f"The decoded images need {needed / 2**20:,.0f} MiB and {folder} has {free / 2**20:,.0f} MiB free. "
            'Free some space, choose another --workspace, a smaller model.image_size, or loading = "streamed".'
        )


def _allocate(file: Path, n: int, size: int) -> None:
    """Allocate all blocks of the file, because a memory-mapped sparse file on a full disk raises SIGBUS."""
    images = np.lib.format.open_memmap(file, mode="w+", dtype=np.uint8, shape=(n, size, size, 3))
    del images
    if hasattr(os, "posix_fallocate"):
        with confined.open_file(file.parent, file.name, "rb+") as opened:
            os.posix_fallocate(opened.fileno(), 0, os.fstat(opened.fileno()).st_size)


def _keep(file: Path, rows: Sequence[int]) -> None:
    """Rewrite the file with `rows` only."""
    everything = map_npy(file, "u")
    shorter = file.with_suffix(".shorter.npy")
    remaining = np.lib.format.open_memmap(shorter, mode="w+", dtype=np.uint8, shape=(len(rows), *everything.shape[1:]))
    for part in (slice(first, first + _CHUNK) for first in range(0, len(rows), _CHUNK)):
        remaining[part] = everything[rows[part]]
    remaining.flush()
    del everything, remaining
    confined.replace(file.parent, shorter.name, file.name)


def _content(parts: Sequence[DonePart], n: int, size: int) -> str:
    """Return the hash of all pixels, computed from the hash of each image."""
    digest = hashlib.blake2b(repr((n, size, size, 3)).encode(), digest_size=16)
    for part in _in_order(parts):
        digest.update(part.digests.encode())
    return digest.hexdigest()


def _in_order(parts: Sequence[DonePart]) -> list[DonePart]:
    return sorted(parts, key=lambda part: part.first)


def _digests(file: Path, n: int) -> list[bytes]:
    """Return the hash of each image; empty where the cache lacks them."""
    try:
        digests = np.frombuffer(untrusted_files.read_bytes(file, 16 * n), "V16")
    except OSError:
        return []
    return [digest.tobytes() for digest in digests] if len(digests) == n else []
