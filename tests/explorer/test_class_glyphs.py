"""Strokes in the marks of a map and of its legend tell classes apart without their colors."""

import msgspec
import numpy as np
from PySide6.QtGui import QImage
from PySide6.QtWidgets import QApplication, QToolButton

from explorer import theme
from explorer.views.map.coloring import MODALITY, Coloring, classes_of
from explorer.widgets.class_legend import ClassEntry, ClassLegend, entry_px
from explorer.widgets.point_map import class_glyphs
from explorer.widgets.point_map.class_glyphs import STROKES, ClassGlyphs
from explorer.widgets.point_map.point_map import PointMap
from tests.explorer.widgets import add_widget, show_widget


def gray(image: QImage) -> np.ndarray:
    """Return the brightness of the pixels."""
    plain = image.convertToFormat(QImage.Format.Format_Grayscale8)
    rows = np.frombuffer(plain.constBits(), np.uint8).reshape(plain.height(), plain.bytesPerLine())
    return rows[:, : plain.width()].astype(int)


def test_the_glyphs_all_differ() -> None:
    assert len({*STROKES}) == len(STROKES) == 11


def test_marks_of_one_color_differ_by_their_class_on_the_map(dressed: QApplication, qtbot, monkeypatch) -> None:
    shown = add_widget(qtbot, PointMap(), 400, 400)
    glyphs = ClassGlyphs(shown.layer, shown)
    shown.show()
    n = len(STROKES)
    xy = np.array([(place % 4, place // 4) for place in range(n)], np.float64)
    one = np.zeros(n, np.int64)
    shown.set_points(xy, diamond=one > 0, color=one, palette=np.array([[0, 114, 178]]))
    qtbot.waitUntil(lambda: shown.layer.is_sorted and shown.layer.still)
    plain = gray(shown.grab().toImage())
    glyphs.show_classes(np.arange(n))
    qtbot.wait(30)
    seen: list[bool] = []
    glyphs.seen_changed.connect(seen.append)
    told = gray(shown.grab().toImage())
    pictures = []
    for place in range(n):
        at = shown.box.mapViewToScene(shown.layer.place(place))
        x, y = round(at.x()), round(at.y())
        around = (slice(y - 5, y + 6), slice(x - 5, x + 6))
        assert (told[around] != plain[around]).any() == (place > 0)
        pictures.append(told[around])
    for place in range(n):
        for other in range(place):
            assert abs(pictures[place] - pictures[other]).max() > 60, (place, other)
    monkeypatch.setattr(class_glyphs, "LEAST_ROOM", 30_000)  # 14,500 square pixels a point are too dense then
    assert np.array_equal(gray(shown.grab().toImage()), plain)
    assert not glyphs.are_seen
    assert not seen[-1]


def test_the_legend_has_the_glyphs_of_the_map(dressed: QApplication, qtbot) -> None:
    legend = show_widget(qtbot, ClassLegend(), 700, 300)
    blue = theme.run_shade(0, 0)
    legend.set_entries([ClassEntry(str(place), blue, (1,), glyph=place) for place in range(len(STROKES))])
    plain = gray(legend.grab().toImage())
    legend.show_glyphs(True)
    image = gray(legend.grab().toImage())
    assert (image != plain).any(), "plain until the points of a map have room for glyphs"
    rects = [legend.visualRect(legend.model().index(row)) for row in range(len(STROKES))]
    marks = [image[rect.y() : rect.y() + 26, rect.x() + 6 : rect.x() + 24] for rect in rects]
    assert len({mark.tobytes() for mark in marks}) == len(STROKES)


def test_a_legend_of_many_classes_shows_the_most_frequent_and_says_how_many_more(dressed: QApplication, qtbot) -> None:
    legend = show_widget(qtbot, ClassLegend(), 500, 300)
    legend.set_entries([ClassEntry(f"class {place}", "#808080", (place, 40 - place)) for place in range(3)])
    more = legend.findChild(QToolButton, "legendMore")
    assert not more.isVisible()
    legend.set_entries([ClassEntry(f"class {place:02}", "#808080", (place,)) for place in range(40)])
    shown = [row for row in range(40) if not legend.isRowHidden(row)]
    assert shown == list(range(shown[0], 40)), "the most frequent ones, in their order"
    assert more.isVisible()
    assert more.text() == f"… {40 - len(shown)} more"
    assert legend.verticalScrollBar().maximum() == 0
    for width in range(300, 700, 29):
        legend.resize(width, 300)
        shown = [row for row in range(40) if not legend.isRowHidden(row)]
        rects = [legend.visualRect(legend.model().index(row)) for row in shown]
        assert not any(rect.intersects(more.geometry()) for rect in rects), width
    of_selection = {3: 19, 8: 1}
    entries = [ClassEntry(f"class {row:02}", "#808080", (row,), of_selection.get(row, 0)) for row in range(40)]
    legend.set_entries(entries)
    assert [row for row in range(40) if not legend.isRowHidden(row)][:2] == [3, 8], "rare ones of the selection"
    high = legend.height()
    more.click()
    assert not any(legend.isRowHidden(row) for row in range(40))
    assert legend.height() > high
    more.click()
    assert (legend.height(), more.text()) == (high, f"… {40 - len(shown)} more")


def test_only_colors_of_classes_have_glyphs() -> None:
    index, palette = np.arange(3), np.zeros((4, 3), np.uint8)
    assert classes_of(Coloring("label", index, palette, ("a", "b", "c"))) is index
    assert classes_of(Coloring("label", index, palette, tuple("abcdefghijkl"))) is None, "no two share a glyph"
    assert classes_of(Coloring(MODALITY, index, palette, ("Images", "Texts"))) is None
    assert classes_of(Coloring("brightness", index, palette, (), scale=(0.0, 1.0))) is None


def test_a_selection_moves_no_entry_of_a_legend(dressed, qtbot):
    legend = add_widget(qtbot, ClassLegend())
    entries = [ClassEntry(f"class {place}", "#808080", (128, 64)) for place in range(12)]
    legend.resize(12 * entry_px(entries[0]) + 2, legend.height())
    legend.set_entries(entries)
    height = legend.height()
    legend.set_entries([msgspec.structs.replace(entry, selected=100) for entry in entries])
    assert legend.height() == height
