"""Makes the film on top of the README: `uv run python packaging/film.py OUT.webp`.

It shows the first start, a training of the demo in a new workspace while its curves grow, and the finished runs that
come with the application: map, selection, time, cosines and classification. The window is the real one, on Qt's
offscreen platform; a frame is taken when the window has answered, so waiting is left out, and a training is as fast as
the film shows it.
"""

from __future__ import annotations

import io
import math
import os
import sys
import tempfile
from pathlib import Path
from typing import Final

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

from PIL import Image
from PySide6.QtCore import QBuffer, QEvent, QPoint, QPointF, Qt
from PySide6.QtGui import QColor, QMouseEvent, QPainter, QPen, QPixmap, QPolygonF
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QPushButton, QWidget
from screenshots import at_work, pause, wait_until

from explorer import theme
from explorer.event_loop.exception_hooks import Hooks
from explorer.event_loop.garbage_collector import GarbageCollector
from explorer.window import Window
from explorer.window.sample_window import window_on_sample

SIZE: Final = (1280, 800)
WIDTH: Final = 1100
"""Of a frame, in pixels."""
STATUS: Final = 28
"""Height of the line of status, in pixels."""
FRAME_MS: Final = 125
BEGIN: Final = "first-experiment"
"""The button of Home that trains on drawn scenes."""
_POINTER: Final = QPolygonF([QPointF(*xy) for xy in ((0, 0), (0, 17), (4, 13), (7, 20), (10, 19), (7, 12), (12, 12))])


class Film:
    """Frames of a window, with the pointer where the mouse is."""

    def __init__(self) -> None:
        self.frames: list[Image.Image] = []
        self._pointer = QPoint(640, 400)

    def hold(self, window: QWidget, seconds: float, over: QWidget | None = None) -> None:
        """Show the window, and a dialog over it, as they are now."""
        picture = window.grab()
        painter = QPainter(picture)
        if over is not None:
            corner = QPoint((window.width() - over.width()) // 2, (window.height() - over.height()) // 2)
            painter.fillRect(picture.rect(), QColor(0, 0, 0, 60))
            painter.drawPixmap(corner, over.grab())
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.translate(self._pointer)
        painter.setPen(QPen(Qt.GlobalColor.white, 1.2))
        painter.setBrush(Qt.GlobalColor.black)
        painter.drawPolygon(_POINTER)
        painter.end()
        self.frames += [_image(picture)] * max(1, round(1000 * seconds / FRAME_MS))

    def move_to(self, window: QWidget, widget: QWidget, frames: int = 4) -> None:
        """Move the pointer to the middle of a widget."""
        begin, end = self._pointer, widget.mapTo(window, widget.rect().center())
        for step in range(1, frames + 1):
            self._pointer = begin + (end - begin) * (step / frames)
            self.hold(window, 0)

    def drag(self, window: QWidget, widget: QWidget, points: list[QPoint]) -> None:
        """Drag the mouse along points of a widget, a frame every third."""
        left, none = Qt.MouseButton.LeftButton, Qt.MouseButton.NoButton
        _send(widget, QEvent.Type.MouseButtonPress, points[0], left, left)
        for index, point in enumerate(points):
            _send(widget, QEvent.Type.MouseMove, point, none, left)
            self._pointer = widget.mapTo(window, point)
            if index % 3 == 0:
                pause(0.03)
                self.hold(window, 0)
        _send(widget, QEvent.Type.MouseButtonRelease, points[-1], left, none)

    def write(self, file: Path) -> None:
        """Write the film; equal frames become one that lasts longer."""
        self.frames[0].save(
            file, save_all=True, append_images=self.frames[1:], duration=FRAME_MS, loop=0, quality=72, method=4
        )


def _send(widget: QWidget, kind: QEvent.Type, at: QPoint, button: Qt.MouseButton, held: Qt.MouseButton) -> None:
    place, on_screen = QPointF(at), QPointF(widget.mapToGlobal(at))
    QApplication.sendEvent(widget, QMouseEvent(kind, place, on_screen, button, held, Qt.KeyboardModifier.NoModifier))


def _image(picture: QPixmap) -> Image.Image:
    # Below is the line of status, which names a folder of this computer.
    picture = picture.copy(0, 0, picture.width(), picture.height() - STATUS)
    height = round(WIDTH * picture.height() / picture.width())
    buffer = QBuffer()
    buffer.open(QBuffer.OpenModeFlag.WriteOnly)
    picture.toImage().save(buffer, "PNG")
    whole = Image.open(io.BytesIO(bytes(buffer.data().data()))).convert("RGB")
    return whole.resize((WIDTH, height), Image.Resampling.LANCZOS)


def _settle(window: Window, seconds: float = 0.5) -> None:
    pause(seconds)
    wait_until(lambda: not at_work(window))
    pause(0.3)


def _opened(window: Window) -> Window:
    window.resize(*SIZE)
    window.show()
    _settle(window, 1.5)
    return window


def train(film: Film) -> None:
    """Film the first start and the curves of a first training."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        window = _opened(Window(Path(folder), Hooks(Path(folder))))
        wait_until(lambda: window.findChild(QPushButton, BEGIN) is not None)
        _settle(window, 1.0)
        film.hold(window, 1.5)
        begin = window.findChild(QPushButton, BEGIN)
        film.move_to(window, begin, 6)
        film.hold(window, 0.4)
        begin.click()
        jobs = window.services.jobs
        while not any(run.status == "running" and run.step > 0 for run in jobs.runs):
            pause(0.5)
        window.navigation.go_to("runs")
        seen = -1
        for _ in range(600):
            pause(0.5)
            step = max((run.step for run in jobs.runs), default=0)
            if step > seen:
                seen = step
                film.hold(window, 0.125)
            if len(film.frames) > 60 or any(run.status == "finished" for run in jobs.runs):
                break
        film.hold(window, 0.8)
        jobs.stop([run.id for run in jobs.runs if run.status in ("running", "queued")])
        wait_until(lambda: not any(run.status == "running" for run in jobs.runs))
        window.close()


def look(film: Film) -> None:
    """Film the finished runs: map, selection, time, cosines and classification."""
    window = _opened(window_on_sample(Window, Hooks(Path(tempfile.mkdtemp()))))
    view = window.pages.open_view
    wait_until(lambda: all(panel.side is not None and panel.map.layer.visible_count() for panel in view.panels))
    _settle(window, 1.0)
    film.hold(window, 1.2)
    QTest.keyClick(window, Qt.Key.Key_L)
    plot = view.panels[0].map
    plot.tool = "lasso"
    middle, reach = QPoint(plot.width() // 3, plot.height() // 2), plot.height() // 5
    film.drag(window, plot.viewport(), [middle + QPoint(round(reach * x), round(reach * y)) for x, y in _circle(30)])
    _settle(window)
    film.hold(window, 1.5)
    QTest.keyClick(window, Qt.Key.Key_Escape)
    window.navigation.go_to("timeline")
    _settle(window, 1.5)
    slider = window.pages.open_view.transport.slider
    for value in range(slider.minimum(), slider.maximum() + 1):
        slider.setValue(value)
        pause(0.4)
        film.hold(window, 0.25)
    window.navigation.go_to("similarity")
    _settle(window, 2.0)
    film.hold(window, 1.8)
    window.navigation.go_to("classify")
    classify, runs = window.pages.open_view, window.selection.runs
    wait_until(lambda: all(classify.asking.prediction(classify.strip.current, run) for run in runs))
    _settle(window, 1.0)
    film.hold(window, 2.2)
    window.close()


def _circle(count: int) -> list[tuple[float, float]]:
    return [(math.cos(2 * math.pi * t / count), math.sin(2 * math.pi * t / count)) for t in range(count + 1)]


def main(file: Path) -> None:
    """Write the film."""
    application = QApplication.instance() or QApplication(sys.argv[:1])
    application.setApplicationName("Contrastive Explorer")
    garbage = GarbageCollector(application)
    theme.theme().apply(application, "light")
    film = Film()
    train(film)
    print(len(film.frames), "frames of a training", flush=True)
    look(film)
    film.write(file)
    print(f"{file}: {len(film.frames) * FRAME_MS / 1000:.0f} s, {file.stat().st_size / 1e6:.1f} MB")
    garbage.close()


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(Path(sys.argv[1]).resolve())
