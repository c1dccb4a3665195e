"""Minimal swaps of a caption: the same words, another binding. Imports no torch."""

from __future__ import annotations

import re
from typing import Final, Literal

from msgspec import Struct

from trainer.analysis.class_prompts import captioned

Kind = Literal["color", "relation", "order"]
KINDS: Final[dict[Kind, str]] = {"color": "Colors", "relation": "Relation", "order": "Subject and object"}
"""Kind of a swap -> its name."""

_COLORS: Final = (
    *("red", "orange", "yellow", "green", "turquoise", "blue", "purple", "pink", "white", "black"),
    *("gr[ae]y", "brown", "violet", "golden", "silver", "beige", "cyan"),
)
_OPPOSITES: Final = (
    ("to the left of", "to the right of"),
    ("left of", "right of"),
    ("above", "below"),
    ("over", "under"),
    ("on top of", "underneath"),
    ("in front of", "behind"),
    ("inside", "outside"),
    ("before", "after"),
)
_OPPOSITE_OF: Final = {a: b for pair in _OPPOSITES for a, b in (pair, pair[::-1])}
_COLOR: Final = re.compile(rf"\b(?:(an?) )?({'|'.join(_COLORS)})\b", re.IGNORECASE)
_RELATION: Final = re.compile(rf"\b({'|'.join(sorted(_OPPOSITE_OF, key=len, reverse=True))})\b", re.IGNORECASE)
_THING: Final = re.compile(r"(?:an?|the|one|two|three) (?:(?! (?:on|in|at|with|near|by|and)\b)[^,.;])+", re.IGNORECASE)
"""A noun phrase: an article and words up to a preposition or the end of the clause."""
_THING_AT_END: Final = re.compile(r"\b(?:an?|the|one|two|three) (?:(?!\b(?:an?|the|is|are)\b)[^,.;])+$", re.IGNORECASE)


class Swap(Struct, frozen=True):
    """A caption that is false of a picture whose caption it was made from."""

    kind: Kind  # What was exchanged.
    caption: str


def swaps(caption: str) -> tuple[Swap, ...]:
    """Return the minimal swaps that a caption allows, of each kind one at most.

    `color` exchanges its first two colors, `relation` turns a spatial or temporal relation into its opposite, and
    `order` exchanges what stands before and after it. Of captions of Scenes each is exactly another scene's caption;
    of free captions the rules see words alone, and a swap may happen to be true as well.

    After Winoground (Thrush et al., 2022, https://arxiv.org/abs/2204.03162), whose two captions have the same words.
    """
    made: dict[Kind, str] = {"color": _colors(caption), "relation": _relation(caption), "order": _order(caption)}
    return tuple(Swap(kind, text) for kind, text in made.items() if text and text != caption)


def _colors(caption: str) -> str:
    """Return the caption with its first two different colors exchanged, and the articles before them."""
    matches = list(_COLOR.finditer(caption))
    second = next((match for match in matches if match[2].lower() != matches[0][2].lower()), None)
    if second is None:
        return ""
    first = matches[0]
    begin, end = _worded(first[1], second[2]), _worded(second[1], first[2])
    return caption[: first.start()] + begin + caption[first.end() : second.start()] + end + caption[second.end() :]


def _worded(article: str | None, word: str) -> str:
    if not article:
        return word
    worded = captioned("a(n) {}", word)
    return worded.capitalize() if article[0].isupper() else worded


def _relation(caption: str) -> str:
    match = _RELATION.search(caption)
    if match is None:
        return ""
    return caption[: match.start()] + _OPPOSITE_OF[match[1].lower()] + caption[match.end() :]


def _order(caption: str) -> str:
    """Return the caption with the noun phrases before and after its relation exchanged."""
    match = _RELATION.search(caption)
    if match is None:
        return ""
    before, after = caption[: match.start()], caption[match.end() :].lstrip()
    verb = re.search(r"\s+(?:(?:is|are|stands?|sits?|lies?)\s+)?$", before, re.IGNORECASE)
    head, between = (before[: verb.start()], verb[0]) if verb else (before, "")
    subject, other = _THING_AT_END.search(head), _THING.match(after)
    if subject is None or other is None:
        return ""
    first, second = _as_begun(other[0], subject[0]), _as_begun(subject[0], other[0])
    return f"{head[: subject.start()]}{first}{between}{match[0]} {second}{after[other.end() :]}"


def _as_begun(text: str, like: str) -> str:
    return (text[0].upper() if like[0].isupper() else text[0].lower()) + text[1:]
