"""At most N training pairs for a query, so that frequent subjects do not crowd out rare ones."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from trainer.data.pairs import DataError, Source
from trainer.untrusted import files as untrusted_files

_WORD: Final = re.compile(r"\w+")
MOST_BYTES: Final = 256 * 1024 * 1024
"""Of a list of queries: 500,000 of CLIP's kind have some 10 MB."""
LONGEST_QUERY: Final = 8
"""Words; longer queries are refused, because every run of that many words is looked up."""


@dataclass(frozen=True)
class BalancedPairs:
    """The pairs that are left."""

    sources: list[Source]  # In their order.
    pairs: int  # How many there were.
    queries: int  # That at least one pair matches.
    full: int  # Queries with more pairs than are taken.
    unmatched: int  # Pairs without any query, which are left out.

    @property
    def sentence(self) -> str:
        """What was done, for people."""
        left_out = f"{self.unmatched:,} pair{'s' * (self.unmatched != 1)} without any left out"
        return (
            f"Balanced by queries: {len(self.sources):,} of {self.pairs:,} training pairs are used; {self.full:,} of "
            f"{self.queries:,} queries have more pairs than are taken; {left_out}."
        )


def balanced(sources: Sequence[Source], most: int, queries: Iterable[str] | None) -> BalancedPairs:
    """Return the pairs that are among the first `most` of at least one query.

    The order is that of a hash of picture and caption, so a pair keeps its turn when others are added. A caption
    matches a query that it holds as whole words in a row, whatever their case. Radford et al., CLIP, 2021,
    https://arxiv.org/abs/2103.00020, section 2.2: up to 20,000 pairs for each of 500,000 queries.

    Args:
        sources: The training pairs.
        most: Pairs for a query.
        queries: One or more words each; None: every word of the captions.
    """
    query_words = None if queries is None else {tuple(_words(query)) for query in queries} - {()}
    longest = max(map(len, query_words), default=1) if query_words is not None else 1
    taken: dict[tuple[str, ...], int] = {}
    chosen: set[int] = set()
    unmatched = 0
    for row in sorted(range(len(sources)), key=lambda row: _turn(sources[row])):
        matched = _matched(_words(sources[row].caption), longest, query_words)
        unmatched += not matched
        for query in matched:
            taken[query] = taken.get(query, 0) + 1
        if any(taken[query] <= most for query in matched):
            chosen.add(row)
    left = [source for row, source in enumerate(sources) if row in chosen]
    return BalancedPairs(left, len(sources), len(taken), sum(count > most for count in taken.values()), unmatched)


def read_queries(path: str) -> list[str]:
    """Return the queries of a text file, one a line; empty lines do not count.

    Raises:
        DataError: The file cannot be read, holds no query, or one of too many words.
    """
    try:
        text = untrusted_files.read_text(untrusted_files.expanded(path), MOST_BYTES)
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(
            f"The list of queries {path} cannot be read: {error}. Name a text file with one query a line."
        ) from error
    queries = [line.strip() for line in text.splitlines() if line.strip()]
    if not queries:
        raise DataError(f"The list of queries {path} is empty. Write one query a line, or leave data.queries empty.")
    if long := next((query for query in queries if len(_words(query)) > LONGEST_QUERY), ""):
        raise DataError(f"The query {long[:80]!r} of {path} has more than {LONGEST_QUERY} words. Shorten it.")
    return queries


def _words(text: str) -> list[str]:
    return _WORD.findall(text.lower())


def _matched(
    caption_words: Sequence[str], longest: int, query_words: set[tuple[str, ...]] | None
) -> set[tuple[str, ...]]:
    runs = {
        tuple(caption_words[start : start + length])
        for length in range(1, longest + 1)
        for start in range(len(caption_words) - length + 1)
    }
    return runs if query_words is None else runs & query_words


def _turn(source: Source) -> bytes:
    text = f"{source.relative}\0{source.caption}"
    return hashlib.blake2b(text.encode("utf-8", "surrogateescape"), digest_size=16).digest()
