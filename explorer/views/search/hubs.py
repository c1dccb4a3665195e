"""Next to the search: how often every image is found, and the switch that corrects for it."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QCheckBox, QLabel, QVBoxLayout, QWidget

from explorer import theme
from explorer.models.thumbnails import Pictures
from explorer.views.chart_pane import ChartPane
from explorer.views.view import Context
from trainer.charts.hubness import CHART
from trainer.charts.spec import Request


class Hubs(QWidget):
    """The chart of the hubs, and the switch that lets the search use CSLS.

    Signals:
        toggled: CSLS is on or off now.
    """

    toggled = Signal(bool)

    def __init__(self, context: Context, pictures: Pictures, parent: QWidget | None = None) -> None:
        super().__init__(parent, objectName="search-hubs")
        self.csls = QCheckBox("Correct for hubs (CSLS)", objectName="search-csls")
        self.csls.setToolTip("Order hits by cosine minus half the hit's mean cosine to its 10 nearest captions")
        self.pane = ChartPane(context, CHART.name, pictures)
        self.problem = QLabel(wordWrap=True, visible=False)
        theme.set_role(self.problem, "small")
        heading = QLabel(CHART.label)
        theme.set_role(heading, "heading")
        column = QVBoxLayout(self)
        column.setContentsMargins(theme.BETWEEN, theme.BETWEEN, theme.INSIDE, theme.INSIDE)
        column.setSpacing(theme.INSIDE)
        for widget in (heading, self.csls, self.problem):
            column.addWidget(widget)
        column.addWidget(self.pane, 1)
        self.csls.toggled.connect(self.toggled)
        self.pane.refused.connect(self._tell)
        self.pane.cancelled.connect(lambda: self._tell("Cancelled. Open the view again to count."))
        self.pane.answered.connect(lambda: self._tell(""))

    def show_hubs(self, request: Request) -> None:
        """Counts for these snapshots; what is shown already is not counted again."""
        self.pane.ask(CHART, request, CHART.settings())

    def _tell(self, words: str) -> None:
        self.problem.setText(words)
        self.problem.setVisible(bool(words))
        self.pane.panel.setVisible(not words)
