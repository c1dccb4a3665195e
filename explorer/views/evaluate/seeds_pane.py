"""Groups of runs over seeds: their chart, and a button that queues a group."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QPushButton, QWidget

from explorer import theme
from explorer.render_qt.controls import Controls
from explorer.views.chart_pane import ChartPane
from explorer.views.evaluate.group_bar import GroupBar
from explorer.views.view import Context
from explorer.widgets import layouts
from explorer.widgets.still import StillSpinBox
from trainer import config
from trainer.charts.groups import CHART
from trainer.charts.measures.groups import GroupTable
from trainer.charts.spec import Request
from trainer.store import Workspace

SEEDS: Final = 5
LABEL_PX: Final = 112
NOTHING: Final = "Choose two groups of runs."


class SeedsPane(QWidget):
    """Two groups, their chart, and a button to train more runs."""

    launch_asked = Signal(int)  # So many seeds of runs A and B are to be queued.

    def __init__(self, context: Context, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.groups = GroupBar("evaluate")
        self.drawn: tuple[str, ...] = ()
        self.seeds = StillSpinBox(objectName="evaluate-seeds", accessibleName="Seeds of each group")
        self.seeds.setRange(2, 20)
        self.seeds.setValue(SEEDS)
        self.seeds.setAlignment(Qt.AlignmentFlag.AlignRight)
        self.launch = QPushButton("Train both over seeds", objectName="evaluate-launch")
        self.note = layouts.text(NOTHING, "small", wrap=True)
        self.controls = Controls(CHART.settings, CHART.name, beside_px=LABEL_PX)
        self.pane = ChartPane(context, CHART.name)
        self.groups.changed.connect(self.draw)
        self.controls.changed.connect(lambda: self.draw(again=True))
        self.launch.clicked.connect(lambda: self.launch_asked.emit(self.seeds.value()))
        self._lay_out()

    @property
    def found(self) -> GroupTable | None:
        return None if self.pane.answer is None else self.pane.answer.data

    def command(self) -> list[str] | None:
        """Return the `trainer` arguments for the same chart; None if there is none."""
        return self.pane.command() if self.drawn else None

    def draw(self, *, again: bool = False) -> None:
        """Compare the groups chosen, unless they are drawn."""
        chosen = self.groups.chosen
        if len(chosen) < 2 or (chosen == self.drawn and not again):
            return
        if chosen != self.drawn:
            self.pane.forget()
        self.drawn = chosen
        self.note.hide()
        self.pane.show()
        self.pane.ask(CHART, Request(), replace(self.controls.settings, group=chosen))

    def _lay_out(self) -> None:
        label = layouts.text("Seeds", "secondary", buddy=self.seeds)
        layouts.add(self.groups.row, theme.BETWEEN, label, self.seeds, self.launch)
        layouts.column(self.groups, self.controls, self.note, (self.pane, 1), layouts.STRETCH, gap=theme.SPACE, of=self)
        self.pane.hide()


def seeded(workspace: Workspace, runs: tuple[int, ...], seeds: int) -> list[config.Run]:
    """Return the configurations of `runs` at seeds 0 to `seeds` - 1, without existing ones. Pure.

    There already is what differs in name and seed only, whatever it is called.
    """
    rows = [row for row in workspace.runs.all() if row.deleted_at is None]
    taken = {row.name for row in rows}
    existing = [workspace.runs.config_of(row.id) for row in rows]
    made: list[config.Run] = []
    for run in runs:
        choice, name = workspace.runs.config_of(run), workspace.runs.get(run).name
        seeds_trained = {
            other.seed for other in existing if replace(other, name=choice.name, seed=choice.seed) == choice
        }
        stem = name.removesuffix(f"-{choice.seed}")
        join = "-" if stem != name else " seed "
        stem = stem.partition(" seed ")[0]
        for seed in range(seeds):
            if seed not in seeds_trained and (called := f"{stem}{join}{seed}") not in taken:
                made.append(replace(choice, name=called, seed=seed))
    return made
