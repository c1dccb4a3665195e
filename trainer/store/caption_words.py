"""The words of a run's training captions, counted once as it begins: what no caption holds, it never read."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct

from trainer.store.files import write_text
from trainer.untrusted import files as untrusted_files
from trainer.untrusted.documents import BadDocument, decode

FILE: Final = "caption_words.json"
MOST_CAPTIONS: Final = 1_000_000
"""More are not counted: nearly every word is among them."""
MOST_WORDS: Final = 200_000
MOST_LISTED: Final = 8
"""Of unseen words in one sentence."""
_WORD: Final = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")
_ARTICLE: Final = "a(n)"
"""Of a template: `a` or `an`, as the label wants it."""


class CaptionWords(Struct, frozen=True):
    """Words in lower case -> captions that hold them, and how many captions there are."""

    captions: int
    counts: dict[str, int]

    def unseen(self, text: str) -> tuple[str, ...]:
        """Return the words of a label or template that no caption holds, in order."""
        return tuple(word for word in dict.fromkeys(words_in(text)) if word not in self.counts)


def words_in(text: str) -> list[str]:
    """Return the words of a text in lower case, without the placeholders of a template."""
    return [match[0].casefold() for match in _WORD.finditer(text.replace(_ARTICLE, " ").replace("{}", " "))]


def counted_words(captions: Sequence[str]) -> dict[str, int]:
    """Return how many captions hold each word."""
    counts: Counter[str] = Counter()
    for caption, times in Counter(captions).items():
        counts.update(dict.fromkeys(words_in(caption), times))
    return counts


def write_caption_words(
    folder: Path, captions: Sequence[str], count: Callable[[Sequence[str]], dict[str, int]] = counted_words
) -> None:
    """Count the words of the captions into a file of the run's folder, unless it is there or they are too many."""
    file = folder / FILE
    if file.exists() or not 0 < len(captions) <= MOST_CAPTIONS:
        return
    counts = count(captions)
    if len(counts) <= MOST_WORDS:
        write_text(file, json.dumps({"captions": len(captions), "counts": counts}, ensure_ascii=False))


def read_caption_words(folder: Path) -> CaptionWords | None:
    """Return the words of a run's training captions; None where they were not counted or cannot be read."""
    try:
        return decode(folder / FILE, CaptionWords, untrusted_files.MOST_TOKENIZER)
    except (OSError, BadDocument):
        return None


def unseen_sentences(
    names: Iterable[str], vocabularies: Iterable[CaptionWords | None], texts: Sequence[str]
) -> list[str]:
    """Return a sentence for the runs whose training captions lack the same words of the texts."""
    runs: dict[str, list[str]] = {}
    for name, vocabulary in zip(names, vocabularies, strict=True):
        unseen = dict.fromkeys(word for text in texts for word in vocabulary.unseen(text)) if vocabulary else ()
        if vocabulary and unseen:
            listed = ", ".join([*unseen][:MOST_LISTED])
            listed += f" and {len(unseen) - MOST_LISTED} more" if len(unseen) > MOST_LISTED else ""
            runs.setdefault(f"0 of {vocabulary.captions:,} training captions contain {listed}.", []).append(name)
    return [f"{', '.join(names_of)}: {sentence}" for sentence, names_of in runs.items()]
