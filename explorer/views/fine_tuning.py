"""The Fine-tuning view: what was gained and forgotten, and a slider between a model and its fine-tuning."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from PySide6.QtCore import QSignalBlocker, Qt
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QPushButton, QSlider

from explorer import theme
from explorer.intents import FineTune, MixRuns
from explorer.views.chart_view import ChartView
from explorer.widgets import layouts
from explorer.widgets.flow_row import FlowRow
from explorer.widgets.refusal import set_refusal
from trainer.charts.measures.forgetting import Forgetting
from trainer.charts.spec import Request, Target


class FineTuningView(ChartView):
    """Both sets of A and B over the steps, or over alpha; the slider chooses the step of every view."""

    title = "Fine-tuning"
    question = "What did fine-tuning gain on its own data, and what did it forget?"
    icon = "sliders-horizontal"
    compares = "scores"
    name = "fine_tuning"

    def build(self) -> Iterator[None]:
        self.slider = QSlider(Qt.Orientation.Horizontal, objectName="fine-tuning-slider")
        self.slider.setAccessibleName("Step or alpha of the snapshots")
        self.slider.setPageStep(1)
        self.slider_text = layouts.text(role="secondary", name="fine-tuning-at")
        self.tune = QPushButton("Fine-tune A\u2026", objectName="fine-tuning-tune")
        self.mix = QPushButton("Mix A with its base\u2026", objectName="fine-tuning-mix")
        self._stored: tuple[int, ...] = ()
        for part in (self.slider, self.slider_text):
            part.hide()
        yield from super().build()
        self.tune.setToolTip("A new run that continues from the weights of A, with settings that suit them")
        self.mix.setToolTip("A run that measures weights between A and what it was fine-tuned from (WiSE-FT)")
        theme.keep_icon(self.tune, "sliders-horizontal", 16, "secondary")
        theme.keep_icon(self.mix, "blend", 16, "secondary")
        self.tune.clicked.connect(lambda: self._ask_of_a(FineTune))
        self.mix.clicked.connect(lambda: self._ask_of_a(lambda run: MixRuns((run,))))
        self.slider.valueChanged.connect(self._choose_step)
        self.pane.answered.connect(self._show_slider)
        self._moves = [QAction(label, self) for label in ("Towards the base", "Towards the fine-tuned model")]
        for action, steps in zip(self._moves, (-1, 1), strict=True):
            action.triggered.connect(lambda _=False, by=steps: self.slider.setValue(self.slider.value() + by))

    def actions_for_palette(self) -> list[QAction]:
        return [*self._moves, *super().actions_for_palette()]

    def settings_now(self) -> Any:
        step = self.context.selection.step
        return replace(super().settings_now(), at=-1 if step is None else step)

    def request_now(self) -> Request:
        # A run is drawn over all of its steps: the one that is looked at moves a line alone.
        request = super().request_now()
        return replace(request, targets=tuple(dict.fromkeys(Target(target.run) for target in request.targets)))

    @property
    def _run_a(self) -> Forgetting | None:
        answer = self.pane.answer
        runs = answer.data.found if answer is not None else ()
        return next((run for run in runs if run.run == self.context.selection.run_a), None)

    def _ask_of_a(self, intent: Any) -> None:
        if self.context.selection.run_a is not None:
            self.requested.emit(intent(self.context.selection.run_a))

    def _show_slider(self) -> None:
        """Offer the stored snapshots of A, and say which is looked at."""
        run = self._run_a
        shares = next(iter(run.own.shares.values()), {}) if run is not None else {}
        self._stored = tuple(step for step, share in shares.items() if share.change is not None)
        many = len(self._stored) > 1
        for part in (self.slider, self.slider_text):
            part.setVisible(many)
        no_base = (
            "Run A was not fine-tuned from another one." if run is None else "Run A is such a mix." if run.mixes else ""
        )
        set_refusal(self.mix, no_base)
        if not many or run is None:
            return
        step = self.context.selection.step
        at = self._stored[-1] if step is None else max((s for s in self._stored if s <= step), default=self._stored[0])
        with QSignalBlocker(self.slider):
            self.slider.setRange(0, len(self._stored) - 1)
            self.slider.setValue(self._stored.index(at))
        best = f"; best alpha by the rule: {run.best / 100:g}" if run.best is not None else ""
        where = f"Alpha {at / 100:g}{best}" if run.mixes else f"Step {at:,}"
        self.slider_text.setText(f"{where}. Map, Timeline and Compare show this snapshot.")

    def _choose_step(self, index: int) -> None:
        if 0 <= index < len(self._stored):
            self.context.selection.step = self._stored[index]

    def _lay_out(self) -> None:
        super()._lay_out()
        controls = FlowRow()
        controls.add(self.slider, stretch=True)
        for part in (self.slider_text, self.tune, self.mix):
            controls.add(part, gap=theme.BETWEEN)
        self.above.addWidget(controls)
