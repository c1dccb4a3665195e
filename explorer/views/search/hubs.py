"""Next to the search: how often each image is a hit, and the switch that corrects for hubs."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QCheckBox, QWidget

from explorer import theme
from explorer.models.thumbnails import Thumbnails
from explorer.views.chart_pane import ChartPane
from explorer.views.view import Context
from explorer.widgets import layouts
from trainer.charts.hubness import CHART
from trainer.charts.spec import Request


class Hubs(QWidget):
    """The hubness chart, and the switch that enables CSLS in the search.

    Signals:
        toggled: CSLS is on or off now.
    """

    toggled = Signal(bool)

    def __init__(self, context: Context, pictures: Thumbnails, parent: QWidget | None = None) -> None:
        super().__init__(parent, objectName="search-hubs")
        self.csls = QCheckBox("Reduce hubness (CSLS)", objectName="search-csls")
        self.csls.setToolTip("Order hits by cosine minus half the hit's mean cosine to its 10 nearest captions")
        self.pane = ChartPane(context, CHART.name, pictures)
        heading = layouts.text(CHART.label, "heading")
        layouts.column(
            heading,
            self.csls,
            (self.pane, 1),
            margins=(theme.BETWEEN, theme.BETWEEN, theme.INSIDE, theme.INSIDE),
            of=self,
        )
        self.csls.toggled.connect(self.toggled)

    def show_hubs(self, request: Request) -> None:
        """Count the hits in these snapshots, unless they are shown already."""
        self.pane.ask(CHART, request, CHART.settings())
