"""Actions on the selected runs, shared by the toolbar, the context menu and the palette."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from PySide6.QtCore import Qt
from PySide6.QtGui import QAction, QKeySequence
from PySide6.QtWidgets import QWidget

from explorer import theme
from explorer.run_control.jobs import working
from trainer import config
from trainer.store import RunRow

_ELSEWHERE: Final = frozenset(kind.kind for kind in config.ELSEWHERE["objective"])
RESUMABLE: Final = frozenset({"stopped", "interrupted", "failed"})


def _listens(runs: Sequence[RunRow]) -> bool:
    """Return whether a live trainer can respond between steps."""
    return any(run.status == "running" for run in runs)


def _queued(runs: Sequence[RunRow]) -> bool:
    return any(run.status == "queued" for run in runs)


@dataclass(frozen=True)
class Deed:
    """One action: label, icon, keys, tool tip, and the selections for which it is enabled."""

    words: str
    icon: str
    keys: str
    hint: str
    possible: Callable[[Sequence[RunRow]], bool]


def _one(runs: Sequence[RunRow]) -> bool:
    return len(runs) == 1


def _trainable(runs: Sequence[RunRow]) -> bool:
    """Return whether it is one run with a model: what was made elsewhere cannot be trained again."""
    return len(runs) == 1 and runs[0].objective not in _ELSEWHERE


DEEDS: Final[dict[str, Deed]] = {
    "new": Deed("New run", "plus", "Ctrl+N", "Start a run from a preset", lambda runs: True),
    "import": Deed(
        "Import data\u2026",
        "folder-open",
        "",
        "See what a folder, table or tar of pairs holds, then train on it  (Ctrl+Shift+O)",
        lambda runs: True,
    ),
    "stop": Deed(
        "Stop",
        "circle-stop",
        "",
        "Stop after the current step, with a checkpoint to resume from",
        lambda runs: any(run.active and run.status != "stopping" for run in runs),
    ),
    "stop-epoch": Deed("Stop after the epoch", "circle-stop", "", "Stop at the end of the current epoch", _listens),
    "pause": Deed(
        "Pause", "circle-pause", "", "Pause after the current step with the model in memory; Resume continues", _listens
    ),
    "save": Deed("Save a checkpoint now", "save", "", "Write a checkpoint of the current step", _listens),
    "evaluate": Deed("Evaluate now", "target", "", "Evaluate the held-out pairs at the current step", _listens),
    "kill": Deed(
        "Kill",
        "ban",
        "",
        "End the trainer immediately; work since its last checkpoint is lost",
        lambda runs: any(working(run) for run in runs),
    ),
    "queue-up": Deed(
        "Earlier in the queue", "chevron-up", "Alt+Up", "Move up one place; runs can also be dragged", _queued
    ),
    "queue-down": Deed("Later in the queue", "chevron-down", "Alt+Down", "Move down one place", _queued),
    "queue-turn": Deed("Choose its turn\u2026", "clock", "", "Priority, and which run to wait for", _queued),
    "queue-again": Deed(
        "Resume in the queue",
        "list",
        "",
        "Continue from the newest checkpoint when a slot is free",
        lambda runs: any(run.status in RESUMABLE for run in runs),
    ),
    "queue-slots": Deed(
        "Max parallel runs\u2026",
        "cpu",
        "",
        "Runs on each GPU and on the processor; hold the queue",
        lambda runs: True,
    ),
    "end": Deed(
        "End now",
        "ban",
        "",
        "End a trainer that does not stop; work since its last checkpoint is lost",
        lambda runs: False,
    ),
    "resume": Deed(
        "Resume",
        "play",
        "",
        "Continue after a pause, or from the newest checkpoint",
        lambda runs: any(run.status in RESUMABLE or run.status == "paused" or run.asked == "pause" for run in runs),
    ),
    "repeat": Deed(
        "Repeat\u2026", "grid-2x2", "", "Queue runs like it over seeds, objectives, beta, tau, batch size", _trainable
    ),
    "experiment": Deed(
        "Repeat with\u2026", "scale", "", "An experiment: this run with other values of a field, over seeds", _trainable
    ),
    "branch": Deed(
        "Branch off a checkpoint\u2026", "split", "", "A new run that continues from a kept checkpoint", _trainable
    ),
    "decode": Deed(
        "Train a decoder\u2026",
        "eye",
        "",
        "A run that learns pictures from its embeddings, for Decode",
        _trainable,
    ),
    "duplicate": Deed("Duplicate\u2026", "copy-plus", "Ctrl+D", "A new run with the same configuration", _trainable),
    "tag": Deed("Tags\u2026", "star", "T", "Words that the filter finds: tag:paper", bool),
    "note": Deed("Note\u2026", "type", "", "What you want to remember of it, in Markdown", _one),
    "archive": Deed(
        "Archive",
        "folder",
        "",
        "Put away; the filter is:archived shows it, and Archive then takes it back",
        lambda runs: bool(runs) and not any(run.active for run in runs),
    ),
    "rename": Deed("Rename", "pencil", "F2", "Rename in place", _one),
    "delete": Deed(
        "Delete",
        "trash-2",
        "Del",
        "Remove from the list; can be undone",
        lambda runs: bool(runs) and not any(working(run) for run in runs),
    ),
    "show-a": Deed("Show as A", "circle-dot", "A", "Make it run A, blue in every view", _one),
    "show-b": Deed("Show as B", "circle-dot", "B", "Make it run B, orange in every view", _one),
    "folder": Deed("Open folder", "folder-open", "", "Show the files of the run", _one),
}

TOOLBAR: Final = ("import", "", "stop", "end", "resume", "duplicate", "delete", "", "show-a", "show-b")
CONTEXT_MENU: Final = (
    "pause",
    "resume",
    "queue-again",
    "stop",
    "stop-epoch",
    "end",
    "kill",
    "",
    "save",
    "evaluate",
    "",
    "queue-up",
    "queue-down",
    "queue-turn",
    "queue-slots",
    "",
    "show-a",
    "show-b",
    "",
    "duplicate",
    "repeat",
    "experiment",
    "branch",
    "decode",
    "rename",
    "tag",
    "note",
    "archive",
    "folder",
    "",
    "delete",
)


SHY: Final = frozenset(
    {"pause", "stop-epoch", "kill", "save", "evaluate", "queue-up", "queue-down", "queue-turn", "queue-again"}
)
"""In the menu only while they can be done: the menu of a finished run is short."""


class RunActions:
    """The actions as Qt objects.

    Attributes:
        by_name: Key of `DEEDS` -> action.
    """

    def __init__(self, parent: QWidget) -> None:
        self.by_name = {name: self._make(name, deed, parent) for name, deed in DEEDS.items()}
        self.show_chosen(())
        self.offer_end(False)

    def __getitem__(self, name: str) -> QAction:
        return self.by_name[name]

    def show_chosen(self, runs: Sequence[RunRow]) -> None:
        """Enable the actions available for these runs."""
        for name, deed in DEEDS.items():
            possible = deed.possible(runs)
            self.by_name[name].setEnabled(possible)
            if name in SHY:
                self.by_name[name].setVisible(possible)

    def offer_end(self, unresponsive: bool) -> None:
        """Show `end` only while a selected run's trainer does not respond."""
        self["end"].setEnabled(unresponsive)
        self["end"].setVisible(unresponsive)

    def add_to(self, widget: QWidget, names: Sequence[str]) -> None:
        """Add these actions to `widget`, in order; an empty name is a separator."""
        for name in names:
            if name:
                widget.addAction(self.by_name[name])
            else:
                separator = QAction(widget)
                separator.setSeparator(True)
                widget.addAction(separator)

    def _make(self, name: str, deed: Deed, parent: QWidget) -> QAction:
        action = QAction(deed.words, parent)
        action.setObjectName(f"run-{name}")
        keys = f"  ({deed.keys})" if deed.keys else ""
        action.setToolTip(f"{deed.hint}{keys}")
        theme.keep_icon(action, deed.icon, role={"show-a": "run_a", "show-b": "run_b"}.get(name, "text"))
        if deed.keys:
            action.setShortcut(QKeySequence(deed.keys))
            # Single letters and Del belong to the table only: elsewhere they are typed.
            action.setShortcutContext(
                Qt.ShortcutContext.WindowShortcut if name == "new" else Qt.ShortcutContext.WidgetShortcut
            )
        return action
