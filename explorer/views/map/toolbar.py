"""Controls of both maps: projection, colors, visible parts, selection tools."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from PySide6.QtCore import QObject, Signal

from explorer.views.map.coloring import MODALITY, words
from explorer.views.map.method_form import MethodForm
from explorer.views.map.tools import Tools
from explorer.widgets.finder import Choice
from explorer.widgets.searchable_combo_box import SearchableComboBox
from trainer.charts.point_placement import PointPlacement

COLOR_PX: Final = 192


class MapToolbar(QObject):
    """The controls of the maps: method and color stand in the window's bar, the tools below the maps."""

    projection_changed = Signal()  # `projection` is another.
    color_changed = Signal()  # `color_by` is another.

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.methods = MethodForm()
        self.pca, self.umap, self.form = self.methods.pca, self.methods.umap, self.methods.form
        self.neighbors, self.min_dist = self.methods.neighbors, self.methods.min_dist
        self.color = SearchableComboBox(name="map-color", label="Color by", width=92)
        self.tools = Tools()
        self.color.setMaximumWidth(COLOR_PX)
        self.offer_colors((MODALITY,), MODALITY)
        self._connect()

    @property
    def projection(self) -> PointPlacement:
        return self.methods.placement

    @property
    def color_by(self) -> str:
        """`modality`, `label` or a column of the items."""
        return self.color.key or MODALITY

    def offer_colors(self, choices: Sequence[str], by: str) -> None:
        """Offer these colorings and select `by`, or the first if `by` is missing."""
        self.color.show_choices([Choice(c, words(c)) for c in choices], by if by in choices else choices[0])
        self.color.setToolTip("What the colors of the points mean")  # the choice says the rest

    def _connect(self) -> None:
        self.methods.changed.connect(self.projection_changed)
        self.color.picked.connect(lambda _key: self.color_changed.emit())
