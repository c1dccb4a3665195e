"""Questions to the other computer: a JSON line there; a JSON line and so many bytes back.

`serve` is the end that answers, `Channel` the one that asks. An answer that is late, cut off, or to another question
ends the channel: what was on its way is asked for again on a new one.
"""

from __future__ import annotations

import base64
import json
import queue
import threading
import time
from collections.abc import Callable, Mapping
from typing import IO, Any, BinaryIO, Final

from trainer.errors import UserError
from trainer.places.remote_host import OutOfReach, PlaceError
from trainer.places.source import MOST_DOCUMENT, Chunk, record
from trainer.untrusted import files as untrusted_files

_LONGEST_QUESTION: Final = 8 << 20
_LONGEST_HEAD: Final = 1 << 20
_LONGEST_ANSWER: Final = MOST_DOCUMENT
_AT_ONCE: Final = 1 << 16
ANSWER_S: Final = 60.0
"""How long an answer may take before the place counts as out of reach."""

Answer = Callable[[Mapping[str, Any]], tuple[dict[str, Any], bytes]]


def serve(answer: Answer, source: BinaryIO, sink: BinaryIO) -> None:
    """Answer every question of `source` on `sink` until it ends; a sentence for what cannot be done."""
    while line := source.readline(_LONGEST_QUESTION):
        number, content = 0, b""
        try:
            question = record(line)
            number = int(question.get("id", 0))
            head, content = answer(question)
        except UserError as error:
            head = {"error": str(error)}
        except Exception as error:  # told to the one who asks: nobody else looks here
            head = {"error": f"The question cannot be answered: {type(error).__name__}: {error}."}
        head |= {"id": number, "bytes": len(content)}
        sink.write(json.dumps(head).encode() + b"\n" + content)
        sink.flush()


class Channel:
    """The asking end, over two streams of a process."""

    def __init__(
        self, sink: IO[bytes], source: IO[bytes], why_ended: Callable[[], str], close: Callable[[], None]
    ) -> None:
        self._sink, self._why, self._close = sink, why_ended, close
        self._number, self._rest, self._broken = 0, bytearray(), False
        self._parts: queue.Queue[bytes] = queue.Queue(maxsize=64)
        self._closed = threading.Event()
        threading.Thread(target=self._listen, args=(source,), name="place", daemon=True).start()

    def ask(self, what: str, *, wait_s: float = ANSWER_S, **values: Any) -> tuple[dict[str, Any], bytes]:
        """Ask a question and return the answer's values and bytes.

        Raises:
            OutOfReach: There is no answer in time, or none that can be one.
            PlaceError: The other computer cannot do it; the message is its sentence.
        """
        if self._broken:
            raise OutOfReach(self._why())
        self._number += 1
        deadline = time.monotonic() + wait_s
        try:
            head, content = self._answer({"id": self._number, "what": what, **values}, deadline)
        except BaseException:
            self._broken = True
            self.close()
            raise
        if "error" in head:
            raise PlaceError(untrusted_files.spelled(str(head["error"])[:1_000]))
        return head, content

    def close(self) -> None:
        """End the channel."""
        self._closed.set()
        self._close()

    def _answer(self, question: dict[str, Any], deadline: float) -> tuple[dict[str, Any], bytes]:
        try:
            self._sink.write(json.dumps(question).encode() + b"\n")
            self._sink.flush()
        except (OSError, ValueError) as error:
            raise OutOfReach(self._why()) from error
        head = self._record(self._line(deadline))
        count = head.get("bytes")
        if head.get("id") != question["id"] or type(count) is not int or not 0 <= count <= _LONGEST_ANSWER:
            raise OutOfReach("The other computer answered another question.")
        while len(self._rest) < count:
            self._more(deadline)
        content = bytes(self._rest[:count])
        del self._rest[:count]
        return head, content

    def _record(self, line: bytes) -> dict[str, Any]:
        try:
            return record(line)
        except PlaceError as error:
            raise OutOfReach(f"{error} {self._why()}") from error

    def _line(self, deadline: float) -> bytes:
        while (end := self._rest.find(b"\n")) < 0:
            if len(self._rest) > _LONGEST_HEAD:
                raise OutOfReach("The other computer answers without an end.")
            self._more(deadline)
        line = bytes(self._rest[:end])
        del self._rest[: end + 1]
        return line

    def _more(self, deadline: float) -> None:
        try:
            part = self._parts.get(timeout=max(0.0, deadline - time.monotonic()))
        except queue.Empty:
            raise OutOfReach("The other computer does not answer.") from None
        if not part:
            raise OutOfReach(self._why())
        self._rest += part

    def _listen(self, source: IO[bytes]) -> None:
        read = getattr(source, "read1", source.read)
        while True:
            try:
                part = read(_AT_ONCE)
            except (OSError, ValueError):
                part = b""
            while not self._closed.is_set():
                try:
                    self._parts.put(part, timeout=1.0)
                    break
                except queue.Full:
                    continue
            if not part or self._closed.is_set():
                return


class ChannelSource:
    """A run folder at the other end of a channel."""

    def __init__(self, channel: Channel, run: int) -> None:
        self._channel, self._run = channel, run

    def state(self) -> dict[str, Any]:
        """Return the run's `run.json` with the columns of this moment."""
        return record(self._channel.ask("state", run=self._run)[1])

    def journal(self, offset: int, digest: str) -> Chunk:
        """Return the journal from `offset` on, or from its beginning if that is another one."""
        return _chunk(*self._channel.ask("journal", run=self._run, offset=offset, digest=digest))

    def folders(self) -> dict[str, str]:
        """Return the names of snapshots and checkpoints that are whole, with the SHA-256 of their manifests."""
        answer = record(self._channel.ask("folders", run=self._run)[1])
        return {name: digest for name, digest in answer.items() if isinstance(digest, str)}

    def read(self, name: str, offset: int) -> Chunk:
        """Return a part of a file of the run's folder."""
        return _chunk(*self._channel.ask("read", run=self._run, name=name, offset=offset))

    def ask(self, what: str) -> None:
        """Send the trainer a request; once this returns, it is in the row there."""
        self._channel.ask("ask", run=self._run, request=what)


def _chunk(head: Mapping[str, Any], content: bytes) -> Chunk:
    offset = head.get("offset")
    if type(offset) is not int or offset < 0:
        raise OutOfReach("The other computer answered another question.")
    return Chunk(offset, content)


def packed(question: Mapping[str, Any]) -> str:
    """Return a question as one word of a command line."""
    return base64.urlsafe_b64encode(json.dumps(question).encode()).decode()


def unpacked(word: str) -> dict[str, Any]:
    """Return the question of a word.

    Raises:
        PlaceError: It is none.
    """
    try:
        return record(base64.urlsafe_b64decode(word.encode("ascii", "replace")))
    except ValueError as error:
        raise PlaceError(f"This is not a question: {error}.") from error
