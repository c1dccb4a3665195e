"""The table of runs: sorted, filtered, many selected at once, renamed in place."""

from __future__ import annotations

from PySide6.QtCore import QByteArray, QItemSelection, QItemSelectionModel, Qt, Signal
from PySide6.QtWidgets import QAbstractItemView, QHeaderView, QTableView, QWidget

from explorer import theme
from explorer.models.runs import SHARE_ROLE, SWATCHES_ROLE, TONE_ROLE, Column, RunsFilter, RunsModel
from explorer.widgets.cells import ProgressCell, SwatchCell
from trainer.store import RunRow

WIDTHS = {
    Column.NAME: 200,
    Column.STATUS: 120,
    Column.OBJECTIVE: 84,
    Column.DATA: 84,
    Column.PROGRESS: 176,
    Column.ETA: 84,
    Column.BEST: 78,
    Column.LAST: 76,
    Column.DURATION: 88,
    Column.STARTED: 110,
}
assert set(WIDTHS) == set(Column), "a column without a width"

STATE_VERSION = b"2:"


class RunsTable(QTableView):
    """Shows a `RunsModel` through a `RunsFilter`.

    Attributes:
        runs: The model.
        shown: The filter over it.

    Signals:
        chosen_changed: Other runs are selected.
    """

    chosen_changed = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("runs-table")
        self.setAccessibleName("Runs")
        self.runs = RunsModel(self)
        self.shown = RunsFilter(self.runs, self)
        self.setModel(self.shown)
        self.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.setSelectionMode(QAbstractItemView.SelectionMode.ExtendedSelection)
        self.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.setHorizontalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setContextMenuPolicy(Qt.ContextMenuPolicy.ActionsContextMenu)
        self.setShowGrid(False)
        self.setWordWrap(False)
        self.setTabKeyNavigation(False)
        self._dress_headers()
        self._names = SwatchCell(swatches_role=SWATCHES_ROLE, letters=_letter, parent=self)
        self._progress = ProgressCell(share_role=SHARE_ROLE, tone_role=TONE_ROLE, parent=self)
        self.setItemDelegateForColumn(Column.NAME, self._names)
        self.setItemDelegateForColumn(Column.PROGRESS, self._progress)
        self.selectionModel().selectionChanged.connect(lambda *_: self.chosen_changed.emit())
        theme.theme().changed.connect(self.viewport().update)

    def chosen(self) -> list[RunRow]:
        """The selected runs, in the order shown."""
        rows = sorted(index.row() for index in self.selectionModel().selectedRows())
        return [self.shown.run_at(row) for row in rows]

    def choose(self, runs: list[int]) -> None:
        """Selects exactly these runs, as far as the filter shows them, and scrolls to the first."""
        wanted, selection = set(runs), QItemSelection()
        rows = [row for row, run in enumerate(self.shown.runs()) if run.id in wanted]
        for row in rows:
            selection.select(self.shown.index(row, 0), self.shown.index(row, len(Column) - 1))
        flags = QItemSelectionModel.SelectionFlag
        if rows:
            self.selectionModel().setCurrentIndex(self.shown.index(rows[0], Column.NAME), flags.NoUpdate)
            self.scrollTo(self.shown.index(rows[0], Column.NAME))
        self.selectionModel().select(selection, flags.ClearAndSelect)

    def rename_current(self) -> None:
        """Opens the name of the selected run for editing in its place."""
        rows = self.selectionModel().selectedRows()
        if len(rows) == 1:
            index = self.shown.index(rows[0].row(), Column.NAME)
            self.setCurrentIndex(index)
            self.edit(index)

    def save_columns(self) -> QByteArray:
        """Widths, order and sorting of the columns."""
        return QByteArray(STATE_VERSION + self.horizontalHeader().saveState().data())

    def restore_columns(self, state: QByteArray) -> None:
        """Takes up what `save_columns` gave; anything else leaves the columns as they are."""
        data = bytes(state.data())
        if data.startswith(STATE_VERSION):
            self.horizontalHeader().restoreState(QByteArray(data[len(STATE_VERSION) :]))

    def _dress_headers(self) -> None:
        self.verticalHeader().hide()
        self.verticalHeader().setDefaultSectionSize(theme.ROW_PX)
        header = self.horizontalHeader()
        header.setHighlightSections(False)
        header.setSectionsMovable(True)
        header.setMinimumSectionSize(64)
        header.setTextElideMode(Qt.TextElideMode.ElideRight)
        header.setSectionResizeMode(QHeaderView.ResizeMode.Interactive)
        for column, width in WIDTHS.items():
            self.setColumnWidth(column, width)
        # Names and bars share what is left: no column is cut off, no empty ground at the right.
        for column in (Column.NAME, Column.PROGRESS):
            header.setSectionResizeMode(column, QHeaderView.ResizeMode.Stretch)
        header.setStretchLastSection(False)
        self.setSortingEnabled(True)
        self.sortByColumn(Column.STARTED, Qt.SortOrder.DescendingOrder)


def _letter(colour: str) -> str:
    """A and B carry their letter, so that colour is not the only sign."""
    return {theme.run_colour(0): "A", theme.run_colour(1): "B"}.get(colour, "")
