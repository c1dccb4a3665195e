"""The Inspect view: an image, a caption, and the regions that each run associates with it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final, Literal

from msgspec import Struct, structs
from PySide6.QtCore import QObject
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QButtonGroup, QComboBox, QPushButton, QWidget

from explorer import theme
from explorer.model_client.client import ModelClient
from explorer.model_client.single_request import CachedRequest
from explorer.render_qt.xy_plot import tone_color
from explorer.state.selection import Side
from explorer.views.inspect.swap_margins import SwapMargins, SwapQuestion
from explorer.views.picture_question import PictureQuestionView
from explorer.views.view import step_words
from explorer.widgets import layouts
from explorer.widgets.elided_label import ElidedLabel
from explorer.widgets.flow_row import FlowRow
from explorer.widgets.heat_map import HeatMapWidget
from explorer.widgets.image_strip import StripItem, StripLine
from explorer.widgets.run_badge import RunBadge
from explorer.widgets.still import StillComboBox, StillSpinBox
from trainer.charts import objective_label
from trainer.charts.marks import HeatMap, Mark
from trainer.charts.run_tones import with_sides
from trainer.charts.saliency import SaliencyChart, SaliencyRun, panel, request_words
from trainer.charts.snapshots import choose_snapshot
from trainer.config import default_paths
from trainer.errors import UserError
from trainer.messages import Saliency, SaliencyAnswer
from trainer.store import SplitKey, Workspace, of_split
from trainer.store.snapshot_files import read_snapshot
from trainer.untrusted.bounded.arrays import load_npy

NO_IMAGE: Final = (
    "Drop an image on this window, or select pairs in the map. Then choose or enter a caption to see which regions "
    "support it in each run."
)
CAPTION_PX: Final = 240
HEADS_PX: Final = 102
"""Height of the heads above the maps and of the scales below them."""
METHODS: Final[tuple[tuple[Literal["occlusion", "gradient"], str], ...]] = (
    ("occlusion", "Occlusion"),
    ("gradient", "Gradient"),
)
MOST_IMAGES: Final = 50
MOST_CAPTIONS: Final = 30


class Image(Struct, frozen=True):
    """An image to inspect, its caption, and the number of its pair; -1 if it is of none."""

    path: str
    caption: str = ""
    row: int = -1


class InspectView(PictureQuestionView):
    """Saliency of a caption for run A, run B, and their difference."""

    title = "Inspect"
    question = "Which regions support the caption, and does the run bind its words?"
    icon = "scan-search"
    compares = "pictures"
    when_chosen = "Then compute the saliency map of a caption."
    prefix = "inspect"
    action_text = "Compute the saliency map of the caption"
    failure = "Could not compute the saliency map"

    def build(self) -> Iterator[None]:
        context = self.context
        self.make_parts(SaliencyQuery(context.client, self._named, self), "Compute saliency map")
        self._images: tuple[Image, ...] = ()
        self._pairs: tuple[Image, ...] = ()
        self._current = ""
        self._key: object = None
        self._selected_pairs: tuple[int, ...] = ()
        self._is_reading = False
        yield
        self.captions = StillComboBox(objectName="inspect-caption", accessibleName="Caption to explain")
        self.captions.setEditable(True)
        self.captions.setInsertPolicy(QComboBox.InsertPolicy.NoInsert)
        self.captions.lineEdit().setPlaceholderText("A caption to locate in the image")
        self.methods = QButtonGroup(self)
        self.grid = StillSpinBox(objectName="inspect-grid", accessibleName="Grid size")
        self.grid.setRange(4, 32)
        self.grid.setValue(int(context.settings.value("inspect/grid", 12)))
        yield
        self.swaps = SwapMargins(context.client, self.pictures, self._named)
        context.jobs.run_ended.connect(lambda row: self.swaps.asking.forget(row.id))
        self.maps = [HeatMapWidget() for _ in range(4)]
        for name, heat_map in zip(("image", "a", "b", "difference"), self.maps, strict=True):
            heat_map.setObjectName(f"inspect-map-{name}")
        self._heads: list[tuple[ElidedLabel, ElidedLabel]] = []
        self._badges = tuple(RunBadge(letter, index) for index, letter in enumerate("AB"))
        yield
        self._lay_out()
        yield
        self._connect()

    def command(self) -> list[str] | None:
        chart = self.chart
        if chart is None:
            return None
        question = self.question_now()
        runs = dict.fromkeys(map(str, question.runs))
        return ["saliency", *runs, *request_words(question), *step_words(self.context.selection)]

    @property
    def drop_words(self) -> str:
        return "Drop to inspect" if self.context.selection.runs else ""

    def take(self, paths: Iterable[Path | str]) -> None:
        """Add images (dropped or pasted) and show the first of them."""
        new = [str(path) for path in paths]
        if not new:
            return
        selection = self.context.selection
        selection.queries = [*selection.queries, *new]
        self._show_images()
        self.strip.choose(new[0])
        self._choose(new[0])
        self.captions.setFocus()

    def refresh(self) -> None:
        selection = self.context.selection
        if not selection.runs:
            self.show_no_run()
            return
        if self.lacks_model():
            return
        queries = tuple(str(path) for path in selection.queries)
        key = (selection.sides, selection.dataset, tuple(selection.pairs.tolist()), queries)
        if key != self._key:
            self._key, self._is_reading = key, True
            args = (self.context.workspace, *key)
            self.context.background.run(
                self, images_of, *args, done=partial(self._take_pairs, key[2]), failed=self._not_read, key="pairs"
            )
        self._show_images()

    def ask(self) -> None:
        if (question := self.question_now()) is not None:
            self._keep_caption(question.caption)
        super().ask()
        self.swaps.ask(self._swap_question())

    # -- images and captions -----------------------------------------------------------------------------------

    def _take_pairs(self, pairs: tuple[int, ...], images: Sequence[Image]) -> None:
        before, self._pairs, self._is_reading = self._own_caption, tuple(images), False
        self._show_images()
        path = next((image.path for row in pairs for image in images if image.row == row), "")
        if path and pairs != self._selected_pairs:
            # Who selects a pair wants to see that one, whatever was looked at before.
            self.strip.choose(path)
            self._choose(path)
        self._selected_pairs = pairs
        # A caption that was typed stays: with another one, what is computed for it would never be shown.
        if self._own_caption != before:
            self._fill_captions()
            self.show_now()
        if default_paths.is_sample(self.context.workspace.folder) and self.asking.question is None:
            self.ask()  # who looks around sees at once what this view is for

    def _not_read(self, error: Exception) -> None:
        self._key, self._is_reading = None, False
        self.area.failed("Could not read the pairs of these runs", error, retry=self.refresh)

    @property
    def _problem(self) -> str:
        """Why the current picture cannot be inspected, if it was dropped; a pair is read from its snapshot's data."""
        image = next((image for image in self._images if image.path == self._current and image.row < 0), None)
        return self.pictures.problem(image.path) if image is not None else ""

    @property
    def _own_caption(self) -> str:
        return next((image.caption for image in self._images if image.path == self._current), "")

    def _show_images(self) -> None:
        queries = [Image(str(path)) for path in self.context.selection.queries]
        images = {image.path: image for image in [*queries, *self._pairs]}
        # An image that is both dropped and of the snapshot has a caption.
        images |= {image.path: image for image in self._pairs}
        self._images = tuple(images.values())[: 2 * MOST_IMAGES]
        if not self._images and self._is_reading:
            # That there is none is said once it has been looked up.
            self.area.unknown("Reading the pictures…")
            return
        if not self._images:
            self.show_empty("scan-search", "No image to inspect", NO_IMAGE)
            return
        self.show_content()
        items = [self._strip_item(image) for image in self._images]
        if items != self.strip.items:
            self.strip.show_items(items)
        if self._current not in images:
            self.strip.choose(self._images[0].path)
            self._choose(self._images[0].path)
        self.show_now()

    def _choose(self, path: str) -> None:
        if not path or path == self._current:
            return
        self._current = path
        self._fill_captions()
        self.show_now()

    def _show_arrived(self, path: str) -> None:
        """Show a picture that is read now, or that it cannot be."""
        if self.pictures.problem(path):
            self._show_images()
        if path == self._current:
            self.show_now()

    def _strip_item(self, image: Image) -> StripItem:
        problem = self.pictures.problem(image.path) if image.row < 0 else ""
        name = Path(image.path).name
        lines = (StripLine(image.caption or name),)
        tip = "\n".join(filter(None, (name, image.caption, problem)))
        return StripItem(image.path, lines, problem="Cannot be read" if problem else "", tip=tip)

    def _fill_captions(self) -> None:
        caption = self._own_caption
        typed = self.captions.currentText().strip()
        stored = [c for c in self.context.settings.value("inspect/captions", []) if isinstance(c, str)]
        captions = list(dict.fromkeys(c for c in (caption, *stored) if c))
        self.captions.blockSignals(True)
        self.captions.clear()
        self.captions.addItems(captions)
        self.captions.setCurrentText(caption or typed or (captions[0] if captions else ""))
        if (line := self.captions.lineEdit()) is not None:
            line.setCursorPosition(0)  # a long caption is read from its first word
        self.captions.blockSignals(False)

    def _keep_caption(self, caption: str) -> None:
        stored = [c for c in self.context.settings.value("inspect/captions", []) if isinstance(c, str)]
        of_images = {image.caption for image in self._images}
        if caption not in of_images:
            stored = list(dict.fromkeys([caption, *stored]))[:MOST_CAPTIONS]
            self.context.settings.set("inspect/captions", stored)
            if self.captions.findText(caption) < 0:
                self.captions.addItem(caption)

    def question_now(self) -> Saliency | None:
        selection = self.context.selection
        sides, caption = selection.sides, " ".join(self.captions.currentText().split())
        if not sides or not caption or not self._current or self._problem:
            return None
        chosen = METHODS[max(self.methods.checkedId(), 0)][0]
        return Saliency(
            runs=tuple(side.run for side in sides),
            image=self._current,
            caption=caption,
            method=chosen,
            grid=self.grid.value(),
            steps=tuple(side.step for side in sides),
        )

    def _swap_question(self) -> SwapQuestion | None:
        question = self.question_now()
        sides = tuple(self.context.selection.sides)
        return None if question is None else SwapQuestion(sides, question.image, question.caption)

    # -- showing -----------------------------------------------------------------------------------------------

    def show_now(self) -> None:
        chart = self.chart
        if self._problem or self.asking.busy or chart is not None:
            self.status.setText(self._problem)
        elif self.question_now() is None:
            self.status.setText("Enter a caption: a word or a sentence to locate in the image.")
        else:
            self.status.setText("Press Enter or Compute saliency map (a few seconds).")
        self.show_progress()
        self._show_maps(chart)
        self.swaps.show_question(self._swap_question())

    def _show_maps(self, chart: SaliencyChart | None) -> None:
        selection = self.context.selection
        path, sides = Path(self._current), [side.place for side in selection.sides]
        marks: list[Mark] = []
        if chart is not None:
            runs = (structs.replace(run, index=side) for side, run in zip(sides, chart.runs, strict=True))
            marks += with_sides(panel(replace(chart, runs=tuple(runs))), theme.sides_of(self)).marks
        self._show_map(0, marks[:1], "Image", self._own_caption or path.name, f"The image {path.name}")
        for index in range(2):
            run = (selection.run_a, selection.run_b)[index]
            at = 1 + sides.index(index) if index in sides else len(marks)
            name, objective = self._named(run) if run is not None else (f"No run {'AB'[index]}", "")
            for widget in (self.maps[1 + index], self._badges[index], *self._heads[1 + index]):
                widget.setVisible(index in sides)
            label = objective_label(objective) if objective and not chart else ""
            text = f"The regions that support the caption in {name}"
            self._show_map(1 + index, marks[at : at + 1], name, "" if label in name else label, text)
        for widget in (self.maps[3], *self._heads[3]):
            widget.setVisible(len(sides) == 2)
        self._show_map(3, marks[3:], "B minus A", "", "Where both maps differ")

    def _show_map(self, column: int, marks: Sequence[Mark], title: str, note: str, text: str) -> None:
        """Show the map if it is there, else that it is not: the picture, or what comes in its place."""
        for mark in marks:
            if isinstance(mark, HeatMap):
                self._head(column, title, mark.note if column else note)
                self.maps[column].show_heat(mark, (tone_color(tone).name() for tone in mark.tones))
                self.maps[column].setAccessibleName(f"{title}: {_strongest(mark.values)}" if column else text)
        if not marks:
            self._head(column, title, note)
            self.maps[column].show_empty(None if column else self.pictures.get(self._current), text)

    def _head(self, column: int, title: str, text: str) -> None:
        heading, quiet = self._heads[column]
        heading.setText(title)
        quiet.setText(text)

    def _named(self, run: int | None) -> tuple[str, str]:
        row = self.context.jobs.run(run) if run is not None else None
        return (row.short_name, row.objective) if row is not None else (f"Run {run}", "")

    # -- putting it together -----------------------------------------------------------------------------------

    def _connect(self) -> None:
        selection = self.context.selection
        signals = (selection.runs_changed, selection.step_changed, selection.dataset_changed)
        for signal in (*signals, selection.pairs_changed, selection.queries_changed):
            signal.connect(self.refresh_if_seen)
        self.strip.current_changed.connect(self._choose)
        self.pictures.arrived.connect(self._show_arrived)
        self.captions.editTextChanged.connect(lambda _text: self.show_now())
        self.captions.lineEdit().returnPressed.connect(self.ask)
        self.captions.activated.connect(lambda _place: self.show_now())
        self.methods.idClicked.connect(lambda index: self._remember("method", METHODS[index][0]))
        self.grid.valueChanged.connect(partial(self._remember, "grid"))
        theme.theme().follow(self.show_now)

    def _remember(self, name: str, value: str | int) -> None:
        self.context.settings.set(f"inspect/{name}", value)
        self.show_now()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        # The maps are squares: what they leave of the height is the table's.
        self.answer_area.setMaximumHeight(self.width() // len(self.maps) + HEADS_PX)

    def _lay_out(self) -> None:
        bar = FlowRow()
        self.captions.setMinimumWidth(CAPTION_PX)
        bar.add(self.captions, stretch=True)
        remembered = self.context.settings.value("inspect/method", "occlusion")
        for index, (name, label) in enumerate(METHODS):
            button = QPushButton(label, objectName=f"inspect-{name}", checkable=True, autoExclusive=True)
            button.setChecked(name == remembered or index == 0)
            self.methods.addButton(button, index)
            bar.add(button)
        cells = layouts.text("Grid size", "secondary", buddy=self.grid)
        for widget in (cells, self.grid, self.show_button):
            bar.add(widget)
        grid = layouts.grid(theme.BETWEEN, 2)
        for map_index, saliency_map in enumerate(self.maps):
            heading, quiet = layouts.elided(role="strong"), layouts.elided(role="small")
            quiet.set_lines(2)
            self._heads.append((heading, quiet))
            head = layouts.row()
            if map_index in (1, 2):
                head.addWidget(self._badges[map_index - 1])
            head.addWidget(heading, 1)
            grid.addLayout(head, 0, map_index)
            grid.addWidget(quiet, 1, map_index)
            grid.addWidget(saliency_map, 2, map_index)
            grid.setColumnStretch(map_index, 1)
        grid.setRowStretch(2, 1)
        panels = QWidget()
        grid.setContentsMargins(0, 0, 0, 0)
        panels.setLayout(grid)
        parts = bar, self.status, (self.lay_in(panels), 3), self.strip, (self.swaps, 1), layouts.STRETCH
        self.body.addLayout(layouts.column(*parts), 1)


def images_of(
    workspace: Workspace,
    sides: Sequence[Side],
    data: SplitKey | None,
    pairs: Sequence[int],
    queries: Sequence[str],
) -> list[Image]:
    """Return captioned images: those of the selected pairs, else the snapshot's first, and dropped ones it contains.

    Pure, for a thread.
    """
    for side in sides:
        try:
            chosen = choose_snapshot(workspace, workspace.runs.get(side.run), step=side.step, **of_split(data))
            items = read_snapshot(chosen.folder).items
        except UserError:
            continue
        rows = [row for row in pairs if row < len(items)] or range(min(len(items), MOST_IMAGES // 5))
        dropped = set(queries)
        of_queries = [row for row, path in enumerate(items.path) if path in dropped] if dropped else []
        numbers = list(dict.fromkeys([*of_queries, *rows]))[:MOST_IMAGES]
        return [Image(items.path[row], items.caption[row], row) for row in numbers]
    return []


def _strongest(cells: object) -> str:
    cell = int(cells.argmax())
    row, column = divmod(cell, cells.shape[1])
    return f"strongest in row {row + 1}, column {column + 1} of {cells.shape[0]}"


Named = Callable[[int], tuple[str, str]]
"""Name and objective of a run."""


class SaliencyQuery(CachedRequest):
    """Requests saliency maps and caches the latest ones."""

    def __init__(self, client: ModelClient, named: Named, parent: QObject) -> None:
        super().__init__(client, parent)
        self._named = named

    def read(self, message: Saliency, answer: SaliencyAnswer) -> SaliencyChart:
        maps = load_npy(answer.array)
        runs = []
        for index, run in enumerate(message.runs):
            name, objective = self._named(run)
            step, cosine = answer.steps[index], answer.cosines[index]
            saliency = SaliencyRun(
                index=index, run=run, name=name, objective=objective, step=step, cells=maps[index], cosine=cosine
            )
            runs.append(saliency)
        return SaliencyChart(message.image, load_npy(answer.image), message.caption, message.method, tuple(runs))
