"""Pairs of a kept listing: each is read from its line when it is asked for.

What is computed of all pairs is kept with them: the second training on the same tars begins as soon as one on few.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, Final, TypeVar

import msgspec
import numpy as np
from jaxtyping import Int

from trainer.data.errors import DataError
from trainer.data.pairs import Source
from trainer.errors import UserError
from trainer.images import Member
from trainer.store import derived
from trainer.store.files import write_text
from trainer.untrusted import files as untrusted_files
from trainer.untrusted.bounded.arrays import map_npy

LINES: Final = "lines.npy"
BOUNDS: Final = "bounds.npy"
LINE: Final = msgspec.json.Decoder(tuple[int, int, int, str, str, str, dict[str, str]])
"""Number of the tar, offset, size and name of the picture; caption, class and metadata."""
HEX: Final = Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{16,32}$")]
"""A digest; what anybody may have written is no part of a path."""
_MOST_LINE: Final = 1 << 20
_AT_ONCE: Final = 4_096
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
        lines, self._bounds = map_npy(folder / LINES, "u"), map_npy(folder / BOUNDS, "i")
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
            number, offset, size, name, caption, label, metadata = LINE.decode(self._lines[start:stop])
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
    of = pairs.pairs if isinstance(pairs, Column) else pairs
    return of.once(what, kind, compute) if isinstance(of, KeptPairs) else compute()


def taken(pairs: Sequence[Source], rows: Int[np.ndarray, " k"]) -> Sequence[Source]:
    """Return some of the pairs."""
    return pairs.taken(rows) if isinstance(pairs, KeptPairs) else [pairs[row] for row in rows.tolist()]
