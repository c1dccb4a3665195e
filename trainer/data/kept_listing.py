"""The listing of many tars, kept in the cache: headers of a million members take a minute.

A kept pair is read from its line when it is asked for, and what is computed of all pairs is kept with them: the second
training on the same tars begins as soon as one on few pairs.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Final, TypeVar

import msgspec
import numpy as np
from jaxtyping import Int

from trainer.data.atomic_folder import written_once
from trainer.data.errors import DataError
from trainer.data.pairs import Source
from trainer.errors import UserError
from trainer.images import Member, file_of
from trainer.store import derived
from trainer.store.files import write_text
from trainer.untrusted import confined
from trainer.untrusted import files as untrusted_files
from trainer.untrusted.bounded.arrays import map_npy

WORTH_KEEPING: Final = 10_000
"""Pairs; fewer are listed in less than a second."""

_HEAD: Final = "head.json"
_LINES: Final = "lines.npy"
_BOUNDS: Final = "bounds.npy"
_MOST_LINE: Final = 1 << 20
_AT_ONCE: Final = 4_096
_LINE: Final = msgspec.json.Decoder(tuple[int, int, int, str, str, str, dict[str, str]])
"""Number of the tar, offset, size and name of the picture; caption, class and metadata."""

Listing = tuple[Sequence[Source], list[tuple[str, str]], list[str]]
"""Pairs, (sample, why it is no pair), and sentences about all."""
HEX: Final = Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{16,32}$")]
"""A digest; what anybody may have written is no part of a path."""
Value = TypeVar("Value")


class KeptPairs(Sequence[Source]):
    """Pairs of a kept listing, each of which is read from its line when it is asked for."""

    def __init__(self, folder: Path, tars: Sequence[Path], rows: Int[np.ndarray, " n"] | None = None) -> None:
        """Open the listing in a folder of the cache.

        Args:
            folder: What `listed_once` wrote.
            tars: That it is of.
            rows: Which of its pairs; None: all.

        Raises:
            ValueError: Another one wrote it.
        """
        self._folder, self._tars, self._names = folder, tars, [tar.name for tar in tars]
        lines, self._bounds = map_npy(folder / _LINES, "u"), map_npy(folder / _BOUNDS, "i")
        if lines.dtype != np.uint8 or lines.ndim != 1 or self._bounds.ndim != 1 or not len(self._bounds):
            raise ValueError("not lines of a listing")
        lengths = np.diff(self._bounds)
        if lengths.min(initial=0) < 0 or lengths.max(initial=0) > _MOST_LINE:
            raise ValueError("not the bounds of lines")
        if self._bounds[0] != 0 or self._bounds[-1] != len(lines):
            raise ValueError("a part of the listing is missing")
        self._lines = lines.data
        self._rows = np.arange(len(lengths)) if rows is None else rows
        self._called = "all" if rows is None else hashlib.blake2b(rows.tobytes(), digest_size=8).hexdigest()

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, key: Any) -> Any:
        """Return a pair or a list of some, read from their lines.

        Raises:
            DataError: A line is damaged.
        """
        if not isinstance(key, slice):
            row = self._rows[key]
            return self._source(self._bounds[row], self._bounds[row + 1])
        rows = self._rows[key]
        return [*map(self._source, self._bounds[rows].tolist(), self._bounds[rows + 1].tolist())]

    def __iter__(self) -> Iterator[Source]:
        for start in range(0, len(self), _AT_ONCE):
            yield from self[start : start + _AT_ONCE]

    def _source(self, start: int, stop: int) -> Source:
        try:
            number, offset, size, name, caption, label, metadata = _LINE.decode(self._lines[start:stop])
            if min(number, offset, size) < 0:
                raise ValueError("a number is below zero")
            member = Member(self._tars[number], offset, size, name)
            return Source(member, f"{self._names[number]}/{name}", caption, label, metadata)
        except (ValueError, LookupError) as error:
            raise DataError(
                f"The listing in {self._folder} is damaged: {error}. Remove that folder: the tars are listed again."
            ) from error

    def taken(self, rows: Int[np.ndarray, " k"]) -> KeptPairs:
        """Return these of the pairs."""
        return KeptPairs(self._folder, self._tars, self._rows[rows])

    def once(self, what: str, kind: Any, compute: Callable[[], Value]) -> Value:
        """Return what is computed of all the pairs, from the folder if it is there; else it is written.

        Args:
            what: Names it, with all that it depends on besides the pairs.
            kind: Its type, as msgspec reads it.
        """
        digest = hashlib.blake2b(f"{self._called}\0{what}".encode("utf-8", "replace"), digest_size=8)
        file = self._folder / f"{digest.hexdigest()}.json"
        with contextlib.suppress(OSError, ValueError):
            return msgspec.json.decode(untrusted_files.read_bytes(file, untrusted_files.MOST_FACTS), type=kind)
        value = compute()
        # Without it, it is computed again.
        with contextlib.suppress(UserError, OSError, ValueError):
            if not derived.is_look_only(self._folder.parents[1]):
                write_text(file, json.dumps(msgspec.to_builtins(value)))
        return value


class Column(Sequence[str]):
    """A text of each kept pair, read when it is asked for."""

    def __init__(self, pairs: KeptPairs, text_of: Callable[[Source], str]) -> None:
        self.pairs, self._text_of = pairs, text_of

    def __len__(self) -> int:
        return len(self.pairs)

    def __getitem__(self, key: Any) -> Any:
        of = self.pairs[key]
        return [*map(self._text_of, of)] if isinstance(of, list) else self._text_of(of)

    def __iter__(self) -> Iterator[str]:
        return map(self._text_of, self.pairs)


def column(pairs: Sequence[Source], text_of: Callable[[Source], str]) -> Sequence[str]:
    """Return a text of each pair."""
    return Column(pairs, text_of) if isinstance(pairs, KeptPairs) else [*map(text_of, pairs)]


def once(pairs: Sequence[Source] | Sequence[str], what: str, kind: Any, compute: Callable[[], Value]) -> Value:
    """Return what is computed of all pairs, or of a column of theirs; of kept ones it is kept, too (`KeptPairs`)."""
    kept = pairs.pairs if isinstance(pairs, Column) else pairs
    return kept.once(what, kind, compute) if isinstance(kept, KeptPairs) else compute()


def taken(pairs: Sequence[Source], rows: Int[np.ndarray, " k"]) -> Sequence[Source]:
    """Return some of the pairs."""
    return pairs.taken(rows) if isinstance(pairs, KeptPairs) else [pairs[row] for row in rows.tolist()]


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
    for name, array in ((_LINES, np.frombuffer(lines, np.uint8)), (_BOUNDS, bounds)):
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
