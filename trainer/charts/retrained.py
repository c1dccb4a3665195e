"""Whether a retrained run retrieves better than the original, on the same held-out pairs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from jaxtyping import Bool, Int

from trainer.analysis.distinct import Matching
from trainer.analysis.number_text import signed, signed_ends
from trainer.analysis.retrieval import right_answers
from trainer.analysis.significance import McNemar, Paired, holm, mcnemar, paired_shares
from trainer.charts import BOTH, ChartError
from trainer.charts.matching import matching_of
from trainer.charts.snapshots import choose_snapshot
from trainer.metrics import recall_name
from trainer.store import RunRow, Snapshot, Workspace, read_snapshot

DIRECTIONS: Final = ("image to text", "text to image")
CORRECTION: Final = "exact McNemar, Holm over both directions"


@dataclass(frozen=True)
class Direction:
    """R@1 of both runs in one direction, on the same questions.

    Attributes:
        words: One of `DIRECTIONS`.
        old, new: Share of questions that each run answers right.
        paired: New minus old, with Newcombe's 95 % interval.
        discordant: Questions that only one of the two answers right, and the uncorrected p.
        p: Corrected by Holm over both directions.
    """

    words: str
    old: float
    new: float
    paired: Paired
    discordant: McNemar
    p: float


@dataclass(frozen=True)
class Retrained:
    """A paired comparison of two runs on the same held-out pairs.

    Attributes:
        old, new: Names of the runs.
        steps: Of both snapshots.
        dataset, split: Of the old run's snapshot.
        n: Pairs.
        directions: Both directions.
    """

    old: str
    new: str
    steps: tuple[int, int]
    dataset: str
    split: str
    n: int
    directions: tuple[Direction, Direction]


def retrained(workspace: Workspace, old: int | str, new: int | str) -> Retrained:
    """Return the paired test of R@1 at the last snapshots, among exactly the old run's held-out pairs.

    Pictures are recognized by their pixels, pairs by picture and caption. Where the new run's split holds more pairs,
    those neither ask nor answer.

    Raises:
        ChartError: The new run's held-out splits do not hold all those pairs, or a run lacks images or texts.
    """
    before, after = workspace.runs.get(old), workspace.runs.get(new)
    first = read_snapshot(choose_snapshot(workspace, before).folder)
    second, rows = _same_pairs(workspace, after, first, before.short_name)
    every, matching = np.arange(first.n), matching_of(first)
    right = [_right(snapshot, at, matching) for snapshot, at in ((first, every), (second, rows))]
    tests = [(paired_shares(a, b), mcnemar(a, b)) for a, b in zip(*right, strict=True)]
    adjusted = holm(np.array([test.p for _, test in tests]))
    directions = [
        Direction(direction, float(a.mean()), float(b.mean()), paired, test, float(p))
        for direction, a, b, (paired, test), p in zip(DIRECTIONS, *right, tests, adjusted, strict=True)
    ]
    steps, both = (first.step, second.step), (directions[0], directions[1])
    return Retrained(before.short_name, after.short_name, steps, first.dataset, first.split, first.n, both)


def retrained_lines(comparison: Retrained) -> list[str]:
    """Return the comparison in sentences, the same in the window and on the command line."""
    data = f"{comparison.dataset}-{comparison.split}"
    new, old = (
        f"{name} (step {step:,})"
        for name, step in ((comparison.new, comparison.steps[1]), (comparison.old, comparison.steps[0]))
    )
    lines = [f"{comparison.n:,} held-out pairs of {data}: {new} minus {old}"]
    for direction in comparison.directions:
        gap, low, high = (
            100 * value for value in (direction.paired.difference, direction.paired.low, direction.paired.high)
        )
        change = f"{signed(gap)} points (95 %: {signed_ends(low, high)})"
        lines.append(
            f"{_question(comparison, direction)}: {100 * direction.old:.1f} % → {100 * direction.new:.1f} %, {change}, "
            f"right only before {direction.discordant.only_a}, only after {direction.discordant.only_b}, "
            f"p = {direction.p:.2g}"
        )
    lines.append(f"p: {CORRECTION}. One run of each: the difference between seeds may be larger.")
    return lines


def _question(comparison: Retrained, direction: Direction) -> str:
    key: Any = direction.words.replace(" ", "_")
    return recall_name(key, split=comparison.split, n=direction.paired.n)


def _same_pairs(
    workspace: Workspace, run: RunRow, first: Snapshot, name: str
) -> tuple[Snapshot, Int[np.ndarray, " n"]]:
    """Return the run's last snapshot that holds all pairs of `first`, and their rows in it."""
    keys = _numbered(first)
    seen = {(row.dataset, row.split) for row in workspace.results.snapshots(run.id)}
    for dataset, split in sorted(seen):
        snapshot = read_snapshot(choose_snapshot(workspace, run, dataset=dataset, split=split).folder)
        row_of = {key: row for row, key in enumerate(_numbered(snapshot))}
        if all(key in row_of for key in keys):
            return snapshot, np.array([row_of[key] for key in keys], np.int64)
    raise ChartError(
        f"{run.short_name} was not measured on the {first.n:,} held-out pairs of {name} "
        f"({first.dataset}-{first.split}): its pictures or "
        "captions differ. Train it with the held-out list that was written next to the cleaned list."
    )


def _numbered(snapshot: Snapshot) -> list[tuple[str, str, int]]:
    """Return picture, caption and a count of what repeats, for each pair."""
    items = snapshot.items
    pictures = items.content if len(items.content) else items.path
    seen: dict[tuple[str, str], int] = {}
    keys = []
    for picture, caption in zip(pictures, items.caption, strict=True):
        before = seen.get((picture, caption), 0)
        seen[picture, caption] = before + 1
        keys.append((picture, caption, before))
    return keys


def _right(snapshot: Snapshot, rows: np.ndarray, matching: Matching) -> list[Bool[np.ndarray, " q"]]:
    """Return for each distinct image, and each distinct caption, whether a right answer comes first."""
    if snapshot.image is None or snapshot.text is None:
        raise ChartError(f"Recall needs images and texts. {BOTH}")
    return list(right_answers(np.asarray(snapshot.image)[rows], np.asarray(snapshot.text)[rows], matching).values())
