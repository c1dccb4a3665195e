"""The distributions of cosines: the chart, the facet column, and the brushed pairs."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QPushButton

from explorer import theme
from explorer.models.thumbnails import Thumbnails
from explorer.views.chart_tab import ChartTab
from explorer.views.similarity.strip import PairStrip, Zone
from explorer.views.view import Context
from explorer.widgets import layouts
from explorer.widgets.finder import Choice
from explorer.widgets.flow_row import FlowRow
from explorer.widgets.refusal import set_refusal
from explorer.widgets.searchable_combo_box import SearchableComboBox
from trainer.charts.facets import facet_columns
from trainer.charts.measures.similarity import EMPTY, SimilarityRun
from trainer.charts.snapshot_label import labels

LOWEST = 40
"""Pairs listed while no others are selected."""
NOTHING, EVERYTHING = Choice("", "none"), Choice("", "all values")


class CosinesTab(ChartTab):
    """Histograms of each run; dragging across one selects its matched pairs in that range everywhere."""

    def __init__(self, context: Context, pictures: Thumbnails) -> None:
        super().__init__(context, "similarity", pictures)
        # Another day's data may have other columns.
        self.controls.show_settings(replace(self.controls.settings, facet="", only=""))
        self._zone: Zone | None = None
        self.facet = SearchableComboBox(name="similarity-facet", label="Group by", width=120)
        self.only = SearchableComboBox(name="similarity-only", label="Only the images of", width=120)
        self.zone_button = QPushButton("Select overlap", objectName="similarity-zone")
        self.zone_button.setToolTip(
            "Select the first run's matched pairs below the 95th percentile of the unmatched cosines"
        )
        self.strip = PairStrip(pictures)
        self._show_columns()
        self._lay_out()
        self._connect()

    def brush_overlap(self) -> None:
        """Brush, in the first run, the matched pairs that overlap the unmatched ones."""
        if self.runs:
            key = f"cosines-{self.data.places[0]}"
            low, high = overlap_zone(self.runs[0])
            brush = (low, high) if high > low else None
            self.pane.panel.set_brush(key, brush)
            self._brush(key, brush)

    def _brush(self, key: str, brush: tuple[float, float] | None) -> None:
        """Select the matched pairs in a range of one run everywhere, and clear the other brushes."""
        self._clear_brushes(key)
        keys = [f"cosines-{index}" for index in self.data.places]
        if brush is None or key not in keys:
            self._zone = None
            self.context.selection.pairs = ()
            return
        run = self.runs[keys.index(key)]
        inside = (run.matched >= brush[0]) & (run.matched <= brush[1])
        rows = run.rows[inside]
        self._zone = Zone(labels(self.runs)[keys.index(key)], *brush, rows)
        self.context.selection.pairs = rows
        self._show_pairs()

    def _clear_brushes(self, but: str = "") -> None:
        for key in self.pane.panel.cards:
            if key.startswith("cosines-") and key != but:
                self.pane.panel.set_brush(key, None)

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._show_pairs()  # others may have been selected meanwhile

    def _on_pairs(self) -> None:
        if self._zone is not None and not np.array_equal(self.context.selection.pairs, self._zone.rows):
            self._zone = None
            self._clear_brushes()
        if self.isVisible():
            self._show_pairs()

    def _show_pairs(self) -> None:
        rows, lowest = self.context.selection.pairs, self._lowest()
        if self._zone is None and len(rows) < 2 and np.isin(rows, lowest).all() and len(lowest):
            lead, names = self.runs[0], labels(self.runs)
            further = (f", {run.confused:,} in {name}" for run, name in zip(self.runs[1:], names[1:], strict=True))
            text = f"{lead.confused_words} in {names[0]}{''.join(further)}"
            first = f"these {lead.confused:,}, then " * bool(lead.confused)
            text += f" · own vs. closest other, {first}smallest margin first"
            self.strip.show_pairs(lowest, self.runs, self.data.places, text)
            if not len(rows):
                self.strip.strip.clearSelection()
            return
        text = self._zone.words if self._zone is not None else f"{len(rows):,} pair{'s' * (len(rows) != 1)} selected"
        if len(rows):
            text += " (matched cosine against that of the most similar unmatched text)"
        self.strip.show_pairs(rows, self.runs, self.data.places if self.data is not None else (), text)

    def _lowest(self) -> np.ndarray:
        """Return the rows of the pairs of the first run with the smallest margins, ascending."""
        run = next(iter(self.runs), None)
        return np.empty(0, np.int64) if run is None else np.sort(run.rows[run.smallest_margins(LOWEST)])

    def _choose(self, pair: int) -> None:
        self._zone = None
        self._clear_brushes()
        self.context.selection.pairs = np.array([pair], np.int64)

    def _on_answer(self) -> None:
        self._show_columns()
        self._show_pairs()

    def _show_columns(self) -> None:
        settings = self.settings_now()
        columns = facet_columns(self.runs[0].items) if self.runs else ()
        self.facet.show_choices((NOTHING, *(Choice(name, name.replace("_", " ")) for name in columns)), settings.facet)
        facets = dict.fromkeys(part.value or EMPTY for run in self.runs for part in run.facets)
        values = [Choice(value, value) for value in facets]
        self.only.show_choices((EVERYTHING, *values), settings.only)
        set_refusal(self.only, "" if values else "Split the cosines by a column first.")

    def _on_data(self) -> None:
        self.controls.show_settings(replace(self.controls.settings, facet="", only=""))

    def _connect(self) -> None:
        self.pane.answered.connect(self._on_answer)
        self.pane.selects = False
        self.strip.chosen.connect(self._choose)
        self.pane.panel.plot_brushed.connect(self._brush)
        self.facet.picked.connect(lambda column: self.change(facet=column, only=""))
        self.only.picked.connect(lambda value: self.change(only=value))
        self.zone_button.clicked.connect(self.brush_overlap)
        self.context.selection.pairs_changed.connect(self._on_pairs)
        self.context.selection.dataset_changed.connect(self._on_data)

    def _lay_out(self) -> None:
        row = FlowRow()
        for name, picker in (("Group by", self.facet), ("Only", self.only)):
            label = layouts.text(name, "secondary", buddy=picker)
            picker.setMaximumWidth(180)
            row.add(label, gap=theme.INSIDE + theme.SPACE)
            row.add(picker, gap=theme.INSIDE, stretch=True)
        row.add(self.zone_button, gap=theme.INSIDE + theme.SPACE)
        self.tools.addWidget(row)
        self.column.addWidget(self.strip)


def overlap_zone(run: SimilarityRun) -> tuple[float, float]:
    """Return the range from the lowest matched cosine to the 95th percentile of unmatched ones."""
    matched = run.matched[np.isfinite(run.matched)]
    if not len(matched) or not len(run.unmatched):
        return 0.0, -math.inf
    order = np.argsort(run.unmatched)
    weights = np.ones(len(order)) if run.unmatched_weights is None else run.unmatched_weights[order]
    reached = np.searchsorted(np.cumsum(weights), 0.95 * weights.sum())
    return float(matched.min()), float(run.unmatched[order[min(int(reached), len(order) - 1)]])
