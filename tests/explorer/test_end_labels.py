"""Names at the ends of curves: moved apart, and joined to their curves where they lie away from them."""

import pytest
from PySide6.QtCore import QPoint, QPointF
from PySide6.QtGui import QImage, QRegion
from PySide6.QtWidgets import QWidget

from explorer.widgets.end_labels import LINE_PX, EndLabel, EndLabels, leader, spread
from explorer.widgets.plot import Plot
from tests.explorer.widgets import add_widget


def test_a_name_beside_its_curve_has_no_leader_and_one_that_was_moved_has():
    tops = spread([100.0, 101.0], 0, 200)
    ends = [QPointF(50, top + LINE_PX / 2) for top in (100.0, 101.0)]
    lines = [leader(end, 54, top + LINE_PX / 2) for end, top in zip(ends, tops, strict=True)]
    assert [line.isEmpty() for line in lines] == [True, False]
    assert lines[1].at(0).y() == ends[1].y(), "it begins where the curve ends"
    assert lines[1].at(2).y() == tops[1] + LINE_PX / 2, "it ends at the middle of the name"
    assert leader(QPointF(10, 50), 54, 70).isEmpty(), "a curve that ends earlier: it would cross the others"


def labeled_plot(qtbot, last: float) -> tuple[Plot, EndLabels]:
    """Return an empty plot of 400 x 300 pixels from 0 to `last`, and the names at its right."""
    plot = add_widget(qtbot, Plot(), 400, 300)
    plot.setXRange(0, last, padding=0)
    plot.setYRange(0, 1, padding=0)
    names = EndLabels(plot)
    names.resize(400, 300)
    return plot, names


@pytest.mark.parametrize("apart", [False, True])
def test_names_leave_room_for_leaders_only_where_there_are_some(qtbot, dressed, apart: bool):
    plot, names = labeled_plot(qtbot, 10)
    names.set_room(120)
    heights = (0.2, 0.8) if apart else (0.5, 0.5)
    tones = ("#0072b2", "#b86e00")
    names.show_labels([EndLabel(f"Run {tone}", tone, 9.0, y) for tone, y in zip(tones, heights, strict=True)])
    plot.show()
    qtbot.waitExposed(plot)
    image = QImage(400, 300, QImage.Format.Format_ARGB32)
    image.fill(0)
    names.render(image, QPoint(), QRegion(), QWidget.RenderFlag(0))
    box = plot.getViewBox()
    end = plot.mapFromScene(box.mapViewToScene(QPointF(9.0, heights[1])))
    # Beside the end, before any letter.
    is_drawn = any(image.pixelColor(end.x() + 4, end.y() + below).alpha() for below in range(-8, 8))
    assert is_drawn is not apart


def test_a_curve_that_ends_early_has_its_name_at_its_own_end(qtbot, dressed):
    plot, names = labeled_plot(qtbot, 500)
    early, late = EndLabel("Stopped", "#0072b2", 40.0, 0.5), EndLabel("Whole", "#b86e00", 500.0, 0.5)
    names.show_labels([early, late])
    names.set_room(names.room_px)
    plot.show()
    qtbot.waitExposed(plot)
    image = QImage(400, 300, QImage.Format.Format_ARGB32)
    image.fill(0)
    names.render(image, QPoint(), QRegion(), QWidget.RenderFlag(0))
    for label in (early, late):
        end = plot.mapFromScene(plot.getViewBox().mapViewToScene(QPointF(label.x, label.y)))
        beside = [image.pixelColor(end.x() + right, end.y()).alpha() for right in range(4, 30)]
        assert any(beside), label.text
    assert not any(image.pixelColor(x, end.y()).alpha() for x in range(end.x() - 120, end.x() - 10)), "and no leader"
