"""Problems in the captions of a whole data set: duplicates, long texts, rare scripts."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

from trainer.config import TinyTowers
from trainer.data.byte_pairs import learned_pairs

_MOST: Final = 20_000
"""Different captions that are looked at, spread evenly."""
_HARDLY: Final = 0.5
"""Share of single bytes among the tokens of a caption from which its script is hardly known."""
_HIGH: Final = frozenset(map(chr, (*range(161, 173), *range(174, 256), *range(256 + 34, 256 + 68))))
"""Signs that stand for the bytes 128 to 255 in byte-level tokens; the others stand for ASCII."""
_SPECIAL: Final = 2
"""Start and end of a text take two tokens, padding and they three ids."""


def caption_notes(pairs: Iterable[tuple[str, str]], model: TinyTowers) -> list[str]:
    """Return messages about problems, each with its count; empty if there are none."""
    rows = Counter(pairs)
    captions: Counter[str] = Counter()
    for (_, caption), count in rows.items():
        captions[caption] += count
    return [*_twice(rows), *_tokens(captions, model)]


def _twice(rows: Counter[tuple[str, str]]) -> list[str]:
    again = sum(rows.values()) - len(rows)
    if not again:
        return []
    (image, caption), _ = next(entry for entry in rows.items() if entry[1] > 1)
    which = f"{again:,} rows repeat" if again > 1 else "1 row repeats"
    return [f"{which} an earlier one, picture and caption; the first: {_short(image)}, {_short(caption)}."]


def _tokens(captions: Counter[str], model: TinyTowers) -> list[str]:
    every = list(captions)
    step = -(-len(every) // _MOST) if every else 1
    looked_at = every[::step]
    byte_pairs = learned_pairs(looked_at, model.vocabulary - _SPECIAL - 1)
    of = "" if step == 1 else f" of the {len(looked_at):,} different ones that were checked"
    long = unknown = longest = 0
    scripts: Counter[str] = Counter()
    for caption, encoding in zip(looked_at, byte_pairs.encode_batch(looked_at), strict=True):
        count = 1 if of else captions[caption]
        tokens = encoding.tokens
        longest = max(longest, len(tokens))
        long += count * (len(tokens) > model.context_length - _SPECIAL)
        if sum(token in _HIGH for token in tokens) > _HARDLY * len(tokens):
            unknown += count
            scripts[_script(caption)] += 1
    notes = []
    if long:
        notes.append(
            f"{long:,} {_captions(long, of)} longer than the {model.context_length - _SPECIAL} tokens that the "
            f"text tower reads (context length {model.context_length}); the longest has {longest:,}. The rest is cut."
        )
    if unknown:
        notes.append(
            f"{unknown:,} {_captions(unknown, of)} in a script that a tokenizer of {model.vocabulary:,} tokens hardly "
            f"knows ({', '.join(name for name, _ in scripts.most_common(4))}): most of their tokens are single bytes. "
            "Choose a larger model.vocabulary."
        )
    return notes


def _captions(count: int, of: str) -> str:
    return f"caption{of} is" if count == 1 else f"captions{of} are"


def _script(caption: str) -> str:
    """Return the Unicode name of the script of most letters beyond ASCII."""
    letters: Sequence[str] = [letter for letter in caption if letter.isalpha() and not letter.isascii()]
    names = Counter(unicodedata.name(letter, "OTHER").split()[0].capitalize() for letter in letters)
    return names.most_common(1)[0][0] if names else "signs"


def _short(text: str) -> str:
    return text if len(text) <= 60 else f"…{text[-59:]}"
