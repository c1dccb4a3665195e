"""The server loop: JSON Lines requests and responses on two streams, one at a time, each cancellable."""

from __future__ import annotations

import json
import os
import queue
import sys
import threading
import time
import traceback
from collections.abc import Callable
from typing import BinaryIO, Final

from trainer.errors import UserError, reason_words
from trainer.inference.model_cache import AnswerError
from trainer.messages import Cancel, Failure, MessageError, Question, answer_line, decode, error_line, progress_line

PROGRESS_EVERY_S: Final = 0.1

Answer = Callable[[Question, Callable[[float, str], None]], object]


class RequestCancelled(Exception):
    """The current request was canceled."""


class _Inbox:
    """Requests in order, read on a separate thread so that a cancellation is seen immediately."""

    def __init__(self, source: BinaryIO) -> None:
        self.lines: queue.Queue[tuple[int, Question | Failure] | None] = queue.Queue()
        self._source = source
        self._cancelled: set[int] = set()
        self._open: set[int] = set()
        self._lock = threading.Lock()
        threading.Thread(target=self._read, name="questions", daemon=True).start()

    def is_cancelled(self, number: int) -> bool:
        return number in self._cancelled

    def close(self, number: int) -> None:
        with self._lock:
            self._open.discard(number)
            self._cancelled.discard(number)

    def _read(self) -> None:
        parent = os.getppid()
        for raw in self._source:
            line = raw.decode("utf-8", errors="replace").strip()
            if line:
                self._take(line)
        self.lines.put(None)
        # The stream has ended. What was asked is still answered, unless the client itself is dead.
        while True:
            if os.getppid() != parent:
                os._exit(0)
            time.sleep(0.2)

    def _take(self, line: str) -> None:
        try:
            number, question = decode(line)
        except (MessageError, ValueError, OverflowError, RecursionError) as error:
            self.lines.put((_number_in(line), Failure("bad_question", f"Could not parse the request: {error}.")))
            return
        with self._lock:
            if not isinstance(question, Cancel):
                self._open.add(number)
            elif question.target in self._open:
                self._cancelled.add(question.target)
        if not isinstance(question, Cancel):
            self.lines.put((number, question))


def serve(answer: Answer, source: BinaryIO, sink: BinaryIO) -> None:
    """Answer every request of `source` on `sink` until `source` ends; errors and invalid lines do not end it.

    Args:
        answer: Answers one question; is given a function to tell its progress, which raises once it is cancelled.
        source: Lines of questions.
        sink: Receives lines of progress, answers and errors; nothing else may write to it.
    """
    inbox = _Inbox(source)

    def write(line: str) -> None:
        sink.write(line.encode() + b"\n")
        sink.flush()

    while (taken := inbox.lines.get()) is not None:
        number, question = taken
        if isinstance(question, Failure):
            write(error_line(number, question))
            continue
        write(_reply(answer, number, question, inbox, write))
        inbox.close(number)


def take_stdout() -> BinaryIO:
    """Reserve stdout for the protocol; other output, of Python or C, is redirected to stderr."""
    sys.stdout.flush()
    ours = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    return ours


def _reply(answer: Answer, number: int, question: Question, inbox: _Inbox, write: Callable[[str], None]) -> str:
    reported = 0.0

    def progress(share: float, note: str) -> None:
        nonlocal reported
        if inbox.is_cancelled(number):
            raise RequestCancelled
        if time.monotonic() - reported >= PROGRESS_EVERY_S:
            reported = time.monotonic()
            write(progress_line(number, round(share, 4), note))

    try:
        if inbox.is_cancelled(number):
            raise RequestCancelled
        return answer_line(number, answer(question, progress))
    except BrokenPipeError:
        raise
    except Exception as error:
        return error_line(number, _failure(error))


def _failure(error: Exception) -> Failure:
    if isinstance(error, RequestCancelled):
        return Failure("cancelled", "Cancelled.")
    if isinstance(error, AnswerError):
        return Failure(error.kind, error.message, error.next)
    if isinstance(error, UserError):
        return Failure("unreadable", str(error))
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":
        return Failure("memory", "There is not enough memory for this.", "Try fewer images, labels or points.")
    traceback.print_exc(file=sys.stderr)
    if isinstance(error, OSError) and error.errno is not None:
        return Failure("unreadable", reason_words(error))
    last = traceback.extract_tb(error.__traceback__)[-1]
    where = f"{os.path.basename(last.filename)}:{last.lineno}"
    return Failure(
        "bug", f"The request failed: {type(error).__name__}: {error} ({where}).", "This is a bug in the application."
    )


def _number_in(line: str) -> int:
    """Return the id of an invalid line if it can be read; else 0."""
    try:
        return int(json.loads(line)["id"])
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError):
        return 0
