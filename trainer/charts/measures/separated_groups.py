"""Groups that one of two snapshots separates: their pairs, the words that name them, and whom they are kept from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal

import numpy as np
from jaxtyping import Int
from msgspec import Struct

from trainer.analysis.cluster_words import distinct_words, distinctive_words
from trainer.analysis.separated_groups import KernelDifference, SeparatedGroup, compared_groups
from trainer.analysis.units import UNIT_OF
from trainer.charts import ChartError
from trainer.charts.common_pairs import common_rows
from trainer.charts.matching import units_of
from trainer.charts.opened_snapshot import OpenedSnapshot
from trainer.store.snapshot_files import Items

MOST_PICTURES: Final = 8
MOST_ROWS: Final = 30_000
"""Distinct pictures or captions that are compared; of more, so many are drawn: each takes 400 numbers per run."""


class NamedGroup(Struct, frozen=True):
    """A group of one side."""

    number: int  # By which a click chooses it.
    side: int  # 0: only A separates it; 1: only B does.
    words: str
    group: SeparatedGroup
    pairs: Int[np.ndarray, " k"]  # All rows of A's snapshot that show its pictures or captions.
    typical: Int[np.ndarray, " m"]  # Some of them, evenly spread.


class SeparatedGroupsChart(Struct, frozen=True):
    """Both directions."""

    opened: tuple[OpenedSnapshot, OpenedSnapshot]  # A and B.
    differences: tuple[KernelDifference, KernelDifference]  # The spectrum of A over B, and of B over A.
    groups: tuple[NamedGroup, ...]  # Of A first.
    n: int  # Distinct pictures or captions that were compared.
    whole: int  # Those that both snapshots have.
    unit: str  # Which of them.

    def pairs_of(self, number: int) -> Int[np.ndarray, " k"]:
        """Return the pairs of a group: the selection that it is."""
        return self.groups[number].pairs


def groups_of_snapshots(
    opened: Sequence[OpenedSnapshot], modality: Literal["image", "text"], **how: float
) -> SeparatedGroupsChart:
    """Return the groups that only one of two snapshots separates.

    Args:
        opened: A and B.
        modality: What is grouped.
        how: The settings of `trainer.analysis.separated_groups`.

    Raises:
        ChartError: A run lacks the modality, or they have fewer than 10 pictures in common.
    """
    first, second = opened
    vectors = [getattr(each.snapshot, modality) for each in opened]
    if any(of is None for of in vectors):
        raise ChartError(f"A run has no {modality} embeddings. Choose the other embeddings, or other runs.")
    at_a, at_b = common_rows(first.snapshot.items, second.snapshot.items)
    unit = UNIT_OF[modality]
    units = units_of(first.snapshot, at_a)
    rows = units.rows(unit, MOST_ROWS)
    if len(rows) < 10:
        raise ChartError(f"These snapshots have {len(rows)} {unit}s in common; groups are sought among 10 or more.")
    a, b = vectors[0][at_a[rows]], vectors[1][at_b[rows]]
    differences = compared_groups(a, b, **how)
    number_of = units.of(unit)
    groups = _named(differences, first.snapshot.items, at_a, rows, number_of)
    return SeparatedGroupsChart((first, second), differences, groups, len(rows), units.count(unit), unit)


def _named(
    differences: tuple[KernelDifference, KernelDifference],
    items: Items,
    at_a: np.ndarray,
    rows: np.ndarray,
    number_of: np.ndarray,
) -> tuple[NamedGroup, ...]:
    """Return the groups with the words that tell each from the rest of all captions, and the pairs of each."""
    sided_groups = [(side, group) for side, difference in enumerate(differences) for group in difference.groups]
    group_words: list[tuple[str, ...]] = []
    for side in (0, 1):
        members = [group for of, group in sided_groups if of == side]
        label = np.full(len(rows), len(members), np.int64)
        for number, group in enumerate(members):
            label[group.rows] = number
        captions = [items.caption[row] for row in at_a[rows].tolist()]
        if members:
            group_words += distinct_words(distinctive_words(captions, label, len(members) + 1, most=6)[:-1], 2)
    named = []
    for number, ((side, group), of) in enumerate(zip(sided_groups, group_words, strict=True)):
        pairs = np.sort(at_a[np.isin(number_of, number_of[rows[group.rows]])])
        spread = np.unique(np.linspace(0, len(group.rows) - 1, MOST_PICTURES).astype(np.int64))
        typical = at_a[rows[group.rows[spread]]]
        named.append(NamedGroup(number, side, " ".join(of) or f"group {number + 1}", group, pairs, typical))
    return tuple(named)


def partner_of(chart: SeparatedGroupsChart, named: NamedGroup) -> str:
    """Return the words of the group that the other run mixes it with."""
    of = [group for group in chart.groups if group.side == named.side]
    return of[named.group.partner].words if named.group.partner >= 0 else "all others"
