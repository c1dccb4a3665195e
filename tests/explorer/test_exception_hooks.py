from __future__ import annotations

import sys
from pathlib import Path

import pytest
from PySide6.QtCore import QEventLoop, QTimer, qWarning
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QWidget

from explorer.event_loop.exception_hooks import CRASH, LOG, Hooks


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

    bad = Bad()
    qtbot.addWidget(bad)
    bad.show()
    loop = QEventLoop()
    QTimer.singleShot(100, loop.quit)
    loop.exec()
    assert "in a painting" in _log(hooks)
    assert "endPaint" not in _log(hooks)


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
