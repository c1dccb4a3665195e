"""The Loss lab view: panels as tabs, answered while a slider moves."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from PySide6.QtCore import QTimer
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QHBoxLayout, QPushButton, QTabBar

from explorer import theme
from explorer.views.losslab.method import METHOD
from explorer.views.losslab.panel import LabPanel
from explorer.views.losslab.toy import ToyPanel
from explorer.views.view import View
from explorer.widgets.current_page_stack import OpenPage
from explorer.widgets.elided_label import ElidedLabel
from trainer.charts import ChartError
from trainer.charts.lab import PANELS, Panel
from trainer.charts.lab.pieces import LabChart
from trainer.charts.settings import parse, words

REMEMBER_MS = 400
PREPARE_MS = 60


class LossLabView(View):
    """Objectives in numbers that a person can move; needs no run."""

    title = "Loss lab"
    question = "What do the objectives pull together and push apart, and how hard?"
    icon = "flask-conical"
    method = METHOD

    def build(self) -> Iterator[None]:
        context = self.context
        self.panels: dict[str, LabPanel] = {}
        self._charts: dict[str, LabChart] = {}
        self.tabs = QTabBar(objectName="lab-tabs", accessibleName="Panels of the Loss lab")
        self.tabs.setDrawBase(False)
        self.tabs.setExpanding(False)
        for panel in PANELS.values():
            self.tabs.setTabToolTip(self.tabs.addTab(panel.label), panel.question)
        self.question_label = ElidedLabel()
        theme.set_role(self.question_label, "secondary")
        self.reset = QPushButton("Reset", objectName="lab-reset", accessibleName="Reset this panel")
        self.reset.setToolTip("Every setting of this panel as it was first")
        theme.keep_icon(self.reset, "rotate-ccw", 16, "secondary")
        yield
        self.stack = OpenPage()
        self._remembering = QTimer(self, singleShot=True, interval=REMEMBER_MS)
        self._preparing = QTimer(self, interval=PREPARE_MS)
        yield
        self._lay_out()
        self._connect()
        remembered = context.settings.value("losslab/panel", "")
        self.tabs.setCurrentIndex(list(PANELS).index(remembered) if remembered in PANELS else 0)
        self._tell_question()

    @property
    def open_panel(self) -> Panel:
        """The panel of the chosen tab."""
        return list(PANELS.values())[self.tabs.currentIndex()]

    def panel(self, name: str) -> LabPanel:
        """The panel on the screen; made when first asked for, with the settings remembered."""
        if name not in self.panels:
            self.panels[name] = made = (ToyPanel if name == "toy" else LabPanel)(PANELS[name])
            made.show_settings(self._remembered(name))
            made.changed.connect(lambda: self._compute(name))
            made.changed.connect(self._remembering.start)
            self.stack.addWidget(made)
        return self.panels[name]

    def command(self) -> list[str] | None:
        name = self.open_panel.name
        return ["export", "lab", "--panel", name, "--set", *words(self.panel(name).settings)]

    def actions_for_palette(self) -> list[QAction]:
        actions = []
        for place, panel in enumerate(PANELS.values()):
            action = QAction(f"Loss lab: {panel.label}", self, objectName=f"lab-action-{panel.name}")
            action.triggered.connect(lambda _=False, i=place: self.tabs.setCurrentIndex(i))
            actions.append(action)
        reset = QAction("Reset this panel", self, objectName="lab-action-reset")
        reset.triggered.connect(self.reset_panel)
        return [*actions, reset]

    def refresh(self) -> None:
        name = self.open_panel.name
        shown = self.panel(name)
        self.stack.setCurrentWidget(shown)
        if shown.chart is None:
            self._compute(name)
        self._preparing.start()

    def reset_panel(self) -> None:
        """Puts every setting of the open panel back."""
        shown = self.panel(self.open_panel.name)
        shown.show_settings(shown.panel.settings())
        shown.changed.emit()

    def _compute(self, name: str) -> None:
        panel, settings = PANELS[name], self.panel(name).settings
        if not panel.slow:
            self._show(panel.chart(settings))
            return
        self.context.background.run(self, panel.chart, settings, done=self._show, key=f"lab-{name}")

    def _show(self, chart: LabChart) -> None:
        self.panel(chart.panel).show_chart(chart)

    def _prepare(self) -> None:
        """Makes one panel or plot not looked at yet: all at once would be felt at the first click on a tab."""
        if not self.isVisible():
            self._preparing.stop()
            return
        for name, panel in PANELS.items():
            if name not in self.panels:
                self.panel(name)
                return
            made = self.panels[name]
            if made.chart is None and made.build_next(self._first(name, panel)):
                return
        self._preparing.stop()

    def _first(self, name: str, panel: Panel) -> LabChart:
        if name not in self._charts:
            self._charts[name] = panel.chart(panel.settings())
        return self._charts[name]

    def _remembered(self, name: str) -> Any:
        texts = self.context.settings.value(f"losslab/{name}", [])
        try:
            return parse(PANELS[name].settings, texts)
        except (ChartError, TypeError, AttributeError):
            # Another version's settings, or a file that somebody edited: as good as none.
            return PANELS[name].settings()

    def _remember(self) -> None:
        for name, panel in self.panels.items():
            self.context.settings.set(f"losslab/{name}", words(panel.settings))

    def _on_tab(self) -> None:
        self.context.settings.set("losslab/panel", self.open_panel.name)
        self._tell_question()
        if self.isVisible():
            self.refresh()

    def _tell_question(self) -> None:
        self.question_label.setText(self.open_panel.question)

    def _connect(self) -> None:
        self.tabs.currentChanged.connect(lambda _place: self._on_tab())
        self.reset.clicked.connect(self.reset_panel)
        self._remembering.timeout.connect(self._remember)
        self._preparing.timeout.connect(self._prepare)

    def _lay_out(self) -> None:
        bar = QHBoxLayout()
        bar.setSpacing(theme.BETWEEN)
        bar.addWidget(self.tabs)
        bar.addWidget(self.question_label, 1)
        bar.addWidget(self.reset)
        self.body.addLayout(bar)
        self.body.addWidget(self.stack, 1)
