"""How a run is drawn, the same in every view: its hue is what was trained, its tone the seed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from trainer.store import RunRow
from trainer.store.run_label import parts_of


@dataclass(frozen=True)
class RunStyle:
    """How one run is drawn.

    Attributes:
        hue: Place in the color-blind-safe cycle of `trainer.analysis.palette`: the arm of its experiment, or its
            objective where it has none.
        tone: Step of lightness of that hue, 0 its own: the seed, or how many runs of its objective came before.
    """

    hue: int
    tone: int


def run_style(rows: Iterable[RunRow]) -> dict[int, RunStyle]:
    """Return the style of each run, by its id.

    Arms take the first hues in the order in which their experiment made them; runs of no experiment take the next, one
    for each objective. Give all runs of a workspace: of fewer the hues may be others.
    """
    ordered = sorted({row.id: row for row in rows}.values(), key=lambda row: row.id)
    arms: dict[str, list[str]] = {}
    for row in ordered:
        if row.experiment and row.arm not in arms.setdefault(row.experiment, []):
            arms[row.experiment].append(row.arm)
    first = max(map(len, arms.values()), default=0)
    objectives = list(dict.fromkeys(row.objective for row in ordered if not row.experiment))
    earlier: Counter[str] = Counter()
    styles = {}
    for row in ordered:
        if row.experiment:
            # Of the label, so that a deleted run changes no other's tone.
            styles[row.id] = RunStyle(arms[row.experiment].index(row.arm), parts_of(row.short_name)[1])
        else:
            styles[row.id] = RunStyle(first + objectives.index(row.objective), earlier[row.objective])
            earlier[row.objective] += 1
    return styles
