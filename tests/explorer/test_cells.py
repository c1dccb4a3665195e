"""Cells of tables that paint more than words."""

from PySide6.QtGui import QFontMetrics
from PySide6.QtWidgets import QApplication, QTableWidget, QTableWidgetItem

from explorer import theme
from explorer.models.runs import SHARE_ROLE, TONE_ROLE
from explorer.widgets.cells import ProgressCell
from explorer.widgets.elided_label import elided_name
from tests.explorer.widgets import add_widget


def test_bars_of_one_share_have_one_length_whatever_is_written_beside_them(dressed, qtbot) -> None:
    table = add_widget(qtbot, QTableWidget(2, 1))
    table.setItemDelegate(ProgressCell(share_role=SHARE_ROLE, tone_role=TONE_ROLE, parent=table))
    for row, words in enumerate(("288 / 288", "1,152 / 1,152")):
        item = QTableWidgetItem(words)
        item.setData(SHARE_ROLE, 1.0)
        item.setData(TONE_ROLE, "accent")
        table.setItem(row, 0, item)
    table.setColumnWidth(0, 176)
    table.show()
    drawn = table.viewport().grab().toImage()
    ink = theme.color("accent").rgb()
    rows = [table.visualItemRect(table.item(row, 0)) for row in range(2)]
    long = [sum(drawn.pixel(x, room.center().y()) == ink for x in range(room.left(), room.right())) for room in rows]
    assert long[0] == long[1] > 40


def test_names_of_runs_that_are_cut_stay_distinct(dressed) -> None:
    """Seen at 1280 pixels: two rows of `CLOOB · clothing-…`."""
    names = [f"Training: {kind} · clothing-cc0 · s{end}" for kind in ("CLIP", "CLOOB") for end in ("0", "0 (2)", "1")]
    metrics = QFontMetrics(QApplication.font())
    widest, least = (of(map(metrics.horizontalAdvance, names)) for of in (max, min))
    for width in range(widest, least // 2, -7):
        cut = [elided_name(name, metrics, width) for name in names]
        assert all(metrics.horizontalAdvance(text) <= width for text in cut)
        assert all(text.endswith(name.rpartition(" · ")[2]) for text, name in zip(cut, names, strict=True))
    assert elided_name(names[0], metrics, widest) == names[0]
    end = metrics.horizontalAdvance("… s1 (4 epochs)")
    assert elided_name("CLOOB · s1 (4 epochs)", metrics, end) == "… s1 (4 epochs)", "what tells it apart is whole"
    assert "…" in elided_name("one-very-long-name-of-a-file.png", metrics, 90)
