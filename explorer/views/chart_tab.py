"""A chart of the registry as a tab of another view: controls, panel, and a message if there is no chart."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QWidget

from explorer.models.thumbnails import Thumbnails
from explorer.render_qt.controls import Controls
from explorer.views.chart_pane import ChartPane, request_of
from explorer.views.view import Context
from explorer.widgets import layouts
from trainer.charts import ChartError
from trainer.charts.registry import load
from trainer.charts.settings import parse, words
from trainer.charts.spec import Chart, Request


class ChartTab(QWidget):
    """A chart of the selected snapshots; its settings are saved.

    Attributes:
        tools: Column of its controls; a view may put `tools_panel` among its others.
    """

    answered = Signal()  # Another panel is shown.

    def __init__(self, context: Context, name: str, pictures: Thumbnails) -> None:
        super().__init__(objectName=f"{name}-tab")
        self.context = context
        self.chart: Chart[Any, Any] = load(name)
        self.pane = ChartPane(context, name, pictures)
        self.controls = Controls(self.chart.settings, name)
        self.controls.show_settings(remembered(context, self.chart))
        self.tools = layouts.column(self.controls)
        self.tools_panel = layouts.panel(self.tools)
        self.column = layouts.column(self.tools_panel, (self.pane, 1), of=self)
        self.controls.changed.connect(self._on_settings)
        self.pane.answered.connect(self.answered)

    @property
    def data(self) -> Any:
        """The computed data; None before the first result."""
        return self.pane.answer.data if self.pane.answer is not None else None

    @property
    def runs(self) -> tuple[Any, ...]:
        """The data shown of each run, where the chart measures each by itself; empty before the first result."""
        return self.data.found if self.data is not None else ()

    def request_now(self) -> Request:
        """Return the request for the selected snapshots."""
        return request_of(self.context.selection)

    def settings_now(self) -> Any:
        """Return the current settings; subclasses may add further ones."""
        return self.controls.settings

    def change(self, **values: Any) -> None:
        """Set settings as if the controls had been moved."""
        self.controls.show_settings(replace(self.controls.settings, **values))
        self.controls.changed.emit()

    def refresh(self) -> None:
        """Update the chart for the current selection and settings."""
        self.pane.ask(self.chart, self.request_now(), self.settings_now())

    def forget(self) -> None:
        """Invalidate what was read."""
        self.pane.forget()

    def command(self) -> list[str] | None:
        """Return the `trainer` arguments for what is shown; None if there is nothing to export."""
        return self.pane.command()

    def _on_settings(self) -> None:
        self.context.settings.set(f"{self.chart.name}/settings", words(self.controls.settings))
        if self.isVisible():
            self.refresh()


def remembered(context: Context, chart: Chart[Any, Any]) -> Any:
    """Return the saved settings of a chart, or its defaults."""
    try:
        return parse(chart.settings, context.settings.value(f"{chart.name}/settings", []))
    except (ChartError, TypeError, AttributeError):
        # Another version's settings, or a file that somebody edited: as good as none.
        return chart.settings()
