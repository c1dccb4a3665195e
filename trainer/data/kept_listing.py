"""The listing of many tars, kept in the cache: headers of a million members take a minute."""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec
import numpy as np

from trainer.data.atomic_folder import written_once
from trainer.data.kept_pairs import BOUNDS, LINES, KeptPairs
from trainer.data.pairs import Source
from trainer.errors import UserError
from trainer.images import Member, file_of
from trainer.store import derived
from trainer.untrusted import confined
from trainer.untrusted import files as untrusted_files

WORTH_KEEPING: Final = 10_000
"""Pairs; fewer are listed in less than a second."""

_HEAD: Final = "head.json"

Listing = tuple[Sequence[Source], list[tuple[str, str]], list[str]]
"""Pairs, (sample, why it is no pair), and sentences about all."""


def listed_once(tars: Sequence[Path], settings: str, workspace_folder: Path, make: Callable[[], Listing]) -> Listing:
    """Return what `make` lists in tars with these settings, from the cache if no size or time of a tar has changed."""
    digest = hashlib.blake2b(settings.encode("utf-8", "replace"), digest_size=8)
    for tar in tars:
        with contextlib.suppress(OSError):
            stat = tar.stat()
            digest.update(f"{tar.absolute()} {stat.st_size} {stat.st_mtime_ns}\n".encode("utf-8", "replace"))
    folder = derived.place(workspace_folder, workspace_folder / "cache" / f"{digest.hexdigest()}-pairs")
    if folder.is_dir():
        if (listing := _read(folder, tars)) is not None:
            return listing
        if not derived.is_look_only(workspace_folder):
            confined.remove_tree(folder.parent, folder.name)
    made, number_of = make(), {tar: number for number, tar in enumerate(tars)}
    # A whole tar that is a problem may be mended without a trace in its time; one that was unpacked lies elsewhere.
    is_sound = all("/" in name for name, _ in made[1]) and all(file_of(pair.path) in number_of for pair in made[0])
    if len(made[0]) >= WORTH_KEEPING and is_sound:
        # Without it they are listed again.
        with contextlib.suppress(UserError, OSError):
            written_once(folder, lambda draft: _write(draft, number_of, made), lambda: None)
    return _read(folder, tars) or made


def _write(draft: Path, number_of: Mapping[Path, int], listing: Listing) -> None:
    lines, bounds = bytearray(), np.zeros(len(listing[0]) + 1, np.int64)
    for row, source in enumerate(listing[0]):
        member = source.path
        assert isinstance(member, Member)
        line = number_of[member.file], member.offset, member.size, member.name
        lines += msgspec.json.encode((*line, source.caption, source.label, source.metadata))
        bounds[row + 1] = len(lines)
    for name, array in ((LINES, np.frombuffer(lines, np.uint8)), (BOUNDS, bounds)):
        with io.BufferedWriter(confined.open_file(draft, name, "wb")) as stream:  # type: ignore[type-var]
            np.save(stream, array)
    confined.write(draft, _HEAD, json.dumps([len(listing[0]), *listing[1:]]).encode())


def _read(folder: Path, tars: Sequence[Path]) -> Listing | None:
    """Return a kept listing; None if there is none, or it is not what was written."""
    try:
        count, problems, notes = untrusted_files.read_json(folder / _HEAD, untrusted_files.MOST_FACTS)
        problems = [(f"{name}", f"{why}") for name, why in problems]
        pairs = KeptPairs(folder, tars)
        if not derived.is_look_only(folder.parents[1]):
            os.utime(folder)
        return (pairs, problems, [f"{note}" for note in notes]) if len(pairs) == count else None
    except (UserError, OSError, ValueError, TypeError, LookupError, RecursionError):
        return None
