"""The door to the terminal: what commands print has no signs that act on it, whoever wrote the texts.

A terminal obeys escapes: they hide lines, write elsewhere, set the title, fill the clipboard. Names, tags, notes, paths
and captions may be a stranger's, so nothing is printed past this module (`tests/rules/test_one_output.py`).
"""

from __future__ import annotations

import sys
import traceback
from types import TracebackType
from typing import Final

from trainer.untrusted.files import spelled

_KEPT: Final = "\n\t"


def say(text: object = "", *, error: bool = False, end: str = "\n", flush: bool = False) -> None:
    """Print a text with all but line ends and tabs spelled; to standard error, at once, if `error`."""
    print(spelled(str(text), keep=_KEPT), end=end, file=sys.stderr if error else sys.stdout, flush=flush or error)


def say_json(text: str, *, flush: bool = False) -> None:
    """Print a JSON document, whose values stay the same: what a terminal might act on is spelled as JSON spells it."""
    print("".join(c if c.isprintable() or c in _KEPT else _escaped(c) for c in text), flush=flush)


def say_progress(share: float, note: str) -> None:
    """Print how far a command is, in the line of a terminal where that was printed before."""
    print(f"\r{100 * share:3.0f} % {spelled(note):<40}", end="" if share < 1 else "\n", file=sys.stderr, flush=True)


def say_traceback(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Print what an error that is a bug says: the hook of a command."""
    say("".join(traceback.format_exception(kind, error, trace)), error=True, end="")


def _escaped(sign: str) -> str:
    units = sign.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[start] << 8 | units[start + 1]:04x}" for start in range(0, len(units), 2))
