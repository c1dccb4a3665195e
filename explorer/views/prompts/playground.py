"""The prompt playground: templates by class, a weighted ensemble, its confusions and their images."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal

import numpy as np
from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QButtonGroup, QLabel, QPushButton, QSizePolicy, QWidget

from explorer import theme
from explorer.event_loop.background import Background
from explorer.models.thumbnails import Thumbnails
from explorer.widgets import layouts
from explorer.widgets.flow_row import FlowRow
from explorer.widgets.hairline_splitter import HairlineSplitter
from explorer.widgets.heat_table import HeatData, HeatTable
from explorer.widgets.image_strip import ImageStrip, StripItem, StripLine
from explorer.widgets.refusal import set_refusal
from trainer.analysis.number_text import signed
from trainer.charts.marks import run_tone
from trainer.charts.measures.prompts import Mixture, PromptRun, mixture

WEIGHT, ALL = 0, 1
MEAN, WEIGHTED, FIRST_TEMPLATE = 0, 1, 2
MOST_IMAGES: Final = 60
MOST_WEIGHT: Final = 1000.0


class Playground(QWidget):
    """The templates of one run at a time."""

    weights_changed = Signal()  # The person changed a weight.

    def __init__(self, background: Background, pictures: Thumbnails) -> None:
        super().__init__()
        self._background = background
        self._templates: tuple[str, ...] = ()
        self._runs: list[PromptRun | None] = [None, None]
        self._weighted: list[Mixture | None] = [None, None]
        self._alone: tuple[int, Mixture] | None = None
        self.weights: tuple[float, ...] = ()
        self._index, self._row = 0, WEIGHTED
        self.run_buttons = self._choices("run", ("A", "B"))
        self.value_buttons = self._choices("value", ("Difference", "Accuracy"))
        self.equal = QPushButton("Equal weights", objectName="prompts-equal")
        self.by_accuracy = QPushButton("Weigh by accuracy", objectName="prompts-by-accuracy")
        self.by_accuracy.setToolTip("Weight of a template: its accuracy minus that of the worst template")
        self.matrix = HeatTable("prompts-matrix", "Templates and classes")
        self.confusion = HeatTable("prompts-confusion", "Confusion of classes")
        self.summary = _plain("small", wrap=True)
        self.confusion_title, self.images_title = _plain("strong"), _plain("strong")
        self.strip = ImageStrip(pictures.get)
        self.strip.setObjectName("prompts-images")
        pictures.arrived.connect(self.strip.picture_arrived)
        self._lay_out()
        self._connect()

    # -- showing -----------------------------------------------------------------------------------------------

    @property
    def value(self) -> Literal["difference", "accuracy"]:
        """The value shown in the cells."""
        return "difference" if self.value_buttons.buttons()[0].isChecked() else "accuracy"

    @property
    def set_weights_of(self) -> tuple[float, ...]:
        """The weights as a chart setting: empty if all are equal."""
        return self.weights if len(set(self.weights)) > 1 else ()

    def show_runs(self, runs: Sequence[PromptRun | None]) -> None:
        """Show A and B; weights are kept if the templates are unchanged."""
        before, self._runs = self._templates, list(runs)
        self._templates = next((run.templates for run in runs if run is not None), ())
        if self._templates != before or len(self.weights) != len(self._templates):
            self.weights = (1.0,) * len(self._templates)
            self._row = WEIGHTED
        self._alone = None
        if self._runs[self._index] is None and self._runs[1 - self._index] is not None:
            self._index = 1 - self._index
        for index, button in enumerate(self.run_buttons.buttons()):
            run = self._runs[index]
            set_refusal(button, "" if run is not None else f"No run {'AB'[index]} with these templates.")
            button.setText(f"{'AB'[index]}  {run.name}" if run else "AB"[index])
            button.setChecked(index == self._index)
        self._weighted = [run.mean if run is not None else None for run in self._runs]
        self._weigh()

    def restore_weights(self, templates: Sequence[str], weights: Sequence[float]) -> None:
        """Restore weights of an earlier session if the templates are unchanged."""
        if self._templates and tuple(templates) == self._templates and len(weights) == len(templates):
            self.weights = tuple(weights)
            self._weigh()

    @property
    def run(self) -> PromptRun | None:
        """The run whose matrix is shown."""
        return self._runs[self._index]

    @property
    def shown_mixture(self) -> Mixture | None:
        """The classifier whose confusions are shown: an ensemble, or a single template."""
        run = self.run
        if run is None or self._row == WEIGHTED:
            return self._weighted[self._index]
        if self._row == MEAN:
            return run.mean
        template = self._row - FIRST_TEMPLATE
        if self._alone is None or self._alone[0] != template:
            alone = np.zeros(len(self.weights))
            alone[template] = 1.0
            self._alone = (template, mixture(run, alone.tolist()))
        return self._alone[1]

    def _weigh(self) -> None:
        """Compute both runs' weighted ensembles off the GUI thread; only the newest weights count."""
        runs, weights = tuple(self._runs), self.weights
        if len(set(weights)) <= 1:
            self._take([run.mean if run else None for run in runs])
            return
        self._background.run(self, weigh, runs, weights, done=self._take, key="weights")

    def _take(self, mixtures: list[Mixture | None]) -> None:
        self._weighted = mixtures
        self._show()

    def _show(self) -> None:
        run = self.run
        if run is None:
            return
        self.matrix.show_data(self._matrix_data(run))
        self._show_confusion()

    def _matrix_data(self, run: PromptRun) -> HeatData:
        weighted = self._weighted[self._index] or run.mean
        difference = self.value == "difference"
        top = np.vstack([_row(run.mean), _row(weighted)])
        below = np.column_stack([run.overall, run.accuracy])
        base = _row(run.mean)
        shares = below - base if difference else below
        values = np.vstack([top, shares])
        if difference:
            reach = max(float(np.nanmax(np.abs(shares), initial=0.0)), 0.02)
            shade = np.vstack([np.zeros_like(top), shares / reach])
        else:
            shade = values.copy()
        column = np.array([np.nan, np.nan, *self.weights])
        values, shade = np.column_stack([column, values]), np.column_stack([0 * column, shade])
        best = 100 * float(run.overall.max())
        self.summary.setText(
            f"{run.name}, step {run.step:,}: n = {run.n:,} of {run.pairs:,} images, class from {run.column}. Mean "
            f"ensemble {100 * run.mean.accuracy:.1f} %, weighted {100 * weighted.accuracy:.1f} %, "
            f"best single template {best:.1f} %."
        )

        def text(row: int, column: int, value: float) -> str:
            if column == WEIGHT:
                return f"{value:g}"
            if difference and row >= FIRST_TEMPLATE:
                return signed(100 * value, 0) if round(100 * value) else "0"
            return f"{100 * value:.0f}"

        def tip(row: int, column: int) -> str:
            if column == WEIGHT:
                return "Type a weight from 0" if row >= FIRST_TEMPLATE else ""
            unit = "points vs. the mean ensemble" if difference and row >= FIRST_TEMPLATE else "accuracy in percent"
            return f"{100 * values[row, column]:.1f} {unit}"

        colors = ("run_a", "run_b") if difference else (run_tone(self._index),) * 2
        return HeatData(
            ("Mean ensemble", "Weighted ensemble", *run.templates),
            ("Weight", "All", *run.labels),
            values,
            np.nan_to_num(shade),
            text,
            colors,
            editable=frozenset({WEIGHT}),
            strong=frozenset({MEAN, WEIGHTED}),
            tip=tip,
        )

    def _show_confusion(self) -> None:
        run, classifier = self.run, self.shown_mixture
        if run is None or classifier is None:
            return
        name = ("Mean ensemble", "Weighted ensemble", *run.templates)[self._row]
        self.confusion_title.setText(f"{name}: {100 * classifier.accuracy:.1f} % right")
        counts = classifier.confusion.astype(float)
        shade = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
        color = run_tone(self._index)
        data = HeatData(
            run.labels,
            run.labels,
            counts,
            shade,
            lambda _row, _column, value: f"{value:.0f}" if value else "·",
            (color, color),
            tip=lambda row, column: f"{100 * shade[row, column]:.1f} % of {counts[row].sum():.0f} images of this class",
        )
        self.confusion.show_data(data)
        current = self.confusion.currentIndex()
        row, column = (current.row(), current.column()) if current.isValid() else worst(classifier.confusion)
        self._show_images(row, column)

    def _show_images(self, row: int, column: int) -> None:
        run, classifier = self.run, self.shown_mixture
        if run is None or classifier is None or max(row, column) >= len(run.labels):
            return
        images = np.flatnonzero((run.truth == row) & (classifier.predicted == column))
        of = int(np.sum(run.truth == row))
        what = "recognized" if row == column else f"predicted as {run.labels[column]}"
        more = f", the first {MOST_IMAGES} shown" if len(images) > MOST_IMAGES else ""
        self.images_title.setText(f"{run.labels[row]} {what}: {len(images):,} of {of:,} images{more}")
        said = (StripLine(run.labels[column], run_tone(self._index)),)
        items = [StripItem(run.paths[image], said, "", "", run.paths[image]) for image in images[:MOST_IMAGES].tolist()]
        self.strip.show_items(items)

    # -- what a person does ------------------------------------------------------------------------------------

    def set_weight(self, template: int, weight: float) -> bool:
        """Set a template's weight; False if the weights form no ensemble."""
        weights = [*self.weights]
        weights[template] = weight
        return self.set_weights(weights)

    def set_weights(self, weights: Sequence[float]) -> bool:
        """Set all templates' weights; False if they form no ensemble."""
        if not all(0 <= weight <= MOST_WEIGHT for weight in weights) or not any(weights):
            return False
        self.weights = tuple(weights)
        self._weigh()
        self.weights_changed.emit()
        return True

    def _edited(self, row: int, column: int, text: str) -> None:
        try:
            weight = float(text.replace(",", "."))
        except ValueError:
            weight = -1.0
        if column == WEIGHT and not self.set_weight(row - FIRST_TEMPLATE, weight):
            self.summary.setText(
                f"A weight is a number from 0 to {MOST_WEIGHT:g}, one of them above 0; the last valid one is kept."
            )

    def _weigh_by_accuracy(self) -> None:
        run = self.run
        if run is not None:
            above = run.overall - run.overall.min()
            weights = np.round(above / above.max(), 3) if above.max() > 0 else np.ones(len(above))
            self.set_weights(weights.tolist())

    def _matrix_chosen(self, row: int, column: int) -> None:
        # Who changes weights wants to see what becomes of the ensemble.
        self._row = WEIGHTED if column == WEIGHT else row
        self._show_confusion()

    def _run_chosen(self, index: int) -> None:
        self._index, self._alone = index, None
        self._show()

    # -- putting it together -----------------------------------------------------------------------------------

    def _connect(self) -> None:
        self.run_buttons.idClicked.connect(self._run_chosen)
        self.value_buttons.idClicked.connect(lambda _place: self._show())
        self.equal.clicked.connect(lambda: self.set_weights([1.0] * len(self.weights)))
        self.by_accuracy.clicked.connect(self._weigh_by_accuracy)
        self.matrix.cell_chosen.connect(self._matrix_chosen)
        self.matrix.edited.connect(self._edited)
        self.confusion.cell_chosen.connect(self._show_images)
        theme.theme().follow(self._show)

    def _choices(self, name: str, labels: Sequence[str]) -> QButtonGroup:
        group = QButtonGroup(self)
        for index, text in enumerate(labels):
            button = QPushButton(text, objectName=f"prompts-{name}-{text.lower()}", checkable=True, autoExclusive=True)
            button.setChecked(index == 0)
            group.addButton(button, index)
        return group

    def _lay_out(self) -> None:
        bar = FlowRow()
        for group in (self.run_buttons, self.value_buttons):
            for index, button in enumerate(group.buttons()):
                bar.add(button, gap=theme.SPACE if index else theme.SPACE + theme.BETWEEN)
        bar.add(self.by_accuracy, gap=theme.SPACE + theme.BETWEEN, right=True)
        bar.add(self.equal, right=True)
        split = HairlineSplitter(Qt.Orientation.Vertical)
        below = HairlineSplitter(Qt.Orientation.Horizontal)
        for title, widget in ((self.confusion_title, self.confusion), (self.images_title, self.strip)):
            parts = [title, (widget, 1)] if widget is self.confusion else [title, widget, layouts.STRETCH]
            below.addWidget(layouts.panel(layouts.column(*parts, gap=theme.SPACE)))
        below.setSizes([520, 400])
        split.addWidget(self.matrix)
        split.addWidget(below)
        split.setSizes([300, 260])
        layouts.column(bar, self.summary, (split, 1), of=self)


def weigh(runs: Sequence[PromptRun | None], weights: Sequence[float]) -> list[Mixture | None]:
    """Return the weighted ensemble of each run. Pure, for a thread."""
    return [mixture(run, weights) if run is not None else None for run in runs]


def worst(confusion: np.ndarray) -> tuple[int, int]:
    """Return the most frequent confusion, or the first class if there is none."""
    wrong = confusion.copy()
    np.fill_diagonal(wrong, 0)
    row, column = divmod(int(wrong.argmax()), len(wrong))
    return (row, column) if wrong[row, column] else (0, 0)


def _row(classifier: Mixture) -> np.ndarray:
    return np.concatenate([[classifier.accuracy], classifier.by_class])


def _plain(role: str, *, wrap: bool = False) -> QLabel:
    label = layouts.text(role=role, wrap=True) if wrap else layouts.elided(role=role)
    label.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
    return label
