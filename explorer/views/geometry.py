"""The Uniformity view: how uniformly the embeddings cover the sphere, and the concepts they consist of."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from typing import Any, Final

from PySide6.QtWidgets import QPushButton, QWidget

from explorer.event_loop.idle_scheduler import idle_scheduler
from explorer.views.chart_view import ChartView
from explorer.widgets import layouts

CONCEPTS: Final = "concepts"


class GeometryView(ChartView):
    """Angles of images and texts, tests of uniformity, their course over training, and concepts."""

    title = "Uniformity"
    question = "How evenly do the embeddings cover the sphere?"
    icon = "globe"
    compares = "scores"
    name = "geometry"

    def build(self) -> Iterator[None]:
        self._tools = QWidget()
        self.select_pairs = QPushButton("Select its pairs", objectName="concepts-select")
        self.switch_off = QPushButton("Switch it off", objectName="concepts-off")
        self.all_on = QPushButton("Switch all on", objectName="concepts-on")
        self.chosen = layouts.text(role="secondary", name="concepts-chosen")
        self._off_seen: tuple[int, ...] = ()
        self._known: Callable[[], Any] = lambda: None
        yield from super().build()
        self.select_pairs.setToolTip("Selects all pairs whose image or caption has the concept, in every view")
        self.switch_off.setToolTip("Ablates the concept in all embeddings and re-evaluates")
        self.select_pairs.clicked.connect(self._select_pairs)
        self.switch_off.clicked.connect(lambda: self._switch_off())
        self.all_on.clicked.connect(lambda: self.change(off=()))
        self.pane.panel.concept_chosen.connect(self.choose_concept)
        self.pane.panel.pair_chosen.connect(self._choose_pair)
        self.pane.answered.connect(self._forget_numbers)
        self.pane.answered.connect(self._show_chosen)
        self.pane.answered.connect(lambda: idle_scheduler().later(self, self._show_effect))
        self.context.selection.pairs_changed.connect(self._on_pairs)

    @property
    def concept(self) -> int:
        """The number of the chosen concept; -1 for none."""
        return self.controls_of(self.charts[CONCEPTS]).settings.concept

    def choose_concept(self, number: int) -> None:
        """Show the images of this concept, and select its pairs in every view."""
        self.change(concept=number)
        self._select_pairs()

    def show_tools(self) -> None:
        self._tools.setVisible(self.chart.name == CONCEPTS)
        self._show_chosen()

    @property
    def concept_data(self) -> Any:
        """The concepts that the pane shows; None while it shows another chart or none."""
        answer = self.pane.answer
        return answer.data if answer is not None and answer.chart.name == CONCEPTS else None

    def _select_pairs(self) -> None:
        if self.concept_data is not None and 0 <= self.concept < self.concept_data.size:
            self.context.selection.pairs = self.concept_data.of.pairs_with(self.concept)

    def _switch_off(self) -> None:
        off = self.controls_of(self.charts[CONCEPTS]).settings.off
        if self.concept >= 0 and self.concept not in off:
            self.change(off=(*off, self.concept))

    def _choose_pair(self, pair: int) -> None:
        if self.chart.name == CONCEPTS:
            self.context.selection.pairs = (pair,)

    def _on_pairs(self) -> None:
        """Search from the first selected pair, if something is added to it."""
        pairs = self.context.selection.pairs
        settings = self.controls_of(self.charts[CONCEPTS]).settings
        if len(pairs) and self.chart.name == CONCEPTS and settings.strength and settings.query != int(pairs[0]):
            self.change(query=int(pairs[0]))

    def _show_chosen(self) -> None:
        if self.chart.name != CONCEPTS:
            return
        settings, data = self.controls_of(self.chart).settings, self.concept_data
        is_known = data is not None and 0 <= self.concept < data.size
        concept = next((c for c in data.concepts if c.number == self.concept), None) if is_known else None
        name = concept.name if concept is not None else "Click a concept, or type its number under Pictures of"
        self.chosen.setText(name)
        self.select_pairs.setEnabled(is_known)
        self.switch_off.setEnabled(is_known and self.concept not in settings.off)
        self.all_on.setEnabled(bool(settings.off))

    def _forget_numbers(self) -> None:
        """Switch all concepts on in another dictionary, where the same numbers are other concepts."""
        data = self.concept_data
        if data is None or data is self._known():
            return
        self._known = weakref.ref(data)
        if self.controls_of(self.charts[CONCEPTS]).settings.off:
            self.change(off=())

    def _show_effect(self) -> None:
        """Bring what is measured without a concept into sight once another one is switched off."""
        if self.chart.name != CONCEPTS:
            return
        off, panel = self.controls_of(self.chart).settings.off, self.pane.panel
        if off and off != self._off_seen and "off" in panel.cards:
            panel.show_numbers(True)
            panel.ensureWidgetVisible(panel.cards["off"], 0, 0)
        self._off_seen = off

    def _lay_out(self) -> None:
        super()._lay_out()
        layouts.row(self.select_pairs, self.switch_off, self.all_on, self.chosen, (layouts.STRETCH, 1), of=self._tools)
        self.above.addWidget(self._tools)
