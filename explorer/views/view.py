"""One pane, one question: what every view is made of."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QAction, QShowEvent
from PySide6.QtWidgets import (
    QFrame,
    QHBoxLayout,
    QLabel,
    QMenu,
    QStackedWidget,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from explorer import theme
from explorer.widgets.elided_label import ElidedLabel
from explorer.widgets.empty_state import EmptyState
from explorer.widgets.min_size_scroll import Roomy

if TYPE_CHECKING:
    from explorer.event_loop.background import Background
    from explorer.model_client.client import Asker
    from explorer.run_control.jobs import Jobs
    from explorer.state.selection import Selection
    from explorer.state.settings import Settings
    from trainer.store import Workspace

EXPORTS: tuple[tuple[str, str], ...] = (
    ("svg", "Figure as SVG"),
    ("pdf", "Figure as PDF"),
    ("png", "Figure as PNG"),
    ("csv", "Data as CSV"),
    ("parquet", "Data as Parquet"),
)
"""Suffix and words of each export that the header's menu offers."""


@dataclass(frozen=True)
class Context:
    """What a view is given: no singletons, no reaching up to the window."""

    workspace: Workspace
    selection: Selection
    background: Background
    jobs: Jobs
    asker: Asker
    settings: Settings


class View(QWidget):
    """A pane of the window that answers one question.

    Attributes:
        title: Its name, two words at most.
        question: One sentence under the title: what it answers.
        icon: Name of a Lucide icon in `assets/icons`.
        method: What the `?` tells: formula, paper, caveats; plain text.
        exports: Suffix and words of each export that the header's menu offers.
        body: Layout to fill, under the header.
        building: What of `build` is still to be done; whoever made the view not `at_once` goes through it.

    Signals:
        failed: Message and next step, for the window's banner.
        export_asked: The suffix of the export that the person chose in the header.
        copy_asked: The headless command is wanted on the clipboard.
        method_asked: The `?` was clicked.
        details_changed: `details()` would give another widget now.
    """

    title: ClassVar[str] = ""
    question: ClassVar[str] = ""
    icon: ClassVar[str] = "square"
    method: str = ""
    exports: ClassVar[tuple[tuple[str, str], ...]] = EXPORTS

    failed = Signal(str, str)
    export_asked = Signal(str)
    copy_asked = Signal()
    method_asked = Signal()
    details_changed = Signal()

    def __init__(self, context: Context, *, at_once: bool = True) -> None:
        super().__init__()
        self.context = context
        self.setObjectName(type(self).__name__)
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self.setProperty("role", "view")
        self._content = QWidget()
        self.body = QVBoxLayout(self._content)
        self.body.setContentsMargins(0, 0, 0, 0)
        self.body.setSpacing(theme.BETWEEN)
        self._empty = EmptyState()
        self._demo = QAction("Start the demo runs", self, objectName=f"{self.objectName()}-demo")
        self._waits_for_runs = False
        self._demo.triggered.connect(lambda: self.context.jobs.start_demo())
        self._pages = QStackedWidget()
        self._room = Roomy(self._content)
        self._pages.addWidget(self._room)
        self._pages.addWidget(self._empty)
        self.header = QHBoxLayout()
        column = QVBoxLayout(self)
        column.setContentsMargins(theme.AROUND, theme.BETWEEN, theme.AROUND, theme.AROUND)
        column.setSpacing(theme.BETWEEN)
        column.addLayout(self._lay_out_header())
        column.addWidget(self._pages, 1)
        self.building = self.build()
        if at_once:
            for _ in self.building:
                pass

    def build(self) -> Iterator[None]:
        """Makes what the body shows. Where it yields, the window may answer: no piece takes longer than 50 ms."""
        yield from ()

    def command(self) -> list[str] | None:
        """What to write after `trainer` for the same figure and numbers, without `--out`; None: nothing to export."""
        return None

    def details(self) -> QWidget | None:
        """What the panel on the right shows beside this view; None: no panel. The view keeps the widget alive."""
        return None

    def actions_for_palette(self) -> list[QAction]:
        """What the command palette offers while this view is open."""
        return []

    def refresh(self) -> None:
        """Shows what the selection and the store say now. Called whenever the view is shown; must be quick."""

    def show_empty(
        self, icon: str, title: str, text: str, action: QAction | None = None, *others: QAction | None
    ) -> None:
        """Shows an empty state that teaches, in place of the body, with a primary action and perhaps two others."""
        self._empty.tell(icon, title, text, action, *others)
        self._pages.setCurrentWidget(self._empty)

    def show_reading(self, icon: str) -> None:
        """Says that it is not known yet which runs there are: a slow disk must not look like an empty workspace."""
        self.show_empty(icon, "Reading the runs", "The database of this workspace is being read.")
        if not self._waits_for_runs:
            self._waits_for_runs = True
            self.context.jobs.runs_changed.connect(self._take_first_runs)

    def _take_first_runs(self) -> None:
        self.context.jobs.runs_changed.disconnect(self._take_first_runs)
        self._waits_for_runs = False
        if self.isVisible():
            self.refresh()

    def show_no_run(self, icon: str, text: str) -> None:
        """Says that no run is chosen, with `text` on how to; while there is none at all, offers the demo runs."""
        if not self.context.jobs.is_read:
            self.show_reading(icon)
        elif self.context.jobs.runs:
            self.show_empty(icon, "No run chosen", text)
        else:
            words = "The demo trains a CLIP and a CLOOB run in the background; what they learn then appears here."
            self.show_empty(icon, "No run yet", words, self._demo)

    def show_content(self) -> None:
        """Shows the body."""
        self._pages.setCurrentWidget(self._room)

    @property
    def is_empty(self) -> bool:
        """Whether the empty state is shown."""
        return self._pages.currentWidget() is self._empty

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        if not event.spontaneous():
            self.refresh()

    def _lay_out_header(self) -> QHBoxLayout:
        title = QLabel(self.title, objectName=f"{self.objectName()}-title")
        theme.set_role(title, "title")
        question = ElidedLabel(self.question)
        theme.set_role(question, "secondary")
        words = QVBoxLayout()
        words.setSpacing(2)
        words.addWidget(title)
        words.addWidget(question)
        self.header.setSpacing(theme.SPACE)
        self.header.addLayout(words, 1)
        self.header.addWidget(self._tool("copy", "terminal", "Copy as command", self.copy_asked.emit))
        self.header.addWidget(self._export_button())
        self.header.addWidget(self._tool("method", "circle-help", "How this is computed", self.method_asked.emit))
        return self.header

    def _tool(self, name: str, icon: str, words: str, clicked: Callable[[], object]) -> QToolButton:
        button = QToolButton(objectName=f"{self.objectName()}-{name}", toolTip=words, accessibleName=words)
        theme.keep_icon(button, icon, 16, "secondary")
        button.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        button.clicked.connect(clicked)
        return button

    def _export_button(self) -> QToolButton:
        button = self._tool("export", "download", "Export figure or data", lambda: None)
        menu = QMenu(button)
        for suffix, words in self.exports:
            action = menu.addAction(words)
            action.setObjectName(f"{self.objectName()}-export-{suffix}")
            action.triggered.connect(lambda _=False, s=suffix: self.export_asked.emit(s))
        menu.aboutToShow.connect(lambda: self._allow_export(menu))
        button.setMenu(menu)
        button.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        return button

    def _allow_export(self, menu: QMenu) -> None:
        possible = self.command() is not None
        for action in menu.actions():
            action.setEnabled(possible)


def side_words(selection: Selection, places: Iterable[int] = (0, 1)) -> list[str]:
    """The snapshots at these places (0 is A) as arguments of a command: the runs, and the step of each."""
    shown = {*places}
    runs = dict.fromkeys(str(side.run) for side in selection.sides if side.place in shown)
    return ["--runs", *runs, *step_words(selection, shown)]


def step_words(selection: Selection, places: Iterable[int] = (0, 1)) -> list[str]:
    """Which steps are looked at, as arguments of a command; B's only where it is another than A's."""
    shown = {*places}
    return steps_in_words([side.step for side in selection.sides if side.place in shown])


def steps_in_words(steps: Sequence[int | None]) -> list[str]:
    """The steps of A and B (None: the last) as arguments of a command; B's only where it is another than A's."""
    words = ["--step", str(steps[0])] if steps and steps[0] is not None else []
    return [*words, "--step-b", "last" if steps[1] is None else str(steps[1])] if len({*steps}) > 1 else words


def hairline() -> QFrame:
    """A thin line between two parts of a view."""
    line = QFrame()
    line.setProperty("role", "line")
    return line
