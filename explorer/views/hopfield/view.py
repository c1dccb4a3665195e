"""The Hopfield lab's view: what asks, what is stored, and beta under the hand."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar, Final

import numpy as np
from PySide6.QtWidgets import QLabel

from explorer import theme
from explorer.render_qt.controls import Slide
from explorer.state.selection import Side
from explorer.views.board_view import BoardView
from explorer.views.hopfield.load import Reading, read
from explorer.views.hopfield.method import METHOD
from explorer.views.hopfield.query import QueryBar
from explorer.views.view import side_words
from explorer.widgets.combo_boxes import Choice, Picker
from explorer.widgets.flow_row import WrappingRow
from explorer.widgets.progress_row import Ticket
from trainer.charts import SAME
from trainer.charts.hopfield import Asked
from trainer.charts.settings import Setting
from trainer.messages import EmbedImages, EmbedTexts, Failure
from trainer.store import of_split
from trainer.untrusted import confined
from trainer.untrusted.bounded.arrays import load_npy

BETA: Final = Setting("beta", "Beta β", "Inverse temperature of the retrieval.", "number", 8.0, 0.1, 100.0, log=True)
BETA_PX: Final = 360
PICKER_PX: Final = 180
MOST_CLASSES: Final = 200
ALL, SELECTED = "all", "selected"
PLANES: Final = (
    Choice("stored", "the stored patterns", "Two principal axes of what is stored."),
    Choice("map", "the Map's PCA", "Two principal axes of all images and texts together, as on the Map."),
)


class HopfieldView(BoardView):
    """Retrievals among the embeddings of runs A and B."""

    title = "Hopfield"
    question = "What does a retrieval with this beta average?"
    icon = "orbit"
    method = METHOD
    prefix = "hopfield"
    panels: ClassVar[dict[str, tuple[str, str]]] = {
        "retrieval": ("Retrieval", "Which stored patterns does this query average, and where do its updates end?"),
        "pair": ("Pair", "What do the four retrievals of a pair average, and what becomes of its cosine?"),
        "phase": ("Phase", "How many patterns does each query average at each beta?"),
        "batch": ("Batch size", "How much of itself does a pattern retrieve, the more are stored?"),
        "spectrum": ("Spectrum", "What does the retrieval do to the covariance?"),
    }

    def build(self) -> Iterator[None]:
        context = self.context
        self._query, self._side, self._external = 0, "image", ""
        self._external_image = False
        self._vectors: dict[int, np.ndarray] = {}
        self._open: list[int] = []
        self._reading: Reading | None = None
        self.beta = Slide(BETA, "lab-hopfield")
        self.beta.setFixedWidth(BETA_PX)
        self.stored = Picker(name="hopfield-stored", words="Modality that is stored", width=92)
        self.which = Picker(name="hopfield-which", words="Which pairs are stored", width=150)
        self.plane = Picker(name="hopfield-plane", words="Where the path is drawn", width=150)
        self.plane_words = QLabel("Path on")
        for picker in (self.stored, self.which, self.plane):
            picker.setMaximumWidth(PICKER_PX)
        yield from super().build()
        self.query = QueryBar(self.pictures)
        self.beta.show_value(min(max(float(context.settings.value("hopfield/beta", 8.0)), 0.1), 100.0))
        self.stored.show_choices((Choice("images", "Images"), Choice("texts", "Texts")), "images")
        self.plane.show_choices(PLANES, context.settings.value("hopfield/plane", "stored"))
        yield
        self._show_which([])
        self._lay_out_tools()
        yield
        self.beta.changed.connect(self._on_beta)
        self.stored.picked.connect(lambda _key: self.refresh_if_seen())
        self.which.picked.connect(lambda _key: self.refresh_if_seen())
        self.plane.picked.connect(self._on_plane)
        self.query.pair_chosen.connect(self.ask_with_pair)
        self.query.side_chosen.connect(self._on_side)
        self.query.image_chosen.connect(self.ask_with_image)
        self.query.words_chosen.connect(self.ask_with_words)
        self.panes.pair_chosen.connect(self.ask_with_pair)
        self.panes.row_chosen.connect(lambda _key, row: self._on_row(row))
        self.panes.plot_dragged.connect(self._on_drag)
        context.selection.pairs_changed.connect(self._on_pairs)
        for signal in (context.selection.runs_changed, context.selection.step_changed):
            signal.connect(self._embed_again)

    # -- what is asked -----------------------------------------------------------------------------------------

    @property
    def asked(self) -> Asked:
        """What the controls say now."""
        selection = self.context.selection
        which = self.which.key or ALL
        return Asked(
            step=selection.step,
            step_b=selection.step_of(1) if selection.step_of(1) != selection.step else SAME,
            **of_split(selection.dataset),
            stored=self.stored.key or "images",
            only=which.removeprefix("class ") if which.startswith("class ") else "",
            pairs=tuple(selection.pairs.tolist()) if which == SELECTED else (),
            query=self._query,
            asks=self._side,
            beta=float(self.beta.value),
            plane=self.plane.key or "stored",
            words=self._words() if self.panel == "retrieval" else "",
        )

    def _words(self) -> str:
        return Path(self._external).name if self._external_image else f"“{self._external}”" if self._external else ""

    def question_now(self) -> object:
        vectors = tuple(sorted((run, vector.tobytes()) for run, vector in self._vectors.items()))
        return self.context.selection.sides, self.panel, self.asked, vectors

    def ask(self, work: Ticket) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        selection = self.context.selection
        kept = self._reading
        return read, (
            self.context.workspace,
            selection.sides,
            self.asked,
            self.panel,
            dict(self._vectors),
            kept,
            work,
        )

    def take(self, answer: Reading) -> None:
        self._reading = answer
        super().take(answer.board)
        if answer.problems:
            self.warnings.setText("\n".join(answer.problems))
            self.warnings.show()
        items = answer.patterns[0].items
        self.query.show_captions(items.caption)
        self._show_which(items.label)
        self._show_query()

    def command(self) -> list[str] | None:
        if self._reading is None or self.is_empty:
            return None
        asked, patterns = self._reading.asked, self._reading.patterns
        words = ["export", "hopfield", *side_words(self.context.selection, (run.index for run in patterns))]
        words += ["--dataset", patterns[0].dataset, "--split", patterns[0].split, "--panel", self._reading.panel]
        words += ["--stored", asked.stored, *(["--only", asked.only] if asked.only else [])]
        words += ["--pairs", *map(str, asked.pairs)] if asked.pairs else []
        if self._external and self._reading.panel == "retrieval":
            words += ["--query-image" if self._external_image else "--query-text", self._external]
        else:
            words += ["--query", str(asked.query), "--asks", asked.asks]
        words += ["--plane", "map"] if asked.plane == "map" and self._reading.panel == "retrieval" else []
        return [*words, "--beta", f"{asked.beta:g}"]

    def no_run_words(self) -> str:
        return "Choose run A, and run B beside it, in the bar above. What their retrievals average then appears here."

    # -- what asks ---------------------------------------------------------------------------------------------

    def ask_with_pair(self, row: int) -> None:
        """Lets a pair of the snapshot ask."""
        self._forget_external()
        self._query = row
        self._show_query()
        self.refresh_if_seen()

    def _forget_external(self) -> None:
        self._external, self._external_image, self._vectors = "", False, {}

    def ask_with_image(self, path: str) -> None:
        """Lets a picture file ask: both runs embed it first."""
        self._external, self._external_image = path, True
        self._embed()

    def ask_with_words(self, words: str) -> None:
        """Lets a sentence ask: both runs embed it first."""
        self._external, self._external_image = words, False
        self._embed()

    def _embed_again(self) -> None:
        if self._external:
            self._embed()

    def _embed(self) -> None:
        self._vectors = {}
        self.tabs.setCurrentIndex(0)
        self._show_query()
        self.status.setText("Embedding the query …")
        for number in self._open:
            self.context.asker.cancel(number)
        self._open = []
        for side in self.context.selection.sides:
            image = self._external_image
            question = (
                EmbedImages(run=side.run, images=(self._external,), step=side.step)
                if image
                else EmbedTexts(run=side.run, texts=(self._external,), step=side.step)
            )
            self._open.append(
                self.context.asker.ask(
                    question,
                    done=lambda answer, side=side, words=self._external: self._embedded(side, words, answer),
                    failed=lambda failure, words=self._external: self._not_embedded(words, failure),
                    owner=self,
                )
            )

    def _embedded(self, side: Side, words: str, answer: dict[str, Any]) -> None:
        if words != self._external or side not in self.context.selection.sides:
            return
        if unreadable := answer.get("unreadable"):
            self._not_embedded(words, Failure("unreadable", next(iter(unreadable.values()))))
            return
        file = Path(answer["array"])
        self._vectors[side.place] = load_npy(file)[0].astype(np.float64)
        confined.remove(file.parent, file.name)
        if {side.place for side in self.context.selection.sides} <= set(self._vectors):
            self.status.setText("")
            self.refresh_if_seen()

    def _not_embedded(self, words: str, failure: Failure) -> None:
        if words == self._external and failure.kind != "cancelled":
            self._forget_external()
            self._show_query()
            self.failed.emit(failure.message, failure.next)
            self.status.setText("")
            self.refresh_if_seen()

    def _show_query(self) -> None:
        if self._external:
            path = self._external if self._external_image else ""
            caption = Path(path).name if path else f"“{self._external}”"
            about = "your picture asks" if path else "your words ask"
            if self.panel in ("pair", "phase", "batch", "spectrum"):
                about += "; the other panels take pairs"
            self.query.show_query(path, caption, about, "image" if path else "text", pair=False)
        elif self._reading is not None and self._query < len(self._reading.patterns[0].items):
            items = self._reading.patterns[0].items
            about = f"the {self._side} of pair {self._query} asks"
            self.query.show_query(items.path[self._query], items.caption[self._query], about, self._side, pair=True)

    # -- the person moves something ----------------------------------------------------------------------------

    def _on_beta(self) -> None:
        self.context.settings.set("hopfield/beta", self.beta.value)
        self.refresh_if_seen()

    def _on_plane(self, plane: str) -> None:
        self.context.settings.set("hopfield/plane", plane)
        self.refresh_if_seen()

    def show_tools(self) -> None:
        for widget in (self.plane_words, self.plane):
            widget.setVisible(self.panel == "retrieval")

    def _on_side(self, side: str) -> None:
        self._side = side
        self._show_query()
        self.refresh_if_seen()

    def _on_row(self, row: int) -> None:
        self.ask_with_pair(row)
        self.tabs.setCurrentIndex(0)

    def _on_drag(self, key: str, x: float, _y: float) -> None:
        if key == "medians":
            self.beta.show_value(float(f"{min(max(x, BETA.low), BETA.high):.3g}"))
            self._on_beta()

    def _on_pairs(self) -> None:
        pairs = self.context.selection.pairs
        self._show_which(self._reading.patterns[0].items.label if self._reading else [])
        if len(pairs):
            self._forget_external()
            self._query = int(pairs[0])
        self._show_query()
        self.refresh_if_seen()

    def _show_which(self, labels: list[str]) -> None:
        n = len(self.context.selection.pairs)
        choices = [Choice(ALL, "All pairs")]
        if n:
            choices.append(Choice(SELECTED, f"{n:,} selected"))
        classes = sorted(set(labels) - {""})[:MOST_CLASSES]
        choices += [Choice(f"class {name}", f"Class {name}") for name in classes]
        wanted = self.which.key or ALL
        there = {choice.key for choice in choices}
        # Before the first answer the classes are not known: what was chosen stays chosen.
        self.which.show_choices(choices, wanted if wanted in there else ALL)

    def _lay_out_tools(self) -> None:
        words = QLabel("Stored")
        theme.set_role(words, "secondary")
        words.setBuddy(self.stored)
        stores = WrappingRow()
        for widget in (words, self.stored, self.which):
            stores.add(widget, gap=theme.INSIDE, stretch=widget is not words)
        stores.add(self.beta, gap=theme.AROUND + theme.INSIDE)
        theme.set_role(self.plane_words, "secondary")
        self.plane_words.setBuddy(self.plane)
        stores.add(self.plane_words, gap=theme.AROUND + theme.INSIDE)
        stores.add(self.plane, gap=theme.INSIDE, stretch=True)
        self.tools.setSpacing(theme.INSIDE)
        self.tools.addWidget(self.query)
        self.tools.addWidget(stores)
        self.show_tools()
