"""Classes in sentences: the caption of a class, the sentence that captions of classes share, and labels of captions."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import takewhile
from typing import Final

import numpy as np
from jaxtyping import Bool

from trainer.analysis.cluster_words import MOST_READ, words_of
from trainer.analysis.sampling import at_most

PLAIN_TEMPLATE: Final = "a photo of a(n) {}."
"""What is asked where nothing says which sentence a model has learned."""

MOST_NAMES: Final = 40
"""As many distinct captions are labels themselves if they are names; else their commonest words are."""
_LONGEST_NAME: Final = 3
"""Words of a caption that is a name."""
MOST_WORDS: Final = 12

_READ: Final = 1_000
"""Pairs at most that templates are sought in."""
_MOST_TEMPLATES: Final = 100
_LEAST_SHARE: Final = 0.9
"""Of the pairs, that sentences have to fit to be called the learned ones; fewer are free captions."""
_LEAST_GAIN: Final = 0.005
"""Share of the pairs that a sentence has to fit to be one of several."""

_VOWEL: Final = re.compile(
    r"(?!uni|eu|one\b|us[ae]|ur[aiou]|ut[ei]|uk)[aeiou]|hour|honest|heir|8|1[18](?!\d)", re.IGNORECASE
)
"""Beginnings of English names and numbers that are spoken with a vowel."""
_SINGULAR: Final = re.compile(
    r".*(ss|us|is|os|ops|ois)|yellowlegs|.*pyrenees|gas|atlas|canvas|pancreas|christmas|.*lens|series|species|news"
)
"""Words in s that are no plural."""
_OF: Final = re.compile(r"\w+ of ", re.IGNORECASE)
_ARTICLE: Final = re.compile(r"\b(an?) \{\}")


def captioned(template: str, name: str) -> str:
    """Return the caption of a class: its name in place of `{}`, and for `a(n)` a, an, or nothing before many."""
    if _is_plural(name):
        return template.replace("a(n) ", "").replace("{}", name)
    plain = unicodedata.normalize("NFD", name)
    return template.replace("a(n)", "an" if _VOWEL.match(plain) else "a").replace("{}", name)


def learned_templates(captions: Sequence[str], labels: Sequence[str], *, stated: str = "") -> tuple[str, ...]:
    """Return the sentences that captions of classes are made by, the commonest first; empty for free captions.

    Args:
        captions: One a pair.
        labels: The class of each pair; pairs without one say nothing.
        stated: The template that the data's settings name; it is taken where the captions are made by it.

    Returns:
        Sentences that word several classes each and nine tenths of the labeled pairs together, of a sample of 1,000. A
        label has to stand in its caption as a word of its own.
    """
    rows = [row for row, label in enumerate(labels) if label]
    pairs = [(captions[rows[at]], labels[rows[at]]) for at in at_most(len(rows), _READ)]
    if stated and pairs and _fitting(stated, pairs).mean() >= _LEAST_SHARE:
        return (stated,)
    literal = Counter(template for caption, label in pairs if (template := _without(caption, label)))
    likely = [template for template, _ in literal.most_common(_MOST_TEMPLATES)]
    candidates = list(dict.fromkeys([*likely, *(_ARTICLE.sub("a(n) {}", template) for template in likely)]))
    fits = {template: _fitting(template, pairs) for template in candidates}
    names = np.array([label for _, label in pairs])
    fits = {template: fit for template, fit in fits.items() if len(set(names[fit])) > 1}
    chosen, rest = [], np.ones(len(pairs), bool)
    while fits:
        best = max(fits, key=lambda template: int((fits[template] & rest).sum()))
        worded = fits.pop(best) & rest
        if worded.sum() < max(2, _LEAST_GAIN * len(pairs)):
            break
        chosen.append(best)
        rest &= ~worded
    return tuple(chosen) if chosen and rest.mean() <= 1 - _LEAST_SHARE else ()


def named_in_captions(captions: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the names that captions put into one sentence, and the sentence: `dress` and `a photo of a(n) {}`.

    Captions share their first or last words; what is left, without its article, is a name of at most three words, and
    there are 2 to 40, the commonest first. Of more than 50,000 captions a sample is read. Both are empty for other
    captions.
    """
    distinct = _distinct(captions)
    words = [caption.rstrip(".").split() for caption in distinct]
    first = _shared(words)
    last = _shared([rest[first:][::-1] for rest in words])
    rests = (" ".join(rest[first : len(rest) - last]) for rest in words)
    names = [re.sub(r"^(an?|the) ", "", rest, flags=re.IGNORECASE) for rest in rests]
    are_names = all(0 < len(name.split()) <= _LONGEST_NAME for name in names) and len({*names}) == len(names)
    if not (first or last) or not are_names or not 2 <= len(names) <= MOST_NAMES:
        return (), ()
    templates = learned_templates(distinct, names)
    return (tuple(names), templates) if templates else ((), ())


def caption_labels(captions: Sequence[str], read_words: Mapping[str, int] | None = None) -> tuple[str, ...]:
    """Return labels to choose from for a model of captions: the captions where they are a few names, else their words.

    Up to 40 distinct captions of at most three words are the labels, the commonest first. Else labels are the 12 words,
    without numbers and stop words, in most distinct captions; of these those in most training captions come first, and
    then those that captions begin with. Words of more than half of them tell nothing apart and are left out, as are
    those of one caption alone where other words are left. Captions without such words are labels as they stand, at
    most 12. Of more than 50,000 captions a sample is read. Empty without two captions.

    Args:
        read_words: Of the training captions, and how many hold each, where they are known: no others are labels.
    """
    distinct = _distinct(captions)
    if len(distinct) <= MOST_NAMES and all(len(caption.split()) <= _LONGEST_NAME for caption in distinct):
        return tuple(distinct) if len(distinct) > 1 else ()
    words = [list(dict.fromkeys(words_of(caption))) for caption in distinct]
    counts = Counter(word for each in words for word in each)
    # Of the latest places in a caption first, so that the earliest one stays.
    first = {
        word: at for at, word in sorted(((at, word) for each in words for at, word in enumerate(each)), reverse=True)
    }
    seen = Counter[str]()
    for text, times in (read_words or counts).items():
        seen.update(dict.fromkeys(words_of(text), times))
    telling = {word: count for word, count in counts.items() if count <= len(distinct) / 2 and word in seen}
    repeated = {word: count for word, count in telling.items() if count > 1}
    ranked = repeated if len(repeated) > 1 else telling
    labels = tuple(sorted(ranked, key=lambda word: (-ranked[word], -seen[word], first[word]))[:MOST_WORDS])
    as_they_stand = tuple(distinct[at] for at in at_most(len(distinct), MOST_WORDS))
    return next((some for some in (labels, as_they_stand) if len(some) > 1), ())


def _shared(captions: Sequence[Sequence[str]]) -> int:
    """Return with how many equal words these captions begin."""
    return sum(1 for _ in takewhile(lambda same: len({*same}) == 1, zip(*captions)))


def _distinct(captions: Sequence[str]) -> list[str]:
    """Return the distinct captions, the commonest first, as often as each other in their order."""
    read = (" ".join(captions[at].split()) for at in at_most(len(captions), MOST_READ))
    return [caption for caption, _ in Counter(filter(None, read)).most_common()]


def _fitting(template: str, pairs: Sequence[tuple[str, str]]) -> Bool[np.ndarray, " n"]:
    return np.array([captioned(template, label) == caption for caption, label in pairs], bool)


def _without(caption: str, label: str) -> str:
    """Return the caption with `{}` in place of its label; empty where the label is no word of it."""
    match = re.search(rf"(?<!\w){re.escape(label)}(?!\w)", caption)
    rest = "" if match is None else f"{caption[: match.start()]}{{}}{caption[match.end() :]}"
    return rest if rest.count("{}") == 1 else ""


def _is_plural(name: str) -> bool:
    """Return whether an English name is one of many things: jeans, but no pair of jeans, glass or bus."""
    last = re.sub(r"\s*\(.*", "", name.lower()).split()[-1:]
    word = last[0] if last else ""
    return (
        len(word) > 3
        and word.endswith("s")
        and word.isalpha()
        and not _SINGULAR.fullmatch(word)
        and not _OF.match(name)
    )
