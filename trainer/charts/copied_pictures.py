"""Held-out pictures that runs were trained on: how many, in a sentence for the warnings of a panel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from trainer.store import RunRow
from trainer.store.quality_reports import pairs_words


def copies_notes(rows: Sequence[RunRow]) -> tuple[str, ...]:
    """Return a sentence for each split of which held-out pictures were noted that have a training picture's pixels."""
    names_by_split: dict[tuple[str, int, int], list[str]] = {}
    for row in {row.id: row for row in rows}.values():
        pairs = _counts(row.facts, "heldout_pairs")
        for split, copies in _counts(row.facts, "heldout_copies").items():
            if copies:
                names_by_split.setdefault((split, copies, pairs.get(split, 0)), []).append(row.short_name)
    return tuple(
        f"{copies:,} of {pairs_words(n, split)} show pictures that {', '.join(names)} "
        f"{'was' if len(names) == 1 else 'were'} trained on (equal pixels); trainer data duplicates lists them."
        for (split, copies, n), names in names_by_split.items()
    )


def _counts(facts: Mapping[str, Any], name: str) -> dict[str, int]:
    """Return the whole numbers of a noted table; empty where there is none."""
    table = facts.get(name)
    return {str(key): n for key, n in table.items() if type(n) is int} if isinstance(table, Mapping) else {}
