"""The columns of the table, and the steps that can be compared."""

from __future__ import annotations

from explorer.models.pair_table import Numbers
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
SHORT = {
    "image_rank_a": "Text rank A",
    "image_rank_b": "B",
    "image_rank_change": "B − A",
    "text_rank_a": "Image rank A",
    "text_rank_b": "B",
    "margin_change": "Margin",
    "overlap": "Overlap",
    "residual": "Residual",
    "verdict": "Prediction",
}


def columns_of(changes: Changes) -> list[Numbers]:
    """Return the table's number columns."""
    made = []
    for key in SHOWN:
        if key in changes.values:
            about = MEASURES[key]
            hint = f"{about.words}. {about.hint}"
            names = ("differs", "same") if key == "verdict" else ()
            made.append(Numbers(key, SHORT[key], hint, changes.values[key], about.digits, about.signed, names))
    return made


def steps_of(workspace: Workspace, run: int, data: SplitKey | None) -> tuple[int, ...]:
    """Return the steps of the run's snapshots of this data, ascending."""
    return tuple(sorted({s.step for s in workspace.results.snapshots(run) if data in (None, s.key)}))
