"""The base class of views that ask the model process about a picture, one question at a time."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

from PySide6.QtGui import QAction
from PySide6.QtWidgets import QLabel, QPushButton, QWidget

from explorer import theme
from explorer.model_client.single_request import CachedRequest
from explorer.models.thumbnails import Thumbnails
from explorer.views.view import View, reason_of
from explorer.widgets import layouts
from explorer.widgets.image_strip import PICTURE, ImageStrip
from explorer.widgets.progress_row import ProgressRow
from explorer.widgets.state_area import Act, StateArea
from trainer.messages import Failure


class PictureQuestionView(View):
    """A strip of pictures, a button that asks, and the answer: kept, in progress, canceled or failed."""

    prefix: ClassVar[str] = ""
    action_text: ClassVar[str] = ""  # What asking does, for the palette.
    failure: ClassVar[str] = ""  # What could not be done, in words.
    asking: CachedRequest  # Sends the questions and keeps the answers.

    def make_parts(self, asking: CachedRequest, button: str) -> None:
        """Create what all of these views have; `button` is the text of the one that asks."""
        context = self.context
        self.pictures = Thumbnails(context.background, self, edge=2 * PICTURE)
        self.asking = asking
        self._failed: object = None
        self._ask_action = QAction(self.action_text, self, objectName=f"{self.prefix}-action-show", triggered=self.ask)
        self.strip = ImageStrip(self.pictures.get, lines=3)
        self.strip.setObjectName(f"{self.prefix}-images")
        self.show_button = QPushButton(button, objectName=f"{self.prefix}-show")
        theme.set_role(self.show_button, "primary")
        self.working = ProgressRow(f"{self.prefix}-working", self, asks=True)
        self.status: QLabel = layouts.text(role="small", wrap=True)

    def lay_in(self, panels: QWidget) -> StateArea:
        """Return the area of the answer with these panels, and listen to the parts."""
        self.answer_area = StateArea(panels)
        self.context.jobs.run_ended.connect(lambda row: self.asking.forget(row.id))
        self.strip.remove_asked.connect(self._remove)
        self.pictures.arrived.connect(self.strip.picture_arrived)
        self.show_button.clicked.connect(self.ask)
        self.working.cancelled.connect(self.asking.cancel)
        self.asking.changed.connect(self.show_now)
        self.asking.failed.connect(self._on_failed)
        return self.answer_area

    def question_now(self) -> Any:
        """Return the message for the current controls; None while something is missing."""
        raise NotImplementedError

    def repair_now(self) -> Act | None:
        """Return what mends the cause of a failure; None if nothing here does."""
        return None

    def show_now(self) -> None:
        """Show the answer for the current controls, or why there is none."""
        raise NotImplementedError

    @property
    def chart(self) -> Any:
        """The answer for the current controls, perhaps a first look; None if there is none."""
        question = self.question_now()
        return None if question is None else self.asking.known(question)

    @property
    def is_whole(self) -> bool:
        """Whether the answer for the current controls is there in full."""
        question = self.question_now()
        return question is not None and self.asking.is_kept(question)

    def ask(self) -> None:
        """Request the answer for the current controls, unless it is known or under way."""
        question = self.question_now()
        # A combo box passes Enter on to its line edit a second time.
        under_way = self.asking.busy and self.asking.question == question
        if question is not None and not self.is_whole and not under_way:
            self._failed = None
            self.working.start()
            self.asking.ask(question)
        self.show_now()

    def actions_for_palette(self) -> list[QAction]:
        return [self._ask_action]

    def show_progress(self) -> None:
        """Let button, progress and the area of the answer tell how far the request is."""
        question, busy = self.question_now(), self.asking.busy
        self.show_button.setEnabled(question is not None and not self.is_whole and not busy)
        if busy:
            self.working.show_progress(self.asking.progress, self.asking.note)
            self.answer_area.ready()  # what is known stays in view
        elif self._failed is None or self._failed != question:
            self.working.end()
            self.answer_area.ready()

    def _on_failed(self, failure: Failure) -> None:
        self._failed = self.asking.question
        self.working.end()
        self.status.setText("")
        self.answer_area.failed(self.failure, reason_of(failure), retry=self.ask, repair=self.repair_now())

    def _remove(self, paths: Iterable[str]) -> None:
        gone = set(paths)
        queries = map(str, self.context.selection.queries)
        self.context.selection.queries = [path for path in queries if path not in gone]
