"""How a run is drawn, the same in every view: hue by what was trained, tone by the seed, symbol by the experiment."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextvars import ContextVar
from itertools import count
from typing import TYPE_CHECKING, Final, NamedTuple

from trainer.analysis import palette
from trainer.store import RunRow, Workspace
from trainer.store.run_label import parts_of

if TYPE_CHECKING:
    from trainer.experiments.experiment import Arm

HUES: Final = len(palette.ON_LIGHT)
SEEDS: Final = palette.TONES // 2
"""Tones of a hue that the first experiment has before those of the second begin."""


class RunStyle(NamedTuple):
    """How one run is drawn."""

    # Place in the color-blind-safe cycle of `trainer.analysis.palette`: the arm of its experiment, or where it
    # has none what its label says was trained.
    hue: int
    tone: int  # Step of lightness of that hue, 0 its own: the seed, or how many such runs came before.
    # Place in `trainer.charts.marks.CURVE_SYMBOLS`: how many experiments of the workspace began before its own.
    symbol: int = 0


def styles_of(workspace: Workspace) -> dict[int, RunStyle]:
    """Return the style of each run of a workspace, by its id: the one answer to which color a run has.

    Runs that can be restored are among them: no other run changes its color when one is deleted.
    """
    return run_style(_with_deleted(workspace))


def _with_deleted(workspace: Workspace) -> list[RunRow]:
    return [*workspace.runs.all(), *workspace.runs.deleted()]


class _Hues:
    """The hues that are taken, in the order of the runs."""

    def __init__(self) -> None:
        self._arms: dict[str, dict[str, RunStyle]] = {}
        self._objectives: dict[str, int] = {}
        self._lone: dict[str, int] = {}

    def of_arm(self, experiment: str, arm: str, objective: str) -> RunStyle:
        """Return the style of seed 0 of an arm.

        Its hue is that of its objective, unless an arm of its experiment looks like that. A new one takes none of its
        experiment, of two others before it, of objectives or of lone runs.
        """
        styles = self._arms.setdefault(experiment, {})
        if arm not in styles:
            used = {style.hue % HUES for style in styles.values()} if len(styles) < HUES else set()
            hue = self._objectives.get(objective)
            if hue is None or hue % HUES in used:
                others = [style.hue for name in [*self._arms][-3:] for style in self._arms[name].values()]
                taken = {*others, *self._objectives.values(), *self._lone.values()}
                hue = next(hue for hue in count() if hue not in taken and hue % HUES not in used)
            self._objectives.setdefault(objective, hue)
            before = sum(any(style.hue == hue for style in arms.values()) for arms in self._arms.values())
            styles[arm] = RunStyle(hue, before * SEEDS)
        return styles[arm]

    def number_of(self, experiment: str) -> int:
        """Return how many experiments came before this one."""
        return [*self._arms].index(experiment)

    def of_lone(self, label: str) -> int:
        """Return the hue of what runs of no experiment trained; a new one takes the next that nothing has."""
        if label not in self._lone:
            arms = {style.hue for arms in self._arms.values() for style in arms.values()}
            self._lone[label] = next(hue for hue in count() if hue not in arms | {*self._lone.values()})
        return self._lone[label]


def run_style(rows: Iterable[RunRow], hues: _Hues | None = None) -> dict[int, RunStyle]:
    """Return the style of each run of a workspace, by its id; a run that is made later changes none before it.

    An objective has one hue in all experiments; the seeds of the second one have other tones, so that two experiments
    that follow each other share no color. Runs of no experiment have one hue where their labels differ in the seed
    alone.
    """
    hues = hues or _Hues()
    earlier: Counter[str] = Counter()
    styles = {}
    for row in sorted({row.id: row for row in rows}.values(), key=lambda row: row.id):
        label, seed = parts_of(row.short_name)
        if row.experiment:
            # The seed is that of the label: a run that is gone changes no other's tone.
            hue, first, _ = hues.of_arm(row.experiment, row.arm, row.objective)
            styles[row.id] = RunStyle(hue, first + seed, hues.number_of(row.experiment))
            continue
        styles[row.id] = RunStyle(hues.of_lone(label), earlier[label])
        earlier[label] += 1
    return styles


def arm_hues(workspace: Workspace, experiment: str, arms: Iterable[Arm]) -> tuple[int, ...]:
    """Return the hue of each arm of an experiment: that of its runs, or which its first run will have."""
    hues = _Hues()
    run_style(_with_deleted(workspace), hues)
    return tuple(hues.of_arm(experiment, arm.name, arm.run.objective.kind).hue for arm in arms)


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
        while run in runs[:index] and style in taken:
            style = style._replace(tone=style.tone + 1)
        taken.add(style)
        sides.append(style)
    return tuple(sides)


SIDES: Final[ContextVar[tuple[RunStyle, ...]]] = ContextVar("SIDES", default=())
"""How the runs of a figure are drawn on paper, A first; of one that is not there by its place."""
