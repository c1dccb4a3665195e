"""The Decode view: a picture or a sentence, decoded by the decoders of runs A and B from the same noises."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

import numpy as np
from PySide6.QtCore import QTimer, Signal
from PySide6.QtGui import QAction, QPixmap
from PySide6.QtWidgets import QGridLayout, QHBoxLayout, QLabel, QLineEdit, QPushButton, QVBoxLayout, QWidget

from explorer import theme
from explorer.models.thumbnails import Pictures
from explorer.render_qt.controls import Controls
from explorer.views.decode.choices import decoder_of
from explorer.views.decode.method import METHOD
from explorer.views.decode.query import DecodeQuery
from explorer.views.view import View, reason_of
from explorer.widgets.elided_label import ElidedLabel
from explorer.widgets.image_strip import PICTURE, ImageStrip, StripItem
from explorer.widgets.pixel_picture import PixelPicture
from explorer.widgets.progress_row import Ticket, Working
from explorer.widgets.state_area import StateArea
from trainer.charts.decode import WHITE, DecodedChart, DecodedRun, DecodeSettings
from trainer.messages import Decode, Failure
from trainer.store import RunRow

NOISES: Final = 6
STEPS: Final = 25
LATER_MS: Final = 350
COLUMNS: Final = ("Original", "Mean picture", "Nearest", *(f"Noise {seed}" for seed in range(NOISES)), "Not kept")


class DecodeView(View):
    """Decoded pictures of run A and run B."""

    title = "Decode"
    question = "What does an embedding keep of a picture, and what does it leave to chance?"
    icon = "eye"
    when_chosen = "A decoder of each shows what its embeddings keep."
    method = METHOD

    decoder_asked = Signal(int)
    """The New run form for a decoder of this run is wanted."""

    def build(self) -> Iterator[None]:
        context = self.context
        self.pictures = Pictures(context.background, self, edge=2 * PICTURE)
        self.asking = DecodeQuery(context.client, self)
        self._image = ""
        self._failed: Decode | None = None
        self.strip = ImageStrip(self.pictures.get)
        self.strip.setObjectName("decode-images")
        yield
        self.sentence = _line("decode-sentence", "A sentence to decode; empty: the chosen picture")
        self.before = _line("decode-before", "From this text …")
        self.after = _line("decode-after", "… to this one")
        self.show_button = QPushButton("Decode", objectName="decode-show")
        theme.set_role(self.show_button, "primary")
        self.working = Working("decode-working", self, asks=True)
        self._ticket = Ticket()
        self.status = ElidedLabel()
        theme.set_role(self.status, "small")
        self.limits = QLabel(objectName="decode-limits", wordWrap=True)
        theme.set_role(self.limits, "small")
        yield
        self.controls = Controls(DecodeSettings, "decode")
        yield
        self.rows = [DecodedRow(f"decode-{'ab'[place]}", place) for place in range(2)]
        self._later = QTimer(self, singleShot=True, interval=LATER_MS, timeout=self.ask)
        self._train = QAction("Train a decoder…", self, objectName="decode-train")
        self._train.triggered.connect(lambda: self.decoder_asked.emit(self.context.selection.runs[0]))
        yield
        self._lay_out()
        self._connect()

    def command(self) -> list[str] | None:
        question = self._question()
        if question is None or self.chart is None:
            return None
        words = ["decode", *map(str, question.runs)]
        words += ["--image", question.image] if question.image else ["--text", question.text, "--prior", question.prior]
        words += ["--guidance", f"{question.guidance:g}"] if question.guidance != 1 else []
        words += ["--other", question.other, "--share", f"{question.share:g}"] if question.other else []
        if question.before:
            words += ["--before", question.before, "--after", question.after, "--strength", f"{question.strength:g}"]
        words += ["--drop", str(question.direction)] if question.direction else []
        return words + (["--close-gap"] if question.close_gap else [])

    @property
    def drop_words(self) -> str:
        return "Drop to decode" if self.decoders else ""

    def take(self, paths: Iterable[Path | str]) -> None:
        """Add images (dropped or pasted) and decode the first of them."""
        new = [str(path) for path in paths]
        if not new:
            return
        queries = self.context.selection.queries
        self.context.selection.queries = list(dict.fromkeys([*new, *map(str, queries)]))
        self.sentence.clear()
        self._image = new[0]
        self.refresh()
        self.ask()

    def actions_for_palette(self) -> list[QAction]:
        show = QAction("Decode the picture or the sentence", self, objectName="decode-action-show")
        show.triggered.connect(self.ask)
        return [show]

    @property
    def decoders(self) -> list[tuple[int, RunRow]]:
        """The decoders of A and B that there are, each with its place."""
        runs = self.context.jobs.runs
        found = [(side.place, decoder_of(runs, side.run)) for side in self.context.selection.sides]
        return [(place, row) for place, row in found if row is not None]

    @property
    def chart(self) -> DecodedChart | None:
        """The result for the current controls, or its preview; None if there is none."""
        question = self._question()
        return self.asking.known(question) if question else None

    def refresh(self) -> None:
        selection = self.context.selection
        if not selection.runs:
            self.show_no_run()
            return
        if not self.decoders:
            self._show_no_decoder()
            return
        self.show_content()
        paths = [str(path) for path in selection.queries]
        self.strip.show_items([StripItem(path, (), "", "", Path(path).name) for path in paths])
        self.strip.setVisible(bool(paths))
        if self._image not in paths:
            self._image = paths[0] if paths else ""
        self._show()

    def ask(self) -> None:
        """Request the result for the current controls, unless it is known."""
        self._later.stop()
        question = self._question()
        if question is None:
            self._show()
            return
        under_way = self.asking.busy and self.asking.question == question
        if not self.asking.is_kept(question) and not under_way:
            self._failed, self._ticket = None, self.working.start()
            self.asking.ask(question)
        self._show()

    # -- asking ------------------------------------------------------------------------------------------------

    def _question(self) -> Decode | None:
        text = " ".join(self.sentence.text().split())
        if not self.decoders or not (text or self._image):
            return None
        wanted: DecodeSettings = self.controls.settings
        paths = [str(path) for path in self.context.selection.queries]
        second = next((path for path in paths if path != self._image), "") if wanted.share and not text else ""
        before, after = (" ".join(line.text().split()) for line in (self.before, self.after))
        differs = bool(before and after and wanted.strength)
        return Decode(
            runs=tuple(row.id for _, row in self.decoders),
            image="" if text else self._image,
            text=text,
            prior=wanted.prior if text else "mlp",
            steps=STEPS,
            guidance=wanted.guidance,
            other=second,
            share=wanted.share if second else 0.0,
            before=before if differs else "",
            after=after if differs else "",
            strength=wanted.strength if differs else 0.0,
            direction=wanted.direction,
            close_gap=wanted.close_gap and bool(text),
            noises=tuple(range(NOISES)),
        )

    def _on_failed(self, failure: Failure) -> None:
        self._failed = self.asking.question
        self.working.end()
        self.status.setText("")
        self.picture_area.failed("Could not decode", reason_of(failure), retry=self.ask)

    # -- showing -----------------------------------------------------------------------------------------------

    def _show(self) -> None:
        question, chart, busy = self._question(), self.chart, self.asking.busy
        whole = question is not None and self.asking.is_kept(question)
        self.show_button.setEnabled(question is not None and not whole and not busy)
        if busy:
            self._ticket.share, self._ticket.note = self.asking.progress, self.asking.note
            if chart is None:
                self.picture_area.loading()
        elif self._failed is None or self._failed != question:
            self.working.end()
        if chart is not None:
            self.picture_area.ready()
            self.status.setText(chart.how if whole else f"First look: {chart.how}")
        elif question is None:
            self.picture_area.ready()
            self.status.setText("Drop a picture on this window, or write a sentence.")
        elif not busy and self._failed != question:
            self.picture_area.ready()
            self.status.setText("Press Enter or Decode; it takes some seconds.")
        self.limits.setText("" if chart is None else chart.limits)
        self._show_rows(chart)

    def _show_rows(self, chart: DecodedChart | None) -> None:
        decoders = self.decoders
        for place, row in enumerate(self.rows):
            at = next((at for at, (side, _) in enumerate(decoders) if side == place), None)
            row.setVisible(at is not None)
            if at is None:
                continue
            run = chart.runs[at] if chart is not None else None
            near = run.nearest[0].path if run is not None and run.nearest else ""
            row.show_run(decoders[at][1], run, None if chart is None else chart.original, self.pictures.get(near))

    def _show_no_decoder(self) -> None:
        run = self.context.selection.runs[0]
        row = self.context.jobs.run(run)
        name = row.name if row is not None else f"run {run}"
        self._train.setEnabled(not self.context.workspace.look_only)
        self.show_empty(
            self.icon,
            f"No decoder of {name} yet",
            "A decoder learns to draw pictures from the embeddings of a run, which stays as it is. It trains like any "
            "other run; the form says how long.",
            self._train,
        )

    # -- putting it together -----------------------------------------------------------------------------------

    def _connect(self) -> None:
        selection = self.context.selection
        for signal in (selection.runs_changed, selection.step_changed, selection.queries_changed):
            signal.connect(self.refresh_if_seen)
        self.context.jobs.runs_changed.connect(lambda _runs: self.refresh_if_seen())
        self.context.jobs.run_ended.connect(lambda row: self.asking.forget(row.id))
        self.strip.current_changed.connect(self._choose)
        self.strip.remove_asked.connect(self._remove)
        self.pictures.arrived.connect(self.strip.picture_arrived)
        self.pictures.arrived.connect(lambda _path: self.refresh_if_seen())
        for line in (self.sentence, self.before, self.after):
            line.returnPressed.connect(self.ask)
            line.textEdited.connect(lambda _text: self._show())
        self.controls.changed.connect(self._on_controls)
        self.show_button.clicked.connect(self.ask)
        self.working.cancelled.connect(self.asking.cancel)
        self.asking.changed.connect(self._show)
        self.asking.failed.connect(self._on_failed)

    def _choose(self, path: str) -> None:
        if path and path != self._image:
            self._image = path
            self.sentence.clear()
            self.ask()

    def _remove(self, paths: Iterable[str]) -> None:
        gone = set(paths)
        queries = map(str, self.context.selection.queries)
        self.context.selection.queries = [path for path in queries if path not in gone]

    def _on_controls(self) -> None:
        self._show()
        if self._question() is not None:
            self._later.start()

    def _lay_out(self) -> None:
        bar = QHBoxLayout()
        bar.setSpacing(theme.INSIDE)
        bar.addWidget(self.sentence, 2)
        bar.addWidget(self.before, 1)
        bar.addWidget(self.after, 1)
        bar.addWidget(self.show_button)
        panels = QWidget()
        column = QVBoxLayout(panels)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(theme.BETWEEN)
        for row in self.rows:
            column.addWidget(row)
        column.addWidget(self.limits)
        column.addStretch(1)
        self.picture_area = StateArea(panels)
        whole = QVBoxLayout()
        whole.setSpacing(theme.INSIDE)
        whole.addLayout(bar)
        whole.addWidget(self.controls)
        whole.addWidget(self.status)
        whole.addWidget(self.picture_area, 1)
        whole.addWidget(self.strip)
        self.body.addLayout(whole, 1)


class DecodedRow(QWidget):
    """The pictures of one decoder in a row."""

    def __init__(self, name: str, place: int) -> None:
        super().__init__()
        self.setObjectName(name)
        self._place = place
        self.heading, self.facts = QLabel(), ElidedLabel()
        theme.set_role(self.heading, "strong")
        theme.set_role(self.facts, "small")
        self.boxes = [PixelPicture(f"{name}-{column}") for column in range(len(COLUMNS))]
        grid = QGridLayout(self)
        grid.setContentsMargins(0, 0, 0, 0)
        grid.setHorizontalSpacing(theme.SPACE)
        grid.setVerticalSpacing(2)
        grid.addWidget(self.heading, 0, 0, 1, 3)
        grid.addWidget(self.facts, 0, 3, 1, len(COLUMNS) - 3)
        for column, (words, box) in enumerate(zip(COLUMNS, self.boxes, strict=True)):
            label = QLabel(words)
            theme.set_role(label, "small")
            grid.addWidget(label, 1, column)
            grid.addWidget(box, 2, column)
            grid.setColumnStretch(column, 1)

    def show_run(
        self, decoder: RunRow, run: DecodedRun | None, original: np.ndarray | None, nearest: QPixmap | None
    ) -> None:
        """Show what a decoder answered; empty squares before it did."""
        told = decoder.facts.get("decodes") or {}
        self.heading.setText(f"{'AB'[self._place]}  {told.get('name', decoder.name)}")
        if run is None:
            self.facts.setText(f"by {decoder.name}, step {decoder.step:,}")
            for words, box in zip(COLUMNS, self.boxes, strict=True):
                box.show_pixels(None, f"{words}: not decoded yet")
            return
        self.facts.setText(
            f"step {run.of_step:,}, by {run.name} (step {run.step:,}); deviation over {len(run.samples)} noises "
            f"{run.not_kept:.1f} % of a pixel's range; nearest of {run.nearest_of:,} training pictures"
        )
        shade = np.rint(255 * np.clip(run.spread / WHITE, 0, 1)).astype(np.uint8)
        shown = [original, run.mean, None, *run.samples, np.repeat(shade[:, :, None], 3, axis=2)]
        for words, box, pixels in zip(COLUMNS, self.boxes, shown, strict=False):
            box.show_pixels(pixels, f"{words}, decoded by {run.name}" if pixels is not None else words)
        if run.nearest:
            near = run.nearest[0]
            self.boxes[2].show_pixmap(nearest, f"Nearest training picture, cosine {near.cosine:.3f}: {near.caption}")


def _line(name: str, words: str) -> QLineEdit:
    line = QLineEdit(objectName=name, accessibleName=words, placeholderText=words, clearButtonEnabled=True)
    line.setMaxLength(500)
    return line
