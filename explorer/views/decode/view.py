"""The Decode view: a picture or a sentence, decoded by the decoders of runs A and B from the same noises."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import fields, replace
from pathlib import Path
from typing import Final

import numpy as np
from PySide6.QtCore import QEvent, QSize, Qt, QTimer
from PySide6.QtGui import QAction, QPixmap
from PySide6.QtWidgets import QBoxLayout, QLabel, QLineEdit, QWidget

from explorer import theme
from explorer.intents import MoveAlong, TrainDecoder, ViewIntent
from explorer.model_client.single_request import CachedRequest
from explorer.render_qt.controls import Controls
from explorer.run_control import actions
from explorer.thumbnails import image_of
from explorer.views.decode.choices import alike, decoder_of, decoders_of, in_the_making, why_not
from explorer.views.picture_question import PictureQuestionView
from explorer.widgets import layouts
from explorer.widgets.image_row import ImageRowItem, ImageRowWidget
from explorer.widgets.image_strip import StripItem, StripLine
from explorer.widgets.pixel_picture import PixelPicture
from explorer.widgets.refusal import set_refusal
from explorer.widgets.state_area import Act
from trainer.charts.decode import (
    NOISES,
    STEPS,
    DecodedChart,
    DecodedRun,
    DecodeSettings,
    ReverseStrip,
    request_words,
)
from trainer.messages import Decode, DecodeAnswer, RunDecoded
from trainer.store import RunRow
from trainer.untrusted.bounded.arrays import load_npy

FIRST_STEPS: Final = 8
QWIDGETSIZE_MAX: Final = 16_777_215
TRAINING: Final = (
    "A decoder learns to draw pictures from the embeddings of a run, which stays as it is. It trains like any other "
    "run. Decoders that are queued together have equal settings, so they can be compared."
)
LATER_MS: Final = 350
VISIBLE_DISTANCE: Final = 0.5
"""Along a principal direction, in lengths of an embedding."""
COLUMNS: Final = ("Original", "Mean", "Nearest", *(f"Noise {seed}" for seed in range(NOISES)), "Lost")
ACROSS: Final = (10, 5, 4, 3, 2)
"""How many pictures may be next to each other: as lets them be largest."""
LEAST_PX: Final = 52
LARGER: Final = 1.15
"""A stands above B, where a noise is easily compared, unless pictures are so much larger with A left of B."""


class DecodeQuery(CachedRequest):
    """Requests decoded pictures, first in few steps, and caches the latest ones."""

    most = 32

    def known(self, question: Decode) -> DecodedChart | None:
        """Return the answer, or its preview in few steps, or None."""
        first = replace(question, steps=min(FIRST_STEPS, question.steps))
        return super().known(question) or super().known(first)

    def stages_of(self, question: Decode) -> list[Decode]:
        stages = [replace(question, steps=FIRST_STEPS), question] if question.steps > FIRST_STEPS else [question]
        return [stage for stage in stages if not self.is_kept(stage)]

    def read(self, _message: Decode, answer: DecodeAnswer) -> DecodedChart:
        return chart_of(answer)


def chart_of(answer: DecodeAnswer) -> DecodedChart:
    """Return the chart of an answer to `Decode`."""
    runs = tuple(_run_of(index, decoded) for index, decoded in enumerate(answer.runs))
    original = np.asarray(load_npy(answer.original)) if answer.original else None
    return DecodedChart(answer.title, original, answer.how, answer.noises, runs)


def _run_of(index: int, decoded: RunDecoded) -> DecodedRun:
    facts = {field.name: getattr(decoded, field.name) for field in fields(decoded)}
    pictures = load_npy(facts.pop("pictures"))
    levels = facts.pop("levels")
    facts["reverse"] = ReverseStrip(levels, *load_npy(decoded.reverse)) if decoded.reverse else None
    facts["spread"] = load_npy(decoded.spread)
    facts["recovered"] = float("nan") if decoded.recovered is None else decoded.recovered
    return DecodedRun(index=index, mean=pictures[0], samples=pictures[1:], **facts)


class DecodeView(PictureQuestionView):
    """Decoded pictures of run A and run B."""

    title = "Decode"
    question = "What does an embedding keep of a picture, and what is lost?"
    icon = "eye"
    compares = "pictures"
    when_chosen = "A decoder of each shows what its embeddings keep."
    prefix = "decode"
    action_text = "Decode the picture or the sentence"
    failure = "Could not decode"

    def build(self) -> Iterator[None]:
        self.make_parts(DecodeQuery(self.context.client, self), "Decode")
        self._image = ""
        # What was moved, and how far, is longer than a line.
        self.status = _two_lines()
        yield
        self.sentence = _line("decode-sentence", "A sentence to decode; empty: the chosen picture")
        self.before = _line("decode-before", "From this text …")
        self.after = _line("decode-after", "… to this one")
        self.limits = layouts.text(role="small", name="decode-limits", wrap=True)
        yield
        self.controls = Controls(DecodeSettings, "decode")
        yield
        self.rows = [DecodedRow(f"decode-{'ab'[index]}", index) for index in range(2)]
        self.ways = [ImageRowWidget(lambda _path: None) for _ in self.rows]
        for index, strip in enumerate(self.ways):
            strip.setObjectName(f"decode-way-{'ab'[index]}")
        self._later = QTimer(self, singleShot=True, interval=LATER_MS, timeout=self.ask)
        self._train = QAction("Train a decoder", self, objectName="decode-train")
        self._train.triggered.connect(lambda: self.context.jobs.do(actions.queue_decoders, self._without()))
        self._form = QAction("Options…", self, objectName="decode-train-form")
        self._form.triggered.connect(lambda: self.requested.emit(TrainDecoder(self._without()[0])))
        yield
        self._lay_out()
        self._connect()

    def command(self) -> list[str] | None:
        question = self.question_now()
        if question is None or self.chart is None:
            return None
        return ["decode", *map(str, question.runs), *request_words(question)]

    def details(self) -> QWidget | None:
        """Return the panel of moves; None while there is nothing to decode."""
        return self._moves if self.decoders else None

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

    def carry_out(self, intent: ViewIntent) -> None:
        match intent:
            case MoveAlong(direction):
                self.move_along(direction)
            case _:
                super().carry_out(intent)

    def move_along(self, direction: int) -> None:
        """Move what is decoded along this principal direction, by a visible distance if it is not moved yet."""
        now: DecodeSettings = self.controls.settings
        far = now.distance or VISIBLE_DISTANCE
        self.controls.show_settings(replace(now, direction=direction, move="along", distance=far))
        self.controls.changed.emit()

    @property
    def decoders(self) -> list[tuple[int, RunRow]]:
        """The decoders of A and B that there are, each with its place."""
        sides = self.context.selection.sides
        rows = decoders_of(self.context.jobs.runs, [side.run for side in sides])
        return [(side.place, row) for side, row in zip(sides, rows, strict=True) if row is not None]

    def repair_now(self) -> Act | None:
        decoders, jobs = self.decoders, self.context.jobs
        if len(decoders) < 2 or alike(*(row for _, row in decoders)) or self.context.workspace.look_only:
            return None
        like, run = decoders[0][1].id, self.context.selection.sides[1].run
        return "Train the same decoder for B", lambda: jobs.do(actions.queue_decoders, [run], like)

    def refresh(self) -> None:
        selection = self.context.selection
        if not selection.runs:
            self.show_no_run()
            return
        if why := self.no_model:
            self.show_no_model(why)
            return
        if not self.decoders:
            self._show_no_decoder()
            return
        self.show_content()
        self.details_changed.emit()
        paths = [str(path) for path in selection.queries]
        self.strip.show_items([StripItem(path, (StripLine(Path(path).name, "outline"),), tip=path) for path in paths])
        self.strip.setVisible(bool(paths))
        if self._image not in paths:
            self._image = paths[0] if paths else ""
        self.show_now()

    def ask(self) -> None:
        self._later.stop()
        super().ask()

    # -- asking ------------------------------------------------------------------------------------------------

    def question_now(self) -> Decode | None:
        text = " ".join(self.sentence.text().split())
        if not self.decoders or not (text or self._image):
            return None
        settings: DecodeSettings = self.controls.settings
        paths = [str(path) for path in self.context.selection.queries]
        second = next((path for path in paths if path != self._image), "") if settings.share and not text else ""
        before, after = (" ".join(line.text().split()) for line in (self.before, self.after))
        differs = bool(before and after and settings.strength)
        along = settings.move == "along"
        moved = settings.direction and (settings.distance or not along)
        return Decode(
            runs=tuple(row.id for _, row in self.decoders),
            image="" if text else self._image,
            text=text,
            prior=settings.prior if text else "mlp",
            steps=STEPS,
            guidance=settings.guidance,
            other=second,
            share=settings.share if second else 0.0,
            before=before if differs else "",
            after=after if differs else "",
            strength=settings.strength if differs else 1.0,
            direction=settings.direction if moved else 0,
            distance=settings.distance if moved and along else None,
            close_gap=settings.close_gap and bool(text),
            reverse=settings.reverse,
            noises=tuple(range(NOISES)),
        )

    # -- showing -----------------------------------------------------------------------------------------------

    def show_now(self) -> None:
        chart = self.chart
        if chart is not None:
            self.status.setText(chart.how if self.is_whole else f"First look: {chart.how}")
        elif self.question_now() is None:
            self.status.setText("Drop a picture on this window, or write a sentence.")
        elif not self.asking.busy:
            self.status.setText("Press Enter or Decode (a few seconds).")
        self.controls.controls["prior"].setVisible(bool(self.sentence.text().strip()))
        self.show_progress()
        self._show_missing()
        self.limits.setText("" if chart is None else chart.limits)
        self.limits.setVisible(bool(self.limits.text()))
        self._show_rows(chart)

    def _show_rows(self, chart: DecodedChart | None) -> None:
        decoders = self.decoders
        for index, row in enumerate(self.rows):
            at = next((at for at, (side, _) in enumerate(decoders) if side == index), None)
            row.setVisible(at is not None)
            run = chart.runs[at] if chart is not None and at is not None else None
            _show_way(self.ways[index], run, index)
            if at is None:
                continue
            near = run.nearest[0].path if run is not None and run.nearest else ""
            row.show_run(decoders[at][1], run, None if chart is None else chart.original, self.pictures.get(near))

    def _without(self) -> list[int]:
        """Return the chosen runs that have no decoder, and none in the making."""
        runs = self.context.jobs.runs
        chosen = self.context.selection.runs
        return [run for run in chosen if decoder_of(runs, run) is None and in_the_making(runs, run) is None]

    def _show_no_decoder(self) -> None:
        self.details_changed.emit()
        jobs, chosen = self.context.jobs, self.context.selection.runs
        making = next(filter(None, (in_the_making(jobs.runs, run) for run in chosen)), None)
        if making is not None:
            text = f"{making.short_name} is {making.status}. Pictures appear here after its first checkpoint."
            self.show_empty(self.icon, "Training the decoder…", text)
            return
        reasons = [why_not(jobs.run(run), bool(self.context.workspace.look_only)) for run in chosen]
        names = " and ".join(map(jobs.name_of, chosen))
        why = next(filter(None, reasons), "")
        set_refusal(self._train, why)
        self._train.setText("Train a decoder" if len(chosen) == 1 else "Train both decoders")
        acts = (self.own_runs,) if self.context.workspace.look_only else (self._train, None if why else self._form)
        self.show_empty(self.icon, f"No decoder of {names} yet", why or TRAINING, *acts)

    def _show_missing(self) -> None:
        """Say which run has no decoder next to the other's, and offer one that compares."""
        jobs, decoders = self.context.jobs, self.decoders
        # Where A and B were chosen anew meanwhile, there may be none of either; the next refresh says so.
        if self.answer_area.kind != "ready" or not decoders or not (missing := self._without()):
            return
        like = decoders[0][1]
        why = why_not(jobs.run(missing[0]), bool(self.context.workspace.look_only))
        text = (
            why
            or f"{jobs.name_of(missing[0])} has no decoder. One with the settings of {like.short_name} compares them."
        )
        train = ("Train it", lambda: jobs.do(actions.queue_decoders, missing, like.id))
        self.answer_area.partial(text, None if why else train)

    # -- putting it together -----------------------------------------------------------------------------------

    def _connect(self) -> None:
        selection = self.context.selection
        for signal in (selection.runs_changed, selection.step_changed, selection.queries_changed):
            signal.connect(self.refresh_if_seen)
        self.context.jobs.runs_changed.connect(lambda _runs: self.refresh_if_seen())
        self.strip.current_changed.connect(self._choose)
        self.pictures.arrived.connect(lambda _path: self.refresh_if_seen())
        for line in (self.sentence, self.before, self.after):
            line.returnPressed.connect(self.ask)
            line.textEdited.connect(lambda _text: self.show_now())
        self.controls.changed.connect(self._on_controls)

    def _choose(self, path: str) -> None:
        if path and path != self._image:
            self._image = path
            self.sentence.clear()
            self.ask()

    def _on_controls(self) -> None:
        self.show_now()
        if self.question_now() is not None:
            self._later.start()

    def _lay_out(self) -> None:
        panels = layouts.panel(layouts.column((DecodedRows(self.rows), 1)))
        self.body.addLayout(
            layouts.column(
                layouts.row((self.sentence, 1), self.show_button),
                (self.lay_in(panels), 1),
                *self.ways,
                self.status,
                self.limits,
                self.strip,
            ),
            1,
        )
        self.more.addWidget(self.controls.controls["prior"])
        self._moves = self._moves_panel()

    def _moves_panel(self) -> QWidget:
        """Return the right panel: how an embedding is moved before it is decoded."""
        panel = QWidget(objectName="decode-moves")
        column = layouts.column(margins=(theme.AROUND, theme.BETWEEN, theme.AROUND, theme.AROUND), of=panel)
        for name, control in self.controls.controls.items():
            if name == "prior":
                continue
            if name == "strength":
                layouts.add(column, self.before, self.after)
            control.setMinimumWidth(0)
            control.setMaximumWidth(QWIDGETSIZE_MAX)
            column.addWidget(control)
        column.addStretch(1)
        return panel


class DecodedRows(QWidget):
    """The rows of A and B, arranged so that their pictures are large and of one size."""

    def __init__(self, rows: list[DecodedRow]) -> None:
        super().__init__()
        self._rows = rows
        self._box = QBoxLayout(QBoxLayout.Direction.TopToBottom, self)
        self._box.setContentsMargins(0, 0, 0, 0)
        self._box.setSpacing(theme.INSIDE)
        for row in rows:
            self._box.addWidget(row, 1)

    def minimumSizeHint(self) -> QSize:
        """Return the minimum size of the stacked layout; that of rows side by side would keep the window wide."""
        sizes = [row.minimumSizeHint() for row in self._rows if not row.isHidden()]
        high = sum(size.height() for size in sizes) + theme.INSIDE * max(0, len(sizes) - 1)
        return QSize(max((size.width() for size in sizes), default=0), high)

    def event(self, event: QEvent) -> bool:
        done = super().event(event)
        if event.type() in (QEvent.Type.Resize, QEvent.Type.Show, QEvent.Type.LayoutRequest):
            self._arrange()
        return done

    def _arrange(self) -> None:
        rows = [row for row in self._rows if not row.isHidden()]
        if not rows:
            return
        wide, high, head, gap = self.width(), self.height(), rows[0].head_px, theme.INSIDE
        parts = len(rows)
        above, left = (
            max((rows[0].side(width, height - head, across), across) for across in ACROSS)
            for width, height in (
                (wide, (high - gap * (parts - 1)) // parts),
                ((wide - gap * (parts - 1)) // parts, high),
            )
        )
        is_left = parts > 1 and left[0] > LARGER * above[0]
        layouts.stack(self._box, not is_left)
        for row in rows:
            row.place_tiles(*(left if is_left else above))


class DecodedRow(QWidget):
    """The pictures of one decoder in lines."""

    def __init__(self, name: str, index: int) -> None:
        super().__init__(objectName=name)
        self._place = index
        self.heading, self.facts = layouts.elided(role="strong"), _two_lines()
        self.boxes = [PixelPicture(f"{name}-{column}") for column in range(len(COLUMNS))]
        self._tiles = QWidget()
        self._labels = []
        for title, box in zip(COLUMNS, self.boxes, strict=True):
            box.setParent(self._tiles)
            label = layouts.text(title, "small")
            label.setParent(self._tiles)
            self._labels.append(label)
        layouts.column(self.heading, self.facts, (self._tiles, 1), gap=2, of=self)
        self._tiles.setMinimumSize(LEAST_PX * ACROSS[0], LEAST_PX + self._words_px())

    @property
    def head_px(self) -> int:
        """How high what stands above the pictures is."""
        return self.heading.sizeHint().height() + self.facts.minimumHeight() + 4

    def side(self, width: int, height: int, across: int) -> int:
        """Return the side of a picture in this room, with this many next to each other."""
        wide = (width - (across - 1) * theme.SPACE) // across
        high = height // -(-len(COLUMNS) // across) - self._words_px() - theme.SPACE
        return max(LEAST_PX, min(wide, high))

    def place_tiles(self, side: int, across: int) -> None:
        """Place all pictures, each below its words."""
        label_px = self._words_px()
        for number, (label, box) in enumerate(zip(self._labels, self.boxes, strict=True)):
            line, column = divmod(number, across)
            left, top = column * (side + theme.SPACE), line * (side + label_px + theme.SPACE)
            label.setGeometry(left, top, side, label_px - 2)
            box.setGeometry(left, top + label_px, side, side)

    def _words_px(self) -> int:
        return self._labels[0].sizeHint().height() + 2

    def show_run(
        self, decoder: RunRow, run: DecodedRun | None, original: np.ndarray | None, nearest: QPixmap | None
    ) -> None:
        """Show what a decoder answered; empty squares before it did."""
        source = decoder.facts.get("decodes") or {}
        self.heading.setText(f"{'AB'[self._place]}  {source.get('name', decoder.short_name)}")
        if run is None:
            self.facts.setText(f"by {decoder.short_name}, step {decoder.step:,}")
            for title, box in zip(COLUMNS, self.boxes, strict=True):
                box.show_pixels(None, f"{title}: not decoded yet")
            return
        self.facts.setText(
            f"step {run.of_step:,}, by {run.name} (step {run.step:,}); not kept {run.not_kept:.1f} %; "
            f"nearest of {run.nearest_of:,}"
        )
        pictures = [original, run.mean, None, *run.samples, run.shade]
        for title, box, pixels in zip(COLUMNS, self.boxes, pictures, strict=False):
            box.show_pixels(pixels, f"{title}, decoded by {run.name}" if pixels is not None else title)
        if run.nearest:
            near = run.nearest[0]
            self.boxes[2].show_pixmap(nearest, f"Nearest training picture, cosine {near.cosine:.3f}: {near.caption}")


def _show_way(row: ImageRowWidget, run: DecodedRun | None, index: int) -> None:
    """Show the first noise on its way to the picture, or hide the row where that was not asked for."""
    strip = run.reverse if run is not None else None
    row.setVisible(strip is not None)
    if run is None or strip is None:
        return
    row.setAccessibleName(f"{'AB'[index]}: the first noise on its way to the picture of {run.name}")
    row.show_pictures(
        [
            ImageRowItem("", f"t = {level:,}", "", pixmap=QPixmap(image_of(pixels)))
            for level, pixels in zip(strip.levels, strip.noisy, strict=True)
        ],
        theme.run_color(index, row),
    )


def _two_lines() -> QLabel:
    """Return a quiet text that wraps, with room for two lines, so that nothing moves as it grows."""
    label = layouts.text(role="small", wrap=True, align=Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignTop)
    label.ensurePolished()
    label.setMinimumHeight(2 * label.fontMetrics().lineSpacing())
    return label


def _line(name: str, label: str) -> QLineEdit:
    line = QLineEdit(objectName=name, accessibleName=label, placeholderText=label, clearButtonEnabled=True)
    line.setMaxLength(500)
    return line
