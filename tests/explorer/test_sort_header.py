"""The arrow of a sorted column covers and cuts no words."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QImage, QStandardItemModel
from PySide6.QtWidgets import QTableView
from pytestqt.qtbot import QtBot

from explorer.widgets.sort_header import ARROW_PX, RIGHT_PX, SortHeader


@pytest.mark.parametrize("side", [Qt.AlignmentFlag.AlignLeft, Qt.AlignmentFlag.AlignRight])
def test_a_sorted_heading_is_drawn_as_an_unsorted_one_with_an_arrow(dressed, qtbot: QtBot, side) -> None:
    table = QTableView()
    qtbot.addWidget(table)
    table.setHorizontalHeader(SortHeader(table))
    model = QStandardItemModel(2, 2)
    model.setHorizontalHeaderLabels(["Started", "Other"])
    model.setHeaderData(0, Qt.Orientation.Horizontal, int(side | Qt.AlignmentFlag.AlignVCenter), 7)
    table.setModel(model)
    table.setSortingEnabled(True)
    table.resize(300, 120)
    table.show()
    header = table.horizontalHeader()

    def heading(section: int) -> tuple[QImage, QImage]:
        """Return the words and the right end of the first heading while this section is sorted."""
        table.sortByColumn(section, Qt.SortOrder.AscendingOrder)
        image = header.grab().toImage()
        high, wide, end = header.height() - 2, header.sectionSize(0), ARROW_PX + RIGHT_PX + 3
        return image.copy(0, 0, wide - end, high), image.copy(wide - end, 0, end, high)

    sorted_words, arrow = heading(0)
    words, nothing = heading(1)
    assert sorted_words == words
    assert arrow != nothing
