"""Parse the labels and templates that a user types."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from msgspec import Struct

_LABEL: Final = re.compile(r'\s*"((?:[^"\n]|"")*)"\s*(?=[,\n]|$)|([^,\n]*)')
"""A label in quotes, as in CSV, or up to the next comma or line."""
MOST_LABELS: Final = 5_000
MOST_TEMPLATES: Final = 200
LONGEST: Final = 300
"""Characters of a label or template; models cut texts far earlier."""


class TextInput(Struct, frozen=True):
    """Valid entries in the order typed, and a note about ignored ones (empty if none)."""

    entries: tuple[str, ...]
    remark: str


def labels(text: str) -> TextInput:
    """Return the labels in `text`, separated by commas or newlines; unique and not empty.

    A label with a comma stands in quotes, in which a quote is written twice.
    """
    pieces, end = [], 0
    while end <= len(text) and (match := _LABEL.match(text, end)) is not None:
        piece = match[2] if match[1] is None else match[1].replace('""', '"')
        pieces.append(" ".join(piece.split()))
        end = match.end() + 1
    # A trailing separator is how people type, not an empty label.
    empty = sum(1 for i, piece in enumerate(pieces) if not piece and i < len(pieces) - 1)
    return _words([piece for piece in pieces if piece], empty, "label", MOST_LABELS, [])


def labels_text(entries: Iterable[str]) -> str:
    """Return the text that `labels` reads as these labels."""
    quoted = ('"' + entry.replace('"', '""') + '"' if re.search('[,"]', entry) else entry for entry in entries)
    return ", ".join(quoted)


def templates(text: str) -> TextInput:
    """Return the templates in `text`, one per line; unique, and only those with a placeholder for the label."""
    lines = [(i, " ".join(line.split())) for i, line in enumerate(text.split("\n"), 1)]
    without = [i for i, line in lines if line and "{}" not in line]
    remarks = []
    if without:
        which = f"line {without[0]} has" if len(without) == 1 else f"{len(without)} lines have"
        remarks = [f"{which} no {{}} where the label belongs"]
    return _words([line for _, line in lines if "{}" in line], 0, "template", MOST_TEMPLATES, remarks)


def _words(pieces: Iterable[str], empty: int, what: str, most: int, remarks: list[str]) -> TextInput:
    pieces = [piece[:LONGEST] for piece in pieces]
    unique = list(dict.fromkeys(pieces))
    if twice := len(pieces) - len(unique):
        remarks.append(_count(twice, f"double {what}"))
    if empty:
        remarks.append(_count(empty, f"empty {what}"))
    if len(unique) > most:
        remarks.append(f"only the first {most:,} are used")
    remark = ", ".join(remarks)
    return TextInput(tuple(unique[:most]), f"Left out: {remark}." if remark else "")


def _count(n: int, what: str) -> str:
    return f"{n} {what}{'' if n == 1 else 's'}"
