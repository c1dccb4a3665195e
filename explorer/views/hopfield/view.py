"""The Hopfield view: the query, the stored patterns, and a beta slider."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Final

from PySide6.QtCore import QSignalBlocker
from PySide6.QtWidgets import QLabel

from explorer import theme
from explorer.state.selection import Side
from explorer.views.chart_view import ChartView
from explorer.views.hopfield.query import QueryBar
from explorer.widgets import layouts
from explorer.widgets.finder import Choice
from explorer.widgets.number_box import NumberBox
from explorer.widgets.searchable_combo_box import SearchableComboBox
from trainer.charts.hopfield_patterns import Patterns, StoredSettings
from trainer.charts.outside_query import OutsideQuery
from trainer.charts.spec import Request
from trainer.messages import EmbedAnswer, EmbedImages, EmbedTexts, Failure
from trainer.untrusted import confined
from trainer.untrusted.bounded.arrays import load_npy

PICKER_PX: Final = 180
MOST_CLASSES: Final = 200
ALL, SELECTED = "all", "selected"
BETA: Final = (0.1, 100.0)
BETA_PX: Final = 76
RETRIEVAL: Final = "hopfield-retrieval"


class HopfieldView(ChartView):
    """Hopfield retrieval among the embeddings of runs."""

    title = "Hopfield"
    question = "Patterns that a Hopfield retrieval averages at this beta."
    icon = "orbit"
    compares = "pictures"
    name = "hopfield"
    shared: ClassVar[tuple[str, ...]] = ("beta", "stored")

    def build(self) -> Iterator[None]:
        selection = self.context.selection
        self._query = int(selection.pairs[0]) if len(selection.pairs) else 0
        self._asks, self._external = "image", ""
        self._external_image = False
        self._trouble: tuple[str, Callable[[], object]] | None = None
        self._vectors: dict[int, tuple[float, ...]] = {}
        self._open: list[int] = []
        self.which = SearchableComboBox(name="hopfield-which", label="Which pairs are stored", width=150)
        self.which.setMaximumWidth(PICKER_PX)
        self.which_label = QLabel("Stored pairs")
        self._show_which([])
        self.beta = NumberBox(integer=False, low=BETA[0], high=BETA[1])
        self.beta.setObjectName("hopfield-beta-now")
        self.beta.setAccessibleName("Beta of the retrieval")
        self.beta.setFixedWidth(BETA_PX)
        self.beta_label = layouts.text("β", "secondary", buddy=self.beta)
        yield from super().build()
        for part in (self.beta_label, self.beta):
            self.main.addWidget(part)
        self.beta.edited.connect(self._on_beta)
        self.which.picked.connect(lambda _key: self.refresh_if_seen())
        self.query.pair_chosen.connect(self.ask_with_pair)
        self.query.side_chosen.connect(self._on_side)
        self.query.image_chosen.connect(self.ask_with_image)
        self.query.words_chosen.connect(self.ask_with_words)
        self.pane.answered.connect(self._on_answer)
        self.pane.panel.pair_chosen.connect(self.ask_with_pair)
        self.pane.panel.row_chosen.connect(lambda _key, row: self._on_row(row))
        self.pane.panel.plot_dragged.connect(self._on_drag)
        selection.pairs_changed.connect(self._on_pairs)
        selection.dataset_changed.connect(self._on_data)
        for signal in (selection.runs_changed, selection.step_changed):
            signal.connect(self._embed_again)

    @property
    def drop_words(self) -> str:
        return "Drop to use as the query" if self.context.selection.runs else ""

    def take(self, paths: Iterable[Path | str]) -> None:
        """Use the first of these images (dropped or pasted) as the query."""
        first = next((str(path) for path in paths), "")
        if first:
            self.ask_with_image(first)

    def show_content(self) -> None:
        super().show_content()
        if self._trouble:
            text, retry = self._trouble
            self.area.partial(text, ("Retry", retry))

    # -- what is asked -----------------------------------------------------------------------------------------

    @property
    def patterns(self) -> tuple[Patterns, ...]:
        """What the runs that are shown have stored; none before the first answer, or where a chart stores no pairs."""
        stored = getattr(self.pane.answer.data, "found", ()) if self.pane.answer else ()
        return tuple(entry.run for entry in stored)

    def settings_now(self) -> Any:
        settings = super().settings_now()
        which = self.which.key or ALL
        values: dict[str, Any] = {"query": self._query, "asks": self._asks}
        if isinstance(settings, StoredSettings):
            values["only"] = which.removeprefix("class ") if which.startswith("class ") else ""
            values["pairs"] = tuple(self.context.selection.pairs.tolist()) if which == SELECTED else ()
        if isinstance(settings, OutsideQuery) and self._embedded_by_all():
            values = {name: value for name, value in values.items() if name not in ("query", "asks")}
            values["query_image" if self._external_image else "query_text"] = self._external
        return replace(settings, **{name: value for name, value in values.items() if hasattr(settings, name)})

    def request_now(self) -> Request:
        request = super().request_now()
        if self.chart.name != RETRIEVAL or not self._embedded_by_all():
            return request
        return replace(request, vectors=tuple((self._vectors[side.place],) for side in self.context.selection.sides))

    def _embedded_by_all(self) -> bool:
        """Return whether the query is from outside the snapshot and every run has embedded it."""
        return bool(self._external) and {side.place for side in self.context.selection.sides} <= {*self._vectors}

    def _on_answer(self) -> None:
        if self.patterns:
            items = self.patterns[0].items
            self.query.show_captions(items.caption)
            self._show_which(items.label)
        self._show_query()

    # -- the query ---------------------------------------------------------------------------------------------

    def ask_with_pair(self, row: int) -> None:
        """Use a pair of the snapshot as the query."""
        self._forget_external()
        self._query = row
        self._show_query()
        self.refresh_if_seen()

    def ask_with_image(self, path: str) -> None:
        """Use an image file as the query; every run embeds it first."""
        self._external, self._external_image = path, True
        self._embed()

    def ask_with_words(self, text: str) -> None:
        """Use a text as the query; every run embeds it first."""
        self._external, self._external_image = text, False
        self._embed()

    def _forget_external(self) -> None:
        self._external, self._external_image, self._vectors = "", False, {}
        self._trouble = None

    def _embed_again(self) -> None:
        if self._external:
            self._embed()

    def _embed(self) -> None:
        self._vectors, self._trouble = {}, None
        self.open_chart(RETRIEVAL)
        self._show_query()
        self.show_message("Embedding the query …")
        for number in self._open:
            self.context.client.cancel(number)
        self._open = []
        for side in self.context.selection.sides:
            question = (
                EmbedImages(run=side.run, images=(self._external,), step=side.step)
                if self._external_image
                else EmbedTexts(run=side.run, texts=(self._external,), step=side.step)
            )
            self._open.append(
                self.context.client.ask(
                    question,
                    done=lambda answer, side=side, text=self._external: self._embedded(side, text, answer),
                    failed=lambda failure, text=self._external: self._not_embedded(text, failure),
                    owner=self,
                )
            )

    def _embedded(self, side: Side, text: str, answer: EmbedAnswer) -> None:
        if text != self._external or side not in self.context.selection.sides:
            return
        if unreadable := answer.unreadable:
            self._not_embedded(text, Failure("unreadable", next(iter(unreadable.values()))))
            return
        file = Path(answer.array)
        self._vectors[side.place] = tuple(load_npy(file)[0].tolist())
        confined.remove(file.parent, file.name)
        if self._embedded_by_all():
            self.show_message("")
            self.refresh_if_seen()

    def _not_embedded(self, text: str, failure: Failure) -> None:
        if text == self._external and failure.kind != "cancelled":
            again = self.ask_with_image if self._external_image else self.ask_with_words
            self._forget_external()
            self._trouble = (
                f"Could not embed the query. {failure.words}",
                partial(again, text),
            )
            self._show_query()
            self.show_message("")
            self.refresh_if_seen()

    def _show_query(self) -> None:
        if self._external:
            path = self._external if self._external_image else ""
            caption = Path(path).name if path else f"“{self._external}”"
            about = "query: your image" if path else "query: your text"
            if self.chart.name != RETRIEVAL:
                about += "; the other charts use pairs"
            self.query.show_query(path, caption, about, "image" if path else "text", pair=False)
        elif self.patterns and self._query < len(items := self.patterns[0].items):
            about = f"query: the {self._asks} of pair {self._query}"
            self.query.show_query(items.path[self._query], items.caption[self._query], about, self._asks, pair=True)

    # -- the person moves something ----------------------------------------------------------------------------

    def show_tools(self) -> None:
        for widget in (self.which_label, self.which):
            widget.setVisible(issubclass(self.chart.settings, StoredSettings))
        beta = getattr(self.controls_of(self.chart).settings, "beta", None)
        for part in (self.beta_label, self.beta):
            part.setVisible(beta is not None)
        if beta is not None and beta != self.beta.value():
            with QSignalBlocker(self.beta):
                self.beta.set_value(beta)

    def _on_beta(self) -> None:
        beta = self.beta.value()
        if isinstance(beta, (int, float)) and BETA[0] <= beta <= BETA[1]:
            self.change(beta=float(beta))

    def _on_side(self, side: str) -> None:
        self._asks = side
        self._show_query()
        self.refresh_if_seen()

    def _on_row(self, row: int) -> None:
        self.ask_with_pair(row)
        self.open_chart(RETRIEVAL)

    def _on_drag(self, key: str, x: float, _y: float) -> None:
        if key == "medians":
            self.change(beta=float(f"{min(max(x, BETA[0]), BETA[1]):.3g}"))

    def _on_data(self) -> None:
        self._query = 0
        self._on_pairs()

    def _on_pairs(self) -> None:
        pairs = self.context.selection.pairs
        self._show_which(self.patterns[0].items.label if self.patterns else [])
        if len(pairs):
            self._forget_external()
            self._query = int(pairs[0])
        self._show_query()
        self.refresh_if_seen()

    def _show_which(self, labels: list[str]) -> None:
        n = self.context.selection.pair_count
        choices = [Choice(ALL, "All pairs")]
        if n:
            choices.append(Choice(SELECTED, f"{n:,} selected"))
        classes = sorted(set(labels) - {""})[:MOST_CLASSES]
        choices += [Choice(f"class {name}", f"Class {name}") for name in classes]
        key = self.which.key or ALL
        keys = {choice.key for choice in choices}
        # Before the first answer the classes are not known: what was chosen stays chosen.
        self.which.show_choices(choices, key if key in keys else ALL)

    def _lay_out(self) -> None:
        super()._lay_out()
        self.query = QueryBar(self.pictures)
        self.which_label.setBuddy(self.which)
        self.beside.addLayout(layouts.column(self.which_label, self.which, layouts.STRETCH, gap=theme.SPACE))
        self.above.addWidget(self.query)
