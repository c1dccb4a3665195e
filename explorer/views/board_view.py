"""What the views that show boards have in common: tabs, work beside the window with progress and Cancel, notes."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

from PySide6.QtCore import Qt
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QHBoxLayout, QLabel, QTabBar, QVBoxLayout, QWidget

from explorer import theme
from explorer.models.thumbnails import Pictures
from explorer.render_qt.panel import PanelWidget
from explorer.views.view import View
from explorer.widgets.elided_label import ElidedLabel
from explorer.widgets.progress_row import Cancelled, Ticket, Working
from trainer.charts.marks import Panel
from trainer.errors import UserError


class BoardView(View):
    """A view whose tabs are panels, each a board computed off the GUI thread.

    Attributes:
        prefix: Of the names of its widgets and settings.
        panels: Name -> words and question of each tab.
    """

    prefix: ClassVar[str]
    panels: ClassVar[dict[str, tuple[str, str]]]

    def build(self) -> Iterator[None]:
        context = self.context
        self.pictures = Pictures(context.background, self, edge=128)
        self.tabs = QTabBar(objectName=f"{self.prefix}-tabs", accessibleName=f"Panels of {self.title}")
        self.tabs.setDrawBase(False)
        self.tabs.setExpanding(False)
        for words, question in self.panels.values():
            self.tabs.setTabToolTip(self.tabs.addTab(words), question)
        yield
        self.panes = PanelWidget(self.pictures, self.prefix)
        self.tab_question, self.status = ElidedLabel(), QLabel(objectName=f"{self.prefix}-status")
        self.computing = Working(f"{self.prefix}-computing")
        self.warnings = QLabel(wordWrap=True, objectName=f"{self.prefix}-warnings", visible=False)
        for label, role in ((self.status, "small"), (self.warnings, "warn")):
            label.setTextFormat(Qt.TextFormat.PlainText)
            theme.set_role(label, role)
        theme.set_role(self.tab_question, "secondary")
        self._work: Ticket | None = None
        self._asked: object = None
        self.tools = QVBoxLayout()
        yield
        self._lay_out_board()
        yield
        remembered = context.settings.value(f"{self.prefix}/panel", "")
        self.tabs.setCurrentIndex(list(self.panels).index(remembered) if remembered in self.panels else 0)
        self._connect_board()

    @property
    def panel(self) -> str:
        """The panel of the chosen tab."""
        return list(self.panels)[self.tabs.currentIndex()]

    @property
    def board(self) -> Panel | None:
        """What is shown; None before the first answer."""
        return self.panes.panel

    @property
    def busy(self) -> bool:
        """Whether an answer is on its way."""
        return self._work is not None or self.panes.filling

    @abstractmethod
    def question_now(self) -> object:
        """What is asked now: equal questions are not asked twice."""

    @abstractmethod
    def ask(self, work: Ticket) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        """The pure function that answers and its arguments."""

    def take(self, answer: Any) -> None:
        """Shows an answer."""
        self.panes.show_panel(answer)
        self.warnings.setText("\n".join(answer.warnings))
        self.warnings.setVisible(bool(answer.warnings))

    def actions_for_palette(self) -> list[QAction]:
        actions = []
        for place, (words, _) in enumerate(self.panels.values()):
            action = QAction(f"{self.title}: {words}", self, objectName=f"{self.prefix}-action-{place}")
            action.triggered.connect(lambda _=False, i=place: self.tabs.setCurrentIndex(i))
            actions.append(action)
        return actions

    def refresh(self) -> None:
        if not self.context.selection.runs and not self.works_without_runs():
            self.stop()
            self._asked = None
            self.show_no_run(self.icon, self.no_run_words())
            return
        self.show_content()
        self.tab_question.setText(self.panels[self.panel][1])
        if (asked := self.question_now()) != self._asked:
            self._asked = asked
            self._start()

    def works_without_runs(self) -> bool:
        """Whether there is something to show although no run is chosen."""
        return False

    def no_run_words(self) -> str:
        """What to do where no run is chosen."""
        return "Choose run A in the bar above, and run B to compare."

    def ask_again(self) -> None:
        """Forgets what was asked: the store may answer otherwise now."""
        self._asked = None
        self.refresh_if_seen()

    def refresh_if_seen(self) -> None:
        """Refreshes unless nobody looks."""
        if self.isVisible():
            self.refresh()

    def stop(self) -> None:
        """Ends what is being computed, without a word."""
        self._work = None
        self.computing.end()

    def _start(self) -> None:
        self._work = work = self.computing.start()
        function, arguments = self.ask(work)
        self.context.background.run(
            self,
            function,
            *arguments,
            done=lambda answer: self._done(work, answer),
            failed=lambda error: self._refuse(work, error),
            key=self.prefix,
        )

    def _done(self, work: Ticket, answer: Any) -> None:
        if work is self._work:
            self.stop()
            self.status.setText("")
            self.take(answer)

    def _refuse(self, work: Ticket, error: Exception) -> None:
        if work is not self._work:
            return
        self.stop()
        self._asked = None
        if isinstance(error, Cancelled):
            return
        if not isinstance(error, UserError):
            self.context.background.failed.emit(error)
        self.refuse(str(error) or type(error).__name__)

    def refuse(self, words: str) -> None:
        """Says why there is nothing to see."""
        self.show_empty("triangle-alert", "This cannot be shown", words)

    def _cancel(self) -> None:
        self.stop()
        self.status.setText("Cancelled. Change a setting, or open the tab again, to go on.")

    def _on_tab(self) -> None:
        self.context.settings.set(f"{self.prefix}/panel", self.panel)
        self.status.setText("")
        self._asked = None
        self.show_tools()
        self.refresh_if_seen()

    def show_tools(self) -> None:
        """Shows the controls of the open panel."""

    def _connect_board(self) -> None:
        selection = self.context.selection
        for signal in (selection.runs_changed, selection.step_changed, selection.dataset_changed):
            signal.connect(self.refresh_if_seen)
        self.context.jobs.snapshots_changed.connect(self._on_snapshot)
        self.tabs.currentChanged.connect(lambda _place: self._on_tab())
        self.computing.cancelled.connect(self._cancel)

    def _on_snapshot(self, run: int) -> None:
        if self.context.selection.follows(run):
            self.ask_again()

    def _lay_out_board(self) -> None:
        bar = QHBoxLayout()
        bar.setSpacing(theme.BETWEEN)
        bar.addWidget(self.tabs)
        bar.addWidget(self.tab_question, 1)
        bar.addWidget(self.status)
        bar.addWidget(self.computing, 1)
        inside = QWidget()
        column = QVBoxLayout(inside)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(theme.INSIDE)
        column.addWidget(self.warnings)
        column.addWidget(self.panes, 1)
        self.body.addLayout(bar)
        self.body.addLayout(self.tools)
        self.body.addWidget(inside, 1)
