"""A caption with its minimal swaps: by how much each run prefers it for the picture."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from PySide6.QtCore import QObject
from PySide6.QtWidgets import QWidget

from explorer.model_client.client import ModelClient
from explorer.model_client.single_request import CachedRequest
from explorer.models.thumbnails import Thumbnails
from explorer.render_qt.panel import PanelWidget
from explorer.state.selection import Side
from explorer.views.view import reason_of
from explorer.widgets import layouts
from trainer.analysis.caption_swaps import KINDS, Swap, swaps
from trainer.analysis.number_text import signed
from trainer.charts.marks import RUN_TONES, NumberRow, NumberTable, Panel, heading_row
from trainer.errors import reason_words
from trainer.messages import ClassifyAnswer, CompareSwaps, Failure

NO_SWAP: Final = "No word to exchange: this caption has no two colors, and no relation such as left of or in front of."
LEAST_PX: Final = 150


@dataclass(frozen=True)
class SwapQuestion:
    """How near a picture is to a caption and to its swaps, for each side of the selection."""

    sides: tuple[Side, ...]
    image: str
    caption: str

    @property
    def runs(self) -> tuple[int, ...]:
        return tuple(side.run for side in self.sides)

    @property
    def captions(self) -> tuple[str, ...]:
        """The caption and its swaps, each once."""
        return tuple(dict.fromkeys((self.caption, *(swap.caption for swap in swaps(self.caption)))))


class SwapQuery(CachedRequest):
    """Asks one side after the other, each at its own step; keeps the cosines of all."""

    def __init__(self, client: ModelClient, parent: QObject) -> None:
        super().__init__(client, parent)
        self._cosines: list[list[float]] = []

    def stages_of(self, question: SwapQuestion) -> list[CompareSwaps]:
        self._cosines = []
        same: dict[str, Any] = {"images": (question.image,), "labels": question.captions, "templates": ("{}",)}
        return [CompareSwaps(runs=(side.run,), step=side.step, **same) for side in question.sides]

    def take(self, message: CompareSwaps, answer: ClassifyAnswer) -> None:
        run = answer.runs[message.runs[0]]
        self._cosines.append(run.cosines[0] if run.cosines else [])
        if len(self._cosines) == len(self.question.sides):
            super().take(self.question, answer)

    def read(self, _message: SwapQuestion, _answer: ClassifyAnswer) -> tuple[tuple[float, ...], ...]:
        return tuple(map(tuple, self._cosines))


class SwapMargins(QWidget):
    """The table of the swaps of one caption; it asks when told to."""

    def __init__(
        self, client: ModelClient, pictures: Thumbnails, named: Callable[[int | None], tuple[str, str]]
    ) -> None:
        super().__init__()
        self._named = named
        self.asking = SwapQuery(client, self)
        self.note = layouts.text(role="small", name="inspect-swaps-note", wrap=True)
        self.panel = PanelWidget(pictures, "inspect-swaps")
        self.panel.setMinimumHeight(LEAST_PX)
        layouts.column(self.note, self.panel, of=self)
        self.asking.changed.connect(lambda: self.show_question(self._question))
        self.asking.failed.connect(self._show_failure)
        self._question: SwapQuestion | None = None
        self._failed: tuple[SwapQuestion | None, str] = None, ""
        self.show_question(None)

    def ask(self, question: SwapQuestion | None) -> None:
        """Request the margins, unless they are known or nothing can be exchanged."""
        self.show_question(question)
        if question is not None and swaps(question.caption) and not self.asking.is_kept(question):
            self.asking.ask(question)

    def show_question(self, question: SwapQuestion | None) -> None:
        """Show the margins of this question as far as they are known."""
        self._question = question
        cosines = None if question is None else self.asking.known(question)
        self.panel.setVisible(cosines is not None)
        if question is not None and cosines is not None:
            self.panel.show_panel(margin_panel(question, cosines, [self._named(run)[0] for run in question.runs]))
        note = "" if question is None or swaps(question.caption) else NO_SWAP
        if question is not None and question == self._failed[0]:
            note = self._failed[1]
        self.note.setText(note)
        self.note.setVisible(bool(note))

    def _show_failure(self, failure: Failure) -> None:
        self._failed = self.asking.question, f"Could not compare the swaps: {reason_words(reason_of(failure))}"
        self.show_question(self._question)


def margin_panel(question: SwapQuestion, cosines: Sequence[Sequence[float]], names: Sequence[str]) -> Panel:
    """Return the cosine of the caption for each run, and by how much it exceeds that of each swap."""
    tones = tuple(RUN_TONES[side.place] for side in question.sides)
    column_of = {caption: index for index, caption in enumerate(question.captions)}
    caption_cosines = tuple(f"{row[0]:.3f}" if row else "–" for row in cosines)
    hint = "Cosine of the picture and this caption."
    rows = [
        heading_row("Cosine of picture and caption"),
        NumberRow(f"“{question.caption}”", hint, caption_cosines),
        heading_row("Its lead over the caption with one change"),
    ]
    for swap in swaps(question.caption):
        other = column_of[swap.caption]
        rows.append(_line(swap, [row[0] - row[other] if row else None for row in cosines]))
    table = NumberTable("swaps", "Does the run bind the words?", tuple(names), tuple(rows), tones=tones)
    return Panel(title="Minimal swaps", rows=((table,),))


def _line(swap: Swap, margins: Sequence[float | None]) -> NumberRow:
    cells = tuple("–" if margin is None else signed(margin, 3) for margin in margins)
    right = frozenset(index for index, margin in enumerate(margins) if margin is not None and margin > 0)
    hint = "Positive: the run prefers the caption. Negative: it prefers the swap."
    return NumberRow(f"{KINDS[swap.kind]}: “{swap.caption}”", hint, cells, best=right)
