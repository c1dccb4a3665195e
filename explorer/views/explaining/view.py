"""Spectra, saturation, batches and probes, and a button that queues the four-way ablation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Final

from PySide6.QtCore import Qt
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QPushButton, QWidget

from explorer import theme
from explorer.intents import MoveAlong, Replay, ViewIntent
from explorer.render_qt.xy_plot import XYPlotCard
from explorer.run_control import actions
from explorer.views.chart_view import ChartView
from explorer.views.explaining.time_machine import REPLAY, TimeMachine
from explorer.views.read_only import guarded
from explorer.widgets import layouts
from explorer.widgets.finder import Choice
from explorer.widgets.progress_row import ProgressRow
from explorer.widgets.refusal import set_refusal
from explorer.widgets.searchable_combo_box import SearchableComboBox
from trainer.charts.decode import MOST_DIRECTIONS
from trainer.charts.measures.attribute_probes import lacking_independent
from trainer.charts.spec import Request, Target
from trainer.config.ablation import PRESET
from trainer.messages import EmbedIndependent, Failure

PROBES: Final = "attribute-probes"
BATCH: Final = "batch-negatives"
SPECTRUM: Final = "spectrum-image"
"""The plot of which a click chooses a direction to decode along."""
QUEUED: Final = "The runs of the ablation are queued or train already."
EMBEDDING: Final = "The Scenes are being embedded."
NONE_LACKS: Final = "All shown runs trained on Scenes already have them, or have no checkpoint to embed them with"
LEVELS: Final = (
    Choice((0.0,), "independent attributes", "Co-occurrence 0: four runs."),
    Choice((0.8,), "co-occurrence 0.8", "Shapes prefer colors and grounds: four runs."),
    Choice((0.0, 0.8), "both: 0 and 0.8", "Eight runs."),
)


class ExplainingView(ChartView):
    """What each run encodes, in how many dimensions, and how saturated its objective is."""

    title = "Explaining away"
    question = "Effective rank, saturation and feature usage."
    icon = "layers"
    compares = "scores"
    name = "explaining"
    shared: ClassVar[tuple[str, ...]] = ("held_out",)

    def build(self) -> Iterator[None]:
        jobs = self.context.jobs
        self.levels = SearchableComboBox(name="explaining-levels", label="Co-occurrence of the ablation", width=190)
        self.levels.setMaximumWidth(240)
        self.start = QPushButton("Run the four-way ablation", objectName="explaining-ablation")
        self.state = layouts.elided(role="secondary")
        self.state.setObjectName("explaining-state")
        self.embed = QPushButton("Embed independent Scenes", objectName="explaining-embed")
        set_refusal(self.embed, NONE_LACKS)
        self.working = ProgressRow("explaining-working", self, asks=True)
        self.time_machine = TimeMachine(self.context, self)
        self._lacking: tuple[tuple[int, int | None], ...] = ()
        self._embedding: int | None = None
        self._ablation_action = QAction("Run the four-way ablation", self, objectName="explaining-action-ablation")
        self._ablation_action.triggered.connect(self.start_ablation)
        self._offered = False
        yield from super().build()
        self.levels.show_choices(LEVELS, (0.0,))
        theme.set_role(self.start, "primary")
        theme.keep_icon(self.start, "play", role="accent_text")
        self.start.setToolTip("Trains InfoNCE, InfoNCE + Hopfield, InfoLOOB and CLOOB with equal settings")
        yield
        self.start.clicked.connect(self.start_ablation)
        self.embed.clicked.connect(self.embed_independent)
        self.working.cancelled.connect(self._cancel_embedding)
        self.time_machine.answered.connect(self._show_replayed)
        self.time_machine.failed.connect(self.failed)
        self.time_machine.turned.connect(self._offer_replay)
        self.pane.answered.connect(self._on_answer)
        self.pane.refused.connect(self._on_answer)
        self.pane.panel.row_chosen.connect(lambda _key, row: self.choose_anchor(row))
        self.pane.panel.plot_dragged.connect(self._choose_direction)
        jobs.run_ended.connect(self._on_ended)
        jobs.runs_changed.connect(lambda _rows: self._show_ablation())
        self._show_ablation()

    def request_now(self) -> Request:
        request = super().request_now()
        finished = tuple(Target(row.id) for row in self._ablation() if row.status == "finished")
        return request if request.targets or self.chart.name != PROBES else Request(finished[-8:])

    def works_without_runs(self) -> bool:
        return bool(self.request_now().targets)

    def _on_answer(self) -> None:
        if self.chart.name == PROBES:
            self._find_lacking()
        self._offered = False
        self._offer_replay()
        for key, card in self.pane.panel.cards.items():
            if isinstance(card, XYPlotCard):
                held = key == SPECTRUM
                shape = Qt.CursorShape.PointingHandCursor if held else Qt.CursorShape.ArrowCursor
                card.plot.viewport().setCursor(shape)
                card.plot.setToolTip("Click a direction to move along it in Decode" if held else "")

    def _offer_replay(self) -> None:
        """Say of which run nothing is replayed, with a button that does, unless one is being asked."""
        answer, area = self.pane.answer, self.pane.area
        if answer is None or answer.chart.name != self.chart.name or self.chart.name != REPLAY:
            return
        if self._offered and area.kind == "partial":
            area.ready()
        self._offered = False
        if area.kind != "ready" or self.time_machine.busy:
            return
        missing = [(run, index) for run, index in zip(answer.data.found, answer.data.places) if run.record is None]
        if missing:
            run, index = missing[0]
            names = " or ".join(lacks.name for lacks, _ in missing)
            act = (f"Replay the step of {'AB'[index]}", lambda: self.time_machine.replay_chosen(run.run))
            area.partial(f"No step of {names} was replayed yet.", act)
            self._offered = True

    def _choose_direction(self, key: str, x: float, _y: float) -> None:
        if key != SPECTRUM:
            return
        number, most = max(1, round(x)), MOST_DIRECTIONS
        if number <= most:
            self.requested.emit(MoveAlong(number))
        else:
            self.failed.emit(f"Direction {number} is below the display threshold.", f"Click one of the first {most}.")

    def actions_for_palette(self) -> list[QAction]:
        return [*super().actions_for_palette(), self._ablation_action]

    def choose_anchor(self, anchor: int) -> None:
        """Show the negatives of this anchor of the batch."""
        if self.chart.name == BATCH:
            self.change(anchor=anchor)

    def start_ablation(self) -> None:
        """Queue four runs (eight with both co-occurrences), which fill the attribute probes as they finish."""
        self.open_chart(PROBES)
        set_refusal(self.start, QUEUED)
        self.state.setText("Queueing …")
        self.context.jobs.do(actions.create_ablation, self.levels.key or (0.0,))

    def embed_independent(self) -> None:
        """Embed independent Scenes in a separate process with every run that lacks them."""
        if self._embedding is not None or not self._lacking:
            return
        ticket = self.working.start()
        set_refusal(self.embed, EMBEDDING)
        runs, steps = zip(*self._lacking, strict=True)
        question = EmbedIndependent(runs=runs, steps=steps)
        self._embedding = self.context.client.ask(
            question,
            done=lambda _answer: self._embedded(),
            failed=self._not_embedded,
            progress=lambda share, note: None if ticket.cancelled else ticket(share, note),
            owner=self,
        )

    def _embedded(self) -> None:
        self._embedding = None
        self.working.end()
        self.pane.forget()
        controls = self.controls_of(self.charts[PROBES])
        controls.show_settings(replace(controls.settings, independent=True))
        controls.changed.emit()

    def _not_embedded(self, failure: Failure) -> None:
        self._embedding = None
        self.working.end()
        self._find_lacking()
        if failure.kind != "cancelled":
            self.failed.emit(*failure.sentences)

    def _cancel_embedding(self) -> None:
        if self._embedding is not None:
            self.context.client.cancel(self._embedding)

    def _find_lacking(self) -> None:
        selection = self.context.selection
        self.context.background.run(
            self,
            lacking_independent,
            self.context.workspace,
            [(side.run, side.step) for side in selection.sides],
            done=self._show_lacking,
            key="lacking",
        )

    def _show_lacking(self, lacking: Sequence[tuple[int, int | None]]) -> None:
        self._lacking = tuple(lacking)
        several = len({run for run, _ in lacking})
        runs = "1 run" if several == 1 else f"{several} runs"
        reason = self.context.jobs.read_only_reason or (EMBEDDING if self._embedding is not None else "")
        set_refusal(
            self.embed,
            reason or ("" if lacking else NONE_LACKS),
            f"Draws 1,024 Scenes without co-occurrence and embeds them with the {runs} that lack them: under a minute",
        )

    def carry_out(self, intent: ViewIntent) -> None:
        match intent:
            case Replay(run_id, step):
                self.replay(run_id, step)
            case _:
                super().carry_out(intent)

    def replay(self, run_id: int, step: int) -> None:
        """Make this update of the run, as run A, again, and show it."""
        selection = self.context.selection
        run_a, run_b = selection.run_a, selection.run_b
        if run_a != run_id:
            selection.select_runs(run_id, run_a if run_b in (run_id, None) else run_b)
        self.open_chart(REPLAY)
        self.time_machine.replay(run_id, step)

    def _show_replayed(self) -> None:
        """Open the chart of what was replayed, at the newest."""
        self.open_chart(REPLAY)
        self.change(replayed=self.time_machine.step.value())
        self.ask_again()

    def show_tools(self) -> None:
        self._tools.setVisible(self.chart.name == PROBES)
        self.time_machine.show_chart(self.chart.name)

    def _lay_out(self) -> None:
        super()._lay_out()
        self._tools = QWidget()
        start, embed = (guarded(self.context.jobs, layouts.panel(layouts.row(b))) for b in (self.start, self.embed))
        layouts.row(start, self.levels, (self.state, 1), embed, gap=theme.BETWEEN, of=self._tools)
        layouts.add(self.above, self._tools, self.time_machine)

    def _ablation(self) -> list[Any]:
        return [row for row in self.context.jobs.runs if row.preset == PRESET]

    def _show_ablation(self) -> None:
        rows = self._ablation()
        waiting = [row for row in rows if row.active]
        set_refusal(self.start, self.context.jobs.read_only_reason or (QUEUED if waiting else ""))
        if waiting:
            now = next((row for row in waiting if row.status != "queued"), waiting[0])
            steps = f", step {now.step:,} of {now.total_steps:,}" if now.total_steps else ""
            self.state.setText(f"{now.name}: {now.status}{steps} · {len(waiting)} of the ablation to go")
        elif rows:
            finished = sum(row.status == "finished" for row in rows)
            self.state.setText(f"{finished} runs of the ablation are finished")
        else:
            self.state.setText("Four trainings of about two minutes each on two cores")

    def _on_ended(self, row: Any) -> None:
        if getattr(row, "preset", "") == PRESET and self.chart.name == PROBES:
            self.ask_again()
