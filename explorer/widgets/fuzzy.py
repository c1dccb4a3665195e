"""Fuzzy matching of typed letters against the entries of a list."""

from __future__ import annotations


def score(typed: str, text: str) -> float | None:
    """Return how well `typed` matches `text`, higher is better; None if its letters do not occur in order.

    Letters that follow each other and letters at the start of a word count most; among equals the shorter text wins.
    """
    wanted = [c for c in typed.casefold() if not c.isspace()]
    inside = text.casefold()
    if not wanted:
        return 0.0
    best: float | None = None
    for start in (i for i, c in enumerate(inside) if c == wanted[0]):
        found = _from(start, wanted, inside)
        if found is not None and (best is None or found > best):
            best = found
    return None if best is None else best - len(text) / 1000


def _from(start: int, wanted: list[str], inside: str) -> float | None:
    total, place, previous = 0.0, start, -2
    for letter in wanted:
        place = inside.find(letter, place)
        if place < 0:
            return None
        starts_word = place == 0 or not inside[place - 1].isalnum()
        total += 3.0 if place == previous + 1 else 2.5 if starts_word else 0.5
        previous, place = place, place + 1
    return total
