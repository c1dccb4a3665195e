"""Reviews of single pairs: flagged, ignored or reviewed, with the picture and the caption they were about.

Every change is appended to `reviews.jsonl` beside the database first; `trainer doctor --rebuild` restores the table
from it.
"""

from __future__ import annotations

import hashlib
import io
import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from sqlalchemy import delete, select
from sqlalchemy.dialects.sqlite import insert

from trainer.store import cells
from trainer.store.database import MOST_TEXT, fetch
from trainer.store.rows import REVIEW_STATES, StoreError
from trainer.store.schema import review as table
from trainer.untrusted import confined

if TYPE_CHECKING:
    from trainer.store.database import Database

JOURNAL: Final = "reviews.jsonl"
"""File beside the database with every change, one JSON object a line; state "" is a review that was taken back."""
_LONGEST_LINE: Final = 2**23
"""Bytes of a line: a caption of a million characters that JSON spells."""
_MOST: Final = 200_000
"""Reviews that are restored."""


@dataclass(frozen=True)
class Review:
    """What was decided about one pair."""

    dataset: str  # Name of the data set.
    pair: str  # Key as `pair_keys` makes it.
    state: str  # One of `REVIEW_STATES`.
    note: str = ""  # Free text.
    path: str = ""  # Of the picture, as the snapshot had it.
    caption: str = ""
    created_at: float = 0.0  # When it was decided, in Unix seconds.


class Reviews:
    """The table of reviews; changes raise `LookOnly` if `check_mine` does."""

    def __init__(self, database: Database, folder: Path, check_mine: Callable[[], None]) -> None:
        self._database = database
        self._folder = folder
        self._check_mine = check_mine

    def all(self, dataset: str | None = None) -> list[Review]:
        """Return the reviews of one data set, or all, oldest first, without invalid ones."""
        query = select(table).order_by(table.c.created_at, table.c.id)
        if dataset is not None:
            query = query.where(table.c.dataset == dataset)
        with self._database.read() as connection:
            rows = fetch(connection, query)
        return [_read(row._mapping) for row in rows if not cells.faults("review", row._mapping)]

    def put(self, reviews: Iterable[Review]) -> None:
        """Store the reviews, replacing those of the same pairs; one without a time is of now.

        Raises:
            StoreError: A state is unknown, or a name or text cannot be stored.
        """
        self._check_mine()
        now = time.time()
        rows = [vars(review) | {"created_at": review.created_at or now} for review in reviews]
        for row in rows:
            if row["state"] not in REVIEW_STATES:
                raise StoreError(f"A pair is {', '.join(REVIEW_STATES)}, not {row['state']!r}.")
            if faults := cells.faults("review", row):
                name, problem = next(iter(faults.items()))
                raise StoreError(f"The {name} of a review {problem}.")
        self._write(rows)

    def take_back(self, dataset: str, pairs: Iterable[str]) -> None:
        """Remove the reviews of these pairs; no error if a pair has none."""
        self._check_mine()
        self._write([{"dataset": dataset, "pair": pair, "state": "", "created_at": time.time()} for pair in pairs])

    def restore(self, say: Callable[[str], None]) -> int:
        """Store what the journal holds and the table lacks; return how many reviews were restored.

        Args:
            say: Gets a sentence if lines of the journal could not be read.
        """
        last: dict[tuple[str, str], dict[str, Any] | None] = {}
        wrong, left = 0, MOST_TEXT
        for row in self._journal():
            left -= sum(len(value) for value in (row or {}).values() if isinstance(value, str))
            if row is None:
                wrong += 1
            elif len(last) < _MOST and left > 0:
                last[row["dataset"], row["pair"]] = row if row["state"] else None
            else:
                say(f"{JOURNAL} holds more than {len(last):,} reviews; the others were left out.")
                break
        if wrong:
            say(f"{wrong:,} lines of {JOURNAL} cannot be read and were left out.")
        stored = {(review.dataset, review.pair): review.created_at for review in self.all()}
        rows = [row for key, row in last.items() if row is not None and stored.get(key, -1.0) < row["created_at"]]
        self._store(rows)
        return len(rows)

    def _write(self, rows: Sequence[dict[str, Any]]) -> None:
        if not rows:
            return
        content = "".join(json.dumps(row, ensure_ascii=True) + "\n" for row in rows).encode("ascii")
        try:
            with confined.open_file(self._folder, JOURNAL, "ab+") as file:
                end = file.seek(0, 2)
                file.seek(max(end - 1, 0))
                torn = end > 0 and file.read(1) != b"\n"
                left = memoryview((b"\n" if torn else b"") + content)
                while left:
                    left = left[file.write(left) :]
        except OSError as error:
            reason = error.strerror or str(error)
            raise StoreError(f"{JOURNAL} cannot be written: {reason}. Nothing was changed.") from error
        self._store(rows)

    def _store(self, rows: Sequence[dict[str, Any]]) -> None:
        with self._database.write() as connection:
            for row in rows:
                key = (table.c.dataset == row["dataset"]) & (table.c.pair == row["pair"])
                if not row["state"]:
                    connection.execute(delete(table).where(key))
                    continue
                statement = insert(table).values(row)
                connection.execute(statement.on_conflict_do_update(index_elements=["dataset", "pair"], set_=row))

    def _journal(self) -> Iterator[dict[str, Any] | None]:
        """Yield each line as a row; None if it cannot be read."""
        try:
            with confined.open_file(self._folder, JOURNAL) as raw:
                file = io.BufferedReader(cast("io.RawIOBase", raw))
                while line := file.readline(_LONGEST_LINE):
                    yield _from_line(line)
        except OSError:
            return


def pair_keys(paths: Iterable[str], captions: Iterable[str], workspace_folder: Path) -> list[str]:
    """Return a key per pair that is the same in every run, split and session on these data.

    It is made of the picture's place and the caption; where both repeat, also of how often they came before. A place
    inside the workspace is relative to it, so that a workspace can be moved.
    """
    root = f"{workspace_folder}/"
    seen: dict[str, int] = {}
    keys = []
    for path, caption in zip(paths, captions, strict=True):
        text = f"{path.removeprefix(root)}\0{caption}"
        before = seen.get(text, 0)
        seen[text] = before + 1
        again = f"\0{before}" if before else ""
        keys.append(hashlib.blake2b(f"{text}{again}".encode("utf-8", "surrogateescape"), digest_size=10).hexdigest())
    return keys


def _read(row: Mapping[Any, Any]) -> Review:
    return Review(**{name: row[name] for name in Review.__dataclass_fields__})


def _from_line(line: bytes) -> dict[str, Any] | None:
    row = cells.document(line.decode("utf-8", "replace"))
    if row is None or not {"dataset", "pair", "state", "created_at"} <= row.keys() <= {*Review.__dataclass_fields__}:
        return None
    if isinstance(row["created_at"], bool) or not isinstance(row["created_at"], int | float):
        return None
    plain = row | {"created_at": float(row["created_at"])}
    taken_back = plain["state"] == ""
    checked = plain | {"state": "reviewed"} if taken_back else plain
    return None if cells.faults("review", checked) else plain
