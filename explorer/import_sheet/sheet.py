"""The import dialog: contents of a folder, table or tar, how it is read, ten of its pairs, and its problems."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Final

from PySide6.QtCore import QTimer, Signal
from PySide6.QtGui import QAction, QDragEnterEvent, QDropEvent, QGuiApplication, QShowEvent
from PySide6.QtWidgets import QDialog, QWidget

from explorer import theme
from explorer.event_loop.background import Background
from explorer.export import shell_command
from explorer.import_sheet import dropped_files, summary_text, survey_result
from explorer.import_sheet.both_row import BothRow
from explorer.import_sheet.footer import Footer, classify_words
from explorer.import_sheet.options import Cost, Options, PathLine, labeled
from explorer.import_sheet.report import Line
from explorer.import_sheet.result_tabs import ResultTabs
from explorer.import_sheet.survey_result import DataSource
from explorer.intents import ClassifyPictures, TrainBoth, TrainOnImport
from explorer.model_client.client import ModelClient
from explorer.model_client.one_shot import WAITS
from explorer.widgets import layouts
from explorer.widgets.drop_overlay import refuse_drops
from explorer.widgets.elided_label import ElidedLabel
from explorer.widgets.progress_row import Ticket
from explorer.widgets.refusal import set_refusal
from explorer.widgets.wrapped_label import WrappedLabel
from trainer import config
from trainer.messages import Failure, ReadData, ReadDataAnswer
from trainer.scheduling.paces import Pace

CHANGE_MS: Final = 500
"""After the last change of an option the data is read again."""
MOST_WIDE, MOST_HIGH = 1_240, 900
READING: Final = "The data are being read."
NO_PAIRS: Final = "Name a folder, table or tar with pairs first."


class ImportSheet(QDialog):
    """A dialog that reads data in a trainer process and previews it. Enter trains, Esc closes.

    Attributes:
        reading: What is shown; None while nothing was read.
    """

    requested = Signal(object)  # A `TrainOnImport`, a `TrainBoth`, or a `ClassifyPictures` instead.
    shown = Signal()  # What is read is on the sheet, or why it cannot be.
    asked_in_background = Signal(int)  # The number of a question that is pending while the user has hidden the dialog.

    def __init__(
        self,
        workspace: Path,
        client: ModelClient,
        background: Background,
        *,
        path: str = "",
        compare: bool = False,
        more_pairs: tuple[int, int] | None = None,
        paces: Callable[[], tuple[Pace, ...]] = tuple,
        parent: QWidget | None = None,
    ) -> None:
        """Build the dialog and start reading `path` if it is given; with `compare` two runs train on the data.

        `paces` returns how fast earlier runs trained; called on a thread. `more_pairs`, how many pairs an experiment
        held out and how many would be enough, sets a larger held-out share.
        """
        super().__init__(parent, objectName="import-data", windowTitle="Import data", modal=True)
        self.setAcceptDrops(True)
        self._workspace, self._client, self._background = workspace, client, background
        self.reading: DataSource | None = None
        self._recognized: config.Data | None = None
        self.pending: int | None = None
        self._lines: list[Line] = []
        self._read_path = ""
        self._undecided, self._decided = "", False
        self._has_own_split = False
        self._in_background = False
        self._others: tuple[config.Data, ...] = ()
        self._changed = QTimer(self, singleShot=True, interval=CHANGE_MS, timeout=self._read_changed)
        self._actions = {
            "folder": self._action("Choose a folder…", lambda: self.path.choose("folder")),
            "file": self._action("Choose a table or tar…", lambda: self.path.choose("file")),
            "again": self._action("Read again", self.read_again),
            "classify": self._action("Classify these images", self._classify),
            "other": self._action("", self._read_other),
            "as_it_is": self._action("Train on these classes anyway", self._keep_as_it_is),
        }
        self._compare = compare
        self._more_pairs, self._has_preset = more_pairs, False
        self._build()
        if compare:
            self.start.setText("Train both on these pairs")  # at once: no form follows
            background.run(self, paces, done=self.both.set_paces, failed=lambda _: None, key="paces")
        room = (parent or self).size() if parent else None
        wide, high = (room.width(), room.height()) if room else (1_000, 780)
        layouts.resize_within_screen(self, min(MOST_WIDE, max(760, wide - 240)), min(MOST_HIGH, max(520, high - 120)))
        refuse_drops(self)
        self.path.setText(path)
        self._show()
        if path:
            self.read_path()
        else:
            self.path.setFocus()

    # -- what the person does ----------------------------------------------------------------------------------

    def read_path(self) -> None:
        """Detect the type of the path in the field and read it."""
        self._changed.stop()
        path = self.path.text().strip()
        self._forget()
        self._read_path = path
        if not path:
            self._show()
            return
        self._ask(ReadData(path=path, image_size=self.image_size))

    def _read_edited(self) -> None:
        """Read another path when the field is left, as by Tab: the pairs below are then those of the path above."""
        if self.path.text().strip() != self._read_path:
            self.read_path()

    def read_again(self) -> None:
        """Read the same data again with the options in the form."""
        data = self.chosen()
        if data is None:
            self.read_path()
        else:
            self._ask(ReadData(data=survey_result.as_options(data), image_size=self.image_size))

    def open_pictures(self) -> None:
        """Open and prepare every image, as a run would, to find those with problems."""
        data = self.chosen()
        if data is not None:
            self._ask(ReadData(data=survey_result.as_options(data), image_size=self.image_size, opened=True))

    def chosen(self) -> config.Data | None:
        """Return the data as the form describes them; None until a type is detected."""
        return None if self._recognized is None else self.options.form.value()

    @property
    def image_size(self) -> int:
        """The side of the prepared images, in pixels."""
        return self.cost.size_px

    def command(self) -> list[str]:
        """Return the arguments of the `trainer` command that does the same without the window: trains or reads."""
        if self.start.isEnabled() and self.both.run is not None:
            return self.both.command()
        path = self.path.text().strip()
        if self._recognized is not None:
            # Absolute: the command may be given in another folder.
            path = getattr(self._recognized, survey_result.path_field(type(self._recognized)))
        return survey_result.show_command(path, self._recognized, self.chosen(), self.image_size, decided=self._decided)

    def accept(self) -> None:
        """Start training on the data shown; images already opened are not opened again."""
        if not self.start.isEnabled() or self.reading is None:
            return
        reading = self.reading
        pairs, repeat = reading.to_train_on(), reading.captions_repeat
        run, data = self.both.run, reading.data
        both = TrainBoth(run, self.both.seeds) if run is not None else None
        super().accept()
        self.requested.emit(both or TrainOnImport(data, pairs, self.image_size, repeat))

    def done(self, result: int) -> None:
        """Close the dialog and cancel the request in progress."""
        self._stop()
        super().done(result)

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        if dropped_files.dropped(event.mimeData()).data:
            event.acceptProposedAction()

    def dropEvent(self, event: QDropEvent) -> None:
        files = dropped_files.dropped(event.mimeData())
        if files.data:
            event.acceptProposedAction()
            self.path.setText(files.data)
            self.read_path()

    # -- asking ------------------------------------------------------------------------------------------------

    def _ask(self, question: ReadData) -> None:
        self._stop()
        ticket = self.working.start()
        ticket(0.0, "Starting")
        self.pending = self._client.ask(
            question,
            done=partial(self._take, ticket, question),
            failed=partial(self._fail, ticket),
            progress=partial(self._on_progress, ticket),
            owner=self,
        )
        self._show_background()
        self._show()

    def _continue_in_background(self) -> None:
        """Hide the dialog and continue reading."""
        self.hide()
        self._in_background = True
        self._show_background()

    def _show_background(self) -> None:
        if self._in_background and self.pending is not None:
            self.asked_in_background.emit(self.pending)

    def showEvent(self, event: QShowEvent) -> None:
        self._in_background = False
        super().showEvent(event)

    def _on_progress(self, ticket: Ticket, share: float, note: str) -> None:
        if ticket.cancelled:
            return
        ticket(share, note)
        if self.reading is None:
            self.tabs.explain(summary_text.waiting(note) if note.startswith(WAITS) else summary_text.LOOKING)

    def _stop(self) -> None:
        """Cancel the pending request, if any, and discard its result."""
        question, self.pending = self.pending, None
        self.working.end()
        self._background.forget(self, "report")
        if question is not None:
            self._client.cancel(question)

    def _cancelled(self) -> None:
        self._stop()
        self._show()
        if self.reading is None:
            self.tabs.explain(summary_text.CANCELLED)
        self.shown.emit()

    def _take(self, ticket: Ticket, question: ReadData, answer: ReadDataAnswer) -> None:
        if ticket.cancelled:
            return
        self.pending = None
        self.working.end()
        reading = survey_result.reading(answer)
        if self._recognized is None:
            self._recognized = reading.data
        if not question.data:
            self.options.show_data(reading.data)
            self._undecided, self._others = reading.question, reading.alternatives
            self._actions["as_it_is"].setText(summary_text.keep_label(reading.data))
            for other in self._others[:1]:
                self._actions["other"].setText(summary_text.way(other))
        self._background.run(
            self,
            survey_result.with_report,
            reading,
            self.reading,
            done=lambda both: self._take_report(*both),
            key="report",
        )

    def _take_report(self, reading: DataSource, lines: list[Line]) -> None:
        self.reading, self._lines = reading, lines
        self.options.offer_columns(reading.columns)
        self._has_own_split = reading.has_own_split if not reading.opened else self._has_own_split
        before = self._more_pairs[0] if self._more_pairs else 0
        self.options.show_split(reading.pairs if reading.opened else {}, self._has_own_split, before)
        has_preset = self._preset_share(reading)
        self._show()
        self.shown.emit()
        if not reading.opened and not reading.trouble and reading.is_small and not self._undecided:
            self.open_pictures()
        elif has_preset:
            self.read_again()

    def _preset_share(self, reading: DataSource) -> bool:
        """Set, once, the share that holds out enough pairs; return whether it was set."""
        if self._more_pairs is None or self._has_preset or self._undecided or reading.trouble or not reading.used:
            return False
        self._has_preset = True
        return not self._has_own_split and self.options.preset_share(reading.used, *self._more_pairs)

    def _fail(self, ticket: Ticket, failure: Failure) -> None:
        if ticket.cancelled:
            return
        if failure.kind == "cancelled":
            self._cancelled()
            return
        self.pending = None
        self.working.end()
        if self.reading is None or not self.reading.used:
            self.reading, self._lines = None, []
            self._show()
            name = Path(self._read_path).name or self._read_path
            self.tabs.explain(summary_text.unreadable(name, _sentences(failure)))
        else:
            self._show()
            self._say(_sentences(failure), wrong=True)
        self.shown.emit()

    def _forget(self) -> None:
        self._stop()
        self.reading, self._recognized, self._lines = None, None, []
        self._undecided, self._decided, self._others = "", False, ()

    # -- options -----------------------------------------------------------------------------------------------

    def _kind_chosen(self) -> None:
        """Read the same path as another type with that type's options; this answers an open question."""
        self._undecided = ""
        self.options.show_data(survey_result.at_path(self.options.kind, self._read_path))
        self.reading, self._lines = None, []
        self.read_again()

    def _read_other(self) -> None:
        """Read the data in the other way that was offered."""
        self._undecided, self._decided = "", bool(self._undecided)
        self.options.show_data(self._others[0])
        self.reading, self._lines = None, []
        self.read_again()

    def _keep_as_it_is(self) -> None:
        """Accept the data as they were detected."""
        self._undecided, self._decided = "", True
        self._show()
        if self.reading is not None and not self.reading.opened and self.reading.is_small:
            self.open_pictures()

    def _option_changed(self) -> None:
        self._stop()
        self._changed.start()
        self._show()

    def _read_changed(self) -> None:
        data = self.chosen()
        if data is None:
            return
        wrong = summary_text.wrong_fields(data)
        self.options.form.set_problems(wrong)
        if not wrong:
            self.read_again()

    # -- showing -----------------------------------------------------------------------------------------------

    def _show(self) -> None:
        """Update all widgets; while a request is pending, the previous contents stay visible."""
        reading, pending = self.reading, self.pending is not None
        stale = pending or self._changed.isActive()
        opening = pending and reading is not None and not reading.opened and not self._changed.isActive()
        is_recognized = self._recognized is not None
        self.options.setVisible(is_recognized)
        chosen = self.chosen()
        same = bool(reading and chosen and config.absolute(chosen) == reading.data)
        usable = same and reading is not None and not reading.trouble and reading.used > 0
        was_ready = self.start.isEnabled()
        busy = stale and not opening
        why = READING if busy else self._undecided or (reading.trouble if reading is not None else "") or NO_PAIRS
        set_refusal(self.start, "" if usable and not (self._undecided or busy) else why)
        if self.start.isEnabled() and not was_ready and self.focusWidget() in (None, self.copy):
            self.start.setFocus()  # what was dropped is ready: Enter goes on
        set_refusal(self.copy, "" if self.path.text().strip() else NO_PAIRS)
        self._show_counts(reading)
        self._show_cost(reading, pending)
        self.foot.offer_classify(reading)
        self.foot.later.setVisible(pending)
        self._actions["classify"].setText(classify_words(len(reading.pictures) if reading else 0))
        self.tabs.show_reading(reading, self._lines)
        if reading is not None and self._undecided:
            self.tabs.explain(summary_text.of_question(self._undecided, "other" if self._others else ""))
        elif reading is not None and not reading.examples:
            self.tabs.explain(summary_text.of_trouble(reading, self._lines, bool(self._others)))
        elif reading is None and (pending or not self._read_path):
            self.tabs.explain(summary_text.LOOKING if pending else summary_text.WELCOME)

    def _show_counts(self, reading: DataSource | None) -> None:
        warning = summary_text.warning_of(reading) if reading and reading.found else ""
        self._say(f"{summary_text.counted(reading)} {warning}".strip() if reading and reading.found else "")
        if warning:
            theme.set_role(self.note, "warn")
        self.split.setText(summary_text.split_line(reading) if reading else "")
        self.about.setText(summary_text.described(reading) if reading else "")
        for label in (self.note, self.split, self.about):
            label.setVisible(bool(label.text()))

    def _show_cost(self, reading: DataSource | None, pending: bool) -> None:
        used = reading is not None and reading.used > 0
        cost = summary_text.cost(reading, self.image_size) if reading and used else ""
        self.cost.show_cost(cost, can_open=bool(reading and used and not reading.opened and not pending))
        self.both.show_data(reading if self._compare and used else None, self.image_size)

    def _say(self, text: str, *, wrong: bool = False) -> None:
        self.note.setText(text)
        theme.set_role(self.note, "bad" if wrong else "strong")
        self.note.setVisible(bool(text))

    # -- little things a person can do -------------------------------------------------------------------------

    def _classify(self) -> None:
        pictures = tuple(Path(picture) for picture in self.reading.pictures) if self.reading else ()
        if pictures:
            super().accept()
            self.requested.emit(ClassifyPictures(pictures))

    def _copy(self) -> None:
        QGuiApplication.clipboard().setText(shell_command(self.command(), self._workspace))

    def _size_edited(self) -> None:
        if self.reading is not None:
            self._show_cost(self.reading, self.pending is not None)

    # -- parts -------------------------------------------------------------------------------------------------

    def _build(self) -> None:
        column = layouts.column(margins=(theme.AROUND, theme.AROUND, theme.AROUND, theme.BETWEEN))
        self.path = PathLine(self)
        self.path.chosen.connect(self.read_path)
        self.path.returnPressed.connect(self.read_path)
        self.path.editingFinished.connect(self._read_edited)
        self.path.textEdited.connect(lambda _text: set_refusal(self.start, READING))
        column.addLayout(layouts.row(labeled("Data", self.path), self.path, gap=theme.BETWEEN))
        self.options = Options(self)
        self.options.kind_chosen.connect(self._kind_chosen)
        self.options.changed.connect(self._option_changed)
        column.addWidget(self.options)
        column.addSpacing(theme.SPACE)
        self.note = WrappedLabel(parent=self, objectName="import-counts")
        self.split, self.about = (ElidedLabel(parent=self) for _ in range(2))
        column.addWidget(self.note)
        for label, name in ((self.split, "import-split"), (self.about, "import-about")):
            label.setObjectName(name)
            theme.set_role(label, "secondary")
            column.addWidget(label)
        self.cost = Cost(self)
        self.working = self.cost.working
        self.working.cancelled.connect(self._cancelled)
        self.cost.opened.connect(self.open_pictures)
        self.cost.edited.connect(self._size_edited)
        column.addWidget(self.cost)
        self.both = BothRow(self)
        column.addWidget(self.both)
        self.tabs = ResultTabs(self._background, self._actions, self)
        self.grid, self.report = self.tabs.grid, self.tabs.report
        column.addWidget(self.tabs, 1)
        content = QWidget()
        content.setLayout(column)
        # All options together are higher than a small screen; what starts and cancels stays in sight.
        body = layouts.scroll(content, "import-scroll", sideways=True)
        layouts.column((body, 1), layouts.hairline(), self._foot(), gap=0, of=self)

    def _foot(self) -> Footer:
        self.foot = foot = Footer(self)
        self.start, self.copy = foot.start, foot.copy
        foot.copy_asked.connect(self._copy)
        foot.classify_asked.connect(self._classify)
        # Hidden, not closed: what is under way goes on.
        foot.later_asked.connect(self._continue_in_background)
        foot.cancelled.connect(self.reject)
        foot.train_asked.connect(self.accept)
        return foot

    def _action(self, text: str, does: Any) -> QAction:
        action = QAction(text, self, triggered=lambda _checked=False: does())
        return action


def _sentences(failure: Failure) -> str:
    return failure.words
