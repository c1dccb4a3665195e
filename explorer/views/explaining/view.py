"""The view of spectra, saturation, batches and probes, and the button of the four-way ablation."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from PySide6.QtCore import QSignalBlocker
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QHBoxLayout, QLabel, QPushButton, QWidget

from explorer import theme
from explorer.render_qt.controls import Slide
from explorer.state.selection import Side
from explorer.views.board_view import BoardView
from explorer.views.explaining.method import METHOD
from explorer.views.view import side_words
from explorer.widgets.combo_boxes import Choice, Picker
from explorer.widgets.progress_row import Ticket, Working
from trainer.charts import SAME
from trainer.charts.diagnosis import MOST_BATCH, Asked, diagnosis, lacking_independent
from trainer.charts.marks import Panel
from trainer.charts.settings import Setting
from trainer.config.ablation import PRESET
from trainer.messages import EmbedIndependent, Failure
from trainer.store import Workspace, of_split

SIZE: Final = Setting("size", "Pairs in the batch", "The batch to inspect.", "whole", 32, 4, MOST_BATCH, log=True)
NUMBER: Final = Setting("number", "Batch", "Drawn from a fixed seed.", "whole", 0, 0, 99)
KNOB_PX: Final = 230
PROBED: Final = (
    Choice(False, "each run's held-out pairs", "Drawn like the pairs that the run was trained on."),
    Choice(True, "independent Scenes", "The same pairs for every run, no attribute tells another."),
)
BATCHES: Final = (
    Choice(False, "training pairs", "The run's first training batch, embedded with each snapshot."),
    Choice(True, "held-out pairs", "As large batches, drawn from the snapshot itself."),
)
LEVELS: Final = (
    Choice((0.0,), "independent attributes", "Co-occurrence 0: four runs."),
    Choice((0.8,), "co-occurrence 0.8", "Shapes prefer colors and grounds: four runs."),
    Choice((0.0, 0.8), "both: 0 and 0.8", "Eight runs, one after the other."),
)


@dataclass(frozen=True)
class Reading:
    """A board, and of the attributes which runs cannot be probed on independent Scenes yet, at which checkpoint."""

    board: Panel
    lacking: Sequence[tuple[int, int | None]] = ()


class ExplainingView(BoardView):
    """What runs A and B encode, in how many directions, and what their objectives still push."""

    title = "Explaining away"
    question = "What does each run encode, and how hard does it still learn?"
    icon = "layers"
    method = METHOD
    prefix = "explaining"
    panels: ClassVar[dict[str, tuple[str, str]]] = {
        "spectrum": ("Spectrum", "In how many directions do the embeddings vary?"),
        "saturation": ("Saturation", "How much of the gradient is left once matches are recognized?"),
        "batch": ("Batch", "Which negatives push an anchor, and which of them may be right?"),
        "attributes": ("Attributes", "Which attributes can be read off each run, and which are explained away?"),
    }

    def build(self) -> Iterator[None]:
        context = self.context
        self._anchor = 0
        self.size, self.number = Slide(SIZE, "lab-explaining"), Slide(NUMBER, "lab-explaining")
        self.levels = Picker(name="explaining-levels", words="Co-occurrence of the ablation", width=190)
        self.levels.setMaximumWidth(240)
        self.start = QPushButton("Run the four-way ablation", objectName="explaining-ablation")
        self.state = QLabel(objectName="explaining-state")
        self.probed = Picker(name="explaining-probed", words="Pairs that are probed", width=190)
        self.probed.setMaximumWidth(240)
        self.embed = QPushButton("Embed independent Scenes", objectName="explaining-embed")
        self.working = Working("explaining-working")
        self.batches = Picker(name="explaining-batches", words="Pairs that make the batches", width=150)
        self.batches.setMaximumWidth(190)
        self._lacking: tuple[tuple[int, int | None], ...] = ()
        self._embedding: int | None = None
        self._tools: dict[str, Sequence[QWidget]] = {}
        self._batch_tools: tuple[QWidget, ...] = ()
        yield from super().build()
        self.probed.show_choices(PROBED, False)
        self.batches.show_choices(BATCHES, False)
        self.levels.show_choices(LEVELS, (0.0,))
        theme.set_role(self.start, "primary")
        theme.keep_icon(self.start, "play", role="accent_text")
        theme.set_role(self.state, "secondary")
        self.start.setToolTip("Trains InfoNCE, InfoNCE + Hopfield, InfoLOOB and CLOOB alike, one after the other")
        yield
        self._lay_out_tools()
        for slide in (self.size, self.number):
            slide.changed.connect(self._on_batch)
        self.start.clicked.connect(self.start_ablation)
        self.probed.picked.connect(lambda _key: self.refresh_if_seen())
        self.batches.picked.connect(lambda _key: self._on_batch())
        self.embed.clicked.connect(self.embed_independent)
        self.working.cancelled.connect(self._cancel_embedding)
        self.panes.row_chosen.connect(lambda _key, row: self.choose_anchor(row))
        context.jobs.run_ended.connect(self._on_ended)
        context.jobs.runs_changed.connect(lambda _rows: self._tell_ablation())
        self._tell_ablation()

    @property
    def asked(self) -> Asked:
        """What the controls say now."""
        selection = self.context.selection
        asked = of_split(selection.dataset)
        asked |= {"size": int(self.size.value), "number": int(self.number.value), "anchor": self._anchor}
        independent = bool(self.probed.key) and self.panel == "attributes"
        asked |= {"independent": independent, "heldout": bool(self.batches.key)}
        steps = [side.step for side in selection.sides] or [selection.step]
        return Asked(**asked, step=steps[0], step_b=steps[1] if len(steps) > 1 else SAME)

    def question_now(self) -> object:
        done = tuple(row.id for row in self._ablation() if not row.active) if self.panel == "attributes" else ()
        return self.context.selection.sides, self.panel, self.asked, done

    def ask(self, work: Ticket) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return read, (self.context.workspace, self.context.selection.sides, self.asked, self.panel, work)

    def take(self, answer: Reading) -> None:
        super().take(answer.board)
        self.panes.show()
        if answer.board.facts is not None:
            self._anchor = answer.board.facts.anchor
        self._show_lacking(answer.lacking)

    def refuse(self, words: str) -> None:
        super().refuse(words)
        if self.asked.independent:
            # What is missing can be made here: the way there stays in sight.
            self.show_content()
            self.panes.hide()
            self.warnings.setText(words)
            self.warnings.show()
            self._find_lacking()

    def command(self) -> list[str] | None:
        board, asked = self.board, self.asked
        runs = self.context.selection.runs
        if board is None or self.is_empty or self.panes.isHidden() or not (runs or self._ablation()):
            return None
        words = ["export", "diagnosis", *side_words(self.context.selection)]
        if not runs:
            words += map(str, tuple(row.id for row in self._ablation())[-1:])
        if asked.dataset:
            words += ["--dataset", asked.dataset, "--split", str(asked.split)]
        words += ["--panel", self.panel]
        if self.panel == "attributes" and asked.independent:
            words += ["--independent"]
        if self.panel in ("batch", "saturation") and asked.heldout:
            words += ["--held-out"]
        if self.panel == "batch":
            words += ["--size", str(asked.size), "--number", str(asked.number), "--anchor", str(asked.anchor)]
        return words

    def actions_for_palette(self) -> list[QAction]:
        action = QAction("Run the four-way ablation", self, objectName="explaining-action-ablation")
        action.triggered.connect(self.start_ablation)
        return [*super().actions_for_palette(), action]

    def works_without_runs(self) -> bool:
        return self.panel == "attributes" and bool(self._ablation())

    def no_run_words(self) -> str:
        return (
            "Choose run A in the bar above, and run B to compare. Their spectra, batches and probes then appear here."
        )

    def choose_anchor(self, place: int) -> None:
        """Shows the negatives of this anchor of the batch."""
        self._anchor = place
        self.refresh_if_seen()

    def start_ablation(self) -> None:
        """Queues four runs (eight with both co-occurrences); they fill the Attributes panel as they finish."""
        self.tabs.setCurrentIndex(list(self.panels).index("attributes"))
        self.start.setEnabled(False)
        self.state.setText("Queueing …")
        self.context.jobs.start_ablation(self.levels.key or (0.0,))

    def embed_independent(self) -> None:
        """Embeds independent Scenes with every run that lacks them, in a process of its own."""
        if self._embedding is not None or not self._lacking:
            return
        ticket = self.working.start()
        self.embed.setEnabled(False)
        runs, steps = zip(*self._lacking, strict=True)
        question = EmbedIndependent(runs=runs, steps=steps)
        self._embedding = self.context.asker.ask(
            question,
            done=lambda _answer: self._embedded(),
            failed=self._not_embedded,
            progress=lambda share, note: None if ticket.cancelled else ticket(share, note),
            owner=self,
        )

    def _embedded(self) -> None:
        self._embedding = None
        self.working.end()
        with QSignalBlocker(self.probed):
            self.probed.show_choices(PROBED, True)
        self.ask_again()

    def _not_embedded(self, failure: Failure) -> None:
        self._embedding = None
        self.working.end()
        self._find_lacking()
        if failure.kind != "cancelled":
            self.failed.emit(failure.message, failure.next)

    def _cancel_embedding(self) -> None:
        if self._embedding is not None:
            self.context.asker.cancel(self._embedding)

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
        self.embed.setEnabled(bool(lacking) and self._embedding is None)
        several = len({run for run, _ in lacking})
        runs = "1 run" if several == 1 else f"{several} runs"
        self.embed.setToolTip(
            f"Draws 1,024 Scenes without co-occurrence and embeds them with the {runs} that lack them: under a minute"
            if lacking
            else "Every run shown that was trained on Scenes has them, or no checkpoint to embed them with"
        )

    def show_tools(self) -> None:
        for panel, widgets in self._tools.items():
            for widget in widgets:
                widget.setVisible(panel == self.panel and (widget is not self.working or self.working.busy))
        for widget in self._batch_tools:
            widget.setVisible(self.panel in ("batch", "saturation"))

    def _lay_out_tools(self) -> None:
        of = QLabel("Batches of")
        theme.set_role(of, "secondary")
        of.setBuddy(self.batches)
        self._batch_tools = (of, self.batches)
        shared = QHBoxLayout()
        shared.setSpacing(theme.BETWEEN)
        for widget in self._batch_tools:
            shared.addWidget(widget)
        shared.addStretch()
        self.tools.addLayout(shared)
        on = QLabel("Probed on")
        theme.set_role(on, "secondary")
        on.setBuddy(self.probed)
        lines = {
            "batch": ((self.size, self.number),),
            "attributes": ((self.start, self.levels, self.state), (on, self.probed, self.embed, self.working)),
        }
        self._tools = {panel: [widget for line in rows for widget in line] for panel, rows in lines.items()}
        self.tools.setSpacing(theme.INSIDE)
        for widget in (self.size, self.number):
            widget.setFixedWidth(KNOB_PX)
        for rows in lines.values():
            for widgets in rows:
                line = QHBoxLayout()
                line.setSpacing(theme.BETWEEN)
                for widget in widgets:
                    line.addWidget(widget)
                line.addStretch()
                self.tools.addLayout(line)
        self.show_tools()

    def _ablation(self) -> list[Any]:
        return [row for row in self.context.jobs.runs if row.preset == PRESET]

    def _tell_ablation(self) -> None:
        rows = self._ablation()
        waiting = [row for row in rows if row.active]
        self.start.setEnabled(not waiting)
        if waiting:
            now = next((row for row in waiting if row.status != "queued"), waiting[0])
            steps = f", step {now.step:,} of {now.total_steps:,}" if now.total_steps else ""
            self.state.setText(f"{now.name}: {now.status}{steps} · {len(waiting)} of the ablation to go")
        elif rows:
            finished = sum(row.status == "finished" for row in rows)
            self.state.setText(f"{finished} runs of the ablation are finished")
        else:
            self.state.setText("Four trainings of about two minutes each on two cores")

    def _on_batch(self) -> None:
        self._anchor = min(self._anchor, int(self.size.value) - 1)
        self.refresh_if_seen()

    def _on_ended(self, row: Any) -> None:
        if getattr(row, "preset", "") == PRESET and self.panel == "attributes":
            self.refresh_if_seen()


def read(workspace: Workspace, sides: Sequence[Side], asked: Asked, panel: str, work: Ticket) -> Reading:
    """The board, and what could be probed further; pure, for a thread."""
    board = diagnosis(workspace, [side.run for side in sides], asked, panel, progress=work)
    runs = [(side.run, side.step) for side in sides]
    return Reading(board, lacking_independent(workspace, runs) if panel == "attributes" else ())
