"""The table of the findings of one kind."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Final

import numpy as np
from jaxtyping import Int
from PySide6.QtCore import QEvent, QItemSelection, QItemSelectionModel, QSignalBlocker, Qt, Signal
from PySide6.QtGui import QKeyEvent, QResizeEvent
from PySide6.QtWidgets import QAbstractItemView, QHeaderView, QTableView

from explorer import theme
from explorer.models.thumbnails import Thumbnails
from explorer.views.quality.findings_model import FINDING_ROLE, MARGIN, PICTURED, RANKS, STATES, FindingsModel
from explorer.views.selected.table import PictureCell
from trainer.store.quality_reports import QualityFinding

PICTURE_PX: Final = 40
LINE_PX: Final = 48
LEAST_PX: Final = 56
CAPTION_PX: Final = 190
"""Of a caption at least, with its picture: where there is less room, numbers are left out."""
MEASURED: Final = 300
"""Lines whose values decide how wide their columns are."""


class FindingsTable(QTableView):
    """The findings of one kind."""

    chose = Signal(object)  # The person has selected these findings.

    def __init__(self, kind: str, label: str, pictures: Thumbnails) -> None:
        super().__init__(objectName=f"quality-{kind}s", accessibleName=label, showGrid=False, wordWrap=False)
        self.findings = FindingsModel(kind, pictures, self)
        self.setModel(self.findings)
        self._short_px: dict[int, int] = {}
        self._cells = {px: PictureCell(self, edge=px) for px in (PICTURE_PX, 0)}
        self.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.setSelectionMode(QAbstractItemView.SelectionMode.ExtendedSelection)
        self.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setTabKeyNavigation(False)
        self.verticalHeader().hide()
        # Qt measures a heading of two lines as one that is cut.
        self.horizontalHeader().setTextElideMode(Qt.TextElideMode.ElideNone)
        self.verticalHeader().setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
        self.verticalHeader().setDefaultSectionSize(LINE_PX)
        self.horizontalHeader().setHighlightSections(False)
        self.selectionModel().selectionChanged.connect(lambda *_: self.chose.emit(self.chosen()))
        self.activated.connect(lambda index: self.selectRow(index.row()))
        self.findings.modelReset.connect(self._fit)

    def event(self, event: QEvent) -> bool:
        """Let Esc end the choice of findings first: in the window it clears the selection of pairs."""
        if event.type() == QEvent.Type.ShortcutOverride and self._ends(event):
            event.accept()
            return True
        return super().event(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        self.clearSelection() if self._ends(event) else super().keyPressEvent(event)

    def _ends(self, event: QEvent) -> bool:
        is_escape = isinstance(event, QKeyEvent) and event.key() == Qt.Key.Key_Escape
        return is_escape and self.selectionModel().hasSelection()

    def chosen(self) -> list[QualityFinding]:
        """Return the selected findings, in the order shown."""
        lines = sorted(index.row() for index in self.selectionModel().selectedRows())
        return [self.findings.index(line, 0).data(FINDING_ROLE) for line in lines]

    def go_to(self, line: int) -> None:
        """Make this line, or the last one, current and selected, without announcing it."""
        if self.findings.rowCount():
            with QSignalBlocker(self.selectionModel()):
                self.selectRow(min(line, self.findings.rowCount() - 1))
            self.viewport().update()

    def mark(self, pairs: Int[np.ndarray, " k"], split: str) -> None:
        """Show these ascending pairs of a split as selected, unannounced; leave the selection if none is listed."""
        of_split = [(line, f.row) for line, f in enumerate(self.findings.findings) if f.split == split]
        lines, rows = np.array(of_split, np.int64).reshape(-1, 2).T
        # Of half a million selected pairs a set would hold the window up for 50 ms.
        chosen = lines[np.searchsorted(pairs, rows) < np.searchsorted(pairs, rows, side="right")]
        if len(chosen):
            self.select_lines(chosen.tolist())

    def select_lines(self, lines: Iterable[int]) -> None:
        """Select exactly these lines without announcing it."""
        last, chosen = self.findings.columnCount() - 1, QItemSelection()
        for line in lines:
            chosen.select(self.findings.index(line, 0), self.findings.index(line, last))
        with QSignalBlocker(self.selectionModel()):
            self.selectionModel().select(chosen, QItemSelectionModel.SelectionFlag.ClearAndSelect)
        self.viewport().update()

    def _fit(self) -> None:
        header = self.horizontalHeader()
        columns = range(self.findings.columnCount())
        names = [str(self.findings.headerData(column, Qt.Orientation.Horizontal)) for column in columns]
        lines = max((name.count("\n") + 1 for name in names), default=1)
        header.setMinimumHeight(lines * header.fontMetrics().lineSpacing() + 2 * theme.SPACE)
        self._short_px.clear()
        for column, name in enumerate(names):
            wide = name in PICTURED or name == "Better caption"
            cell = self._cells[PICTURE_PX if name in PICTURED else 0] if wide else self.itemDelegate()
            self.setItemDelegateForColumn(column, cell)
            header.setSectionResizeMode(
                column, QHeaderView.ResizeMode.Stretch if wide else QHeaderView.ResizeMode.Interactive
            )
            if not wide:
                self._short_px[column] = self._needed_px(column, name)
                self.setColumnWidth(column, self._short_px[column])
        self._leave_out()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._leave_out()

    def _leave_out(self) -> None:
        """Hide ranks, then the split, then margins, where the captions have no room: the finding itself has them."""
        heading = partial(self.findings.headerData, orientation=Qt.Orientation.Horizontal)
        captions = self.findings.columnCount() - len(self._short_px)
        room = self.viewport().width() - captions * CAPTION_PX - sum(self._short_px.values())
        for name in (RANKS, "Split", MARGIN):
            alike = [n for n in self._short_px if heading(n).startswith(name)]
            gained = sum(self._short_px[n] for n in alike) if room < 0 else 0
            for n in alike:
                self.setColumnHidden(n, gained > 0)
            room += gained

    def _needed_px(self, column: int, name: str) -> int:
        """Return the width of a column of short values: captions take what is left."""
        texts = [self.findings.index(line, column).data() for line in range(min(MEASURED, self.findings.rowCount()))]
        longest = max([*map(str, texts), *(STATES.values() if name == "State" else ())], key=len, default="")
        heading = max(map(self.horizontalHeader().fontMetrics().horizontalAdvance, name.split("\n")))
        wide = max(heading, self.fontMetrics().horizontalAdvance(longest))
        return max(LEAST_PX, wide + 3 * theme.INSIDE)
