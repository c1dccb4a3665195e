"""The Decode view: a picture or a sentence, decoded by the decoders of runs A and B from the same noises."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import fields, replace
from pathlib import Path
from typing import Final

import numpy as np
from PySide6.QtCore import QTimer
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QLineEdit, QWidget

from explorer import theme
from explorer.intents import MoveAlong, TrainDecoder, ViewIntent
from explorer.model_client.single_request import CachedRequest
from explorer.render_qt.controls import Controls
from explorer.render_qt.panel import PanelWidget
from explorer.run_control import actions
from explorer.views.decode.choices import alike, decoder_of, decoders_of, in_the_making, why_not
from explorer.views.picture_question import PictureQuestionView
from explorer.widgets import layouts
from explorer.widgets.image_strip import StripItem, StripLine
from explorer.widgets.refusal import set_refusal
from explorer.widgets.state_area import Act
from trainer.charts.decode import (
    NOISES,
    STEPS,
    DecodedChart,
    DecodedRun,
    DecodeSettings,
    ReverseStrip,
    panel,
    request_words,
)
from trainer.charts.marks import ImageRow, Panel, RowImage, run_tone
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
EMPTY: Final = ("original", "mean", "nearest", "not kept", *(f"noise {seed}" for seed in range(NOISES)))


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
        self._chart: DecodedChart | None = None
        self._drawn: object = None
        yield
        self.sentence = _line("decode-sentence", "A sentence to decode; empty: the chosen picture")
        self.before = _line("decode-before", "From this text …")
        self.after = _line("decode-after", "… to this one")
        yield
        self.controls = Controls(DecodeSettings, "decode")
        yield
        self.rows = PanelWidget(self.pictures, "decode")
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
        if self.lacks_model():
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
            self.status.setText("" if self.is_whole else "This is a first look, in few steps.")
        elif self.question_now() is None:
            self.status.setText("Drop a picture on this window, or write a sentence.")
        elif not self.asking.busy:
            self.status.setText("Press Enter or Decode (a few seconds).")
        self.controls.controls["prior"].setVisible(bool(self.sentence.text().strip()))
        self.show_progress()
        self._show_missing()
        drawn = [(side, row.id, row.step) for side, row in self.decoders], theme.sides_of(self)
        # Progress is told often, and pictures stay meanwhile.
        if chart is not self._chart or drawn != self._drawn:
            self._chart, self._drawn = chart, drawn
            self.rows.show_panel(self._panel(chart))

    def _panel(self, chart: DecodedChart | None) -> Panel:
        """Return the rows of pictures; empty squares before a decoder answered."""
        decoders = self.decoders
        if chart is not None:
            runs = (replace(run, index=side) for (side, _), run in zip(decoders, chart.runs, strict=True))
            return panel(replace(chart, runs=tuple(runs)))
        cells = tuple(RowImage(-1, "", "", label) for label in EMPTY)
        titles = ((side, f"By {row.short_name} (step {row.step:,})") for side, row in decoders)
        rows = ((ImageRow(f"decoded-{side}-0", title, run_tone(side), cells, large=True),) for side, title in titles)
        return Panel(title="", rows=tuple(rows), notes=())

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
        self.body.addLayout(
            layouts.column(
                layouts.row((self.sentence, 1), self.show_button),
                (self.lay_in(self.rows), 1),
                self.status,
                self.strip,
            ),
            1,
        )
        self.more.addWidget(self.controls.controls["prior"])
        self._moves = self._moves_panel()

    def _moves_panel(self) -> QWidget:
        """Return the right panel: how an embedding is moved before it is decoded."""
        moves = QWidget(objectName="decode-moves")
        column = layouts.column(margins=(theme.AROUND, theme.BETWEEN, theme.AROUND, theme.AROUND), of=moves)
        for name, control in self.controls.controls.items():
            if name == "prior":
                continue
            if name == "strength":
                layouts.add(column, self.before, self.after)
            control.setMinimumWidth(0)
            control.setMaximumWidth(QWIDGETSIZE_MAX)
            column.addWidget(control)
        column.addStretch(1)
        return moves


def _line(name: str, label: str) -> QLineEdit:
    line = QLineEdit(objectName=name, accessibleName=label, placeholderText=label, clearButtonEnabled=True)
    line.setMaxLength(500)
    return line
