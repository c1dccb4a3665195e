"""The controls of the time machine: which update of run A is made again."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QPushButton, QWidget

from explorer import theme
from explorer.views.view import Context
from explorer.widgets import layouts
from explorer.widgets.number_box import NumberBox
from explorer.widgets.progress_row import ProgressRow, Ticket
from explorer.widgets.refusal import set_refusal
from trainer.messages import Failure, ReplayStep

REPLAY: Final = "replayed-step"


class TimeMachine(QWidget):
    """Asks a process to replay a step of run A; one question at a time."""

    answered = Signal()  # What was replayed is stored.
    failed = Signal(str, str)  # Message and next step.
    turned = Signal()  # A question was asked, or is over.

    def __init__(self, context: Context, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._context = context
        self._open_question: int | None = None
        self._ticket: Ticket | None = None
        self.step = NumberBox(integer=True, low=1, parent=self)
        self.step.setObjectName("time-machine-step")
        self.step.setAccessibleName("Step of run A")
        self.step.setToolTip("A step on the axis of run A's curves: the update that led to it is replayed")
        self.again = QPushButton("Replay", objectName="time-machine-replay")
        self.again.setToolTip("Replays the update up to the next checkpoint; shown only if both are equal bit for bit")
        self.working = ProgressRow("time-machine-working", self, asks=True)
        self._lay_out()
        self.again.clicked.connect(lambda: self.replay_chosen(context.selection.run_a))
        self.working.cancelled.connect(self._cancel)

    @property
    def busy(self) -> bool:
        """Whether a question has no answer yet."""
        return self._open_question is not None

    def show_chart(self, name: str) -> None:
        """Show the controls for the chart of replays alone."""
        self.setVisible(name == REPLAY)

    def replay_chosen(self, run: int | None) -> None:
        """Make the update of this run again that the controls name."""
        step = self.step.value()
        if not isinstance(step, int) or step < 1:
            self.failed.emit("The step is not a whole number above 0.", "Correct it.")
        elif run is not None:
            self.replay(run, step)

    def replay(self, run: int, step: int) -> None:
        """Make this update of the run again."""
        self.step.set_value(step)
        self._cancel()
        ticket = self._ticket = self.working.start()
        set_refusal(self.again, "The step is being replayed.")
        self._open_question = self._context.client.ask(
            ReplayStep(run=run, step=step),
            done=lambda _answer: self._done(ticket),
            failed=lambda failure: self._not_done(ticket, failure),
            progress=lambda share, note: None if ticket.cancelled else ticket(share, note),
            owner=self,
        )
        self.turned.emit()

    def _done(self, ticket: Ticket) -> None:
        if ticket is self._ticket:
            self._end()
            self.answered.emit()

    def _not_done(self, ticket: Ticket, failure: Failure) -> None:
        if ticket is not self._ticket:
            return  # the one before was cancelled for the one at work, which goes on
        self._end()
        if failure.kind != "cancelled":
            self.failed.emit(*failure.sentences)

    def _end(self) -> None:
        self._open_question = None
        self.working.end()
        set_refusal(self.again, "")
        self.turned.emit()

    def _cancel(self) -> None:
        if self._open_question is not None:
            self._context.client.cancel(self._open_question)

    def _lay_out(self) -> None:
        self.step.set_value(1)
        label = layouts.text("Step", "secondary", buddy=self.step)
        theme.set_role(self.again, "primary")
        self.step.setMaximumWidth(90)
        layouts.row(label, self.step, self.again, (layouts.STRETCH, 1), of=self)
