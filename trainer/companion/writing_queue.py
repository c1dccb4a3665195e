"""What a training loop has logged and a thread has not written yet: bounded by bytes, and never waited on."""

from __future__ import annotations

import threading
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from trainer.companion.embedding_set import EmbeddingSet

MOST_BYTES: Final = 512 << 20
_OF_RECORD: Final = 200
_OF_NUMBER: Final = 150
"""Bytes that a record and a number of it take in memory, about."""


@dataclass(frozen=True)
class LoggedNumbers:
    """The metrics of one call; what is not a number yet is read when it is written."""

    step: int
    time: float
    elapsed_s: float
    values: tuple[tuple[str, float | Callable[[], float]], ...]

    @property
    def size(self) -> int:
        """Bytes that they take while they wait, about."""
        return _OF_RECORD + _OF_NUMBER * len(self.values)


@dataclass(frozen=True)
class SavedCheckpoint:
    """A file or folder of the other program that holds the model at a step."""

    step: int
    path: str
    size: int = _OF_RECORD


@dataclass(frozen=True)
class LoggedSettings:
    """Further settings of the other program."""

    texts: dict[str, str]
    size: int = _OF_RECORD


@dataclass(frozen=True)
class Flush:
    """Set once all that was logged before it is written."""

    written: threading.Event
    size: int = 0


Record = LoggedNumbers | EmbeddingSet | SavedCheckpoint | LoggedSettings | Flush


@dataclass(frozen=True)
class RunEnd:
    """How the run ended."""

    status: str
    reason: str


class WritingQueue:
    """Records in the order in which they were logged; `put` never waits for the one that takes them.

    Attributes:
        lost: What was not stored -> how often.
        end: How the run ends once the queue is empty; None while it goes on.
    """

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        # Reentrant: a signal handler or the garbage collector may log in the middle of a call.
        self._condition = threading.Condition(threading.RLock())
        self._records: deque[Record] = deque()
        self._most_bytes, self._bytes = most_bytes, 0
        # The first number at once: a run of a second that is killed then tells its step.
        self._is_urgent, self._is_first = False, True
        self.lost: Counter[str] = Counter()
        self.end: RunEnd | None = None

    def put(self, record: Record) -> str:
        """Add a record, and return what was lost for lack of room, as words; empty for nothing.

        A set of embeddings takes the room of a waiting one of its split; what fits nowhere is left out.
        """
        with self._condition:
            size = record.size
            lost_kind = "" if self._bytes + size <= self._most_bytes else self._make_room(record)
            if self._bytes + size <= self._most_bytes:
                self._records.append(record)
                self._bytes += size
            else:
                lost_kind = self._count_lost(record)
            if self._is_first or not isinstance(record, LoggedNumbers) or 2 * self._bytes > self._most_bytes:
                self._is_urgent, self._is_first = True, False
                self._condition.notify()
        return lost_kind

    def close(self, end: RunEnd) -> None:
        """Say how the run ends; the first one who says it counts."""
        with self._condition:
            self.end = self.end or end
            self._is_urgent = True
            self._condition.notify()

    def take(self, wait_s: float) -> list[Record]:
        """Return the records up to the next set of embeddings, after `wait_s` seconds, or at once if there is need."""
        with self._condition:
            if not self._is_urgent:
                self._condition.wait(wait_s)
            taken: list[Record] = []
            while self._records and not (taken and isinstance(taken[-1], EmbeddingSet)):
                taken.append(self._records.popleft())
            self._bytes -= sum(record.size for record in taken)
            self._is_urgent = bool(self._records)
        return taken

    def _make_room(self, record: Record) -> str:
        """Drop the waiting set of the same split, which a newer one makes needless."""
        for waiting in self._records:
            if isinstance(record, EmbeddingSet) and isinstance(waiting, EmbeddingSet) and waiting.split == record.split:
                self._records.remove(waiting)
                self._bytes -= waiting.size
                return self._count_lost(waiting)
        return ""

    def _count_lost(self, record: Record) -> str:
        lost_kind, count = lost_with(record)
        self.lost[lost_kind] += count
        return lost_kind


def lost_with(record: Record) -> tuple[str, int]:
    """Return what is not logged where a record is lost, as words, and how much of it."""
    if isinstance(record, LoggedNumbers):
        return "numbers", len(record.values)
    return "sets of embeddings" if isinstance(record, EmbeddingSet) else "checkpoints and settings", 1
