"""A view whose tabs are charts of the registry, with controls, progress, cancel, notes and exports."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, ClassVar

from PySide6.QtCore import QTimer
from PySide6.QtGui import QAction, QResizeEvent

from explorer import theme
from explorer.models.thumbnails import Thumbnails
from explorer.render_qt.controls import Controls
from explorer.views.chart_pane import ChartPane, request_of
from explorer.views.chart_tab import remembered
from explorer.views.view import View
from explorer.widgets import layouts
from trainer.charts.registry import charts_of
from trainer.charts.settings import words
from trainer.charts.spec import Chart, Request

REMEMBER_MS = 400
SIDE_PX = 328
NARROW_PX, ABOVE_PX = 700, 136
"""In a narrower view, controls at the left of the chart are above it, and have this height."""


class ChartView(View):
    """The charts of one view, one per tab.

    Attributes:
        name: Of the view: its charts are those of the registry for it, and its widgets and settings are named so.
        shared: Settings that have one value in all charts of the view which have them.
        controls_left: The controls stand at the left of the chart instead of behind the `...` of the bar.
        above, beside: Where a view puts controls of its own: over those of the settings, and to their left.
    """

    name: ClassVar[str]
    shared: ClassVar[tuple[str, ...]] = ()
    controls_left: ClassVar[bool] = False
    holds_plot = True

    def build(self) -> Iterator[None]:
        self.charts: dict[str, Chart[Any, Any]] = {chart.name: chart for chart in charts_of(self.name)}
        self.pictures = Thumbnails(self.context.background, self, edge=128)
        tabs = ((chart.label, chart.question) for chart in self.charts.values())
        self.tabs = layouts.tab_bar(f"{self.name}-tabs", f"Charts of {self.title}", tabs)
        self.status = layouts.text(role="small", name=f"{self.name}-status")
        self.stand_for(self.tabs, tuple(self.charts))
        yield
        self.pane = ChartPane(self.context, self.name, self.pictures)
        self.above, self.tools = layouts.column(), layouts.column()
        self.beside = layouts.row(gap=theme.AROUND)
        self.controls: dict[str, Controls] = {}
        self._remembering = QTimer(self, singleShot=True, interval=REMEMBER_MS)
        yield
        self._lay_out()
        self._reset = QAction("Reset the chart", self, objectName=f"{self.name}-action-reset", triggered=self.reset)
        self.show_message("")
        yield
        remembered = self.context.settings.value(f"{self.name}/chart", "")
        self.tabs.setCurrentIndex(list(self.charts).index(remembered) if remembered in self.charts else 0)
        self._connect()

    @property
    def chart(self) -> Chart[Any, Any]:
        """The chart of the open tab."""
        return list(self.charts.values())[self.tabs.currentIndex()]

    @property
    def busy(self) -> bool:
        """Whether a result is pending."""
        return self.pane.busy

    def open_chart(self, name: str) -> None:
        self.tabs.setCurrentIndex(list(self.charts).index(name))

    def settings_now(self) -> Any:
        """Return the open chart's settings; subclasses may add further ones."""
        return self.controls_of(self.chart).settings

    def request_now(self) -> Request:
        """Return the request for the selected snapshots."""
        return request_of(self.context.selection) if self.chart.needs != "none" else Request()

    def works_without_runs(self) -> bool:
        """Return whether there is something to show without a selected run."""
        return self.chart.needs == "none"

    def command(self) -> list[str] | None:
        return None if self.is_empty else self.pane.command()

    def actions_for_palette(self) -> list[QAction]:
        return [*self.chart_actions, self._reset]

    def refresh(self) -> None:
        self._show_controls()
        if not self.context.selection.runs and not self.works_without_runs():
            self.pane.stop()
            self.pane.forget()
            self.show_no_run("Choose a run in the bar above; a second one is shown next to it.")
            return
        self.show_content()
        self.method = self.chart.help_text
        self.pane.ask(self.chart, self.request_now(), self.settings_now())

    def ask_again(self) -> None:
        """Recompute, because the store may have changed."""
        self.pane.forget()
        self.refresh_if_seen()

    def show_message(self, text: str) -> None:
        """Show a message above the chart; an empty one takes no space."""
        self.status.setText(text)
        self.status.setVisible(bool(text))

    def reset(self) -> None:
        """Reset the open chart's settings to their defaults."""
        controls = self.controls_of(self.chart)
        controls.show_settings(self.chart.settings())
        controls.changed.emit()

    def change(self, **values: Any) -> None:
        """Set settings of the open chart as if its controls had been moved."""
        controls = self.controls_of(self.chart)
        controls.show_settings(replace(controls.settings, **values))
        controls.changed.emit()

    def controls_of(self, chart: Chart[Any, Any]) -> Controls:
        """Return the controls of a chart, created on first use with the saved settings."""
        if chart.name not in self.controls:
            made = Controls(chart.settings, chart.name, below=True)
            shared = {name: value for each in self.controls.values() for name, value in self._shared(each).items()}
            made.show_settings(_with(remembered(self.context, chart), shared))
            made.changed.connect(lambda: self._on_settings(made))
            self.controls[chart.name] = made
            self.tools.addWidget(made)
        return self.controls[chart.name]

    def show_tools(self) -> None:
        """Show the view's own controls of the open chart."""

    def _show_controls(self) -> None:
        current = self.controls_of(self.chart)
        for controls in self.controls.values():
            controls.setVisible(controls is current and not controls.is_empty)
        self.show_tools()

    def _remember(self) -> None:
        for name, controls in self.controls.items():
            self.context.settings.set(f"{name}/settings", words(controls.settings))

    def _shared(self, controls: Controls) -> dict[str, Any]:
        settings = controls.settings
        return {name: getattr(settings, name) for name in self.shared if hasattr(settings, name)}

    def _on_settings(self, changed: Controls) -> None:
        shared = self._shared(changed)
        for controls in self.controls.values():
            if controls is not changed and shared:
                controls.show_settings(_with(controls.settings, shared))
        self._remembering.start()
        self.refresh_if_seen()

    def _on_tab(self) -> None:
        self.context.settings.set(f"{self.name}/chart", self.chart.name)
        self.show_message("")
        self.refresh_if_seen()

    def _on_snapshot(self, run: int) -> None:
        if self.context.selection.follows(run):
            self.ask_again()

    def _connect(self) -> None:
        selection = self.context.selection
        for signal in (selection.runs_changed, selection.step_changed, selection.dataset_changed):
            signal.connect(self.refresh_if_seen)
        self.context.jobs.snapshots_changed.connect(self._on_snapshot)
        self.tabs.currentChanged.connect(lambda _place: self._on_tab())
        self._remembering.timeout.connect(self._remember)
        self.pane.answered.connect(lambda: self.show_message(""))

    def _lay_out(self) -> None:
        tools = layouts.column(self.beside, self.tools, gap=theme.BETWEEN)
        layouts.add(self.body, self.status, self.above)
        if not self.controls_left:
            self.more.addLayout(tools)
            self.body.addWidget(self.pane, 1)
            return
        side = layouts.panel(layouts.column(tools, layouts.STRETCH, gap=None, margins=(0, 0, theme.BETWEEN, 0)))
        self._side = layouts.scroll(side, f"{self.name}-side")
        self._side.setFixedWidth(SIDE_PX)
        self._parts = layouts.row(self._side, (self.pane, 1), gap=theme.BETWEEN)
        self.body.addLayout(self._parts, 1)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if self.controls_left:
            is_narrow = self.width() < NARROW_PX
            layouts.stack(self._parts, is_narrow)
            self._side.setMinimumHeight(ABOVE_PX if is_narrow else 0)


def _with(settings: Any, values: dict[str, Any]) -> Any:
    """Return the settings updated with those values that they have as fields."""
    return replace(settings, **{name: value for name, value in values.items() if hasattr(settings, name)})
