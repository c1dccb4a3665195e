"""The bar at the top: run A, run B, step, data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QHBoxLayout, QLabel, QPushButton, QToolButton, QWidget

from explorer import theme
from explorer.state.selection import Selection
from explorer.widgets.finder import Choice
from explorer.widgets.run_badge import RunBadge
from explorer.widgets.searchable_combo_box import SearchableComboBox
from explorer.window.picker_choices import PickerChoices
from trainer.config.split_key import SplitKey

if TYPE_CHECKING:
    from trainer.store import RunRow

HEIGHT = 48
_WITH_WORDS_PX = 920
"""In a bar that is narrower than this, the search button has a sign only: the pickers need the room."""
READING = "Reading…"
"""Until the store was read: that nothing is known is not that there is nothing."""
OWN_STEPS = "own steps"
"""Key of the choice that A and B are at a step each; it is made where two snapshots are compared."""
_SPLITS = {
    "renderings": "unseen renderings",
    "batch": "a training batch",
    "combinations": "unseen combinations",
    "heldout": "held-out pairs",
    "train": "training pairs",
}


class Bar(QWidget):
    """Combo boxes that show and change the selection.

    Signals:
        palette_asked: The search button was clicked.
        inspector_asked: The inspector is to be shown or hidden.
    """

    palette_asked = Signal()
    inspector_asked = Signal()

    def __init__(self, selection: Selection, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("bar")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self.setFixedHeight(HEIGHT)
        self._selection = selection
        self._runs: tuple[Choice, ...] = ()
        self._archived: dict[int, Choice] = {}
        self._facts = PickerChoices()
        self._knows_runs = self._knows_facts = False
        self.run_a = SearchableComboBox(name="runA", label="Run A", width=80)
        self.run_b = SearchableComboBox(name="runB", label="Run B", width=80)
        self.step = SearchableComboBox(name="step", label="Step of the snapshots", width=92)
        self.dataset = SearchableComboBox(name="dataset", label="Data of the snapshots", width=88)
        self.swap = QToolButton(objectName="swapRuns", accessibleName="Swap A and B", toolTip="Swap A and B (Ctrl+T)")
        theme.keep_icon(self.swap, "arrow-left-right", 16, "secondary")
        self.search = QPushButton(" Commands", objectName="openPalette", accessibleName="Open the command palette")
        self.search.setToolTip("Search all commands (Ctrl+Shift+P)")
        theme.set_role(self.search, "quiet")
        theme.keep_icon(self.search, "search", 16, "secondary")
        self.inspector = QToolButton(objectName="toggleInspector", accessibleName="Inspector", checkable=True)
        self.inspector.setToolTip("Show or hide the inspector of the selected pair (Ctrl+Shift+I)")
        theme.keep_icon(self.inspector, "panel-right", 16, "secondary")
        self._lay_out()
        self._connect(selection)
        self._show()

    def show_runs(self, runs: Sequence[RunRow]) -> None:
        """Offer these runs; archived ones only while they are chosen."""
        # Made once for both pickers and for all that is chosen until the next list: there may be thousands.
        offered = [_choice(run) for run in runs if run.archived_at is None]
        self._archived = {run.id: _choice(run) for run in runs if run.archived_at is not None}
        self._runs = (Choice(None, "No run"), *offered) if runs else ()
        self._knows_runs = True
        self._show()

    def show_facts(self, facts: PickerChoices) -> None:
        """Offer these steps and data."""
        self._facts, self._knows_facts = facts, True
        self._show()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.search.setText(" Commands" if event.size().width() >= _WITH_WORDS_PX else "")

    def _connect(self, selection: Selection) -> None:
        self.run_a.picked.connect(lambda run: selection.select_runs(run, selection.run_b))
        self.run_b.picked.connect(lambda run: selection.select_runs(selection.run_a, run))
        self.step.picked.connect(lambda step: None if step == OWN_STEPS else setattr(selection, "step", step))
        self.dataset.picked.connect(lambda dataset: setattr(selection, "dataset", dataset))
        self.swap.clicked.connect(selection.swap)
        self.search.clicked.connect(self.palette_asked)
        self.inspector.clicked.connect(lambda: self.inspector_asked.emit())
        for signal in (selection.runs_changed, selection.step_changed, selection.dataset_changed):
            signal.connect(self._show)

    def _show(self) -> None:
        for picker, run in ((self.run_a, self._selection.run_a), (self.run_b, self._selection.run_b)):
            archived = self._archived.get(run) if run is not None else None
            picker.show_choices(self._runs if archived is None else (*self._runs, archived), run)
        self.run_a.tell_apart(self.run_b.currentText())
        self.run_b.tell_apart(self.run_a.currentText())
        steps = [Choice(step, f"{step:,}") for step in reversed(self._facts.steps)]
        last = Choice(None, f"Last ({steps[0].words})" if steps else "Last")
        a, b = self._selection.step_of(0), self._selection.step_of(1)
        if a != b and steps:
            labels = [last.words if step is None else f"{step:,}" for step in (a, b)]
            steps = [Choice(OWN_STEPS, f"A {labels[0]} · B {labels[1]}", "A separate step for each run"), *steps]
        self.step.show_choices([last, *steps] if steps else [], a if a == b else OWN_STEPS)
        data = [Choice(key, dataset_words(key)) for key in self._facts.datasets]
        chosen = self._selection.dataset if self._selection.dataset in self._facts.datasets else None
        self.dataset.show_choices(data, chosen or (data[0].key if data else None))
        self.swap.setEnabled(bool(self._selection.runs))
        no_run = "No run yet" if self._knows_runs else READING
        no_data = "No snapshots yet" if self._knows_runs and self._knows_facts else READING
        for picker, placeholder in (
            (self.run_a, no_run),
            (self.run_b, no_run),
            (self.step, "Last"),
            (self.dataset, no_data),
        ):
            picker.setPlaceholderText(placeholder)

    def _lay_out(self) -> None:
        row = QHBoxLayout(self)
        row.setContentsMargins(theme.BETWEEN, 0, theme.INSIDE, 0)
        row.setSpacing(theme.INSIDE)
        row.addWidget(RunBadge("A", 0))
        row.addWidget(self.run_a, 3)
        row.addWidget(self.swap)
        row.addWidget(RunBadge("B", 1))
        row.addWidget(self.run_b, 3)
        row.addSpacing(theme.BETWEEN)
        for text, picker, stretch in (("Step", self.step, 3), ("Data", self.dataset, 4)):
            label = QLabel(text)
            theme.set_role(label, "secondary")
            label.setBuddy(picker)
            row.addWidget(label)
            row.addWidget(picker, stretch)
            row.addSpacing(theme.SPACE)
        row.addStretch(0)
        row.addWidget(self.search)
        row.addWidget(self.inspector)
        for picker, widest in ((self.run_a, 280), (self.run_b, 280), (self.step, 190), (self.dataset, 280)):
            picker.setMaximumWidth(widest)


def dataset_words(key: SplitKey) -> str:
    """Format a data key: `Scenes, unseen renderings`."""
    return f"{key.dataset[:1].upper()}{key.dataset[1:]}, {_SPLITS.get(key.split, key.split)}"


def _choice(run: RunRow) -> Choice:
    state = run.status if run.archived_at is None else f"{run.status}, archived"
    return Choice(run.id, run.name, f"#{run.id}, {run.objective.upper()}, {run.data}, {state}")
