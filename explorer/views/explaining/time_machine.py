"""The controls of the time machine: which update of run A is made again, and with which change."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QHBoxLayout, QLabel, QPushButton, QWidget

from explorer import theme
from explorer.views.view import Context
from explorer.widgets.combo_boxes import Choice, Picker
from explorer.widgets.number_box import NumberBox
from explorer.widgets.progress_row import Ticket, Working
from trainer.messages import Failure, ReplayStep, WhatIf

REPLAY: Final = "replayed-step"
WHAT_IF: Final = "what-if"
LEAVE_OUT: Final = (
    Choice((), "no pair", "All pairs of every batch stay."),
    Choice(("suspected",), "suspected", "False negatives: one of each two pairs that look alike."),
    Choice(("hardest:1",), "hardest pair", "The pair of the batch with the largest loss."),
    Choice(("hardest:8",), "8 hardest", "The pairs of the batch with the largest loss."),
)


@dataclass(frozen=True)
class _Objective:
    """Kind and fields of an objective; no kind is that of the run."""

    kind: str = ""
    fields: tuple[str, ...] = ()


OBJECTIVES: Final = (
    Choice(_Objective(), "its own", "That of the run."),
    Choice(_Objective("clip"), "CLIP", "With its default settings."),
    Choice(_Objective("infoloob"), "InfoLOOB", "With its default settings."),
    Choice(_Objective("cloob", ("retrieval_share=0.5",)), "half CLOOB", "Half CLOOB, half InfoLOOB."),
    Choice(_Objective("cloob"), "CLOOB", "As published."),
)
MOST_UPDATES: Final = 100_000


class TimeMachine(QWidget):
    """Asks a process to replay a step of run A, or what a change would have done; one question at a time.

    Signals:
        answered: The name of the chart that draws what is stored now.
        failed: Message and next step.
        turned: A question was asked, or is over.
    """

    answered = Signal(str)
    failed = Signal(str, str)
    turned = Signal()

    def __init__(self, context: Context, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._context = context
        self._asked: int | None = None
        self._ticket: Ticket | None = None
        self.step = NumberBox(whole=True, low=1, parent=self)
        self.step.setObjectName("time-machine-step")
        self.step.setAccessibleName("Step of run A")
        self.step.setToolTip("A step on the axis of run A's curves: the update that led to it is made again")
        self.again = QPushButton("Replay", objectName="time-machine-replay")
        self.again.setToolTip(
            "Makes the update again and trains on to the next checkpoint. Shown only if both are equal bit for bit"
        )
        self.leave_out = Picker(name="time-machine-without", words="Pairs left out", width=120)
        self.objective = Picker(name="time-machine-objective", words="Objective", width=110)
        self.updates = NumberBox(whole=True, low=1, high=MOST_UPDATES, parent=self)
        self.updates.setObjectName("time-machine-updates")
        self.updates.setAccessibleName("Updates made both ways")
        self.updates.setToolTip("How many updates are made both ways before the recalls are compared")
        self.compare = QPushButton("What if?", objectName="time-machine-what-if")
        self.compare.setToolTip("Makes the updates as they were and with the change, and compares the recalls")
        self.working = Working("time-machine-working", self, asks=True)
        self._lay_out()
        self.again.clicked.connect(lambda: self.ask_of(REPLAY, context.selection.run_a))
        self.compare.clicked.connect(lambda: self.ask_of(WHAT_IF, context.selection.run_a))
        self.working.cancelled.connect(self._cancel)

    @property
    def busy(self) -> bool:
        """Whether a question has no answer yet."""
        return self._asked is not None

    def show_chart(self, name: str) -> None:
        """Show the controls of this chart; none for another one."""
        self.setVisible(name in (REPLAY, WHAT_IF))
        self.again.setVisible(name == REPLAY)
        for widget in self._of_change:
            widget.setVisible(name == WHAT_IF)

    def replay(self, run: int, step: int) -> None:
        """Make this update of the run again."""
        self.step.set_value(step)
        self._ask(ReplayStep(run=run, step=step), REPLAY)

    def ask_of(self, chart: str, run: int | None) -> None:
        """Ask of this run what the controls say, for the chart that shows the answer."""
        step = self._whole(self.step, "step")
        if run is None or step is None:
            return
        if chart == REPLAY:
            self.replay(run, step)
        else:
            self._what_if(run, step)

    def _what_if(self, run: int, step: int) -> None:
        updates = self._whole(self.updates, "number of updates")
        if updates is None:
            return
        if not self.leave_out.key and not self.objective.key.kind:
            self.failed.emit("Nothing is changed.", "Leave pairs out, or choose another objective.")
            return
        chosen = self.objective.key
        question = WhatIf(
            run=run,
            step=step,
            without=self.leave_out.key,
            objective=chosen.kind,
            fields=chosen.fields,
            updates=updates,
        )
        self._ask(question, WHAT_IF)

    def _whole(self, box: NumberBox, words: str) -> int | None:
        value = box.value()
        if isinstance(value, int) and value >= 1:
            return value
        self.failed.emit(f"The {words} is not a whole number above 0.", "Correct it.")
        return None

    def _ask(self, question: ReplayStep | WhatIf, chart: str) -> None:
        self._cancel()
        ticket = self._ticket = self.working.start()
        self._enable(False)
        self._asked = self._context.client.ask(
            question,
            done=lambda _answer: self._done(ticket, chart),
            failed=lambda failure: self._not_done(ticket, failure),
            progress=lambda share, note: None if ticket.cancelled else ticket(share, note),
            owner=self,
        )
        self.turned.emit()

    def _done(self, ticket: Ticket, chart: str) -> None:
        if ticket is self._ticket:
            self._end()
            self.answered.emit(chart)

    def _not_done(self, ticket: Ticket, failure: Failure) -> None:
        if ticket is not self._ticket:
            return  # the one before was cancelled for the one at work, which goes on
        self._end()
        if failure.kind != "cancelled":
            self.failed.emit(failure.message, failure.next)

    def _end(self) -> None:
        self._asked = None
        self.working.end()
        self._enable(True)
        self.turned.emit()

    def _cancel(self) -> None:
        if self._asked is not None:
            self._context.client.cancel(self._asked)

    def _enable(self, ready: bool) -> None:
        for button in (self.again, self.compare):
            button.setEnabled(ready)

    def _lay_out(self) -> None:
        self.step.set_value(1)
        self.updates.set_value(10)
        self.leave_out.show_choices(LEAVE_OUT, ("suspected",))
        self.objective.show_choices(OBJECTIVES, _Objective())
        words = {name: QLabel(name) for name in ("Step", "Leave out", "Objective", "Updates")}
        boxes: dict[str, Any] = {
            "Step": self.step,
            "Leave out": self.leave_out,
            "Objective": self.objective,
            "Updates": self.updates,
        }
        self._of_change = [boxes[name] for name in list(boxes)[1:]]
        self._of_change += [words[name] for name in list(boxes)[1:]] + [self.compare]
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(theme.INSIDE)
        for name, box in boxes.items():
            words[name].setBuddy(box)
            theme.set_role(words[name], "secondary")
            box.setMaximumWidth(90 if isinstance(box, NumberBox) else 220)
            row.addWidget(words[name])
            row.addWidget(box)
        for button in (self.again, self.compare):
            theme.set_role(button, "primary")
            row.addWidget(button)
        row.addStretch(1)
