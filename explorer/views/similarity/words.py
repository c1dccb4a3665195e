"""Importance of each word of a caption: the pair and its caption above the chart."""

from __future__ import annotations

from dataclasses import replace

from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QLineEdit, QPushButton

from explorer import theme
from explorer.models.thumbnails import Thumbnails
from explorer.views.chart_tab import ChartTab
from explorer.views.view import Context
from explorer.widgets import layouts
from explorer.widgets.image_box import ImageBox
from explorer.widgets.number_box import NumberBox

TYPING_MS = 500


class WordsTab(ChartTab):
    """A pair's editable caption, and how its cosine and rank change without each word."""

    def __init__(self, context: Context, pictures: Thumbnails) -> None:
        super().__init__(context, "words", pictures)
        # The pair of another day means nothing: only the units are remembered.
        self.controls.show_settings(replace(self.controls.settings, pair=0, caption=""))
        self._pictures = pictures
        self.number = NumberBox(integer=True, low=0)
        self.number.setObjectName("words-pair")
        self.number.setAccessibleName("Index of the pair")
        self.number.setFixedWidth(96)
        self.number.set_value(0)
        self.caption = QLineEdit(objectName="words-caption", accessibleName="Caption to analyze")
        self.caption.setPlaceholderText("Type a caption: its words are left out one by one")
        self.own = QPushButton("Reset caption", objectName="words-own")
        self.picture = ImageBox()
        self.picture.setFixedSize(160, 120)
        self._typing = QTimer(self, singleShot=True, interval=TYPING_MS)
        self._lay_out()
        self._connect()

    def refresh(self) -> None:
        chosen = self.context.selection.pairs
        if len(chosen) and int(chosen[0]) != self.settings_now().pair:
            self.show_pair(int(chosen[0]))
            return
        super().refresh()

    def show_pair(self, pair: int) -> None:
        """Split this pair's caption into words."""
        self._typing.stop()
        self._show_number(pair)
        self.change(pair=pair, caption="")

    def _typed_number(self) -> None:
        value = self.number.value()
        if isinstance(value, int) and value != self.settings_now().pair and value >= 0:
            self.show_pair(value)

    def _typed_caption(self) -> None:
        self._typing.stop()
        said = self.caption.text().strip()
        if said:
            captions = {run.own for run in self.runs[:1] if run.pair == self.settings_now().pair}
            self.change(caption="" if said in captions else said)

    def _take_selected(self) -> None:
        if self.isVisible() and self.context.selection.pair_count:
            self.refresh()

    def _on_answer(self) -> None:
        first = self.runs[0]
        self._show_number(first.pair)
        if not self._typing.isActive() and self.caption.text().strip() != first.caption:
            self.caption.setText(first.caption)
        self._show_picture(first.path)

    def _show_number(self, pair: int) -> None:
        if self.number.value() != pair:
            self.number.blockSignals(True)
            self.number.set_value(pair)
            self.number.blockSignals(False)

    def _show_picture(self, path: str) -> None:
        if self.runs and path == self.runs[0].path:
            self.picture.show_picture(self._pictures.get(path))

    def _connect(self) -> None:
        self.number.edited.connect(self._typed_number)
        self.caption.textEdited.connect(lambda _text: self._typing.start())
        self.caption.returnPressed.connect(self._typed_caption)
        self._typing.timeout.connect(self._typed_caption)
        self.own.clicked.connect(lambda: self.show_pair(self.settings_now().pair))
        self._pictures.arrived.connect(self._show_picture)
        self.context.selection.pairs_changed.connect(self._take_selected)
        self.context.selection.dataset_changed.connect(lambda: self.show_pair(0))
        self.pane.answered.connect(self._on_answer)

    def _lay_out(self) -> None:
        label = layouts.text("Pair", "secondary", buddy=self.number)
        said = layouts.row(label, self.number, (self.caption, 1), self.own)
        head = layouts.row(self.picture, (layouts.column(said, self.controls, layouts.STRETCH), 1), gap=theme.AROUND)
        self.column.insertLayout(0, head)
