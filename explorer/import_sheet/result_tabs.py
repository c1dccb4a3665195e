"""Two tabs with the result of reading: example pairs, or why there are none; and the import report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from PySide6.QtCore import QSize
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QTabWidget, QWidget

from explorer.event_loop.background import Background
from explorer.import_sheet.pair_grid import EXAMPLES, PairGrid
from explorer.import_sheet.report import Line, ReportPane
from explorer.import_sheet.summary_text import Explanation
from explorer.import_sheet.survey_result import DataSource
from explorer.models.thumbnails import Thumbnails
from explorer.widgets.current_page_stack import CurrentPageStack
from explorer.widgets.state_area import StatePage

PICTURE: Final = 240
"""Longer side of the pictures that are shown: of a wide one the middle square must still be sharp."""

LEAST_PX: Final = 96
"""Of the lists: a pair, or some lines of the report."""


class ResultTabs(QTabWidget):
    """A tab widget with the pairs and the report.

    Attributes:
        grid: Ten pairs.
        empty: What is in their place while there are none.
        report: Everything that is not used, or odd.
    """

    def __init__(self, background: Background, actions: Mapping[str, QAction], parent: QWidget | None = None) -> None:
        """Create the tabs; `actions` are those that `explain` can offer, by name."""
        super().__init__(parent, objectName="import-tabs", accessibleName="Pairs or report")
        self._actions = actions
        self.grid = PairGrid(Thumbnails(background, self, edge=PICTURE), self)
        self.empty = StatePage(self, width=520)
        self.pages = CurrentPageStack(self)
        for page in (self.grid, self.empty):
            self.pages.addWidget(page)
        self.report = ReportPane(background, self)
        self.grid.setMinimumHeight(LEAST_PX)
        self.report.setMinimumHeight(LEAST_PX)
        self.addTab(self.pages, "Preview")
        self.addTab(self.report, "Import report")

    def sizeHint(self) -> QSize:
        # What is left is theirs, and they scroll: with more, the sheet would scroll around them.
        return self.minimumSizeHint()

    def show_reading(self, reading: DataSource | None, lines: Sequence[Line]) -> None:
        """Show the pairs, if any, and the lines of the report."""
        examples = reading.examples if reading else ()
        self.grid.pairs.show(examples)
        if examples:
            self.pages.setCurrentWidget(self.grid)
        self.setTabText(0, "Preview" if len(examples) in (0, EXAMPLES) else f"{len(examples)} pairs")
        self.setTabText(1, f"Import report ({len(lines):,})")
        self.setTabEnabled(1, bool(lines))
        self.setTabToolTip(1, "" if lines else "Every row is used: there is nothing to report.")
        self.tabBar().setVisible(reading is not None)
        self.report.show_lines(lines, reading.name if reading else "import")

    def explain(self, explanation: Explanation) -> None:
        """Show why there are no pairs and offer possible actions."""
        icon, title, text, action, other = explanation
        self.empty.show_message(icon, title, text, self._actions.get(action), self._actions.get(other))
        self.pages.setCurrentWidget(self.empty)
