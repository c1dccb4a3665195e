"""Dialogs for what a person says about runs: their tags and a note in Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QCompleter, QLineEdit, QPlainTextEdit, QTabWidget, QTextBrowser, QWidget

from explorer.widgets.sheet import Sheet
from trainer.store import RunRow


class TagSheet(Sheet):
    """A dialog for the tags of runs: those that all of them have can be edited."""

    chosen = Signal(list, list)  # Tags to add, and tags to remove.

    def __init__(self, runs: Sequence[RunRow], all_runs: Sequence[RunRow], parent: QWidget | None = None) -> None:
        super().__init__(f"Tags of {runs[0].short_name if len(runs) == 1 else f'{len(runs)} runs'}", "Save", parent)
        self.setObjectName("tag-sheet")
        self._common = [tag for tag in runs[0].tag_list if all(tag in run.tag_list for run in runs)]
        self.tags = QLineEdit(" ".join(self._common), objectName="tag-words", accessibleName="Tags")
        self.tags.setPlaceholderText("paper baseline")
        every = sorted({tag for run in all_runs for tag in run.tag_list})
        self.tags.setCompleter(QCompleter(every, self.tags))
        self.tags.returnPressed.connect(self._take_typed)
        self.form.addRow("Tags", self.tags)
        others = sorted({tag for run in runs for tag in run.tag_list} - {*self._common})
        note = f" Some of them also have {', '.join(others)}, which stay." if others else ""
        self.show_message(f"Words between blanks; the filter tag:paper finds them.{note}")
        self.accepted.connect(self._choose)

    def _take_typed(self) -> None:
        # The list of completions takes Enter and leaves it only where none of its lines is chosen.
        popup = self.tags.completer().popup()
        if popup.isVisible() and not popup.currentIndex().isValid():
            self.accept()

    def _choose(self) -> None:
        tags = self.tags.text().replace(",", " ").split()
        add = [word for word in dict.fromkeys(tags) if word not in self._common]
        remove = [word for word in self._common if word not in tags]
        if add or remove:
            self.chosen.emit(add, remove)


class _Reader(QTextBrowser):
    """Shows text alone: a note may be a stranger's, and nothing that it names is opened or loaded."""

    def loadResource(self, _kind: int, _name: Any) -> Any:
        return None


class NoteSheet(Sheet):
    """A dialog for the note of a run: written in one tab, read in the other."""

    chosen = Signal(str)  # The note.

    def __init__(self, run: RunRow, parent: QWidget | None = None) -> None:
        super().__init__(f"Note of {run.short_name}", "Save", parent)
        self.setObjectName("note-sheet")
        self.note = QPlainTextEdit(run.note, objectName="note-text", accessibleName="Note in Markdown")
        self.read = _Reader()
        self.read.setObjectName("note-read")
        self.read.setAccessibleName("Note as it reads")
        self.read.setOpenLinks(False)
        tabs = QTabWidget()
        tabs.addTab(self.note, "Write")
        tabs.addTab(self.read, "Read")
        tabs.currentChanged.connect(lambda _: self.show_read())
        tabs.setCurrentIndex(1 if run.note else 0)
        self.form.addRow(tabs)
        self.show_read()
        (self.read if run.note else self.note).setFocus()
        self.accepted.connect(lambda: self.chosen.emit(self.note.toPlainText().strip()))

    def show_read(self) -> None:
        """Show the Markdown as it reads, without HTML and pictures."""
        document = self.read.document()
        document.setMarkdown(self.note.toPlainText(), document.MarkdownFeature.MarkdownNoHTML)
