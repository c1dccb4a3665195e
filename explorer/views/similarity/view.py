"""The Similarity view: distributions of cosines, and further panes."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from PySide6.QtCore import Qt, QTimer
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QApplication, QLineEdit

from explorer.models.thumbnails import Thumbnails
from explorer.views.chart_tab import ChartTab
from explorer.views.similarity.cosines import CosinesTab
from explorer.views.similarity.matrix import MatrixPane
from explorer.views.similarity.words import WordsTab
from explorer.views.view import Context, View
from explorer.widgets import layouts
from explorer.widgets.current_page_stack import CurrentPageStack
from trainer.charts.axes import AxesSettings, pairs_inside

TYPING_MS = 600
TABS = (
    ("Cosines", "Cosine of matched and unmatched pairs"),
    ("Matrix", "All cosines of images with texts, ordered"),
    ("Words", "Contribution of each word of a caption"),
    ("Axes", "Pairs along axes that texts define"),
)
CHARTS = ("similarity", "matrix", "words", "axes")


class AxesTab(ChartTab):
    """Two text fields and a scatter plot per run; dragging across one selects its pairs everywhere."""

    def __init__(self, context: Context, pictures: Thumbnails) -> None:
        super().__init__(context, "axes", pictures)
        self.x_texts, self.y_texts = (
            QLineEdit(objectName=f"axes-{name}", accessibleName=f"Words of the {name} axis") for name in "xy"
        )
        for line, text in ((self.x_texts, self.settings_now().x), (self.y_texts, self.settings_now().y)):
            line.setText(text)
            line.setPlaceholderText("a photo of X - a photo of Y")
            line.setToolTip("From the texts after “ - ” to those before it; several texts apart by ;")
        self._typing = QTimer(self, singleShot=True, interval=TYPING_MS)
        self._lay_out()
        self._connect()

    def _typed(self) -> None:
        self._typing.stop()
        default, now = AxesSettings(), self.settings_now()
        # A line that is empty means the axis that a new window shows.
        x = self.x_texts.text() if self.x_texts.text().strip() else default.x
        y = self.y_texts.text() if self.y_texts.text().strip() else default.y
        if (x, y) != (now.x, now.y):
            self.change(x=x, y=y)

    def _brush(self, key: str, box: tuple[float, float, float, float] | None) -> None:
        self.pane.panel.set_brush(key, None)
        self._select(pairs_inside(self.data, key, box) if box is not None else np.empty(0, np.int64))

    def _select(self, rows: np.ndarray) -> None:
        adds = bool(QApplication.keyboardModifiers() & Qt.KeyboardModifier.ControlModifier)
        selection = self.context.selection
        selection.pairs = np.concatenate([rows, selection.pairs]) if adds else rows

    def _mark_pairs(self) -> None:
        self.pane.panel.mark(self.context.selection.pairs)

    def _connect(self) -> None:
        for line in (self.x_texts, self.y_texts):
            line.textEdited.connect(lambda _text: self._typing.start())
            line.returnPressed.connect(self._typed)
        self._typing.timeout.connect(self._typed)
        self.pane.answered.connect(self._mark_pairs)
        self.pane.panel.plot_brushed.connect(self._brush)
        self.pane.panel.pair_chosen.connect(lambda pair: self._select(np.array([pair])))
        self.context.selection.pairs_changed.connect(self._mark_pairs)

    def _lay_out(self) -> None:
        bar = layouts.row()
        for name, line in (("x axis", self.x_texts), ("y axis", self.y_texts)):
            label = layouts.text(name, "secondary", buddy=line)
            layouts.add(bar, label, (line, 1))
        hint = layouts.elided("Drag to select · Ctrl adds", "small")
        self.column.insertLayout(0, bar)
        self.column.insertWidget(1, hint)


PANES: tuple[Callable[[Context, Thumbnails], MatrixPane | ChartTab], ...] = (CosinesTab, MatrixPane, WordsTab, AxesTab)


class SimilarityView(View):
    """Four displays of the cosines: distributions, matrix, words, and text-defined axes."""

    title = "Similarity"
    question = "Cosine of matched vs. unmatched pairs."
    icon = "chart-column"
    compares = "scores"
    when_chosen = "The cosines of their pairs then appear here."

    def build(self) -> Iterator[None]:
        self.pictures = Thumbnails(self.context.background, self)
        self.tabs = layouts.tab_bar("similarity-tabs", "Views of the cosines", TABS)
        self.stack = CurrentPageStack()
        self.stand_for(self.tabs, CHARTS)
        self.body.addWidget(self.stack, 1)
        self.panes: dict[int, MatrixPane | ChartTab] = {}
        yield
        self.cosines = self.panes[0] = CosinesTab(self.context, self.pictures)
        self._take_tools(self.cosines)
        yield
        self._actions = [
            QAction(label, self, objectName=f"similarity-action-{name}", triggered=does)
            for name, label, does in (
                ("axis", "Same axis for all runs", self._toggle_axis),
                ("zone", "Select the overlap of the first run", self.cosines.brush_overlap),
            )
        ]
        self._connect()

    def pane(self, tab: int) -> MatrixPane | ChartTab:
        """Return the pane of a tab, created on first use."""
        if tab not in self.panes:
            self.panes[tab] = made = PANES[tab](self.context, self.pictures)
            self._take_tools(made)
        return self.panes[tab]

    def _take_tools(self, pane: MatrixPane | ChartTab) -> None:
        """Put the controls of a chart among the others of the view."""
        self.stack.addWidget(pane)
        if isinstance(pane, ChartTab):
            self.more.addWidget(pane.tools_panel)

    def command(self) -> list[str] | None:
        return None if self.is_empty else self.pane(self.tabs.currentIndex()).command()

    def actions_for_palette(self) -> list[QAction]:
        return [*self.chart_actions, *self._actions]

    def refresh(self) -> None:
        if not self.context.selection.runs:
            self.forget()
            self.show_no_run()
            return
        self.show_content()
        pane = self.pane(self.tabs.currentIndex())
        self.stack.setCurrentWidget(pane)
        for other in self.panes.values():
            if isinstance(other, ChartTab):
                other.tools_panel.setVisible(other is pane)
        self.method = pane.chart.help_text if isinstance(pane, ChartTab) else ""
        pane.refresh()

    def forget(self) -> None:
        """Invalidate what was read."""
        for pane in self.panes.values():
            pane.forget()

    def _toggle_axis(self) -> None:
        self.cosines.change(same_axis=not self.cosines.settings_now().same_axis)

    def _on_snapshot(self, run: int) -> None:
        if self.context.selection.follows(run):
            self.forget()
            self.refresh_if_seen()

    def _connect(self) -> None:
        selection = self.context.selection
        for signal in (selection.runs_changed, selection.step_changed, selection.dataset_changed):
            signal.connect(self.refresh_if_seen)
        self.context.jobs.snapshots_changed.connect(self._on_snapshot)
        self.tabs.currentChanged.connect(lambda _place: self.refresh_if_seen())
