"""The Prompts view: fetches class vectors, and shows the calibration pane or the playground."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
from PySide6.QtCore import QTimer
from PySide6.QtGui import QAction, QShowEvent
from PySide6.QtWidgets import QWidget

from explorer.intents import ClassifyPictures
from explorer.models.thumbnails import Thumbnails
from explorer.views.classify.label_form import OF_THE_RUN, LabelForm
from explorer.views.prompts.calibration_pane import CalibrationPane, Sample
from explorer.views.prompts.playground import Playground
from explorer.views.prompts.query import PromptQuery, PromptRequest, PromptResult
from explorer.views.view import View
from explorer.widgets import layouts
from explorer.widgets.current_page_stack import CurrentPageStack
from explorer.widgets.image_strip import PICTURE
from explorer.widgets.progress_row import ProgressRow
from trainer import prompt_suites
from trainer.charts.calibration import CHART as CALIBRATION
from trainer.charts.calibration import CalibrationSettings
from trainer.charts.class_task import choice_suite, too_many_classes
from trainer.charts.measures.prompts import PromptRun
from trainer.charts.prompts import CHART as PROMPTS
from trainer.charts.prompts import PromptSettings
from trainer.charts.settings import options
from trainer.charts.spec import Chart, Request, Target, request_words
from trainer.errors import UserError
from trainer.messages import EmbedAnswer, EmbedImages, Failure
from trainer.prompt_suites import PromptSuite
from trainer.untrusted.bounded.arrays import load_npy

CHARTS: Final[tuple[Chart[Any, Any], ...]] = (CALIBRATION, PROMPTS)
"""Those of the tabs; the second is a playground in the window."""
MOST_SAMPLES: Final = 50
REMEMBER_MS: Final = 400


class PromptsView(View):
    """Temperatures and templates of zero-shot classification."""

    title = "Prompts"
    question = "Calibration of zero-shot probabilities, and the effect of each template on each class."
    icon = "type"
    compares = "scores"
    when_chosen = "Their zero-shot classifiers then appear here."

    def build(self) -> Iterator[None]:
        context = self.context
        self.questions = LabelForm()
        self._name_questions()
        self.asking = PromptQuery(context, self)
        self.pictures = Thumbnails(context.background, self, edge=2 * PICTURE)
        yield
        self.calibration = CalibrationPane(context.background, self.pictures)
        yield
        self.playground = Playground(context.background, self.pictures)
        yield
        self._reading: PromptResult | None = None
        self._vectors: dict[tuple[int, int, str], np.ndarray] = {}
        self._asked_images: set[tuple[int, int, str]] = set()
        self._sample_path = ""
        yield
        tabs = ((chart.label, chart.question) for chart in CHARTS)
        self.tabs = layouts.tab_bar("prompts-tabs", "Calibration or templates", tabs)
        self.stack = CurrentPageStack()
        for pane in (self.calibration, self.playground):
            self.stack.addWidget(pane)
        self.status = layouts.elided(role="small")
        self.working = ProgressRow("prompts-working", self, asks=True)
        self._remembering = QTimer(self, singleShot=True, interval=REMEMBER_MS, timeout=self._remember)
        self._again = QAction("Recompute the predictions", self, objectName="prompts-again", triggered=self._ask_again)
        self._classify = QAction("Open Classify", self, objectName="prompts-classify")
        self._classify.triggered.connect(lambda: self.requested.emit(ClassifyPictures(())))
        yield
        self._lay_out()
        yield
        self._connect()
        self._restore()
        self.calibration.panel.mark(self.context.selection.pairs)

    @property
    def drop_words(self) -> str:
        return "Drop to see its calibrated probabilities" if self.context.selection.runs else ""

    def take(self, paths: Iterable[Path | str]) -> None:
        """Show the probabilities of these images (dropped or pasted), the first of them at once."""
        new = [str(path) for path in paths]
        if new:
            self._sample_path = new[0]
            earlier = [path for path in map(str, self.context.selection.queries) if path not in new]
            self.context.selection.queries = [*new, *earlier]
            self.tabs.setCurrentIndex(CHARTS.index(CALIBRATION))
            self._show_samples()

    def command(self) -> list[str] | None:
        reading = self._reading
        if reading is None or not reading.calibration:
            return None
        calibrated = reading.calibration
        sides = (side for side in reading.request.sides if side.place in reading.places)
        targets = tuple(Target(side.run, side.step) for side in sides)
        request = Request(targets, calibrated[0].dataset, calibrated[0].split)
        settings: CalibrationSettings | PromptSettings = PromptSettings(
            **self._words_of(reading), weights=self.playground.set_weights_of, value=self.playground.value
        )
        chart = CHARTS[self.tabs.currentIndex()]
        if chart is CALIBRATION:
            settings = CalibrationSettings(**self._words_of(reading), tau=tuple(self.calibration.chosen_taus))
        return ["export", chart.name, *request_words(request), *options(settings)]

    def details(self) -> QWidget | None:
        """Return the panel of labels and templates; None while there is no run to ask."""
        has_runs = bool(self.context.selection.runs or self.context.jobs.runs)
        return self.questions if has_runs and self.offers_controls else None

    def actions_for_palette(self) -> list[QAction]:
        return [*self.chart_actions, self._again]

    @property
    def method(self) -> str:  # type: ignore[override]
        """The help of the open tab."""
        return CHARTS[self.tabs.currentIndex()].help_text

    def showEvent(self, event: QShowEvent) -> None:
        if not event.spontaneous():
            self.questions.restore(self.context.settings)  # Classify may have changed them
        super().showEvent(event)

    def refresh(self) -> None:
        selection = self.context.selection
        if not selection.runs or self.lacks_model():
            self.asking.cancel()
            self.working.end()
            self._reading = None
            if not selection.runs:
                self.show_no_run()
            return
        if self._reading is None:
            self.area.loading()
        elif self._reading.calibration:  # else its page says why there is none
            self.show_content()
        if self.questions.suite == OF_THE_RUN:
            self._fill_from_run()
        self._ask()

    def _refuse(self, error: Exception) -> None:
        self.working.end()
        if not isinstance(error, UserError):
            self.context.background.failed.emit(error)
        self.area.failed("Could not compute the predictions", error, retry=self._retry)

    def _retry(self) -> None:
        self._reading = None
        self.refresh()

    # -- asking ------------------------------------------------------------------------------------------------

    def _ask(self, *, again: bool = False) -> None:
        selection, questions = self.context.selection, self.questions
        if len(questions.labels) < 2 or not questions.templates:
            if questions.suite != OF_THE_RUN:
                self._lacks("Write at least two labels and one template.")
            return
        request = PromptRequest(selection.sides, selection.dataset, questions.labels, questions.templates)
        if self.asking.want(request, again=again):
            self.status.setText("")
            self.working.start()
            self.working.show_progress(0.0, "Computing predictions")
            self.area.loading()
        elif self._reading is not None:
            self._show_samples()

    def _ask_again(self) -> None:
        self._vectors.clear()
        self._asked_images.clear()
        self._ask(again=True)

    def _show(self, reading: PromptResult) -> None:
        self._reading = reading
        self.working.end()
        self.status.setText(" ".join(reading.problems.values()))
        if not reading.calibration:
            self.status.setText("")
            why = " ".join(dict.fromkeys(reading.problems.values()))
            if reading.lacks_classes:
                self.show_empty("type", "No classes to compare with", why, self._classify)
                return
            self.area.failed("These images cannot be classified", why, retry=self._ask_again)
            return
        self.show_content()
        self.calibration.show_runs([reading.calibrated(index) for index in (0, 1)])
        self.playground.show_runs([reading.prompted(index) for index in (0, 1)])
        stored = self.context.settings.value("prompts/weights", {})
        if isinstance(stored, dict):
            self.playground.restore_weights(stored.get("templates", ()), stored.get("weights", ()))
        self._show_samples()

    # -- the image whose bars are shown ------------------------------------------------------------------------

    def _show_samples(self) -> None:
        paths = self._sample_paths()
        if self._sample_path not in paths:
            self._sample_path = paths[0] if paths else ""
        index = paths.index(self._sample_path) if paths else -1
        self.calibration.show_samples([Path(path).name for path in paths], index)
        self._show_sample()

    def _sample_paths(self) -> list[str]:
        """Return dropped images, then those of selected pairs, then the snapshot's first."""
        paths = [str(path) for path in self.context.selection.queries]
        run = self._reading.prompts[0] if self._reading and self._reading.prompts else None
        if run is not None:
            chosen = np.flatnonzero(np.isin(run.rows, self.context.selection.pairs))[:MOST_SAMPLES]
            paths += [run.paths[index] for index in chosen.tolist()]
            if not paths:
                paths = list(run.paths[:MOST_SAMPLES])
        return list(dict.fromkeys(paths))[: 2 * MOST_SAMPLES]

    def _show_sample(self) -> None:
        reading, path = self._reading, self._sample_path
        if reading is None or not path:
            self.calibration.show_sample(None)
            return
        cosines = {}
        for index, run in zip(reading.places, reading.calibration, strict=True):
            vector = self._vector(reading.prompted(index), path)
            if vector is not None:
                cosines[index] = run.class_vectors @ vector
        self.calibration.show_sample(Sample(Path(path).name, path, cosines))

    def _vector(self, run: PromptRun | None, path: str) -> np.ndarray | None:
        """Return the file's embedding, which Classify compares too, requesting it unless it is known."""
        if run is None:
            return None
        key = (run.run, run.step, path)
        if key not in self._vectors and key not in self._asked_images:
            self._asked_images.add(key)
            self.context.client.ask(
                EmbedImages(run=run.run, images=(path,), step=run.step),
                done=partial(self._embedded, key),
                failed=partial(self._image_failed, key),
                owner=self,
            )
        return self._vectors.get(key)

    def _embedded(self, key: tuple[int, int, str], answer: EmbedAnswer) -> None:
        if answer.images:
            self._vectors[key] = load_npy(answer.array)[0].astype(np.float64)
            self._show_sample()
        else:
            self._take_stored(key, " ".join(answer.unreadable.values()))

    def _image_failed(self, key: tuple[int, int, str], failure: Failure) -> None:
        if failure.kind == "cancelled":
            self._asked_images.discard(key)
        else:
            self._take_stored(key, failure.words)

    def _take_stored(self, key: tuple[int, int, str], why: str) -> None:
        """Say why the file has no embedding, and take that of the snapshot if it holds the picture."""
        run_id, step, path = key
        for run in self._reading.prompts if self._reading else ():
            if (run.run, run.step) == (run_id, step) and path in run.paths:
                self._vectors[key] = run.image[run.paths.index(path)].astype(np.float64)
                why += " Its bars are of the embedding in the snapshot."
                self._show_sample()
        self.status.setText(why)

    def _sample_chosen(self, index: int) -> None:
        paths = self._sample_paths()
        if 0 <= index < len(paths):
            self._sample_path = paths[index]
            self._show_sample()

    # -- words -------------------------------------------------------------------------------------------------

    def _words_of(self, reading: PromptResult) -> dict[str, Any]:
        request = reading.request
        for name, suite in prompt_suites.prompt_suites().items():
            if (suite.classes, suite.templates) == (request.labels, request.templates):
                return {"suite": name}
        return {"labels": request.labels, "templates": request.templates}

    def _fill_from_run(self) -> None:
        self.context.background.run(
            self,
            choice_suite,
            self.context.workspace,
            self.context.selection.run_a,
            done=self._fill,
            failed=self._refuse,
            key="suite",
        )

    def _fill(self, suite: PromptSuite | None) -> None:
        if self.questions.suite != OF_THE_RUN:
            return
        many = too_many_classes(suite) if suite is not None else ""
        if suite is None or many or len(suite.classes) < 2:
            self._lacks(f"The data of run A has {many or 'fewer than two classes'}. Enter your own labels.")
        else:
            self.questions.fill(suite)

    def _words_changed(self) -> None:
        self._remembering.start()
        self.questions.remember(self.context.settings)
        if self.isVisible() and self.context.selection.runs:
            self._ask()

    def _remember(self) -> None:
        settings, reading = self.context.settings, self._reading
        if reading is not None:
            weights = {"templates": list(reading.request.templates), "weights": list(self.playground.weights)}
            settings.set("prompts/weights", weights)

    def _restore(self) -> None:
        tab = self.context.settings.value("prompts/tab", 0)
        self.tabs.setCurrentIndex(tab if tab in range(len(CHARTS)) else 0)

    # -- putting it together -----------------------------------------------------------------------------------

    def _lacks(self, text: str) -> None:
        """Say which labels or templates are missing, in place of the result or under it."""
        self.status.setText(text)
        if self._reading is None:
            where = "Labels and templates are in the panel at the right; a label set fills in both."
            self.show_empty("type", "No labels yet", f"{text} {where}")

    def _progressed(self, share: float, note: str) -> None:
        if self.working.busy:
            self.working.show_progress(share, f"Computing predictions: {note}")

    def _cancelled(self) -> None:
        self.asking.cancel()
        self.area.cancelled(self._ask_again)

    def _on_tab(self, tab: int) -> None:
        self.stack.setCurrentIndex(tab)
        self.context.settings.set("prompts/tab", tab)

    def _on_snapshot(self, run: int) -> None:
        if self.context.selection.follows(run) and self.isVisible():
            self._ask(again=True)

    def _select(self, key: str, brush: tuple[float, ...] | None) -> None:
        if (pairs := self.calibration.panel.pairs_in(key, brush)) is not None:
            self.context.selection.pairs = pairs

    def _pairs_changed(self) -> None:
        self.calibration.panel.mark(self.context.selection.pairs)
        if self.isVisible() and self._reading is not None:
            self._show_samples()

    def _connect(self) -> None:
        selection = self.context.selection
        for signal in (selection.runs_changed, selection.step_changed, selection.dataset_changed):
            signal.connect(self.refresh_if_seen)
        for signal in (selection.queries_changed, selection.pairs_changed):
            signal.connect(self._pairs_changed)
        self.context.jobs.snapshots_changed.connect(self._on_snapshot)
        self.questions.changed.connect(self._words_changed)
        self.questions.run_wanted.connect(self._fill_from_run)
        self.asking.read.connect(self._show)
        self.asking.failed.connect(self._refuse)
        self.asking.progressed.connect(self._progressed)
        self.working.cancelled.connect(self._cancelled)
        self.calibration.sample_chosen.connect(self._sample_chosen)
        self.calibration.panel.plot_brushed.connect(self._select)
        self.playground.weights_changed.connect(self._remembering.start)
        self.tabs.currentChanged.connect(self._on_tab)

    def _name_questions(self) -> None:
        parts: Sequence[tuple[QWidget, str]] = (
            (self.questions, "questions"),
            (self.questions.suites, "suites"),
            (self.questions.labels_edit, "labels"),
            (self.questions.templates_edit, "templates"),
            (self.questions.edit, "edit"),
            (self.questions.unfold, "unfold"),
        )
        for widget, name in parts:
            widget.setObjectName(f"prompts-{name}")

    def _lay_out(self) -> None:
        self.stand_for(self.tabs, [chart.name for chart in CHARTS])
        layouts.add(self.body, (self.stack, 1), self.status)
