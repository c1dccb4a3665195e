"""Zoom of the whole window and reduced motion."""

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import QEvent, QPoint, QRect, QSize, Qt
from PySide6.QtGui import QAction, QShowEvent
from PySide6.QtWidgets import QAbstractButton, QApplication, QComboBox, QLabel, QPushButton, QWidget
from pytestqt.qtbot import QtBot

from explorer import theme
from explorer.state.settings import Settings
from explorer.views import VIEWS
from explorer.views.timeline.panel import FrameMap
from explorer.widgets.layouts import FRAME
from explorer.window import MOTION_KEY, Window, zoom
from explorer.window.zoom import STEPS, ZOOM_KEY, next_zoom, set_scale, zoom_of
from tests.explorer.widgets import add_widget, show_widget
from tests.nightly import nightly_except
from trainer.config import default_paths
from trainer.untrusted.safe_subprocess import python

SCALED = """
import sys
from pathlib import Path
from explorer.state.settings import Settings
from explorer.window.zoom import ZOOM_KEY, set_scale, zoom_of
from trainer.config import default_paths
set_scale(zoom_of(Settings(Path(sys.argv[1])).value(ZOOM_KEY)))
from PySide6.QtWidgets import QApplication, QWidget
application, widget = QApplication([]), QWidget()
widget.resize(100, 40)
print(widget.devicePixelRatioF(), widget.grab().width())
"""

DIALOGS = """
import json, sys
from pathlib import Path
from PySide6.QtCore import QPoint, QRect, QRegularExpression
from PySide6.QtGui import QAction
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QFrame, QPushButton, QScrollArea, QWidget
application = QApplication([])
from explorer.intents import OpenImport, OpenNewRun, OpenVectors
from explorer.views import VIEWS
from explorer.window import zoom
from tests.real_window import real_window
found = {}
with real_window(Path(sys.argv[1]), [view for view in VIEWS if view.name == "runs"]) as window:
    assert zoom.rescale(200)
    sends = [lambda intent=intent: window.router.send(intent) for intent in (OpenNewRun(), OpenImport(), OpenVectors())]
    for ask in (*sends, window.dialogs.show_places):
        ask()
        while (dialog := application.activeModalWidget()) is None:
            QTest.qWait(20)
        for button in dialog.findChildren(QPushButton, QRegularExpression("^import-(classify|later)$")):
            button.show()  # as while pictures are read
        QTest.qWait(100)
        area = dialog.findChild(QScrollArea)
        room, buttons = dialog.screen().availableSize(), dialog.findChildren(QPushButton)
        found[dialog.objectName()] = {
            "ratio": dialog.devicePixelRatioF(),
            "screen": room.toTuple(),
            "size": dialog.size().toTuple(),
            "outside": [button.text() for button in buttons if button.isVisible() and not area.isAncestorOf(button)
                and not dialog.rect().contains(QRect(button.mapTo(dialog, QPoint()), button.size()))],
            "cut": area.widget().width() - area.viewport().width() - area.horizontalScrollBar().maximum(),
        }
        dialog.reject()
    for name, panel in (("changeKeys", "shortcutEditor"), ("showPalette", "palette")):
        window.findChild(QAction, name).trigger()
        panel = window.findChild(QFrame, panel)
        inside = [widget for widget in panel.findChildren(QWidget) if widget.parent() is panel and widget.isVisible()]
        places = [QRect(widget.pos(), widget.size()) for widget in inside]
        found[name] = [panel.rect().contains(each) for each in places] + [
            not one.intersects(other) for one in places for other in places if one is not other]
        panel.parent().close_panel()
print(json.dumps(found))
"""


def test_the_zoom_goes_in_steps_from_75_to_200_percent() -> None:
    way_up = [75]
    while next_zoom(way_up[-1], 1) != way_up[-1]:
        way_up.append(next_zoom(way_up[-1], 1))
    assert tuple(way_up) == STEPS
    assert (next_zoom(75, -1), next_zoom(100, -1)) == (75, 90)
    assert [zoom_of(one) for one in (None, "x", 133, True, 150)] == [100, 100, 100, 100, 150]


def test_the_scale_multiplies_that_of_the_person_once() -> None:
    environment = {"QT_SCALE_FACTOR": "2"}
    set_scale(150, environment)
    assert environment["QT_SCALE_FACTOR"] == "3"
    set_scale(75, environment)
    assert environment["QT_SCALE_FACTOR"] == "1.5", "after a restart"
    plain: dict[str, str] = {}
    set_scale(100, plain)
    assert "QT_SCALE_FACTOR" not in plain
    set_scale(125, plain)
    assert plain["QT_SCALE_FACTOR"] == "1.25"


@pytest.mark.slow
@pytest.mark.parametrize("percent", nightly_except([75, 100, 150], 150))
def test_the_remembered_zoom_scales_what_is_drawn_after_a_start(tmp_path: Path, percent: int) -> None:
    settings = Settings(tmp_path)
    settings.set(ZOOM_KEY, percent)
    assert settings.flush()
    ran = subprocess.run(python("-c", SCALED, str(tmp_path)), capture_output=True, text=True, check=True)
    ratio, wide = map(float, ran.stdout.split())
    assert (ratio, wide) == (percent / 100, percent)


@pytest.mark.slow
def test_dialogs_fit_a_screen_of_1280_by_800_at_200_percent(tmp_path: Path) -> None:
    one = {
        "name": "small",
        "x": 0,
        "y": 0,
        "width": 1280,
        "height": 800,
        "logicalDpi": 96,
        "logicalBaseDpi": 96,
        "dpr": 1,
    }
    (tmp_path / "screen.json").write_text(json.dumps({"screens": [one]}))
    environment = {**os.environ, "QT_QPA_PLATFORM": f"offscreen:configfile={tmp_path / 'screen.json'}"}
    command = python("-c", DIALOGS, str(tmp_path / "workspace"))
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
    assert ran.returncode == 0, ran.stderr
    found = json.loads(ran.stdout.splitlines()[-1])
    for name in ("changeKeys", "showPalette"):
        assert all(found.pop(name)), f"parts of {name} overlap or are cut"
    assert set(found) == {"new-run", "import-data", "open-vectors", "places-sheet"}
    for name, facts in found.items():
        (wide, high), (room_wide, room_high) = facts["size"], facts["screen"]
        assert (facts["ratio"], room_wide, room_high) == (2.0, 640, 400)
        assert (wide, high) == (min(wide, room_wide - FRAME[0]), min(high, room_high - FRAME[1])), name
        assert not facts["outside"], f"buttons of {name}"
        assert facts["cut"] <= 0, f"{name} is cut at the right"


@pytest.fixture
def window(window_of, tmp_path: Path) -> Iterator[Window]:
    """Return the real window of an empty workspace."""
    yield window_of(tmp_path / "workspace", VIEWS[:1])
    theme.theme().reduced_motion = False


def press(window: Window, name: str) -> None:
    window.findChild(QAction, name).trigger()


@pytest.mark.slow
def test_ctrl_plus_minus_and_zero_zoom_the_open_window_at_once(window: Window) -> None:
    keys = {name: window.findChild(QAction, name).shortcuts() for name in ("zoomIn", "zoomOut", "zoomReset")}
    assert [one.toString() for one in keys["zoomIn"]] == ["Ctrl++", "Ctrl+="]
    assert [keys[name][0].toString() for name in ("zoomOut", "zoomReset")] == ["Ctrl+-", "Ctrl+0"]
    window.resize(784, 700)
    hovered = window.findChild(QAbstractButton, "showSettings")
    QApplication.sendEvent(hovered, QEvent(QEvent.Type.Enter))
    assert hovered.underMouse()
    try:
        press(window, "zoomIn")
        assert not hovered.underMouse()
        press(window, "zoomIn")
        assert (window.personal.value(ZOOM_KEY), window.devicePixelRatioF()) == (125, 1.25)
        room = window.screen().availableSize()
        assert (window.width(), window.height()) == (room.width() - FRAME[0], 560), "as large as before, on the screen"
        assert window.grab().width() == 1.25 * window.width()
        assert window.status.brief.text() == "Zoom 125 %."
        assert hovered.icon().pixmap(QSize(18, 18), 1.25).devicePixelRatio() == 1.25, (
            "icons are drawn anew, not stretched"
        )
        assert window.isVisible()
        for _ in range(3):
            press(window, "zoomIn")
        assert window.size() == window.screen().availableSize() - QSize(*FRAME)
        assert window.rail.width() < 80
    finally:
        press(window, "zoomReset")
    assert (window.personal.value(ZOOM_KEY), window.devicePixelRatioF(), window.width()) == (100, 1.0, 784)
    assert not window.opens_again


@pytest.mark.slow
def test_a_maximized_window_is_not_larger_than_the_screen_at_any_zoom(window: Window) -> None:
    window.showMaximized()
    try:
        for _ in range(5):
            press(window, "zoomIn")
        room = window.screen().availableSize()
        assert window.devicePixelRatioF() == 2.0
        assert window.minimumSize().boundedTo(room) == window.minimumSize()
    finally:
        press(window, "zoomReset")


def test_a_zoom_is_chosen_from_a_list_of_the_settings(window: Window, qtbot: QtBot) -> None:
    sheet = window.settings_sheet
    press(window, "showSettingsAction")
    box = sheet.findChild(QComboBox, "zoomPercent")
    assert [box.itemText(index) for index in range(box.count())] == [f"{percent} %" for percent in STEPS]
    try:
        box.showPopup()
        for _ in STEPS[3:]:
            qtbot.keyClick(box.view(), Qt.Key.Key_Down)
        assert window.devicePixelRatioF() == 1.0, "while one chooses, nothing moves"
        qtbot.keyClick(box.view(), Qt.Key.Key_Return)
        qtbot.waitUntil(lambda: window.devicePixelRatioF() == 2.0)
        assert sheet.geometry() == sheet.parentWidget().rect(), "over the smaller window"
        for label in sheet.findChildren(QLabel):
            needed = label.heightForWidth(label.width()) if label.wordWrap() else label.sizeHint().height()
            assert label.height() >= needed, f"“{label.text()}” is cut off"
            assert label.wordWrap() or label.width() >= label.sizeHint().width()
        assert (window.personal.value(ZOOM_KEY), box.currentText()) == (200, "200 %")
        qtbot.keyClick(box, Qt.Key.Key_Up)
        qtbot.waitUntil(lambda: window.devicePixelRatioF() == 1.75)
    finally:
        press(window, "zoomReset")


def test_the_window_that_is_zoomed_stays_above_the_others(qtbot: QtBot, dressed: QApplication) -> None:
    shown: list[str] = []

    class Recording(QWidget):
        def showEvent(self, _event: QShowEvent) -> None:
            shown.append(self.windowTitle())

    windows = [Recording(windowTitle=title) for title in "ab"]
    for window in windows:
        qtbot.addWidget(window)
        window.show()
    try:
        for window in windows:
            window.activateWindow()
            qtbot.waitUntil(window.isActiveWindow)
            zoom.rescale(125)
            assert shown[-1] == window.windowTitle(), "a window manager puts the last one on top"
    finally:
        zoom.rescale(100)


def test_a_window_stays_at_its_place_on_the_screen(qtbot: QtBot, dressed: QApplication) -> None:
    window = add_widget(qtbot, QWidget())
    window.setGeometry(121, 83, 401, 303)
    window.show()
    qtbot.waitExposed(window)
    try:
        for percent in (125, 175, 125):
            zoom.rescale(percent)
            corner = window.geometry().topLeft() * window.devicePixelRatioF()
            assert (corner - QPoint(121, 83)).manhattanLength() <= 4, "rounded, and not once for each zoom"
    finally:
        zoom.rescale(100)
    assert window.geometry() == QRect(121, 83, 401, 303)


@pytest.mark.slow
def test_where_qt_cannot_zoom_a_restart_is_offered(window: Window, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zoom, "SETTERS", {})
    press(window, "zoomOut")
    assert (window.personal.value(ZOOM_KEY), window.devicePixelRatioF()) == (90, 1.0)
    restart = next(button for button in window.banner.findChildren(QPushButton) if "Restart" in button.text())
    restart.click()
    assert window.opens_again
    assert not window.isVisible()
    assert Settings(default_paths.user_folder()).value(ZOOM_KEY) == 90


@pytest.mark.slow
@pytest.mark.nightly
def test_reduced_motion_is_remembered(window: Window) -> None:
    press(window, "reducedMotion")
    assert theme.theme().reduced_motion
    assert window.personal.value(MOTION_KEY) is True
    press(window, "reducedMotion")
    assert not theme.theme().reduced_motion


def test_with_reduced_motion_points_are_at_once_where_they_go(dressed: QApplication, qtbot) -> None:
    shown = show_widget(qtbot, FrameMap(), 200, 200)
    whole = np.zeros(4, np.int64)
    start, end = np.zeros((4, 2)), np.ones((4, 2))
    shown.set_points(start, diamond=whole > 0, color=whole, palette=np.zeros((1, 3), np.uint8))
    qtbot.waitUntil(lambda: shown.layer.is_sorted)
    theme.theme().reduced_motion = True
    try:
        shown.glide_to(end)
        assert not shown.gliding
        assert np.array_equal(shown.places, end)
    finally:
        theme.theme().reduced_motion = False
    shown.glide_to(start)
    assert shown.gliding
    qtbot.waitUntil(lambda: not shown.gliding)


@pytest.mark.slow
@pytest.mark.parametrize("scale", nightly_except(["1", "2"], "2"))
def test_lines_of_plots_are_as_thick_on_a_screen_of_twice_the_pixels(scale: str) -> None:
    script = """
import numpy as np
from PySide6.QtWidgets import QApplication
application = QApplication([])
from explorer import theme
theme.theme().apply(application, "light")
from explorer.render_qt.xy_plot import XYPlotWidget
from trainer.charts.marks import Axis, Series, XYPlot
line = Series("a", "run_a", np.array([0.0, 1.0]), np.array([0.5, 0.5]))
plot = XYPlotWidget()
plot.resize(300, 200)
plot.show()
plot.show_plot(XYPlot("line", "Line", Axis("x", 0, 1), Axis("y", 0, 1), (line,)))
application.processEvents()
picture, ink = plot.grab().toImage(), theme.color("run_a")
column = [picture.pixelColor(picture.width() * 2 // 3, y) for y in range(picture.height())]
print(sum(abs(c.red() - ink.red()) + abs(c.blue() - ink.blue()) < 90 for c in column))
"""
    environment = os.environ | {"QT_SCALE_FACTOR": scale, "QT_QPA_PLATFORM": "offscreen"}
    run = subprocess.run(python("-c", script), env=environment, capture_output=True, text=True, timeout=300)
    assert abs(int(run.stdout) - 2 * int(scale)) <= 1, run.stderr
