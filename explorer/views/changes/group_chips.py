"""Chips that filter the pairs by whether the image ranks its own caption first: in A only, in B only, in neither."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Final

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QPushButton, QWidget

from explorer.widgets import layouts
from explorer.widgets.refusal import set_refusal

ASKED: Final = "Own caption ranked first:"
TITLES: Final = {"only-a": "Only in A", "only-b": "Only in B", "neither": "In neither"}
HINT: Final = (
    "The image's own caption is the nearest of all. Its predicted class is another question. Click again for all pairs."
)


class GroupChips(QWidget):
    """One chip for each group, with its number of pairs; at most one is chosen."""

    changed = Signal()  # Another group is chosen, or none.

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent, objectName="changes-groups")
        self.group = ""
        self.chips = {name: QPushButton(title, checkable=True, toolTip=HINT) for name, title in TITLES.items()}
        for name, chip in self.chips.items():
            chip.setObjectName(f"changes-group-{name}")
            chip.setAccessibleName(f"{ASKED} {TITLES[name]}")
            chip.clicked.connect(partial(self._choose, name))
        self.extent = layouts.elided(role="small")
        layouts.row(layouts.text(ASKED, "secondary"), *self.chips.values(), (self.extent, 1), of=self)

    def show_counts(self, counts: Mapping[str, int], extent: str) -> None:
        """Show how many pairs are in each group, and of which pairs; no chips where there are no groups."""
        self.setVisible(bool(counts))
        self.extent.setText(extent)
        if not counts:
            self.group = ""
        for name, chip in self.chips.items():
            chip.setText(f"{TITLES[name]} ({counts.get(name, 0):,})")
            chip.setChecked(name == self.group)
            is_offered = name == self.group or counts.get(name, 0) > 0
            set_refusal(chip, "" if is_offered else "No pair is in this group.")

    def _choose(self, name: str, _checked: bool = False) -> None:
        self.group = name if self.chips[name].isChecked() else ""
        for other, chip in self.chips.items():
            chip.setChecked(other == self.group)
        self.changed.emit()
