"""The protocol: for any input, every request gets exactly one response and nothing ends the loop."""

import json
import os
import threading
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO

import pytest

from trainer.inference.model_cache import AnswerError
from trainer.messages import Cancel, EmbedTexts, Question, WarmUp, encode
from trainer.server.protocol import serve

Say = Callable[[str | bytes], None]


class Room:
    """Runs `serve` on a thread, with a pipe on each side."""

    def __init__(self, answer: Callable[..., dict[str, Any]]) -> None:
        self._in_read, self._in_write = (os.fdopen(fd, mode) for fd, mode in zip(os.pipe(), ("rb", "wb"), strict=True))
        self._out_read, self._out_write = (
            os.fdopen(fd, mode) for fd, mode in zip(os.pipe(), ("rb", "wb"), strict=True)
        )
        self.thread = threading.Thread(target=self._run, args=(answer, self._in_read, self._out_write), daemon=True)
        self.thread.start()

    def _run(self, answer: Callable[..., dict[str, Any]], source: BinaryIO, sink: BinaryIO) -> None:
        serve(answer, source, sink)
        sink.close()

    def say(self, line: str | bytes) -> None:
        self._in_write.write((line.encode() if isinstance(line, str) else line) + b"\n")
        self._in_write.flush()

    def hear(self) -> dict[str, Any]:
        return json.loads(self._out_read.readline())

    def end(self) -> bytes:
        """Close the input and return the remaining output."""
        self._in_write.close()
        rest = self._out_read.read()
        self.thread.join(90)
        self._out_read.close()
        return rest


@pytest.fixture
def room() -> Iterator[Room]:
    made = Room(_answer)
    yield made
    if made.thread.is_alive():
        made.end()


def _answer(question: Question, progress: Callable[[float, str], None]) -> dict[str, Any]:
    if isinstance(question, WarmUp):
        print("a stray line")
        return {"runs": list(question.runs)}
    assert isinstance(question, EmbedTexts)
    match question.texts[0]:
        case "long":
            for i in range(10_000_000):
                progress(i / 10_000_000, "counting")
        case "problem":
            raise AnswerError("no_checkpoint", "There is none.", "Wait.")
        case "memory":
            raise MemoryError
        case "bug":
            return {"nothing": 1 / 0}
    return {"text": question.texts[0]}


def _text(number: int, text: str) -> str:
    return encode(number, EmbedTexts(run=1, texts=(text,)))


def test_answers_come_in_the_order_of_the_questions(room: Room) -> None:
    for number in range(1, 6):
        room.say(_text(number, f"text {number} 猫"))
    answers = [room.hear() for _ in range(5)]
    assert answers == [{"id": n, "answer": {"text": f"text {n} 猫"}} for n in range(1, 6)]


@pytest.mark.parametrize(
    ("line", "number"),
    [
        ("not json", 0),
        (b"\xff\xfe\x00", 0),
        ("[1, 2]", 0),
        ('{"id": 8}', 8),
        ('{"id": 8, "ask": "dance"}', 8),
        ('{"id": 8, "ask": "embed_texts"}', 8),
        ('{"id": "eight", "ask": "warm_up"}', 0),
        ('{"id": 1e999, "ask": "warm_up"}', 0),
        ("[" * 200_000, 0),
    ],
)
def test_a_bad_line_is_answered_and_ends_nothing(room: Room, line: str | bytes, number: int) -> None:
    room.say(line)
    room.say(_text(9, "still here"))
    failure = room.hear()
    assert failure["id"] == number
    assert failure["error"]["kind"] == "bad_question"
    assert room.hear() == {"id": 9, "answer": {"text": "still here"}}


@pytest.mark.parametrize("kind", ["no_checkpoint", "memory", "bug"])
def test_an_error_becomes_a_failure_in_words(room: Room, kind: str) -> None:
    room.say(_text(1, {"no_checkpoint": "problem"}.get(kind, kind)))
    room.say(_text(2, "still here"))
    failure = room.hear()["error"]
    assert failure["kind"] == kind
    assert failure["message"].endswith((".", ")."))
    assert failure["next"]
    assert room.hear() == {"id": 2, "answer": {"text": "still here"}}


def test_cancelling_ends_the_question_under_way_and_one_in_the_queue(room: Room) -> None:
    room.say(_text(1, "long"))
    assert room.hear()["note"] == "counting"
    room.say(_text(2, "queued"))
    room.say(_text(3, "last"))
    for target in (2, 1, 77):
        room.say(encode(0, Cancel(target=target)))
    heard = [room.hear()]
    while "progress" in heard[-1]:
        heard.append(room.hear())
    heard += [room.hear(), room.hear()]
    assert [line["id"] for line in heard[-3:]] == [1, 2, 3]
    assert heard[-3]["error"]["kind"] == heard[-2]["error"]["kind"] == "cancelled"
    assert heard[-1]["answer"] == {"text": "last"}


def test_progress_is_told_at_most_ten_times_a_second(room: Room) -> None:
    room.say(_text(1, "long"))
    first, second = room.hear(), room.hear()
    assert 0 <= first["progress"] < second["progress"] <= 1
    room.say(encode(0, Cancel(target=1)))


def test_what_was_asked_is_answered_after_the_questions_end() -> None:
    room = Room(_answer)
    for number in (1, 2, 3):
        room.say(_text(number, "x"))
    assert [json.loads(line)["id"] for line in room.end().splitlines()] == [1, 2, 3]
    assert not room.thread.is_alive()
