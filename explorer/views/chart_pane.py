"""One chart of the registry on the screen: computed off the GUI thread, drawn, told of in words when it fails."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QHBoxLayout, QLabel, QVBoxLayout, QWidget

from explorer import theme
from explorer.models.thumbnails import Pictures
from explorer.render_qt.panel import PanelWidget
from explorer.state.selection import Selection
from explorer.views.view import Context
from explorer.widgets.progress_row import Cancelled, Ticket, Working
from trainer.charts.marks import Panel
from trainer.charts.settings import options
from trainer.charts.spec import Chart, Request, Target, request_words
from trainer.errors import UserError
from trainer.store import Workspace, of_split


@dataclass(frozen=True)
class Answer:
    """What was asked, what was computed of it, and the panel drawn of that."""

    chart: Chart[Any, Any]
    request: Request
    settings: Any
    data: Any
    panel: Panel

    @property
    def key(self) -> object:
        """What decides the data: settings that only redraw do not."""
        return self.chart.name, self.request, self.chart.computed_of(self.settings)


def answer(
    workspace: Workspace, chart: Chart[Any, Any], request: Request, settings: Any, kept: Answer | None, work: Ticket
) -> Answer:
    """The chart for these settings; `kept` saves computing what is known. Pure, for a thread.

    Raises:
        Problem: There is nothing to show; says why.
    """
    if kept is not None and kept.key == (chart.name, request, chart.computed_of(settings)):
        data = kept.data
    else:
        data = chart.result(workspace, request, settings, work)
    return Answer(chart, request, settings, data, chart.panel(data, settings))


def request_of(selection: Selection) -> Request:
    """The snapshots that the selection means: A first."""
    return Request(tuple(Target(side.run, side.step) for side in selection.sides), **of_split(selection.dataset))


class ChartPane(QWidget):
    """A chart with its progress, its warnings and its panel.

    Signals:
        answered: Another panel is shown.
        refused: There is nothing to show, and the sentence why.
        cancelled: The person ended the computation.
    """

    answered = Signal()
    refused = Signal(str)
    cancelled = Signal()

    def __init__(self, context: Context, name: str, pictures: Pictures | None = None) -> None:
        super().__init__()
        self.setObjectName(f"{name}-pane")
        self._context, self._name = context, name
        self.answer: Answer | None = None
        self._work: Ticket | None = None
        self._asked: object = None
        self.panel = PanelWidget(pictures or Pictures(context.background, self, edge=128), name)
        self.computing = Working(f"{name}-computing")
        self.warnings = QLabel(wordWrap=True, objectName=f"{name}-warnings", visible=False)
        self.warnings.setTextFormat(Qt.TextFormat.PlainText)
        theme.set_role(self.warnings, "warn")
        self.bar = QHBoxLayout()
        self.bar.setSpacing(theme.BETWEEN)
        self.bar.addWidget(self.computing, 1)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(theme.INSIDE)
        column.addLayout(self.bar)
        column.addWidget(self.warnings)
        column.addWidget(self.panel, 1)
        self.computing.cancelled.connect(self._cancel)

    @property
    def busy(self) -> bool:
        """Whether an answer is on its way."""
        return self._work is not None or self.panel.filling

    def ask(self, chart: Chart[Any, Any], request: Request, settings: Any) -> None:
        """Shows the chart for these settings; what is shown or on its way already is not asked for again."""
        asked = (chart.name, request, settings)
        if asked == self._asked:
            return
        self._asked = asked
        if chart.quick:
            self._answer_now(chart, request, settings)
            return
        self._work = work = self.computing.start()
        self._context.background.run(
            self,
            answer,
            self._context.workspace,
            chart,
            request,
            settings,
            self.answer,
            work,
            done=lambda found: self._done(work, found),
            failed=lambda error: self._failed(work, error),
            key=f"{self._name}-chart",
        )

    def forget(self) -> None:
        """The store may answer otherwise now: the next `ask` is a new one, and is computed."""
        self._asked = self.answer = None

    def stop(self) -> None:
        """Ends what is being computed, silently."""
        self._work = None
        self.computing.end()

    def command(self) -> list[str] | None:
        """What to write after `trainer` for what is shown, without `--out`; None while nothing is."""
        shown = self.answer
        if shown is None:
            return None
        return ["export", shown.chart.name, *request_words(shown.request), *options(shown.settings)]

    def _answer_now(self, chart: Chart[Any, Any], request: Request, settings: Any) -> None:
        self.stop()
        try:
            found = answer(self._context.workspace, chart, request, settings, self.answer, Ticket())
        except UserError as problem:
            self._asked = None
            self.refused.emit(str(problem))
            return
        self._show(found)

    def _done(self, work: Ticket, found: Answer) -> None:
        if work is self._work:
            self.stop()
            self._show(found)

    def _show(self, found: Answer) -> None:
        self.answer = found
        self.panel.show_panel(found.panel)
        self.warnings.setText("\n".join(found.panel.warnings))
        self.warnings.setVisible(bool(found.panel.warnings))
        self.answered.emit()

    def _failed(self, work: Ticket, error: Exception) -> None:
        if work is not self._work:
            return
        self.stop()
        self._asked = None
        if isinstance(error, Cancelled):
            return
        if not isinstance(error, UserError):
            self._context.background.failed.emit(error)
        self.refused.emit(str(error) or type(error).__name__)

    def _cancel(self) -> None:
        self.stop()
        self._asked = None
        self.cancelled.emit()
