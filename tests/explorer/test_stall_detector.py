"""The watchdog distinguishes computing from waiting, and both from a computer busy with other work."""

from __future__ import annotations

import linecache
import logging
import threading
import time
import weakref

import pytest
from PySide6.QtCore import QTimer

from explorer.event_loop.stall_detector import LONGEST_MS, Gap, StallDetector


@pytest.fixture
def watchdog(qtbot):
    made = StallDetector()
    qtbot.wait(100)
    made.forget()
    qtbot.wait(100)
    yield made
    made.close()


def compute(seconds: float) -> None:
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


def test_what_computes_for_long_is_found_with_its_stack(qtbot, watchdog, caplog) -> None:
    with caplog.at_level(logging.WARNING):
        QTimer.singleShot(0, lambda: compute(0.3))
        qtbot.waitUntil(lambda: watchdog.longest.cpu_ms > 250)
        qtbot.wait(50)
    assert "in compute" in watchdog.longest.stack
    assert watchdog.longest.own_ms >= 250
    assert "did not respond" in caplog.text


def test_what_is_done_right_after_forgetting_counts(qtbot, watchdog) -> None:
    watchdog.forget()
    compute(0.15)
    qtbot.wait(50)
    assert watchdog.longest.cpu_ms > 140


def test_what_the_loop_does_in_one_round_is_one_stretch(qtbot, watchdog) -> None:
    for _ in range(3):
        QTimer.singleShot(1, lambda: compute(0.06))
    time.sleep(0.01)
    qtbot.waitUntil(lambda: watchdog.longest is not None and watchdog.longest.cpu_ms > 170, timeout=5000)


def test_what_waits_for_long_is_a_gap_without_computing(qtbot, watchdog) -> None:
    QTimer.singleShot(0, lambda: time.sleep(0.3))
    qtbot.waitUntil(lambda: any(gap.wall_ms >= 290 and "time.sleep" in gap.stack for gap in watchdog.gaps))
    found = next(gap for gap in watchdog.gaps if "time.sleep" in gap.stack)
    assert found.cpu_ms < LONGEST_MS


def test_a_look_holds_nothing_of_what_it_sees(qtbot, watchdog, monkeypatch) -> None:
    """Keeping a painter beyond its paintEvent crashes the window."""
    gui, looks, left = threading.get_ident(), [], []

    def slowly(*_: object, **__: object) -> str:
        if threading.get_ident() != gui:
            looks.append(True)
            time.sleep(0.2)
        return ""

    class Painter:
        pass

    def paint() -> weakref.ref[Painter]:
        painter = Painter()
        end = time.monotonic() + 90
        while time.monotonic() < end and not looks:
            time.sleep(0.001)
        return weakref.ref(painter)

    monkeypatch.setattr(linecache, "getline", slowly)
    monkeypatch.setattr(linecache, "checkcache", slowly)
    QTimer.singleShot(0, lambda: left.append(paint()() is None))
    qtbot.waitUntil(lambda: bool(left))
    assert looks, "nobody looked"
    assert left == [True]


def test_time_without_a_processor_is_not_ours() -> None:
    gap = Gap(0.0, wall_ms=900.0, cpu_ms=40.0, waited_ms=850.0)
    assert gap.own_ms == 50.0
    assert "850 ms without a processor" in str(gap)


def test_an_idle_loop_has_no_gap(qtbot, watchdog) -> None:
    watchdog.forget()
    qtbot.wait(400)
    assert watchdog.longest is None or watchdog.longest.cpu_ms < 50
