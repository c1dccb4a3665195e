"""The arrow of a sorted column covers and cuts no words."""

import pytest
from PySide6.QtCore import QRect, Qt
from PySide6.QtGui import QImage, QPainter, QStandardItemModel
from PySide6.QtWidgets import QTableView
from pytestqt.qtbot import QtBot

from explorer.widgets.sort_header import SortHeader
from tests.explorer.widgets import add_widget


@pytest.mark.parametrize("side", [Qt.AlignmentFlag.AlignLeft, Qt.AlignmentFlag.AlignRight])
def test_a_sorted_heading_is_drawn_as_an_unsorted_one_with_an_arrow(dressed, qtbot: QtBot, side) -> None:
    table = add_widget(qtbot, QTableView())
    table.setHorizontalHeader(SortHeader(table))
    model = QStandardItemModel(2, 2)
    model.setHorizontalHeaderLabels(["Started", "Other"])
    model.setHeaderData(0, Qt.Orientation.Horizontal, int(side | Qt.AlignmentFlag.AlignVCenter), 7)
    table.setModel(model)
    table.setSortingEnabled(True)
    table.resize(300, 120)
    table.show()
    header = table.horizontalHeader()
    words = QRect(0, 0, header.sectionSize(0), header.height() - 2)
    arrow = header.arrow(words, 0)

    def heading(section: int) -> tuple[QImage, QImage]:
        """Return the first heading without its arrow, and the arrow, while this section is sorted."""
        table.sortByColumn(section, Qt.SortOrder.AscendingOrder)
        image = header.grab().toImage()
        drawn = arrow.adjusted(-2, -4, 2, 4)
        spot, rest = image.copy(drawn), image.copy(words)
        painter = QPainter(rest)
        painter.fillRect(drawn, Qt.GlobalColor.black)
        painter.end()
        return rest, spot

    sorted_words, sorted_spot = heading(0)
    plain_words, plain_spot = heading(1)
    assert sorted_words == plain_words
    assert sorted_spot != plain_spot
    assert len({plain_spot.pixel(x, y) for x in range(plain_spot.width()) for y in range(plain_spot.height())}) == 1
