"""Read the file that a run of Weights & Biases writes on its own computer (`run-ID.wandb`), in the helper process.

Its records are messages of Protocol Buffers in the log format of LevelDB: blocks of 32 KiB, in which each part of a
record follows its checksum, length and kind. Neither needs a library here: a message is numbers, texts and messages,
each after its number and length (protobuf.dev/programming-guides/encoding).
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from trainer.untrusted.bounded import Unreadable
from trainer.untrusted.files import parse_json, spelled

_BEGIN: Final = b":W&B"
_BLOCK: Final = 1 << 15
_HEADER: Final = 7
_WHOLE, _FIRST, _LAST = 1, 2, 4
_MOST_RECORD: Final = 4 << 20
_MOST_DEPTH: Final = 8
_MOST_WORDS: Final = 200
_HISTORY, _CONFIG, _RUN = 2, 5, 17
"""Numbers of the fields of a record."""
_RUN_ID, _RUN_CONFIG, _RUN_NAME = 1, 4, 8
_KEY, _NESTED_KEY, _BOOLEAN, _INTEGER, _NUMBER, _JSON = 1, 2, 4, 5, 6, (8, 16)


@dataclass
class WandbFileReading:
    """How much of a file was read.

    Attributes:
        size, read: Bytes of the file, and of the records that were whole.
        damaged: Parts that were left out.
    """

    size: int = 0
    read: int = 0
    damaged: int = 0


def run_and_history(path: Path) -> tuple[dict[str, Any], Iterator[dict[str, Any]], WandbFileReading]:
    """Return `id`, `name` and `settings` of the run, an iterator of what it logged, a record a step, and its state.

    What is damaged is left out up to the next block of 32 KiB, as Weights & Biases does.

    Raises:
        Unreadable: It is no such file.
    """
    reading = WandbFileReading()
    records = _records(path, reading)
    facts: dict[str, Any] = {"id": "", "name": "", "settings": {}}
    first: list[bytes] = []
    for field, content in records:
        if field == _HISTORY:
            first.append(content)
            break
        if field == _RUN:
            _describe(facts, content)
        elif field == _CONFIG:
            facts["settings"] |= _settings(content)
    return facts, _logged(first, records), reading


def _logged(first: list[bytes], records: Iterator[tuple[int, bytes]]) -> Iterator[dict[str, Any]]:
    """Yield the history; other records are empty, so that each takes its part of the time that is allowed."""
    for content in first:
        yield _row(content)
    for field, content in records:
        yield _row(content) if field == _HISTORY else {}


def _row(content: bytes) -> dict[str, Any]:
    """Return the items of a record of the history, with its step."""
    steps = (dict(_fields(held)).get(1) for number, held in _fields(content) if number == 2 and isinstance(held, bytes))
    step = next(steps, None)
    return ({"_step": step} if isinstance(step, int) else {}) | _items(content)


def _describe(facts: dict[str, Any], content: bytes) -> None:
    for number, value in _fields(content):
        if isinstance(value, bytes) and number == _RUN_CONFIG:
            facts["settings"] |= _settings(value)
        elif isinstance(value, bytes) and number in (_RUN_ID, _RUN_NAME):
            facts["id" if number == _RUN_ID else "name"] = _words(value)


def _settings(content: bytes) -> dict[str, str]:
    """Return names and words of settings; those that begin with `_` are its own."""
    items = _items(content)
    return {
        spelled(name[:_MOST_WORDS]): spelled(value if isinstance(value, str) else json.dumps(value))[:_MOST_WORDS]
        for name, value in items.items()
        if not name.startswith("_")
    }


def _items(content: bytes) -> dict[str, Any]:
    """Return the items of a message by their names, nested as they are named; what is no value is left out."""
    items: dict[str, Any] = {}
    for number, item in _fields(content):
        if number != 1 or not isinstance(item, bytes):
            continue
        keys: list[str] = []
        value: Any = None
        for part, held in _fields(item):
            if part in (_KEY, _NESTED_KEY) and isinstance(held, bytes):
                keys.append(_words(held))
            else:
                value = _value(part, held, value)
        if keys and len(keys) <= _MOST_DEPTH:
            _put(items, keys, value)
    return items


def _put(items: dict[str, Any], keys: list[str], value: Any) -> None:
    for key in keys[:-1]:
        inner = items.setdefault(key, {})
        if not isinstance(inner, dict):
            return
        items = inner
    items[keys[-1]] = value


def _value(part: int, held: int | bytes, before: Any) -> Any:
    """Return the value of a part of an item; `before` if it is none."""
    if part in _JSON and isinstance(held, bytes):
        try:
            return parse_json(held.decode("utf-8", "replace"))
        except ValueError:
            return None
    if part == _NUMBER and isinstance(held, bytes) and len(held) == 8:
        return struct.unpack("<d", held)[0]
    if part == _INTEGER and isinstance(held, int):
        return (held >> 1) ^ -(held & 1)
    return bool(held) if part == _BOOLEAN else before


def _words(held: bytes) -> str:
    return held.decode("utf-8", "replace")[:_MOST_WORDS]


def _fields(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Yield number and value of the fields of a message; what follows one that is cut off is left out."""
    at = 0
    while at < len(message):
        tag, at = _varint(message, at)
        kind = tag & 7
        if kind == 0:
            value, at = _varint(message, at)
            yield tag >> 3, value
            continue
        if kind == 2:
            size, at = _varint(message, at)
        elif kind in (1, 5):
            size = 8 if kind == 1 else 4
        else:
            return
        if size > len(message) - at:
            return
        yield tag >> 3, message[at : at + size]
        at += size


def _varint(message: bytes, at: int) -> tuple[int, int]:
    """Return a number of seven bits a byte, and where it ends: the end of the message if it is none."""
    value = 0
    for position in range(at, min(at + 10, len(message))):
        value |= (message[position] & 127) << 7 * (position - at)
        if message[position] < 128:
            return value, position + 1
    return 0, len(message)


def _records(path: Path, reading: WandbFileReading) -> Iterator[tuple[int, bytes]]:
    """Yield the number and content of the field of each record; a record that is too long is left out."""
    for parts in _parts(path, reading):
        if sum(map(len, parts)) > _MOST_RECORD:
            reading.damaged += 1
            yield 0, b""
            continue
        fields = ((number, held) for number, held in _fields(b"".join(parts)) if isinstance(held, bytes))
        yield next((numbered for numbered in fields if numbered[0] in (_HISTORY, _CONFIG, _RUN)), (0, b""))


def _parts(path: Path, reading: WandbFileReading) -> Iterator[list[bytes]]:
    """Yield the parts of each record.

    Raises:
        Unreadable: The file begins otherwise.
    """
    with path.open("rb") as file:
        reading.size = file.seek(0, 2)
        file.seek(0)
        block, start = file.read(_BLOCK), _HEADER
        if not block.startswith(_BEGIN):
            raise Unreadable(f"{path.name} does not begin as a file of Weights & Biases. Export its history as CSV.")
        reading.read = _HEADER
        parts: list[bytes] = []
        while block:
            while start + _HEADER <= len(block):
                checksum, size, kind = struct.unpack_from("<IHB", block, start)
                part = block[start + _HEADER : start + _HEADER + size]
                is_filling = not parts and checksum == size == kind == 0
                if is_filling or len(part) < size or zlib.crc32(part, zlib.crc32(bytes([kind]))) != checksum:
                    # Where the next part begins is known again at the next block.
                    reading.damaged += not is_filling
                    reading.read += (len(block) - start) * is_filling
                    parts = []
                    break
                start += _HEADER + size
                reading.read += _HEADER + size
                if parts or kind in (_WHOLE, _FIRST):
                    held = sum(map(len, parts)) <= _MOST_RECORD
                    parts.append(part if held else b"")
                    if kind in (_WHOLE, _LAST):
                        yield parts
                        parts = []
            else:
                is_torn = len(block) < _BLOCK and start < len(block)
                reading.damaged += is_torn
                reading.read += 0 if is_torn else len(block) - start
            block, start = file.read(_BLOCK), 0
        reading.damaged += bool(parts)
