"""The footer of the New run form: a problem with its fix, the cost of the run, and the buttons."""

from __future__ import annotations

from typing import Any, Final

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QFrame, QPushButton, QWidget

from explorer import theme
from explorer.views.runs.small_batch_row import SmallBatchRow
from explorer.widgets import layouts
from explorer.widgets.refusal import set_refusal
from trainer.analysis.quantities import duration
from trainer.messages import RunCost

NOW: Final = "Start now"
BOTH: Final = "Queue both"
BOTH_TIP: Final = "The runs of CLIP and CLOOB train in turn, after the runs already queued"


class NewRunFoot(QFrame):
    """A status line with buttons below it.

    Signals:
        copy_asked, cancelled, queue_asked, start_asked: A button was pressed.
        repair_asked: The first fault is to be mended.
        measure_asked: The person wants to know what the run takes.
        check_asked: The person wants to know whether several processes make the same updates as one.
        stop_asked: What is being measured is to end.
    """

    copy_asked = Signal()
    cancelled = Signal()
    queue_asked = Signal()
    start_asked = Signal()
    repair_asked = Signal()
    measure_asked = Signal()
    check_asked = Signal()
    stop_asked = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._measures = False
        self.summary = layouts.text(name="new-run-estimate", wrap=True)
        self.repair = self._button("", "new-run-repair", self.repair_asked)
        self.measure = self._button("Measure time and memory", "new-run-measure", self.measure_asked)
        self.measure.setToolTip("Runs three real steps and reports time, memory and disk; nothing is saved")
        self.check = self._button("Same losses?", "new-run-check", self.check_asked)
        self.check.setToolTip("Makes 20 updates with these processes and with one, and compares them; nothing is saved")
        self.stop = self._button("Cancel measuring", "new-run-stop", self.stop_asked)
        self.start = self._button(NOW, "new-run-start", self.start_asked)
        theme.set_role(self.start, "primary")
        self.queue = self._button("Add to queue", "new-run-queue", self.queue_asked)
        self.copy = self._button("Copy as command", "new-run-copy", self.copy_asked)
        self.small = SmallBatchRow("new-run", self)
        self.reason = layouts.elided(role="small")
        cancel = self._button("Cancel", "new-run-cancel", self.cancelled)
        self.start.setDefault(True)
        above = layouts.row((self.summary, 1), self.repair, self.check, self.measure, self.stop)
        below = layouts.row(self.copy, (self.reason, 1), cancel, self.queue, self.start)
        margins = (theme.AROUND, theme.BETWEEN, theme.AROUND, theme.BETWEEN)
        layouts.column(above, self.small, below, margins=margins, of=self)
        # As high with a button as without: the buttons below must not move.
        self.summary.setMinimumHeight(theme.CONTROL_PX)
        self.show_estimate("", can_measure=False)

    def allow(self, fault: str, *, both: bool, elsewhere: bool) -> None:
        """Set what may be done with the run. A button that cannot be pressed says why, and so does a line at its left.

        Args:
            fault: What is wrong with the run; empty for nothing.
            both: Whether the runs of two objectives are started, which wait in the queue in any case.
            elsewhere: Whether it trains on another computer, and takes no slot of this one.
        """
        no_queue = "A run on a compute target takes no slot of this computer's queue" if elsewhere else ""
        self.start.setText(BOTH if both else NOW)
        set_refusal(self.start, fault, BOTH_TIP if both else "Start at once, without waiting for other runs")
        self.queue.setVisible(not both)
        set_refusal(self.queue, fault or no_queue, "Start when a slot is free, after the runs already queued")
        self.reason.setText(no_queue)

    def show_fault(self, sentence: str, repair: str) -> None:
        """Show a problem; `repair` is the label of the button that fixes it, empty if there is none."""
        self._show_message(sentence, "bad")
        self.repair.setText(repair)
        self.repair.setVisible(bool(repair))
        self.measure.hide()
        self.check.hide()

    def show_estimate(self, text: str, *, can_measure: bool, can_check: bool = False) -> None:
        """Show what the run will take, or what is known of its processes."""
        self.repair.hide()
        self.check.setVisible(can_check and not self._measures)
        self.measure.setVisible(can_measure and not self._measures)
        if not self._measures:
            self._show_message(text, "secondary")
            self.stop.hide()

    def show_measuring(self, text: str) -> None:
        """Show the progress of the measurement, with a button that ends it."""
        self._measures = True
        self._show_message(text, "secondary")
        self.measure.hide()
        self.check.hide()
        self.stop.show()

    def end_measuring(self) -> None:
        """Hide the progress, because the measurement has ended."""
        self._measures = False
        self.stop.hide()

    def _show_message(self, text: str, role: str) -> None:
        self.summary.setText(text)
        theme.set_role(self.summary, role)

    def _button(self, label: str, name: str, signal: Any) -> QPushButton:
        return QPushButton(label, self, objectName=name, autoDefault=False, clicked=lambda: signal.emit())


def cost_words(cost: RunCost) -> str:
    """Return the measured cost: `90 steps in about 12 s on cpu, evaluations on top; 610 MiB memory, 34 MiB disk`."""
    memory = f"{_size(cost.memory_mib)} memory"
    if cost.gpu_mib is not None:
        memory = f"{_size(cost.gpu_mib)} GPU memory, {memory}"
    predicted = ""
    if cost.predicted_gpu_mib is not None:
        predicted = f"; a graphics card needs about {_size(cost.predicted_gpu_mib)} free (predicted)"
    return (
        f"{cost.steps:,} steps in about {duration(cost.train_s)} on {cost.device}, evaluations on top; "
        f"{memory}, {_size(cost.disk_mib)} disk{predicted}"
    )


def _size(mib: float) -> str:
    return f"{mib / 1024:.1f} GiB" if mib >= 1024 else f"{mib:.0f} MiB"
