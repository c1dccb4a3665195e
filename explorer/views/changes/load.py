"""The columns and the order of the table, its groups, and the steps that can be compared."""

from __future__ import annotations

import numpy as np
from jaxtyping import Int

from explorer.models.pair_table import PairColumn
from trainer.charts.pair_changes import MEASURES, Changes
from trainer.store import SplitKey, Workspace

SHOWN = (
    "image_rank_a",
    "image_rank_b",
    "image_rank_change",
    "text_rank_a",
    "text_rank_b",
    "margin_change",
    "overlap",
    "residual",
    "verdict",
)
"""Columns of the table, in order."""
SPARE = {"residual": 3, "text_rank_a": 2, "text_rank_b": 2, "margin_change": 1}
"""Columns that a table without room leaves out, those of the highest number first; ranks of captions tell most."""


def columns_of(changes: Changes, indices: Int[np.ndarray, " k"]) -> list[PairColumn]:
    """Return the table's number columns, of these pairs in this order."""
    made = []
    for key in SHOWN:
        if key in changes.values:
            about = MEASURES[key]
            hint = f"{about.words}. {about.hint}"
            names, head = (("differs", "same"), "Predicted class") if key == "verdict" else ((), about.words)
            if changes.shares_captions and key.startswith("text_rank"):
                head = head.replace("Image rank", "Best image, rank")  # of the caption, for every pair of it
            head = head.replace(", ", ",\n") if ", " in head else head.replace(" ", "\n", 1)
            head += f"\n({about.better} is better)" if about.better else ""
            values, spare = changes.values[key][indices], SPARE.get(key, 0)
            made.append(PairColumn(key, head, hint, values, about.digits, about.signed, names, spare))
    return made


def by_difference(changes: Changes) -> Int[np.ndarray, " n"]:
    """Return the indices of the pairs, those first that differ most between A and B.

    That is the change of the correct caption's rank, either way, and then another prediction; where a snapshot has no
    ranks, how little the neighborhoods share.
    """
    values = changes.values
    if "image_rank_change" not in values:
        return np.argsort(values["overlap"], kind="stable")
    same = values.get("verdict", np.ones(changes.n))
    return np.lexsort((np.nan_to_num(same, nan=1.0), -np.abs(values["image_rank_change"])))


def own_caption_first(changes: Changes) -> dict[str, Int[np.ndarray, " k"]]:
    """Return the indices of the pairs whose image finds its caption first in one run only, or in none, by group.

    Empty where a snapshot has no ranks.
    """
    if "image_rank_a" not in changes.values:
        return {}
    in_a, in_b = (changes.values[f"image_rank_{side}"] <= 1 for side in "ab")
    groups = {"only-a": in_a & ~in_b, "only-b": in_b & ~in_a, "neither": ~in_a & ~in_b}
    return {name: np.flatnonzero(group) for name, group in groups.items()}


def steps_of(workspace: Workspace, run: int, data: SplitKey | None) -> tuple[int, ...]:
    """Return the steps of the run's snapshots of this data, ascending."""
    return tuple(sorted({s.step for s in workspace.results.snapshots(run) if data in (None, s.key)}))
