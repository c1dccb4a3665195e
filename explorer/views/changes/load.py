"""What the view shows, read from the store: pure functions for the background threads."""

from __future__ import annotations

from dataclasses import dataclass, replace

from explorer.models.pair_table import Numbers
from explorer.views.changes.verdicts import texts_of
from explorer.widgets.progress_row import Ticket
from trainer.charts.changes import MEASURES, Changes, changes, fitting_suites, with_verdicts
from trainer.charts.likeness import Likeness, likeness
from trainer.charts.mispairs import Mispairs, mispairs
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
    "image_rank_a": "Caption A",
    "image_rank_b": "B",
    "image_rank_change": "B − A",
    "text_rank_a": "Image A",
    "text_rank_b": "B",
    "margin_change": "Margin",
    "overlap": "Overlap",
    "residual": "Residual",
    "verdict": "Verdict",
}


@dataclass(frozen=True)
class ChangesQuestion:
    """What is compared: run and step of both, the data, the size of a neighborhood."""

    a: tuple[int, int | None]
    b: tuple[int, int | None]
    dataset: str | None
    split: str | None
    k: int


@dataclass(frozen=True)
class ChangesResult:
    """The answer: every pair, the mispairs where both runs have images and texts, and suites that fit the data."""

    changes: Changes
    mispairs: Mispairs | None
    suites: tuple[str, ...] = ()
    suite: str = ""


def read(workspace: Workspace, question: ChangesQuestion, ticket: Ticket) -> ChangesResult:
    """Compares; may take minutes.

    Raises:
        Cancelled: The person ended it.
        Problem: There is nothing to compare.
    """
    found = changes(
        workspace,
        question.a,
        question.b,
        dataset=question.dataset,
        split=question.split,
        k=question.k,
        progress=ticket,
    )
    return ChangesResult(
        found, mispairs(found) if "text_rank_a" in found.values else None, fitting_suites(workspace, found)
    )


def read_verdicts(
    workspace: Workspace, reading: ChangesResult, suite: str, files: tuple[str, str] | None
) -> ChangesResult:
    """The same with verdicts by a suite whose class vectors are in `files`, or by the captions without any.

    Raises:
        Problem: The class vectors are gone, or do not fit.
    """
    texts = texts_of(files) if files else None
    return replace(reading, changes=with_verdicts(workspace, reading.changes, texts), suite=suite)


def read_likeness(
    workspace: Workspace, runs: tuple[int, ...], dataset: str | None, split: str | None, k: int, ticket: Ticket
) -> Likeness:
    """The matrix of whole snapshots.

    Raises:
        Cancelled: The person ended it.
        Problem: There is nothing to compare.
    """
    return likeness(workspace, runs, dataset=dataset, split=split, k=k, progress=ticket)


def columns_of(found: Changes) -> list[Numbers]:
    """The table's columns of numbers."""
    made = []
    for key in SHOWN:
        if key in found.values:
            about = MEASURES[key]
            hint = f"{about.words}. {about.hint}"
            names = ("differs", "same") if key == "verdict" else ()
            made.append(Numbers(key, SHORT[key], hint, found.values[key], about.digits, about.signed, names))
    return made


def steps_of(workspace: Workspace, run: int, data: SplitKey | None) -> tuple[int, ...]:
    """Steps of the run's snapshots of this data, ascending."""
    return tuple(sorted({s.step for s in workspace.results.snapshots(run) if data in (None, s.key)}))
