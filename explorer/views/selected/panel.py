"""A side panel with the selected pairs as a table, and saved selections."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np
from jaxtyping import Int
from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QAction, QUndoCommand
from PySide6.QtWidgets import QFileDialog, QLineEdit, QMenu, QPushButton, QSizePolicy, QToolButton, QWidget

from explorer import theme
from explorer.models.pair_table import PairColumn
from explorer.models.thumbnails import Thumbnails
from explorer.views.read_only import guarded
from explorer.views.selected.table import PairTable
from explorer.views.view import Context
from explorer.widgets import layouts
from explorer.widgets.progress_row import Cancelled, ProgressRow
from explorer.widgets.refusal import set_refusal
from trainer.errors import reason_words
from trainer.store import Items, Workspace
from trainer.store.selections import NamedSelection, rows_of, write_selection

FILTER = "Parquet (*.parquet);;CSV (*.csv);;List of image files (*.txt)"


class SelectedPanel(QWidget):
    """A dataset's selected pairs, which can be listed, saved, restored, exported and deleted with undo."""

    failed = Signal(str, str)  # What went wrong, and what to do.

    def __init__(self, context: Context, pictures: Thumbnails, parent: QWidget | None = None) -> None:
        super().__init__(parent, objectName="selected-panel")
        self.context = context
        self._items: Items | None = None
        self._dataset = self._of = ""
        self._rows: Int[np.ndarray, " k"] = np.empty(0, np.int64)
        self._shown: int | None = None
        self._selections: tuple[NamedSelection, ...] = ()
        self._deleted: NamedSelection | None = None
        self.table = PairTable(
            pictures, name="selected-table", label="Selected pairs", background=context.background, narrow=True
        )
        self.title = layouts.elided(role="heading")
        self.hint = layouts.text("Select pairs in any view; they are listed here.", "small", wrap=True)
        self.name = QLineEdit(
            objectName="selected-name", placeholderText="Name this selection", accessibleName="Name of the selection"
        )
        self.save = QPushButton("Keep", objectName="selected-keep", toolTip="Keep the selected pairs under this name")
        self.clear = QPushButton("Clear", objectName="selected-clear", accessibleName="Clear the selection")
        self.clear.setToolTip("Esc")
        theme.set_role(self.clear, "quiet")
        self.export = QToolButton(objectName="selected-export", accessibleName="Export the selected pairs")
        self.export.setToolTip("Export as Parquet, CSV or list of image files")
        theme.keep_icon(self.export, "download", 16, "secondary")
        self.recall = QToolButton(objectName="selected-recall", text="Kept", accessibleName="Kept selections")
        self.recall.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        self.recall.setToolTip("Selections kept in this workspace")
        self.menu = QMenu(self.recall)
        self.recall.setMenu(self.menu)
        self.writing = ProgressRow("selected-writing", self)
        self.outcome = layouts.elided(role="small")
        self.outcome.hide()
        self.undo = QPushButton("Undo", objectName="selected-undo", visible=False)
        theme.set_role(self.undo, "quiet")
        self._lay_out()
        self._connect()
        self._show()

    def show_items(
        self,
        items: Items | None,
        rows: Int[np.ndarray, " k"],
        *,
        dataset: str,
        columns: Sequence[PairColumn] = (),
        of: str = "",
    ) -> None:
        """List the pairs `rows` of a snapshot.

        Args:
            items: What its pairs are.
            rows: The selected ones, ascending.
            dataset: `scenes-renderings`; says what kept selections fit.
            columns: Numbers of each of the rows.
            of: Whose pairs they are, `A` or `B`, where not everybody's.
        """
        other = dataset != self._dataset
        self._items, self._dataset, self._rows, self._of = items, dataset, np.asarray(rows, np.int64), of
        self.table.pairs.show(items, self._rows if items is not None else self._rows[:0], columns)
        self._show()
        self._ring()
        if other:
            self.read()

    def say_shown(self, count: int | None) -> None:
        """Say how many of the pairs a map shows of which classes are hidden; None: none is."""
        if count != self._shown:
            self._shown = count
            self._show()

    def _ring(self) -> None:
        """Mark the line of the pair that the inspector shows."""
        current = self.context.selection.current
        line = -1 if current is None or len(self._rows) < 2 else self.table.pairs.place_of(current)
        self.table.ring(line)
        self.table.scrollTo(self.table.pairs.index(line, 0))  # to none where it is not listed

    def show_message(self, text: str) -> None:
        """Show the result of an action on the selection."""
        self._show_message(text)

    def read(self) -> None:
        """Read the saved selections of this data from the store."""
        self.context.background.run(
            self, _read, self.context.workspace, self._dataset, done=self._take, key="selections"
        )

    def actions(self) -> list[QAction]:
        """Return actions for the palette: restore each saved selection, export the current one."""
        made = []
        for named in self._selections:
            action = QAction(f"Select “{named.name}” ({named.n:,} pairs)", self)
            # Given on creation, a partial would get the state of the button as well.
            action.triggered.connect(partial(self._recall, named))
            made.append(action)
        if len(self._rows):
            made.append(QAction("Export the selected pairs…", self, triggered=self._choose_file))
        return made

    # -- what a person does ------------------------------------------------------------------------------------

    def _keep(self) -> None:
        name = self.name.text().strip()
        if not name or self._items is None or not len(self._rows):
            return
        ids = np.asarray(self._items.id)[self._rows].tolist()
        self.context.background.run(
            self,
            lambda *arguments: self.context.workspace.selections.keep(*arguments),
            name,
            self._dataset,
            ids,
            done=self._after_keeping,
            failed=self._refuse,
            key="keep",
        )

    def _after_keeping(self, named: NamedSelection) -> None:
        self.name.clear()
        self._show_message(f"Kept “{named.name}”, {named.n:,} pairs")
        self.context.selection.facts_changed.emit()

    def _recall(self, named: NamedSelection) -> None:
        if self._items is None:
            return
        rows = rows_of(named, self._items)
        self.context.selection.pairs = rows
        missing = named.n - len(rows)
        self._show_message(
            f"“{named.name}”" + (f": {missing:,} of {named.n:,} pairs are not in this data" if missing else "")
        )

    def _delete(self, named: NamedSelection) -> None:
        self.context.selection.undo.push(_Deletion(self, named))

    def drop(self, named: NamedSelection) -> None:
        """Delete a saved selection; `put_back` undoes it."""
        self._deleted = named
        self._run_store(lambda selection: self.context.workspace.selections.drop(selection), named)
        self._show_message(f"Deleted “{named.name}”", undo=True)

    def put_back(self, named: NamedSelection) -> None:
        """Restore a deleted selection."""
        self._run_store(lambda selection: self.context.workspace.selections.restore(selection), named)
        self._show_message(f"“{named.name}” is back")

    def _choose_file(self) -> None:
        dialog = QFileDialog(self, "Export the selected pairs", f"{self._dataset}-selected.parquet", FILTER)
        dialog.setObjectName("selected-file")
        dialog.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.fileSelected.connect(lambda file: self.write(Path(file)))
        dialog.open()

    def write(self, file: Path) -> None:
        """Write the selected pairs in the format of the file's suffix."""
        if self._items is None or not len(self._rows):
            return
        self.context.background.run(
            self,
            write_selection,
            self._items,
            self._rows,
            file,
            self.writing.start(),
            done=partial(self._after_writing, f"{len(self._rows):,} pairs written to {file}"),
            failed=self._not_written,
            key="write",
        )

    def _after_writing(self, message: str, _none: None) -> None:
        self.writing.end()
        self._show_message(message)

    def _not_written(self, error: Exception) -> None:
        self.writing.end()
        if not isinstance(error, Cancelled):
            self._refuse(error)

    # -- showing -----------------------------------------------------------------------------------------------

    def _run_store(self, function: object, named: NamedSelection) -> None:
        # One thread at a time would be nicer still, but a deletion and its undo are seconds apart.
        self.context.background.run(
            self,
            function,
            named,
            done=lambda _none: self.context.selection.facts_changed.emit(),
            failed=self._refuse,
            key="change",
        )

    def _take(self, selections: tuple[NamedSelection, ...]) -> None:
        self._selections = selections
        self.menu.clear()
        for each in selections:
            select = self.menu.addMenu(f"{each.name}   {each.n:,}".replace("&", "&&"))
            for label, does in (("Select", self._recall), ("Delete", self._delete)):
                action = select.addAction(label)
                set_refusal(action, self.context.jobs.read_only_reason if label == "Delete" else "")
                action.triggered.connect(partial(does, each))
        self._show()

    def _show(self) -> None:
        n, chosen = (len(self._items) if self._items else 0), len(self._rows)
        whose = f" of {self._of}" if self._of else ""
        counts = f"{chosen:,} of {n:,} pairs" if self._shown is None else f"{chosen:,} · {self._shown:,} shown"
        self.title.setText(f"Selected {counts}{whose}" if chosen else "Selected")
        for widget in (self.table, self.clear, self.export, self.name, self.save):
            widget.setVisible(chosen > 0)
        self.hint.setVisible(not chosen)
        self.recall.setVisible(bool(self._selections))
        self.recall.setText(f"Kept {len(self._selections)}")
        set_refusal(
            self.save, self.context.jobs.read_only_reason or ("" if self.name.text().strip() else "Type a name first.")
        )

    def _show_message(self, text: str, *, undo: bool = False) -> None:
        self.outcome.setText(text)
        self.outcome.setVisible(bool(text))
        self.undo.setVisible(undo)

    def _undo(self) -> None:
        if self._deleted is not None:
            named, self._deleted = self._deleted, None
            self.put_back(named)

    def _refuse(self, error: Exception) -> None:
        self.failed.emit(reason_words(error), "")
        self._show_message(reason_words(error))

    def _connect(self) -> None:
        selection = self.context.selection
        self.name.returnPressed.connect(self._keep)
        self.name.textChanged.connect(lambda _text: self._show())
        self.save.clicked.connect(self._keep)
        self.clear.clicked.connect(selection.clear)
        self.export.clicked.connect(self._choose_file)
        self.undo.clicked.connect(self._undo)
        self.table.hovered.connect(self._hover)
        selection.facts_changed.connect(self.read)
        for signal in (selection.current_changed, self.table.pairs.layoutChanged):
            signal.connect(self._ring)

    def _hover(self, pair: int) -> None:
        self.context.selection.hovered = pair if pair >= 0 else None

    def _lay_out(self) -> None:
        layouts.column(
            layouts.row((self.title, 1), self.recall, self.export, self.clear, gap=theme.SPACE),
            self.hint,
            (self.table, 1),
            guarded(self.context.jobs, layouts.panel(layouts.row((self.name, 1), self.save, gap=theme.SPACE))),
            self.writing,
            layouts.row((self.outcome, 1), self.undo, gap=theme.SPACE),
            of=self,
        )
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Expanding)


class _Deletion(QUndoCommand):
    """The deletion of a selection, for undo."""

    def __init__(self, panel: SelectedPanel, named: NamedSelection) -> None:
        super().__init__(f"Delete the selection “{named.name}”")
        self._panel, self._named = panel, named

    def redo(self) -> None:
        self._panel.drop(self._named)

    def undo(self) -> None:
        self._panel.put_back(self._named)


def _read(workspace: Workspace, dataset: str) -> tuple[NamedSelection, ...]:
    return tuple(workspace.selections.all(dataset)) if dataset else ()
