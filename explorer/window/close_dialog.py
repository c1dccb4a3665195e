"""Decide what happens to runs and unfinished work when the window closes: ask, or use the saved choice."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QCheckBox, QDialog, QPushButton, QWidget

from explorer import theme
from explorer.widgets import layouts

if TYPE_CHECKING:
    from explorer.run_control.jobs import Jobs
    from explorer.state.settings import Settings

KEY: Final = "window/leaving"
KEEP, STOP, STAY = "keep", "stop", "stay"
ROOM: Final = 460


class CloseDialog(QDialog):
    """A dialog that lists running and waiting runs, and work that ends with the window, and asks what to do.

    Attributes:
        choice: `keep`, `stop` or `stay`.
    """

    def __init__(
        self, training: int, waiting: int, unfinished: Sequence[str], parent: QWidget, *, watches: int = 0
    ) -> None:
        super().__init__(parent, objectName="leaving", windowTitle="Close the window", modal=True)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.choice = STAY
        has_runs = bool(training or waiting or watches)
        only_watches = watches > 0 and not training and not waiting
        sentences = [sentence(training, waiting, watches)] if has_runs else []
        if unfinished:
            sentences.append(f"Not finished, and will be lost: {', '.join(unfinished)}.")
        head = layouts.text(" ".join(sentences), "title", wrap=True)
        head.setTextFormat(Qt.TextFormat.PlainText)
        head.setMinimumWidth(ROOM)
        self.remember = QCheckBox("Remember this choice and do not ask again", objectName="leaving-remember")
        self.buttons = {
            STAY: QPushButton("Cancel", objectName="leaving-stay", autoDefault=False),
            STOP: QPushButton(
                "Stop watching" if only_watches else "Stop after the step", objectName="leaving-stop", autoDefault=False
            ),
            KEEP: QPushButton(
                "Keep running" if has_runs else "Close anyway", objectName="leaving-keep", autoDefault=False
            ),
        }
        if has_runs:
            theme.set_role(self.buttons[KEEP], "primary")
        for choice, button in self.buttons.items():
            button.clicked.connect(lambda _=False, choice=choice: self._choose(choice))
        does = {
            KEEP: f"The {'queue' if waiting else 'training'} continues in the background.",
            STOP: f"Each run can be resumed{'; the others stay in the queue' if waiting else ''}.",
        }
        if only_watches:
            does = {
                KEEP: "New values are recorded in the background.",
                STOP: "The other program trains on; it can be watched again.",
            }
        parts = [
            layouts.column(self.buttons[c], layouts.text(text, "small"), gap=theme.SPACE) for c, text in does.items()
        ]
        if not has_runs:
            parts = [layouts.column(self.buttons[KEEP])]
            for widget in (self.buttons[STOP], self.remember):
                widget.setParent(self)
                widget.hide()
        foot = layouts.row(*([(self.remember, 1)] if has_runs else [(layouts.STRETCH, 1)]), self.buttons[STAY])
        layouts.column(head, *parts, foot, gap=theme.BETWEEN, margins=theme.AROUND, of=self)
        likely = self.buttons[KEEP if has_runs else STAY]
        likely.setDefault(True)
        likely.setFocus()

    def _choose(self, choice: str) -> None:
        self.choice = choice
        self.done(0 if choice == STAY else 1)


def ask(
    window: QWidget, jobs: Jobs, settings: Settings, go: Callable[[], object], unfinished: Sequence[str] = ()
) -> None:
    """Call `go` when the window may close: at once if nothing is active, else after the user's choice.

    Args:
        window: Which closes.
        jobs: Of its runs.
        settings: Where the choice for runs is remembered; unfinished work is always asked about.
        go: Closes the window.
        unfinished: What ends with the window and is not kept, for people.
    """
    from explorer.run_control.jobs import working

    training = [run.id for run in jobs.runs if working(run)]
    waiting = [run.id for run in jobs.runs if run.status == "queued"]
    if jobs.look_only:
        training, waiting = [], []
    if not training and not waiting and not unfinished:
        go()
        return
    remembered = settings.value(KEY)
    if remembered in (KEEP, STOP) and not unfinished:
        _do(remembered, jobs, training, go)
        return
    if window.findChild(CloseDialog) is not None:
        return
    watches = sum(run.is_watched for run in jobs.runs if run.id in training)
    dialog = CloseDialog(len(training) - watches, len(waiting), unfinished, window, watches=watches)

    def answered() -> None:
        if dialog.choice == STAY:
            return
        if not training and not waiting:  # nothing of the queue is touched, least of all where it is read-only
            go()
            return
        if dialog.remember.isChecked():
            settings.set(KEY, dialog.choice)
        _do(dialog.choice, jobs, training, go)

    dialog.finished.connect(answered)
    dialog.open()


def sentence(training: int, waiting: int, watches: int = 0) -> str:
    """Return the number of active runs as a sentence: `2 runs are training and 1 waits in the queue.`, for example."""
    parts = []
    if training:
        parts.append(f"{training} run{'s are' if training > 1 else ' is'} training")
    if waiting:
        runs = "" if training else (" runs" if waiting > 1 else " run")
        parts.append(f"{waiting}{runs} wait{'' if waiting > 1 else 's'} in the queue")
    if watches:
        parts.append(f"{watches} watches continue" if watches > 1 else "the watch continues")
    text = " and ".join(parts)
    return f"{text[:1].upper()}{text[1:]}."


def _do(choice: str, jobs: Jobs, training: list[int], go: Callable[[], object]) -> None:
    if choice == KEEP:
        jobs.keep_queue_going()
        go()
        return
    # Before a run stops: a process that an earlier window left behind would start the next one in its place.
    jobs.rest_queue()
    if not training:
        go()
        return
    # The requests are written off this thread; the window goes when the last of them is in the store.
    left = set(training)

    def written(run: int) -> None:
        left.discard(run)
        if not left:
            go()

    for run in training:
        jobs.stop([run], done=lambda _, run=run: written(run))
