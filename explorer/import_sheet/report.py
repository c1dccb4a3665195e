"""The import report: a virtual table of every unused or unusual item with its reason."""

from __future__ import annotations

import bisect
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QPersistentModelIndex, Qt
from PySide6.QtWidgets import QAbstractItemView, QFileDialog, QHeaderView, QPushButton, QTableView, QWidget

from explorer import theme
from explorer.event_loop.background import Background
from explorer.import_sheet.pair_grid import wrapped_tip
from explorer.import_sheet.survey_result import NOT_USED
from explorer.widgets import layouts
from explorer.widgets.elided_label import ElidedLabel
from explorer.widgets.refusal import set_refusal
from explorer.widgets.still import StillComboBox
from trainer.errors import reason_words

Index = QModelIndex | QPersistentModelIndex
Line = tuple[str, str, str]

HEADS: Final = ("Item", "Status", "Why")
ITEM_PX: Final = 260
WHAT_PX: Final = 128
_ONLY: Final = {"Everything": "", "Not used": NOT_USED, "Used with a warning": "odd"}


class ReportModel(QAbstractTableModel):
    """A table model of the report's lines, all or those of one kind."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.lines: Sequence[Line] = ()
        self._first, self._end = 0, 0

    def show(self, lines: Sequence[Line], only: str = "") -> None:
        """Show the lines, unused items first; with `only`, just those with this outcome."""
        self.beginResetModel()
        self.lines = lines
        # The unused ones are first: halved, not counted, for there may be a million.
        unused = bisect.bisect_left(lines, True, key=lambda line: line[1] != NOT_USED)
        spans = {"": (0, len(lines)), NOT_USED: (0, unused)}
        self._first, self._end = spans.get(only, (unused, len(lines)))
        self.endResetModel()

    def rowCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008  (Qt's own signature)
        return 0 if parent.isValid() else self._end - self._first

    def columnCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008
        return 0 if parent.isValid() else len(HEADS)

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if role == Qt.ItemDataRole.DisplayRole and orientation is Qt.Orientation.Horizontal:
            return HEADS[section]
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return int(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)
        return None

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if not index.isValid() or index.row() >= self.rowCount():
            return None
        line = self.lines[self._first + index.row()]
        text = line[index.column()]
        if role == Qt.ItemDataRole.DisplayRole:
            return f"{text[:1].upper()}{text[1:]}" if index.column() == 1 else text
        if role == Qt.ItemDataRole.ToolTipRole:
            return wrapped_tip(text)
        if role == Qt.ItemDataRole.ForegroundRole and index.column() == 1:
            return theme.color("bad" if text == NOT_USED else "warn")
        return None


class ReportTable(QTableView):
    """The report as a table, one item per row; only visible rows are drawn, even of a million."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent, objectName="import-report", accessibleName="Import report", showGrid=False)
        self.report = ReportModel(self)
        self.setModel(self.report)
        self.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setWordWrap(False)
        self.setTabKeyNavigation(False)
        self.setTextElideMode(Qt.TextElideMode.ElideRight)
        self.verticalHeader().hide()
        # Fixed: a header that measured its sections would touch every one of a million.
        self.verticalHeader().setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
        self.verticalHeader().setDefaultSectionSize(theme.ROW_PX)
        header = self.horizontalHeader()
        header.setHighlightSections(False)
        header.setSectionResizeMode(0, QHeaderView.ResizeMode.Interactive)
        header.setSectionResizeMode(1, QHeaderView.ResizeMode.Fixed)
        header.setSectionResizeMode(2, QHeaderView.ResizeMode.Stretch)
        self.setColumnWidth(0, ITEM_PX)
        self.setColumnWidth(1, WHAT_PX)
        theme.theme().changed.connect(self.viewport().update)


class ReportPane(QWidget):
    """The report with a filter for its lines and a button to save it."""

    def __init__(self, background: Background, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._background = background
        self._lines: Sequence[Line] = ()
        self._name = "import"
        self.table = ReportTable(self)
        self.only = StillComboBox(self, objectName="import-only", accessibleName="Lines of the report to show")
        for label, what in _ONLY.items():
            self.only.addItem(label, what)
        self.only.currentIndexChanged.connect(self._filter)
        self.export = QPushButton("Export…", self, objectName="import-export", autoDefault=False)
        self.export.clicked.connect(self._choose_file)
        self.outcome = ElidedLabel(parent=self)
        theme.set_role(self.outcome, "small")
        above = layouts.row(self.only, (self.outcome, 1), self.export, gap=theme.BETWEEN)
        layouts.column(above, (self.table, 1), margins=(0, theme.INSIDE, 0, 0), of=self)

    def show_lines(self, lines: Sequence[Line], name: str) -> None:
        """Show the report of the data set with this name; do nothing if it is already shown."""
        self._name = name
        set_refusal(self.export, "" if lines else "Nothing was found yet.")
        if lines is not self._lines:
            self._lines = lines
            self.outcome.setText("")
            self._filter()

    def write(self, file: Path) -> None:
        """Write all lines to a `.csv` or `.parquet` file."""
        self._background.run(
            self, _write, file, self._lines, done=self._written(file), failed=self._refused, key="write"
        )

    def _filter(self) -> None:
        self.table.report.show(self._lines, self.only.currentData())

    def _choose_file(self) -> None:
        dialog = QFileDialog(self, "Export the import report", f"{self._name}-report.csv", "Table (*.csv *.parquet)")
        dialog.setObjectName("import-report-file")
        dialog.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
        dialog.setDefaultSuffix("csv")
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.fileSelected.connect(lambda file: self.write(Path(file)))
        dialog.open()

    def _written(self, file: Path) -> Callable[[int], None]:
        return lambda lines: self.outcome.setText(f"{lines:,} lines written to {file}")

    def _refused(self, error: Exception) -> None:
        self.outcome.setText(reason_words(error))


def _write(file: Path, lines: Sequence[Line]) -> int:
    """Write the lines and return their number; runs off the GUI thread."""
    from trainer.render_mpl.import_report import write_report

    write_report(file, lines)
    return len(lines)
