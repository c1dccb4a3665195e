"""Format commands as shell lines: each word stays one word, and no character affects a terminal.

A terminal obeys control characters even within quotes: Ctrl+U takes the line back, Ctrl+J runs it. They are spelled.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterable
from typing import Final

ACTING: Final = "\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff"
"""Control characters, line ends, turns of direction and half letters, as a class of regular expressions."""
_ACTING: Final = re.compile(f"[{ACTING}]")
_POSIX: Final = os.name != "nt"
_PLAIN: Final = re.compile(r"--?[A-Za-z][A-Za-z0-9-]*|[A-Za-z0-9_/\\][A-Za-z0-9_./\\:+=-]*")
"""Words that PowerShell takes as they are."""


def quote(word: str, *, posix: bool = _POSIX) -> str:
    r"""Quote one word: `$'\x15'` escapes control characters in POSIX shells (bash, zsh), `[char]` in PowerShell.

    A word without such signs is what `shlex.quote` makes of it. A NUL, which no argument can hold, is spelled for good.
    """
    if not posix:
        return _powershell(word)
    if not _ACTING.search(word):
        return shlex.quote(word)
    return "$'" + "".join(map(_escaped, word)) + "'"


def join(arguments: Iterable[str], *, posix: bool = _POSIX) -> str:
    """Join the words to one line for a POSIX shell or PowerShell."""
    line = " ".join(quote(word, posix=posix) for word in arguments)
    # PowerShell takes a quoted first word for a text.
    return f"& {line}" if not posix and line.startswith(("'", "(")) else line


def script_line(arguments: Iterable[str]) -> str:
    """Join the words to one line that `sh` on another computer runs: no terminal sees it, so no character is spelled.

    `$'...'`, which spells control characters, means nothing to a plain `sh`; within its quotes they are harmless.
    """
    return shlex.join(arguments)


def split(line: str, *, posix: bool = _POSIX) -> list[str]:
    """Split a line that the user typed into words, without a shell.

    Raises:
        ValueError: A quotation is not closed.
    """
    return shlex.split(line, posix=posix)


def one_after_another(lines: Iterable[str]) -> str:
    """Join lines so that each runs after the previous one succeeds; PowerShell 5 cannot and runs all."""
    return (" && " if _POSIX else "; ").join(lines)


def _escaped(sign: str) -> str:
    if sign == "\0":
        return "\\\\x00"
    if sign in "\\'":
        return f"\\{sign}"
    # An interactive bash looks for `!` in the line before it looks at quotes.
    if sign != "!" and not _ACTING.match(sign):
        return sign
    return "".join(f"\\x{byte:02x}" for byte in _bytes(sign))


def _bytes(sign: str) -> bytes:
    try:
        return sign.encode("utf-8", "surrogateescape")  # a byte of a name that is no UTF-8
    except UnicodeEncodeError:
        return sign.encode("utf-8", "surrogatepass")


def _powershell(word: str) -> str:
    if _PLAIN.fullmatch(word):
        return word
    # Its typographic quotes end a text, too.
    parts = [re.sub("(['‘’‚‛])", r"\1\1", part) for part in _ACTING.split(word)]
    acting = _ACTING.findall(word)
    if not acting:
        return f"'{parts[0]}'"
    pieces = [f"'{parts[0]}'"]
    for sign, part in zip(acting, parts[1:], strict=True):
        pieces += [f"[char]{ord(sign)}", f"'{part}'"]
    return f"({' + '.join(pieces)})"
