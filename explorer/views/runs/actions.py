"""Actions on the selected runs, shared by the toolbar, the context menu and the palette."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from msgspec import Struct
from PySide6.QtCore import Qt
from PySide6.QtGui import QAction, QKeySequence
from PySide6.QtWidgets import QWidget

from explorer import theme
from explorer.run_control.jobs import working
from explorer.widgets.command_palette import COMMAND
from explorer.widgets.refusal import set_refusal
from trainer import config
from trainer.store import RunRow

_ELSEWHERE: Final = frozenset(kind.kind for kind in config.ELSEWHERE["objective"])
RESUMABLE: Final = frozenset({"stopped", "interrupted", "failed"})


class Need(NamedTuple):
    """The selections of runs for which an action is enabled.

    Attributes:
        holds: Whether a selection is one of them.
        sentence: What to do first where it is not; of no run it is to choose one.
    """

    holds: Callable[[Sequence[RunRow]], bool]
    sentence: str = ""


class ActionSpec(Struct, frozen=True):
    """One action: label, icon, keys, tool tip, and the selections for which it is enabled."""

    words: str
    icon: str
    keys: str
    hint: str
    needs: Need


CHOOSE: Final = "Choose a run in the list first."
_NONE: Final = Need(lambda runs: True)
_ANY: Final = Need(bool)
_ONE: Final = Need(lambda runs: len(runs) == 1, "Choose one run in the list first.")
_LISTENS: Final = Need(lambda runs: any(run.status == "running" for run in runs), "Choose a run that trains now.")
_QUEUED: Final = Need(lambda runs: any(run.status == "queued" for run in runs), "Choose a run that waits in the queue.")
_TRAINABLE: Final = Need(
    lambda runs: len(runs) == 1 and runs[0].objective not in _ELSEWHERE,
    "Choose one run that was trained here: what was made elsewhere cannot be trained again.",
)
ACTION_SPECS: Final[dict[str, ActionSpec]] = {
    "new": ActionSpec("New run", "plus", "", "Start a run from a preset  (Ctrl+N)", _NONE),
    "import": ActionSpec(
        "Import data\u2026",
        "folder-open",
        "",
        "Check a folder, table or tar of pairs, then train on it  (Ctrl+Shift+O)",
        _NONE,
    ),
    "stop": ActionSpec(
        "Stop",
        "square",
        "",
        "Stop after the current step, with a checkpoint to resume from",
        Need(
            lambda runs: any(run.active and run.status != "stopping" for run in runs),
            "Choose a run that trains or waits.",
        ),
    ),
    "stop-epoch": ActionSpec("Stop after the epoch", "square", "", "Stop at the end of the current epoch", _LISTENS),
    "pause": ActionSpec(
        "Pause", "circle-pause", "", "Pause after the current step with the model in memory; Resume continues", _LISTENS
    ),
    "save": ActionSpec("Save a checkpoint now", "save", "", "Write a checkpoint of the current step", _LISTENS),
    "evaluate": ActionSpec("Evaluate now", "target", "", "Evaluate the held-out pairs at the current step", _LISTENS),
    "kill": ActionSpec(
        "Kill",
        "ban",
        "",
        "End the trainer immediately; work since its last checkpoint is lost",
        Need(lambda runs: any(working(run) for run in runs), "Choose a run that trains now."),
    ),
    "queue-up": ActionSpec(
        "Earlier in the queue", "chevron-up", "Alt+Up", "Moves the run up one place; runs can also be dragged", _QUEUED
    ),
    "queue-down": ActionSpec("Later in the queue", "chevron-down", "Alt+Down", "Moves the run down one place", _QUEUED),
    "queue-turn": ActionSpec("Choose its turn\u2026", "clock", "", "Sets the priority, or a run to wait for", _QUEUED),
    "queue-again": ActionSpec(
        "Resume in the queue",
        "list",
        "",
        "Continue from the newest checkpoint when the queue has a free slot",
        Need(lambda runs: any(run.status in RESUMABLE for run in runs), "Choose a run that was stopped."),
    ),
    "queue-slots": ActionSpec(
        "Parallel runs\u2026",
        "cpu",
        "",
        "Sets how many runs train at once per device; holds the queue",
        _NONE,
    ),
    "end": ActionSpec(
        "End now",
        "ban",
        "",
        "End a trainer that does not stop; work since its last checkpoint is lost",
        Need(lambda runs: False, "The trainer responds: Stop ends it."),
    ),
    "resume": ActionSpec(
        "Resume",
        "play",
        "",
        "Continues at once from where it paused or from its newest checkpoint; does not wait in the queue",
        Need(
            lambda runs: any(run.status in RESUMABLE or run.status == "paused" or run.asked == "pause" for run in runs),
            "Choose a run that was stopped or paused.",
        ),
    ),
    "repeat": ActionSpec(
        "Repeat over seeds\u2026",
        "grid-2x2",
        "",
        "Repeats the run over seeds; over objectives, beta, tau or batch size as an experiment",
        _TRAINABLE,
    ),
    "experiment": ActionSpec(
        "Repeat as an experiment\u2026",
        "scale",
        "",
        "An experiment: this run with other values of a field, over seeds",
        _TRAINABLE,
    ),
    "branch": ActionSpec(
        "Fork from a checkpoint\u2026", "split", "", "A new run that continues from a kept checkpoint", _TRAINABLE
    ),
    "decode": ActionSpec(
        "Train a decoder\u2026",
        "eye",
        "",
        "Trains a decoder from embeddings to pictures, for Decode",
        _TRAINABLE,
    ),
    "fine-tune": ActionSpec(
        "Fine-tune\u2026",
        "sliders-horizontal",
        "",
        "A new run that continues from its weights, with settings that suit them",
        _TRAINABLE,
    ),
    "mix": ActionSpec(
        "Mix with its base\u2026",
        "blend",
        "",
        "Measure weights between fine-tuned runs and what they started from: WiSE-FT, of several a model soup",
        Need(
            lambda runs: bool(runs) and all(_TRAINABLE.holds([run]) for run in runs),
            "Choose runs that were trained here.",
        ),
    ),
    "duplicate": ActionSpec(
        "Duplicate\u2026", "copy-plus", "Ctrl+D", "A new run with the same configuration", _TRAINABLE
    ),
    "tag": ActionSpec("Tags\u2026", "star", "T", "Tags for the filter: tag:paper", _ANY),
    "note": ActionSpec("Note\u2026", "type", "", "Notes about this run, in Markdown", _ONE),
    "archive": ActionSpec(
        "Archive",
        "folder",
        "",
        "Hides the run; the filter is:archived shows it, and Archive restores it",
        Need(
            lambda runs: bool(runs) and not any(run.active for run in runs),
            "Choose runs that neither train nor wait: stop them first.",
        ),
    ),
    "rename": ActionSpec("Rename", "pencil", "F2", "Rename in place", _ONE),
    "delete": ActionSpec(
        "Delete",
        "trash-2",
        "Del",
        "Removes the run from the list; can be undone",
        Need(
            lambda runs: bool(runs) and not any(working(run) for run in runs),
            "Choose runs that do not train now: stop them first.",
        ),
    ),
    "show-a": ActionSpec("Show as A", "circle-dot", "A", "Sets run A of every comparison", _ONE),
    "show-b": ActionSpec("Show as B", "circle-dot", "B", "Sets run B of every comparison", _ONE),
    "inspect": ActionSpec(
        "Log and configuration", "panel-right", "", "Open them next to the charts, or close them  (Enter)", _ANY
    ),
    "folder": ActionSpec("Open folder", "folder-open", "", "Show the files of the run", _ONE),
}

TOOLBAR: Final = ("stop", "end", "resume", "duplicate", "delete")
CONTEXT_MENU: Final = (
    "inspect",
    "",
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
    "",
    "show-a",
    "show-b",
    "",
    "duplicate",
    "fine-tune",
    "mix",
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
BARE: Final = frozenset({"stop", "pause", "kill", "resume", "duplicate", "archive", "rename", "delete"})
"""Verbs, which say in the menu of a run what they act on, and nowhere else."""
READING: Final = frozenset({"new", "import", "show-a", "show-b", "inspect", "folder"})
"""They write nothing, or say themselves why they cannot."""


class RunActions:
    """The actions as Qt objects.

    Attributes:
        by_name: Key of `DEEDS` -> action.
    """

    def __init__(self, parent: QWidget) -> None:
        self.by_name = {name: self._make(name, spec, parent) for name, spec in ACTION_SPECS.items()}
        self.show_chosen(())
        self.offer_end(False)

    def __getitem__(self, name: str) -> QAction:
        return self.by_name[name]

    def show_chosen(self, runs: Sequence[RunRow], read_only: str = "") -> None:
        """Enable the actions available for these runs, in a workspace that is read-only for this reason."""
        for name, spec in ACTION_SPECS.items():
            refusal, possible = "" if name in READING else read_only, spec.needs.holds(runs)
            stops = ", ".join(run.short_name for run in runs if run.active) if name == "stop" else ""
            hint = f"Stop {stops} after the current step, with a checkpoint to resume from" if stops else spec.hint
            hint = f"{hint}{f'  ({spec.keys})' if spec.keys else ''}"
            set_refusal(
                self.by_name[name], refusal or ("" if possible else spec.needs.sentence if runs else CHOOSE), hint
            )
            if name in SHY:
                self.by_name[name].setVisible(possible)

    def offer_end(self, unresponsive: bool) -> None:
        """Show `end` only while a selected run's trainer does not respond."""
        set_refusal(self["end"], "" if unresponsive else ACTION_SPECS["end"].needs.sentence)
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

    def _make(self, name: str, spec: ActionSpec, parent: QWidget) -> QAction:
        action = QAction(spec.words, parent, objectName=f"run-{name}")
        theme.keep_icon(action, spec.icon)
        if name in BARE:
            action.setProperty(COMMAND, re.sub("(\u2026?)$", r" run\1", spec.words, count=1))
        if spec.keys:
            action.setShortcut(QKeySequence(spec.keys))
            # Single letters and Del belong to the table only: elsewhere they are typed.
            action.setShortcutContext(
                Qt.ShortcutContext.WindowShortcut if name == "new" else Qt.ShortcutContext.WidgetShortcut
            )
        return action
