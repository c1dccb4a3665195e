"""How a run is drawn, the same in every view: its hue is what was trained, its tone the seed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from contextvars import ContextVar
from typing import Final, NamedTuple

from trainer.store import RunRow
from trainer.store.run_label import parts_of


class RunStyle(NamedTuple):
    """How one run is drawn.

    Attributes:
        hue: Place in the color-blind-safe cycle of `trainer.analysis.palette`: the arm of its experiment, or where it
            has none what its label says was trained.
        tone: Step of lightness of that hue, 0 its own: the seed, or how many such runs came before.
    """

    hue: int
    tone: int


def run_style(rows: Iterable[RunRow]) -> dict[int, RunStyle]:
    """Return the style of each run, by its id.

    Arms take the first hues in the order in which their experiment made them; runs of no experiment take the next, one
    for all whose labels differ in the seed alone. Give all runs of a workspace: of fewer the hues may be others.
    """
    ordered = sorted({row.id: row for row in rows}.values(), key=lambda row: row.id)
    arms: dict[str, list[str]] = {}
    for row in ordered:
        if row.experiment and row.arm not in arms.setdefault(row.experiment, []):
            arms[row.experiment].append(row.arm)
    first = max(map(len, arms.values()), default=0)
    labels = {row.id: parts_of(row.short_name) for row in ordered}
    lone = list(dict.fromkeys(labels[row.id][0] for row in ordered if not row.experiment))
    earlier: Counter[str] = Counter()
    styles = {}
    for row in ordered:
        if row.experiment:
            # Of the label, so that a deleted run changes no other's tone.
            styles[row.id] = RunStyle(arms[row.experiment].index(row.arm), labels[row.id][1])
        else:
            label = labels[row.id][0]
            styles[row.id] = RunStyle(first + lone.index(label), earlier[label])
            earlier[label] += 1
    return styles


def side_styles(rows: Iterable[RunRow], runs: Sequence[int]) -> tuple[RunStyle, ...]:
    """Return the style of each of these runs, A first; a run that is there twice, at two steps, has two lightnesses.

    Args:
        rows: All runs of the workspace.
        runs: Ids; of one that is not among the rows the style is that of its place.
    """
    styles = run_style(rows)
    taken = {styles[run] for run in runs if run in styles}
    sides: list[RunStyle] = []
    for index, run in enumerate(runs):
        style = styles.get(run, RunStyle(index, 0))
        while run in runs[:index] and style in taken and style.tone < len(runs):
            style = style._replace(tone=style.tone + 1)
        taken.add(style)
        sides.append(style)
    return tuple(sides)


SIDES: Final[ContextVar[tuple[RunStyle, ...]]] = ContextVar("SIDES", default=())
"""How the runs of a figure are drawn on paper, A first; of one that is not there by its place."""
