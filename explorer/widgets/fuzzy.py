"""Fuzzy matching of typed letters against the entries of a list."""

from __future__ import annotations

LEAST_PER_LETTER = 2.0
"""Letters that begin words or follow each other score 2.5 and 3, others 0.5."""


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
    """Return `score`, or None where the letters are scattered over words that they do not begin."""
    value = score(typed, text)
    letters = sum(not letter.isspace() for letter in typed)
    return None if value is None or value < LEAST_PER_LETTER * letters else value


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
