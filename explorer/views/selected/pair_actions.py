"""What can be decided about the pair in the inspector: its state, and its tags."""

from __future__ import annotations

import dataclasses
from functools import partial
from typing import Final, Literal

from PySide6.QtCore import QStringListModel, Qt, Signal
from PySide6.QtGui import QAction, QUndoCommand
from PySide6.QtWidgets import QCompleter, QLineEdit, QPushButton, QWidget

from explorer import theme
from explorer.run_control.write_queue import WriteQueue
from explorer.views.read_only import guarded
from explorer.views.selected.pair_load import LoadedPair, StoredFacts, write_state, write_tag
from explorer.views.view import Context
from explorer.widgets import layouts
from explorer.widgets.flow_row import FlowRow
from explorer.widgets.refusal import set_refusal
from trainer.charts.one_pair import OnePair
from trainer.charts.probes import PinnedProbe, pin
from trainer.store.selections import NamedSelection

STATES: Final = (
    ("flagged", "Flag", "Leave this pair out of cleaned lists"),
    ("ignored", "Ignore", "This pair is fine as it is"),
    ("reviewed", "Reviewed", "Seen, nothing decided"),
)
"""State, words and hint of each button."""
PINS: Final[tuple[tuple[Literal["image", "text"], str, str], ...]] = (
    ("image", "Pin picture", "Search with it in each run at every snapshot, in Probe strip"),
    ("text", "Pin caption", "Search with it in each run at every snapshot, in Probe strip"),
)
"""Kind of probe, words and hint of each button."""
MOST_CHIPS: Final = 12
"""Tags of a pair that have a button each."""


class PairActions(QWidget):
    """Buttons for the state of a pair, and its tags; every change can be undone.

    A tag is a kept selection of the data set: what is tagged here is listed under *Kept*, and the other way round.

    Attributes:
        facts: What is stored about the pairs of the data set; None until it is read again.
    """

    failed = Signal(str, str)  # What went wrong, and what to do.

    def __init__(self, context: Context, parent: QWidget | None = None) -> None:
        super().__init__(parent, objectName="inspector-actions")
        self.context = context
        self.facts: StoredFacts | None = None
        self._loaded: LoadedPair | None = None
        self._writes = WriteQueue(context.background, self)
        self._writes.written.connect(self._announce)
        self._writes.failed.connect(lambda reason: self.failed.emit(reason, "Nothing was saved."))
        self._buttons: dict[str, QPushButton] = {}
        for state, label, hint in STATES:
            button = QPushButton(label, objectName=f"inspector-{state}", checkable=True, toolTip=hint)
            button.setAccessibleDescription(hint)
            button.clicked.connect(partial(self._press, state))
            self._buttons[state] = button
        self._pins = [
            QPushButton(label, objectName=f"inspector-pin-{kind}", toolTip=hint) for kind, label, hint in PINS
        ]
        for (kind, _, _), button in zip(PINS, self._pins, strict=True):
            button.clicked.connect(partial(self.pin, kind))
        self.chips = [QPushButton(objectName=f"inspector-tag-{index}") for index in range(MOST_CHIPS)]
        self.name = QLineEdit(objectName="inspector-tag", placeholderText="Add a tag", accessibleName="Add a tag")
        self.name.setToolTip("A tag is a saved selection; Map lists it under Kept")
        self._known = QStringListModel(self)
        completer = QCompleter(self._known, self)
        completer.setCaseSensitivity(Qt.CaseSensitivity.CaseInsensitive)
        self.name.setCompleter(completer)
        self.name.returnPressed.connect(self._add)
        self._lay_out()
        guarded(context.jobs, self)

    def show_pair(self, loaded: LoadedPair) -> None:
        """Show the state and the tags of this pair."""
        self._loaded, self.facts = loaded, loaded.facts
        for state, button in self._buttons.items():
            button.setChecked(state == loaded.state)
        tags = loaded.tags
        for index, chip in enumerate(self.chips):
            is_used = index < len(tags)
            chip.setVisible(is_used)
            chip.setText(f"{tags[index].replace('&', '&&')}  ×" if is_used else "")
            chip.setAccessibleName(f"Remove tag {tags[index]}" if is_used else "")
            chip.setToolTip(f"Take this pair out of “{tags[index]}”" if is_used else "")
        self.row.setVisible(bool(tags))
        for button, value, what in zip(
            self._pins, (loaded.pair.path, loaded.pair.caption), ("picture", "caption"), strict=True
        ):
            set_refusal(button, "" if value else f"This pair has no {what}.")
        self._known.setStringList([tag.name for tag in loaded.facts.tags])

    def actions(self) -> list[QAction]:
        """Return an action per state of the pair that is shown."""
        made = []
        for state, label, _ in STATES if self._loaded is not None and self.isEnabled() else ():
            action = QAction(f"{label} the selected pair" if state != "reviewed" else "Mark the pair as reviewed", self)
            action.triggered.connect(lambda _=False, s=state: self.decide(s))
            made.append(action)
        for kind, label, _ in PINS if self._loaded is not None and self.isEnabled() else ():
            action = QAction(f"{label} of the selected pair as a probe", self)
            action.triggered.connect(partial(self.pin, kind))
            made.append(action)
        return made

    def decide(self, state: str) -> None:
        """Give the pair this state, or take it away where it is empty or has it already; undoable."""
        loaded = self._loaded
        if loaded is None:
            return
        after = "" if state == loaded.state else state
        label = next((label for name, label, _ in STATES if name == after), "Clear state")
        self.context.selection.undo.push(_State(self, f"{label}: 1 pair", loaded.pair, loaded.state, after))

    def pin(self, kind: Literal["image", "text"], _checked: bool = False) -> None:
        """Pin the picture or the caption of the pair as a probe."""
        if self._loaded is None:
            return
        value = self._loaded.pair.path if kind == "image" else self._loaded.pair.caption
        self._writes.add(partial(pin, self.context.workspace, [PinnedProbe(kind, value)]))

    def tag(self, name: str, *, on: bool) -> None:
        """Add or remove a tag of the pair; undoable."""
        loaded, name = self._loaded, " ".join(name.split())
        if loaded is not None and name and on != (name in loaded.tags):
            self.context.selection.undo.push(_Tag(self, loaded.pair, name, on=on))

    def apply_state(self, pair: OnePair, state: str) -> None:
        """Store a state, showing it at once."""
        if self.facts is not None:
            others = {key: other for key, other in self.facts.states.items() if key != pair.key}
            self._take(dataclasses.replace(self.facts, states=others | ({pair.key: state} if state else {})))
        self._writes.add(partial(write_state, self.context.workspace, pair, state))

    def apply_tag(self, pair: OnePair, name: str, *, on: bool) -> None:
        """Store that the pair has a tag or has not, showing it at once."""
        if self.facts is not None:
            others = tuple(tag for tag in self.facts.tags if tag.name != name)
            earlier = next((tag for tag in self.facts.tags if tag.name == name), None)
            items = tuple(i for i in (earlier.items if earlier else ()) if i != pair.id) + ((pair.id,) if on else ())
            made = NamedSelection(earlier.id if earlier else 0, name, self.facts.dataset, items, 0.0)
            tags = sorted((*others, *([made] if items else [])), key=lambda tag: tag.name)
            self._take(dataclasses.replace(self.facts, tags=tuple(tags)))
        self._writes.add(partial(write_tag, self.context.workspace, pair, name, on))

    def _take(self, facts: StoredFacts) -> None:
        self.facts = facts
        if self._loaded is not None:
            self.show_pair(dataclasses.replace(self._loaded, facts=facts))

    def _announce(self) -> None:
        if self._writes.is_idle:  # what is read between two writes would show the state before the second
            self.context.selection.facts_changed.emit()

    def _press(self, state: str, _checked: bool = False) -> None:
        self.decide(state)
        if self._loaded is not None:  # the button follows the state, whatever it did by itself
            self.show_pair(self._loaded)

    def _add(self) -> None:
        self.tag(self.name.text(), on=True)
        self.name.clear()

    def _remove(self, index: int) -> None:
        if self._loaded is not None and index < len(self._loaded.tags):
            self.tag(self._loaded.tags[index], on=False)

    def _lay_out(self) -> None:
        title = layouts.text("State and tags", "heading")
        states = FlowRow()
        for button in self._buttons.values():
            states.add(button)
        pins = FlowRow()
        for button in self._pins:
            pins.add(button)
        self.row = FlowRow()
        for index, chip in enumerate(self.chips):
            chip.clicked.connect(partial(self._remove, index))
            self.row.add(chip, gap=theme.SPACE)
        layouts.column(title, states, self.row, self.name, pins, of=self)


class _State(QUndoCommand):
    """The state of one pair, for undo."""

    def __init__(self, pair_actions: PairActions, text: str, pair: OnePair, before: str, after: str) -> None:
        super().__init__(text)
        self._pair_actions, self._pair, self._before, self._after = pair_actions, pair, before, after

    def redo(self) -> None:
        self._pair_actions.apply_state(self._pair, self._after)

    def undo(self) -> None:
        self._pair_actions.apply_state(self._pair, self._before)


class _Tag(QUndoCommand):
    """A tag that was added or removed, for undo."""

    def __init__(self, pair_actions: PairActions, pair: OnePair, name: str, *, on: bool) -> None:
        super().__init__(f"{'Add' if on else 'Remove'} the tag “{name}”")
        self._pair_actions, self._pair, self._name, self._on = pair_actions, pair, name, on

    def redo(self) -> None:
        self._pair_actions.apply_tag(self._pair, self._name, on=self._on)

    def undo(self) -> None:
        self._pair_actions.apply_tag(self._pair, self._name, on=not self._on)
