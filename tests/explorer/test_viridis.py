"""The colors of heat maps."""

from dataclasses import replace

import numpy as np
from PySide6.QtGui import QFontMetrics

from explorer import theme
from explorer.widgets.heat_map import HeatMapWidget
from explorer.widgets.viridis import picture, shade
from tests.explorer.widgets import add_widget
from trainer.analysis.palette import DIVERGING
from trainer.charts.marks import HeatMap


def heat_of(values: np.ndarray, low: float, high: float, *, centered: bool = False) -> HeatMap:
    return HeatMap("heat", "", values, "", "", (), (), low, high, "", centered=centered)


def test_more_is_brighter_and_what_is_no_number_is_clear(qapp):
    values = np.array([[0.0, 0.25, 0.5, 0.75, 1.0], [-3.0, 7.0, np.nan, np.inf, 0.5]])
    colors = shade(values)
    light = colors[0, :, :3] @ np.array([0.2126, 0.7152, 0.0722])
    assert (np.diff(light) > 20).all()
    assert np.array_equal(colors[1, :2], colors[0, [0, -1]]), "beyond the ends the end's color"
    assert (colors[1, 2:4, 3] == 0).all()
    assert (colors[0, :, 3] == 255).all()
    image = picture(values)
    assert (image.width(), image.height()) == (5, 2)
    assert image.pixelColor(2, 1).alpha() == 0


def test_differences_diverge_from_white_at_zero(qtbot):
    below, zero, above = shade(np.array([[0.0, 0.5, 1.0]]), DIVERGING)[0, :, :3].astype(int)
    assert zero.tolist() == [247, 247, 247]
    assert below[1] < min(below[0], below[2]), "purple"
    assert above[1] > max(above[0], above[2]), "green"
    cells = add_widget(qtbot, HeatMapWidget(), 300, 260)
    cells.show_heat(heat_of(np.array([[-0.3, 0.0], [0.1, 0.3]]), -0.3, 0.3, centered=True))
    image = cells.grab().toImage()
    middle = cells.rect_of(0, 1).center().toPoint()
    assert image.pixelColor(middle).getRgb()[:3] == (247, 247, 247)
    wide = cells.room().right()
    cells.show_heat(heat_of(np.zeros((2, 2)), -6.38e-05, 6.38e-05, centered=True))
    longest = QFontMetrics(theme.pixel_font(theme.SMALL_PX)).horizontalAdvance("−6.38e−05")
    assert cells.room().right() < wide
    assert cells.room().right() + 8 + 10 + 4 + longest <= cells.width(), "its ends are whole"


def test_cells_without_a_number_are_hatched_and_said_to_have_none(qtbot):
    values = np.array([[0.2, np.nan], [0.9, 0.5]])
    cells = add_widget(qtbot, HeatMapWidget(), 300, 260)
    cells.show_heat(heat_of(values, 0.0, 1.0))
    cells.show()
    image = cells.grab().toImage()

    def colors(row: int, column: int) -> set[str]:
        room = cells.rect_of(row, column).toRect().adjusted(4, 4, -4, -4)
        return {
            image.pixelColor(x, y).name()
            for x in range(room.left(), room.right())
            for y in (room.top(), room.center().y())
        }

    assert len(colors(0, 0)) == 1
    assert theme.color("disabled").name() in colors(0, 1)
    assert colors(0, 1) != {theme.color("disabled").name()}
    assert cells.words_at(0, 1) == "row 1, column 2: no value"


def test_square_cells_ask_for_no_more_height_than_their_width_lets_them_use(qtbot):
    cells = add_widget(qtbot, HeatMapWidget())
    cells.show_heat(heat_of(np.zeros((4, 4)), 0.0, 1.0))
    for wide in (240, 400):
        cells.resize(wide, cells.height_in(wide))
        room = cells.room()
        assert room.width() == room.height()
        cells.resize(wide, cells.height_in(wide) + 100)
        assert cells.room().width() == room.width(), "more height makes them no larger"
    cells.show_heat(heat_of(np.zeros((4, 9)), 0.0, 1.0))
    assert cells.height_in(240) == cells.sizeHint().height()


def test_cells_near_zero_show_the_picture_under_them(qtbot):
    ground = np.zeros((8, 8, 3), np.uint8)
    ground[:, 4:] = 255
    cells = add_widget(qtbot, HeatMapWidget())
    heat = heat_of(np.array([[0.0, 0.0]]), -1.0, 1.0, centered=True)
    cells.show_heat(replace(heat, picture=ground, tones=("run_a", "run_b")), ("#0072b2", "#b86e00"))
    image = cells.grab().toImage()
    dark, light = (image.pixelColor(cells.rect_of(0, at).center().toPoint()).green() for at in range(2))
    assert light - dark > 80
