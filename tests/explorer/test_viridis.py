"""The colors of heat maps."""

from __future__ import annotations

import numpy as np
from PySide6.QtGui import QColor

from explorer.widgets.viridis import NOTHING, picture, shade


def test_more_is_brighter_and_what_is_no_number_is_gray(qapp):
    values = np.array([[0.0, 0.25, 0.5, 0.75, 1.0], [-3.0, 7.0, np.nan, np.inf, 0.5]])
    colors = shade(values)
    light = colors[0] @ np.array([0.2126, 0.7152, 0.0722])
    assert (np.diff(light) > 20).all()
    assert np.array_equal(colors[1, :2], colors[0, [0, -1]]), "beyond the ends the end's color"
    assert (colors[1, 2:4] == NOTHING).all()
    image = picture(values)
    assert (image.width(), image.height()) == (5, 2)
    assert image.pixelColor(2, 1) == QColor(NOTHING, NOTHING, NOTHING)
