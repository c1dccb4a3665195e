"""Two groups of runs, chosen by name: arms of experiments, or runs whose names differ in a seed or a number."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import Final

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QInputDialog, QWidget

from explorer.widgets import layouts
from explorer.widgets.finder import Choice
from explorer.widgets.searchable_combo_box import SearchableComboBox
from trainer.charts import objective_label
from trainer.charts.measures.groups import arm_group
from trainer.store import RunRow

CUSTOM: Final = Choice(None, "Custom…", "Runs whose names fit a pattern such as clip-*")
_NUMBERED: Final = re.compile(r"(.+?-)\d+(?:-\d+)?")
"""`clip-emoji-2`, and `clip-emoji-2-2` where that name was taken."""


class GroupBar(QWidget):
    """The pickers of groups A and B."""

    changed = Signal()  # A person chose another group.

    def __init__(self, name: str, parent: QWidget | None = None) -> None:
        """Create the bar; `name` is the prefix of the object names."""
        super().__init__(parent)
        self.pickers = [
            SearchableComboBox(name=f"{name}-group-{letter.lower()}", label=f"Group {letter}", width=200)
            for letter in "AB"
        ]
        self.row = layouts.row(of=self)
        self._offered: tuple[Choice, ...] = ()
        self._proposed: tuple[str, ...] = ()
        self._groups: tuple[str, ...] = ("", "")
        for index, picker in enumerate(self.pickers):
            layouts.add(self.row, layouts.text(f"Group {'AB'[index]}", "secondary", buddy=picker), (picker, 1))
            picker.picked.connect(partial(self._pick, index))

    @property
    def chosen(self) -> tuple[str, ...]:
        """What `--group` of a command calls the groups, without one that is not chosen."""
        return tuple(filter(None, self._groups))

    def propose(self, choices: Sequence[Choice], *groups: str) -> None:
        """Offer these groups; choose those of runs A and B where they are others than the last proposed ones."""
        self._offered = tuple(choices)
        self._show(self._groups if groups == self._proposed else groups)
        self._proposed = groups

    def follow(self, other: GroupBar) -> None:
        """Choose what the other bar has chosen."""
        self._show(other._groups)

    def choose(self, *groups: str) -> None:
        """Choose both groups, as a person does: by what a command calls them."""
        self._show(groups)
        self.changed.emit()

    def _show(self, groups: tuple[str, ...]) -> None:
        self._groups = groups
        offered = {choice.key for choice in self._offered}
        for picker, group in zip(self.pickers, groups, strict=True):
            typed = [] if group in offered or not group else [Choice(group, group, CUSTOM.hint)]
            picker.show_choices((*self._offered, *typed, CUSTOM), group)

    def _pick(self, index: int, group: str | None) -> None:
        before = self._groups[index]
        if group is None:
            typed, is_given = QInputDialog.getText(self, "Custom group", f"{CUSTOM.hint}:", text=before)
            group = typed.strip() if is_given and typed.strip() else before
        self.choose(*(group if side == index else each for side, each in enumerate(self._groups)))


def groups_of(rows: Sequence[RunRow]) -> dict[int, Choice]:
    """Return the group of each run, by its id: its arm, or runs of no experiment alike by name, which is a guess.

    `clip-scenes` and `clip-scenes seed 3` are one; so are `clip-emoji-0` and `clip-emoji-1`.
    """
    alike = Counter(_stem(row.name) for row in rows if not row.experiment)
    arms = Counter(arm for _, arm in {(row.experiment, row.arm) for row in rows if row.experiment})
    return {row.id: _group_of(row, arms if row.experiment else alike) for row in rows}


def _stem(name: str) -> str:
    """Return the name of a run without its seed, `clip-emoji-` or `clip-scenes`."""
    stem, seed, _ = name.partition(" seed ")
    numbered = None if seed else _NUMBERED.fullmatch(name)
    return numbered[1] if numbered else stem


def _group_of(row: RunRow, alike: Counter[str]) -> Choice:
    if row.experiment:
        # A closed picker does not show the heading.
        label = row.arm if alike[row.arm] == 1 else f"{row.arm} · {row.experiment}"
        return Choice(arm_group(row), label, group=row.experiment)
    stem, method = _stem(row.name), objective_label(row.objective)
    pattern = f"{stem if alike[stem] > 1 or ' seed ' in row.name else row.name}*"
    label = pattern.rstrip("-*")
    text = label if method.casefold() in label.casefold() else f"{method} · {label}"
    return Choice(pattern, text, f"By their names: runs called {pattern}", group="Runs")
