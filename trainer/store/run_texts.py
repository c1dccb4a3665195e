"""Texts of runs that a person or a file gives: what a command refuses is cleaned where a file of others is read."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping
from typing import Any, Final

MOST_TAGS: Final = 40
SETTINGS: Final = "imported_settings"
"""Fact of a run that another program trained: its settings there, names and texts."""
MOST_SETTINGS: Final = 200
MOST_WORDS: Final = 200
"""Characters of the name and of the text of a setting."""
_TAG: Final = re.compile(r"[\w.+#@/-]{1,40}")
_ACTING: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""Control characters but tabs and line ends, direction marks, odd line ends, halves of characters."""
_OF_SEVERAL_LINES: Final = ("note", "reason")
_TEXTS: Final = (
    *_OF_SEVERAL_LINES,
    "preset",
    "label",
    "experiment",
    "arm",
    "data",
    "device",
    "slot",
    "phase",
    "metric",
)
"""Columns of a run's row that hold free texts; its name has a rule of its own."""


def is_tag(word: str) -> bool:
    """Return whether a word can be a tag: one of letters and digits, at most 40."""
    return _TAG.fullmatch(word) is not None and not word.startswith("-")


def acts(text: str) -> bool:
    """Return whether a terminal would act on a sign of the text, or show it in another order."""
    return _ACTING.search(text) is not None


def cleaned(text: str) -> str:
    """Return the text with the signs spelled that a terminal would act on."""
    return _ACTING.sub(lambda match: match[0].encode("unicode_escape", "surrogatepass").decode(), text)


def plain_settings(settings: Mapping[str, str]) -> dict[str, str]:
    """Return settings of another program as they are stored: a bounded number of bounded, cleaned texts."""
    chosen = itertools.islice(settings.items(), MOST_SETTINGS)
    return {cleaned(name[:MOST_WORDS]): cleaned(text[:MOST_WORDS]) for name, text in chosen}


def cleaned_columns(values: Mapping[str, Any], remarks: list[str]) -> dict[str, Any]:
    """Return columns of a run's row that a file tells, without tags and signs that no command would take.

    Args:
        values: Name -> value, each of the column's type.
        remarks: Gets a sentence for each column that was changed.
    """
    columns = dict(values)
    for name in _TEXTS:
        if isinstance(text := columns.get(name), str):
            plain = cleaned(text if name in _OF_SEVERAL_LINES else " ".join(text.split("\n")))
            if plain != text:
                remarks.append(f"its {name!r} held signs that act on a terminal; they are spelled out now.")
            columns[name] = plain
    if isinstance(tags := columns.get("tags"), str):
        valid_tags = [word for word in dict.fromkeys(tags.split()) if is_tag(word)][:MOST_TAGS]
        if valid_tags != tags.split():
            remarks.append("some of its tags cannot be tags and were left out.")
        columns["tags"] = " ".join(valid_tags)
    return columns
