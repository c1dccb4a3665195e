"""Detect the encoding of a text by its bytes: UTF-8, else the one that yields words."""

from __future__ import annotations

import codecs
import itertools
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, Final

from trainer.untrusted.texts import open_text

NAMES: Final = {
    "cp1252": "Windows-1252",
    "cp1251": "Windows-1251 (Cyrillic)",
    "cp932": "Shift JIS (Japanese)",
    "euc_kr": "EUC-KR (Korean)",
    "gb18030": "GB 18030 (Chinese)",
}
"""Encodings that are tried, by what people call them."""

_BLOCK: Final = 1 << 20
_MOST_LOOKED_AT: Final = 64 << 20
"""Bytes that are looked at where a file is no UTF-8."""
_MOST_LINES: Final = 2_000
_MOST_LINE: Final = 1 << 16
_RUN: Final = re.compile(r"[^\x00-\x7f]+")
_MIXED: Final = re.compile(r"[A-Za-z][^\x00-\x7f]|[^\x00-\x7f][A-Za-z]")
_SIGNS: Final = frozenset("‘’‚“”„–—…€£§©®°·•«»¿¡´½¼¾²³×™ºª\u00a0")
"""Of Windows-1252, that stand in texts without being letters."""
_LIKELY: Final = 0.9


def encoding_of(path: Path) -> tuple[str, int]:
    """Return the encoding of a text, and the first line that is not UTF-8 (0 if all are).

    A text in UTF-8 of which some lines are damaged stays one; so does one that no encoding makes words of.

    Raises:
        OSError: It cannot be read.
    """
    with open_text(path) as file:
        if _is_utf8(file):
            return "utf-8", 0
    with open_text(path) as file:
        sound, damaged = _parted(file)
    if sound >= len(damaged):
        return "utf-8", 0
    return encoding_of_lines([line for _, line in damaged]), damaged[0][0]


def encoding_of_lines(lines: Sequence[bytes]) -> str:
    """Return the encoding in which non-UTF-8 lines are words; "utf-8" if none fits."""
    if _share(lines, "cp1252", _is_western) >= _LIKELY:
        return "cp1252"
    tests = {"cp932": _is_japanese, "cp1251": _is_cyrillic, "euc_kr": _is_korean, "gb18030": _is_chinese}
    return next((name for name, test in tests.items() if _share(lines, name, test) >= _LIKELY), "utf-8")


def _is_utf8(file: BinaryIO) -> bool:
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        while block := file.read(_BLOCK):
            decoder.decode(block)
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return False
    return True


def _parted(file: BinaryIO) -> tuple[int, list[tuple[int, bytes]]]:
    """Return the number of lines with non-ASCII UTF-8, and (number, line) of invalid ones."""
    sound, looked_at = 0, 0
    damaged: list[tuple[int, bytes]] = []
    for number, line in enumerate(_lines(file), 1):
        looked_at += len(line)
        if looked_at > _MOST_LOOKED_AT or len(damaged) >= _MOST_LINES:
            break
        if line.isascii():
            continue
        try:
            line.decode("utf-8")
            sound += 1
        except UnicodeDecodeError:
            damaged.append((number, line))
    return sound, damaged or [(1, b"")]


def _lines(file: BinaryIO) -> Iterator[bytes]:
    """Yield lines, truncating long ones."""
    while line := file.readline(_MOST_LINE):
        rest = line
        while not rest.endswith(b"\n") and len(rest) == _MOST_LINE:
            rest = file.readline(_MOST_LINE)
        yield line.rstrip(b"\r\n")


def _share(lines: Sequence[bytes], encoding: str, test: Callable[[str], bool]) -> float:
    return sum(_fits(line, encoding, test) for line in lines) / max(1, len(lines))


def _fits(line: bytes, encoding: str, test: Callable[[str], bool]) -> bool:
    try:
        text = line.decode(encoding)
    except UnicodeDecodeError:
        return False
    return test(text)


def _is_western(text: str) -> bool:
    """Return whether accented letters occur singly or in twos among plain ones."""
    return all(_is_accent(text, run) for run in _RUN.finditer(text))


def _is_accent(text: str, run: re.Match[str]) -> bool:
    letters = run[0].strip("".join(_SIGNS))
    if not letters:
        return True
    beside = text[max(0, run.start() - 1) : run.start()] + text[run.end() : run.end() + 1]
    return len(letters) <= 2 and letters.isalpha() and any(letter.isalpha() for letter in beside)


def _letters(text: str) -> list[str]:
    return [letter for letter in itertools.chain(*_RUN.findall(text)) if letter.isalpha()]


def _mostly(letters: Iterable[str], low: str, high: str, share: float) -> bool:
    every = list(letters)
    return len(every) > 1 and sum(low <= letter <= high for letter in every) >= share * len(every)


def _is_japanese(text: str) -> bool:
    """Return whether the letters include full-width kana."""
    return _mostly(_letters(text), "\u3041", "\u30fe", 0.2) and _mostly(_letters(text), "\u3005", "\u9fff", 0.9)


def _is_cyrillic(text: str) -> bool:
    """Return whether the words are in lower case without Latin letters."""
    letters = _letters(text)
    if len(letters) < 3 or _MIXED.search(text):
        return False
    small = sum(unicodedata.category(letter) == "Ll" for letter in letters)
    return _mostly(letters, "\u0400", "\u045f", 0.95) and small >= 0.6 * len(letters)


def _is_korean(text: str) -> bool:
    return _mostly(_letters(text), "\uac00", "\ud7a3", 0.95)


def _is_chinese(text: str) -> bool:
    return _mostly(_letters(text), "\u4e00", "\u9fff", 0.95)
