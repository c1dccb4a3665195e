"""The listing of many tars, kept in the cache: headers of a million members take a minute, these lines seconds."""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from trainer.data.atomic_folder import written_once
from trainer.data.pairs import Source
from trainer.errors import UserError
from trainer.images import Member, file_of
from trainer.store import derived
from trainer.untrusted import confined
from trainer.untrusted import files as untrusted_files

WORTH_KEEPING: Final = 10_000
"""Pairs; fewer are listed in less than a second."""

_FILE: Final = "listing.jsonl"
_MOST_LINE: Final = 1 << 20

Listing = tuple[list[Source], list[tuple[str, str]], list[str]]
"""Pairs, (sample, why it is no pair), and sentences about all."""


def listed_once(tars: Sequence[Path], settings: str, workspace_folder: Path, make: Callable[[], Listing]) -> Listing:
    """Return what `make` lists in tars with these settings, from the cache if no size or time of a tar has changed."""
    digest = hashlib.blake2b(settings.encode("utf-8", "replace"), digest_size=8)
    for tar in tars:
        with contextlib.suppress(OSError):
            stat = tar.stat()
            digest.update(f"{tar.absolute()} {stat.st_size} {stat.st_mtime_ns}\n".encode("utf-8", "replace"))
    folder = derived.place(workspace_folder, workspace_folder / "cache" / f"{digest.hexdigest()}-listing")
    if folder.is_dir() and (listing := _read(folder, tars)) is not None:
        return listing
    made, number_of = make(), {tar: number for number, tar in enumerate(tars)}
    # A whole tar that is a problem may be mended without a trace in its time; one that was unpacked lies elsewhere.
    is_sound = all("/" in name for name, _ in made[1]) and all(file_of(pair.path) in number_of for pair in made[0])
    if len(made[0]) >= WORTH_KEEPING and is_sound:
        # Without it they are listed again.
        with contextlib.suppress(UserError, OSError):
            written_once(folder, lambda draft: _write(draft, number_of, made), lambda: None)
    return made


def _write(draft: Path, number_of: Mapping[Path, int], listing: Listing) -> None:
    with io.BufferedWriter(confined.open_file(draft, _FILE, "wb")) as stream:  # type: ignore[type-var]
        stream.write(json.dumps([len(listing[0]), *listing[1:]]).encode() + b"\n")
        for source in listing[0]:
            member = source.path
            assert isinstance(member, Member)
            line = [number_of[member.file], member.offset, member.size, member.name]
            stream.write(json.dumps([*line, source.caption, source.label, source.metadata]).encode() + b"\n")


def _read(folder: Path, tars: Sequence[Path]) -> Listing | None:
    """Return a kept listing; None if it is not what was written."""
    try:
        with untrusted_files.open_ordinary(folder / _FILE) as stream:
            count, problems, notes = json.loads(stream.readline(untrusted_files.MOST_FACTS))
            problems = [(f"{name}", f"{why}") for name, why in problems]
            sources = [_source(json.loads(line), tars) for line in iter(lambda: stream.readline(_MOST_LINE), b"")]
        os.utime(folder)
        return (sources, problems, [f"{note}" for note in notes]) if len(sources) == count else None
    except (OSError, ValueError, TypeError, LookupError, RecursionError):
        return None


def _source(line: list[Any], tars: Sequence[Path]) -> Source:
    number, offset, size, name, caption, label, metadata = line
    counted = type(number) is type(offset) is type(size) is int and min(number, offset, size) >= 0
    if not (counted and isinstance(metadata, dict)):
        raise ValueError("not a line of a listing")
    "".join((name, caption, label, *metadata, *metadata.values()))  # A TypeError where one is no text.
    tar = tars[number]
    return Source(Member(tar, offset, size, name), f"{tar.name}/{name}", caption, label, metadata)
