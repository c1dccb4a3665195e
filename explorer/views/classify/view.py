"""The Classify view: each model's prediction for an image."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from PySide6.QtCore import QDir, QSize, Qt
from PySide6.QtGui import QAction, QHideEvent, QShowEvent
from PySide6.QtWidgets import QFileDialog, QLabel, QPushButton, QSplitter, QWidget

from explorer import theme
from explorer.intents import ClassifyPictures, ViewIntent
from explorer.models.thumbnails import Thumbnails
from explorer.state.selection import Side
from explorer.views.chart_pane import request_of
from explorer.views.classify.label_form import OF_THE_RUN, LabelForm
from explorer.views.classify.preview import ImagePreview
from explorer.views.classify.query import ClassifyQuery, ClassifyRequest, Prediction
from explorer.views.classify.truth import TruthPicker
from explorer.views.classify.verdict import LETTERS, Verdict, ranking, verdict
from explorer.views.view import View, steps_in_words
from explorer.widgets import layouts
from explorer.widgets.bars import BarChart, BarColumn
from explorer.widgets.flow_row import FlowRow
from explorer.widgets.image_strip import PICTURE, ROLES, ImageStrip, StripItem, StripLine
from explorer.widgets.refusal import set_refusal
from trainer import prompt_suites
from trainer.charts.class_task import choice_suite, texts_of_pictures
from trainer.charts.disputed_pictures import disputed_pictures
from trainer.charts.marks import run_tone
from trainer.config import default_paths
from trainer.errors import UserError, reason_words
from trainer.experiments.seed_truth import measured_apart
from trainer.prompt_suites import PromptSuite
from trainer.store import Workspace
from trainer.store.caption_words import CaptionWords, read_caption_words

EXPORTED: Final = 200
FILTER: Final = "Images (*.jpg *.jpeg *.png *.webp *.gif *.bmp *.tif *.tiff *.ppm *.pgm *.avif);;All files (*)"


class ClassifyView(View):
    """Dropped images and the label that each run predicts."""

    title = "Classify"
    question = "Zero-shot predictions of each run for your images."
    icon = "image"
    compares = "pictures"

    def build(self) -> Iterator[None]:
        context = self.context
        self.questions = LabelForm(is_whole=False)
        self.asking = ClassifyQuery(context.client, self)
        self.pictures = Thumbnails(context.background, self, edge=2 * PICTURE)
        yield
        self.strip = ImageStrip(self.pictures.get)
        self.right_label = TruthPicker(context.settings, self.strip.chosen)
        self.bars = BarChart()
        self.bars.setObjectName("classifyBars")
        self.sight = ImagePreview(context.background, self.pictures.get)
        self._look_first = self._no_labels = ""
        self._truth_of: tuple[Sequence[int], frozenset[str]] = ((), frozenset())
        self._caption_folders: list[Path] = []
        self._caption_words: list[CaptionWords | None] = []
        self._apart = False
        self._browse = QAction("Add images…", self, triggered=self.browse, objectName="classifyBrowse")
        self._data_pictures: set[str] = set()  # of any data that was shown
        # Some of them are there because two runs disagree on them: shares of them are no accuracy.
        self._picked: set[str] = {*self._paths} if default_paths.is_sample(context.workspace.folder) else set()
        self._use_pictures = QAction("Use pictures of the data", self, objectName="classifyDataPictures")
        self._use_pictures.triggered.connect(self._take_pictures)
        self._again = QAction("Recompute the predictions", self, triggered=self.asking.ask_again)
        self._show_map = QAction("Show on the map", self, objectName="classifyMap")
        self._show_map.triggered.connect(self._go_to_map)
        self._clear = QAction("Remove all images", self, triggered=lambda: self._remove(self._paths))
        yield
        self._build()
        yield
        self._connect()

    def showEvent(self, event: QShowEvent) -> None:
        if not event.spontaneous():
            self.questions.restore(self.context.settings)  # Prompts may have changed them
        super().showEvent(event)

    # -- what the window calls ---------------------------------------------------------------------------------

    def carry_out(self, intent: ViewIntent) -> None:
        match intent:
            case ClassifyPictures(paths):
                self.take(paths)
            case _:
                super().carry_out(intent)

    def take(self, paths: Iterable[Path | str]) -> None:
        """Add image files (dropped, pasted or browsed) and show the first of them."""
        new = [str(path) for path in paths]
        if not new:
            return
        self._look_first = new[0]
        selection = self.context.selection
        selection.queries = [*selection.queries, *new]
        self._show_images()
        self._look_first = ""
        self.strip.choose(new[0], through=new[-1])
        self.strip.setFocus()

    def refresh(self) -> None:
        """Show the selected images and runs, and request missing predictions."""
        runs = self.context.selection.runs
        if not any(map(self.context.jobs.run, runs)) and not self.context.jobs.runs:
            self.show_no_run()
            return
        if self.lacks_model():
            return
        if runs:
            self.context.client.warm_up(runs)
        self._read_caption_words()
        if self.questions.suite == OF_THE_RUN:
            self._fill_from_run()
        self._show_images()

    def command(self) -> list[str] | None:
        """Return the `classify` command for the images shown, the current one first."""
        sides, paths = self.context.selection.sides, self._paths
        questions = self.questions
        if not (sides and paths and self._has_words):
            return None
        current = self.strip.current or paths[0]
        images = [current, *[path for path in paths if path != current]][:EXPORTED]
        suite = prompt_suites.prompt_suites().get(questions.suite)
        classes = ["--labels", *questions.labels, "--templates", *questions.templates]
        if suite and (suite.classes, suite.templates) == (questions.labels, questions.templates):
            classes = ["--suite", suite.name]
        runs = dict.fromkeys(str(side.run) for side in sides)
        steps = [self.asking.answering(side.run, side.step) for side in sides]
        return ["classify", *images, "--runs", *runs, *steps_in_words(steps), *classes]

    def details(self) -> QWidget | None:
        """Return the panel of labels and templates while they are edited; None while there is no run to ask."""
        has_runs = bool(self.context.selection.runs or self.context.jobs.runs)
        return self.questions if has_runs and self.offers_controls and self.questions.edit.isChecked() else None

    def close_panel(self) -> bool:
        was_open = self.questions.edit.isChecked()
        self.questions.edit.setChecked(False)
        return was_open

    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        if not event.spontaneous():
            self.close_panel()

    def actions_for_palette(self) -> list[QAction]:
        """Return the actions: browse, ask again, remove all."""
        return [self._browse, self._again, *([self._show_map] if self._paths else []), self._clear]

    # -- what a person does ------------------------------------------------------------------------------------

    def browse(self) -> None:
        """Open a file dialog for images, in the folder of the last ones."""
        settings = self.context.settings
        dialog = QFileDialog(self, "Choose images", str(settings.value("classify/folder", QDir.homePath())), FILTER)
        dialog.setObjectName("classifyFiles")
        dialog.setFileMode(QFileDialog.FileMode.ExistingFiles)
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.filesSelected.connect(self.take)
        dialog.accepted.connect(lambda: settings.set("classify/folder", dialog.directory().absolutePath()))
        dialog.open()

    def _take_pictures(self) -> None:
        """Add pictures of the chosen data and split, those that both runs dispute first."""

        def take(pictures: tuple[list[str], int]) -> None:
            paths, disputed = pictures
            if disputed:
                self._picked.update(paths)
            if not paths:
                text = "No picture of these data is on this computer."
                self.failed.emit(text, "Drop or browse for images of your own.")
            self._data_pictures.update(paths)
            self.take(paths)

        request = request_of(self.context.selection)
        self.context.background.run(self, disputed_pictures, self.context.workspace, request, done=take)

    def _go_to_map(self) -> None:
        if self._paths:
            self.context.selection.place(self._paths)

    def _remove(self, paths: Sequence[str]) -> None:
        gone = set(paths)
        self.context.selection.queries = [path for path in self._paths if path not in gone]

    # -- showing -----------------------------------------------------------------------------------------------

    @property
    def _paths(self) -> list[str]:
        return [str(path) for path in self.context.selection.queries]

    @property
    def _has_words(self) -> bool:
        return bool(self.questions.labels and self.questions.templates)

    def _show_images(self) -> None:
        if not self._paths:
            self.show_empty(
                "image-plus",
                "Drop images here",
                "Drop image files anywhere on this window, paste one from the clipboard, or add some. Each run then "
                "ranks your labels.",
                *((self._use_pictures,) if self.context.selection.runs else ()),
                self._browse,
            )
        else:
            self.show_content()
        self._read_truth()
        self._ask()
        self._show_strip()
        self._show_current()

    def _ask(self) -> None:
        models = tuple((side.run, side.step) for side in self.context.selection.sides)
        request = ClassifyRequest(models, self.questions.labels, self.questions.templates)
        current, paths = self._look_first or self.strip.current, self._paths
        first = [current] if current in paths else []
        self.asking.want([*first, *[path for path in paths if path != current]], request)

    def _show_strip(self, changed: Sequence[str] | None = None) -> None:
        paths = self._paths
        # A strip of a thousand images is not rebuilt for the one that was answered.
        before = {item.path: item for item in self.strip.items} if changed is not None else {}
        again = set(changed or ())
        items = [before[path] if path in before and path not in again else self._strip_item(path) for path in paths]
        self.strip.show_items(items)
        self._count.setText(self._summary(items))
        set_refusal(self._remove_button, "" if paths else "There is no image yet.")
        self._map_button.setVisible(bool(paths))
        self._show_truth()

    def _strip_item(self, path: str) -> StripItem:
        problem = self.asking.problem(path)
        sides, said = self.context.selection.sides, self._said(path)
        lines = tuple(
            StripLine(prediction.label, run_tone(side.place), prediction.share)
            for side, prediction in zip(sides, said, strict=True)
            if prediction is not None
        )
        outcome = self._verdict_of(path, said)
        mark = outcome.mark if outcome else ""
        tip = "\n".join([Path(path).name, problem or (outcome.words if outcome else "")]).strip()
        return StripItem(path, lines, mark, "Cannot be read" if problem else "", tip)

    def _summary(self, items: Sequence[StripItem]) -> str:
        n = len(items)
        picked = n > 1 and self._picked.issuperset(self._paths)
        parts = [f"{n:,} image{'' if n == 1 else 's'}{', some picked because the runs disagree' * picked}"]
        sides = self.context.selection.sides
        labels = [[p.label if p else "" for p in self._said(item.path)] for item in items]
        judged = [each for each in labels if len(each) == 2 and all(each)]
        if judged and n > 1 and not self._apart:
            agreed = [a for a, b in judged if a == b]
            guesses = sum(any(self._is_untrained(side.run, label) for side in sides) for label in agreed)
            about = f" ({guesses:,} by labels unseen in training)" if guesses else ""
            parts.append(f"A and B agree on {len(agreed):,} of {len(judged):,}{about}")
        truths = [(self.right_label.label_of(item.path), each) for item, each in zip(items, labels, strict=True)]
        for index, side in enumerate(sides):
            judged_of_run = [(truth, each[index] == truth) for truth, each in truths if truth and each[index]]
            if judged_of_run:
                right = sum(is_right for _, is_right in judged_of_run)
                untrained = {truth for truth in dict(judged_of_run) if self._is_untrained(side.run, truth)}
                unseen = sum(truth in untrained for truth, _ in judged_of_run)
                about = f" ({unseen:,} by labels unseen in its training)" if unseen else ""
                parts.append(f"{LETTERS[side.place]} right on {right:,} of {len(judged_of_run):,}{about}")
        if any(truth and any(each) for truth, each in truths):
            parts.append(f"chance {100 / len(self.questions.labels):.1f} %")
        if broken := sum(bool(item.problem) for item in items):
            parts.append(f"{broken:,} could not be read")
        return " · ".join(word for word in parts if word)

    def _is_untrained(self, run: int, label: str) -> bool:
        """Return whether the training captions of a run lack words of a label; False where they are not known."""
        row, vocabularies = self.context.jobs.run(run), dict(zip(self._caption_folders, self._caption_words))
        vocabulary = vocabularies.get(row.folder) if row is not None else None
        return vocabulary is not None and bool(vocabulary.unseen(label))

    def _show_truth(self) -> None:
        self.right_label.setVisible(bool(self._paths and self.questions.labels))
        self.right_label.show_labels(self.questions.labels, self._paths)
        self._head.arrange()

    def _read_truth(self) -> None:
        """Read what the data of the first run say of the images that are theirs."""
        pictures = frozenset(self._paths)
        question = self.context.selection.runs[:1], pictures
        if pictures and question != self._truth_of:
            self._truth_of = question
            for run in question[0]:
                arguments = texts_of_pictures, self.context.workspace, run, pictures
                self.context.background.run(self, *arguments, done=self._take_truth, key="truth")

    def _take_truth(self, texts: dict[str, tuple[str, str]]) -> None:
        self.right_label.of_data = texts
        self._data_pictures |= texts.keys()
        self._show_strip()
        self._show_current()

    def _set_truth(self, key: object) -> None:
        self.right_label.keep(key, self._paths)
        self._show_strip()
        self._show_current()

    def _show_current(self) -> None:
        path = self.strip.current
        self.sight.look_at(path)
        self._show_bars(path)

    def _show_bars(self, path: str) -> None:
        said = self._said(path)
        order = ranking(said)
        first = next((prediction for prediction in said if prediction is not None), None)
        names = [first.labels[index] for index in order] if first else []
        broken = bool(self.asking.problem(path))
        sides = self.context.selection.sides
        columns = [] if broken else [self._column(side, p, order) for side, p in zip(sides, said, strict=True)]
        unseen = {row for row, name in enumerate(names) if self.questions.unseen_words(name)}
        self.bars.show_bars(names, columns, stale=self.asking.is_stale(path), marked=unseen)
        self._show_verdict(path, said)

    def _said(self, path: str) -> list[Prediction | None]:
        return [self.asking.prediction(path, side.run, side.step) for side in self.context.selection.sides]

    def _column(self, side: Side, prediction: Prediction | None, order: Sequence[int]) -> BarColumn:
        shares = tuple(float(prediction.probabilities[index]) for index in order) if prediction else ()
        alone = prediction is not None and prediction.shares == "none"
        if prediction and alone:
            shares = (max(0.0, float(prediction.cosines[0])),)
        note = self.asking.trouble(side.run, side.step)
        if prediction:
            gone = side.step not in (None, prediction.step)
            note = f"step {prediction.step:,}{f' ({side.step:,} not kept)' if gone else ''}"
            note += {"softmax": "", "sigmoid": " · each label by itself", "none": " · cosine"}[prediction.shares]
        texts = (f"{prediction.cosines[0]:.3f}",) if prediction and alone else ()
        adds_up = prediction is None or prediction.shares == "softmax"
        return BarColumn(self._name(side), note, run_tone(side.place), shares, texts, adds_up)

    def _verdict_of(self, path: str, said: Sequence[Prediction | None]) -> Verdict | None:
        sides, truth = self.context.selection.sides, self.right_label.label_of(path)
        names = [*map(self._name, sides)]
        untrained = {
            label: [name for name, side in zip(names, sides, strict=True) if self._is_untrained(side.run, label)]
            for label in {truth, *(prediction.label for prediction in said if prediction is not None)}
        }
        why = self.right_label.why(path)
        return verdict(said, names, truth, apart=self._apart, untrained=untrained, why=why)

    def _show_verdict(self, path: str, said: Sequence[Prediction | None]) -> None:
        sides = self.context.selection.sides
        outcome = self._verdict_of(path, said)
        if problem := self.asking.problem(path):
            self._show_message("triangle-alert", "bad", problem)
        elif not sides:
            has_runs = bool(self.context.jobs.runs)
            text = "Choose run A and run B above." if has_runs else "No run yet: see Home."
            self._show_message("info", "secondary", text)
        elif not self._has_words:
            self._show_message("info", "secondary", self._missing_words())
        elif outcome is not None:
            sign = outcome.mark or "image"
            self._show_message(sign, ROLES.get(sign, "secondary"), outcome.words)
        elif self.asking.waiting:
            state = self.context.client.state("models")
            self._show_message(
                "loader", "secondary", "Predicting…" if state in ("warm", "busy") else "Loading the models…"
            )
        else:
            trouble = next((t for side in sides if (t := self.asking.trouble(side.run, side.step))), "")
            self._show_message("triangle-alert" if trouble else "image", "warn" if trouble else "secondary", trouble)

    def _missing_words(self) -> str:
        """Return who waits for whom: the labels are being read, or the person has to write some."""
        if self.questions.suite == OF_THE_RUN and not self.questions.labels:
            return self._no_labels or "Reading the labels of run A's data…"
        return "Waiting for labels: add one above."

    def _show_message(self, sign: str, role: str, text: str) -> None:
        self._verdict_sign.setPixmap(theme.icon(sign, 20, role).pixmap(QSize(20, 20)))
        self._verdict_sign.setAccessibleName(f"Sign: {text}")
        self._verdict_sign.setVisible(bool(text))
        self._verdict.setText(text)
        self._sign_now = sign, role

    # -- words and runs ----------------------------------------------------------------------------------------

    def _fill_from_run(self) -> None:
        if (run := self.context.selection.run_a) is not None:
            arguments = choice_suite, self.context.workspace, run
            self.context.background.run(self, *arguments, done=self._fill, failed=self._unfilled, key="suite")

    def _fill(self, suite: PromptSuite | None) -> None:
        if self.questions.suite != OF_THE_RUN:
            return
        if suite is None:
            self._no_labels = "Waiting for labels: run A has stored no captions to take them from. Enter some."
            self.questions.write("", "")
        else:
            self._no_labels = ""
            self.questions.fill(suite)
        self._show_current()

    def _unfilled(self, error: Exception) -> None:
        if not isinstance(error, UserError):
            self.context.background.failed.emit(error)
        self._no_labels = f"Waiting for labels: those of run A cannot be read. {reason_words(error)} Enter some."
        self._show_current()

    def _read_caption_words(self) -> None:
        """Read which words the runs were trained on, and whether they were measured on different data."""
        rows = {side: self.context.jobs.run(side.run) for side in self.context.selection.sides}
        names = [self._name(side) for side, row in rows.items() if row is not None]
        folders = [row.folder for row in rows.values() if row is not None]
        # Of a run that has not begun they are there later.
        if folders != self._caption_folders or None in self._caption_words:
            self._caption_folders = folders
            take = partial(self._take_caption_words, names)
            arguments = self.context.workspace, self.context.selection.runs, folders
            self.context.background.run(self, _words_and_data, *arguments, done=take, key="caption words")

    def _on_snapshots(self, run: int) -> None:
        """Read them again: a run has begun, or is measured on data that the other was or was not measured on."""
        if run in self.context.selection.runs:
            self._caption_folders = []
            if self.isVisible():
                self._read_caption_words()

    def _take_caption_words(self, names: Sequence[str], read: tuple[list[CaptionWords | None], bool]) -> None:
        self._caption_words, apart = read
        self.questions.take_caption_words(names, self._caption_words)
        self._apart = apart
        self._show_strip()
        self._show_current()

    def _words_changed(self) -> None:
        self.questions.remember(self.context.settings)
        if self.isVisible():
            self._ask()
            self._show_strip()
            self._show_current()

    def _name(self, side: Side) -> str:
        name = self.context.jobs.name_of(side.run)
        if all(other.run != side.run for other in self.context.selection.sides if other.place != side.place):
            return name
        step = self.asking.answering(side.run, side.step)
        return f"{name}, last step" if step is None else f"{name}, step {step:,}"

    # -- putting it together -----------------------------------------------------------------------------------

    def _connect(self) -> None:
        selection, client, jobs = self.context.selection, self.context.client, self.context.jobs
        self.questions.changed.connect(self._words_changed)
        self.questions.run_wanted.connect(self._fill_from_run)
        self.questions.edit.toggled.connect(lambda _: self.details_changed.emit())
        self.asking.answered.connect(self._show_strip)
        self.asking.changed.connect(lambda: self._show_bars(self.strip.current))
        self.strip.current_changed.connect(self._current_changed)
        self.strip.selectionModel().selectionChanged.connect(lambda *_: self._show_truth())
        self.right_label.picked.connect(self._set_truth)
        self.strip.remove_asked.connect(self._remove)
        self.pictures.arrived.connect(self.strip.picture_arrived)
        for signal in (selection.queries_changed, selection.runs_changed, selection.step_changed):
            signal.connect(self.refresh_if_seen)
        selection.dataset_changed.connect(self._data_changed)
        client.state_changed.connect(lambda *_: self._show_bars(self.strip.current))
        jobs.runs_changed.connect(self._runs_changed)
        jobs.run_ended.connect(self._run_ended)
        jobs.snapshots_changed.connect(self._on_snapshots)
        theme.theme().follow(self._recolor)

    def _current_changed(self, path: str) -> None:
        if path and path in self._paths:
            self._ask()
        self._show_current()

    def _runs_changed(self, _rows: object) -> None:
        # Names may have changed; the empty state may be over.
        if self.isVisible() and self.is_empty:
            self.refresh()
        elif self.isVisible():
            self._show_bars(self.strip.current)

    def _data_changed(self) -> None:
        """Replace pictures of the data that was shown by some of these; images of a person's own stay."""
        if self._paths and self._data_pictures.issuperset(self._paths):
            self.context.selection.propose(queries=())
            if self.isVisible():
                self._take_pictures()

    def _run_ended(self, row: object) -> None:
        if getattr(row, "id", None) in {run for run, _ in self.asking.request.models}:
            self.asking.ask_again()

    def _recolor(self) -> None:
        self._show_message(*self._sign_now, self._verdict.text())

    def _build(self) -> None:
        self._verdict = layouts.text(role="title", name="classifyVerdict", wrap=True)
        self._verdict_sign, self._sign_now = QLabel(), ("image", "secondary")
        self._count = layouts.text(role="secondary", wrap=True)
        self._count.setObjectName("classifyCount")
        self.strip.setObjectName("classifyStrip")
        line = layouts.row((self._verdict_sign, 0, Qt.AlignmentFlag.AlignTop), (self._verdict, 1))
        right = layouts.panel(
            layouts.column(line, theme.INSIDE, (self.bars, 1), gap=theme.SPACE, margins=(theme.BETWEEN, 0, 0, 0))
        )
        self.splitter = QSplitter(Qt.Orientation.Horizontal, objectName="classifySplitter")
        self.splitter.setChildrenCollapsible(False)
        for index, (part, stretch) in enumerate(((self.sight, 2), (right, 3))):
            self.splitter.addWidget(part)
            self.splitter.setStretchFactor(index, stretch)
        self.splitter.restoreState(self.context.settings.state("classify/splitter"))
        self.splitter.splitterMoved.connect(
            lambda *_: self.context.settings.set_state("classify/splitter", self.splitter.saveState())
        )
        self.main.addWidget(self.questions.suites)
        # What the summary says grows with the answers, and moves no control.
        self._head = self._strip_head()
        head = (self._head, self._count, self.strip)
        layouts.add(self.body, self.questions.chip_bar, (self.splitter, 1), layouts.hairline(), *head)

    def _strip_head(self) -> FlowRow:
        add = QPushButton("Add images…", objectName="classifyAdd", clicked=self.browse)
        theme.keep_icon(add, "image-plus")
        self._remove_button = QPushButton("Remove", objectName="classifyRemove", toolTip="Remove the image (Delete)")
        theme.set_role(self._remove_button, "quiet")
        theme.keep_icon(self._remove_button, "trash-2", role="secondary")
        self._remove_button.clicked.connect(lambda: self._remove([self.strip.current]))
        self._map_button = QPushButton("Show on the map", objectName="classifyShowMap", visible=False)
        self._map_button.setToolTip("Place these images on each run's map")
        theme.set_role(self._map_button, "quiet")
        theme.keep_icon(self._map_button, "chart-scatter", role="secondary")
        self._map_button.clicked.connect(self._go_to_map)
        row = FlowRow()
        row.add(self.right_label, gap=theme.BETWEEN)
        for button in (self._map_button, self._remove_button, add):
            row.add(button, gap=theme.INSIDE, right=True)
        return row


def _words_and_data(
    workspace: Workspace, runs: Sequence[int], folders: Sequence[Path]
) -> tuple[list[CaptionWords | None], bool]:
    return [*map(read_caption_words, folders)], measured_apart(workspace, runs)
