"""On Home while it trains: a row for each seed, a column for each arm, and how far each run is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple

from PySide6.QtWidgets import QLabel, QProgressBar, QSizePolicy, QWidget

from explorer import theme
from explorer.models.runs import ASKED, last_at_step, preparing, share_of, turn_text, watch_note
from explorer.widgets import layouts
from explorer.widgets.legend import Legend, LegendEntry
from explorer.widgets.progress_row import show_share
from trainer.analysis.quantities import steps_of, time_left
from trainer.experiments.counted import flaw_of, standing
from trainer.metrics import HEADLINE, RECALL_HEADING, headline_name, metric
from trainer.store.question import noted_chance

if TYPE_CHECKING:
    from trainer.experiments.run_style import RunStyle
    from trainer.store import RunRow

MOST_ROWS: Final = 5
"""Seeds with a row of their own: the curves below need the room."""


class SeedRun(NamedTuple):
    """A run of an experiment: its arm, its seed and its id."""

    arm: str
    seed: int
    run: int


class SeedGap(NamedTuple):
    """How much larger a metric of the second arm is at the last step at which both runs of a seed were measured."""

    seed: int
    step: int
    gap: float
    metric: str


class SeedRows(QWidget):
    """A table of runs: seeds as rows and arms as columns, so that pairs are compared in a row."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent, objectName="experiments-seeds")
        self._grid = layouts.grid(theme.BETWEEN, theme.INSIDE)
        self.about = layouts.text(role="small", name="experiments-measured", wrap=True)
        layouts.column(self._grid, self.about, of=self)
        self._seeds: tuple[SeedRun, ...] = ()
        self._cells: dict[int, RunCell] = {}
        self._gaps: dict[int, QLabel] = {}
        self._heads: list[Legend] = []
        self._hues: dict[str, int] = {}
        theme.theme().follow(self._color_heads)

    def show_runs(
        self,
        seeds: Sequence[SeedRun],
        runs: Mapping[int, RunRow],
        ends: Mapping[int, float | None],
        gaps: Sequence[SeedGap] = (),
        styles: Mapping[int, RunStyle] = MappingProxyType({}),
    ) -> None:
        """Show how far these runs are; `ends` are the seconds until each ends, `styles` those of the workspace."""
        if tuple(seeds) != self._seeds:
            self._seeds = tuple(seeds)
            self._build()
        hues = {each.arm: styles[each.run].hue for each in seeds if each.run in styles}
        if hues != self._hues:
            self._hues = hues
            self._color_heads()
        waiting = sorted((run for run in runs if runs[run].status == "queued"), key=lambda run: ends.get(run) or 0)
        for number, cell in self._cells.items():
            if number in runs:
                turn = waiting.index(number) + 1 if number in waiting else 0
                cell.show_run(runs[number], ends.get(number), turn)
        self.about.setText(measured_text([runs[each.run] for each in seeds if each.run in runs]))
        self.about.setVisible(bool(self.about.text()))
        trains = {each.seed for each in self._seeds if each.run in runs and runs[each.run].status != "finished"}
        for gap in gaps:
            if gap.seed in self._gaps:
                self._gaps[gap.seed].setText(gap_text(gap, ended=gap.seed not in trains))

    def texts(self) -> list[str]:
        """Return what is written of each run, row by row."""
        return [cell.words.text() for cell in self._cells.values()]

    def differences(self) -> list[str]:
        """Return what is written of the difference at each seed."""
        return [label.text() for label in self._gaps.values()]

    def _build(self) -> None:
        while (item := self._grid.takeAt(0)) is not None:
            if (cell := item.widget()) is not None:
                cell.deleteLater()
        self._cells, self._gaps, self._heads = {}, {}, []
        arms = list(dict.fromkeys(each.arm for each in self._seeds))
        seeds = sorted({each.seed for each in self._seeds})
        for column in range(1, len(arms) + 1):
            self._heads.append(Legend())
            self._grid.addWidget(self._heads[-1], 0, column)
            self._grid.setColumnStretch(column, 1)
        for row, seed in enumerate(seeds[:MOST_ROWS], start=1):
            self._grid.addWidget(layouts.text(f"seed {seed}", "secondary"), row, 0)
            for each in self._seeds:
                if each.seed == seed:
                    self._cells[each.run] = RunCell()
                    self._grid.addWidget(self._cells[each.run], row, arms.index(each.arm) + 1)
            self._gaps[seed] = layouts.text(name="experiments-gap")
            self._grid.addWidget(self._gaps[seed], row, len(arms) + 1)
        if len(arms) == 2:
            self._grid.addWidget(layouts.text(f"{arms[1]} against {arms[0]}", "secondary"), 0, 3)
            self._grid.setColumnStretch(3, 1)
        if len(seeds) > MOST_ROWS:
            self._grid.addWidget(layouts.text(f"and {len(seeds) - MOST_ROWS} more", "small"), MOST_ROWS + 1, 0)
        self._color_heads()

    def _color_heads(self) -> None:
        arms = dict.fromkeys(each.arm for each in self._seeds)
        for index, (head, arm) in enumerate(zip(self._heads, arms, strict=True)):
            head.show_entries([LegendEntry(arm, theme.run_shade(self._hues.get(arm, index), 0))])


class RunCell(QWidget):
    """Where one run is: words, and a bar below them while it works."""

    def __init__(self) -> None:
        super().__init__()
        self.words = layouts.text(wrap=True)
        self.bar = QProgressBar(textVisible=False)
        layouts.column(self.words, self.bar, gap=theme.SPACE, of=self)
        # A column keeps its place, however long the words of another one are.
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)

    def show_run(self, run: RunRow, end: float | None, turn: int) -> None:
        self.words.setText(state_text(run, end, turn))
        self.bar.setVisible(run.status == "running" and bool(run.total_steps or preparing(run)))
        self.bar.setAccessibleName(f"Progress of {run.short_name}")
        show_share(self.bar, share_of(run), at_work=False)


def state_text(run: RunRow, end: float | None, turn: int) -> str:
    """Return where a run is: `83.0 %, finished`, `R@1 61.2 %, step 240 of 384`, `2nd in queue`.

    Args:
        end: Seconds until it ends; None where that is not known.
        turn: Among those that wait, 1 for the next; 0 where it does not wait.
    """
    if run.status == "finished":
        return ", ".join(filter(None, (last_at_step(run), flaw_of(run) or "finished")))
    if turn:
        return turn_text(turn)
    value = last_at_step(run)
    if run.status != "running":
        return ", ".join(filter(None, (value, standing(run), flaw_of(run))))
    measure = RECALL_HEADING if run.metric == HEADLINE else metric(run.metric).label
    measured = f"{measure} {value}, " if value else ""
    does = ASKED[run.asked].lower() if run.asked in ASKED else time_left(end) if end is not None else ""
    left = "".join(f", {part}" for part in (does, watch_note(run)) if part)
    return preparing(run) or f"{measured}step {steps_of(run.step, run.total_steps).removeprefix('step ')}{left}"


def measured_text(runs: Sequence[RunRow]) -> str:
    """Return of what the values of these runs are: `Image to text R@1, unseen renderings, n = 1,024 · chance 0.1 %`."""
    measured = [run for run in runs if run.last is not None and run.step > 0]
    if not measured or len({run.metric for run in measured}) > 1:
        return ""
    name, facts = measured[0].metric, [run.facts for run in measured]
    chances = {noted_chance(name, each) for each in facts}
    return " · ".join(filter(None, (headline_name(name, *facts), chances.pop() if len(chances) == 1 else "")))


def gap_text(gap: SeedGap, *, ended: bool) -> str:
    """Return a difference between arms: `+2.3 points`, or `+2.3 points at step 96` while one of them trains."""
    from trainer.experiments.verdict import difference_text

    difference = difference_text(metric(gap.metric), gap.gap)
    return difference if ended else f"{difference} at step {gap.step:,}"
