"""Pairs along two axes that texts define, in the embedding space of each run."""

from __future__ import annotations

from functools import partial

import numpy as np
from PySide6.QtCore import QRectF, Qt, QTimer
from PySide6.QtGui import QColor, QPainter, QPaintEvent
from PySide6.QtWidgets import QHBoxLayout, QLabel, QLineEdit, QStackedLayout, QToolButton, QVBoxLayout, QWidget

from explorer import theme
from explorer.models.thumbnails import Pictures
from explorer.state.selection import Side
from explorer.views.similarity.pane import Pane
from explorer.views.similarity.query import Sentences, take_vectors
from explorer.views.view import Context
from explorer.widgets.combo_boxes import Badge
from explorer.widgets.elided_label import ElidedLabel
from explorer.widgets.empty_state import EmptyState
from explorer.widgets.legend import Legend, LegendEntry
from explorer.widgets.point_map import PointMap
from trainer.charts import ChartError
from trainer.charts.color_words import own_colors
from trainer.charts.words import AxesRun, AxisText, axes_run
from trainer.store import SplitKey, Workspace, of_split

TYPING_MS = 600
MOST_CLASSES = 12
FIRST = ("a red circle - a blue circle", "a circle - a star")


class AxesPane(Pane):
    """Two lines of words, two scatter plots; a lasso selects pairs everywhere."""

    def __init__(self, context: Context, pictures: Pictures) -> None:
        super().__init__(context, pictures)
        self._asked: tuple[object, ...] | None = None
        self.x, self.y = (
            QLineEdit(objectName=f"axes-{name}", accessibleName=f"Words of the {name} axis") for name in "xy"
        )
        remembered = context.settings.value("similarity/axes", list(FIRST))
        for line, words in zip((self.x, self.y), remembered, strict=True):
            line.setText(str(words))
            line.setPlaceholderText("a photo of X - a photo of Y")
            line.setToolTip("From the texts after “ - ” to those before it; several texts apart by ;")
        self.lasso = QToolButton(objectName="axes-lasso", checkable=True, accessibleName="Draw a lasso to select")
        self.lasso.setToolTip("Draw a lasso to select; Shift and drag outlines a rectangle")
        theme.keep_icon(self.lasso, "lasso", 16, "secondary", "accent")
        self.note = ElidedLabel()
        self.note.setObjectName("axes-note")
        theme.set_role(self.note, "small")
        self.legend = Legend()
        self.sides = (AxesSide(0), AxesSide(1))
        self.sentences = Sentences(context, self)
        self._typing = QTimer(self, singleShot=True, interval=TYPING_MS)
        self._lay_out()
        self._connect()

    def refresh(self) -> None:
        self._typing.stop()
        selection = self.context.selection
        asked = (selection.run_a, selection.run_b, selection.sides, selection.dataset, self.x.text(), self.y.text())
        if asked == self._asked:
            return
        self._asked = asked
        try:
            axes = tuple(AxisText.parse(line.text()) for line in (self.x, self.y))
        except ChartError as error:
            self.note.setText(str(error))
            return
        self.context.settings.set("similarity/axes", [self.x.text(), self.y.text()])
        self.note.setText("Embedding the texts…")
        for index, run in enumerate((selection.run_a, selection.run_b)):
            if run is None:
                self.sentences.cancel(index)
                self.sides[index].show_nothing("Choose a run in the bar above to compare.")
                continue
            texts = (*axes[0].texts, *axes[1].texts)
            side = Side(index, run, selection.step_of(index))
            self.sentences.ask(side, texts, partial(self._take, side, axes), partial(self._fail, index))

    def forget(self) -> None:
        self._asked = None

    def command(self) -> list[str] | None:
        shown = [side.run for side in self.sides if side.run is not None]
        if not shown:
            return None
        places = [side.index for side in self.sides if side.run is not None]
        words = ["export", "axes", *self.view_words(places, shown[0].dataset, shown[0].split)]
        return [*words, "--x", self.x.text(), "--y", self.y.text()]

    def _take(self, side: Side, axes: tuple[AxisText, AxisText], own: Side, file: str) -> None:
        self.context.background.run(
            self,
            partial(read_axes, file, axes),
            self.context.workspace,
            own,
            self.context.selection.dataset,
            done=partial(self._show, side, axes),
            failed=lambda error: self._fail(side.place, str(error)),
            # Never skipped in favor of a newer one: reading takes the answer's file away.
            key=f"axes {file}",
        )

    def _show(self, side: Side, axes: tuple[AxisText, AxisText], run: AxesRun) -> None:
        selection, index = self.context.selection, side.place
        if (side.run, side.step) != ((selection.run_a, selection.run_b)[index], selection.step_of(index)):
            return
        classes = sorted(set(run.labels))
        few = 1 < len(classes) <= MOST_CLASSES
        own = own_colors(classes, dark=theme.theme().dark) if few else None
        colors = own or (theme.class_colors(len(classes)) if few else [theme.run_color(index)])
        self.sides[index].show_run(run, axes, classes if few else [], colors)
        self.legend.show_entries([LegendEntry(c, color) for c, color in zip(classes, colors)] if few else [])
        self.note.setText(f"{run.n:,} pairs · images are discs, texts are diamonds · {run.dataset}, {run.split}")
        self._mark_pairs()

    def _fail(self, index: int, why: str) -> None:
        self.note.setText("")
        self.sides[index].show_nothing(why)

    def _select(self, index: int, points: np.ndarray, add: bool) -> None:
        run = self.sides[index].run
        if run is None:
            return
        chosen = {int(p) % run.n for p in points}
        before = set(self.context.selection.pairs.tolist()) if add else set()
        self.context.selection.pairs = before | chosen

    def _mark_pairs(self) -> None:
        rows = self.context.selection.pairs
        for side in self.sides:
            side.mark(rows)

    def _recolor(self) -> None:
        self.forget()
        if self.isVisible():
            self.refresh()

    def _connect(self) -> None:
        for line in (self.x, self.y):
            line.textEdited.connect(lambda _text: self._typing.start())
            line.returnPressed.connect(self.refresh)
        self._typing.timeout.connect(self.refresh)
        self.lasso.toggled.connect(self._on_lasso)
        self.context.selection.pairs_changed.connect(self._mark_pairs)
        theme.theme().follow(self._recolor)
        for side in self.sides:
            side.map.outlined.connect(partial(self._select, side.index))
            side.map.clicked.connect(
                lambda point, add, i=side.index: self._select(i, np.array([point] if point >= 0 else [], int), add)
            )

    def _on_lasso(self, on: bool) -> None:
        for side in self.sides:
            side.map.lasso_mode = on

    def _lay_out(self) -> None:
        bar = QHBoxLayout()
        bar.setSpacing(theme.INSIDE)
        for words, line in (("x axis", self.x), ("y axis", self.y)):
            label = QLabel(words)
            theme.set_role(label, "secondary")
            label.setBuddy(line)
            bar.addWidget(label)
            bar.addWidget(line, 1)
        bar.addWidget(self.lasso)
        maps = QHBoxLayout()
        maps.setSpacing(theme.BETWEEN)
        for side in self.sides:
            maps.addWidget(side, 1)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(theme.INSIDE)
        column.addLayout(bar)
        column.addWidget(self.note)
        column.addWidget(self.legend)
        column.addLayout(maps, 1)


class AxesSide(QWidget):
    """One run's scatter plot with the words of both axes at its edges."""

    def __init__(self, index: int, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.index = index
        self.run: AxesRun | None = None
        self.title = ElidedLabel()
        theme.set_role(self.title, "strong")
        self.x_words, self.y_words = ElidedLabel(), _Upright()
        self.x_words.setAlignment(Qt.AlignmentFlag.AlignHCenter)
        theme.set_role(self.x_words, "small")
        self.map = PointMap()
        self.map.setObjectName(f"axes-map-{'ab'[index]}")
        self.map.setAccessibleName(f"Pairs of run {'AB'[index]} along the axes")
        self.empty = EmptyState(width=300)
        self._classes: list[str] = []
        head = QHBoxLayout()
        head.setSpacing(theme.INSIDE)
        head.addWidget(Badge("AB"[index], index))
        head.addWidget(self.title, 1)
        content = QWidget()
        middle = QHBoxLayout()
        middle.setSpacing(theme.SPACE)
        middle.addWidget(self.y_words)
        middle.addWidget(self.map, 1)
        inside = QVBoxLayout(content)
        inside.setContentsMargins(0, 0, 0, 0)
        inside.addLayout(middle, 1)
        inside.addWidget(self.x_words)
        self._pages = QStackedLayout()
        self._pages.addWidget(content)
        self._pages.addWidget(self.empty)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(theme.SPACE)
        column.addLayout(head)
        column.addLayout(self._pages, 1)
        self.show_nothing("The texts are being embedded.")

    def show_run(self, run: AxesRun, axes: tuple[AxisText, AxisText], classes: list[str], colors: list[str]) -> None:
        """Shows all pairs; colors are of the classes, or one for all."""
        self.run = run
        parts = [points for points in (run.images, run.texts) if points is not None]
        points = np.concatenate(parts).astype(np.float64)
        diamond = np.arange(len(points)) >= (len(run.images) if run.images is not None else 0)
        number = {name: place for place, name in enumerate(classes)}
        of_pair = np.array([number.get(label, 0) for label in run.labels], np.int64)
        palette = np.array([QColor(color).getRgb()[:3] for color in colors], np.uint8)
        self.map.set_points(points, diamond=diamond, color=np.tile(of_pair, len(parts)), palette=palette)
        ends = [f"{lo:.2f} to {hi:.2f}".replace("-", "−") for lo, hi in zip(points.min(0), points.max(0), strict=True)]
        self.title.setText(f"{run.name} · step {run.step:,}")
        self.x_words.setText(f"{axes[0].words} →  ({ends[0]})")
        self.y_words.set_text(f"{axes[1].words} →  ({ends[1]})")
        self._pages.setCurrentIndex(0)

    def show_nothing(self, why: str) -> None:
        """Says why there are no points."""
        self.run = None
        self.title.setText("")
        self.empty.tell("chart-scatter", f"No axes of run {'AB'[self.index]}", why)
        self._pages.setCurrentIndex(1)

    def mark(self, rows: np.ndarray) -> None:
        """Lifts these pairs' points above the others."""
        if self.run is None:
            return
        parts = (self.run.images is not None) + (self.run.texts is not None)
        mask = np.zeros(self.run.n, bool)
        mask[rows[rows < self.run.n]] = True
        self.map.set_selected(np.tile(mask, parts))


class _Upright(QWidget):
    """Words from bottom to top."""

    def __init__(self) -> None:
        super().__init__()
        self._words = ""
        self.setFixedWidth(18)
        theme.theme().changed.connect(self.update)

    def set_text(self, words: str) -> None:
        self._words = words
        self.setToolTip(words)
        self.update()

    def paintEvent(self, _event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setFont(theme.pixel_font(theme.SMALL_PX))
        painter.setPen(theme.color("secondary"))
        painter.translate(0, self.height())
        painter.rotate(-90)
        words = painter.fontMetrics().elidedText(self._words, Qt.TextElideMode.ElideRight, self.height())
        painter.drawText(QRectF(0, 0, self.height(), self.width()), Qt.AlignmentFlag.AlignCenter, words)


def read_axes(
    file: str, axes: tuple[AxisText, AxisText], workspace: Workspace, side: Side, data: SplitKey | None
) -> AxesRun:
    """One side's pairs along the axes, from the vectors in `file`. Pure, for a thread."""
    chosen = {"step": side.step, **of_split(data)}
    return axes_run(workspace, side.run, side.place, take_vectors(file), *axes, **chosen)
