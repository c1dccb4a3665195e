"""How a run is drawn, the same in every view: its hue is what was trained, its tone the seed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextvars import ContextVar
from itertools import count
from typing import Final, NamedTuple

from trainer.store import RunRow, Workspace
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


def styles_of(workspace: Workspace) -> dict[int, RunStyle]:
    """Return the style of each run of a workspace, by its id: the one answer to which color a run has.

    Runs that can be restored are among them: no other run changes its color when one is deleted.
    """
    return run_style([*workspace.runs.all(), *workspace.runs.deleted()])


def run_style(rows: Iterable[RunRow]) -> dict[int, RunStyle]:
    """Return the style of each run of a workspace, by its id; a run that is made later changes none before it.

    Each arm takes the next hue that no arm of its experiment and no run of no experiment before it has; arms of two
    experiments may have one. A run of no experiment takes the next that nothing before it has, one for all whose labels
    differ in the seed alone.
    """
    arms: dict[str, dict[str, int]] = {}
    lone: dict[str, int] = {}
    earlier: Counter[str] = Counter()
    styles = {}
    for row in sorted({row.id: row for row in rows}.values(), key=lambda row: row.id):
        label, seed = parts_of(row.short_name)
        if row.experiment:
            hues = arms.setdefault(row.experiment, {})
            if row.arm not in hues:
                hues[row.arm] = _next_hue(hues, lone)
            # The seed is that of the label: a run that is gone changes no other's tone.
            styles[row.id] = RunStyle(hues[row.arm], seed)
            continue
        if label not in lone:
            lone[label] = _next_hue(lone, *arms.values())
        styles[row.id] = RunStyle(lone[label], earlier[label])
        earlier[label] += 1
    return styles


def arm_hues(workspace: Workspace, experiment: str, arms: Iterable[str]) -> tuple[int, ...]:
    """Return the hue of each arm of an experiment: that of its runs, the next free one where it has none yet."""
    styles, hues = styles_of(workspace), dict[str, int]()
    hues |= {row.arm: styles[row.id].hue for row in workspace.runs.of_experiment(experiment) if row.id in styles}
    return tuple(hues.setdefault(arm, _next_hue(hues)) for arm in arms)


def _next_hue(*taken: Mapping[str, int]) -> int:
    """Return the first hue that none of these has."""
    hues = {hue for names in taken for hue in names.values()}
    return next(hue for hue in count() if hue not in hues)


def side_styles(styles: Mapping[int, RunStyle], runs: Sequence[int]) -> tuple[RunStyle, ...]:
    """Return the style of each of these runs, A first; a run that is there twice, at two steps, has two lightnesses.

    Args:
        styles: Those of the workspace, as of `styles_of`.
        runs: Ids; of one that has no style it is that of its place.
    """
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
