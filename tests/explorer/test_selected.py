"""The table of pairs and the panel of saved selections, through the real widgets."""

from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QFontMetrics
from PySide6.QtWidgets import QApplication

from explorer import theme
from explorer.models.pair_table import PairColumn
from explorer.models.thumbnails import Thumbnails
from explorer.views.selected import PairTable, SelectedPanel
from explorer.views.selected.table import CAPTION_PX, CLASS_PX, LINE_PX
from explorer.views.selected.tiles import PairTile, Tiles
from tests.explorer.widgets import add_widget, show_widget
from trainer.store import Items, read_snapshot


@pytest.fixture
def panel(qtbot, make_context, two_runs: tuple[int, int]) -> SelectedPanel:
    context = make_context()
    made = add_widget(qtbot, SelectedPanel(context, Thumbnails(context.background)), 420, 600)
    items = read_snapshot(context.workspace.results.snapshots(two_runs[0])[-1].folder).items
    context.selection.pairs_changed.connect(
        lambda: made.show_items(items, context.selection.pairs, dataset="scenes-renderings")
    )
    made.show_items(items, np.empty(0, np.int64), dataset="scenes-renderings")
    made.show()
    return made


def test_kept_recalled_deleted_and_undone(qtbot, panel: SelectedPanel, tmp_path: Path):
    selection, workspace = panel.context.selection, panel.context.workspace
    assert panel.hint.isVisible()
    assert not panel.table.isVisible()
    selection.pairs = [3, 1, 40]
    assert panel.title.text() == "Selected 3 of 48 pairs"
    assert panel.table.pairs.rowCount() == 3
    assert not panel.save.isEnabled()
    qtbot.keyClicks(panel.name, "odd ones")
    qtbot.keyClick(panel.name, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: panel.recall.isVisible(), timeout=5000)
    (kept,) = workspace.selections.all()
    assert (kept.name, kept.items) == ("odd ones", ("pair 1", "pair 3", "pair 40"))
    qtbot.mouseClick(panel.clear, Qt.MouseButton.LeftButton)
    assert len(selection.pairs) == 0
    select, delete = panel.menu.actions()[0].menu().actions()
    select.trigger()
    assert selection.pairs.tolist() == [1, 3, 40]
    assert [a.text() for a in panel.actions()] == ["Select “odd ones” (3 pairs)", "Export the selected pairs…"]
    delete.trigger()
    qtbot.waitUntil(lambda: not panel.recall.isVisible(), timeout=5000)
    assert workspace.selections.all() == []
    qtbot.mouseClick(panel.undo, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: panel.recall.isVisible(), timeout=5000)
    assert workspace.selections.all() == [kept]
    panel.write(tmp_path / "out.csv")
    assert panel.writing.busy
    panel.writing.button.click()
    assert not panel.writing.busy
    panel.write(tmp_path / "out.txt")
    qtbot.waitUntil(lambda: "written" in panel.outcome.text(), timeout=5000)
    assert [Path(line).name for line in (tmp_path / "out.txt").read_text().splitlines()] == ["1.png", "3.png", "40.png"]


@pytest.mark.nightly
def test_a_million_rows_scroll_by_the_page(qtbot, background, dressed):
    n = 1_000_000
    items = Items(np.arange(n), ["/nowhere/a.png"] * n, ["a caption"] * n, ["x"] * n, [""] * n)
    pictures = Thumbnails(background, decode=lambda path, edge: (_ for _ in ()).throw(OSError(path)))
    background.failed.connect(lambda _error: None)
    table = show_widget(qtbot, PairTable(pictures, name="million", label="A million pairs"), 600, 700)
    values = np.random.default_rng(0).random(n)
    table.pairs.show(items, np.arange(n), [PairColumn("v", "Value", "", values)])
    QApplication.processEvents()
    bar = table.verticalScrollBar()
    for share in np.linspace(0, 1, 30):
        bar.setValue(int(share * bar.maximum()))
        table.viewport().repaint()
    table.sortByColumn(2, Qt.SortOrder.DescendingOrder)
    assert table.pairs.pairs[0] == values.argmax()
    assert table.pairs.index(n - 1, 2).data() == f"{values.min():.2f}"
    table.mark(np.array([int(values.argmax())]))
    assert table.chosen_pairs().tolist() == [int(values.argmax())]


def test_classes_take_what_two_captions_leave_unless_a_person_chose_their_width(qtbot, background, dressed):
    items = Items(np.arange(3), [""] * 3, ["b", "a", "c"], ["red"] * 3, [""] * 3)
    table = show_widget(qtbot, PairTable(Thumbnails(background), name="t", label="t"))
    table.pairs.show(items, np.arange(3), [PairColumn("v", "V", "", np.zeros(3))])
    for width, wanted in ((400, CLASS_PX), (1400, 2 * CLASS_PX), (400, CLASS_PX)):
        table.resize(width, 300)
        assert table.columnWidth(1) == wanted
    table.setColumnWidth(1, 120)
    table.resize(1400, 300)
    assert table.columnWidth(1) == 120


def test_a_long_caption_takes_three_lines_beside_its_numbers(qtbot, background, dressed):
    captions = ["a star", "a turquoise square left of an orange cross on sand"]
    items = Items(np.arange(2), [""] * 2, captions, [""] * 2, [""] * 2)
    table = show_widget(qtbot, PairTable(Thumbnails(background), name="t", label="t"), 300, 200)
    table.pairs.show(items, np.arange(2), [PairColumn("v", "V", "", np.zeros(2))])
    painted = table.viewport().grab().toImage()
    heights = []
    for line in range(2):
        rect = table.visualRect(table.pairs.index(line, 0)).adjusted(64, 2, -4, -2)
        across = range(rect.left(), rect.right())
        inked = [
            any(painted.pixelColor(x, y).lightness() < 120 for x in across) for y in range(rect.top(), rect.bottom())
        ]
        rows = np.flatnonzero(inked)
        heights.append(np.ptp(rows))
    assert heights[1] > 2.8 * heights[0]


def test_a_narrow_table_hides_numbers_rather_than_scroll_to_the_side(qtbot, background, dressed):
    items = Items(np.arange(9), [""] * 9, ["a cross"] * 9, ["red"] * 9, [""] * 9)
    table = show_widget(qtbot, PairTable(Thumbnails(background), name="t", label="t", narrow=True))
    table.resize(264, 320)
    table.pairs.show(items, np.arange(9), [PairColumn("v", "Rank A", "", np.zeros(9))])
    assert not table.horizontalScrollBar().isVisible()
    assert table.rowViewportPosition(8) <= table.viewport().height(), "eight lines are seen"
    table.resize(600, 320)
    assert [table.isColumnHidden(column) for column in range(3)] == [False] * 3


def test_the_class_gives_way_to_the_caption(qtbot, background, dressed):
    items = Items(np.arange(3), [""] * 3, ["a cross"] * 3, ["red"] * 3, [""] * 3)
    table = show_widget(qtbot, PairTable(Thumbnails(background), name="t", label="t"))
    table.pairs.show(items, np.arange(3), [PairColumn("v", "B", "", np.zeros(3))] * 3)
    assert table.columnWidth(2) < 60, "a column of numbers is hardly wider than its head"
    for width, is_hidden in ((350, True), (700, False)):
        table.resize(width, 300)
        assert table.isColumnHidden(1) == is_hidden
        qtbot.waitUntil(lambda: not table.horizontalScrollBar().isVisible())


def test_columns_that_are_needed_least_are_left_out_but_not_the_sorted_one(qtbot, background, dressed):
    items = Items(np.arange(3), [""] * 3, ["a cross"] * 3, [""] * 3, [""] * 3)
    table = show_widget(qtbot, PairTable(Thumbnails(background), name="t", label="t"), 900, 300)
    spare = (2, 0, 1, 1)
    table.pairs.show(items, np.arange(3), [PairColumn(f"{n}", f"{n}", "", np.zeros(3), spare=n) for n in spare])

    def shown() -> list[int]:
        return [column - 2 for column in range(2, 6) if not table.isColumnHidden(column)]

    narrower = [shown()]
    for width in range(table.width(), 180, -4):
        table.resize(width, 300)
        if shown() != narrower[-1]:
            narrower.append(shown())
    assert narrower == [[0, 1, 2, 3], [1, 2, 3], [1], []], "those of one number go together"
    table.sortByColumn(2, Qt.SortOrder.AscendingOrder)
    table.resize(260, 300)
    assert shown() == [0]
    table.resize(900, 300)
    assert shown() == [0, 1, 2, 3]


def test_without_classes_there_is_no_column_for_them(qtbot, background, dressed):
    items = Items(np.arange(3), [""] * 3, ["a cross"] * 3, [""] * 3, [""] * 3)
    for narrow in (False, True):
        table = show_widget(qtbot, PairTable(Thumbnails(background), name="t", label="t", narrow=narrow), 700, 300)
        table.pairs.show(items, np.arange(3), [PairColumn("v", "B", "", np.zeros(3))])
        assert [table.isColumnHidden(column) for column in range(3)] == [False, True, False]


def test_tiles_leave_out_what_all_captions_begin_with(qtbot, background, dressed):
    tiles = add_widget(qtbot, Tiles(Thumbnails(background), name="t", label="t", lines=1, one_row=True))
    captions = ("a photo of a blue shirt", "a photo of a blazer", "a photo of a blazer")
    tiles.show_tiles([PairTile(row, "", caption) for row, caption in enumerate(captions)])
    shown = [tiles.cell.texts(tile, tiles.fontMetrics(), tiles.tiles.shared)[1] for tile in tiles.tiles.items]
    assert [line[:4] for (line,) in shown] == ["…blu", "…bla", "…bla"]
    assert tiles.cell.texts(PairTile(0, "", "long-sleeve shirt"), tiles.fontMetrics())[1][0].endswith("…")
    tiles.enlarge(72, 200)
    assert tiles.cell.texts(PairTile(0, "", "long-sleeve shirt"), tiles.fontMetrics())[1] == ["long-sleeve shirt"]
    tiles.show_tiles([PairTile(0, "", "a photo of a blue shirt")])
    assert tiles.tiles.shared == 0
    tiles.show_tiles([PairTile(row, "", caption) for row, caption in enumerate(("a green circle", "a blue ring"))])
    assert tiles.tiles.shared == 0, "an article is no longer than the sign of what is left out"


def test_captions_of_tiles_have_the_width_and_the_lines_that_are_there_before_they_are_cut(qtbot, background, dressed):
    tiles = show_widget(qtbot, Tiles(Thumbnails(background), name="t", label="t", edge=96, lines=3), 540, 400)
    short, long = "a star", "a red heart right of an orange square on grass"
    low = tiles.cell.size.height()
    tiles.show_tiles([PairTile(row, "", short, "1.  0.779", "shared") for row in range(9)])
    assert tiles.cell.size.height() == low
    tiles.show_tiles([PairTile(row, "", long, "1.  0.779") for row in range(9)])
    metrics = QFontMetrics(theme.pixel_font(theme.SMALL_PX))
    assert " ".join(tiles.cell.texts(tiles.tiles.items[0], metrics)[0]) == long
    assert tiles.cell.size.height() > low
    left, right = (tiles.visualRect(tiles.tiles.index(line)) for line in (0, 3))
    assert left.top() == right.top(), "as many stand in a row as before"
    assert tiles.viewport().width() - right.right() < 24, "and share its width but for the scroll bar"
    other = add_widget(qtbot, Tiles(Thumbnails(background), name="o", label="o", edge=96, lines=3), 540, 400)
    tiles.beside, other.beside = other, tiles
    other.show()
    other.show_tiles([PairTile(row, "", short, "1.  0.779") for row in range(9)])
    assert other.cell.size == tiles.cell.size, "rows of A and B stand at the same heights"
    tiles.show_tiles([PairTile(row, "", short, "1.  0.779") for row in range(9)])
    assert other.cell.size.height() == tiles.cell.size.height() == low


def test_missing_values_sort_last_both_ways(qtbot, background, dressed):
    items = Items(np.arange(3), [""] * 3, ["b", "a", "c"], [""] * 3, [""] * 3)
    table = add_widget(qtbot, PairTable(Thumbnails(background), name="t", label="t"))
    column = PairColumn("v", "V", "", np.array([np.nan, -1.0, 2.0]), signed=True)
    table.pairs.show(items, np.arange(3), [column])
    for order, expected in ((Qt.SortOrder.AscendingOrder, [1, 2, 0]), (Qt.SortOrder.DescendingOrder, [2, 1, 0])):
        table.pairs.sort(2, order)
        assert table.pairs.pairs.tolist() == expected
    assert [column.text(i) for i in range(3)] == ["–", "−1.00", "+2.00"]
    table.pairs.sort(0, Qt.SortOrder.AscendingOrder)
    assert table.pairs.pairs.tolist() == [1, 0, 2]


def test_a_table_keeps_its_room_for_captions_and_its_selected_row_in_view_when_it_is_filled_again_or_smaller(
    qtbot, background, dressed
):
    items = Items(np.arange(9), ["/nowhere/a.png"] * 9, ["a red cross on the left"] * 9, ["x"] * 9, [""] * 9)
    background.failed.connect(lambda _error: None)
    table = show_widget(qtbot, PairTable(Thumbnails(background), name="t", label="t"), 400, 9 * LINE_PX)
    table.horizontalHeader().resizeSection(0, 60)
    table.pairs.show(
        items, np.arange(9), [PairColumn(f"v{place}", f"Value {place}", "", np.zeros(9)) for place in range(8)]
    )
    assert table.columnWidth(0) == CAPTION_PX
    table.mark(np.array([4]))
    table.resize(400, 4 * LINE_PX)
    QApplication.processEvents()
    assert table.viewport().rect().contains(table.visualRect(table.currentIndex()).adjusted(0, 0, -CAPTION_PX, 0))
