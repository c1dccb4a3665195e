import gc
import sys
import threading
from pathlib import Path

import pytest
from PySide6.QtCore import QEventLoop, Qt, QTimer, qWarning
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QWidget

from explorer.event_loop.exception_hooks import CRASH, LOG, Hooks
from tests.explorer.widgets import add_widget


@pytest.fixture
def hooks(qapp, tmp_path: Path):
    made = Hooks(tmp_path)
    made.install()
    yield made
    made.remove()


@pytest.fixture
def caught(hooks: Hooks) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    hooks.caught.connect(lambda summary, details: found.append((summary, details)))
    return found


def _log(hooks: Hooks) -> str:
    return hooks.log_file.read_text() if hooks.log_file.exists() else ""


@pytest.mark.qt_no_exception_capture
def test_an_exception_in_a_slot_reaches_log_and_window(qtbot, hooks, caught) -> None:
    QTimer.singleShot(0, lambda: 1 // 0)
    qtbot.waitUntil(lambda: bool(caught))
    assert "ZeroDivisionError" in caught[0][0]
    assert "Traceback" in caught[0][1]
    assert "ZeroDivisionError" in _log(hooks)


@pytest.mark.qt_no_exception_capture
@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_an_exception_in_a_thread_reaches_the_gui_thread(qtbot, hooks) -> None:
    threads: list[threading.Thread] = []
    hooks.caught.connect(lambda *_: threads.append(threading.current_thread()), Qt.ConnectionType.QueuedConnection)
    worker = threading.Thread(target=lambda: int("x"))
    worker.start()
    worker.join()
    qtbot.waitUntil(lambda: bool(threads))
    assert "ValueError" in _log(hooks)


@pytest.mark.qt_no_exception_capture
def test_an_exception_in_a_finalizer_is_caught(qtbot, hooks, caught) -> None:
    class Bad:
        def __del__(self) -> None:
            raise RuntimeError("in a finalizer")

    Bad()
    gc.collect()
    qtbot.waitUntil(lambda: bool(caught))
    assert "in a finalizer" in _log(hooks)


@pytest.mark.qt_no_exception_capture
def test_a_painting_that_fails_is_over_when_it_is_told(qtbot, hooks, caught) -> None:
    """Python keeps the last error's frames, whose painter would paint on objects deleted by Qt."""

    class Bad(QWidget):
        def paintEvent(self, _event: QPaintEvent) -> None:
            painter = QPainter(self)
            painter.drawLine(0, 0, 5, 5)
            try:
                int("x")
            except ValueError as error:
                raise RuntimeError("in a painting") from error

    bad = add_widget(qtbot, Bad())
    bad.show()
    loop = QEventLoop()
    QTimer.singleShot(100, loop.quit)
    loop.exec()
    assert "in a painting" in _log(hooks)
    assert "endPaint" not in _log(hooks)


@pytest.mark.qt_no_exception_capture
def test_the_window_is_told_once_the_log_everything(qtbot, hooks, caught) -> None:
    for number in range(5):
        hooks.report(ValueError(f"number {number}"))
    qtbot.wait(10)
    assert len(caught) == 1
    assert hooks.caught_count == 5
    assert all(f"number {number}" in _log(hooks) for number in range(5))


@pytest.mark.no_qt_log
def test_what_qt_complains_of_is_logged_and_not_shown(qtbot, hooks, caught) -> None:
    qWarning("a complaint of Qt")
    qtbot.wait(10)
    assert "a complaint of Qt" in _log(hooks)
    assert caught == []


def test_nothing_is_left_behind_by_a_quiet_window(qapp, tmp_path: Path) -> None:
    before = sys.excepthook
    hooks = Hooks(tmp_path)
    hooks.install()
    assert sys.excepthook != before
    hooks.remove()
    assert sys.excepthook == before
    assert not (tmp_path / CRASH).exists()
    assert not (tmp_path / LOG).exists()
