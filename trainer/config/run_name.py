"""Names of runs: short visible text that displays unchanged in terminals and lists."""

from __future__ import annotations

import unicodedata
from typing import Final

from trainer.untrusted.files import spelled

MOST_LETTERS: Final = 200
_BANNED: Final = "/\\:\0\n\r\t"
_UNSEEN: Final = ("Cc", "Cf", "Cs", "Zl", "Zp")
_JOINERS: Final = "\u200c\u200d"
"""Within letters of some scripts, and within emoji; alone they are nothing."""


def name_fault(name: str) -> str:
    """Return why a text is not a valid run name, as a sentence; empty if it is valid."""
    if not name.strip() or any(sign in name for sign in _BANNED):
        return f"name {_shown(name)}: give the run a name without slashes, colons or line breaks."
    if any(map(_is_unseen, name)):
        return f"name {_shown(name)} contains invisible characters, such as control or direction marks: remove them."
    if not any(unicodedata.category(sign)[0] not in "ZC" for sign in name):
        return f"name {_shown(name)} has no visible characters: give the run a name with letters."
    if len(name) > MOST_LETTERS:
        return f"name {_shown(name)} has {len(name):,} characters: choose at most {MOST_LETTERS}."
    return ""


def repaired_name(name: str) -> str:
    """Return the name with invalid characters replaced, for existing runs."""
    if not name_fault(name):
        return name
    plain = "".join(" " if c in "\n\r\t" else "-" if c in "/\\:" else "" if _is_unseen(c) else c for c in name)
    plain = plain.strip()[:MOST_LETTERS].strip()
    return "run" if name_fault(plain) else plain


def _is_unseen(sign: str) -> bool:
    return unicodedata.category(sign) in _UNSEEN and sign not in _JOINERS


def _shown(name: str) -> str:
    return repr(spelled(name[:60]) + ("..." if len(name) > 60 else "")).replace("\\\\", "\\")
