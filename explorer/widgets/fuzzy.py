"""Fuzzy matching of typed letters against the entries of a list."""

from __future__ import annotations

from typing import Final

LEAST_INSIDE: Final = 3
"""Letters typed from which on they may stand in the midst of a word."""


def score(typed: str, text: str) -> float | None:
    """Return how well `typed` matches `text`, higher is better; None if its letters do not occur in order.

    Letters that follow each other and letters at the start of a word count most; among equals the shorter text wins.
    """
    letters = [c for c in typed.casefold() if not c.isspace()]
    inside = text.casefold()
    if not letters:
        return 0.0
    best: float | None = None
    for start in (i for i, c in enumerate(inside) if c == letters[0]):
        total = _from(start, letters, inside)
        if total is not None and (best is None or total > best):
            best = total
    return None if best is None else best - len(text) / 1000


def good_score(typed: str, text: str) -> float | None:
    """Return `score`, or None where letters are scattered: each run of them begins a word, or all stand together."""
    letters, inside = [letter for letter in typed.casefold() if not letter.isspace()], text.casefold()
    if len(letters) >= LEAST_INSIDE and "".join(letters) in inside:
        return score(typed, text)
    begins = {i for i in range(len(inside)) if inside[i].isalnum() and not (i and inside[i - 1].isalnum())}
    # Where the letters so far may end. A pattern with `.*` for each letter would try every way to spread them.
    ends = begins
    for number, letter in enumerate(letters):
        if number:
            ends = {end + 1 for end in ends} | {i for i in begins if i > min(ends)}
        ends = {i for i in ends if inside[i : i + 1] == letter}
        if not ends:
            return None
    return score(typed, text)


def _from(start: int, letters: list[str], inside: str) -> float | None:
    total, position, previous = 0.0, start, -2
    for letter in letters:
        position = inside.find(letter, position)
        if position < 0:
            return None
        starts_word = position == 0 or not inside[position - 1].isalnum()
        total += 3.0 if position == previous + 1 else 2.5 if starts_word else 0.5
        previous, position = position, position + 1
    return total
