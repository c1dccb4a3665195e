"""The Search view: a query, the hits of both runs, and links to the maps."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final, Literal

import numpy as np
from msgspec import Struct
from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtGui import QAction, QFocusEvent, QKeySequence
from PySide6.QtWidgets import QButtonGroup, QCheckBox, QFrame, QLineEdit, QPushButton, QToolButton, QWidget

from explorer import theme
from explorer.models.thumbnails import Thumbnails
from explorer.views.chart_pane import ChartPane, request_of
from explorer.views.selected import PairTile, Tiles
from explorer.views.view import Context, View, reason_of
from explorer.widgets import layouts
from explorer.widgets.flow_row import FlowRow
from explorer.widgets.progress_row import Cancelled, ProgressRow, Ticket
from explorer.widgets.refusal import set_refusal
from explorer.widgets.run_badge import RunBadge
from explorer.widgets.state_area import StateArea
from trainer.charts.hubness import CHART
from trainer.charts.opened_snapshot import OpenedSnapshot, open_target
from trainer.charts.search import Hits, SearchSettings, Target, search
from trainer.charts.settings import options
from trainer.charts.snapshots import Embedder, embedder_of
from trainer.charts.spec import Request, request_words
from trainer.charts.spec import Target as RunAtStep
from trainer.errors import UserError
from trainer.messages import EmbedAnswer, EmbedImages, EmbedTexts, Failure
from trainer.store import Workspace, of_split
from trainer.untrusted.bounded.arrays import load_npy

TYPING_MS: Final = 350
FIELD_PX: Final = 160
K: Final = 60
ASK: Final = "Type a query, or drop or paste an image. The hits of both runs appear side by side."


class HitsPanel(QFrame):
    """Hits as images, best first; those that both runs find are framed, or the others where these are fewer."""

    def __init__(self, index: int, pictures: Thumbnails, parent: QWidget | None = None) -> None:
        super().__init__(parent, objectName=f"search-panel-{'ab'[index]}")
        self.index = index
        self.hits: Hits | None = None
        self.title, self.note = layouts.elided(role="strong"), layouts.elided(role="small")
        letter = "AB"[index]
        self.tiles = Tiles(pictures, name=f"search-hits-{letter.lower()}", label=f"Hits of {letter}", edge=96, lines=3)
        self.area = StateArea(self.tiles, width=320)
        layouts.column(layouts.row(RunBadge("AB"[index], index), (self.title, 1)), self.note, (self.area, 1), of=self)

    def show_hits(self, hits: Hits, shared: set[int]) -> None:
        """Show the hits, of which the other run finds `shared`, too."""
        self.hits = hits
        alone = len(hits.rows) - len(shared)
        frames_shared = len(shared) <= alone
        drawn = f"{hits.n:,} {'sampled ' * hits.sampled}{hits.target}s"
        parts = [f"Top {len(hits.rows)} of {drawn} by {'CSLS' if hits.csls else 'cosine'}"]
        framed = "; framed" if frames_shared else "; framed: only here" if alone else ""
        parts += [f"{len(shared) if alone else 'all'} shared with {'BA'[self.index]}{framed}"] if shared else []
        self.title.setText(f"{hits.name} · step {hits.step:,}")
        self.note.setText(" · ".join(parts))
        items, text = hits.items, hits.target == "text"
        self.tiles.show_tiles(
            [
                PairTile(
                    int(row),
                    "" if text else items.path[row],
                    items.caption[row] or items.path[row],
                    f"{rank}.  {cosine:.3f}".replace("-", "−"),
                    ("shared" if frames_shared else f"only {'AB'[self.index]}")
                    if (int(row) in shared) == frames_shared
                    else "",
                )
                for rank, (row, cosine) in enumerate(zip(hits.rows, hits.cosines, strict=True), start=1)
            ]
        )
        self.area.ready()

    def show_nothing(self, icon: str, title: str, text: str, *, name: str = "") -> None:
        """Show why there are no hits, and what to do."""
        self._forget(name)
        self.area.empty(icon, title, text)

    def refuse(self, what: str, why: Exception | str, retry: Callable[[], object] | None = None) -> None:
        """Show that the search failed: what, and why."""
        self._forget("")
        self.area.failed(what, why, retry=retry)

    def _forget(self, name: str) -> None:
        self.hits = None
        self.title.setText(name)
        self.note.setText("")
        self.tiles.show_tiles([])


class SearchRequest(Struct, frozen=True):
    """The snapshot to search, and the method."""

    run: int
    step: int | None
    dataset: str | None
    split: str | None
    target: Target
    csls: bool
    k: int


def opened_of(workspace: Workspace, where: SearchRequest) -> OpenedSnapshot:
    """Open the snapshot that is searched.

    Raises:
        ChartError: There is none such.
    """
    return open_target(workspace, RunAtStep(where.run, where.step), Request((), where.dataset, where.split))


def embedder(workspace: Workspace, where: SearchRequest) -> Embedder:
    """Return the checkpoint that embeds the query.

    Raises:
        ChartError: There is no such snapshot.
    """
    return embedder_of(workspace, opened_of(workspace, where).row)


def find(workspace: Workspace, where: SearchRequest, array: str, ticket: Ticket) -> Hits:
    """Return the hits of a query whose embedding is in the file `array`.

    Raises:
        Cancelled: The person ended it.
        ChartError: There is no such snapshot, or it lacks what is searched.
    """
    query, opened = load_npy(Path(array))[0], opened_of(workspace, where)
    return search(opened, query, target=where.target, k=where.k, csls=where.csls, progress=ticket)


class SearchQuery(Struct, frozen=True):
    """The query: a sentence, or an image file."""

    text: str = ""
    image: str = ""

    @property
    def words(self) -> str:
        """The query as a text."""
        return self.text or Path(self.image).name


class SearchView(View):
    """A search field above the hits of runs A and B."""

    title = "Search"
    question = "Which items are nearest to a text or an image in each run?"
    icon = "search"
    compares = "pictures"
    when_chosen = "Then search their embeddings by text or image."

    def build(self) -> Iterator[None]:
        context = self.context
        self._query = SearchQuery()
        self._open: dict[int, int] = {}
        self._arrays: dict[tuple[int, int | None, SearchQuery], str] = {}
        self._shown: tuple[object, ...] | None = None
        self.pictures = Thumbnails(context.background, self, edge=128)
        self.field = QLineEdit(
            objectName="search-field",
            placeholderText="Search by text, for example: a red star above a blue ring",
            accessibleName="Search query",
            clearButtonEnabled=True,
        )
        self.picture = Chip()
        self.targets = QButtonGroup(self)
        self.to_map = QPushButton("Show on the map", objectName="search-to-map")
        self.to_map.setToolTip("Select the hits of both runs and open the Map")
        self.hubs_button = QPushButton("Hubs", objectName="search-hubs-button", checkable=True)
        self.hubs_button.setToolTip("Show how often each image is a hit, and the switch that corrects for hubs")
        yield
        self.panels = (HitsPanel(0, self.pictures), HitsPanel(1, self.pictures))
        for panel, other in zip(self.panels, reversed(self.panels)):
            panel.tiles.beside = other.tiles
        self.hits = StateArea(layouts.panel(layouts.row(*((panel, 1) for panel in self.panels), gap=theme.BETWEEN)))
        yield
        self.hubs = Hubs(context, self.pictures)
        self.working = ProgressRow("search-working")
        self._waiting: set[int] = set()
        self.note = layouts.elided(role="small")
        self._typing = QTimer(self, singleShot=True, interval=TYPING_MS)
        yield
        self._lay_out()
        self._connect()
        yield
        self._focus = QAction("Search by text", self, objectName="search-focus", shortcut=QKeySequence.StandardKey.Find)
        self._focus.setShortcutContext(Qt.ShortcutContext.WidgetWithChildrenShortcut)
        self._focus.triggered.connect(lambda: (self.field.setFocus(), self.field.selectAll()))
        self.addAction(self._focus)
        self._show_hits = QAction("Show the hits on the map", self, objectName="search-action-map")
        self._show_hits.triggered.connect(self._go_to_map)

    # -- what the window asks ----------------------------------------------------------------------------------

    @property
    def drop_words(self) -> str:
        return "Drop to search by this image" if self.context.selection.runs else ""

    def take(self, paths: Iterable[Path | str]) -> None:
        """Search with the first of these images (dropped or pasted)."""
        first = next((str(path) for path in paths), "")
        if first:
            self.field.blockSignals(True)
            self.field.clear()
            self.field.blockSignals(False)
            self.ask(SearchQuery(image=first))

    def command(self) -> list[str] | None:
        hits = [panel.hits for panel in self.panels if panel.hits is not None]
        if not hits or not self._query.words:
            return None
        request = replace(request_of(self.context.selection), dataset=hits[0].dataset, split=hits[0].split)
        settings = SearchSettings(
            query_text=self._query.text,
            query_image=self._query.image,
            target=self.target,
            k=K,
            csls=self.hubs.csls.isChecked(),
        )
        return ["export", "search", *request_words(request), *options(settings)]

    def focusInEvent(self, event: QFocusEvent) -> None:
        """Give the keys to the field, also where a person opens the view by its key."""
        super().focusInEvent(event)
        self.field.setFocus(event.reason())

    def details(self) -> QWidget | None:
        return self.hubs if self.hubs_button.isChecked() and self._query.words and not self.is_empty else None

    def actions_for_palette(self) -> list[QAction]:
        return [self._focus, self._show_hits]

    def refresh(self) -> None:
        selection = self.context.selection
        if not selection.runs:
            self._shown = None
            self.hubs.pane.forget()
            self.show_no_run()
            self.details_changed.emit()
            return
        if self.lacks_model():
            return
        self.show_content()
        self.details_changed.emit()
        self.context.client.warm_up(selection.runs)
        if self.hubs_button.isChecked():
            self.hubs.pane.ask(CHART, request_of(selection), CHART.settings())
        now, steps = selection.now, (selection.step_of(0), selection.step_of(1))
        state = (self._query, now.run_a, now.run_b, steps, selection.dataset, self.target, self.hubs.csls.isChecked())
        if state != self._shown:
            self._shown = state
            self._search()

    @property
    def target(self) -> Literal["image", "text"]:
        """The modality that is searched."""
        return "text" if self.targets.checkedButton().objectName().endswith("text") else "image"

    # -- asking ------------------------------------------------------------------------------------------------

    def ask(self, query: SearchQuery) -> None:
        self._query = query
        self._typing.stop()
        self.picture.show_image(query.image)
        self.refresh()

    def _search(self) -> None:
        selection = self.context.selection
        self._waiting = set()
        self._ticket = self.working.start("Reading the pairs")
        for index, run in enumerate((selection.run_a, selection.run_b)):
            self.context.background.forget(self, f"hits {index}")
            self._cancel(index)
            panel = self.panels[index]
            if run is None:
                panel.show_nothing("columns-2", f"No run {'AB'[index]}", "Choose one in the bar above to compare.")
            elif not self._query.words:
                panel.show_nothing("search", "No query", "", name=self.context.jobs.name_of(run))
            else:
                where = self._where(index, run)
                self._waiting.add(index)
                panel.area.loading()
                self.note.setText("Searching…")
                self.context.background.run(
                    self,
                    embedder,
                    self.context.workspace,
                    where,
                    done=partial(self._embed, index, where, self._query),
                    failed=partial(self._refuse, index),
                    key=f"hits {index}",
                )
        if self._query.words:
            self.hits.ready()
        else:
            self.hits.empty("search", "Enter a query", ASK)
        set_refusal(self.to_map, "There are no hits yet.")
        if not self._waiting:
            self.working.end()
            self.note.setText("")

    def _answered(self, index: int) -> None:
        self._waiting.discard(index)
        if not self._waiting:
            self.working.end()

    def _end(self) -> None:
        """End the search on the user's request."""
        for index in tuple(self._waiting):
            self.context.background.forget(self, f"hits {index}")
            self._cancel(index)
            self._end_of(index)
            hint = "Press Enter to search again."
            self.panels[index].show_nothing("circle-stop", "Search cancelled", hint)
        self._shown = None

    def _where(self, index: int, run: int) -> SearchRequest:
        selection = self.context.selection
        step = selection.step_of(index)
        data = of_split(selection.dataset)
        return SearchRequest(run, step, **data, target=self.target, csls=self.hubs.csls.isChecked(), k=K)  # type: ignore[arg-type]

    def _embed(self, index: int, where: SearchRequest, query: SearchQuery, by: Embedder) -> None:
        self.panels[index].note.setToolTip(by.note)
        if by.note:
            self.note.setText(by.note)
        array = self._arrays.get((where.run, by.step, query))
        if array is not None:
            self._find(index, where, array)
            return
        question = (
            EmbedTexts(run=where.run, texts=(query.text,), step=by.step)
            if query.text
            else EmbedImages(run=where.run, images=(query.image,), step=by.step)
        )
        self._open[index] = self.context.client.ask(
            question,
            done=partial(self._take_vector, index, where, query, by),
            failed=partial(self._fail, index),
            owner=self,
        )

    def _take_vector(
        self, index: int, where: SearchRequest, query: SearchQuery, by: Embedder, answer: EmbedAnswer
    ) -> None:
        self._open.pop(index, None)
        if query.image in answer.unreadable:
            self._end_of(index)
            self.panels[index].refuse("This image cannot be read", answer.unreadable[query.image])
            return
        if len(self._arrays) > 200:
            self._arrays.clear()
        self._arrays[where.run, by.step, query] = answer.array
        if query == self._query:
            self._find(index, where, answer.array)

    def _find(self, index: int, where: SearchRequest, array: str) -> None:
        self.context.background.run(
            self,
            find,
            self.context.workspace,
            where,
            array,
            self._ticket,
            done=partial(self._show, index),
            failed=partial(self._refuse, index),
            key=f"hits {index}",
        )

    def _show(self, index: int, hits: Hits) -> None:
        self._answered(index)
        by_panel = {panel.index: panel.hits for panel in self.panels} | {index: hits}
        rows = [set(h.rows.tolist()) for h in by_panel.values() if h is not None]
        shared = rows[0] & rows[1] if len(rows) == 2 else set()
        for panel in self.panels:
            if by_panel[panel.index] is not None:
                panel.show_hits(by_panel[panel.index], shared)
        set_refusal(self.to_map, "")
        if self.note.text() == "Searching…":
            self.note.setText("")
        self._mark()

    def _refuse(self, index: int, error: Exception) -> None:
        if not isinstance(error, UserError | Cancelled):
            self.context.background.failed.emit(error)
        self._show_problem(index, error)

    def _fail(self, index: int, failure: Failure) -> None:
        self._open.pop(index, None)
        if failure.kind != "cancelled":
            self._show_problem(index, reason_of(failure))

    def _show_problem(self, index: int, why: Exception | str) -> None:
        self._end_of(index)
        self.panels[index].refuse(f"Could not search {'AB'[index]}", why, self._search)

    def _end_of(self, index: int) -> None:
        self._answered(index)
        self.note.setText("")

    def _cancel(self, index: int) -> None:
        if (number := self._open.pop(index, None)) is not None:
            self.context.client.cancel(number)

    # -- linking -----------------------------------------------------------------------------------------------

    def hit_rows(self) -> np.ndarray:
        """Return pairs found by either run, ascending."""
        rows = [panel.hits.rows for panel in self.panels if panel.hits is not None]
        return np.unique(np.concatenate(rows)) if rows else np.empty(0, np.int64)

    def _go_to_map(self) -> None:
        rows = self.hit_rows()
        if len(rows):
            self.context.selection.undo.beginMacro("Show the hits on the map")
            self.context.selection.pairs = rows
            self.context.selection.view = "map"
            self.context.selection.undo.endMacro()

    def _choose(self, pairs: list[int]) -> None:
        self.context.selection.pairs = pairs

    def _mark(self) -> None:
        chosen = set(self.context.selection.pairs[:20_000].tolist())
        for panel in self.panels:
            panel.tiles.mark(chosen)

    def _hover(self, pair: int) -> None:
        self.context.selection.hovered = pair if pair >= 0 else None

    def _show_names(self) -> None:
        """Name the runs above empty panels: they may have been read after the view was shown."""
        for panel, run in zip(self.panels, (self.context.selection.run_a, self.context.selection.run_b), strict=True):
            if panel.hits is None and run is not None:
                panel.title.setText(self.context.jobs.name_of(run))

    def _typed(self) -> None:
        text = " ".join(self.field.text().split())
        if text or not self._query.image:
            self.ask(SearchQuery(text=text))

    def _remember(self, name: str, on: bool) -> None:
        self.context.settings.set(f"search/{name}", on)
        self.refresh()

    def _on_snapshots(self, run: int) -> None:
        if self.context.selection.follows(run):
            self._shown = None
            self.hubs.pane.forget()
            self.refresh_if_seen()

    def _connect(self) -> None:
        selection = self.context.selection
        self.context.jobs.runs_changed.connect(lambda _runs: self._show_names())
        for signal in (selection.runs_changed, selection.step_changed, selection.dataset_changed):
            signal.connect(self.refresh_if_seen)
        selection.pairs_changed.connect(self._mark)
        self.context.jobs.snapshots_changed.connect(self._on_snapshots)
        self.field.textChanged.connect(lambda _text: self._typing.start())
        self.field.returnPressed.connect(self._typed)
        self._typing.timeout.connect(self._typed)
        self.working.cancelled.connect(self._end)
        self.picture.removed.connect(lambda: self.ask(SearchQuery()))
        self.targets.buttonClicked.connect(lambda _button: self.refresh())
        self.to_map.clicked.connect(self._go_to_map)
        self.hubs.csls.setChecked(bool(self.context.settings.value("search/csls", False)))
        self.hubs.toggled.connect(partial(self._remember, "csls"))
        self.hubs_button.setChecked(bool(self.context.settings.value("search/hubs", False)))
        self.hubs_button.toggled.connect(partial(self._remember, "hubs"))
        for panel in self.panels:
            panel.tiles.chosen.connect(self._choose)
            panel.tiles.hovered.connect(self._hover)

    def _lay_out(self) -> None:
        bar = FlowRow()
        self.field.setMinimumWidth(FIELD_PX)
        bar.add(self.field, stretch=True)
        bar.add(self.picture, gap=theme.INSIDE)
        for key, label in (("image", "Images"), ("text", "Texts")):
            button = QPushButton(
                label, objectName=f"search-target-{key}", checkable=True, autoExclusive=True, checked=key == "image"
            )
            self.targets.addButton(button)
            bar.add(button, gap=theme.INSIDE)
        bar.add(self.to_map, gap=theme.INSIDE)
        bar.add(self.hubs_button, gap=theme.INSIDE)
        layouts.add(
            self.body,
            bar,
            (self.hits, 1),
            self.working,
            self.note,
        )


class Chip(QToolButton):
    """The query image; a click removes it."""

    def __init__(self) -> None:
        super().__init__(objectName="search-picture", accessibleName="Remove the query image", visible=False)
        self.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        theme.keep_icon(self, "image", 16, "secondary")
        self.removed = self.clicked

    def show_image(self, path: str) -> None:
        """Show the image's name; nothing for an empty path."""
        self.setVisible(bool(path))
        name = Path(path).name
        self.setText(f"{name if len(name) < 28 else name[:25] + '…'}  ×" if path else "")
        self.setToolTip(f"{path}\nClick to remove" if path else "")


class Hubs(QWidget):
    """The hubness chart, and the switch that enables CSLS in the search."""

    toggled = Signal(bool)  # CSLS is on or off now.

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
