"""Groups of runs over seeds: their table, and one click that queues a group."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QLabel, QPushButton, QSpinBox, QVBoxLayout, QWidget

from explorer import theme
from explorer.views.evaluate.group_bar import GroupBar
from explorer.views.evaluate.tables import ResultTable, show_groups
from trainer import config
from trainer.charts.groups import GroupTable, group_table
from trainer.errors import UserError
from trainer.store import Workspace

SEEDS: Final = 5
FEW_P: Final = 0.01
"""A permutation test that cannot give less is told to have so few runs."""
_NUMBERS: Final = r"-\d+(?:-\d+)?"
_NUMBERED: Final = re.compile(rf"(.+?){_NUMBERS}")
"""`clip-emoji-2`, and `clip-emoji-2-2` where that name was taken."""
TOLD: Final = (
    "Mean ± deviation over runs. Strong: better, with p < 0.05 in Welch's test, adjusted for all lines (Holm)."
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
        self.seeds.setAlignment(Qt.AlignmentFlag.AlignRight)
        self.launch = QPushButton("Train both over seeds", objectName="evaluate-launch")
        self.told = QLabel(TOLD)
        self.told.setTextFormat(Qt.TextFormat.PlainText)
        self.told.setWordWrap(True)
        theme.set_role(self.told, "small")
        self.table = ResultTable("evaluate-groups", "Groups of runs over seeds")
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
        least = max((test.least for line in found.lines for test in line.tests if test), default=0.0)
        bound = f" With so few runs, permutation gives {least:.3f} at least." if not few and least > FEW_P else ""
        told = f"A test over seeds needs two runs or more of {' and of '.join(few)}. " if few else ""
        self.told.setText(told + TOLD + bound)
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


def group_pattern(name: str, others: Iterable[str] = ()) -> str:
    """The pattern that names a run and its seeds.

    `clip-scenes` and `clip-scenes seed 3` are `clip-scenes*`; `clip-emoji-0` is `clip-emoji-*` where there is another
    of the `others` that differs from it in its numbers only.
    """
    stem, word, _ = name.partition(" seed ")
    numbered = _NUMBERED.fullmatch(name)
    if word or numbered is None:
        return f"{stem}*"
    like = re.compile(rf"{re.escape(numbered[1])}{_NUMBERS}")
    return f"{numbered[1]}-*" if any(other != name and like.fullmatch(other) for other in others) else f"{name}*"


def groups_of(workspace: Workspace, a: str, b: str) -> GroupTable | str:
    """Both groups compared, or why they cannot be. Pure, for a thread."""
    try:
        return group_table(workspace, (a, b))
    except UserError as problem:
        return str(problem)


def seeded(workspace: Workspace, runs: tuple[int, ...], seeds: int) -> list[config.Run]:
    """The configurations of `runs` at seeds 0 to `seeds` - 1, those left out that there are already. Pure.

    There already is what differs in name and seed only, whatever it is called.
    """
    rows = [row for row in workspace.runs.all() if row.deleted_at is None]
    taken = {row.name for row in rows}
    known = [workspace.runs.config_of(row.id) for row in rows]
    made: list[config.Run] = []
    for run in runs:
        choice, name = workspace.runs.config_of(run), workspace.runs.get(run).name
        there = {one.seed for one in known if replace(one, name=choice.name, seed=choice.seed) == choice}
        stem = name.removesuffix(f"-{choice.seed}")
        join = "-" if stem != name else " seed "
        stem = stem.partition(" seed ")[0]
        for seed in range(seeds):
            if seed not in there and (called := f"{stem}{join}{seed}") not in taken:
                made.append(replace(choice, name=called, seed=seed))
    return made
