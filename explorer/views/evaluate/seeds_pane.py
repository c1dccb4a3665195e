"""Groups of runs over seeds: their table, and one click that queues a group."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QLabel, QPushButton, QSpinBox, QVBoxLayout, QWidget

from explorer import theme
from explorer.views.evaluate.group_bar import GroupBar
from explorer.views.evaluate.tables import NumberTable, show_groups
from trainer import config
from trainer.charts.groups import GroupTable, group_table
from trainer.problem import Problem
from trainer.store import Workspace

SEEDS: Final = 5
TOLD: Final = (
    "Mean ± deviation over runs. Strong: the better group where Welch's test, adjusted for all lines, has p < 0.05."
)


class SeedsPane(QWidget):
    """Two patterns, their table, and how to train more.

    Signals:
        wanted: Both patterns are to be compared.
        launch_asked: So many seeds of runs A and B are to be queued.
    """

    wanted = Signal(str, str)
    launch_asked = Signal(int)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.groups = GroupBar("evaluate", "Compare")
        self.patterns, self.compare = self.groups.patterns, self.groups.compare
        self.found: GroupTable | None = None
        self.seeds = QSpinBox(objectName="evaluate-seeds", accessibleName="Seeds of each group")
        self.seeds.setRange(2, 20)
        self.seeds.setValue(SEEDS)
        self.launch = QPushButton("Train both over seeds", objectName="evaluate-launch")
        self.told = QLabel(TOLD)
        self.told.setTextFormat(Qt.TextFormat.PlainText)
        self.told.setWordWrap(True)
        theme.set_role(self.told, "small")
        self.table = NumberTable("evaluate-groups", "Groups of runs over seeds")
        self.groups.wanted.connect(self.wanted)
        self.launch.clicked.connect(lambda: self.launch_asked.emit(self.seeds.value()))
        self._lay_out()

    def command(self) -> list[str] | None:
        """What to write after `trainer` for the same table; None where there is none."""
        if self.found is None:
            return None
        return ["export", "groups", *(word for group in self.found.groups for word in ("--group", group.pattern))]

    def show_groups(self, found: GroupTable | str) -> None:
        """Shows the table, or why there is none."""
        self.found = None if isinstance(found, str) else found
        if isinstance(found, str):
            self.told.setText(found)
            self.table.show_cells((), ())
            return
        few = [group.pattern for group in found.groups if len(group.runs) < 2]
        told = f"A test over seeds needs two runs or more of {' and of '.join(few)}. " if few else ""
        self.told.setText(told + TOLD)
        show_groups(self.table, found)

    def _lay_out(self) -> None:
        bar = self.groups.row
        bar.addSpacing(theme.BETWEEN)
        label = QLabel("Seeds")
        label.setBuddy(self.seeds)
        theme.set_role(label, "secondary")
        for widget in (label, self.seeds, self.launch):
            bar.addWidget(widget)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(theme.SPACE)
        column.addWidget(self.groups)
        column.addWidget(self.told)
        column.addWidget(self.table.at_left(), 1)


def group_pattern(name: str) -> str:
    """The pattern that names a run and its seeds: `clip-scenes` and `clip-scenes seed 3` are `clip-scenes*`."""
    return f"{name.partition(' seed ')[0]}*"


def groups_of(workspace: Workspace, a: str, b: str) -> GroupTable | str:
    """Both groups compared, or why they cannot be. Pure, for a thread."""
    try:
        return group_table(workspace, (a, b))
    except Problem as problem:
        return str(problem)


def seeded(workspace: Workspace, runs: tuple[int, ...], seeds: int) -> list[config.Run]:
    """The configurations of `runs` at seeds 0 to `seeds` - 1, those left out that there are already. Pure."""
    rows = [row for row in workspace.runs() if row.deleted_at is None]
    taken = {row.name for row in rows}
    made: list[config.Run] = []
    for run in runs:
        choice, name = workspace.config_of(run), workspace.run(run).name.partition(" seed ")[0]
        there = {
            workspace.config_of(row.id).seed for row in rows if row.name == name or row.name.startswith(f"{name} seed ")
        }
        for seed in range(seeds):
            if seed not in there and f"{name} seed {seed}" not in taken:
                made.append(replace(choice, name=f"{name} seed {seed}", seed=seed))
    return made
