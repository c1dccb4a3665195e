"""A streaming JSON reader: memory for one element at a time, however long the document is.

Parsed as a whole, a document takes up to thirty times its length (`[{},{},{},...`). So it is not: a list in it, or the
document itself where it is a list, is handed on an element at a time, and no element may be longer than `MOST_ELEMENT`.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO, Final, Literal

MOST_ELEMENT: Final = 4 << 20
"""Characters of an element of a list, or of a value beside the lists."""
_BLOCK: Final = 1 << 18
_GOES_ON: Final = 3
"""Characters that must be known behind a number: it may be cut off before `e+1`."""
_SPACE: Final = re.compile(r"[ \t\r\n]*")


@dataclass(frozen=True, slots=True)
class JsonElement:
    """Part of a document."""

    key: str  # Of the document's object that holds it; empty in a document that is a list.
    # `list`: here a list begins, whose elements follow; `element`: one of them; `value`: it is none of a list.
    kind: Literal["list", "element", "value"]
    value: Any = None  # What it is; None where a list begins.


def elements(file: BinaryIO, encoding: str = "utf-8-sig", *, most: int = MOST_ELEMENT) -> Iterator[JsonElement]:
    """Yield the parts of a document, in order.

    Raises:
        ValueError: It is no JSON, or an element is longer or deeper than is read; the message says where.
        OSError: It cannot be read.
    """
    text = _Text(file, encoding, most)
    try:
        first = text.peek()
        if first == "[":
            yield from _list(text, "")
        elif first == "{":
            yield from _object(text)
        else:
            yield JsonElement("", "value", text.value())
    except RecursionError as error:
        raise ValueError(f"it is too deep at character {text.place:,}") from error
    if text.peek():
        raise ValueError(f"something follows the document at character {text.place:,}")


def _list(text: _Text, key: str) -> Iterator[JsonElement]:
    text.take("[")
    yield JsonElement(key, "list")
    if text.peek() == "]":
        text.take("]")
        return
    while True:
        yield JsonElement(key, "element", text.value())
        if text.take(",]") == "]":
            return


def _object(text: _Text) -> Iterator[JsonElement]:
    text.take("{")
    if text.peek() == "}":
        text.take("}")
        return
    while True:
        if text.peek() != '"':
            raise ValueError(f"a name in quotes is expected at character {text.place:,}")
        key = text.value()
        text.take(":")
        if text.peek() == "[":
            yield from _list(text, key)
        else:
            yield JsonElement(key, "value", text.value())
        if text.take(",}") == "}":
            return


class _Text:
    """A text read on demand, whose parsed part is dropped."""

    def __init__(self, file: BinaryIO, encoding: str, most: int) -> None:
        self._file, self._most = file, most
        self._decoder = codecs.getincrementaldecoder(encoding)()
        self._parse = json.JSONDecoder().raw_decode
        self._text, self._at, self._before, self._ended = "", 0, 0, False

    @property
    def place(self) -> int:
        """The position of the parser, in characters."""
        return self._before + self._at

    def peek(self) -> str:
        """Return the next character that is not whitespace; empty at the end."""
        while True:
            self._at = _SPACE.match(self._text, self._at).end()  # type: ignore[union-attr]
            if self._at < len(self._text):
                return self._text[self._at]
            if self._ended:
                return ""
            self._read(_BLOCK)

    def take(self, expected: str) -> str:
        """Return the next character, which must be one of `expected`."""
        character = self.peek()
        if not character or character not in expected:
            choices = " or ".join(expected)
            raise ValueError(f"{choices} is expected at character {self.place:,}")
        self._at += 1
        return character

    def value(self) -> Any:
        """Parse the next value."""
        self.peek()
        while True:
            held = len(self._text) - self._at
            try:
                value, end = self._parse(self._text, self._at)
            except json.JSONDecodeError as error:
                if self._ended:
                    raise ValueError(f"{error.msg} at character {self._before + error.pos:,}") from None
                if held > self._most:
                    raise ValueError(f"a value at character {self.place:,} is longer than {self._most:,}") from None
                # It may only be cut off here.
                self._read(max(_BLOCK, held))
                continue
            if end > len(self._text) - _GOES_ON and not self._ended:
                self._read(_BLOCK)
                continue
            self._at = end
            return value

    def _read(self, count: int) -> None:
        block = self._file.read(count)
        self._ended = not block
        self._before += self._at
        self._text, self._at = self._text[self._at :] + self._decoder.decode(block, final=self._ended), 0
