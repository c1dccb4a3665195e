"""What each word of a caption is worth: bars for both runs, and the rank without it."""

from __future__ import annotations

from functools import partial

import numpy as np
from PySide6.QtCore import QRectF, QSize, Qt, QTimer
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QHBoxLayout, QLabel, QLineEdit, QPushButton, QScrollArea, QVBoxLayout, QWidget

from explorer import theme
from explorer.models.thumbnails import Pictures
from explorer.state.selection import Side
from explorer.views.similarity.pane import Pane
from explorer.views.similarity.query import Sentences, take_vectors
from explorer.views.view import Context
from explorer.widgets.image_box import ImageBox
from explorer.widgets.number_box import NumberBox
from trainer.analysis.leave_one_word_out import without_each_word
from trainer.charts.snapshots import choose_snapshot
from trainer.charts.words import WordsChart, WordsRun, words_run
from trainer.errors import UserError
from trainer.store import SplitKey, Workspace, of_split
from trainer.store.snapshot_files import Items, read_snapshot

TYPING_MS = 500
ROW_PX = 40


class WordsPane(Pane):
    """A pair's caption, editable, and how its cosine and rank change when each word is left out."""

    def __init__(self, context: Context, pictures: Pictures) -> None:
        super().__init__(context, pictures)
        self.chart: WordsChart | None = None
        self._items: Items | None = None
        self._facts: tuple[str, str] | None = None
        self._asked: tuple[object, ...] | None = None
        self._pair = 0
        self._runs: dict[int, WordsRun] = {}
        self._problems: dict[int, str] = {}
        self.number = NumberBox(whole=True, low=0)
        self.number.setObjectName("words-pair")
        self.number.setAccessibleName("Number of the pair")
        self.number.setFixedWidth(96)
        self.number.set_value(0)
        self.caption = QLineEdit(objectName="words-caption", accessibleName="Caption to take apart")
        self.caption.setPlaceholderText("Type a caption")
        self.own = QPushButton("Its own caption", objectName="words-own")
        self.picture = ImageBox()
        self.picture.setFixedSize(160, 120)
        self.note = QLabel(objectName="words-note", wordWrap=True)
        self.note.setTextFormat(Qt.TextFormat.PlainText)
        theme.set_role(self.note, "small")
        self.bars = WordBars()
        self.sentences = Sentences(context, self)
        self._typing = QTimer(self, singleShot=True, interval=TYPING_MS)
        self._lay_out()
        self._connect()

    def refresh(self) -> None:
        selection = self.context.selection
        asked = (selection.run_a, selection.run_b, selection.sides, selection.dataset)
        if asked == self._asked:
            self._take_selected()
            return
        self._asked = asked
        self.context.background.run(
            self,
            read_items,
            self.context.workspace,
            selection.sides[0],
            selection.dataset,
            done=self._show_items,
            failed=self._refuse,
            key="items",
        )

    def forget(self) -> None:
        self._asked = None

    def command(self) -> list[str] | None:
        if self.chart is None or self._facts is None or not self.chart.runs:
            return None
        shown = self.view_words((run.index for run in self.chart.runs), *self._facts)
        words = ["export", "words", *shown, "--pair", str(self._pair)]
        own = self._items is not None and self._items.caption[self._pair] == self.chart.caption
        return words if own else [*words, "--caption", self.chart.caption]

    def show_pair(self, pair: int) -> None:
        """Takes this pair's caption apart."""
        if self._items is None or not 0 <= pair < len(self._items):
            return
        self._pair = pair
        self.number.blockSignals(True)
        self.number.set_value(pair)
        self.number.blockSignals(False)
        self.caption.setText(self._items.caption[pair])
        self._show_picture()
        self._ask()

    def _show_items(self, read: tuple[str, str, Items]) -> None:
        dataset, split, self._items = read
        self._facts = (dataset, split)
        chosen = self.context.selection.pairs
        self.show_pair(int(chosen[0]) if len(chosen) else min(self._pair, len(self._items) - 1))

    def _take_selected(self) -> None:
        chosen = self.context.selection.pairs
        if self._items is not None and len(chosen) and int(chosen[0]) != self._pair and self.isVisible():
            self.show_pair(int(chosen[0]))

    def _typed_number(self) -> None:
        value = self.number.value()
        if isinstance(value, int) and value != self._pair:
            self.show_pair(value)

    def _ask(self) -> None:
        self._typing.stop()
        words, reduced = without_each_word(self.caption.text())
        self._runs.clear()
        self._problems.clear()
        if not words or self._items is None:
            self.chart = None
            self.bars.show_chart(None)
            self.note.setText("Type a caption: its words are left out one by one.")
            return
        self.note.setText("Embedding the caption without each word…")
        selection = self.context.selection
        for index, run in enumerate((selection.run_a, selection.run_b)):
            if run is None:
                self.sentences.cancel(index)
                continue
            side, caption = Side(index, run, selection.step_of(index)), self.caption.text()
            self.sentences.ask(
                side, (caption, *reduced), partial(self._take, side, caption), partial(self._fail, index)
            )

    def _take(self, side: Side, caption: str, own: Side, file: str) -> None:
        self.context.background.run(
            self,
            partial(read_words, file, self._pair),
            self.context.workspace,
            own,
            self.context.selection.dataset,
            done=partial(self._show, side, caption),
            failed=lambda error: self._fail(side.place, str(error)),
            # Never skipped in favor of a newer one: reading takes the answer's file away.
            key=f"words {file}",
        )

    def _show(self, side: Side, caption: str, run: WordsRun) -> None:
        if caption != self.caption.text() or side.step != self.context.selection.step_of(side.place):
            return
        self._runs[side.place] = run
        words = without_each_word(caption)[0]
        self.chart = WordsChart(self._pair, caption, words, tuple(self._runs[i] for i in sorted(self._runs)))
        self.bars.show_chart(self.chart)
        self._tell()

    def _fail(self, index: int, why: str) -> None:
        self._problems[index] = f"{'AB'[index]}: {why}"
        self._tell()

    def _tell(self) -> None:
        parts = [
            f"{'AB'[i]}, step {r.step:,}: cosine {r.cosine:.3f}, rank {r.rank:,} of {r.n:,} images".replace("-", "−")
            for i, r in sorted(self._runs.items())
        ]
        self.note.setText(" · ".join([*parts, *self._problems.values()]))

    def _refuse(self, error: Exception) -> None:
        self._asked = None
        if not isinstance(error, UserError):
            self.context.background.failed.emit(error)
        self.note.setText(str(error))

    def _show_picture(self, path: str | None = None) -> None:
        own = self._items.path[self._pair] if self._items is not None else ""
        if path is None or path == own:
            self.picture.show_picture(self.pictures.get(own))

    def _connect(self) -> None:
        self.number.edited.connect(self._typed_number)
        self.caption.textEdited.connect(lambda _text: self._typing.start())
        self.caption.returnPressed.connect(self._ask)
        self._typing.timeout.connect(self._ask)
        self.own.clicked.connect(lambda: self.show_pair(self._pair))
        self.pictures.arrived.connect(self._show_picture)
        self.context.selection.pairs_changed.connect(self._take_selected)

    def _lay_out(self) -> None:
        label = QLabel("Pair")
        theme.set_role(label, "secondary")
        top = QHBoxLayout()
        top.setSpacing(theme.INSIDE)
        top.addWidget(label)
        top.addWidget(self.number)
        top.addWidget(self.caption, 1)
        top.addWidget(self.own)
        words = QVBoxLayout()
        words.setSpacing(theme.INSIDE)
        words.addLayout(top)
        words.addWidget(self.note)
        words.addStretch()
        head = QHBoxLayout()
        head.setSpacing(theme.BETWEEN)
        head.addWidget(self.picture)
        head.addLayout(words, 1)
        scroll = QScrollArea(widgetResizable=True)
        scroll.setFrameShape(QScrollArea.Shape.NoFrame)
        scroll.setWidget(self.bars)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(theme.BETWEEN)
        column.addLayout(head)
        column.addWidget(scroll, 1)


class WordBars(QWidget):
    """A row a word: a bar for each run by what its cosine loses, and the rank beside it."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent, objectName="words-bars")
        self.chart: WordsChart | None = None
        theme.theme().changed.connect(self.update)

    def show_chart(self, chart: WordsChart | None) -> None:
        """Shows these words."""
        self.chart = chart
        self.setMinimumHeight(self.sizeHint().height())
        said = (
            [f"{w}: {', '.join(f'{r.drops[i]:.3f}' for r in chart.runs)}" for i, w in enumerate(chart.words)]
            if chart
            else []
        )
        self.setAccessibleDescription("; ".join(said))
        self.update()

    def sizeHint(self) -> QSize:
        return QSize(400, 36 + ROW_PX * len(self.chart.words) if self.chart else 100)

    def paintEvent(self, _event: QPaintEvent) -> None:
        if self.chart is None:
            return
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        drops = np.concatenate([run.drops for run in self.chart.runs])
        drops = drops[np.isfinite(drops)]
        low, high = min(0.0, float(drops.min(initial=0))), max(1e-3, float(drops.max(initial=0)))
        left, right = 148.0, self.width() - 132.0
        right = min(right, left + 760)

        def x(value: float) -> float:
            return left + (value - low) / (high - low) * (right - left)

        painter.setFont(theme.pixel_font(theme.SMALL_PX))
        painter.setPen(theme.color("secondary"))
        painter.drawText(
            QRectF(0, 0, left - 12, 24), Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter, "without"
        )
        painter.drawText(QRectF(x(0), 0, 300, 24), Qt.AlignmentFlag.AlignVCenter, "cosine lost (to the left: gained)")
        painter.drawText(QRectF(right + 72, 0, 60, 24), Qt.AlignmentFlag.AlignVCenter, "rank")
        for place, word in enumerate(self.chart.words):
            self._paint_word(painter, place, word, x, left, right)
        painter.setPen(theme.color("outline"))
        painter.drawLine(int(x(0)), 28, int(x(0)), 28 + ROW_PX * len(self.chart.words))

    def _paint_word(self, painter: QPainter, place: int, word: str, x, left: float, right: float) -> None:
        top = 28.0 + ROW_PX * place
        painter.setFont(theme.pixel_font(theme.BODY_PX))
        painter.setPen(theme.color("text"))
        shown = painter.fontMetrics().elidedText(word, Qt.TextElideMode.ElideRight, int(left) - 16)
        middle = Qt.AlignmentFlag.AlignVCenter
        painter.drawText(QRectF(0, top, left - 12, ROW_PX), Qt.AlignmentFlag.AlignRight | middle, shown)
        painter.setFont(theme.pixel_font(theme.SMALL_PX))
        height = 12.0
        for number, run in enumerate(self.chart.runs):
            drop, y = float(run.drops[place]), top + 6 + number * (height + 3)
            painter.fillRect(
                QRectF(min(x(0), x(drop)), y, abs(x(drop) - x(0)), height), theme.color(theme.run_color(run.index))
            )
            painter.setPen(theme.color("text"))
            value = QRectF(right + 8, y - 2, 52, height + 4)
            painter.drawText(value, Qt.AlignmentFlag.AlignRight | middle, f"{drop:+.3f}".replace("-", "−"))
            worse = int(run.ranks[place]) > run.rank
            painter.setPen(theme.color("bad" if worse else "secondary"))
            painter.drawText(QRectF(right + 72, y - 2, 60, height + 4), middle, f"{int(run.ranks[place]):,}")


def read_items(workspace: Workspace, side: Side, data: SplitKey | None) -> tuple[str, str, Items]:
    """Dataset, split and items of a side's snapshot. Pure, for a thread."""
    row = choose_snapshot(workspace, workspace.runs.get(side.run), step=side.step, **of_split(data))
    return row.dataset, row.split, read_snapshot(row.folder).items


def read_words(file: str, pair: int, workspace: Workspace, side: Side, data: SplitKey | None) -> WordsRun:
    """What the words are worth to one side, from the vectors in `file`. Pure, for a thread."""
    vectors = take_vectors(file)
    chosen = {"step": side.step, **of_split(data)}
    return words_run(workspace, side.run, side.place, vectors, pair=pair, **chosen)
